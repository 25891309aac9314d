//! Reading planned files: each on a tokio task of its own with iceberg-rust's reader, a bounded number at once.
//! All decoding of one reader runs on the task that polls it, so a task for each file is what uses every core.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use datafusion::arrow::compute::filter_record_batch;
use datafusion::physical_expr::PhysicalExpr;
use futures::stream::{self, BoxStream};
use futures::{Stream, StreamExt, TryStreamExt};
use iceberg::Runtime;
use iceberg::arrow::ArrowReaderBuilder;
use iceberg::io::FileIO;
use iceberg::scan::FileScanTask;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::columns::Columns;
use crate::error::{Error, ErrorKind, Result};
use crate::plan::Tasks;
use crate::timings::{Meter, Metered};

/// Batches of rows.
pub(crate) type Batches = BoxStream<'static, Result<RecordBatch>>;

/// Batches that a file may be ahead of its consumer.
const BATCHES_AHEAD: usize = 2;

/// What every file of a scan is read with.
#[derive(Clone, Debug)]
pub(crate) struct FileReader {
    pub(crate) io: FileIO,
    pub(crate) runtime: Runtime,
    pub(crate) columns: Arc<Columns>,
    /// Keeps rows for which it is true; over the schema of `columns`.
    pub(crate) filter: Option<Arc<dyn PhysicalExpr>>,
    pub(crate) batch_rows: usize,
    pub(crate) meter: Arc<Meter>,
}

/// Reads the files of a plan, up to `concurrency` at once, their batches as they come.
pub(crate) fn unordered(tasks: Tasks, reader: FileReader, concurrency: usize) -> Batches {
    tasks
        .map(move |task| match task {
            Ok(task) => reader.spawn(task).boxed(),
            Err(error) => stream::iter([Err(error)]).boxed(),
        })
        .flatten_unordered(concurrency.max(1))
        .boxed()
}

/// Reads these files, up to `concurrency` at once, their batches in the files' order.
pub(crate) fn ordered(tasks: Vec<FileScanTask>, reader: FileReader, concurrency: usize) -> Batches {
    stream::iter(tasks)
        .map(move |task| {
            let file = reader.spawn(task);
            async move { file }
        })
        .buffered(concurrency.max(1))
        .flatten()
        .boxed()
}

/// The first `limit` rows; files under way are given up once they are there.
pub(crate) fn limited(batches: Batches, limit: Option<usize>) -> Batches {
    let Some(limit) = limit else { return batches };
    stream::try_unfold((Some(batches), limit), |(batches, left)| async move {
        let Some(mut batches) = batches.filter(|_| left > 0) else {
            return Ok(None);
        };
        let Some(batch) = batches.try_next().await? else {
            return Ok(None);
        };
        let batch = batch.slice(0, batch.num_rows().min(left));
        let left = left - batch.num_rows();
        Ok(Some((batch, ((left > 0).then_some(batches), left))))
    })
    .boxed()
}

impl FileReader {
    /// The batches of one file, read on a task of its own.
    pub(crate) fn file(self, task: FileScanTask) -> Batches {
        self.spawn(task).boxed()
    }

    /// Starts to read a file on a task of its own, which ends when the stream is dropped.
    fn spawn(&self, task: FileScanTask) -> FileStream {
        let (sender, batches) = mpsc::channel(BATCHES_AHEAD);
        let reader = self.clone();
        let location = task.data_file_path.clone();
        let running = tokio::spawn(async move {
            if let Err(error) = reader.read_into(task, &sender).await {
                // The receiver is gone only if nobody wants the rows any more.
                let _ = sender.send(Err(error)).await;
            }
        });
        FileStream {
            location,
            batches,
            running: Some(running),
        }
    }

    async fn read_into(
        &self,
        task: FileScanTask,
        sender: &mpsc::Sender<Result<RecordBatch>>,
    ) -> Result<()> {
        let location = task.data_file_path.clone();
        let expected = (task.deletes.is_empty() && task.predicate.is_none())
            .then_some(task.record_count)
            .flatten();
        let failed = |source| Error::read(format!("can't read the rows of {location}"), source);

        let one = stream::iter([Ok(task)]).boxed();
        let opened = ArrowReaderBuilder::new(self.io.clone(), self.runtime.clone())
            .with_data_file_concurrency_limit(1)
            .with_batch_size(self.batch_rows)
            .build()
            .read(one)
            .map_err(failed)?;
        let bytes = opened.metrics().clone();
        let mut batches = Metered::file(opened.stream(), self.meter.clone());
        let mut found = 0;
        while let Some(batch) = batches.try_next().await.map_err(failed)? {
            found += batch.num_rows() as u64;
            let started = Instant::now();
            let batch = self.finish(batch, &location)?;
            self.meter.decoded(started.elapsed());
            self.meter.batch(batch.num_rows());
            if batch.num_rows() > 0 && sender.send(Ok(batch)).await.is_err() {
                return Ok(());
            }
        }
        self.meter.file(bytes.bytes_read());
        match expected {
            Some(expected) if expected != found => Err(Error::new(
                ErrorKind::Corrupt,
                format!("{location} holds {found} rows, but its manifest says {expected}"),
            )),
            _ => Ok(()),
        }
    }

    /// Gives a batch the declared schema and drops the rows that the filter doesn't keep.
    fn finish(&self, batch: RecordBatch, location: &str) -> Result<RecordBatch> {
        let batch = self.columns.conform(batch).map_err(|source| {
            Error::new(
                ErrorKind::Corrupt,
                format!("the columns of {location} don't fit the table's schema"),
            )
            .with_source(source)
        })?;
        let Some(filter) = &self.filter else {
            return Ok(batch);
        };
        keep(&batch, filter.as_ref()).map_err(|source| {
            Error::new(
                ErrorKind::Invalid,
                format!("can't evaluate the filter on the rows of {location}"),
            )
            .with_source(source)
        })
    }
}

fn keep(batch: &RecordBatch, filter: &dyn PhysicalExpr) -> datafusion::error::Result<RecordBatch> {
    let mask = filter.evaluate(batch)?.into_array(batch.num_rows())?;
    // NULL is not true: filtering drops those rows, as SQL wants.
    Ok(filter_record_batch(batch, mask.as_boolean())?)
}

/// The batches of one file. Dropping it ends the file's task.
struct FileStream {
    location: String,
    batches: mpsc::Receiver<Result<RecordBatch>>,
    running: Option<JoinHandle<()>>,
}

impl Stream for FileStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Some(batch) = ready!(self.batches.poll_recv(cx)) {
            return Poll::Ready(Some(batch));
        }
        // A task that panicked closes its channel too: that must not look like the end of the file.
        let Some(running) = &mut self.running else {
            return Poll::Ready(None);
        };
        let ended = ready!(Pin::new(running).poll(cx));
        self.running = None;
        Poll::Ready(ended.err().map(|source| {
            Err(Error::new(
                ErrorKind::Unexpected,
                format!("reading {} broke off", self.location),
            )
            .with_source(source))
        }))
    }
}

impl Drop for FileStream {
    fn drop(&mut self) {
        if let Some(running) = &self.running {
            running.abort();
        }
    }
}

#[cfg(test)]
mod tests;
