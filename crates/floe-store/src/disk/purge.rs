//! Purged paths: gone from every process now, and not brought back by a fetch under way.
//!
//! A purge writes a tombstone with a number of its own before it removes files. A fetch reads the
//! tombstone when it begins ([`Ticket`]) and again, under the usage lock, before its file takes its
//! name: if it changed, the bytes are dropped. A fetch that begins after the purge reads the same
//! number twice and is kept: a path may be purged to be fetched anew.
//! The log tells the memory of other processes; they look at it twice a second.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::PathBuf;

use crate::disk::dir::CacheDir;
use crate::key::PathHash;

/// Bytes of a record of the log: a path's hash.
const RECORD: u64 = 16;
/// A log longer than this begins anew.
const LONGEST_LOG: u64 = 1024 * 1024;

/// What a fetch found when it began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ticket(Option<Vec<u8>>);

fn tombstone(dir: &CacheDir, path: PathHash) -> PathBuf {
    dir.join("tombstones").join(path.hex())
}

fn log(dir: &CacheDir) -> PathBuf {
    dir.join("purges.log")
}

/// Read a path's tombstone as it is now.
pub(crate) fn ticket(dir: &CacheDir, path: PathHash) -> Ticket {
    Ticket(fs::read(tombstone(dir, path)).ok())
}

/// Write a path's tombstone and log it; call under the usage lock.
pub(crate) fn bury(dir: &CacheDir, path: PathHash) -> io::Result<()> {
    let nonce: u128 = rand::random();
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).mode(0o600);
    options
        .open(tombstone(dir, path))?
        .write_all_at(&nonce.to_le_bytes(), 0)?;
    let mut options = fs::OpenOptions::new();
    options.append(true).create(true).mode(0o600);
    let mut file = options.open(log(dir))?;
    if file.metadata()?.len() > LONGEST_LOG {
        // Another file: readers see that it is not the one they know and forget all they hold.
        fs::remove_file(log(dir))?;
        file = options.open(log(dir))?;
    }
    file.write_all(&path.0.to_le_bytes())
}

/// A reader of the log, for one process's memory.
#[derive(Debug)]
pub(crate) struct Follower {
    inode: Option<u64>,
    position: u64,
}

/// What other processes purged since the last look.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Purged {
    /// These paths.
    Paths(Vec<PathHash>),
    /// More than the log still tells.
    Everything,
}

impl Follower {
    /// Follow from now on.
    pub(crate) fn start(dir: &CacheDir) -> Self {
        let metadata = fs::metadata(log(dir)).ok();
        Self {
            inode: metadata.as_ref().map(MetadataExt::ino),
            position: metadata.map_or(0, |m| m.len()),
        }
    }

    /// What was purged since the last call.
    pub(crate) fn next(&mut self, dir: &CacheDir) -> io::Result<Purged> {
        let file = match File::open(log(dir)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Purged::Paths(Vec::new()));
            }
            Err(error) => return Err(error),
        };
        let metadata = file.metadata()?;
        let known = *self.inode.get_or_insert(metadata.ino());
        if known != metadata.ino() || metadata.len() < self.position {
            *self = Self {
                inode: Some(metadata.ino()),
                position: metadata.len(),
            };
            return Ok(Purged::Everything);
        }
        let mut paths = Vec::new();
        while self.position + RECORD <= metadata.len() {
            let mut record = [0; RECORD as usize];
            file.read_exact_at(&mut record, self.position)?;
            paths.push(PathHash(u128::from_le_bytes(record)));
            self.position += RECORD;
        }
        Ok(Purged::Paths(paths))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_follower_hears_of_every_purge_once() {
        let temp = tempfile::tempdir().unwrap();
        let dir = CacheDir::open(temp.path()).unwrap();
        let mut follower = Follower::start(&dir);
        assert_eq!(follower.next(&dir).unwrap(), Purged::Paths(vec![]));
        bury(&dir, PathHash(1)).unwrap();
        bury(&dir, PathHash(2)).unwrap();
        assert_eq!(
            follower.next(&dir).unwrap(),
            Purged::Paths(vec![PathHash(1), PathHash(2)])
        );
        assert_eq!(follower.next(&dir).unwrap(), Purged::Paths(vec![]));
    }

    #[test]
    fn a_log_that_began_anew_means_everything() {
        let temp = tempfile::tempdir().unwrap();
        let dir = CacheDir::open(temp.path()).unwrap();
        bury(&dir, PathHash(1)).unwrap();
        let mut follower = Follower::start(&dir);
        let file = fs::OpenOptions::new().write(true).open(log(&dir)).unwrap();
        file.set_len(LONGEST_LOG + RECORD).unwrap();
        bury(&dir, PathHash(2)).unwrap();
        assert_eq!(follower.next(&dir).unwrap(), Purged::Everything);
    }

    #[test]
    fn a_ticket_changes_with_every_purge() {
        let temp = tempfile::tempdir().unwrap();
        let dir = CacheDir::open(temp.path()).unwrap();
        let before = ticket(&dir, PathHash(1));
        bury(&dir, PathHash(1)).unwrap();
        let between = ticket(&dir, PathHash(1));
        bury(&dir, PathHash(1)).unwrap();
        assert_ne!(before, between);
        assert_ne!(between, ticket(&dir, PathHash(1)));
        assert_eq!(ticket(&dir, PathHash(1)), ticket(&dir, PathHash(1)));
        assert_eq!(ticket(&dir, PathHash(2)), before);
    }
}
