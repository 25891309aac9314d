//! One fetch of the same bytes at a time, across processes: the fetching one holds a locked file.
//! It is an economy, not a guarantee: a lock that can't be made or that lasts too long is ignored.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use crate::disk::dir::{CacheDir, open_private};
use crate::key::ObjectKey;

/// The answer to the wish to fetch.
#[derive(Debug)]
pub(crate) enum FlightLock {
    /// Nobody else fetches it. The lock ends with the value.
    Ours(Held),
    /// Another process fetches it: look in the cache again in a moment.
    Theirs,
    /// It can't be told; fetch.
    Unknown,
}

/// A lock that is held, its file removed at the end.
#[derive(Debug)]
pub(crate) struct Held {
    path: PathBuf,
    _file: File,
}

impl Drop for Held {
    fn drop(&mut self) {
        // Left behind, it would be swept: its lock ends with the file.
        let _ = fs::remove_file(&self.path);
    }
}

/// Try to become the one that fetches the part of an object that begins at `start`.
pub(crate) fn lock(dir: &CacheDir, key: &ObjectKey, start: u64) -> FlightLock {
    if !dir.writable {
        return FlightLock::Unknown;
    }
    let path = dir
        .join("flights")
        .join(format!("{}@{start:x}", key.file_name(0)));
    let Ok(file) = open_private(&path) else {
        return FlightLock::Unknown;
    };
    match file.try_lock() {
        Ok(()) => {}
        Err(fs::TryLockError::WouldBlock) => return FlightLock::Theirs,
        Err(fs::TryLockError::Error(_)) => return FlightLock::Unknown,
    }
    // Between open and lock its holder may have removed it: then the name is free, or another's.
    let ours = file.metadata().map(|metadata| metadata.ino());
    match (ours, fs::metadata(&path).map(|metadata| metadata.ino())) {
        (Ok(ours), Ok(there)) if ours == there => FlightLock::Ours(Held { path, _file: file }),
        _ => FlightLock::Theirs,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::config::CacheScope;
    use crate::location::Location;

    #[test]
    fn one_flies_at_a_time_and_the_next_after_it() {
        let temp = tempfile::tempdir().unwrap();
        let dir = CacheDir::open(temp.path()).unwrap();
        let location = Location::parse("s3://b/k.parquet").unwrap();
        let key = ObjectKey::new(&location, &HashMap::new(), None, CacheScope::User);
        let first = lock(&dir, &key, 0);
        assert!(matches!(first, FlightLock::Ours(_)));
        assert!(matches!(lock(&dir, &key, 0), FlightLock::Theirs));
        assert!(
            matches!(lock(&dir, &key, 65536), FlightLock::Ours(_)),
            "another part"
        );
        drop(first);
        assert!(matches!(lock(&dir, &key, 0), FlightLock::Ours(_)));
    }
}
