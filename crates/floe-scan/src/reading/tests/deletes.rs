//! Deleted rows, in each of the ways and all at once.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Schema as ArrowSchema};
use iceberg::spec::{DataFileFormat, PrimitiveType, SchemaRef};
use roaring::RoaringTreemap;

use super::super::MetadataColumn;
use super::super::deletes::vector;
use super::kit::*;
use crate::error::ErrorKind;
use crate::task::{DeleteFile, DeleteKind, FileTask};

pub(super) fn position_deletes(
    files: &Files,
    location: &str,
    rows: &[(&str, i64)],
) -> Arc<DeleteFile> {
    let paths: ArrayRef = Arc::new(StringArray::from_iter_values(rows.iter().map(|(p, _)| p)));
    let positions: ArrayRef = Arc::new(Int64Array::from_iter_values(rows.iter().map(|(_, p)| *p)));
    let fields = vec![
        field(2_147_483_546, "file_path", DataType::Utf8, false),
        field(2_147_483_545, "pos", DataType::Int64, false),
    ];
    let schema = Arc::new(ArrowSchema::new(fields));
    let batch = RecordBatch::try_new(schema, vec![paths, positions]).unwrap();
    files.delete(location, &batch, DeleteKind::Positions)
}

pub(super) fn vector_delete(
    files: &Files,
    location: &str,
    blob: &[u8],
    rows: u64,
) -> Arc<DeleteFile> {
    let padded = [b"PFA1...", blob, b"...PFA1"].concat();
    Arc::new(DeleteFile {
        path: location.into(),
        format: DataFileFormat::Puffin,
        bytes: files.put(location, padded),
        rows,
        kind: DeleteKind::Vector {
            offset: 7,
            length: blob.len() as u64,
        },
        data_sequence_number: 2,
        encrypted: false,
    })
}

fn table() -> SchemaRef {
    schema([
        optional(1, "id", primitive(PrimitiveType::Long)),
        optional(2, "name", primitive(PrimitiveType::String)),
    ])
}

/// A hundred rows in groups of thirty.
fn data(files: &Files) -> FileTask {
    let names = (0..100).map(|id| (id % 10 != 0).then(|| format!("n{}", id % 7)));
    let columns: [(i32, &str, ArrayRef); 2] = [
        (1, "id", Arc::new(Int64Array::from_iter_values(0..100))),
        (2, "name", Arc::new(names.collect::<StringArray>())),
    ];
    files.data("f", &batch(columns), 30)
}

fn ids(wanted: impl Fn(i64) -> bool) -> Vec<String> {
    let ids = (0..100).filter(|id| wanted(*id));
    ids.map(|id| id.to_string()).collect()
}

async fn read(files: &Arc<Files>, task: FileTask) -> Vec<String> {
    let mut found = None;
    for batch_rows in [5, 1000] {
        let spec = spec(&table(), &[1]).with_limits(small_batches(batch_rows));
        let rows = rows(files, spec, vec![task.clone()]).await.unwrap();
        assert!(found.is_none_or(|found| found == rows));
        found = Some(rows);
    }
    found.unwrap()
}

#[tokio::test]
async fn positions_delete_rows_of_the_file_they_name() {
    let files = Arc::new(Files::new());
    let one = position_deletes(
        &files,
        "d1",
        &[("e", 5), ("f", 0), ("f", 29), ("f", 30), ("g", 6)],
    );
    // In no order, and beyond the file.
    let two = position_deletes(
        &files,
        "d2",
        &[("f", 99), ("f", 7), ("f", 100_000), ("f", 7)],
    );
    let task = with_deletes(data(&files), [one, two]);
    let gone = [0, 29, 30, 99, 7];
    assert_eq!(read(&files, task).await, ids(|id| !gone.contains(&id)));
}

#[tokio::test]
async fn whole_groups_and_whole_files_may_be_deleted() {
    let files = Arc::new(Files::new());
    let group: Vec<_> = (30..60).map(|position| ("f", position)).collect();
    let task = with_deletes(data(&files), [position_deletes(&files, "d1", &group)]);
    assert_eq!(read(&files, task).await, ids(|id| !(30..60).contains(&id)));
    let all: Vec<_> = (0..100).map(|position| ("f", position)).collect();
    let task = with_deletes(data(&files), [position_deletes(&files, "d2", &all)]);
    assert!(read(&files, task).await.is_empty());
}

#[tokio::test]
async fn a_vector_deletes_positions() {
    let files = Arc::new(Files::new());
    let positions = RoaringTreemap::from_iter((0..100).filter(|p| p % 3 == 0));
    let blob = vector::blob(&positions);
    let task = with_deletes(data(&files), [vector_delete(&files, "v", &blob, 34)]);
    files.calls();
    assert_eq!(read(&files, task).await, ids(|id| id % 3 != 0));
    // Only the blob is read, once for both scans.
    let calls = files.calls();
    let of_vector: Vec<_> = calls
        .iter()
        .filter(|(location, _)| location == "v")
        .collect();
    let blob = 7..7 + blob.len() as u64;
    assert_eq!(of_vector, [&("v".to_owned(), vec![blob])]);
}

#[tokio::test]
async fn a_vector_that_disagrees_with_its_manifest_is_an_error() {
    let files = Arc::new(Files::new());
    let blob = vector::blob(&RoaringTreemap::from_iter([1, 2]));
    let wrong_count = vector_delete(&files, "v", &blob, 3);
    let error_of = |delete| {
        error(
            &files,
            spec(&table(), &[1]),
            with_deletes(data(&files), [delete]),
        )
    };
    let error = error_of(wrong_count).await;
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(
        error
            .to_string()
            .contains("holds 2 positions, but its manifest says 3"),
        "{error}"
    );

    let mut damaged = blob;
    damaged[20] ^= 1;
    let error = error_of(vector_delete(&files, "w", &damaged, 2)).await;
    assert!(
        error.to_string().ends_with("its checksum is wrong"),
        "{error}"
    );
    let mut beyond = (*vector_delete(&files, "x", &damaged, 2)).clone();
    beyond.bytes = 20;
    let error = error_of(Arc::new(beyond)).await;
    assert!(
        error.to_string().ends_with("it reaches beyond the file"),
        "{error}"
    );
}

#[tokio::test]
async fn equal_values_delete_rows_whether_or_not_they_go_out() {
    let files = Arc::new(Files::new());
    let names: ArrayRef = Arc::new(StringArray::from(vec![
        Some("n1"),
        None,
        Some("unheard of"),
    ]));
    let delete = batch([(2, "name", names)]);
    let delete = files.delete("e", &delete, DeleteKind::Equality(vec![2]));
    let task = with_deletes(data(&files), [delete]);
    let wanted = ids(|id| id % 10 != 0 && id % 7 != 1);
    assert_eq!(read(&files, task).await, wanted);
}

#[tokio::test]
async fn equality_deletes_see_promoted_columns_and_their_own_ids_only() {
    let files = Arc::new(Files::new());
    // Written when `id` was an int, beside a column that does not count.
    let delete = batch([
        (
            1,
            "old_id",
            Arc::new(Int32Array::from(vec![5, 6])) as ArrayRef,
        ),
        (2, "name", Arc::new(StringArray::from(vec!["?", "?"]))),
    ]);
    let delete = files.delete("e", &delete, DeleteKind::Equality(vec![1]));
    let both = batch([
        (
            2,
            "name",
            Arc::new(StringArray::from(vec!["n1", "n1"])) as ArrayRef,
        ),
        (1, "id", Arc::new(Int64Array::from(vec![8, 9]))),
    ]);
    let both = files.delete("b", &both, DeleteKind::Equality(vec![1, 2]));
    let task = with_deletes(data(&files), [delete, both]);
    assert_eq!(read(&files, task).await, ids(|id| ![5, 6, 8].contains(&id)));
}

#[tokio::test]
async fn equality_deletes_by_a_column_that_is_gone() {
    let files = Arc::new(Files::new());
    let names: ArrayRef = Arc::new(StringArray::from(vec!["n3"]));
    let delete = files.delete(
        "e",
        &batch([(2, "name", names)]),
        DeleteKind::Equality(vec![2]),
    );
    let task = with_deletes(data(&files), [delete]);
    let now = schema([optional(1, "id", primitive(PrimitiveType::Long))]);
    let without = error(&files, spec(&now, &[1]), task.clone()).await;
    assert_eq!(without.kind(), ErrorKind::Unsupported);
    let with = spec(&now, &[1]).with_schemas([table()]);
    let rows = rows(&files, with, vec![task]).await.unwrap();
    assert_eq!(rows, ids(|id| id % 10 == 0 || id % 7 != 3));
}

#[tokio::test]
async fn all_kinds_at_once_with_a_condition_and_positions() {
    use crate::predicate::{Column, Comparison, Predicate};
    let files = Arc::new(Files::new());
    let positions = position_deletes(&files, "d", &[("f", 2), ("f", 31), ("f", 64)]);
    let blob = vector::blob(&RoaringTreemap::from_iter([3, 32, 65, 64]));
    let vector = vector_delete(&files, "v", &blob, 4);
    let ids_gone: ArrayRef = Arc::new(Int64Array::from(vec![4, 33, 66]));
    let equality = files.delete(
        "e",
        &batch([(1, "id", ids_gone)]),
        DeleteKind::Equality(vec![1]),
    );
    let names: ArrayRef = Arc::new(StringArray::from(vec!["n5"]));
    let by_name = files.delete(
        "n",
        &batch([(2, "name", names)]),
        DeleteKind::Equality(vec![2]),
    );
    let task = with_deletes(data(&files), [positions, vector, equality, by_name]);
    let column = Column::find(&table(), "id").unwrap();
    let more = Predicate::Compare(column, Comparison::NotEqual, iceberg::spec::Datum::long(70));
    let task = with_residual(task, more);
    let wanted = |id: i64| {
        ![2, 31, 64, 3, 32, 65, 4, 33, 66, 70].contains(&id) && (id % 10 == 0 || id % 7 != 5)
    };
    assert_eq!(read(&files, task.clone()).await, ids(wanted));

    let spec = spec(&table(), &[2]).with_metadata([MetadataColumn::Position]);
    let rows = rows(&files, spec, vec![task.clone()]).await.unwrap();
    let found: Vec<_> = rows
        .iter()
        .map(|row| row.rsplit(' ').next().unwrap())
        .collect();
    assert_eq!(found, ids(wanted));

    // With the column that tells, deleted rows go out too: all that match the condition.
    let spec = super::kit::spec(&table(), &[1]).with_metadata([MetadataColumn::Deleted]);
    let rows = super::kit::rows(&files, spec, vec![task]).await.unwrap();
    let all = (0..100).filter(|id| *id != 70);
    let all: Vec<_> = all.map(|id| format!("{id} {}", !wanted(id))).collect();
    assert_eq!(rows, all);
}

#[tokio::test]
async fn delete_files_of_other_formats_are_refused() {
    let files = Arc::new(Files::new());
    let mut delete = (*position_deletes(&files, "d", &[("f", 1)])).clone();
    delete.format = DataFileFormat::Avro;
    let task = with_deletes(data(&files), [Arc::new(delete)]);
    let error = error(&files, spec(&table(), &[1]), task).await;
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(
        error
            .to_string()
            .starts_with("can't read d: delete files of format"),
        "{error}"
    );
}
