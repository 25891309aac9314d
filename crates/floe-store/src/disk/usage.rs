//! How many bytes the cache takes, counted by shard in one small file. Its lock, held for
//! microseconds, orders inserts, evictions and purges of all threads and processes.
//!
//! A process killed between a count and its file leaves the count too high, never too low: bytes
//! are counted before they are written and forgotten after they are gone. `scan` puts it right.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::disk::dir::{CacheDir, open_private};

/// Shards of a cache: one for each first byte of a path's hash.
pub(crate) const SHARDS: usize = 256;

/// The counters' file.
#[derive(Debug)]
pub(crate) struct Usage {
    /// `None` where nothing can be written.
    file: Option<Mutex<File>>,
}

/// The lock, and the counters while it is held.
pub(crate) struct Counted<'a> {
    file: MutexGuard<'a, File>,
    shards: Box<[u64; SHARDS]>,
}

impl Usage {
    /// Where the file can't be opened nothing can be counted, and so nothing is added.
    pub(crate) fn open(dir: &CacheDir) -> Self {
        let file = if dir.writable {
            open_private(&dir.join("usage")).ok()
        } else {
            None
        };
        Self {
            file: file.map(Mutex::new),
        }
    }

    /// Wait for the lock and read the counters; what is missing or cut counts as zero.
    pub(crate) fn lock(&self) -> io::Result<Counted<'_>> {
        let file = self
            .file
            .as_ref()
            .ok_or(io::ErrorKind::ReadOnlyFilesystem)?;
        let file = file.lock().unwrap_or_else(PoisonError::into_inner);
        file.lock()?;
        let mut counted = Counted {
            file,
            shards: Box::new([0; SHARDS]),
        };
        let mut buffer = [0; SHARDS * 8];
        let mut read = 0;
        while read < buffer.len() {
            match counted.file.read_at(&mut buffer[read..], read as u64)? {
                0 => break,
                bytes => read += bytes,
            }
        }
        for (count, bytes) in counted.shards.iter_mut().zip(buffer.chunks_exact(8)) {
            *count = u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
        }
        Ok(counted)
    }

    /// The sum over all shards, without waiting for the lock.
    pub(crate) fn total(&self) -> io::Result<u64> {
        self.lock().map(|counted| counted.total())
    }
}

impl Counted<'_> {
    pub(crate) fn total(&self) -> u64 {
        self.shards
            .iter()
            .fold(0, |sum, count| sum.saturating_add(*count))
    }

    pub(crate) fn add(&mut self, shard: u8, bytes: u64) -> io::Result<()> {
        self.set(shard, self.shards[usize::from(shard)].saturating_add(bytes))
    }

    pub(crate) fn remove(&mut self, shard: u8, bytes: u64) -> io::Result<()> {
        self.set(shard, self.shards[usize::from(shard)].saturating_sub(bytes))
    }

    pub(crate) fn set(&mut self, shard: u8, bytes: u64) -> io::Result<()> {
        self.shards[usize::from(shard)] = bytes;
        self.file
            .write_all_at(&bytes.to_le_bytes(), u64::from(shard) * 8)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        // Closing the file unlocks it too; a failure here leaves nothing worse than that wait.
        let _ = self.file.unlock();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_openings_share_counts_and_exclude_each_other() {
        let temp = tempfile::tempdir().unwrap();
        let dir = CacheDir::open(temp.path()).unwrap();
        let one = Usage::open(&dir);
        let two = Usage::open(&dir);
        std::thread::scope(|scope| {
            for usage in [&one, &two] {
                scope
                    .spawn(move || (0..500).for_each(|_| usage.lock().unwrap().add(7, 3).unwrap()));
            }
        });
        assert_eq!(one.total().unwrap(), 3000);
        two.lock().unwrap().remove(7, 5000).unwrap();
        assert_eq!(one.total().unwrap(), 0, "never below zero");
    }
}
