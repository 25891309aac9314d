//! Where a scan's time goes, by stage. Times of files that are read side by side add up: they can exceed the wall's clock.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures::{Stream, StreamExt};
use serde::Serialize;

/// Time and amounts of a scan by stage.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Timings {
    /// Seconds that the scan waited for the plan: reading manifests and pruning files.
    pub plan_seconds: f64,
    /// Seconds that files waited for bytes, wherever they came from, summed over files.
    pub fetch_wait_seconds: f64,
    /// Seconds spent decoding and filtering, summed over files.
    pub decode_seconds: f64,
    /// Files opened.
    pub files: u64,
    /// Batches handed out by files, before a limit.
    pub batches: u64,
    /// Rows handed out by files, before a limit.
    pub rows: u64,
    /// Bytes of files asked of the store, wherever it had them from.
    pub bytes: u64,
}

/// Running totals; files add to them from their own tasks.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    plan_nanos: AtomicU64,
    wait_nanos: AtomicU64,
    decode_nanos: AtomicU64,
    files: AtomicU64,
    batches: AtomicU64,
    rows: AtomicU64,
    bytes: AtomicU64,
}

impl Meter {
    pub(crate) fn planned(&self, took: Duration) {
        self.plan_nanos.fetch_add(nanos(took), Ordering::Relaxed);
    }

    pub(crate) fn fetched(&self, bytes: u64, took: Duration) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.wait_nanos.fetch_add(nanos(took), Ordering::Relaxed);
    }

    pub(crate) fn decoded(&self, took: Duration) {
        self.decode_nanos.fetch_add(nanos(took), Ordering::Relaxed);
    }

    pub(crate) fn batch(&self, rows: usize) {
        self.batches.fetch_add(1, Ordering::Relaxed);
        self.rows.fetch_add(rows as u64, Ordering::Relaxed);
    }

    pub(crate) fn file(&self) {
        self.files.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn timings(&self) -> Timings {
        let seconds =
            |nanos: &AtomicU64| Duration::from_nanos(nanos.load(Ordering::Relaxed)).as_secs_f64();
        Timings {
            plan_seconds: seconds(&self.plan_nanos),
            fetch_wait_seconds: seconds(&self.wait_nanos),
            decode_seconds: seconds(&self.decode_nanos),
            files: self.files.load(Ordering::Relaxed),
            batches: self.batches.load(Ordering::Relaxed),
            rows: self.rows.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
        }
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Counts the time that a plan takes, its waits for manifests included.
pub(crate) struct Metered<S> {
    inner: S,
    meter: Arc<Meter>,
    waiting_since: Option<Instant>,
}

impl<S> Metered<S> {
    /// A stream of planned files.
    pub(crate) fn plan(inner: S, meter: Arc<Meter>) -> Self {
        Self {
            inner,
            meter,
            waiting_since: None,
        }
    }
}

impl<S: Stream + Unpin> Stream for Metered<S> {
    type Item = S::Item;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<S::Item>> {
        let began = self.waiting_since.take().unwrap_or_else(Instant::now);
        let polled = self.inner.poll_next_unpin(cx);
        match polled {
            Poll::Pending => self.waiting_since = Some(began),
            Poll::Ready(_) => self.meter.planned(began.elapsed()),
        }
        polled
    }
}
