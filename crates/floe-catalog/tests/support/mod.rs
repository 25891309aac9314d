//! What the tests of all backends share: metadata files by hand, a store without a disk tier, the conformance suite.

pub(crate) mod conformance;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use floe_store::{Store, StoreConfig};
use uuid::Uuid;

/// A store that keeps nothing on disk.
pub(crate) fn store() -> Store {
    Store::open(StoreConfig::default()).unwrap()
}

pub(crate) fn properties(pairs: &[(&str, &str)]) -> HashMap<String, String> {
    pairs
        .iter()
        .map(|(key, value)| (key.to_string(), value.to_string()))
        .collect()
}

/// The least metadata of version 2: one column, no snapshot. `last_updated_ms` tells versions apart.
pub(crate) fn metadata_json(uuid: Uuid, location: &str, last_updated_ms: i64) -> String {
    format!(
        r#"{{"format-version": 2, "table-uuid": "{uuid}", "location": {location:?}, "last-sequence-number": 0,
        "last-updated-ms": {last_updated_ms}, "last-column-id": 1, "current-schema-id": 0,
        "schemas": [{{"type": "struct", "schema-id": 0,
            "fields": [{{"id": 1, "name": "x", "required": false, "type": "long"}}]}}],
        "default-spec-id": 0, "partition-specs": [{{"spec-id": 0, "fields": []}}], "last-partition-id": 999,
        "default-sort-order-id": 0, "sort-orders": [{{"order-id": 0, "fields": []}}],
        "properties": {{}}, "current-snapshot-id": -1, "refs": {{}}, "snapshots": [], "statistics": [],
        "snapshot-log": [], "metadata-log": []}}"#
    )
}

/// A table's versions as metadata files in a directory of their own.
pub(crate) struct TableFiles {
    pub(crate) dir: PathBuf,
    pub(crate) uuid: Uuid,
}

impl TableFiles {
    pub(crate) fn new(dir: &Path) -> Self {
        Self {
            dir: dir.to_path_buf(),
            uuid: Uuid::new_v4(),
        }
    }

    /// Write a version; its location.
    pub(crate) fn write(&self, last_updated_ms: i64) -> String {
        let path = self.dir.join(format!(
            "{:05}-{}.metadata.json",
            last_updated_ms % 100_000,
            Uuid::new_v4()
        ));
        let location = format!("file://{}", self.dir.display());
        std::fs::write(&path, metadata_json(self.uuid, &location, last_updated_ms)).unwrap();
        format!("file://{}", path.display())
    }
}
