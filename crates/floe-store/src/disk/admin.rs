//! What an operator asks of a cache: what is in it, how much, is it whole, pin, clear.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::Path;

use serde::Serialize;

use crate::disk::evict::{files_of, path_hash_of};
use crate::disk::usage::SHARDS;
use crate::disk::{DiskCache, file, recency, scan};
use crate::error::{Error, ErrorKind, Result};
use crate::key::PathHash;

/// One object, or the part of it that is cached.
#[derive(Clone, Debug, Serialize)]
pub struct CachedObject {
    /// Where it came from: scheme, bucket, key.
    pub location: String,
    /// The table whose file it is, if that was known.
    pub table: Option<String>,
    /// The object's whole length in bytes.
    pub length: u64,
    /// How many of its bytes are here.
    pub cached_bytes: u64,
    /// Whether it is never evicted.
    pub pinned: bool,
}

/// How much a cache holds.
#[derive(Clone, Debug, Serialize)]
pub struct CacheUsage {
    /// Bytes that count against the limit, files being written included.
    pub used_bytes: u64,
    /// The limit over all processes.
    pub max_bytes: u64,
    /// Bytes that the file system has left.
    pub free_bytes: u64,
    /// Bytes of the file system that the cache leaves free.
    pub keep_free_bytes: u64,
    /// Files, one for each segment of an object.
    pub files: u64,
    /// The names of all pins.
    pub pins: Vec<String>,
}

/// What a check of the whole cache found.
#[derive(Clone, Debug, Default, Serialize)]
pub struct VerifyReport {
    /// Files read, every checksum compared.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Files that were not what was written, and are removed now.
    pub corrupt: u64,
}

/// What was removed.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Cleared {
    /// Files removed.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl DiskCache {
    /// Every object of which something is here, by location.
    ///
    /// # Errors
    /// [`ErrorKind::CacheDir`] if the directory can't be read.
    pub fn list(&self) -> Result<Vec<CachedObject>> {
        let mut objects: BTreeMap<(String, String), CachedObject> = BTreeMap::new();
        self.for_each_file(|path, _| {
            let Ok(opened) = File::open(path) else {
                return Ok(());
            };
            let Ok(header) = file::read_header(&opened) else {
                return Ok(());
            };
            let cached_bytes = header.data().content_bytes();
            let pinned = self.0.pins.holds(&self.0.dir, header.key.path_hash());
            objects
                .entry((
                    header.key.path().to_string(),
                    header.key.scope().to_string(),
                ))
                .and_modify(|object| object.cached_bytes += cached_bytes)
                .or_insert_with(|| CachedObject {
                    location: header.key.location(),
                    table: header.key.table(),
                    length: header.facts.length,
                    cached_bytes,
                    pinned,
                });
            Ok(())
        })?;
        Ok(objects.into_values().collect())
    }

    /// How much is here.
    ///
    /// # Errors
    /// [`ErrorKind::CacheDir`] if the directory can't be read.
    pub fn usage(&self) -> Result<CacheUsage> {
        let mut files = 0;
        let mut bytes = 0;
        self.for_each_file(|_, metadata| {
            files += 1;
            bytes += metadata.len();
            Ok(())
        })?;
        Ok(CacheUsage {
            used_bytes: self.0.usage.total().unwrap_or(bytes),
            max_bytes: self.0.max_bytes,
            free_bytes: self.free_bytes().map_err(|e| self.unreadable(e))?,
            keep_free_bytes: self.0.keep_free_bytes,
            files,
            pins: self
                .0
                .pins
                .names(&self.0.dir)
                .map_err(|e| self.unreadable(e))?,
        })
    }

    /// Read every byte and compare every checksum; what is corrupt is removed. Usage is counted anew.
    ///
    /// # Errors
    /// [`ErrorKind::CacheDir`] if the directory can't be read.
    pub fn verify(&self) -> Result<VerifyReport> {
        let mut report = VerifyReport::default();
        self.for_each_file(|path, metadata| {
            report.files += 1;
            report.bytes += metadata.len();
            let checked = File::open(path)
                .map_err(file::Unusable::from)
                .and_then(|opened| {
                    let header = file::read_header(&opened)?;
                    header.read(&opened, header.mask).map(|_| ())
                });
            match checked {
                Ok(()) => {}
                Err(file::Unusable::Io(error)) if error.kind() == io::ErrorKind::NotFound => {}
                Err(file::Unusable::Io(error)) => return Err(error),
                Err(file::Unusable::Corrupt(why)) => {
                    report.corrupt += 1;
                    let name = path.file_name().unwrap_or_default().to_string_lossy();
                    match path_hash_of(&name) {
                        Some(hash) => self.drop_corrupt(path, hash, &why),
                        None => fs::remove_file(path)?,
                    }
                }
            }
            Ok(())
        })?;
        // Tidying is no part of the answer: a full disk may refuse it.
        if self.is_writable()
            && let Err(error) = scan::now(&self.0.dir, &self.0.usage)
        {
            self.failed::<()>("tidy", self.dir(), &error);
        }
        Ok(report)
    }

    /// Remove everything, pinned files too; the pins stay. Other processes go on and fetch anew.
    ///
    /// # Errors
    /// [`ErrorKind::CacheDir`] if something can't be removed.
    pub fn clear(&self) -> Result<Cleared> {
        let mut cleared = Cleared::default();
        let clear_shard = |shard: u8, cleared: &mut Cleared| -> io::Result<()> {
            let mut counted = self.0.usage.lock()?;
            for (path, metadata) in files_of(&self.0.dir, shard)? {
                fs::remove_file(path)?;
                counted.remove(shard, metadata.len())?;
                cleared.files += 1;
                cleared.bytes += metadata.len();
            }
            Ok(())
        };
        for shard in 0..SHARDS {
            clear_shard(shard as u8, &mut cleared).map_err(|e| self.unreadable(e))?;
        }
        scan::now(&self.0.dir, &self.0.usage).map_err(|e| self.unreadable(e))?;
        Ok(cleared)
    }

    /// Never evict the files of these paths, in place of what `name` pinned before.
    pub(crate) fn pin(&self, name: &str, paths: impl Iterator<Item = PathHash>) -> Result<()> {
        self.0
            .pins
            .set(&self.0.dir, name, paths)
            .map_err(|e| self.unreadable(e))
    }

    /// Forget a pin; whether there was one.
    ///
    /// # Errors
    /// [`ErrorKind::CacheDir`] if its file can't be removed.
    pub fn unpin(&self, name: &str) -> Result<bool> {
        self.0
            .pins
            .remove(&self.0.dir, name)
            .map_err(|e| self.unreadable(e))
    }

    /// Make the files of a table the first to be evicted, but for those of the paths in `live`.
    ///
    /// # Errors
    /// [`ErrorKind::CacheDir`] if the directory can't be read.
    pub(crate) fn demote_others(
        &self,
        table: &str,
        live: impl Fn(PathHash) -> bool,
    ) -> Result<u64> {
        let mut demoted = 0;
        self.for_each_file(|path, _| {
            let Ok(opened) = File::open(path) else {
                return Ok(());
            };
            let Ok(header) = file::read_header(&opened) else {
                return Ok(());
            };
            if header.key.table().as_deref() == Some(table) && !live(header.key.path_hash()) {
                recency::demote(&opened)?;
                demoted += 1;
            }
            Ok(())
        })?;
        Ok(demoted)
    }

    fn for_each_file(
        &self,
        mut visit: impl FnMut(&Path, &fs::Metadata) -> io::Result<()>,
    ) -> Result<()> {
        for shard in 0..SHARDS {
            let files = files_of(&self.0.dir, shard as u8).map_err(|e| self.unreadable(e))?;
            for (path, metadata) in files {
                visit(&path, &metadata).map_err(|e| self.unreadable(e))?;
            }
        }
        Ok(())
    }

    fn unreadable(&self, error: io::Error) -> Error {
        let at = self.dir().display().to_string();
        Error::new(
            ErrorKind::CacheDir,
            format!("can't use the cache directory {at}"),
        )
        .with_source(error)
    }
}
