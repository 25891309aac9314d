//! Column chunks in memory, as Parquet's decoder wants them.

use std::ops::Range;

use bytes::{Buf, Bytes};
use parquet::arrow::arrow_reader::RowGroups;
use parquet::column::page::{PageIterator, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData};
use parquet::file::reader::{ChunkReader, Length};

use super::pages;
use super::pieces::Pieces;

/// The bytes of a column chunk. `None`: the footer says nonsense.
pub(super) fn range(chunk: &ColumnChunkMetaData) -> Option<Range<u64>> {
    let first = chunk
        .dictionary_page_offset()
        .unwrap_or_else(|| chunk.data_page_offset());
    let start = u64::try_from(first).ok()?;
    let length = u64::try_from(chunk.compressed_size()).ok()?;
    Some(start..start.checked_add(length)?)
}

/// One row group, of which some column chunks are there.
pub(super) struct Chunks<'a> {
    pub(super) metadata: &'a ParquetMetaData,
    pub(super) group: usize,
    pub(super) rows: usize,
    pub(super) pieces: &'a Pieces,
}

impl RowGroups for Chunks<'_> {
    fn num_rows(&self) -> usize {
        self.rows
    }

    fn column_chunks(&self, i: usize) -> Result<Box<dyn PageIterator>> {
        let chunk = self.metadata.row_group(self.group).column(i);
        let found = range(chunk).and_then(|range| {
            let bytes = self.pieces.get(&range)?;
            Some((range.start, bytes))
        });
        let Some((start, bytes)) = found else {
            return Err(ParquetError::General(format!(
                "the column chunk of '{}' was not fetched",
                chunk.column_path()
            )));
        };
        let pages = pages::of(Chunk { start, bytes }, chunk, self.rows)?;
        Ok(Box::new(One(Some(pages))))
    }

    fn row_groups(&self) -> Box<dyn Iterator<Item = &RowGroupMetaData> + '_> {
        Box::new(std::iter::once(self.metadata.row_group(self.group)))
    }

    fn metadata(&self) -> &ParquetMetaData {
        self.metadata
    }
}

/// The pages of one chunk.
struct One(Option<Box<dyn PageReader>>);

impl Iterator for One {
    type Item = Result<Box<dyn PageReader>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.take().map(Ok)
    }
}

impl PageIterator for One {}

/// A chunk that is addressed as in its file.
struct Chunk {
    start: u64,
    bytes: Bytes,
}

impl Chunk {
    fn from(&self, start: u64) -> Result<Bytes> {
        let from = start
            .checked_sub(self.start)
            .and_then(|from| usize::try_from(from).ok())
            .filter(|from| *from <= self.bytes.len());
        match from {
            Some(from) => Ok(self.bytes.slice(from..)),
            None => Err(ParquetError::EOF(format!(
                "byte {start} lies outside the column chunk"
            ))),
        }
    }
}

impl Length for Chunk {
    fn len(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }
}

impl ChunkReader for Chunk {
    type T = bytes::buf::Reader<Bytes>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        Ok(self.from(start)?.reader())
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        let bytes = self.from(start)?;
        match length <= bytes.len() {
            true => Ok(bytes.slice(..length)),
            false => Err(ParquetError::EOF(format!(
                "{length} bytes at {start} reach beyond the column chunk"
            ))),
        }
    }
}
