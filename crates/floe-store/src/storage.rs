//! Iceberg's `Storage` over a store: what an iceberg `FileIO` calls.
//!
//! Reads of immutable files go through the cache and send neither HEAD nor LIST. Writes go to the
//! origin and into the cache. A location that is read elsewhere through the location map is never
//! written: the write would go past what is read.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use futures::StreamExt;
use futures::stream::BoxStream;
use iceberg::io::{
    FileMetadata, FileRead, FileWrite, InputFile, OutputFile, Storage, StorageConfig,
    StorageFactory,
};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::error::{Error, ErrorKind, Result};
use crate::local::LocalWriter;
use crate::location::{Location, Scheme};
use crate::origin::{OriginWriter, Properties, out_of_range};
use crate::read::offline;
use crate::store::{Opened, Shared, Store};

/// A written file up to this size is kept in the cache as well.
const KEEP_WRITTEN_BYTES: usize = 64 * 1024 * 1024;

/// Makes storages that read through one store.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct CachedStorageFactory {
    #[serde(skip)]
    store: Option<Store>,
    table: Option<Uuid>,
}

impl CachedStorageFactory {
    pub(crate) fn new(store: Store, table: Option<Uuid>) -> Self {
        Self {
            store: Some(store),
            table,
        }
    }
}

#[typetag::serde(name = "FloeCachedStorageFactory")]
impl StorageFactory for CachedStorageFactory {
    fn build(&self, config: &StorageConfig) -> iceberg::Result<Arc<dyn Storage>> {
        let shared = self.store.as_ref().map(|store| store.shared.clone());
        Ok(Arc::new(CachedStorage {
            shared,
            properties: config.props().clone(),
            table: self.table,
        }))
    }
}

/// A storage over the cache over the origin.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct CachedStorage {
    /// Absent after a trip through serde: a cache does not travel to another process.
    #[serde(skip)]
    shared: Option<Arc<Shared>>,
    #[serde(skip)]
    properties: Properties,
    table: Option<Uuid>,
}

/// Properties hold credentials.
impl fmt::Debug for CachedStorage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CachedStorage")
            .field("table", &self.table)
            .finish_non_exhaustive()
    }
}

impl CachedStorage {
    pub(crate) fn new(shared: Arc<Shared>, properties: Properties, table: Option<Uuid>) -> Self {
        Self {
            shared: Some(shared),
            properties,
            table,
        }
    }

    fn shared(&self) -> Result<&Arc<Shared>> {
        self.shared.as_ref().ok_or_else(|| {
            Error::new(ErrorKind::Invalid, "this storage was deserialised, and a cache does not travel: make a FileIO with Store::file_io")
        })
    }

    fn open(&self, path: &str) -> Result<Opened> {
        self.shared()?.open(path, &self.properties, self.table)
    }

    /// Open for a change: refused where reads go elsewhere, and offline.
    fn open_to_change(&self, path: &str) -> Result<Opened> {
        let shared = self.shared()?;
        if shared.location_map().covers(path) {
            return Err(Error::new(
                ErrorKind::Invalid,
                format!("can't write {path}: [location-map] reads it elsewhere"),
            )
            .with_hint("write through a configuration without that prefix in [location-map]"));
        }
        let opened = self.open(path)?;
        if shared.offline && opened.location().scheme.is_remote() {
            return Err(offline(opened.location()));
        }
        Ok(opened)
    }

    async fn remove(&self, path: &str) -> Result<()> {
        let opened = self.open_to_change(path)?;
        opened.bucket().delete(opened.location()).await?;
        self.purge(vec![path.to_string()]).await
    }

    async fn purge(&self, paths: Vec<String>) -> Result<()> {
        let store = Store {
            shared: self.shared()?.clone(),
        };
        let purged = tokio::task::spawn_blocking(move || store.purge(&paths)).await;
        purged
            .map_err(|e| {
                Error::new(ErrorKind::Unexpected, "the cache's worker died").with_source(e)
            })?
            .map(|_| ())
    }

    async fn remove_prefix(&self, path: &str) -> Result<()> {
        // A prefix is a folder: `t/a` must not take `t/ab` with it.
        let folder = format!("{}/", path.trim_end_matches('/'));
        let opened = self.open_to_change(&folder)?;
        let keys = opened.bucket().list(opened.location()).await?;
        let mut removed = Vec::with_capacity(keys.len());
        for key in keys {
            let location = Location {
                key,
                ..opened.location().clone()
            };
            opened.bucket().delete(&location).await?;
            removed.push(location.to_string());
        }
        self.purge(removed).await
    }
}

impl Opened {
    fn location(&self) -> &Location {
        match self {
            Opened::Cached(file) => &file.location,
            Opened::Direct { location, .. } => location,
        }
    }

    fn bucket(&self) -> &crate::origin::Bucket {
        match self {
            Opened::Cached(file) => &file.bucket,
            Opened::Direct { bucket, .. } => bucket,
        }
    }

    pub(crate) async fn read(&self, shared: &Shared, range: Option<Range<u64>>) -> Result<Bytes> {
        match (self, range) {
            (Opened::Cached(file), Some(range)) => file.read(range).await,
            (Opened::Cached(file), None) => file.read_all().await,
            (
                Opened::Direct {
                    bucket,
                    location,
                    told,
                },
                range,
            ) => {
                if shared.offline && location.scheme.is_remote() {
                    return Err(offline(location));
                }
                read_direct(bucket, location, *told, range).await
            }
        }
    }
}

/// A read past the cache, checked against the length that a manifest told.
async fn read_direct(
    bucket: &crate::origin::Bucket,
    location: &Location,
    told: Option<u64>,
    range: Option<Range<u64>>,
) -> Result<Bytes> {
    let wrong = |found: u64, told: u64| {
        Error::new(
            ErrorKind::WrongLength,
            format!(
                "can't read {location}: the manifest says {told} bytes, the origin has {found}"
            ),
        )
    };
    if let Some(range) = &range {
        if range.start > range.end {
            return Err(Error::new(
                ErrorKind::Invalid,
                format!(
                    "can't read bytes {}..{} of {location}",
                    range.start, range.end
                ),
            ));
        }
        if range.is_empty() {
            return Ok(Bytes::new());
        }
    }
    let got = bucket
        .get(location, range.clone(), None, |facts| match told {
            Some(told) if told != facts.length => Err(wrong(facts.length, told)),
            _ => Ok(()),
        })
        .await?;
    let came = got.bytes.len() as u64;
    match (range, told) {
        (Some(range), _) if came < range.end - range.start => {
            let length = got.facts.map_or(range.start + came, |facts| facts.length);
            Err(out_of_range(location, &range, length))
        }
        (None, Some(told)) if came != told => Err(wrong(came, told)),
        _ => Ok(got.bytes),
    }
}

#[async_trait]
#[typetag::serde(name = "FloeCachedStorage")]
impl Storage for CachedStorage {
    /// What is cached is there; anything else costs the origin one question.
    async fn exists(&self, path: &str) -> iceberg::Result<bool> {
        let opened = self.open(path)?;
        if let Opened::Cached(file) = &opened
            && file.is_cached().await?
        {
            return Ok(true);
        }
        if self.shared()?.offline && opened.location().scheme.is_remote() {
            return Err(offline(opened.location()).into());
        }
        Ok(opened.bucket().stat(opened.location()).await?.is_some())
    }

    async fn metadata(&self, path: &str) -> iceberg::Result<FileMetadata> {
        let opened = self.open(path)?;
        if let Opened::Cached(file) = &opened {
            file.is_cached().await?;
            if let Some(size) = file.object.length() {
                return Ok(FileMetadata { size });
            }
        }
        let location = opened.location();
        if self.shared()?.offline && location.scheme.is_remote() {
            return Err(offline(location).into());
        }
        let facts = opened.bucket().stat(location).await?;
        let facts = facts
            .ok_or_else(|| Error::new(ErrorKind::NotFound, format!("there is no {location}")))?;
        Ok(FileMetadata { size: facts.length })
    }

    async fn read(&self, path: &str) -> iceberg::Result<Bytes> {
        Ok(self.open(path)?.read(self.shared()?, None).await?)
    }

    async fn reader(&self, path: &str) -> iceberg::Result<Box<dyn FileRead>> {
        Ok(Box::new(Reader {
            shared: self.shared()?.clone(),
            opened: self.open(path)?,
        }))
    }

    async fn write(&self, path: &str, bytes: Bytes) -> iceberg::Result<()> {
        let mut writer = self.writer(path).await?;
        writer.write(bytes).await?;
        writer.close().await
    }

    async fn writer(&self, path: &str) -> iceberg::Result<Box<dyn FileWrite>> {
        let opened = self.open_to_change(path)?;
        let target = match opened.location().scheme {
            Scheme::File => Target::Local(LocalWriter::create(opened.location())?),
            _ => Target::Origin(opened.bucket().writer(opened.location()).await?),
        };
        // What the cache knows of an object of this name is of another one.
        self.purge(vec![path.to_string()]).await?;
        let kept = matches!(opened, Opened::Cached(_)).then(BytesMut::new);
        Ok(Box::new(Writer {
            opened,
            target: Some(target),
            kept,
        }))
    }

    async fn delete(&self, path: &str) -> iceberg::Result<()> {
        Ok(self.remove(path).await?)
    }

    async fn delete_prefix(&self, path: &str) -> iceberg::Result<()> {
        Ok(self.remove_prefix(path).await?)
    }

    async fn delete_stream(&self, mut paths: BoxStream<'static, String>) -> iceberg::Result<()> {
        while let Some(path) = paths.next().await {
            self.remove(&path).await?;
        }
        Ok(())
    }

    fn new_input(&self, path: &str) -> iceberg::Result<InputFile> {
        Ok(InputFile::new(Arc::new(self.clone()), path.to_string()))
    }

    fn new_output(&self, path: &str) -> iceberg::Result<OutputFile> {
        Ok(OutputFile::new(Arc::new(self.clone()), path.to_string()))
    }
}

/// Reads ranges of a file; nothing is asked before the first.
struct Reader {
    shared: Arc<Shared>,
    opened: Opened,
}

#[async_trait]
impl FileRead for Reader {
    async fn read(&self, range: Range<u64>) -> iceberg::Result<Bytes> {
        Ok(self.opened.read(&self.shared, Some(range)).await?)
    }
}

enum Target {
    Origin(OriginWriter),
    Local(LocalWriter),
}

/// Writes a file to its origin and, when it is whole there, into the cache.
struct Writer {
    opened: Opened,
    /// `None` once closed.
    target: Option<Target>,
    /// What was written, as long as it is small enough to be kept.
    kept: Option<BytesMut>,
}

impl Writer {
    fn target(&mut self) -> Result<&mut Target> {
        let location = self.opened.location().clone();
        self.target.as_mut().ok_or_else(|| {
            Error::new(
                ErrorKind::Invalid,
                format!("can't write {location}: it is closed"),
            )
        })
    }
}

#[async_trait]
impl FileWrite for Writer {
    async fn write(&mut self, bytes: Bytes) -> iceberg::Result<()> {
        match &mut self.kept {
            Some(kept) if kept.len() + bytes.len() <= KEEP_WRITTEN_BYTES => {
                kept.extend_from_slice(&bytes)
            }
            kept => *kept = None,
        }
        match self.target()? {
            Target::Origin(writer) => Ok(writer.write(bytes).await?),
            Target::Local(writer) => Ok(writer.write(&bytes)?),
        }
    }

    async fn close(&mut self) -> iceberg::Result<()> {
        self.target()?;
        let version = match self.target.take() {
            Some(Target::Origin(mut writer)) => match writer.close().await {
                Ok(version) => version,
                Err(error) => {
                    // The answer may be lost and the object there: whoever commits must find out.
                    if let Err(aborted) = writer.abort().await {
                        tracing::debug!(%aborted, "parts of a failed write may remain at the origin");
                    }
                    return Err(error.into());
                }
            },
            Some(Target::Local(writer)) => {
                writer.publish()?;
                None
            }
            None => None,
        };
        if let (Opened::Cached(file), Some(kept)) = (&self.opened, self.kept.take()) {
            file.keep_written(&kept.freeze(), version).await?;
        }
        Ok(())
    }
}
