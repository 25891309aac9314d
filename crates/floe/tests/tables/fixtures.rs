//! The tables in `fixtures/tables`: what `fixtures.json` lists, and a floe that reads them where they lie.

use std::path::{Path, PathBuf};

use floe::{At, Floe, StoreConfig};
use floe_testing::table::SqliteCatalog;
use futures::StreamExt;
use iceberg::{NamespaceIdent, TableIdent};
use serde::Deserialize;
use tempfile::TempDir;

/// Where all metadata says that the tables are.
const WRITTEN_AT: &str = "file:/lake";

/// The catalog that has the tables' names.
const CATALOG: &str = "fixtures";

/// The tables of one writer.
pub(super) struct FixtureSet {
    dir: PathBuf,
    tables: Vec<FixtureTable>,
}

#[derive(Deserialize)]
struct Listing {
    tables: Vec<FixtureTable>,
}

/// One table, and what its writer reads from it.
#[derive(Clone, Deserialize)]
pub(super) struct FixtureTable {
    pub(super) table: String,
    /// Below the set's folder.
    metadata_file: String,
    select: String,
    pub(super) refs: Vec<FixtureRef>,
}

/// One state of a table.
#[derive(Clone, Deserialize)]
pub(super) struct FixtureRef {
    #[serde(rename = "ref")]
    pub(super) name: String,
    #[serde(rename = "type")]
    kind: RefKind,
    snapshot_id: Option<i64>,
    /// Plain Parquet, below the set's folder.
    pub(super) expected: String,
    pub(super) rows: usize,
    #[serde(default)]
    pub(super) filters: Vec<FixtureFilter>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum RefKind {
    Branch,
    Tag,
    Snapshot,
}

/// A predicate in its writer's SQL, and the rows that it keeps.
#[derive(Clone, Deserialize)]
pub(super) struct FixtureFilter {
    pub(super) predicate: String,
    /// What the writer counted, by a scan that prunes; `None`: it failed.
    count: Option<usize>,
    /// What the predicate keeps of all rows, where that is something else.
    count_without_pushdown: Option<usize>,
}

impl FixtureSet {
    /// The tables of `fixtures/tables/<writer>`; only those whose name contains `FLOE_TABLES`, if that is set.
    pub(super) fn of(writer: &str) -> Self {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../fixtures/tables")
            .join(writer)
            .canonicalize()
            .unwrap();
        let listing = std::fs::read(dir.join("fixtures.json")).unwrap();
        let Listing { mut tables } = serde_json::from_slice(&listing).unwrap();
        let wanted = std::env::var("FLOE_TABLES").unwrap_or_default();
        tables.retain(|table| table.table.contains(&wanted));
        Self { dir, tables }
    }

    pub(super) fn tables(&self) -> &[FixtureTable] {
        &self.tables
    }

    pub(super) fn path(&self, below: &str) -> PathBuf {
        self.dir.join(below)
    }

    /// Reads the tables by name or by the location that their metadata says.
    pub(super) async fn open(&self) -> OpenLake {
        let dir = tempfile::tempdir().unwrap();
        let catalog = SqliteCatalog::open(dir.path().join("catalog.db"), CATALOG)
            .await
            .unwrap();
        futures::stream::iter(&self.tables)
            .for_each(|table| async {
                let location = table.metadata_location();
                catalog.register(&table.ident(), &location).await.unwrap();
            })
            .await;
        let mut store = StoreConfig::default();
        let lake = self.dir.join("lake");
        store
            .location_map
            .insert(WRITTEN_AT, lake.to_str().unwrap())
            .unwrap();
        let floe = Floe::builder()
            .catalog(CATALOG)
            .property("type", "sql")
            .property("uri", catalog.uri())
            .store(store)
            .build()
            .unwrap();
        catalog.close().await;
        OpenLake { floe, _dir: dir }
    }
}

/// A floe, for as long as its catalog is there.
pub(super) struct OpenLake {
    pub(super) floe: Floe,
    _dir: TempDir,
}

impl FixtureTable {
    pub(super) fn metadata_location(&self) -> String {
        format!("file:/{}", self.metadata_file)
    }

    fn ident(&self) -> TableIdent {
        let (namespace, name) = self.table.split_once('.').unwrap();
        TableIdent::new(NamespaceIdent::new(namespace.to_owned()), name.to_owned())
    }

    /// The table's name as SQL has it.
    pub(super) fn sql_name(&self) -> String {
        let ident = self.ident();
        format!("\"{}\".\"{}\"", ident.namespace().join("."), ident.name())
    }

    /// Columns that the expected rows have beside the table's own.
    pub(super) fn metadata_columns(&self) -> Vec<&str> {
        self.select
            .split(", ")
            .filter(|name| *name != "*")
            .collect()
    }
}

impl FixtureRef {
    pub(super) fn at(&self) -> At {
        match (self.kind, self.snapshot_id) {
            (RefKind::Branch, _) if self.is_main() => At::Main,
            (RefKind::Branch | RefKind::Tag, _) => At::Ref(self.name.clone()),
            (RefKind::Snapshot, Some(id)) => At::Snapshot(id),
            (RefKind::Snapshot, None) => panic!("{} is of no snapshot", self.name),
        }
    }

    pub(super) fn is_main(&self) -> bool {
        self.name == "main"
    }
}

impl FixtureFilter {
    /// The rows to count, if anybody knows.
    pub(super) fn rows(&self) -> Option<usize> {
        self.count_without_pushdown.or(self.count)
    }
}
