//! What the tables in `fixtures/tables` hold, by the kind of bytes.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use floe_scan::task::{DeleteKind, FileTask};
use floe_scan::{Scan, ScanRequest};
use floe_store::{Store, StoreConfig};
use iceberg::spec::SchemaRef;
use serde::Deserialize;

use super::targets::RUNTIME;

/// Longer files make rounds slow and find no more.
const LONGEST: usize = 32 << 10;
/// Where all metadata says that the tables are.
const WRITTEN_AT: &str = "file:/lake";

static LOADED: LazyLock<Corpus> = LazyLock::new(|| RUNTIME.block_on(Corpus::read()));

/// Inputs that are right as they are.
#[derive(Clone, Default)]
pub(super) struct Corpus {
    pub(super) lists: Vec<Vec<u8>>,
    pub(super) manifests: Vec<Vec<u8>>,
    pub(super) tables: Vec<Fixture>,
    pub(super) positions: Vec<Read>,
    pub(super) vectors: Vec<Read>,
    pub(super) equality: Vec<Read>,
    pub(super) data: Vec<Read>,
}

/// A table where it lies.
#[derive(Clone)]
pub(super) struct Fixture {
    pub(super) store: Store,
    pub(super) metadata: Vec<u8>,
    pub(super) table: iceberg::table::Table,
    /// In its writer's SQL.
    pub(super) conditions: Vec<String>,
}

/// A data file, and a file that deletes rows of it if that is what is read.
#[derive(Clone)]
pub(super) struct Read {
    pub(super) schema: SchemaRef,
    pub(super) schemas: Vec<SchemaRef>,
    pub(super) task: FileTask,
    pub(super) data_bytes: Bytes,
    pub(super) delete_bytes: Bytes,
}

impl Read {
    /// The bytes of the file that deletes.
    pub(super) fn delete_file(&self) -> Vec<u8> {
        self.delete_bytes.to_vec()
    }
}

#[derive(Deserialize)]
struct Listing {
    tables: Vec<Listed>,
}

#[derive(Deserialize)]
struct Listed {
    /// Below the writer's folder.
    metadata_file: String,
    refs: Vec<ListedRef>,
}

#[derive(Deserialize)]
struct ListedRef {
    #[serde(default)]
    filters: Vec<ListedFilter>,
}

#[derive(Deserialize)]
struct ListedFilter {
    predicate: String,
}

impl Corpus {
    /// Reads it at the first call. Its bytes count as memory, so call it in one's turn.
    pub(super) fn load() -> Self {
        LOADED.clone()
    }

    async fn read() -> Self {
        let mut corpus = Self::default();
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/tables");
        for writer in ["spark", "pyiceberg", "duckdb", "java"] {
            let folder = root.join(writer).canonicalize().unwrap();
            corpus.add_manifests(&folder);
            corpus.add_tables(&folder).await;
        }
        corpus
    }

    fn add_manifests(&mut self, folder: &Path) {
        let mut files = Vec::new();
        avro_files(folder, &mut files);
        files.sort();
        for path in files {
            let bytes = std::fs::read(&path).unwrap();
            let name = path.file_name().unwrap().to_str().unwrap();
            match name.starts_with("snap-") {
                _ if bytes.len() > LONGEST => {}
                true => self.lists.push(bytes),
                false => self.manifests.push(bytes),
            }
        }
    }

    async fn add_tables(&mut self, folder: &Path) {
        let lake = folder.join("lake");
        let mut config = StoreConfig::default();
        let there = lake.to_str().unwrap();
        config.location_map.insert(WRITTEN_AT, there).unwrap();
        let store = Store::open(config).unwrap();
        let listing = std::fs::read(folder.join("fixtures.json")).unwrap();
        let Listing { tables } = serde_json::from_slice(&listing).unwrap();
        for listed in tables {
            let location = format!("file:/{}", listed.metadata_file);
            let table = floe_catalog::load_metadata(&location, &HashMap::new(), &store).await;
            // Of a few tables the metadata is refused.
            let Ok(table) = table else { continue };
            self.add_files(&lake, &store, &table).await;
            let filters = listed.refs.into_iter().flat_map(|state| state.filters);
            let metadata = std::fs::read(folder.join(listed.metadata_file)).unwrap();
            if metadata.len() <= LONGEST {
                self.tables.push(Fixture {
                    store: store.clone(),
                    metadata,
                    table,
                    conditions: filters.map(|filter| filter.predicate).collect(),
                });
            }
        }
    }

    /// Those that a scan of the whole table reads; tables that can't be read have none.
    async fn add_files(&mut self, lake: &Path, store: &Store, table: &iceberg::table::Table) {
        let Ok(scan) = Scan::new(store, table, ScanRequest::default()) else {
            return;
        };
        let Ok((tasks, _)) = scan.plan_files().await else {
            return;
        };
        for task in tasks {
            let data_bytes = content(lake, &task.file.path);
            let of = |task: FileTask, delete_bytes: Bytes| Read {
                schema: table.metadata().current_schema().clone(),
                schemas: table.metadata().schemas_iter().cloned().collect(),
                task,
                data_bytes: data_bytes.clone(),
                delete_bytes,
            };
            if data_bytes.len() > LONGEST {
                continue;
            }
            for delete in &task.deletes {
                let kind = match delete.kind {
                    DeleteKind::Positions => &mut self.positions,
                    DeleteKind::Vector { .. } => &mut self.vectors,
                    DeleteKind::Equality(_) => &mut self.equality,
                };
                let bytes = content(lake, &delete.path);
                let mut alone = task.clone();
                alone.deletes = vec![Arc::clone(delete)];
                if bytes.len() <= LONGEST {
                    kind.push(of(alone, bytes));
                }
            }
            let mut alone = task;
            alone.deletes.clear();
            self.data.push(of(alone, Bytes::new()));
        }
    }
}

fn avro_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            avro_files(&path, found);
        } else if path.extension().is_some_and(|end| end == "avro")
            && path.parent().is_some_and(|f| f.ends_with("metadata"))
        {
            found.push(path);
        }
    }
}

/// The bytes of a file of a lake, by the location that metadata has for it.
fn content(lake: &Path, location: &str) -> Bytes {
    let path = location.trim_start_matches("file:").trim_start_matches('/');
    let below = path.strip_prefix("lake/").unwrap();
    std::fs::read(lake.join(below)).unwrap().into()
}
