//! The disk tier: plain files, written aside and renamed, shared by any number of processes.
//!
//! There is no daemon, no index and nothing to recover: a file is there, whole and verified, or it
//! is not. All calls block and belong on a thread that may; none of them fails a read: what the disk
//! can't do is counted, warned of once, and left to the origin.

mod admin;
mod dir;
mod evict;
mod file;
mod flights;
mod pins;
mod purge;
mod recency;
mod scan;
#[cfg(test)]
mod tests;
mod usage;

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use bytes::Bytes;

pub use admin::{CacheUsage, CachedObject, Cleared, VerifyReport};
pub(crate) use file::Facts;
pub(crate) use flights::{FlightLock, Held};
pub(crate) use purge::{Purged, Ticket};

use crate::blocks::BlockMask;
use crate::config::CacheConfig;
use crate::error::Result;
use crate::key::{ObjectKey, PathHash};
use crate::segment::Segment;
use crate::stats::Counters;
use dir::{CacheDir, create_private, make_private};
use file::{DataPart, Unusable};
use pins::Pins;
use usage::{Counted, Usage};

/// Tries to add blocks to a file that other processes change at the same time.
const MERGE_TRIES: usize = 4;
/// The part of what is cached that is freed beyond what is needed, so that not each insert evicts.
const SLACK: u64 = 128;

/// The disk tier of a cache. Cheap to clone.
#[derive(Clone, Debug)]
pub struct DiskCache(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    dir: CacheDir,
    max_bytes: u64,
    keep_free_bytes: u64,
    usage: Usage,
    pins: Pins,
    counters: Arc<Counters>,
    warned: AtomicBool,
}

/// What the disk tier holds of a segment.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) segment: Segment,
    pub(crate) facts: Facts,
    /// What spares the next read of the same blocks.
    pub(crate) verified: Verified,
}

/// A file of the cache, and blocks of it that this process read and found right.
///
/// Files never change, so that what was verified once need not be again; a file that took the name since is another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Verified {
    identity: FileIdentity,
    data: DataPart,
    blocks: BlockMask,
}

/// A segment to be kept.
#[derive(Clone, Debug)]
pub(crate) struct Insert<'a> {
    pub(crate) key: &'a ObjectKey,
    pub(crate) facts: &'a Facts,
    pub(crate) index: u64,
    pub(crate) segment: Segment,
    pub(crate) ticket: &'a Ticket,
}

impl DiskCache {
    /// Open the directory; it may hold any number of files.
    pub(crate) fn open(path: &Path, config: &CacheConfig, counters: Arc<Counters>) -> Result<Self> {
        let dir = CacheDir::open(path)?;
        let usage = Usage::open(&dir);
        Ok(Self(Arc::new(Inner {
            dir,
            max_bytes: config.max_bytes,
            keep_free_bytes: config.keep_free_bytes,
            usage,
            pins: Pins::default(),
            counters,
            warned: AtomicBool::new(false),
        })))
    }

    /// The directory, its format part included.
    pub fn dir(&self) -> &Path {
        self.0.dir.root()
    }

    /// Whether files can be added; a cache on a read-only file system serves what it holds.
    pub fn is_writable(&self) -> bool {
        self.0.dir.writable
    }

    fn path_of(&self, key: &ObjectKey, index: u64) -> PathBuf {
        self.0
            .dir
            .shard(key.path_hash().shard())
            .join(key.file_name(index))
    }

    /// Read the wanted blocks of a segment, as far as they are here and whole.
    pub(crate) fn read(&self, key: &ObjectKey, index: u64, wanted: BlockMask) -> Option<Found> {
        let path = self.path_of(key, index);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => return self.failed("open", &path, &error),
        };
        match self.read_open(&file, key, index, wanted) {
            Ok(found) => found,
            Err(Unusable::Corrupt(why)) => {
                self.drop_corrupt(&path, key.path_hash(), &why);
                None
            }
            Err(Unusable::Io(error)) => self.failed("read", &path, &error),
        }
    }

    fn read_open(
        &self,
        file: &File,
        key: &ObjectKey,
        index: u64,
        wanted: BlockMask,
    ) -> std::result::Result<Option<Found>, Unusable> {
        let header = file::read_header(file)?;
        if header.key != *key || header.segment != index {
            // Another object of the same hash: a miss, and its file stays.
            return Ok(None);
        }
        let segment = header.read(file, wanted)?;
        let metadata = file.metadata()?;
        // A use that can't be noted is no failure of the read.
        let _ = recency::touch(file, &metadata, SystemTime::now());
        let verified = Verified {
            identity: FileIdentity::of(&metadata),
            data: header.data(),
            blocks: segment.mask(),
        };
        Ok(Some(Found {
            segment,
            facts: header.facts,
            verified,
        }))
    }

    /// Read blocks that this process has verified before, if that needs no waiting for the disk: on any thread.
    pub(crate) fn read_again(
        &self,
        key: &ObjectKey,
        index: u64,
        wanted: BlockMask,
        known: &Verified,
    ) -> Option<Segment> {
        if !known.blocks.contains(known.data.read_for(wanted)) {
            return None;
        }
        let file = File::open(self.path_of(key, index)).ok()?;
        let metadata = file.metadata().ok()?;
        // Without a time of birth an inode may be another file's by now.
        if known.identity.born.is_none()
            || FileIdentity::of(&metadata) != known.identity
            || known.data.would_wait(&file, wanted)
        {
            return None;
        }
        // What fails here is tried again, and counted, where it may wait.
        let segment = known.data.read(&file, wanted).ok()?;
        let _ = recency::touch(&file, &metadata, SystemTime::now());
        Some(segment)
    }

    /// Remove a segment's file, since it is not of the version that the caller knows.
    pub(crate) fn forget(&self, key: &ObjectKey, index: u64) {
        let path = self.path_of(key, index);
        if let Err(error) = self.unlink(&path, key.path_hash().shard()) {
            self.failed::<()>("remove", &path, &error);
        }
    }

    fn drop_corrupt(&self, path: &Path, hash: PathHash, why: &str) {
        self.0.counters.corruption();
        tracing::warn!(file = %path.display(), why, "dropped a corrupt file of the cache; its bytes will be fetched again");
        if let Err(error) = self.unlink(path, hash.shard()) {
            self.failed::<()>("remove", path, &error);
        }
    }

    fn unlink(&self, path: &Path, shard: u8) -> io::Result<()> {
        let mut counted = self.0.usage.lock()?;
        let bytes = match fs::metadata(path) {
            Ok(metadata) => metadata.len(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        fs::remove_file(path)?;
        counted.remove(shard, bytes)
    }

    /// What to hand to [`insert`](Self::insert) later: taken when the fetch begins.
    pub(crate) fn ticket(&self, path: PathHash) -> Ticket {
        purge::ticket(&self.0.dir, path)
    }

    /// Keep a segment, together with the blocks of it that are here already. What does not fit, was
    /// purged meanwhile, or can't be written is not kept; the caller has the bytes anyway.
    pub(crate) fn insert(&self, insert: &Insert<'_>) -> bool {
        if !self.0.dir.writable {
            return false;
        }
        let mut made_room = false;
        for _ in 0..MERGE_TRIES {
            match self.try_insert(insert) {
                Ok(Some(kept)) => return kept,
                Ok(None) => {}
                // A full disk: smaller than the limit allows, or shared. Room is made once.
                Err(error) if error.kind() == io::ErrorKind::StorageFull && !made_room => {
                    made_room = true;
                    let bytes = insert.segment.bytes();
                    let evicted = self.0.usage.lock();
                    let evicted = evicted.and_then(|mut counted| self.evict(&mut counted, bytes));
                    if !evicted.unwrap_or(false) {
                        self.failed::<()>("write", &self.path_of(insert.key, insert.index), &error);
                        return false;
                    }
                }
                Err(error) => {
                    self.failed::<()>("write", &self.path_of(insert.key, insert.index), &error);
                    return false;
                }
            }
        }
        false
    }

    /// `None`: another process changed the file meanwhile.
    fn try_insert(&self, insert: &Insert<'_>) -> io::Result<Option<bool>> {
        let Insert {
            key, facts, index, ..
        } = insert;
        let path = self.path_of(key, *index);
        let (there, segment) = self.merged(insert, &path);
        if there
            .as_ref()
            .is_some_and(|(_, mask)| mask.contains(segment.mask()))
        {
            return Ok(Some(true));
        }
        let parts = file::encode(key, facts, *index, &segment);
        let bytes: u64 = parts.iter().map(|part| part.len() as u64).sum();
        let shard = key.path_hash().shard();
        if !self.reserve(shard, bytes)? {
            return Ok(Some(false));
        }
        let written = self.write_aside(&parts);
        let mut counted = self.0.usage.lock()?;
        let (aside, _locked) = match written {
            Ok(written) => written,
            Err(error) => {
                counted.remove(shard, bytes)?;
                return Err(error);
            }
        };
        let there_now = fs::metadata(&path)
            .ok()
            .map(|metadata| FileIdentity::of(&metadata));
        let unchanged = there_now.as_ref() == there.as_ref().map(|(identity, _)| identity);
        let purged = purge::ticket(&self.0.dir, key.path_hash()) != *insert.ticket;
        let renamed = if unchanged && !purged {
            Some(rename(&aside, &path))
        } else {
            None
        };
        match renamed {
            Some(Ok(())) => {
                counted.remove(shard, there_now.map_or(0, |identity| identity.bytes))?;
                Ok(Some(true))
            }
            other => {
                fs::remove_file(&aside)?;
                counted.remove(shard, bytes)?;
                match other {
                    Some(Err(error)) => Err(error),
                    _ if purged => Ok(Some(false)),
                    _ => Ok(None),
                }
            }
        }
    }

    /// The insert's blocks with those that are here, and what file held those.
    fn merged(
        &self,
        insert: &Insert<'_>,
        path: &Path,
    ) -> (Option<(FileIdentity, BlockMask)>, Segment) {
        let there = File::open(path).ok().and_then(|file| {
            let identity = FileIdentity::of(&file.metadata().ok()?);
            Some((
                identity,
                file::read_header(&file).ok().map(|header| (header, file)),
            ))
        });
        match there {
            None => (None, insert.segment.clone()),
            Some((identity, Some((header, file))))
                if header.key == *insert.key && header.facts == *insert.facts =>
            {
                if header.mask.contains(insert.segment.mask()) {
                    return (Some((identity, header.mask)), insert.segment.clone());
                }
                match header.read(&file, header.mask) {
                    Ok(segment) => (
                        Some((identity, header.mask)),
                        insert.segment.merge(&segment, insert.facts.length),
                    ),
                    Err(_) => (
                        Some((identity, BlockMask::default())),
                        insert.segment.clone(),
                    ),
                }
            }
            // Corrupt, of another version, or another object's: ours takes the name.
            Some((identity, _)) => (
                Some((identity, BlockMask::default())),
                insert.segment.clone(),
            ),
        }
    }

    /// Count `bytes` as taken, making room first; false if there is none.
    fn reserve(&self, shard: u8, bytes: u64) -> io::Result<bool> {
        let mut counted = self.0.usage.lock()?;
        let over = (counted.total() + bytes).saturating_sub(self.0.max_bytes);
        let short = (self.0.keep_free_bytes + bytes).saturating_sub(self.free_bytes()?);
        let needed = over.max(short);
        if needed > 0 && !self.evict(&mut counted, needed)? {
            return Ok(false);
        }
        counted.add(shard, bytes)?;
        Ok(true)
    }

    /// Free at least `needed` bytes; whether that went.
    fn evict(&self, counted: &mut Counted<'_>, needed: u64) -> io::Result<bool> {
        let total = counted.total();
        if needed > total {
            return Ok(false);
        }
        let slack = (self.0.max_bytes / SLACK).min(total / SLACK);
        let evicted = evict::make_room(
            &self.0.dir,
            counted,
            &self.0.pins,
            (needed + slack).min(total),
        )?;
        self.0.counters.evicted(evicted.files, evicted.bytes);
        tracing::debug!(files = evicted.files, bytes = evicted.bytes, "evicted");
        Ok(evicted.bytes >= needed)
    }

    /// Bytes that the file system has left for this user.
    fn free_bytes(&self) -> io::Result<u64> {
        let stat = rustix::fs::statvfs(self.0.dir.root())?;
        Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
    }

    /// Write a file's parts under a name of its own, locked so that no scan takes it for a leftover.
    fn write_aside(&self, parts: &[Bytes]) -> io::Result<(PathBuf, File)> {
        let path = self
            .0
            .dir
            .join("tmp")
            .join(format!("{:032x}", rand::random::<u128>()));
        let mut file = create_private(&path)?;
        file.lock()?;
        match file::write(&mut file, parts) {
            Ok(()) => Ok((path, file)),
            Err(error) => {
                // What was written so far goes; if that fails too, the next scan takes it.
                let _ = fs::remove_file(&path);
                Err(error)
            }
        }
    }

    /// Count a failure of the disk and warn of the first.
    fn failed<T>(&self, what: &str, path: &Path, error: &io::Error) -> Option<T> {
        self.0.counters.disk_error();
        if !self.0.warned.swap(true, Ordering::Relaxed) {
            tracing::warn!(file = %path.display(), %error, "can't {what} a file of the cache; reads go on from the origin, further failures are only counted");
        }
        None
    }

    /// Remove every file of a path, in every scope, and tell other processes.
    pub(crate) fn purge(&self, paths: &[PathHash]) -> io::Result<u64> {
        let _span = tracing::debug_span!("purge", paths = paths.len()).entered();
        let mut removed = 0;
        for path in paths {
            let mut counted = self.0.usage.lock()?;
            purge::bury(&self.0.dir, *path)?;
            for (file, metadata) in evict::files_of(&self.0.dir, path.shard())? {
                let name = file
                    .file_name()
                    .unwrap_or_default()
                    .to_string_lossy()
                    .into_owned();
                if evict::path_hash_of(&name) == Some(*path) {
                    fs::remove_file(&file)?;
                    counted.remove(path.shard(), metadata.len())?;
                    removed += 1;
                }
            }
        }
        Ok(removed)
    }

    /// Follow what other processes purge.
    pub(crate) fn follow_purges(&self) -> PurgeFollower {
        PurgeFollower {
            cache: self.clone(),
            follower: purge::Follower::start(&self.0.dir),
        }
    }

    /// Tidy if it is due; what fails is counted.
    pub(crate) fn scan_if_due(&self) {
        if self.0.dir.writable
            && let Err(error) = scan::if_due(&self.0.dir, &self.0.usage)
        {
            self.failed::<()>("scan", self.0.dir.root(), &error);
        }
    }

    /// Try to be the one process that fetches this part of an object.
    pub(crate) fn lock_flight(&self, key: &ObjectKey, start: u64) -> FlightLock {
        flights::lock(&self.0.dir, key, start)
    }
}

/// Reads what other processes purged.
#[derive(Debug)]
pub(crate) struct PurgeFollower {
    cache: DiskCache,
    follower: purge::Follower,
}

impl PurgeFollower {
    /// What was purged since the last call; a log that can't be read means everything.
    pub(crate) fn next(&mut self) -> Purged {
        self.follower
            .next(&self.cache.0.dir)
            .unwrap_or(Purged::Everything)
    }
}

/// Tells one file from another that took its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileIdentity {
    inode: u64,
    bytes: u64,
    /// `None` where the file system does not tell.
    born: Option<SystemTime>,
}

impl FileIdentity {
    fn of(metadata: &fs::Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        // Not its times: noting a use moves them.
        Self {
            inode: metadata.ino(),
            bytes: metadata.len(),
            born: metadata.created().ok(),
        }
    }
}

fn rename(aside: &Path, path: &Path) -> io::Result<()> {
    match fs::rename(aside, path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            make_private(path.parent().expect("a file of the cache lies in a shard"))?;
            fs::rename(aside, path)
        }
        other => other,
    }
}
