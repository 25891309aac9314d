//! Where bytes of files come from: the store, or memory in tests.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use bytes::Bytes;
use floe_store::{Store, StoreFile};
use uuid::Uuid;

use crate::decoded::Identity;
use crate::error::{Error, ErrorKind, Result};
use crate::timings::Meter;

/// Ranges that touch are read as one up to this many bytes: far fewer reads of narrow columns, and hardly ever across a boundary of what the
/// store keeps in one piece, where it would have to copy.
const JOINED_BYTES: u64 = 1 << 20;

/// Opens files by their location.
///
/// # Contract
/// Files are immutable: what was decoded of a file is served again to whoever asks for the same identity, location and length.
pub trait Source: fmt::Debug + Send + Sync + 'static {
    /// Tells apart files of one location.
    fn identity(&self) -> &Identity;
    /// Opens a file of this length, without asking anybody anything.
    fn open(&self, location: &str, length: u64) -> Result<Arc<dyn Bytewise>>;
    /// Files up to this length are best read as a whole.
    fn whole_file_bytes(&self) -> u64;
}

/// A file opened for reading.
#[async_trait]
pub trait Bytewise: fmt::Debug + Send + Sync {
    /// The bytes of these ranges, each as long as its range, in their order.
    async fn read_ranges(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>>;
}

/// Files of one table, read through the store.
#[derive(Clone)]
pub struct StoreSource {
    store: Store,
    properties: Arc<HashMap<String, String>>,
    table: Option<Uuid>,
    identity: Identity,
    meter: Arc<Meter>,
}

/// Without the properties: they may hold secrets.
impl fmt::Debug for StoreSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoreSource({:?})", self.identity)
    }
}

impl StoreSource {
    /// Files that `properties` (of catalog and table) give access to.
    pub fn new(
        store: Store,
        properties: Arc<HashMap<String, String>>,
        table: Option<Uuid>,
    ) -> Self {
        Self {
            identity: Identity::new(&store, &properties, table),
            store,
            properties,
            table,
            meter: Arc::default(),
        }
    }

    /// Totals to add to.
    #[must_use]
    pub(crate) fn metered(mut self, meter: Arc<Meter>) -> Self {
        self.meter = meter;
        self
    }
}

impl Source for StoreSource {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn open(&self, location: &str, length: u64) -> Result<Arc<dyn Bytewise>> {
        self.store.expect_length(location, length);
        let file = self
            .store
            .file(location, &self.properties, self.table)
            .map_err(|source| cannot_read(location, source))?;
        Ok(Arc::new(Stored {
            location: location.to_owned(),
            file,
            meter: self.meter.clone(),
        }))
    }

    fn whole_file_bytes(&self) -> u64 {
        self.store.config().origin.whole_file_bytes
    }
}

#[derive(Debug)]
struct Stored {
    location: String,
    file: StoreFile,
    meter: Arc<Meter>,
}

#[async_trait]
impl Bytewise for Stored {
    async fn read_ranges(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let joined = join(ranges);
        let began = Instant::now();
        let parts = self
            .file
            .read_ranges(&joined)
            .await
            .map_err(|source| cannot_read(&self.location, source))?;
        let bytes = parts.iter().map(|part| part.len() as u64).sum();
        self.meter.fetched(bytes, began.elapsed());
        ranges
            .iter()
            .map(|range| {
                cut(&joined, &parts, range).ok_or_else(|| {
                    Error::new(
                        ErrorKind::Unexpected,
                        format!(
                            "the store gave less than bytes {}..{} of {}",
                            range.start, range.end, self.location
                        ),
                    )
                })
            })
            .collect()
    }
}

fn cannot_read(location: &str, source: floe_store::Error) -> Error {
    Error::new(ErrorKind::Read, format!("can't read {location}")).with_source(source)
}

/// The ranges in order, those that touch made one.
fn join(ranges: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut sorted: Vec<_> = ranges.to_vec();
    sorted.sort_by_key(|range| (range.start, range.end));
    let mut joined: Vec<Range<u64>> = Vec::new();
    for range in sorted {
        match joined.last_mut() {
            Some(last)
                if range.end <= last.end
                    || (range.start <= last.end && range.end - last.start <= JOINED_BYTES) =>
            {
                last.end = last.end.max(range.end);
            }
            _ => joined.push(range),
        }
    }
    joined
}

fn cut(joined: &[Range<u64>], parts: &[Bytes], range: &Range<u64>) -> Option<Bytes> {
    let after = joined.partition_point(|part| part.start <= range.start);
    // Ranges that overlap but were not joined begin before it, the nearest first.
    (0..after).rev().find_map(|index| {
        let part = &joined[index];
        let bytes = parts.get(index)?;
        if part.end < range.end {
            return None;
        }
        let start = usize::try_from(range.start - part.start).ok()?;
        let end = usize::try_from(range.end - part.start).ok()?;
        (end <= bytes.len()).then(|| bytes.slice(start..end))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_touch_are_read_as_one_and_handed_out_apart() {
        let data = Bytes::from((0..200u8).collect::<Vec<_>>());
        let ranges = [40..60, 0..20, 20..40, 100..120, 50..55, 7..7];
        let joined = join(&ranges);
        assert_eq!(joined, [0..60, 100..120]);
        let parts: Vec<_> = joined
            .iter()
            .map(|r| data.slice(r.start as usize..r.end as usize))
            .collect();
        for range in &ranges {
            let wanted = data.slice(range.start as usize..range.end as usize);
            assert_eq!(cut(&joined, &parts, range), Some(wanted));
        }
        assert_eq!(cut(&joined, &parts, &(110..130)), None);
    }

    #[test]
    fn long_ranges_stay_apart() {
        let ranges = [0..JOINED_BYTES, JOINED_BYTES..JOINED_BYTES + 5];
        assert_eq!(join(&ranges), ranges);
    }
}
