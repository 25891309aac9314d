//! Files and row groups under way: opened and fetched ahead, decoded on blocking threads, handed out in bounds.
//!
//! Reservations of bytes are made one after the other in the files' order, from one budget for files and another for row groups:
//! so the head of the line always holds what it needs, and nobody behind it can keep it waiting for ever.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use arrow_array::{Array, RecordBatch};
use futures::future::Shared as Repeated;
use futures::stream::{self, BoxStream};
use futures::{FutureExt, Stream, StreamExt};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::task::JoinHandle;

use super::decode::{Decoder, Step};
use super::group::Group;
use super::open::{self, Shared};
use crate::error::{Error, ErrorKind, Result};
use crate::task::FileTask;

/// Bytes of one permit of a budget.
const PERMIT: u64 = 1024;

type Batches = BoxStream<'static, Result<RecordBatch>>;

/// The batches of these files.
pub(super) fn read<T>(shared: Arc<Shared>, tasks: T) -> Batches
where
    T: Stream<Item = Result<FileTask>> + Send + 'static,
{
    let limits = shared.spec.limits.clone();
    let ordered = shared.spec.ordered;
    let files = limits.files.max(1);
    // Beside those that are decoded, some that wait for their bytes or for their consumer.
    let window = limits.decoders.max(1) + 2;
    let for_files = Budget::new(limits.fetched_bytes / 2);
    let for_groups = Budget::new(limits.fetched_bytes / 2);
    let decoded = (limits.decoded_bytes / window as u64).max(PERMIT);

    let opening = {
        let shared = shared.clone();
        let mut lead = Lead::new();
        tasks
            .then(move |task| reserve_file(shared.clone(), for_files.clone(), task))
            .map(move |reserved| {
                let turn = lead.turn();
                Spawned::start(async {
                    let _lead = turn.taken().await;
                    reserved.open().await
                })
            })
    };
    let opened = match ordered {
        true => opening.buffered(files).boxed(),
        false => opening.buffer_unordered(files).boxed(),
    };
    let groups = opened.flat_map(|groups| match groups {
        Ok(groups) => stream::iter(groups).map(Ok).left_stream(),
        Err(error) => stream::iter([Err(error)]).right_stream(),
    });
    let started = groups
        .then(move |group| reserve_group(for_groups.clone(), group))
        .map(move |reserved| match reserved {
            Ok(reserved) => reserved.start(decoded).boxed(),
            Err(error) => stream::iter([Err(error)]).boxed(),
        });
    match ordered {
        true => started
            .map(|batches| async { batches })
            .buffered(window)
            .flatten()
            .boxed(),
        false => started.flatten_unordered(window).boxed(),
    }
}

/// Bytes that may be in flight at once.
#[derive(Clone, Debug)]
struct Budget {
    permits: Arc<Semaphore>,
    most: u32,
}

impl Budget {
    fn new(bytes: u64) -> Self {
        let most = u32::try_from(bytes / PERMIT)
            .unwrap_or(u32::MAX >> 3)
            .clamp(1, u32::MAX >> 3);
        Self {
            permits: Arc::new(Semaphore::new(most as usize)),
            most,
        }
    }

    /// Waits until so many bytes are free; what is larger than the whole budget takes all of it.
    async fn reserve(&self, bytes: u64) -> Option<OwnedSemaphorePermit> {
        let wanted = u32::try_from(bytes.div_ceil(PERMIT)).unwrap_or(u32::MAX);
        let permits = self.permits.clone();
        // A semaphore that is closed bounds nothing; nobody closes it.
        permits.acquire_many_owned(wanted.min(self.most)).await.ok()
    }
}

/// Lets the first file be opened ahead of all others: on a slow line its rows then come as soon as its own bytes, not when all of
/// those that share the line with it have come. It costs one round trip of a line that is busy from then on.
struct Lead {
    first: Option<oneshot::Sender<()>>,
    over: Repeated<oneshot::Receiver<()>>,
}

/// The place of one file.
enum Turn {
    /// The first one. It is over when the sender is dropped.
    First(oneshot::Sender<()>),
    Later(Repeated<oneshot::Receiver<()>>),
}

impl Lead {
    fn new() -> Self {
        let (first, over) = oneshot::channel();
        Self {
            first: Some(first),
            over: over.shared(),
        }
    }

    fn turn(&mut self) -> Turn {
        match self.first.take() {
            Some(first) => Turn::First(first),
            None => Turn::Later(self.over.clone()),
        }
    }
}

impl Turn {
    /// Waits for it. The first file has the lead until what is returned is dropped.
    async fn taken(self) -> Option<oneshot::Sender<()>> {
        match self {
            Self::First(first) => Some(first),
            Self::Later(over) => {
                // Nothing is ever sent: that the sender is gone is the sign.
                let _ = over.await;
                None
            }
        }
    }
}

struct ReservedFile {
    shared: Arc<Shared>,
    task: Result<FileTask>,
    permit: Option<OwnedSemaphorePermit>,
}

async fn reserve_file(shared: Arc<Shared>, budget: Budget, task: Result<FileTask>) -> ReservedFile {
    let bytes = task
        .as_ref()
        .map_or(0, |task| open::small_file_bytes(&shared, task));
    let permit = match bytes {
        0 => None,
        bytes => budget.reserve(bytes).await,
    };
    ReservedFile {
        shared,
        task,
        permit,
    }
}

impl ReservedFile {
    async fn open(self) -> Result<Vec<Group>> {
        self.shared.spec.meter.file();
        open::open(self.shared, self.task?, self.permit).await
    }
}

struct ReservedGroup {
    group: Group,
    /// Given back when the group is decoded.
    _permit: Option<OwnedSemaphorePermit>,
}

async fn reserve_group(budget: Budget, group: Result<Group>) -> Result<ReservedGroup> {
    let group = group?;
    let small = open::small_file_bytes(&group.file.shared, &group.file.task) > 0;
    let permit = match (small, group.missing_bytes()) {
        // Of a small file, all bytes are reserved.
        (true, _) | (_, 0) => None,
        (false, bytes) => budget.reserve(bytes).await,
    };
    Ok(ReservedGroup {
        group,
        _permit: permit,
    })
}

impl ReservedGroup {
    /// Fetches and decodes the group on a task of its own, at most `ahead` decoded bytes before its consumer.
    fn start(self, ahead: u64) -> GroupBatches {
        let location = self.group.file.location().to_owned();
        let room = Budget::new(ahead);
        let (sender, batches) = mpsc::unbounded_channel();
        let work = async move {
            if let Err(error) = self.decode(&room, &sender).await {
                // The receiver is gone only if nobody wants the rows any more.
                let _ = sender.send((Err(error), None));
            }
        };
        GroupBatches {
            location,
            batches,
            running: Some(tokio::spawn(work)),
        }
    }

    async fn decode(mut self, room: &Budget, sender: &mpsc::UnboundedSender<Sent>) -> Result<()> {
        self.group.fetch().await?;
        let shared = self.group.file.shared.clone();
        let location = self.group.file.location().to_owned();
        let mut decoder = Decoder::new(self.group);
        loop {
            let turn = shared.decoders.clone().acquire_owned().await.ok();
            // Only while no other group wants it: a fair semaphore hands it to those that wait.
            let help = shared.decoders.clone().try_acquire_owned().ok();
            let meter = shared.spec.meter.clone();
            let step = tokio::task::spawn_blocking(move || {
                let began = Instant::now();
                let step = advance(&mut decoder, help.is_some());
                meter.decoded(began.elapsed());
                drop((turn, help));
                (decoder, step)
            });
            let step = step.await.map_err(|source| {
                // Parquet's decoder may panic on damaged bytes.
                Error::new(
                    ErrorKind::Corrupt,
                    format!("decoding {location} broke off: the file may be damaged"),
                )
                .with_source(source)
            })?;
            decoder = step.0;
            match step.1? {
                Step::Done => return Ok(()),
                Step::More => {}
                Step::Fetch(ranges) => decoder.fetch(&ranges).await?,
                Step::Batch(batch) => {
                    shared.spec.meter.batch(batch.num_rows());
                    let held = room.reserve(bytes_of(&batch)).await;
                    if sender.send((Ok(batch), held)).is_err() || decoder.is_over() {
                        return Ok(());
                    }
                }
            }
        }
    }
}

/// Steps until there is a batch, or no more.
fn advance(decoder: &mut Decoder, helped: bool) -> Result<Step> {
    loop {
        match decoder.step(helped)? {
            Step::More => {}
            step => return Ok(step),
        }
    }
}

fn bytes_of(batch: &RecordBatch) -> u64 {
    let columns = batch.columns().iter();
    columns
        .map(|column| column.get_buffer_memory_size() as u64)
        .sum()
}

/// A batch, and the room that it takes until it is handed out.
type Sent = (Result<RecordBatch>, Option<OwnedSemaphorePermit>);

/// The batches of one row group. Dropping it ends the group's task.
struct GroupBatches {
    location: String,
    batches: mpsc::UnboundedReceiver<Sent>,
    running: Option<JoinHandle<()>>,
}

impl Stream for GroupBatches {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Some((batch, _room)) = ready!(self.batches.poll_recv(cx)) {
            return Poll::Ready(Some(batch));
        }
        // A task that panicked closes its channel too: that must not look like the end of the rows.
        let Some(running) = &mut self.running else {
            return Poll::Ready(None);
        };
        let ended = ready!(Pin::new(running).poll(cx));
        self.running = None;
        Poll::Ready(ended.err().map(|e| Err(broke_off(&self.location, e))))
    }
}

impl Drop for GroupBatches {
    fn drop(&mut self) {
        if let Some(running) = &self.running {
            running.abort();
        }
    }
}

fn broke_off(what: &str, source: tokio::task::JoinError) -> Error {
    Error::new(ErrorKind::Unexpected, format!("reading {what} broke off")).with_source(source)
}

/// A future that goes on whether or not it is polled, and ends when it is dropped.
struct Spawned<T>(JoinHandle<Result<T>>);

impl<T: Send + 'static> Spawned<T> {
    fn start(work: impl Future<Output = Result<T>> + Send + 'static) -> Self {
        Self(tokio::spawn(work))
    }
}

impl<T> Future for Spawned<T> {
    type Output = Result<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let ended = ready!(Pin::new(&mut self.0).poll(cx));
        Poll::Ready(ended.unwrap_or_else(|e| Err(broke_off("a file", e))))
    }
}

impl<T> Drop for Spawned<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
