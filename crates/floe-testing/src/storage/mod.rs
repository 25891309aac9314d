//! An iceberg `Storage` over another one, which counts what it is asked and fails as it is told to.
//! The files that it hands out hold the wrapper, so their reads and writes are counted and spoilt as well.

mod faults;

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
use iceberg::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};

pub use faults::{
    Gate, Operation, StorageFault, StorageFaultId, StorageFaultKind, StorageFaults, StorageRecord,
};

/// The wrapper. Clones share their faults and counts.
///
/// It serializes without what it wraps, as live handles do: a deserialized one answers every call with an error.
#[derive(Clone, Serialize, Deserialize)]
pub struct FaultyStorage {
    #[serde(skip)]
    inner: Option<Arc<dyn Storage>>,
    #[serde(skip)]
    faults: StorageFaults,
}

impl FaultyStorage {
    /// Wraps a storage; without faults it behaves as that storage does.
    pub fn new(inner: Arc<dyn Storage>) -> Self {
        Self {
            inner: Some(inner),
            faults: StorageFaults::default(),
        }
    }

    /// The faults to come and the counts of what was asked.
    pub fn faults(&self) -> &StorageFaults {
        &self.faults
    }

    fn inner(&self) -> Result<&Arc<dyn Storage>> {
        self.inner.as_ref().ok_or_else(|| {
            Error::new(
                ErrorKind::FeatureUnsupported,
                "a FaultyStorage that was deserialized wraps nothing; make one with FaultyStorage::new",
            )
        })
    }

    /// Runs one operation under the fault that strikes it, if any.
    async fn run<T>(
        &self,
        operation: Operation,
        path: &str,
        range: Option<Range<u64>>,
        act: impl Future<Output = Result<T>>,
    ) -> Result<(T, Option<StorageFaultKind>)> {
        let fault = self.faults.take(operation, path, range);
        match &fault {
            Some(StorageFaultKind::Error) => return Err(injected(operation, path)),
            Some(StorageFaultKind::Hold(gate)) => gate.pass().await,
            _ => {}
        }
        let result = act.await?;
        if matches!(fault, Some(StorageFaultKind::LoseAnswer)) {
            return Err(injected(operation, path));
        }
        Ok((result, fault))
    }

    /// The same, for what has no bytes to spoil.
    async fn call<T>(
        &self,
        operation: Operation,
        path: &str,
        act: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        Ok(self.run(operation, path, None, act).await?.0)
    }
}

impl fmt::Debug for FaultyStorage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.inner {
            Some(inner) => write!(f, "FaultyStorage({inner:?})"),
            None => f.write_str("FaultyStorage(nothing)"),
        }
    }
}

fn injected(operation: Operation, path: &str) -> Error {
    Error::new(
        ErrorKind::Unexpected,
        format!("injected fault: {operation} of {path}"),
    )
}

/// What a fault leaves of bytes that were read.
fn spoilt(bytes: Bytes, fault: Option<StorageFaultKind>) -> Bytes {
    match fault {
        Some(StorageFaultKind::ShortRead(missing)) => {
            bytes.slice(..bytes.len().saturating_sub(missing as usize))
        }
        Some(StorageFaultKind::WrongByte(at)) => {
            let mut bytes = BytesMut::from(bytes.as_ref());
            if let Some(byte) = bytes.get_mut(at as usize) {
                *byte ^= 1;
            }
            bytes.freeze()
        }
        _ => bytes,
    }
}

#[async_trait]
#[typetag::serde]
impl Storage for FaultyStorage {
    async fn exists(&self, path: &str) -> Result<bool> {
        self.call(Operation::Exists, path, self.inner()?.exists(path))
            .await
    }

    async fn metadata(&self, path: &str) -> Result<FileMetadata> {
        self.call(Operation::Metadata, path, self.inner()?.metadata(path))
            .await
    }

    async fn read(&self, path: &str) -> Result<Bytes> {
        let read = self.run(Operation::Read, path, None, self.inner()?.read(path));
        let (bytes, fault) = read.await?;
        Ok(spoilt(bytes, fault))
    }

    async fn reader(&self, path: &str) -> Result<Box<dyn FileRead>> {
        let inner = self
            .call(Operation::Reader, path, self.inner()?.reader(path))
            .await?;
        Ok(Box::new(FaultyRead {
            storage: self.clone(),
            path: path.to_owned(),
            inner,
        }))
    }

    async fn write(&self, path: &str, bs: Bytes) -> Result<()> {
        self.call(Operation::Write, path, self.inner()?.write(path, bs))
            .await
    }

    async fn writer(&self, path: &str) -> Result<Box<dyn FileWrite>> {
        let inner = self
            .call(Operation::Writer, path, self.inner()?.writer(path))
            .await?;
        Ok(Box::new(FaultyWrite {
            storage: self.clone(),
            path: path.to_owned(),
            inner,
        }))
    }

    async fn delete(&self, path: &str) -> Result<()> {
        self.call(Operation::Delete, path, self.inner()?.delete(path))
            .await
    }

    async fn delete_prefix(&self, path: &str) -> Result<()> {
        self.call(
            Operation::DeletePrefix,
            path,
            self.inner()?.delete_prefix(path),
        )
        .await
    }

    async fn delete_stream(&self, mut paths: BoxStream<'static, String>) -> Result<()> {
        // One by one, so that a fault can strike in the middle.
        while let Some(path) = paths.next().await {
            self.delete(&path).await?;
        }
        Ok(())
    }

    fn new_input(&self, path: &str) -> Result<InputFile> {
        Ok(InputFile::new(Arc::new(self.clone()), path.to_owned()))
    }

    fn new_output(&self, path: &str) -> Result<OutputFile> {
        Ok(OutputFile::new(Arc::new(self.clone()), path.to_owned()))
    }
}

struct FaultyRead {
    storage: FaultyStorage,
    path: String,
    inner: Box<dyn FileRead>,
}

#[async_trait]
impl FileRead for FaultyRead {
    async fn read(&self, range: Range<u64>) -> Result<Bytes> {
        let act = self.inner.read(range.clone());
        let read = self
            .storage
            .run(Operation::ReadRange, &self.path, Some(range), act);
        let (bytes, fault) = read.await?;
        Ok(spoilt(bytes, fault))
    }
}

struct FaultyWrite {
    storage: FaultyStorage,
    path: String,
    inner: Box<dyn FileWrite>,
}

#[async_trait]
impl FileWrite for FaultyWrite {
    async fn write(&mut self, bs: Bytes) -> Result<()> {
        let act = self.inner.write(bs);
        self.storage
            .call(Operation::WritePart, &self.path, act)
            .await
    }

    async fn close(&mut self) -> Result<()> {
        let act = self.inner.close();
        self.storage.call(Operation::Close, &self.path, act).await
    }
}

/// Hands out one [`FaultyStorage`], whatever the configuration: for a `FileIO` that fails as it is told to.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FaultyStorageFactory {
    storage: FaultyStorage,
}

impl FaultyStorageFactory {
    /// Every `FileIO` of this factory uses this storage.
    pub fn new(storage: FaultyStorage) -> Self {
        Self { storage }
    }
}

#[typetag::serde]
impl StorageFactory for FaultyStorageFactory {
    fn build(&self, _config: &StorageConfig) -> Result<Arc<dyn Storage>> {
        Ok(Arc::new(self.storage.clone()))
    }
}
