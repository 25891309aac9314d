//! From a location to a decoded manifest list or manifest: through the store, and the cache of what is decoded.

use std::sync::{Arc, LazyLock, OnceLock};

use floe_store::{CacheScope, PRINCIPAL, Store};
use iceberg::spec::{ManifestFile, SnapshotRef};
use iceberg::table::Table;
use uuid::Uuid;

use super::avro::Damage;
use super::cache::DecodedCache;
use super::entries::Manifest;
use super::list::ManifestFiles;
use crate::error::{Error, ErrorKind, Result};

/// Bytes of decoded metadata that a process keeps unless told otherwise.
const DEFAULT_BYTES: u64 = 128 << 20;

/// Of which manifest lists get one part in so many.
const LISTS_PART: u64 = 8;

static BYTES: OnceLock<u64> = OnceLock::new();

static LISTS: LazyLock<DecodedCache<Key, ManifestFiles>> = LazyLock::new(|| {
    let bytes = BYTES.get_or_init(|| DEFAULT_BYTES);
    DecodedCache::new(bytes / LISTS_PART, |key: &Key, list: &ManifestFiles| {
        key.weight() + list.weight()
    })
});

static MANIFESTS: LazyLock<DecodedCache<Key, Manifest>> = LazyLock::new(|| {
    let bytes = BYTES.get_or_init(|| DEFAULT_BYTES);
    let bytes = bytes - bytes / LISTS_PART;
    DecodedCache::new(bytes, |key: &Key, manifest: &Manifest| {
        key.weight() + manifest.weight()
    })
});

/// Bounds the bytes of decoded manifests and manifest lists that the process keeps (128 MiB unless told); false if it is
/// too late, because some are kept already.
pub fn set_cache_bytes(bytes: u64) -> bool {
    BYTES.set(bytes).is_ok()
}

/// Which file was decoded. Two that are equal hold the same bytes, since metadata files never change.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    /// The store that read it: another one should see, and cache, the bytes itself.
    store: u64,
    /// As the store does: a dropped table's files are not those of one that was created at the same place.
    table: Uuid,
    /// Endpoint and reader, as far as they make a difference to the store.
    origin: Vec<(String, String)>,
    location: String,
    length: Option<u64>,
}

impl Key {
    fn new(store: &Store, table: &Table, location: &str, length: Option<u64>) -> Self {
        const ENDPOINTS: [&str; 3] = ["s3.endpoint", "gcs.service.path", PRINCIPAL];
        let each_reader = store.config().cache.scope == CacheScope::Principal;
        let properties = table.file_io().config().props().iter();
        let mut origin: Vec<_> = properties
            .filter(|(name, _)| each_reader || ENDPOINTS.contains(&name.as_str()))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        origin.sort();
        Self {
            store: store.id(),
            table: table.metadata().uuid(),
            origin,
            location: location.to_string(),
            length,
        }
    }

    fn weight(&self) -> usize {
        let origin = self
            .origin
            .iter()
            .map(|(name, value)| name.len() + value.len());
        size_of::<Self>() + self.location.len() + origin.sum::<usize>()
    }
}

/// The manifests of a snapshot. The store is told their lengths.
pub(crate) async fn manifest_files(
    store: &Store,
    table: &Table,
    snapshot: &SnapshotRef,
) -> Result<Arc<ManifestFiles>> {
    let location = snapshot.manifest_list();
    let what = || format!("the manifest list {location} of {}", table.identifier());
    if snapshot.encryption_key_id().is_some() {
        return Err(encrypted(&what()));
    }
    let key = Key::new(store, table, location, None);
    let load = async || {
        let bytes = read(table, location, &what).await?;
        ManifestFiles::decode(&bytes).map_err(|damage| damage.error(&what()))
    };
    let list = LISTS.get_or_load(&key, load).await?;
    for manifest in &list.entries {
        if let Some(length) = length_of(manifest) {
            store.expect_length(&manifest.manifest_path, length);
        }
    }
    Ok(list)
}

/// A manifest of a list.
pub(crate) async fn read_manifest(
    store: &Store,
    table: &Table,
    listed: &ManifestFile,
) -> Result<Arc<Manifest>> {
    let location = &listed.manifest_path;
    let what = || format!("the manifest {location} of {}", table.identifier());
    if listed.key_metadata.is_some() {
        return Err(encrypted(&what()));
    }
    let length = length_of(listed);
    let key = Key::new(store, table, location, length);
    let load = async || {
        let bytes = read(table, location, &what).await?;
        // A file that was cut between two blocks looks like a whole one.
        if length.is_some_and(|length| length != bytes.len() as u64) {
            let damage = Damage::new(format!(
                "it has {} bytes, and {} by its manifest list",
                bytes.len(),
                listed.manifest_length
            ));
            return Err(damage.error(&what()));
        }
        let manifest = Manifest::decode(&bytes).map_err(|damage| damage.error(&what()))?;
        tracing::debug!(%location, entries = manifest.entries().len(), "decoded a manifest");
        Ok(manifest)
    };
    MANIFESTS.get_or_load(&key, load).await
}

fn length_of(manifest: &ManifestFile) -> Option<u64> {
    u64::try_from(manifest.manifest_length).ok()
}

async fn read(table: &Table, location: &str, what: &impl Fn() -> String) -> Result<bytes::Bytes> {
    let failed = |source| Error::read(format!("can't read {}", what()), source);
    let file = table.file_io().new_input(location).map_err(failed)?;
    file.read().await.map_err(failed)
}

fn encrypted(what: &str) -> Error {
    Error::new(
        ErrorKind::Unsupported,
        format!("can't read {what}: it is encrypted, which floe can't read yet"),
    )
}
