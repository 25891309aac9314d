//! Tidying beside the work: usage counted anew, and what killed processes left behind removed.
//! It never runs at start-up's expense: a thread of its own does it, one shard at a time.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::disk::dir::{CacheDir, open_private};
use crate::disk::evict::files_of;
use crate::disk::usage::{SHARDS, Usage};

/// How often the processes of one cache scan it, all together.
const EVERY: Duration = Duration::from_secs(3600);
/// How long a tombstone is kept: no fetch lasts as long.
const TOMBSTONE_AGE: Duration = Duration::from_secs(24 * 3600);

/// Scan if none did for an hour, or the clock went back since.
pub(crate) fn if_due(dir: &CacheDir, usage: &Usage) -> io::Result<bool> {
    let marker = dir.join("scanned");
    let due = match fs::metadata(&marker).and_then(|m| m.modified()) {
        Ok(last) => !SystemTime::now()
            .duration_since(last)
            .is_ok_and(|age| age < EVERY),
        Err(_) => true,
    };
    if due {
        // First the mark, so that processes that start together scan once.
        open_private(&marker)?.set_modified(SystemTime::now())?;
        now(dir, usage)?;
    }
    Ok(due)
}

/// Scan now.
pub(crate) fn now(dir: &CacheDir, usage: &Usage) -> io::Result<()> {
    sweep_unlocked(&dir.join("tmp"))?;
    sweep_unlocked(&dir.join("flights"))?;
    sweep_old(&dir.join("tombstones"), TOMBSTONE_AGE)?;
    for shard in 0..SHARDS {
        let shard = shard as u8;
        let mut counted = usage.lock()?;
        let bytes = files_of(dir, shard)?
            .iter()
            .map(|(_, metadata)| metadata.len())
            .sum();
        counted.set(shard, bytes)?;
    }
    Ok(())
}

/// Remove files whose maker is gone: it held a lock, and the kernel let go of it.
fn sweep_unlocked(dir: &Path) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        let Ok(file) = File::open(&path) else {
            continue;
        };
        if file.try_lock().is_ok() {
            remove_if_there(&path)?;
        }
    }
    Ok(())
}

fn sweep_old(dir: &Path, age: Duration) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let modified = entry.metadata().and_then(|metadata| metadata.modified());
        if modified.is_ok_and(|at| {
            SystemTime::now()
                .duration_since(at)
                .is_ok_and(|old| old > age)
        }) {
            remove_if_there(&entry.path())?;
        }
    }
    Ok(())
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
