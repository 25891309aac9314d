//! Room for what comes: the least useful of a random sample go, until enough is free.
//!
//! Sampling needs no index and no list of the whole cache: some shards' directories are read, their
//! files' weights compared (recency.rs), the lightest removed. Pinned files stay. A file being read
//! is read to its end: its reader holds it open, and a file of the cache never changes.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::SystemTime;

use crate::disk::dir::CacheDir;
use crate::disk::pins::Pins;
use crate::disk::recency;
use crate::disk::usage::{Counted, SHARDS};
use crate::key::PathHash;

/// Files looked at before some are chosen. With 64, the lightest of a sample is among the lightest
/// 5 % of all in 96 of 100 samples.
const SAMPLE: usize = 64;

/// A file that may go.
struct Candidate {
    path: PathBuf,
    shard: u8,
    bytes: u64,
    weight: f64,
}

/// What an eviction did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Evicted {
    pub(crate) files: u64,
    pub(crate) bytes: u64,
}

/// The hash of the path that a file of the cache belongs to, from its name.
pub(crate) fn path_hash_of(name: &str) -> Option<PathHash> {
    let (hash, _) = name.split_once('-')?;
    (hash.len() == 32)
        .then(|| u128::from_str_radix(hash, 16).ok().map(PathHash))
        .flatten()
}

/// Remove files until `needed` bytes are gone, or nothing is left that may go.
pub(crate) fn make_room(
    dir: &CacheDir,
    counted: &mut Counted<'_>,
    pins: &Pins,
    needed: u64,
) -> io::Result<Evicted> {
    let mut evicted = Evicted::default();
    while evicted.bytes < needed {
        let before = evicted.files;
        walk_shards(dir, counted, pins, needed, &mut evicted)?;
        if evicted.files == before {
            break;
        }
    }
    Ok(evicted)
}

/// One walk over the shards, from a random one on, that removes the lighter half of each sample.
fn walk_shards(
    dir: &CacheDir,
    counted: &mut Counted<'_>,
    pins: &Pins,
    needed: u64,
    evicted: &mut Evicted,
) -> io::Result<()> {
    let start: usize = rand::random_range(0..SHARDS);
    let mut shards = (0..SHARDS)
        .map(|step| ((start + step * 89) % SHARDS) as u8)
        .peekable();
    while evicted.bytes < needed && shards.peek().is_some() {
        let mut candidates = sample(dir, &mut shards, pins)?;
        candidates.sort_by(|a, b| a.weight.total_cmp(&b.weight));
        for candidate in candidates.iter().take(candidates.len().div_ceil(2)) {
            if evicted.bytes >= needed {
                break;
            }
            match fs::remove_file(&candidate.path) {
                Ok(()) => {
                    counted.remove(candidate.shard, candidate.bytes)?;
                    evicted.files += 1;
                    evicted.bytes += candidate.bytes;
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}

fn sample(
    dir: &CacheDir,
    shards: &mut impl Iterator<Item = u8>,
    pins: &Pins,
) -> io::Result<Vec<Candidate>> {
    let now = SystemTime::now();
    let mut candidates = Vec::new();
    for shard in shards {
        for (path, metadata) in files_of(dir, shard)? {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if path_hash_of(&name).is_some_and(|hash| pins.holds(dir, hash)) {
                continue;
            }
            candidates.push(Candidate {
                shard,
                bytes: metadata.len(),
                weight: recency::weight(&metadata, now),
                path,
            });
        }
        if candidates.len() >= SAMPLE {
            break;
        }
    }
    Ok(candidates)
}

/// The files of a shard; one that goes meanwhile is left out, a shard that was never used is empty.
pub(crate) fn files_of(dir: &CacheDir, shard: u8) -> io::Result<Vec<(PathBuf, fs::Metadata)>> {
    let entries = match fs::read_dir(dir.shard(shard)) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut files = Vec::new();
    for entry in entries {
        let entry = entry?;
        if let Ok(metadata) = entry.metadata()
            && metadata.is_file()
        {
            files.push((entry.path(), metadata));
        }
    }
    Ok(files)
}
