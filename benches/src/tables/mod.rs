//! Tables to bench with, on local disk: a season of events, the same evolved or with deleted rows, and one of very many files.
//!
//! ```text
//! floe-testing's lake ──▶ football.events ──▶ evolve               another schema, the same files
//!                                        ├──▶ positions, vectors   some rows of each file deleted
//!                                        └──▶ equality             many keys deleted, most of them nobody's
//! crowd                                                            manifests alone, no data files
//! ```
//!
//! A variant is a metadata file beside the original's: they share every data file, so that what differs is what is measured.
//! Delete files lie in a folder of their own, so that the folder of data files holds nothing else.

mod commit;
mod crowd;
mod equality;
mod evolve;
mod positions;

use std::path::Path;

use anyhow::Result;
use floe_store::Store;
use floe_testing::table::TestTable;
use iceberg::spec::{DataContentType, DataFile, FormatVersion, ManifestContentType};
use iceberg::table::Table;
use iceberg::{Runtime, TableIdent};

pub use crowd::{Crowd, crowd};

/// One row in so many is deleted by position.
const DELETED_BY_POSITION: u64 = 50;
/// One row in so many is deleted by equality.
const DELETED_BY_EQUALITY: usize = 10;

/// How a table differs from the one that it was made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// Columns renamed, promoted, dropped, added and moved.
    Evolved,
    /// A position-delete file for each data file.
    Positions,
    /// A deletion vector for each data file, all in one Puffin file (format version 3).
    Vectors,
    /// One file of this many keys that holds for every partition.
    Equality {
        /// Keys in it.
        keys: usize,
    },
}

/// A table and how many of its rows are left.
#[derive(Clone, Debug)]
pub struct Made {
    /// The table.
    pub table: TestTable,
    /// Rows that a scan must give.
    pub rows: u64,
}

/// An events table as it is.
///
/// # Errors
/// If a manifest can't be read.
pub async fn plain(table: TestTable) -> Result<Made> {
    let files = data_files(&table).await?;
    let rows = files.iter().map(DataFile::record_count).sum();
    Ok(Made { table, rows })
}

/// A variant of an events table; the original stays as it is.
///
/// # Errors
/// If the table is no events table, or something can't be written beside it.
pub async fn variant(original: &TestTable, variant: Variant) -> Result<Made> {
    let mut table = original.clone();
    let files = data_files(&table).await?;
    let rows: u64 = files.iter().map(DataFile::record_count).sum();
    let deleted = match variant {
        Variant::Evolved => {
            evolve::evolve(&mut table).await?;
            0
        }
        Variant::Positions => positions::delete(&mut table, &files, DELETED_BY_POSITION).await?,
        Variant::Vectors => {
            positions::delete_by_vectors(&mut table, &files, DELETED_BY_POSITION).await?
        }
        Variant::Equality { keys } => {
            equality::delete(&mut table, &files, DELETED_BY_EQUALITY, keys).await?
        }
    };
    Ok(Made {
        table,
        rows: rows - deleted,
    })
}

/// A table as floe reads it through a store. Must be called in a tokio runtime.
///
/// # Errors
/// Never, for a table that was made here.
pub fn opened(table: &TestTable, store: &Store) -> Result<Table> {
    let uuid = table.metadata().uuid();
    Ok(Table::builder()
        .file_io(store.file_io(&Default::default(), Some(uuid)))
        .metadata(table.metadata().clone())
        .metadata_location(table.metadata_location())
        .identifier(TableIdent::from_strs(["football", "events"])?)
        .runtime(Runtime::try_current()?)
        .build()?)
}

/// The live data files of a table.
///
/// # Errors
/// If a manifest can't be read.
pub async fn data_files(table: &TestTable) -> Result<Vec<DataFile>> {
    let mut files = Vec::new();
    for manifest in table.manifests().await? {
        if manifest.content != ManifestContentType::Data {
            continue;
        }
        let manifest = manifest.load_manifest(table.file_io()).await?;
        let live = manifest.entries().iter().filter(|entry| entry.is_alive());
        let live = live.map(|entry| entry.data_file().clone());
        files.extend(live.filter(|file| file.content_type() == DataContentType::Data));
    }
    Ok(files)
}

/// Where a file of a local table lies.
pub fn local_path(location: &str) -> &Path {
    Path::new(location.strip_prefix("file://").unwrap_or(location))
}

/// The format version that a table has, unless a change needs a later one.
fn version_of(table: &TestTable) -> FormatVersion {
    table.metadata().format_version()
}
