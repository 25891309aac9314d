//! A row group on its way from the network to the decoder.

use std::ops::Range;
use std::sync::Arc;

use arrow_buffer::BooleanBuffer;
use parquet::file::metadata::ParquetMetaData;
use tokio::sync::OwnedSemaphorePermit;

use super::chunks;
use super::deletes::Deletes;
use super::needs::{Passes, Reading};
use super::offsets::Offsets;
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
    /// Rows that may match, as ranges that do not touch; `None`: any.
    pub(super) selected: Option<Vec<Range<usize>>>,
    /// Where the pages of its columns lie, as far as that was asked.
    pub(super) offsets: Offsets,
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
    /// The byte ranges that these leaf columns need for these rows (`None`: for all): column chunks, or those of their pages that hold
    /// some of the rows.
    pub(super) fn ranges_of(
        &self,
        leaves: &[usize],
        rows: Option<&[Range<usize>]>,
    ) -> Vec<Range<u64>> {
        let Some(footer) = &self.file.footer else {
            return Vec::new();
        };
        let group = footer.row_group(self.index);
        let of_leaf = |leaf: &usize| match (rows, self.offsets.of(*leaf)) {
            (Some(rows), Some(pages)) => pages.needed(rows),
            _ => {
                let chunk = group.columns().get(*leaf);
                chunk.and_then(chunks::range).into_iter().collect()
            }
        };
        leaves.iter().flat_map(of_leaf).collect()
    }

    /// Bytes that are still to be fetched, at most.
    pub(super) fn missing_bytes(&self) -> u64 {
        self.missing_of(&self.file.reading.leaves())
    }

    fn missing_of(&self, leaves: &[usize]) -> u64 {
        let ranges = self.ranges_of(leaves, self.selected.as_deref());
        let missing = self.pieces.missing(&ranges);
        missing.iter().map(|range| range.end - range.start).sum()
    }

    /// Fetches what isn't there of the columns that are decoded first: all of them, unless the others are long enough to wait for what the
    /// filter leaves of them.
    pub(super) async fn fetch(&mut self) -> Result<()> {
        let reading = self.file.reading.clone();
        let worth_waiting = self.file.shared.spec.limits.round_trip_bytes;
        let first = match &reading.passes {
            Passes::Two { filter, rest }
                if self.missing_of(&rest.layout.leaves) >= worth_waiting =>
            {
                filter.layout.leaves.clone()
            }
            _ => reading.leaves(),
        };
        let ranges = self.ranges_of(&first, self.selected.as_deref());
        self.fetch_ranges(&ranges).await
    }

    /// Fetches those of these ranges that aren't there.
    pub(super) async fn fetch_ranges(&mut self, ranges: &[Range<u64>]) -> Result<()> {
        let missing = self.pieces.missing(ranges);
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
