//! Limits, and files whose task ends badly.

use std::sync::Arc;

use arrow_array::Int32Array;
use arrow_schema::{DataType, Field, Schema};

use super::*;

fn batch(values: std::ops::Range<i32>) -> RecordBatch {
    let schema = Arc::new(Schema::new(vec![Field::new("x", DataType::Int32, false)]));
    RecordBatch::try_new(schema, vec![Arc::new(Int32Array::from_iter_values(values))]).unwrap()
}

async fn rows(batches: Batches) -> usize {
    batches
        .try_fold(0, |sum, batch| futures::future::ok(sum + batch.num_rows()))
        .await
        .unwrap()
}

#[tokio::test]
async fn a_limit_ends_with_its_last_row_and_asks_for_no_more() {
    let endless = || stream::repeat_with(|| Ok(batch(0..10))).boxed();
    for limit in [0, 1, 9, 10, 11, 100] {
        assert_eq!(rows(limited(endless(), Some(limit))).await, limit);
    }
    // A stream that never gives its second batch must not be asked for it.
    let stuck = stream::iter([Ok(batch(0..10))])
        .chain(stream::pending())
        .boxed();
    assert_eq!(rows(limited(stuck, Some(10))).await, 10);
}

#[tokio::test]
async fn a_file_whose_task_panics_is_an_error_not_a_short_file() {
    let (sender, batches) = mpsc::channel(1);
    let running = tokio::spawn(async move {
        sender.send(Ok(batch(0..3))).await.unwrap();
        std::panic::resume_unwind(Box::new("broken"));
    });
    let mut file = FileStream {
        location: "s3://b/f.parquet".into(),
        batches,
        running: Some(running),
    };
    assert_eq!(file.try_next().await.unwrap().unwrap().num_rows(), 3);
    let error = file.try_next().await.unwrap_err();
    assert!(error.to_string().contains("s3://b/f.parquet"), "{error}");
    assert!(file.try_next().await.unwrap().is_none());
}

#[tokio::test]
async fn dropping_a_file_ends_its_task() {
    let (sender, batches) = mpsc::channel(1);
    let (ended, end) = tokio::sync::oneshot::channel::<()>();
    let running = tokio::spawn(async move {
        let _dropped_with_the_task = ended;
        let _kept = sender;
        std::future::pending::<()>().await;
    });
    drop(FileStream {
        location: "f".into(),
        batches,
        running: Some(running),
    });
    // The sender's end is dropped only when the task is.
    assert!(end.await.is_err());
}
