//! One direction of the line: bytes get the next free slot on it, in the order in which they ask.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// How far ahead of its turn a connection may reserve. Long enough that a timer which fires late (they have a
/// granularity of a millisecond) leaves no gap on the line, short enough that nobody's queue delays the others.
pub(super) const LOOKAHEAD: Duration = Duration::from_millis(20);

/// A rate that all connections share.
#[derive(Debug)]
pub(super) struct Rate {
    /// 0: no limit.
    bytes_per_second: f64,
    free_at: Mutex<Instant>,
}

impl Rate {
    pub(super) fn new(rate_mbit: f64) -> Self {
        Self {
            bytes_per_second: rate_mbit.max(0.0) * 1e6 / 8.0,
            free_at: Mutex::new(Instant::now()),
        }
    }

    /// Reserves the line for `bytes`; gives the moment at which their last bit has been sent.
    pub(super) fn reserve(&self, bytes: usize) -> Instant {
        let now = Instant::now();
        if self.bytes_per_second == 0.0 {
            return now;
        }
        let mut free_at = self.free_at.lock().unwrap_or_else(PoisonError::into_inner);
        *free_at =
            (*free_at).max(now) + Duration::from_secs_f64(bytes as f64 / self.bytes_per_second);
        *free_at
    }

    /// Waits until a reservation that ends at `sent` is near enough for its owner to make another.
    pub(super) async fn pace(&self, sent: Instant) {
        if let Some(near) = sent.checked_sub(LOOKAHEAD)
            && near > Instant::now()
        {
            tokio::time::sleep_until(near).await;
        }
    }

    /// What a connection holds in flight when the line is full: the bandwidth-delay product, and some slack.
    pub(super) fn in_flight_bytes(&self, one_way: Duration) -> usize {
        const SLACK: usize = 128 * 1024;
        if self.bytes_per_second == 0.0 {
            return 4 * 1024 * 1024;
        }
        let seconds = (one_way + 2 * LOOKAHEAD).as_secs_f64();
        SLACK + (self.bytes_per_second * seconds) as usize
    }
}
