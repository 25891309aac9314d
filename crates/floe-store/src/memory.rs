//! The memory tier: segments of objects, bounded by their bytes. foyer's S3-FIFO keeps what is read
//! again and lets a scan pass by. A hit is a reference to the bytes, never a copy.

use foyer_memory::{Cache, CacheBuilder, S3FifoConfig};

use crate::segment::Segment;

/// A segment of an object: the object's number in this process, and which segment.
pub(crate) type SegmentKey = (u64, u64);

/// Bytes below which more shards would make each too small for a segment.
const SHARD_BYTES: u64 = 64 * 1024 * 1024;

/// The memory tier of a store.
#[derive(Debug)]
pub(crate) struct MemoryTier {
    /// `None` if it may hold nothing.
    cache: Option<Cache<SegmentKey, Segment>>,
}

impl MemoryTier {
    pub(crate) fn new(bytes: u64) -> Self {
        let cache = (bytes > 0).then(|| {
            CacheBuilder::new(bytes as usize)
                .with_shards((bytes / SHARD_BYTES).clamp(1, 8) as usize)
                .with_eviction_config(S3FifoConfig::default())
                .with_weighter(|_: &SegmentKey, segment: &Segment| segment.bytes() as usize)
                .build()
        });
        Self { cache }
    }

    pub(crate) fn get(&self, key: SegmentKey) -> Option<Segment> {
        self.cache
            .as_ref()?
            .get(&key)
            .map(|entry| entry.value().clone())
    }

    /// Look at a segment without taking it out.
    pub(crate) fn with<R>(
        &self,
        key: SegmentKey,
        look: impl FnOnce(&Segment) -> Option<R>,
    ) -> Option<R> {
        look(self.cache.as_ref()?.get(&key)?.value())
    }

    /// Keep a segment with what is held of it already.
    pub(crate) fn merge(&self, key: SegmentKey, segment: Segment, length: u64) {
        let Some(cache) = &self.cache else { return };
        let merged = match cache.get(&key) {
            Some(held) if held.value().mask().contains(segment.mask()) => return,
            Some(held) => segment.merge(held.value(), length),
            None => segment,
        };
        cache.insert(key, merged);
    }

    pub(crate) fn remove(&self, key: SegmentKey) {
        if let Some(cache) = &self.cache {
            cache.remove(&key);
        }
    }

    pub(crate) fn clear(&self) {
        if let Some(cache) = &self.cache {
            cache.clear();
        }
    }

    pub(crate) fn used_bytes(&self) -> u64 {
        self.cache.as_ref().map_or(0, |cache| cache.usage() as u64)
    }
}
