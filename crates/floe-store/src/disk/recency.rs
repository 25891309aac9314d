//! When a file of the cache was of use, as one point in time that holds recency and frequency.
//!
//! With a count of uses that halves every [`HALF_LIFE`], comparing two files' counts is, now and at
//! any later time, comparing `time of last use + HALF_LIFE x log2(count)` (the CRF of LRFU: Lee et
//! al., IEEE Transactions on Computers 50(12), 2001). So one number orders all files. It stands in
//! the file's modification time, where every process finds it and nothing has to be recovered.

use std::fs::{File, FileTimes, Metadata};
use std::io;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How long it takes for a use to count half.
const HALF_LIFE: Duration = Duration::from_secs(6 * 3600);
/// Uses can outweigh at most this many half-lives of age. It also bounds what a clock that was
/// wrong for a while can do: a time further ahead is not believed.
const MOST_AHEAD: f64 = 6.0;
/// A change smaller than this is not worth a system call.
const WORTH_WRITING: f64 = 60.0 / (6.0 * 3600.0);

/// In half-lives since the epoch, negative before it.
fn position(time: SystemTime) -> f64 {
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => since.as_secs_f64() / HALF_LIFE.as_secs_f64(),
        Err(before) => -before.duration().as_secs_f64() / HALF_LIFE.as_secs_f64(),
    }
}

/// The weight of a file: those with the smallest are evicted first.
pub(crate) fn weight(metadata: &Metadata, now: SystemTime) -> f64 {
    believed(metadata.modified().map_or(0.0, position), position(now))
}

fn believed(weight: f64, now: f64) -> f64 {
    if weight > now + MOST_AHEAD {
        now
    } else {
        weight
    }
}

/// The weight after one more use.
fn used(weight: f64, now: f64) -> f64 {
    let count = (believed(weight, now) - now).exp2();
    now + (1.0 + count).log2().min(MOST_AHEAD)
}

/// Note a use of a file.
pub(crate) fn touch(file: &File, metadata: &Metadata, now: SystemTime) -> io::Result<()> {
    let before = metadata.modified().map_or(0.0, position);
    let after = used(before, position(now));
    if (after - before).abs() < WORTH_WRITING {
        return Ok(());
    }
    let at = UNIX_EPOCH + Duration::from_secs_f64((after * HALF_LIFE.as_secs_f64()).max(0.0));
    file.set_times(FileTimes::new().set_modified(at))
}

/// Make a file the first to go.
pub(crate) fn demote(file: &File) -> io::Result<()> {
    file.set_times(FileTimes::new().set_modified(UNIX_EPOCH))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_used_twice_outlives_one_used_a_little_later_once() {
        let now = 1000.0;
        let twice = used(used(f64::MIN, now), now);
        let later_once = used(f64::MIN, now + 0.9);
        let much_later_once = used(f64::MIN, now + 1.1);
        assert!(twice > later_once && twice < much_later_once);
    }

    #[test]
    fn the_order_of_two_files_does_not_depend_on_when_it_is_asked() {
        // Counting with decay by hand gives the same order as the weights, at any time.
        let uses_a = [3.0, 4.0, 4.5];
        let uses_b = [4.2, 4.6];
        let weight = |uses: &[f64]| uses.iter().fold(f64::MIN, |w, at| used(w, *at));
        let count = |uses: &[f64], now: f64| uses.iter().map(|at| (at - now).exp2()).sum::<f64>();
        for now in [5.0, 9.0, 50.0] {
            assert_eq!(
                count(&uses_a, now) > count(&uses_b, now),
                weight(&uses_a) > weight(&uses_b)
            );
        }
    }

    #[test]
    fn a_time_far_ahead_is_not_believed() {
        assert_eq!(believed(5000.0, 1000.0), 1000.0);
        assert!(used(5000.0, 1000.0) <= 1000.0 + 1.0);
        let hot = (0..1_000_000).fold(f64::MIN, |w, _| used(w, 1000.0));
        assert!(hot <= 1000.0 + MOST_AHEAD);
    }
}
