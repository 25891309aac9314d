//! Files that hold just what is wanted.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, StringArray};
use futures::{StreamExt, stream};
use iceberg::spec::{DataFileFormat, PrimitiveType, SchemaRef};

use super::super::{Limits, RowReader};
use super::kit::*;
use crate::error::ErrorKind;
use crate::task::FileTask;

fn table() -> SchemaRef {
    schema([
        optional(1, "id", primitive(PrimitiveType::Long)),
        optional(2, "name", primitive(PrimitiveType::String)),
    ])
}

fn people(files: &Files, location: &str, ids: std::ops::Range<i64>, group_rows: usize) -> FileTask {
    let names = ids
        .clone()
        .map(|id| (id % 3 != 0).then(|| format!("n{id}")));
    let names: StringArray = names.collect();
    let columns: [(i32, &str, ArrayRef); 2] = [
        (1, "id", Arc::new(Int64Array::from_iter_values(ids))),
        (2, "name", Arc::new(names)),
    ];
    files.data(location, &batch(columns), group_rows)
}

fn expected(ids: std::ops::Range<i64>) -> Vec<String> {
    let name = |id| match id % 3 {
        0 => format!("NULL {id}"),
        _ => format!("n{id} {id}"),
    };
    ids.map(name).collect()
}

#[tokio::test]
async fn columns_come_in_the_order_asked_for_and_files_in_theirs() {
    let files = Arc::new(Files::new());
    let tasks = (0..20).map(|n| people(&files, &format!("f{n}"), n * 10..n * 10 + 10, 4));
    let tasks = tasks.collect();
    let rows = rows(&files, spec(&table(), &[2, 1]), tasks).await.unwrap();
    assert_eq!(rows, expected(0..200));
}

#[tokio::test]
async fn batches_are_no_larger_than_asked_for() {
    let files = Arc::new(Files::new());
    let task = people(&files, "f", 0..100, 40);
    let spec = spec(&table(), &[2, 1]).with_limits(small_batches(7));
    let batches = batches(&files, spec, vec![task]).await.unwrap();
    assert!(batches.iter().all(|batch| batch.num_rows() <= 7));
    assert_eq!(lines(&batches), expected(0..100));
}

#[tokio::test]
async fn without_an_order_all_rows_come_all_the_same() {
    let files = Arc::new(Files::new());
    let tasks = (0..50).map(|n| people(&files, &format!("f{n}"), n * 10..n * 10 + 10, 4));
    let tasks = tasks.collect();
    let tight = Limits {
        fetched_bytes: 1,
        decoded_bytes: 1,
        ..Limits::default()
    };
    let spec = spec(&table(), &[2, 1]).ordered(false).with_limits(tight);
    let mut rows = rows(&files, spec, tasks).await.unwrap();
    let mut expected = expected(0..500);
    rows.sort();
    expected.sort();
    assert_eq!(rows, expected);
}

#[tokio::test]
async fn bounds_of_almost_nothing_hold_no_ordered_scan_up() {
    for whole in [0, 1 << 20] {
        let files = Arc::new(Files::with_whole(whole));
        let tasks = (0..30).map(|n| people(&files, &format!("f{n}"), n * 10..n * 10 + 10, 3));
        let tasks = tasks.collect();
        let tight = Limits {
            batch_rows: 2,
            fetched_bytes: 1,
            decoded_bytes: 1,
            decoders: 1,
            ..Limits::default()
        };
        let spec = spec(&table(), &[2, 1]).with_limits(tight);
        let rows = rows(&files, spec, tasks).await.unwrap();
        assert_eq!(rows, expected(0..300));
    }
}

#[tokio::test]
async fn a_dropped_stream_stops_all_work() {
    let files = Arc::new(Files::new());
    let tasks: Vec<_> = (0..40)
        .map(|n| Ok(people(&files, &format!("f{n}"), 0..1000, 100)))
        .collect();
    let reader = RowReader::new(files.clone(), spec(&table(), &[1]));
    let mut stream = reader.read(stream::iter(tasks));
    stream.next().await.unwrap().unwrap();
    drop(stream);
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    files.calls();
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    assert!(files.calls().is_empty());
    // Nothing but this holds the reader's state.
    assert_eq!(Arc::strong_count(&reader.shared), 1);
}

#[tokio::test]
async fn what_disagrees_with_the_manifest_is_an_error() {
    let files = Arc::new(Files::new());
    let task = with_file(people(&files, "f", 0..10, 4), |file| file.rows = 11);
    let error = error(&files, spec(&table(), &[1]), task).await;
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert_eq!(
        error.to_string(),
        "f holds 10 rows, but its manifest says 11"
    );
}

#[tokio::test]
async fn what_cannot_be_read_is_named_with_its_file() {
    let files = Arc::new(Files::new());
    let task = people(&files, "f", 0..10, 4);
    let orc = with_file(task.clone(), |file| file.format = DataFileFormat::Orc);
    let error_of = |task| error(&files, spec(&table(), &[1]), task);
    let error = error_of(orc).await;
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(
        error
            .to_string()
            .starts_with("can't read f: data files of format")
    );
    let error = error_of(with_file(task, |file| file.encrypted = true)).await;
    assert_eq!(error.to_string(), "can't read f: it is encrypted");
}
