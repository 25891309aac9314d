//! Pointers as they were seen last, for reading without any network. They are only read by an explicit wish (offline):
//! whoever can ask the catalog asks it.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use iceberg::{NamespaceIdent, TableIdent};
use serde::{Deserialize, Serialize};
use twox_hash::XxHash3_128;

use crate::config::CatalogConfig;

/// Where a table's pointer stood when its catalog was asked last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastSeen {
    /// The catalog's name.
    pub catalog: String,
    /// The table's namespace, level by level.
    pub namespace: Vec<String>,
    /// The table's name.
    pub table: String,
    /// Where its metadata was.
    pub metadata_location: String,
    /// When the catalog said so.
    pub seen: DateTime<Utc>,
}

impl LastSeen {
    /// The table.
    pub fn ident(&self) -> Option<TableIdent> {
        let namespace = NamespaceIdent::from_vec(self.namespace.clone()).ok()?;
        Some(TableIdent::new(namespace, self.table.clone()))
    }
}

/// The pointers of one catalog, small files in a directory of the cache.
#[derive(Clone, Debug)]
pub(crate) struct Pointers {
    dir: PathBuf,
    catalog: String,
}

impl Pointers {
    /// Those of this catalog. Catalogs are told apart by type, place and name, which are hashed: a URI may hold secrets.
    pub(crate) fn of(cache_dir: &Path, catalog: &CatalogConfig) -> Self {
        let property = |key: &str| {
            catalog
                .properties
                .get(key)
                .map(String::as_str)
                .unwrap_or_default()
        };
        let identity = [
            &catalog.name,
            property("type"),
            property("uri"),
            property("warehouse"),
        ]
        .join("\n");
        let dir = cache_dir.join("pointers").join(hash(&identity));
        Self {
            dir,
            catalog: catalog.name.clone(),
        }
    }

    /// Notes a pointer; written aside and renamed, so that a reader sees the old one or this one.
    pub(crate) fn note(&self, ident: &TableIdent, metadata_location: &str) -> io::Result<()> {
        let seen = LastSeen {
            catalog: self.catalog.clone(),
            namespace: ident.namespace().clone().inner(),
            table: ident.name().to_string(),
            metadata_location: metadata_location.to_string(),
            seen: Utc::now(),
        };
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.dir)?;
        let aside = self.dir.join(format!("{}.tmp", uuid::Uuid::new_v4()));
        let written = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&aside)
            .and_then(|mut file| {
                file.write_all(&serde_json::to_vec(&seen)?)?;
                fs::rename(&aside, self.file_of(ident))
            });
        if written.is_err() {
            let _ = fs::remove_file(&aside);
        }
        written
    }

    /// The pointer of a table, if it was ever seen. A file that can't be understood counts as none.
    pub(crate) fn get(&self, ident: &TableIdent) -> Option<LastSeen> {
        read(&self.file_of(ident)).filter(|seen| seen.ident().as_ref() == Some(ident))
    }

    /// Every pointer seen.
    pub(crate) fn all(&self) -> Vec<LastSeen> {
        let Ok(entries) = fs::read_dir(&self.dir) else {
            return Vec::new();
        };
        let files = entries.filter_map(|entry| Some(entry.ok()?.path()));
        files
            .filter(|path| path.extension().is_some_and(|e| e == "json"))
            .filter_map(|path| read(&path))
            .collect()
    }

    fn file_of(&self, ident: &TableIdent) -> PathBuf {
        let key = serde_json::to_string(&(ident.namespace().as_ref(), ident.name()))
            .expect("strings are always JSON");
        self.dir.join(format!("{}.json", hash(&key)))
    }
}

fn read(path: &Path) -> Option<LastSeen> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

/// Names may hold any character and be of any length; files are named by their hash.
fn hash(text: &str) -> String {
    format!("{:032x}", XxHash3_128::oneshot(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn catalog(uri: &str) -> CatalogConfig {
        CatalogConfig {
            name: "c".into(),
            properties: [("uri".to_string(), uri.to_string())].into(),
        }
    }

    #[test]
    fn a_pointer_is_found_by_its_catalog_and_its_exact_name() {
        let dir = tempfile::tempdir().unwrap();
        let pointers = Pointers::of(dir.path(), &catalog("sqlite:a"));
        let hostile = TableIdent::from_strs(["../a#b", "t/%?\u{fc}"]).unwrap();
        pointers.note(&hostile, "s3://b/old.metadata.json").unwrap();
        pointers.note(&hostile, "s3://b/new.metadata.json").unwrap();
        assert_eq!(
            pointers.get(&hostile).unwrap().metadata_location,
            "s3://b/new.metadata.json"
        );
        assert_eq!(pointers.all().len(), 1);
        assert_eq!(
            pointers.get(&TableIdent::from_strs(["../a#b", "t"]).unwrap()),
            None
        );
        assert_eq!(
            Pointers::of(dir.path(), &catalog("sqlite:b")).get(&hostile),
            None
        );
    }

    #[test]
    fn a_damaged_pointer_counts_as_never_seen() {
        let dir = tempfile::tempdir().unwrap();
        let pointers = Pointers::of(dir.path(), &catalog("sqlite:a"));
        let ident = TableIdent::from_strs(["a", "t"]).unwrap();
        pointers.note(&ident, "s3://b/x.metadata.json").unwrap();
        fs::write(pointers.file_of(&ident), "{\"catalog\": \"c\"").unwrap();
        assert_eq!(pointers.get(&ident), None);
        assert!(pointers.all().is_empty());
    }
}
