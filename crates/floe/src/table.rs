//! A table that was loaded, and scans of it.

use std::collections::BTreeMap;
use std::fmt;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use floe_scan::{At, Position, Scan, ScanRequest};
use futures::TryStreamExt;
use futures::stream::{BoxStream, StreamExt};
use iceberg::spec::SnapshotReference;
use serde::Serialize;

use crate::error::Result;
use crate::floe::Floe;
use crate::pointers::LastSeen;

/// A table as its pointer stood when it was loaded.
#[derive(Clone)]
pub struct Table {
    floe: Floe,
    table: iceberg::table::Table,
    seen: Option<LastSeen>,
}

/// A data file of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FileEntry {
    /// Where the table's metadata says it is.
    pub location: String,
    /// Rows in it, deleted ones included.
    pub rows: u64,
    /// Its length in bytes.
    pub bytes: u64,
    /// Delete files that may concern it.
    pub delete_files: u64,
}

/// Without its access to files: it may hold secrets.
impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table")
            .field("name", self.table.identifier())
            .field("metadata", &self.table.metadata_location())
            .finish_non_exhaustive()
    }
}

impl Table {
    pub(crate) fn new(floe: Floe, table: iceberg::table::Table, seen: Option<LastSeen>) -> Self {
        Self { floe, table, seen }
    }

    /// The table as iceberg-rust knows it.
    pub fn iceberg(&self) -> &iceberg::table::Table {
        &self.table
    }

    /// The pointer that was used without asking the catalog, if the table was opened offline.
    pub fn last_seen(&self) -> Option<&LastSeen> {
        self.seen.as_ref()
    }

    /// Branches and tags by name.
    ///
    /// # Errors
    /// If the metadata can't be understood.
    pub fn refs(&self) -> Result<BTreeMap<String, SnapshotReference>> {
        Ok(floe_scan::refs(self.table.metadata())?)
    }

    /// Begins a scan of main, every row and column.
    pub fn scan(&self) -> ScanBuilder {
        ScanBuilder {
            floe: self.floe.clone(),
            table: self.table.clone(),
            request: ScanRequest::default(),
            filter: None,
        }
    }

    /// The data files at this state, by location.
    ///
    /// # Errors
    /// What planning meets.
    pub async fn files(&self, at: At) -> Result<Vec<FileEntry>> {
        let mut files: Vec<FileEntry> = self
            .scan()
            .at(at)
            .build()?
            .files()
            .await?
            .into_iter()
            .map(FileEntry::from)
            .collect();
        files.sort_by(|a, b| a.location.cmp(&b.location));
        Ok(files)
    }
}

impl From<floe_scan::PlannedFile> for FileEntry {
    fn from(file: floe_scan::PlannedFile) -> Self {
        let floe_scan::PlannedFile {
            location,
            rows,
            bytes,
            delete_files,
        } = file;
        Self {
            location,
            rows,
            bytes,
            delete_files,
        }
    }
}

/// A scan in the making.
#[derive(Clone)]
pub struct ScanBuilder {
    floe: Floe,
    table: iceberg::table::Table,
    request: ScanRequest,
    /// SQL text, understood once the table's state is known.
    filter: Option<String>,
}

/// Without the table's access to files: it may hold secrets.
impl fmt::Debug for ScanBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScanBuilder")
            .field("table", self.table.identifier())
            .field("request", &self.request)
            .field("filter", &self.filter)
            .finish_non_exhaustive()
    }
}

impl ScanBuilder {
    /// Read this state of the table. Default: the tip of main.
    #[must_use]
    pub fn at(mut self, at: At) -> Self {
        self.request.at = at;
        self
    }

    /// Read these columns, in this order. Default: all.
    #[must_use]
    pub fn select(mut self, columns: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.request.select = Some(columns.into_iter().map(Into::into).collect());
        self
    }

    /// Keep the rows for which this expression, in DataFusion's SQL, is true. Default: all.
    #[must_use]
    pub fn filter(mut self, expression: impl Into<String>) -> Self {
        self.filter = Some(expression.into());
        self
    }

    /// Stop after this many rows. Default: all.
    #[must_use]
    pub fn limit(mut self, rows: usize) -> Self {
        self.request.limit = Some(rows);
        self
    }

    /// Give batches file by file in the order of their locations. Default: as they come.
    #[must_use]
    pub fn ordered(mut self) -> Self {
        self.request.ordered = true;
        self
    }

    /// Files fetched and decoded at once. Default: 8.
    #[must_use]
    pub fn fetch_concurrency(mut self, files: usize) -> Self {
        self.request.fetch_concurrency = files;
        self
    }

    /// Resolves ref, columns and filter; reads nothing.
    ///
    /// # Errors
    /// What the table doesn't have, with what it has.
    pub fn build(mut self) -> Result<Scan> {
        if let Some(text) = &self.filter {
            let position = Position::resolve(&self.table, &self.request.at)?;
            let schema = floe_scan::with_metadata_columns(position.schema())?;
            self.request.filter = Some(floe_sql::parse_filter(text, &schema)?);
        }
        Ok(Scan::new(self.floe.store(), &self.table, self.request)?)
    }

    /// The rows as a stream, and their schema.
    ///
    /// # Errors
    /// What resolving or planning meets; the stream gives what reading meets.
    pub async fn stream(self) -> Result<(SchemaRef, BoxStream<'static, Result<RecordBatch>>)> {
        let scan = self.build()?;
        let batches = scan.stream().await?;
        Ok((
            scan.schema().clone(),
            batches.map(|batch| Ok(batch?)).boxed(),
        ))
    }

    /// All rows.
    ///
    /// # Errors
    /// What resolving, planning or reading meets.
    pub async fn batches(self) -> Result<Vec<RecordBatch>> {
        self.stream().await?.1.try_collect().await
    }

    /// The number of rows, from the manifests alone where they tell.
    ///
    /// # Errors
    /// What resolving, planning or reading meets.
    pub async fn count(self) -> Result<u64> {
        Ok(self.build()?.count().await?)
    }
}
