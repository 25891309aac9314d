//! Row groups that are not read, and conditions that statistics settle.

use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, Int64Array, StringArray, StructArray};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, Fields};
use iceberg::spec::{Datum, Literal, NestedField, PrimitiveType, SchemaRef, StructType, Type};

use parquet::file::metadata::ParquetMetaDataReader;
use parquet::file::properties::WriterProperties;

use super::super::Limits;
use super::kit::*;
use crate::predicate::{Column, Comparison, Predicate};

fn table() -> SchemaRef {
    let with_default = NestedField::optional(4, "late", primitive(PrimitiveType::Long));
    schema([
        optional(1, "id", primitive(PrimitiveType::Long)),
        optional(2, "x", primitive(PrimitiveType::Double)),
        optional(3, "name", primitive(PrimitiveType::String)),
        Arc::new(with_default.with_initial_default(Literal::long(7))),
    ])
}

fn compare(name: &str, comparison: Comparison, datum: Datum) -> Predicate {
    Predicate::Compare(Column::find(&table(), name).unwrap(), comparison, datum)
}

/// Groups of ten: in each, ids of its own, a NaN, and a name.
fn data(files: &Files) -> crate::task::FileTask {
    let x = (0..100).map(|row| {
        if row % 10 == 3 {
            f64::NAN
        } else {
            f64::from(row)
        }
    });
    let names = (0..100).map(|row| format!("name {:03}", row / 10));
    let columns: [(i32, &str, ArrayRef); 3] = [
        (1, "id", Arc::new(Int64Array::from_iter_values(0..100))),
        (2, "x", Arc::new(Float64Array::from_iter_values(x))),
        (3, "name", Arc::new(StringArray::from_iter_values(names))),
    ];
    files.data("f", &batch(columns), 10)
}

/// The rows, and how many column chunks were fetched for them.
async fn read(condition: Predicate) -> (Vec<String>, usize) {
    let files = Arc::new(Files::with_whole(0));
    let task = with_residual(data(&files), condition);
    rows(&files, spec(&table(), &[1]), vec![task.clone()])
        .await
        .unwrap();
    files.calls();
    let rows = rows(&files, spec(&table(), &[1]), vec![task])
        .await
        .unwrap();
    let calls = files.calls();
    (rows, calls.iter().map(|(_, ranges)| ranges.len()).sum())
}

#[tokio::test]
async fn groups_that_cannot_match_are_not_fetched() {
    let (rows, chunks) = read(compare("id", Comparison::GreaterOrEqual, Datum::long(95))).await;
    assert_eq!((rows.len(), chunks), (5, 1));
    let (rows, chunks) = read(compare(
        "name",
        Comparison::Equal,
        Datum::string("name 004"),
    ))
    .await;
    assert_eq!(rows.len(), 10);
    // Every row of that group matches, so the name itself is not read.
    assert_eq!(chunks, 1);
    let (rows, chunks) = read(compare("name", Comparison::Equal, Datum::string("other"))).await;
    assert_eq!((rows.len(), chunks), (0, 0));
}

#[tokio::test]
async fn nan_is_greater_than_any_bound() {
    let (rows, _) = read(compare("x", Comparison::Greater, Datum::double(1000.0))).await;
    assert_eq!(
        rows,
        ["3", "13", "23", "33", "43", "53", "63", "73", "83", "93"]
    );
}

#[tokio::test]
async fn a_column_that_the_file_lacks_has_one_value() {
    let (rows, _) = read(compare("late", Comparison::Equal, Datum::long(7))).await;
    assert_eq!(rows.len(), 100);
    let (rows, chunks) = read(compare("late", Comparison::NotEqual, Datum::long(7))).await;
    assert_eq!((rows.len(), chunks), (0, 0));
    let late = Column::find(&table(), "late").unwrap();
    let (rows, _) = read(Predicate::IsNull(late)).await;
    assert_eq!(rows.len(), 0);
}

#[tokio::test]
async fn fields_of_structs_are_judged_with_their_structs() {
    let inner = StructType::new(vec![
        optional(11, "a", primitive(PrimitiveType::Long)),
        optional(12, "b", primitive(PrimitiveType::Long)),
    ]);
    let table = schema([
        optional(1, "s", Type::Struct(inner)),
        optional(2, "id", primitive(PrimitiveType::Long)),
    ]);
    let fields = Fields::from(vec![field(11, "a", DataType::Int64, true)]);
    let a: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), Some(2), None, Some(4)]));
    let nulls = NullBuffer::from(vec![true, false, true, true]);
    let columns: [(i32, &str, ArrayRef); 2] = [
        (
            1,
            "s",
            Arc::new(StructArray::new(fields, vec![a], Some(nulls))),
        ),
        (2, "id", Arc::new(Int64Array::from_iter_values(0..4))),
    ];
    let files = Arc::new(Files::new());
    let task = files.data("f", &batch(columns), 2);
    let column = |name| Column::find(&table, name).unwrap();
    let cases = [
        (Predicate::IsNull(column("s.a")), vec!["1", "2"]),
        (Predicate::IsNull(column("s.b")), vec!["0", "1", "2", "3"]),
        (
            Predicate::Compare(column("s.a"), Comparison::Greater, Datum::long(1)),
            vec!["3"],
        ),
    ];
    for (condition, wanted) in cases {
        let task = with_residual(task.clone(), condition);
        let rows = rows(&files, spec(&table, &[2]), vec![task]).await.unwrap();
        assert_eq!(rows, wanted);
    }
}

#[tokio::test]
async fn a_condition_never_sees_deleted_rows() {
    use std::fmt;

    use arrow_array::BooleanArray;
    use arrow_array::cast::AsArray;
    use arrow_array::types::Int64Type;

    use super::deletes::position_deletes;
    use crate::error::Result;
    use crate::predicate::{RowCondition, Rows};

    #[derive(Debug)]
    struct NoThirteen;
    impl fmt::Display for NoThirteen {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("no thirteen")
        }
    }
    impl RowCondition for NoThirteen {
        fn columns(&self) -> &[i32] {
            &[1]
        }
        fn evaluate(&self, rows: &dyn Rows) -> Result<BooleanArray> {
            let ids = rows.column(1)?;
            let ids = ids.as_primitive::<Int64Type>();
            assert_eq!(ids.len(), rows.len());
            assert!(!ids.values().contains(&13));
            Ok(ids.iter().map(|id| id.map(|id| id % 2 == 1)).collect())
        }
    }
    let files = Arc::new(Files::new());
    let deletes = position_deletes(&files, "d", &[("f", 13)]);
    let task = with_residual(data(&files), Predicate::Opaque(Arc::new(NoThirteen)));
    let task = with_deletes(task, [deletes]);
    let rows = rows(&files, spec(&table(), &[3, 1]), vec![task])
        .await
        .unwrap();
    assert_eq!(rows.len(), 49);
}

/// A hundred thousand ids in order, in pages of a thousand, with scattered values that a Bloom filter knows, and a long column.
fn paged(files: &Files) -> crate::task::FileTask {
    let rows = 0..100_000i64;
    let scattered = rows
        .clone()
        .map(|row| row.wrapping_mul(0x1E37_79B9_7F4A_7C15) >> 8);
    let names = rows.clone().map(|row| format!("name {row}"));
    let columns: [(i32, &str, ArrayRef); 3] = [
        (
            1,
            "id",
            Arc::new(Int64Array::from_iter_values(rows.clone())),
        ),
        (2, "x", Arc::new(Int64Array::from_iter_values(scattered))),
        (3, "name", Arc::new(StringArray::from_iter_values(names))),
    ];
    let properties = WriterProperties::builder()
        .set_dictionary_enabled(false)
        .set_data_page_row_count_limit(1000)
        .set_write_batch_size(1000)
        .set_column_bloom_filter_enabled("x".into(), true)
        .set_column_bloom_filter_ndv("x".into(), 100_000)
        .set_column_bloom_filter_fpp("x".into(), 0.01)
        .build();
    files.data_with("f", &batch(columns), properties)
}

fn paged_table() -> SchemaRef {
    schema([
        optional(1, "id", primitive(PrimitiveType::Long)),
        optional(2, "x", primitive(PrimitiveType::Long)),
        optional(3, "name", primitive(PrimitiveType::String)),
    ])
}

/// The rows, and the bytes that were fetched for them once the footer was known.
async fn read_paged(condition: Predicate, round_trip_bytes: u64) -> (Vec<String>, u64) {
    let files = Arc::new(Files::with_whole(0));
    let task = with_residual(paged(&files), condition);
    let limits = Limits {
        round_trip_bytes,
        ..Limits::default()
    };
    let spec = spec(&paged_table(), &[1, 3]).with_limits(limits);
    let first = rows(&files, spec.clone(), vec![task.clone()])
        .await
        .unwrap();
    files.calls();
    let rows = rows(&files, spec, vec![task]).await.unwrap();
    assert_eq!(rows, first);
    let calls = files.calls();
    let ranges = calls.iter().flat_map(|(_, ranges)| ranges);
    (rows, ranges.map(|range| range.end - range.start).sum())
}

fn of_paged(name: &str, comparison: Comparison, datum: Datum) -> Predicate {
    Predicate::Compare(
        Column::find(&paged_table(), name).unwrap(),
        comparison,
        datum,
    )
}

/// More than any index of these tests is long, and less than a tenth of the file.
const LITTLE: u64 = 100_000;

#[tokio::test]
async fn pages_that_cannot_match_are_not_fetched() {
    let one = || of_paged("id", Comparison::Equal, Datum::long(77_777));
    let (rows, bytes) = read_paged(one(), 1 << 17).await;
    assert_eq!(rows, ["77777 name 77777"]);
    assert!(bytes < LITTLE, "{bytes}");
    let (rows, bytes) = read_paged(one(), u64::MAX).await;
    assert_eq!(rows, ["77777 name 77777"]);
    assert!(bytes > 10 * LITTLE, "{bytes}");
    // Two stretches, and nothing between them.
    let ends = Predicate::Or(vec![
        of_paged("id", Comparison::Less, Datum::long(10)),
        of_paged("id", Comparison::GreaterOrEqual, Datum::long(99_995)),
    ]);
    let (rows, bytes) = read_paged(ends, 1 << 17).await;
    assert_eq!(rows.len(), 15);
    assert_eq!(rows[14], "99999 name 99999");
    assert!(bytes < LITTLE, "{bytes}");
}

#[tokio::test]
async fn a_value_that_a_bloom_filter_does_not_know_costs_the_filter_alone() {
    let there = 4_242i64.wrapping_mul(0x1E37_79B9_7F4A_7C15) >> 8;
    let is = |value| of_paged("x", Comparison::Equal, Datum::long(value));
    let (rows, _) = read_paged(is(there), 1 << 17).await;
    assert_eq!(rows, ["4242 name 4242"]);
    // One in a hundred passes for what is there.
    let mut spared = 0;
    for other in 1..6 {
        let (rows, bytes) = read_paged(is(there + other), 1 << 17).await;
        assert!(rows.is_empty());
        spared += u64::from(bytes < 3 * LITTLE);
    }
    assert!(spared >= 4, "{spared}");
}

#[tokio::test]
async fn columns_are_fetched_for_the_rows_that_the_filter_leaves() {
    // The condition is one that neither pages nor filters know anything of.
    let few = || {
        let names = ["name 5", "name 99999"].map(Datum::string);
        Predicate::Not(Box::new(Predicate::Not(Box::new(Predicate::In(
            Column::find(&paged_table(), "name").unwrap(),
            names.to_vec(),
        )))))
    };
    let none = Predicate::And(vec![
        Predicate::StartsWith(
            Column::find(&paged_table(), "name").unwrap(),
            "name 5".into(),
        ),
        few(),
        of_paged("name", Comparison::NotEqual, Datum::string("name 5")),
    ]);
    let names: u64 = (0..100_000)
        .map(|row: u64| 4 + 5 + row.to_string().len() as u64)
        .sum();
    let (rows, bytes) = read_paged(few(), 1 << 17).await;
    assert_eq!(rows, ["5 name 5", "99999 name 99999"]);
    assert!(bytes < names + LITTLE, "{bytes} of {names}");
    let (rows, bytes) = read_paged(none, 1 << 17).await;
    assert!(rows.is_empty());
    assert!(bytes < names + LITTLE, "{bytes} of {names}");
}

#[tokio::test]
async fn damaged_indexes_tell_nothing() {
    let condition = || of_paged("id", Comparison::Equal, Datum::long(77_777));
    let clean = Arc::new(Files::with_whole(0));
    let task = with_residual(paged(&clean), condition());
    let bytes = clean.bytes("f");
    let footer = ParquetMetaDataReader::new()
        .parse_and_finish(&bytes)
        .unwrap();
    let end = {
        let columns = footer.row_group(0).columns().iter();
        columns
            .map(|chunk| chunk.column_index_offset().unwrap())
            .min()
            .unwrap() as usize
    };
    let footer_bytes = u32::from_le_bytes(bytes[bytes.len() - 8..][..4].try_into().unwrap());
    let footer_start = bytes.len() - 8 - footer_bytes as usize;
    // Types of fields and lengths of lists; values that still decode would be a lie, which nothing can tell from the truth.
    for at in (end..footer_start).step_by(97) {
        let mut damaged = bytes.to_vec();
        damaged[at] = 0xFF;
        damaged[at + 1] = 0xFF;
        let files = Arc::new(Files::with_whole(0));
        files.put("f", damaged);
        let limits = Limits {
            round_trip_bytes: 0,
            ..Limits::default()
        };
        let spec = spec(&paged_table(), &[1]).with_limits(limits);
        // An error is fine too: never a panic, never a row that does not match.
        if let Ok(rows) = rows(&files, spec, vec![task.clone()]).await {
            assert!(rows.is_empty() || rows == ["77777"], "at {at}: {rows:?}");
        }
    }
}
