//! The demo lake: `football.events`, a wide table of a season, and six `crm` tables that know the same customers.
//! Deterministic: the same configuration gives the same rows and the same Parquet bytes; only names and times differ.
//!
//! Layout of a lake in `D`: `D/catalog.db` (SQLite, catalog name [`CATALOG_NAME`]), `D/warehouse/NAMESPACE/TABLE/...`,
//! and the marker `D/lake.json`, which says "building" first and is complete last. Locations are `file://` + the
//! absolute path, so a lake can't be moved.

mod columns;
mod crm;
mod football;
mod plan;
mod random;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use iceberg::io::FileIO;
use iceberg::spec::{DataFile, Schema};
use iceberg::{NamespaceIdent, TableIdent};
use serde::{Deserialize, Serialize};

use crate::table::{SqliteCatalog, TestTable};
pub use crm::KNOWN_CUSTOMER;
use plan::Plan;

/// The catalog's name in the SQLite file, to be given to whatever reads it.
pub const CATALOG_NAME: &str = "demo";
/// Rows of `football.events` unless said otherwise.
pub const DEFAULT_ROWS: u64 = 1_117_921;

/// What lake is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LakeConfig {
    /// Rows of `football.events`, at least 1; the other tables scale with it.
    pub rows: u64,
    /// What to do with a complete lake of another size in the same place.
    pub other: OtherLake,
}

impl Default for LakeConfig {
    fn default() -> Self {
        Self {
            rows: DEFAULT_ROWS,
            other: OtherLake::Refuse,
        }
    }
}

/// What to do with a complete lake of another configuration. One that was never completed is always built anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OtherLake {
    /// Leave it alone; building is an error.
    Refuse,
    /// Delete it and build the wanted one.
    Replace,
}

/// What a lake holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LakeSummary {
    /// Rows that were asked for.
    pub rows: u64,
    /// All tables, `football.events` first.
    pub tables: Vec<TableSummary>,
}

impl LakeSummary {
    /// A table by its name, such as `crm.orders`.
    pub fn table(&self, name: &str) -> Option<&TableSummary> {
        self.tables.iter().find(|table| table.name == name)
    }
}

/// What a table held when the lake was built.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableSummary {
    /// Namespace and name with a dot between.
    pub name: String,
    /// Rows.
    pub rows: u64,
    /// Columns.
    pub columns: u64,
    /// Data files.
    pub files: u64,
    /// Bytes of the data files.
    pub bytes: u64,
}

impl TableSummary {
    fn new(ident: &TableIdent, schema: &Schema) -> Self {
        Self {
            name: ident.to_string(),
            rows: 0,
            columns: schema.as_struct().fields().len() as u64,
            files: 0,
            bytes: 0,
        }
    }

    fn count(&mut self, file: &DataFile) {
        self.rows += file.record_count();
        self.bytes += file.file_size_in_bytes();
        self.files += 1;
    }
}

/// A match that was appended after the season.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppendedMatch {
    /// Its partition.
    pub match_id: i64,
    /// Its events.
    pub rows: u64,
    /// Bytes of its one data file.
    pub bytes: u64,
    /// Location of that file.
    pub file: String,
    /// The snapshot that added it.
    pub snapshot_id: i64,
}

/// The marker's content.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "state")]
enum Marker {
    Building,
    Complete(LakeSummary),
}

/// A complete lake.
#[derive(Debug)]
pub struct Lake {
    /// Absolute.
    dir: PathBuf,
    catalog: SqliteCatalog,
    summary: LakeSummary,
}

impl Lake {
    /// The lake in `dir`: the one that is there, or a new one. `progress` is told a table's name, the files of it
    /// that are written, and how many it will have.
    ///
    /// # Errors
    /// If `dir` holds a complete lake of another configuration and that is to be refused, or a catalog or a warehouse
    /// that is no lake's: nothing is deleted that this function did not build.
    pub async fn build(
        dir: impl AsRef<Path>,
        config: LakeConfig,
        mut progress: impl FnMut(&str, u64, u64),
    ) -> Result<Self> {
        ensure!(
            config.rows > 0,
            "building a lake: --rows is 0; at least 1 is needed"
        );
        let dir = absolute(dir.as_ref())?;
        if let Some(lake) = Self::open(&dir).await? {
            if lake.summary.rows == config.rows {
                return Ok(lake);
            }
            ensure!(
                config.other == OtherLake::Replace,
                "building a lake of {} rows in {}: there is one of {} rows; ask for that many, or for another directory",
                config.rows,
                dir.display(),
                lake.summary.rows
            );
            lake.catalog.close().await;
        }
        clear(&dir)?;
        write_marker(&dir, &Marker::Building)?;
        let catalog = SqliteCatalog::open(catalog_path(&dir), CATALOG_NAME).await?;
        let warehouse = location_of(&warehouse_path(&dir));
        let mut tables = Vec::new();
        for plan in plans(config.rows) {
            let name = plan.ident().to_string();
            let written = |done, total| progress(&name, done, total);
            let summary = plan::build_table(&catalog, &warehouse, plan, written)
                .await
                .with_context(|| format!("building {name} in {}", dir.display()))?;
            tables.push(summary);
        }
        let summary = LakeSummary {
            rows: config.rows,
            tables,
        };
        write_marker(&dir, &Marker::Complete(summary.clone()))?;
        Ok(Self {
            dir,
            catalog,
            summary,
        })
    }

    /// The complete lake in `dir`, if there is one.
    pub async fn open(dir: impl AsRef<Path>) -> Result<Option<Self>> {
        let dir = absolute(dir.as_ref())?;
        let Some(Marker::Complete(summary)) = read_marker(&dir)? else {
            return Ok(None);
        };
        let catalog = SqliteCatalog::open(catalog_path(&dir), CATALOG_NAME).await?;
        Ok(Some(Self {
            dir,
            catalog,
            summary,
        }))
    }

    /// Where it is; absolute.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Its SQLite catalog.
    pub fn catalog(&self) -> &SqliteCatalog {
        &self.catalog
    }

    /// The folder of its tables: a bucket, to an S3 server whose root is [`dir`](Self::dir).
    pub fn warehouse_dir(&self) -> PathBuf {
        warehouse_path(&self.dir)
    }

    /// The same as the tables' locations begin: `file:///...`, without a slash at the end.
    pub fn warehouse_location(&self) -> String {
        location_of(&self.warehouse_dir())
    }

    /// What it held when it was built.
    pub fn summary(&self) -> &LakeSummary {
        &self.summary
    }

    /// A table as it is now, for writing to it.
    pub async fn table(&self, namespace: &str, name: &str) -> Result<TestTable> {
        let ident = ident(namespace, name);
        let pointer = self.catalog.pointer(&ident).await?;
        let pointer =
            pointer.with_context(|| format!("{ident} is not in {}", self.catalog.uri()))?;
        TestTable::open(FileIO::new_with_fs(), &pointer).await
    }

    /// Plays one more match: one file, one commit, as a second writer would.
    pub async fn append_match(&self) -> Result<AppendedMatch> {
        let ident = ident("football", "events");
        let mut table = self.table("football", "events").await?;
        let season = football::Season::new(self.summary.rows);
        let last = last_match_id(&table).await?;
        let index = football::place_of(last).map_or(season.files(), |place| place + 1);
        let rows = season.extra_rows();
        let encoder = table.encoder()?;
        let batch = football::match_columns(index, rows).batch(encoder.arrow_schema().clone())?;
        let file = encoder.encode(&batch, football::partition(index))?;
        plan::store(&file)?;
        let data_file = file.data_file;
        let snapshot_id =
            plan::commit(&self.catalog, &ident, &mut table, vec![data_file.clone()]).await?;
        Ok(AppendedMatch {
            match_id: football::match_id(index),
            rows: data_file.record_count(),
            bytes: data_file.file_size_in_bytes(),
            file: data_file.file_path().to_owned(),
            snapshot_id,
        })
    }
}

/// The highest match id, as the bounds of the table's partitions tell it.
async fn last_match_id(table: &TestTable) -> Result<Option<i64>> {
    let mut last = None;
    for manifest in table.manifests().await? {
        let bounds = manifest.partitions.as_deref().and_then(<[_]>::first);
        let Some(upper) = bounds.and_then(|bounds| bounds.upper_bound.as_ref()) else {
            continue;
        };
        let bytes = upper.as_slice().try_into();
        let id = bytes.map(i64::from_le_bytes).with_context(|| {
            format!("a partition bound of {} is no long", manifest.manifest_path)
        })?;
        last = last.max(Some(id));
    }
    Ok(last)
}

fn plans(rows: u64) -> Vec<Arc<dyn Plan>> {
    let mut plans: Vec<Arc<dyn Plan>> = vec![Arc::new(football::Season::new(rows))];
    plans.extend(crm::tables(rows as f64 / DEFAULT_ROWS as f64));
    plans
}

fn ident(namespace: &str, name: &str) -> TableIdent {
    TableIdent::new(NamespaceIdent::new(namespace.to_owned()), name.to_owned())
}

fn catalog_path(dir: &Path) -> PathBuf {
    dir.join("catalog.db")
}

fn warehouse_path(dir: &Path) -> PathBuf {
    dir.join("warehouse")
}

fn marker_path(dir: &Path) -> PathBuf {
    dir.join("lake.json")
}

fn absolute(dir: &Path) -> Result<PathBuf> {
    std::path::absolute(dir).with_context(|| format!("making {} absolute", dir.display()))
}

/// Iceberg's local locations are not percent-encoded.
fn location_of(path: &Path) -> String {
    format!("file://{}", path.display())
}

fn local_path(location: &str) -> &Path {
    Path::new(location.strip_prefix("file://").unwrap_or(location))
}

fn read_marker(dir: &Path) -> Result<Option<Marker>> {
    let path = marker_path(dir);
    let text = match std::fs::read(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(|| format!("reading {}", path.display())),
    };
    // Half a marker is that of a lake that is not complete.
    Ok(Some(
        serde_json::from_slice(&text).unwrap_or(Marker::Building),
    ))
}

/// Aside and renamed: there is a whole marker, or the one from before.
fn write_marker(dir: &Path, marker: &Marker) -> Result<()> {
    let path = marker_path(dir);
    let aside = path.with_extension("json.new");
    let text = serde_json::to_vec_pretty(marker)?;
    std::fs::write(&aside, text)
        .and_then(|()| std::fs::rename(&aside, &path))
        .with_context(|| format!("writing {}", path.display()))
}

/// Makes room for a new lake; deletes only what a marker says is a lake's.
fn clear(dir: &Path) -> Result<()> {
    std::fs::create_dir_all(dir).with_context(|| format!("creating {}", dir.display()))?;
    let known = read_marker(dir)?.is_some();
    for path in [
        catalog_path(dir),
        dir.join("catalog.db-journal"),
        warehouse_path(dir),
    ] {
        if !path.exists() {
            continue;
        }
        if !known {
            bail!(
                "building a lake in {}: {} is there and is no lake's; give another directory",
                dir.display(),
                path.display()
            );
        }
        let removed = if path.is_dir() {
            std::fs::remove_dir_all(&path)
        } else {
            std::fs::remove_file(&path)
        };
        removed.with_context(|| format!("deleting {}", path.display()))?;
    }
    Ok(())
}
