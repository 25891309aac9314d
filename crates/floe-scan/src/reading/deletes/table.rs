//! Reading the few columns of a delete file, all of it.

use std::sync::Arc;

use arrow_array::ArrayRef;
use parquet::arrow::arrow_reader::ParquetRecordBatchReader;
use parquet::file::metadata::ParquetMetaData;

use super::super::chunks::{self, Chunks};
use super::super::convert::{Child, Constants};
use super::super::footer::{self, Approach};
use super::super::layout::{Layout, Wanted};
use super::super::offsets::Offsets;
use super::super::open::Shared;
use super::super::pieces::Pieces;
use crate::decoded::FileKey;
use crate::error::{Error, ErrorKind, Result};
use crate::task::DeleteFile;

/// Rows decoded at once.
const BATCH_ROWS: usize = 16 * 1024;

/// A delete file in memory, ready to be decoded.
pub(super) struct Table {
    location: String,
    footer: Arc<ParquetMetaData>,
    layout: Layout,
    pieces: Pieces,
}

impl Table {
    /// Fetches these columns of a delete file.
    pub(super) async fn fetch(
        shared: &Shared,
        key: &FileKey,
        delete: &DeleteFile,
        wanted: &[Wanted],
    ) -> Result<Self> {
        let location = delete.path.clone();
        let file = shared.source.open(&location, delete.bytes)?;
        // Delete files are small and read in full: as a whole, if not a giant's.
        let approach = match delete.bytes <= shared.source.whole_file_bytes() {
            true => Approach::Whole,
            false => Approach::Suffix,
        };
        let opened = footer::open(key, delete.bytes, file.as_ref(), approach).await?;
        let footer = opened.footer;
        let held = footer.file_metadata().num_rows();
        if u64::try_from(held).ok() != Some(delete.rows) {
            return Err(Error::new(
                ErrorKind::Corrupt,
                format!(
                    "{location} holds {held} rows, but its manifest says {}",
                    delete.rows
                ),
            ));
        }
        let parquet = footer.file_metadata().schema_descr_ptr();
        let schema = shared.file_schema(&location, &parquet)?;
        let layout = Layout::new(&location, &schema, wanted)?;
        let mut ranges = Vec::new();
        for group in footer.row_groups() {
            let leaves = layout.leaves.iter().map(|leaf| group.column(*leaf));
            ranges.extend(leaves.filter_map(chunks::range));
        }
        let mut pieces = opened.pieces;
        let missing = pieces.missing(&ranges);
        if !missing.is_empty() {
            let bytes = file.read_ranges(&missing).await?;
            pieces.extend(&missing, bytes);
        }
        Ok(Self {
            location,
            footer,
            layout,
            pieces,
        })
    }

    /// Decodes it on a blocking thread, batch by batch: `take` is given the wanted columns.
    pub(super) async fn decode<T: Send + 'static>(
        self,
        mut into: T,
        take: impl Fn(&mut T, &str, Vec<ArrayRef>) -> Result<()> + Send + 'static,
    ) -> Result<T> {
        let location = self.location.clone();
        let decode = move || {
            for index in 0..self.footer.num_row_groups() {
                self.group(index, |columns| take(&mut into, &self.location, columns))?;
            }
            Ok(into)
        };
        tokio::task::spawn_blocking(decode)
            .await
            .unwrap_or_else(|source| {
                Err(
                    Error::new(ErrorKind::Corrupt, format!("decoding {location} broke off"))
                        .with_source(source),
                )
            })
    }

    fn group(&self, index: usize, mut take: impl FnMut(Vec<ArrayRef>) -> Result<()>) -> Result<()> {
        let damaged = |source: Box<dyn std::error::Error + Send + Sync>| {
            Error::new(
                ErrorKind::Corrupt,
                format!("can't decode the rows of {}", self.location),
            )
            .with_source(source)
        };
        let rows = usize::try_from(self.footer.row_group(index).num_rows()).unwrap_or_default();
        let Some(levels) = &self.layout.levels else {
            return Err(Error::new(
                ErrorKind::Corrupt,
                format!(
                    "{} holds none of the columns of a delete file",
                    self.location
                ),
            ));
        };
        let chunks = Chunks {
            fetched: None,
            offsets: &Offsets::default(),
            metadata: &self.footer,
            group: index,
            rows,
            pieces: &self.pieces,
        };
        let size = BATCH_ROWS.min(rows);
        let reader = ParquetRecordBatchReader::try_new_with_row_groups(levels, &chunks, size, None);
        let mut decoded = 0;
        for batch in reader.map_err(|e| damaged(e.into()))? {
            let batch = batch.map_err(|e| damaged(e.into()))?;
            decoded += batch.num_rows();
            let columns = self.layout.columns.iter().map(|source| match source {
                Child::Decoded(position, convert) => {
                    convert.apply(batch.column(*position).clone(), Constants(&[]))
                }
                Child::Missing(missing) => missing.fill(batch.num_rows(), Constants(&[])),
            });
            let columns = columns.collect::<std::result::Result<Vec<_>, _>>();
            take(columns.map_err(|e| damaged(e.into()))?)?;
        }
        match decoded == rows {
            true => Ok(()),
            false => Err(Error::new(
                ErrorKind::Corrupt,
                format!(
                    "row group {index} of {} holds {decoded} rows, but its footer says {rows}",
                    self.location
                ),
            )),
        }
    }
}
