//! Many columns, which two threads share: the rows are those that one thread decodes.

use std::sync::Arc;

use arrow_array::builder::{Int64Builder, ListBuilder};
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray, StructArray};
use arrow_schema::{DataType, Fields};
use iceberg::spec::{Datum, ListType, NestedField, PrimitiveType, SchemaRef, StructType, Type};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use roaring::RoaringTreemap;

use super::super::deletes::vector;
use super::super::{Limits, MetadataColumn};
use super::deletes::vector_delete;
use super::kit::*;
use crate::error::ErrorKind;
use crate::predicate::{Column, Comparison, Predicate};
use crate::task::FileTask;

const ROWS: i64 = 10_000;

/// The middle of its 13 leaf columns lies within the struct.
fn table() -> SchemaRef {
    let long = || primitive(PrimitiveType::Long);
    let string = || primitive(PrimitiveType::String);
    let within = StructType::new(vec![
        optional(11, "a", long()),
        optional(12, "b", string()),
        optional(13, "c", long()),
    ]);
    let list = ListType::new(Arc::new(NestedField::list_element(21, long(), false)));
    let longs = (1..=5).map(|id| optional(id, &format!("c{id}"), long()));
    let texts = (7..=10).map(|id| optional(id, &format!("c{id}"), string()));
    let nested = [
        optional(6, "within", Type::Struct(within)),
        optional(20, "list", Type::List(list)),
    ];
    schema(longs.chain(nested).chain(texts))
}

const COLUMNS: [i32; 11] = [1, 2, 3, 4, 5, 6, 20, 7, 8, 9, 10];

fn longs(random: &mut StdRng) -> ArrayRef {
    let values = (0..ROWS).map(|row| random.random_bool(0.9).then_some(row % 97));
    Arc::new(values.collect::<Int64Array>())
}

fn texts(random: &mut StdRng) -> ArrayRef {
    let values = (0..ROWS).map(|row| random.random_bool(0.9).then(|| format!("é{}", row % 31)));
    Arc::new(values.collect::<StringArray>())
}

fn data(random: &mut StdRng) -> RecordBatch {
    let within = Fields::from(vec![
        field(11, "a", DataType::Int64, true),
        field(12, "b", DataType::Utf8, true),
        field(13, "c", DataType::Int64, true),
    ]);
    let within = StructArray::new(
        within,
        vec![longs(random), texts(random), longs(random)],
        None,
    );
    let element = field(21, "element", DataType::Int64, true);
    let mut list = ListBuilder::new(Int64Builder::new()).with_field(element);
    for row in 0..ROWS {
        (0..row % 3).for_each(|value| list.values().append_value(value));
        list.append(row % 7 != 0);
    }
    let mut long = || longs(random);
    let (c1, c2, c3, c4, c5) = (long(), long(), long(), long(), long());
    let mut text = || texts(random);
    batch([
        (1, "c1", c1),
        (2, "c2", c2),
        (3, "c3", c3),
        (4, "c4", c4),
        (5, "c5", c5),
        (6, "within", Arc::new(within)),
        (20, "list", Arc::new(list.finish())),
        (7, "c7", text()),
        (8, "c8", text()),
        (9, "c9", text()),
        (10, "c10", text()),
    ])
}

/// So many threads at most; with one, nobody helps.
fn threads(decoders: usize) -> Limits {
    Limits {
        batch_rows: 1500,
        decoders,
        ..Limits::default()
    }
}

async fn read_by(files: &Arc<Files>, decoders: usize, task: FileTask) -> Vec<String> {
    let spec = spec(&table(), &COLUMNS).with_metadata([MetadataColumn::Position]);
    let spec = spec.with_limits(threads(decoders));
    rows(files, spec, vec![task]).await.unwrap()
}

#[tokio::test]
async fn two_threads_give_the_rows_that_one_gives() {
    let files = Arc::new(Files::new());
    let mut random = StdRng::seed_from_u64(7);
    let all = data(&mut random);
    // Of the three groups, the last is too small to share.
    let task = files.data("f", &all, 4000);

    let deleted: RoaringTreemap = (0..ROWS as u64).step_by(9).collect();
    let delete = vector_delete(&files, "v", &vector::blob(&deleted), deleted.len());
    let c1 = Column::find(&table(), "c1").unwrap();
    let some = Predicate::Compare(c1, Comparison::Less, Datum::long(60));

    let whole = read_by(&files, 2, task.clone()).await;
    let wanted = lines(std::slice::from_ref(&all));
    let wanted = wanted
        .iter()
        .zip(0..)
        .map(|(line, row)| format!("{line} {row}"));
    assert_eq!(whole, wanted.collect::<Vec<_>>());

    let filtered = with_residual(task.clone(), some);
    let variants = [
        with_deletes(task.clone(), [delete.clone()]),
        with_deletes(filtered.clone(), [delete]),
        filtered,
    ];
    for task in variants {
        let alone = read_by(&files, 1, task.clone()).await;
        let together = read_by(&files, 2, task).await;
        assert!(alone.len() > 1000 && alone.len() < ROWS as usize);
        assert_eq!(alone, together);
    }
}

#[tokio::test]
async fn damage_in_either_half_is_an_error_of_the_file() {
    let files = Arc::new(Files::new());
    let all = data(&mut StdRng::seed_from_u64(8));
    let intact = parquet_of(&all, 10_000);
    let footer = parquet::file::metadata::ParquetMetaDataReader::new()
        .parse_and_finish(&bytes::Bytes::from(intact.clone()))
        .unwrap();
    for leaf in [0, 12] {
        let (start, length) = footer.row_group(0).column(leaf).byte_range();
        let mut bytes = intact.clone();
        bytes[start as usize..(start + length) as usize].fill(0xFF);
        let location = format!("leaf {leaf}");
        let length = files.put(&location, bytes);
        let task = task(&location, length, ROWS as u64);
        let spec = spec(&table(), &COLUMNS).with_limits(threads(2));
        let error = error(&files, spec, task).await;
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert!(error.to_string().contains(&location), "{error}");
    }
}
