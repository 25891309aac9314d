//! The store of a process: its cache, its origins, and what it knows of objects.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use iceberg::io::{FileIO, FileIOBuilder, Storage, StorageFactory};
use serde::Serialize;
use uuid::Uuid;

use crate::blocks::{SEGMENT_BYTES, segments_of};
use crate::class::{PathClass, classify};
use crate::config::{OriginConfig, StoreConfig};
use crate::disk::{DiskCache, PurgeFollower, Purged};
use crate::error::{Error, ErrorKind, Result};
use crate::key::{ObjectKey, PathHash, path_text};
use crate::location::{Location, LocationMap};
use crate::memory::MemoryTier;
use crate::object::Object;
use crate::origin::{Bucket, Origins, Properties};
use crate::read::CachedFile;
use crate::stats::{Counters, StoreStats};
use crate::storage::{CachedStorage, CachedStorageFactory};

/// Objects and told lengths remembered; more are forgotten, which costs a look at the disk each.
const MOST_KNOWN: usize = 1 << 20;
/// How often a process looks at what others purged.
const PURGE_LOOK: Duration = Duration::from_millis(400);

/// Reads of immutable files through memory, disk and origin. Cheap to clone; one for each process is enough.
#[derive(Clone, Debug)]
pub struct Store {
    pub(crate) shared: Arc<Shared>,
}

/// What all handles of a store share.
#[derive(Debug)]
pub(crate) struct Shared {
    id: u64,
    config: StoreConfig,
    pub(crate) origin_config: OriginConfig,
    pub(crate) offline: bool,
    pub(crate) counters: Arc<Counters>,
    pub(crate) memory: MemoryTier,
    pub(crate) disk: Option<DiskCache>,
    origins: Origins,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    objects: HashMap<ObjectKey, Arc<Object>>,
    /// By location, as manifests spell it.
    lengths: HashMap<String, u64>,
}

/// A location opened for reading.
#[derive(Clone, Debug)]
pub(crate) enum Opened {
    /// Read through the cache.
    Cached(CachedFile),
    /// Read from the origin each time: a pointer, or a file that is as near as the cache.
    Direct {
        bucket: Bucket,
        location: Location,
        told: Option<u64>,
    },
}

/// A file opened for reading.
#[derive(Clone, Debug)]
pub struct StoreFile {
    shared: Arc<Shared>,
    opened: Opened,
}

impl StoreFile {
    /// The bytes `range.start..range.end` of the file.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfRange`] if the file ends before; whatever kept the origin from answering.
    pub async fn read(&self, range: Range<u64>) -> Result<Bytes> {
        self.opened.read(&self.shared, Some(range)).await
    }

    /// The bytes of several ranges in their order, fetched together: near neighbours share a request.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub async fn read_ranges(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        match &self.opened {
            Opened::Cached(file) => file.read_ranges(ranges).await,
            Opened::Direct { .. } => {
                futures::future::try_join_all(ranges.iter().map(|range| self.read(range.clone())))
                    .await
            }
        }
    }

    /// The whole file.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub async fn read_all(&self) -> Result<Bytes> {
        self.opened.read(&self.shared, None).await
    }
}

/// What [`Store::purge`] removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PurgeReport {
    /// Locations asked for.
    pub locations: u64,
    /// Files of the disk tier removed.
    pub files: u64,
}

impl Store {
    /// Open a store. Nothing is read or asked but the cache's directory itself.
    ///
    /// A disk that fails is no error: there is a warning, and the store reads from origins.
    ///
    /// # Errors
    /// [`ErrorKind::CacheDir`] for a directory that must not be trusted (another user's, or reached through a link).
    pub fn open(config: StoreConfig) -> Result<Self> {
        let counters = Arc::new(Counters::default());
        let disk = match &config.cache.dir {
            None => None,
            Some(dir) => match DiskCache::open(dir, &config.cache, counters.clone()) {
                Ok(disk) => Some(disk),
                Err(error) if error.kind() == ErrorKind::CacheDir => return Err(error),
                Err(error) => {
                    counters.disk_error();
                    tracing::warn!(%error, "going on without the cache on disk");
                    None
                }
            },
        };
        static NEXT_ID: AtomicU64 = AtomicU64::new(0);
        let shared = Arc::new(Shared {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            origin_config: config.origin.clone(),
            offline: config.offline,
            memory: MemoryTier::new(config.cache.memory_bytes),
            origins: Origins::new(config.origin.clone(), counters.clone())?,
            known: Mutex::default(),
            disk,
            counters,
            config,
        });
        if let Some(disk) = &shared.disk {
            watch(disk, Arc::downgrade(&shared))?;
        }
        Ok(Self { shared })
    }

    /// An iceberg `FileIO` that reads through this store.
    ///
    /// `properties` are Iceberg's own (`s3.endpoint`, ...), vended credentials of a table included.
    /// `table` is the table's uuid: it keeps a dropped table's files from being served to one that was
    /// created at the same place. Give it for everything but the metadata JSON itself.
    pub fn file_io(&self, properties: &HashMap<String, String>, table: Option<Uuid>) -> FileIO {
        FileIOBuilder::new(self.storage_factory(table))
            .with_props(properties)
            .build()
    }

    /// What makes the storage of such a `FileIO`, for catalogs that build their own.
    pub fn storage_factory(&self, table: Option<Uuid>) -> Arc<dyn StorageFactory> {
        Arc::new(CachedStorageFactory::new(self.clone(), table))
    }

    /// The storage itself.
    pub fn storage(
        &self,
        properties: &HashMap<String, String>,
        table: Option<Uuid>,
    ) -> Arc<dyn Storage> {
        Arc::new(CachedStorage::new(
            self.shared.clone(),
            properties.clone(),
            table,
        ))
    }

    /// Open one file to read ranges of it; asks nobody anything yet. `file_io` serves iceberg; this is for
    /// readers that know several ranges at once.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] for what is no location, or properties that make no client.
    pub fn file(
        &self,
        location: &str,
        properties: &HashMap<String, String>,
        table: Option<Uuid>,
    ) -> Result<StoreFile> {
        Ok(StoreFile {
            shared: self.shared.clone(),
            opened: self.shared.open(location, properties, table)?,
        })
    }

    /// Tell what a manifest says of a file's length, before it is read.
    ///
    /// A file of another length is then an error with both numbers, and never kept; and a small file is
    /// fetched whole by its first read.
    pub fn expect_length(&self, location: &str, length: u64) {
        let mut known = self.shared.known();
        if known.lengths.len() >= MOST_KNOWN {
            known.lengths.clear();
        }
        known.lengths.insert(location.to_string(), length);
    }

    /// The counters since the store was opened.
    pub fn stats(&self) -> StoreStats {
        self.shared
            .counters
            .snapshot(self.shared.memory.used_bytes())
    }

    /// The disk tier; `None` if there is none, or its directory could not be used.
    pub fn cache(&self) -> Option<&DiskCache> {
        self.shared.disk.as_ref()
    }

    /// A number that no other store of this process has: handles that share a store share it.
    /// For those who keep what they made of its files.
    pub fn id(&self) -> u64 {
        self.shared.id
    }

    /// The settings it was opened with.
    pub fn config(&self) -> &StoreConfig {
        &self.shared.config
    }

    /// Remove files from the cache, now and everywhere: memory and disk here, and within a second the
    /// memory of every process that shares the directory. A fetch under way does not bring them back.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] for what is no location; [`ErrorKind::CacheDir`] if a file can't be removed.
    pub fn purge(&self, locations: &[String]) -> Result<PurgeReport> {
        let hashes = locations.iter().flat_map(|location| {
            // Both where it stands and where it is read.
            [
                location.as_str().into(),
                self.shared.location_map().apply(location),
            ]
            .map(|location| {
                Location::parse(&location).map(|parsed| PathHash::of(&path_text(&parsed)))
            })
        });
        let mut hashes = hashes.collect::<Result<Vec<_>>>()?;
        hashes.sort_by_key(|hash| hash.0);
        hashes.dedup();
        self.shared.forget(&hashes);
        let removed = match &self.shared.disk {
            Some(disk) if disk.is_writable() => disk.purge(&hashes).map_err(|error| {
                Error::new(
                    ErrorKind::CacheDir,
                    format!("can't purge from {}", disk.dir().display()),
                )
                .with_source(error)
            })?,
            _ => 0,
        };
        Ok(PurgeReport {
            locations: locations.len() as u64,
            files: removed,
        })
    }

    /// Never evict these files, in place of what `name` pinned before. What of them is cached later stays too.
    ///
    /// # Errors
    /// [`ErrorKind::CacheDir`] without a disk tier or if it can't be written.
    pub fn pin(&self, name: &str, locations: &[String]) -> Result<()> {
        let disk = self.cache().ok_or_else(|| {
            Error::new(ErrorKind::CacheDir, "can't pin: there is no cache on disk")
        })?;
        disk.pin(name, self.hashes(locations)?.into_iter())
    }

    /// Make all cached files of a table the first to be evicted, but for `live`: those that a retained
    /// snapshot reaches. How many files (segments) it concerned.
    ///
    /// # Errors
    /// [`ErrorKind::CacheDir`] if the directory can't be read.
    pub fn demote_unreachable(&self, table: Uuid, live: &[String]) -> Result<u64> {
        let Some(disk) = self.cache() else {
            return Ok(0);
        };
        let live: std::collections::HashSet<PathHash> = self.hashes(live)?.into_iter().collect();
        disk.demote_others(&table.to_string(), |hash| live.contains(&hash))
    }

    fn hashes(&self, locations: &[String]) -> Result<Vec<PathHash>> {
        let map = self.shared.location_map();
        locations
            .iter()
            .map(|location| {
                Location::parse(&map.apply(location))
                    .map(|parsed| PathHash::of(&path_text(&parsed)))
            })
            .collect()
    }
}

impl Shared {
    fn known(&self) -> std::sync::MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn location_map(&self) -> &LocationMap {
        &self.config.location_map
    }

    /// Open a location for reading. Nothing is asked yet.
    pub(crate) fn open(
        self: &Arc<Self>,
        text: &str,
        properties: &Properties,
        table: Option<Uuid>,
    ) -> Result<Opened> {
        let location = Location::parse(&self.location_map().apply(text))?;
        let bucket = self.origins.bucket(&location, properties)?;
        let told = self.known().lengths.get(text).copied();
        if !location.scheme.is_remote() || classify(&location, told.is_some()) == PathClass::Pointer
        {
            return Ok(Opened::Direct {
                bucket,
                location,
                told,
            });
        }
        let key = ObjectKey::new(&location, properties, table, self.config.cache.scope);
        let object = self.object(key);
        if let Some(length) = told {
            object.tell_length(length);
        }
        Ok(Opened::Cached(CachedFile {
            store: self.clone(),
            object,
            bucket,
            location,
        }))
    }

    fn object(&self, key: ObjectKey) -> Arc<Object> {
        let mut known = self.known();
        if known.objects.len() >= MOST_KNOWN {
            known
                .objects
                .retain(|_, object| Arc::strong_count(object) > 1);
        }
        known
            .objects
            .entry(key)
            .or_insert_with_key(|key| Arc::new(Object::new(key.clone())))
            .clone()
    }

    /// Forget what memory holds of these paths.
    fn forget(&self, paths: &[PathHash]) {
        let purged: Vec<Arc<Object>> = {
            let known = self.known();
            let named = |key: &ObjectKey| {
                paths
                    .binary_search_by_key(&key.path_hash().0, |hash| hash.0)
                    .is_ok()
            };
            known
                .objects
                .iter()
                .filter(|(key, _)| named(key))
                .map(|(_, object)| object.clone())
                .collect()
        };
        for object in purged {
            object.purge(|length| match length {
                Some(length) => segments_of(0..length.max(SEGMENT_BYTES))
                    .for_each(|(segment, ..)| self.memory.remove((object.id, segment))),
                None => self.memory.remove((object.id, 0)),
            });
        }
    }

    fn forget_everything(&self) {
        let objects: Vec<Arc<Object>> = self.known().objects.values().cloned().collect();
        for object in objects {
            object.purge(|_| ());
        }
        self.memory.clear();
    }
}

/// Watch over a cache beside the work: hear of purges, tidy when it is due. Ends with the store.
fn watch(disk: &DiskCache, store: Weak<Shared>) -> Result<()> {
    let mut purges = disk.follow_purges();
    let watcher = move || {
        while let Some(shared) = store.upgrade() {
            hear_of_purges(&shared, &mut purges);
            if let Some(disk) = &shared.disk {
                disk.scan_if_due();
            }
            drop(shared);
            thread::park_timeout(PURGE_LOOK);
        }
    };
    let started = thread::Builder::new()
        .name("floe-cache".into())
        .spawn(watcher);
    started.map_err(|error| {
        Error::new(ErrorKind::Unexpected, "can't start the cache's thread").with_source(error)
    })?;
    Ok(())
}

fn hear_of_purges(shared: &Shared, purges: &mut PurgeFollower) {
    match purges.next() {
        Purged::Paths(paths) if paths.is_empty() => {}
        Purged::Paths(mut paths) => {
            paths.sort_by_key(|hash| hash.0);
            shared.forget(&paths);
        }
        Purged::Everything => shared.forget_everything(),
    }
}
