//! Everything but reading: looking whether an object is there, writing, deleting, listing.
//! Names are taken to the letter, so the accessor is asked rather than the operator, which normalises.

use opendal::Buffer;
use opendal::raw::oio::{DeleteDyn, ListDyn, WriteDyn, Writer};
use opendal::raw::{Access, OpDelete, OpList, OpStat, OpWrite};

use super::Bucket;
use super::failure::Failure;
use crate::disk::Facts;
use crate::error::{ErrorKind, Result};
use crate::location::Location;

/// Parts of one written object under way at once.
const PARTS_AT_ONCE: usize = 4;
/// The size of a part of a large object: the least that S3 takes is 5 MiB.
const PART_BYTES: usize = 8 * 1024 * 1024;

impl Bucket {
    /// Length and version of an object; `None` if it is not there.
    pub(crate) async fn stat(&self, location: &Location) -> Result<Option<Facts>> {
        let mut tries = 1;
        loop {
            let answer = self
                .operator
                .inner()
                .stat(&location.key, OpStat::new())
                .await;
            match answer.map_err(Failure::from) {
                Ok(reply) => {
                    let metadata = reply.into_metadata();
                    let version = metadata.version().or(metadata.etag()).map(str::to_string);
                    return Ok(metadata.is_file().then(|| Facts {
                        length: metadata.content_length(),
                        version,
                    }));
                }
                Err(failure) if failure.kind == ErrorKind::NotFound => return Ok(None),
                Err(failure) if !failure.passing || tries > self.config.retries => {
                    return Err(failure.give_up("look at", location, tries));
                }
                Err(_) => {
                    self.counters.retry();
                    tokio::time::sleep(self.pause(tries)).await;
                    tries += 1;
                }
            }
        }
    }

    /// Begin to write an object. It appears when the writer is closed, whole or not at all.
    pub(crate) async fn writer(&self, location: &Location) -> Result<OriginWriter> {
        let options = OpWrite::new().with_concurrent(PARTS_AT_ONCE);
        let opened = self.operator.inner().write(&location.key, options).await;
        let (_, writer) = opened.map_err(|e| Failure::from(e).give_up("write", location, 1))?;
        Ok(OriginWriter {
            writer,
            buffered: Vec::new(),
            buffered_bytes: 0,
            location: location.clone(),
        })
    }

    /// Delete an object; one that is not there is no error.
    pub(crate) async fn delete(&self, location: &Location) -> Result<()> {
        let failed = |error| Failure::from(error).give_up("delete", location, 1);
        let (_, mut deleter) = self.operator.inner().delete().await.map_err(failed)?;
        deleter
            .delete_dyn(&location.key, OpDelete::new())
            .await
            .map_err(failed)?;
        deleter.close_dyn().await.map_err(failed)
    }

    /// The keys of all objects below a prefix, which ends with `/`.
    pub(crate) async fn list(&self, prefix: &Location) -> Result<Vec<String>> {
        let failed = |error| Failure::from(error).give_up("list", prefix, 1);
        let options = OpList::new().with_recursive(true);
        let mut keys = Vec::new();
        let (_, mut lister) = match self.operator.inner().list(&prefix.key, options).await {
            Err(error) if error.kind() == opendal::ErrorKind::NotFound => return Ok(keys),
            other => other.map_err(failed)?,
        };
        while let Some(entry) = lister.next_dyn().await.map_err(failed)? {
            if entry.mode().is_file() {
                keys.push(entry.path().to_string());
            }
        }
        Ok(keys)
    }
}

/// Writes one object, in parts if it is large.
pub(crate) struct OriginWriter {
    writer: Writer,
    buffered: Vec<bytes::Bytes>,
    buffered_bytes: usize,
    location: Location,
}

impl OriginWriter {
    pub(crate) async fn write(&mut self, bytes: bytes::Bytes) -> Result<()> {
        self.buffered_bytes += bytes.len();
        self.buffered.push(bytes);
        if self.buffered_bytes >= PART_BYTES {
            self.flush().await
        } else {
            Ok(())
        }
    }

    async fn flush(&mut self) -> Result<()> {
        let part: Buffer = std::mem::take(&mut self.buffered).into_iter().collect();
        self.buffered_bytes = 0;
        self.writer
            .write_dyn(part)
            .await
            .map_err(|e| Failure::from(e).give_up("write", &self.location, 1))
    }

    /// Make the object appear; its version, if the origin tells.
    pub(crate) async fn close(&mut self) -> Result<Option<String>> {
        if self.buffered_bytes > 0 {
            self.flush().await?;
        }
        let closed = self.writer.close_dyn().await;
        let metadata = closed.map_err(|e| Failure::from(e).give_up("write", &self.location, 1))?;
        Ok(metadata.version().or(metadata.etag()).map(str::to_string))
    }

    /// Leave nothing visible.
    pub(crate) async fn abort(&mut self) -> Result<()> {
        self.writer
            .abort_dyn()
            .await
            .map_err(|e| Failure::from(e).give_up("abort the write of", &self.location, 1))
    }
}
