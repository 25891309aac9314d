//! Table metadata that this process has decoded, bounded in bytes.
//!
//! The bytes themselves are the key, beside the location: whatever a pointer names or an origin gives, other bytes are
//! decoded anew. So it holds for files that are overwritten in place, too.

use std::sync::LazyLock;

use iceberg::spec::{TableMetadata, TableMetadataRef};
use moka::sync::Cache;
use twox_hash::XxHash3_128;

use crate::error::Result;

/// Bytes of metadata files of which the decoded form is kept.
const KEPT_BYTES: u64 = 16 * 1024 * 1024;

/// Location, length and hash of a metadata file.
type Key = (String, usize, u128);

static DECODED: LazyLock<Cache<Key, TableMetadataRef>> = LazyLock::new(|| {
    // Decoded, it takes a small multiple of its JSON; counting the JSON needs no walk through it.
    let weight = |key: &Key, _: &TableMetadataRef| u32::try_from(key.1).unwrap_or(u32::MAX);
    Cache::builder()
        .max_capacity(KEPT_BYTES)
        .weigher(weight)
        .build()
});

/// The metadata that these bytes of `location` hold, decoded by `decode` unless it was before.
pub(crate) fn of(
    location: &str,
    bytes: &[u8],
    decode: impl FnOnce() -> Result<TableMetadata>,
) -> Result<TableMetadataRef> {
    let key = (
        location.to_string(),
        bytes.len(),
        XxHash3_128::oneshot(bytes),
    );
    if let Some(known) = DECODED.get(&key) {
        return Ok(known);
    }
    let metadata = TableMetadataRef::new(decode()?);
    DECODED.insert(key, metadata.clone());
    Ok(metadata)
}
