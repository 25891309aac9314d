//! A row group on its way from the network to the decoder.

use std::ops::Range;
use std::sync::Arc;

use arrow_buffer::BooleanBuffer;
use parquet::file::metadata::ParquetMetaData;
use tokio::sync::OwnedSemaphorePermit;

use super::chunks;
use super::deletes::Deletes;
use super::needs::Reading;
use super::open::Shared;
use super::pieces::Pieces;
use super::source::Bytewise;
use crate::error::{Error, ErrorKind, Result};
use crate::predicate::Predicate;
use crate::task::FileTask;

/// A file that is open.
#[derive(Debug)]
pub(super) struct OpenFile {
    pub(super) shared: Arc<Shared>,
    pub(super) task: FileTask,
    /// `None`: nothing is to be read of it.
    pub(super) footer: Option<Arc<ParquetMetaData>>,
    pub(super) bytes: Arc<dyn Bytewise>,
    pub(super) reading: Arc<Reading>,
    pub(super) deletes: Deletes,
    /// Rows of a batch.
    pub(super) batch_rows: usize,
    /// Of what was fetched to open it.
    pub(super) _reserved: Option<OwnedSemaphorePermit>,
}

/// Some rows of an open file: a row group, or all rows of a file that nothing is read of.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) file: Arc<OpenFile>,
    pub(super) index: usize,
    /// Position in the file of its first row.
    pub(super) first: u64,
    pub(super) rows: usize,
    /// What is left to check on its rows.
    pub(super) residual: Option<Arc<Predicate>>,
    /// Rows that may match; `None`: any.
    pub(super) selected: Option<Vec<Range<usize>>>,
    /// What is there of its column chunks.
    pub(super) pieces: Pieces,
}

impl OpenFile {
    pub(super) fn location(&self) -> &str {
        &self.task.file.path
    }

    /// An error about what is in the file.
    pub(super) fn corrupt(&self, what: impl std::fmt::Display) -> Error {
        Error::new(ErrorKind::Corrupt, format!("{}: {what}", self.location()))
    }

    /// An error for columns that do not become the table's.
    pub(super) fn unfit(&self, source: arrow_schema::ArrowError) -> Error {
        Error::new(
            ErrorKind::Corrupt,
            format!(
                "the columns of {} don't fit the table's schema",
                self.location()
            ),
        )
        .with_source(source)
    }
}

impl Group {
    /// The byte ranges of the column chunks that it is read for.
    pub(super) fn ranges(&self) -> Vec<Range<u64>> {
        let Some(footer) = &self.file.footer else {
            return Vec::new();
        };
        let group = footer.row_group(self.index);
        let leaves = self.file.reading.leaves();
        let chunks = leaves.iter().filter_map(|leaf| group.columns().get(*leaf));
        chunks.filter_map(chunks::range).collect()
    }

    /// Bytes that are still to be fetched.
    pub(super) fn missing_bytes(&self) -> u64 {
        let missing = self.pieces.missing(&self.ranges());
        missing.iter().map(|range| range.end - range.start).sum()
    }

    /// Fetches the column chunks that aren't there.
    pub(super) async fn fetch(&mut self) -> Result<()> {
        let missing = self.pieces.missing(&self.ranges());
        if !missing.is_empty() {
            let bytes = self.file.bytes.read_ranges(&missing).await?;
            self.pieces.extend(&missing, bytes);
        }
        Ok(())
    }

    /// A bit for each deleted row; `None` if no position is deleted.
    pub(super) fn dead(&self) -> Option<BooleanBuffer> {
        self.file.deletes.positions_in(self.first, self.rows)
    }
}
