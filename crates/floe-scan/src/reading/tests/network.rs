//! What is asked for, and how often.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array};
use iceberg::spec::{PrimitiveType, SchemaRef};
use parquet::file::metadata::ParquetMetaDataReader;

use super::kit::*;
use crate::task::FileTask;

fn table() -> SchemaRef {
    let field = |id| optional(id, &format!("c{id}"), primitive(PrimitiveType::Long));
    schema((1..=4).map(field))
}

fn data(files: &Files, location: &str, group_rows: usize) -> FileTask {
    let column = |id: i64| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values((0..1000).map(|row| row * id)))
    };
    let columns = [1, 2, 3, 4].map(|id| {
        (
            id,
            ["", "c1", "c2", "c3", "c4"][id as usize],
            column(i64::from(id)),
        )
    });
    files.data(location, &batch(columns), group_rows)
}

/// The task with the sizes that a manifest would tell.
fn with_sizes(files: &Files, task: FileTask, bytes: &[u8]) -> FileTask {
    let _ = files;
    let footer = ParquetMetaDataReader::new()
        .parse_and_finish(&bytes::Bytes::copy_from_slice(bytes))
        .unwrap();
    with_file(task, |file| {
        for id in 1..=4 {
            let groups = footer.row_groups().iter();
            let size = groups.map(|group| group.column(id as usize - 1).compressed_size() as u64);
            file.column_sizes.push((id, size.sum()));
        }
    })
}

fn sum(files: &Files) -> u64 {
    let calls = files.calls();
    calls
        .iter()
        .flat_map(|(_, ranges)| ranges)
        .map(|r| r.end - r.start)
        .sum()
}

#[tokio::test]
async fn a_small_file_is_asked_for_once_and_its_footer_never_again() {
    let files = Arc::new(Files::new());
    let task = data(&files, "f", 300);
    rows(&files, spec(&table(), &[2]), vec![task.clone()])
        .await
        .unwrap();
    let whole = 0..task.file.bytes;
    assert_eq!(files.calls(), [("f".to_owned(), vec![whole])]);
    rows(&files, spec(&table(), &[2]), vec![task.clone()])
        .await
        .unwrap();
    let calls = files.calls();
    // The chunks of four row groups, each its own.
    assert!(
        calls.iter().all(|(_, ranges)| ranges.len() == 1),
        "{calls:?}"
    );
    let bytes: u64 = calls
        .iter()
        .map(|(_, ranges)| ranges[0].end - ranges[0].start)
        .sum();
    assert!(calls.len() == 4 && bytes < task.file.bytes / 2, "{calls:?}");
}

#[tokio::test]
async fn sizes_bring_footer_and_columns_in_one_round_trip() {
    let files = Arc::new(Files::with_whole(0));
    let task = data(&files, "f", 1000);
    let column: Vec<_> = rows(&files, spec(&table(), &[3]), vec![task.clone()])
        .await
        .unwrap();
    files.calls();
    // Another place, so that nothing is known.
    let other = data(&files, "g", 1000);
    let batch_bytes = files_bytes(&files, "g");
    let other = with_sizes(&files, other, &batch_bytes);
    let again = rows(&files, spec(&table(), &[3]), vec![other])
        .await
        .unwrap();
    assert_eq!(column, again);
    let calls = files.calls();
    assert_eq!(calls.len(), 1, "{calls:?}");
    assert_eq!(calls[0].1.len(), 2);
}

#[tokio::test]
async fn wrong_sizes_cost_bytes_but_no_rows() {
    let files = Arc::new(Files::with_whole(0));
    let right = data(&files, "f", 1000);
    let wanted = rows(&files, spec(&table(), &[1, 4]), vec![right])
        .await
        .unwrap();
    for (index, wrong) in [vec![1, 1, 1, 1], vec![5000, 10, 10, 10], vec![1 << 40; 4]]
        .into_iter()
        .enumerate()
    {
        let location = format!("wrong {index}");
        let task = with_file(data(&files, &location, 1000), |file| {
            file.column_sizes = (1..).zip(wrong).collect();
        });
        let found = rows(&files, spec(&table(), &[1, 4]), vec![task])
            .await
            .unwrap();
        assert_eq!(found, wanted);
    }
    // Sizes of several row groups place the footer, but no column.
    let task = data(&files, "several", 100);
    let bytes = files_bytes(&files, "several");
    let found = rows(
        &files,
        spec(&table(), &[1, 4]),
        vec![with_sizes(&files, task, &bytes)],
    )
    .await
    .unwrap();
    assert_eq!(found, wanted);
}

#[tokio::test]
async fn of_a_large_file_only_the_wanted_columns_cross_the_line() {
    let files = Arc::new(Files::with_whole(0));
    let task = data(&files, "f", 250);
    rows(&files, spec(&table(), &[1]), vec![task.clone()])
        .await
        .unwrap();
    sum(&files);
    rows(&files, spec(&table(), &[1]), vec![task.clone()])
        .await
        .unwrap();
    assert!(sum(&files) * 3 < task.file.bytes);
}

fn files_bytes(files: &Files, location: &str) -> Vec<u8> {
    files.bytes(location).to_vec()
}
