//! A table's metadata as rows: the metadata tables of Iceberg's Java library, with its names, order, types and nullability.
//!
//! ```text
//!  Inspection ──┬─▶ state       snapshots, refs, history    by the table's metadata alone
//!               ├─▶ manifests   manifests                   by the manifest list; summaries as text (human)
//!               ├─▶ files       files, entries              one manifest after the other ┬─ partition  tuples of all specs as one struct
//!               └─▶ totals      partitions                  files added up               └─ metrics    counts, bounds as values
//! ```
//!
//! Nothing is read before the rows are asked for, and of wide tables no column is built that nobody asked for.

mod column;
mod files;
mod human;
mod manifests;
mod metrics;
mod partition;
mod source;
mod state;
#[cfg(test)]
mod tests;
mod totals;
mod values;

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{ArrowError, Schema, SchemaRef};
use floe_store::Store;
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};

use crate::error::{Error, ErrorKind, Result};
use crate::snapshot::Position;

use files::FileTable;
use partition::Partitioning;
use source::Source;

/// A metadata table, under the name that Spark gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MetadataTable {
    /// The snapshots that the table has, whichever ref leads to them.
    Snapshots,
    /// Branches and tags.
    Refs,
    /// What main pointed to, and since when.
    History,
    /// The manifests of a state.
    Manifests,
    /// The data and delete files of a state.
    Files,
    /// The data files of a state.
    DataFiles,
    /// The delete files of a state.
    DeleteFiles,
    /// The entries of a state's manifests, those of deleted files too.
    Entries,
    /// The partitions of a state, with sums over their files.
    Partitions,
}

impl MetadataTable {
    /// Every metadata table.
    pub const ALL: [Self; 9] = [
        Self::Snapshots,
        Self::Refs,
        Self::History,
        Self::Manifests,
        Self::Files,
        Self::DataFiles,
        Self::DeleteFiles,
        Self::Entries,
        Self::Partitions,
    ];

    /// The metadata table of this name, as [`MetadataTable::name`] writes it.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|table| table.name() == name)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Snapshots => "snapshots",
            Self::Refs => "refs",
            Self::History => "history",
            Self::Manifests => "manifests",
            Self::Files => "files",
            Self::DataFiles => "data_files",
            Self::DeleteFiles => "delete_files",
            Self::Entries => "entries",
            Self::Partitions => "partitions",
        }
    }
}

/// One metadata table of a state of a table: its schema is known, its rows are not read yet.
#[derive(Clone, Debug)]
pub struct Inspection {
    table: MetadataTable,
    source: Source,
    content: Arc<Content>,
    /// Every column.
    whole: SchemaRef,
    chosen: Arc<[usize]>,
    schema: SchemaRef,
}

/// What makes the rows of a metadata table.
#[derive(Debug)]
enum Content {
    Snapshots,
    Refs,
    History,
    Manifests,
    Files(Arc<FileTable>),
    Partitions(Arc<Partitioning>),
}

impl Inspection {
    /// A metadata table with all its columns. Partitions and columns are those of the table's current specs and schema
    /// whatever the state, as in Java, so that two states can be compared.
    ///
    /// # Errors
    /// Partition fields that contradict each other, types that Arrow can't express.
    pub fn new(store: &Store, position: &Position, table: MetadataTable) -> Result<Self> {
        let (content, schema) = Content::of(table, position)?;
        let schema = Arc::new(schema);
        Ok(Self {
            table,
            source: Source::new(store, position),
            content: Arc::new(content),
            chosen: (0..schema.fields().len()).collect(),
            whole: schema.clone(),
            schema,
        })
    }

    /// The same with these of its columns (by position in its schema).
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] for a position that its schema doesn't have.
    pub fn narrowed(&self, columns: &[usize]) -> Result<Self> {
        let schema = self.schema.project(columns).map_err(|source| {
            let message = format!("the metadata table {} has no such column", self.name());
            Error::new(ErrorKind::Invalid, message).with_source(source)
        })?;
        Ok(Self {
            chosen: columns.iter().map(|&at| self.chosen[at]).collect(),
            schema: Arc::new(schema),
            ..self.clone()
        })
    }

    /// The schema of the batches that [`Inspection::stream`] gives.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The table's name and the metadata table's, as SQL joins them.
    pub fn name(&self) -> String {
        format!("{}${}", self.source.table().identifier(), self.table.name())
    }

    /// The rows, in the order of the metadata. Manifests are read while batches are taken; dropping the stream ends all of it.
    pub fn stream(&self) -> BoxStream<'static, Result<RecordBatch>> {
        let source = self.source.clone();
        let whole = self.whole.clone();
        match self.content.as_ref() {
            Content::Snapshots => self.at_once(async move { state::snapshots(&source, &whole) }),
            Content::Refs => self.at_once(async move { state::refs(&source, &whole) }),
            Content::History => self.at_once(async move { state::history(&source, &whole) }),
            Content::Manifests => {
                self.at_once(async move { manifests::rows(&source, &whole).await })
            }
            Content::Partitions(partitioning) => self.totals(partitioning),
            Content::Files(table) => self.files(table),
        }
    }

    /// All rows in one batch of all columns, of which the chosen ones go out.
    fn at_once(
        &self,
        rows: impl Future<Output = Result<RecordBatch>> + Send + 'static,
    ) -> BoxStream<'static, Result<RecordBatch>> {
        let chosen = self.chosen.clone();
        stream::once(async move { rows.await?.project(&chosen).map_err(unbuilt) }).boxed()
    }

    fn totals(&self, partitioning: &Arc<Partitioning>) -> BoxStream<'static, Result<RecordBatch>> {
        let (this, partitioning) = (self.clone(), partitioning.clone());
        stream::once(async move {
            let totals = totals::of(&this.source, partitioning).await?;
            let batches = totals.batches(&this.whole)?.into_iter();
            let chosen = batches.map(move |batch| batch.project(&this.chosen).map_err(unbuilt));
            Ok(stream::iter(chosen))
        })
        .try_flatten()
        .boxed()
    }

    fn files(&self, table: &Arc<FileTable>) -> BoxStream<'static, Result<RecordBatch>> {
        let (table, chosen, schema) = (table.clone(), self.chosen.clone(), self.schema.clone());
        let (wanted, depth) = (table.wants(), table.depth(&chosen));
        self.source
            .manifests(move |manifest| wanted.manifest(manifest), depth)
            .map(move |opened| table.batches(opened?, &chosen, &schema))
            .map_ok(stream::iter)
            .try_flatten()
            .boxed()
    }
}

impl Content {
    fn of(table: MetadataTable, position: &Position) -> Result<(Self, Schema)> {
        Ok(match table {
            MetadataTable::Snapshots => {
                (Self::Snapshots, column::schema(&state::snapshot_fields())?)
            }
            MetadataTable::Refs => (Self::Refs, column::schema(&state::ref_fields())?),
            MetadataTable::History => (Self::History, column::schema(&state::history_fields())?),
            MetadataTable::Manifests => (Self::Manifests, column::schema(&manifests::fields())?),
            MetadataTable::Files
            | MetadataTable::DataFiles
            | MetadataTable::DeleteFiles
            | MetadataTable::Entries => {
                let files = FileTable::of(table, position.table())?;
                let schema = files.schema()?;
                (Self::Files(Arc::new(files)), schema)
            }
            MetadataTable::Partitions => {
                let partitioning = Partitioning::of(position.table())?;
                let schema = totals::schema(&partitioning)?;
                (Self::Partitions(Arc::new(partitioning)), schema)
            }
        })
    }
}

/// A batch of so many rows, which may have no columns.
fn batch(schema: &SchemaRef, columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(schema.clone(), columns, &options).map_err(unbuilt)
}

/// Metadata that does not fit the rows that it should make.
fn unbuilt(source: ArrowError) -> Error {
    Error::new(
        ErrorKind::Corrupt,
        "can't make rows of the table's metadata: it lacks what is required, or holds too much",
    )
    .with_source(source)
}
