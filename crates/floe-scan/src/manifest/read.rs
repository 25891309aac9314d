//! From a location to a decoded manifest list or manifest: through the store, and the cache of what is decoded.

use std::sync::Arc;

use floe_store::Store;
use iceberg::spec::{ManifestFile, SnapshotRef};
use iceberg::table::Table;

use super::avro::Damage;
use super::details::Details;
use super::entries::Manifest;
use super::list::ManifestFiles;
use crate::decoded::{self, Decoded, FileKey, Form, Identity};
use crate::error::{Error, ErrorKind, Result};

impl Decoded for ManifestFiles {
    fn bytes(&self) -> usize {
        self.weight()
    }
}

impl Decoded for Manifest {
    fn bytes(&self) -> usize {
        self.weight()
    }
}

fn key(store: &Store, table: &Table, location: &str, length: Option<u64>) -> FileKey {
    let properties = table.file_io().config().props();
    let identity = Identity::new(store, properties, Some(table.metadata().uuid()));
    FileKey::new(&identity, location, length)
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
    let key = key(store, table, location, None);
    let load = async || {
        let bytes = read(table, location, &what).await?;
        ManifestFiles::decode(&bytes).map_err(|damage| damage.error(&what()))
    };
    let list = decoded::get_or_decode(&key, Form::ManifestList, load).await?;
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
    readable(table, listed)?;
    let key = key(store, table, &listed.manifest_path, length_of(listed));
    let load = async || {
        let bytes = manifest_bytes(table, listed).await?;
        let manifest =
            Manifest::decode(&bytes).map_err(|damage| damage.error(&manifest_of(table, listed)))?;
        let entries = manifest.entries().len();
        tracing::debug!(location = %listed.manifest_path, entries, "decoded a manifest");
        Ok(manifest)
    };
    decoded::get_or_decode(&key, Form::Manifest, load).await
}

/// A manifest of a list with the details of each entry, decoded anew: nobody but who looks at metadata wants them.
pub(crate) async fn read_details(
    table: &Table,
    listed: &ManifestFile,
) -> Result<(Manifest, Vec<Details>)> {
    readable(table, listed)?;
    let bytes = manifest_bytes(table, listed).await?;
    Manifest::decode_details(&bytes).map_err(|damage| damage.error(&manifest_of(table, listed)))
}

fn readable(table: &Table, listed: &ManifestFile) -> Result<()> {
    match listed.key_metadata {
        Some(_) => Err(encrypted(&manifest_of(table, listed))),
        None => Ok(()),
    }
}

async fn manifest_bytes(table: &Table, listed: &ManifestFile) -> Result<bytes::Bytes> {
    let what = || manifest_of(table, listed);
    let bytes = read(table, &listed.manifest_path, &what).await?;
    // A file that was cut between two blocks looks like a whole one.
    if length_of(listed).is_some_and(|length| length != bytes.len() as u64) {
        let damage = Damage::new(format!(
            "it has {} bytes, and {} by its manifest list",
            bytes.len(),
            listed.manifest_length
        ));
        return Err(damage.error(&what()));
    }
    Ok(bytes)
}

/// How errors name it.
pub(crate) fn manifest_of(table: &Table, listed: &ManifestFile) -> String {
    format!(
        "the manifest {} of {}",
        listed.manifest_path,
        table.identifier()
    )
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
