//! Decoders of bytes from outside that no public function reaches without a table around them, for those who feed them hostile ones
//! (`crates/floe/tests/fuzz`). Not for applications: nothing here is kept stable.

use crate::manifest::{Manifest, ManifestFiles};

/// Decodes a manifest list; gives its manifests.
///
/// # Errors
/// What is wrong with the bytes.
pub fn manifest_list(bytes: &[u8]) -> crate::Result<usize> {
    let list = ManifestFiles::decode(bytes);
    let list = list.map_err(|damage| damage.error("a manifest list"))?;
    Ok(list.entries.len())
}

/// Decodes a manifest; gives its entries.
///
/// # Errors
/// What is wrong with the bytes.
pub fn manifest(bytes: &[u8]) -> crate::Result<usize> {
    let manifest = Manifest::decode(bytes);
    let manifest = manifest.map_err(|damage| damage.error("a manifest"))?;
    Ok(manifest.entries().len())
}
