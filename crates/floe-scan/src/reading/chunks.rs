//! Column chunks in memory, as Parquet's decoder wants them.

use std::io::{self, Read};
use std::ops::Range;

use bytes::{Buf, Bytes};
use parquet::arrow::arrow_reader::RowGroups;
use parquet::column::page::{PageIterator, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData};
use parquet::file::reader::{ChunkReader, Length};

use super::claims;
use super::offsets::{Offsets, Pages};
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

/// One row group, of which some column chunks are there, or some of their pages.
pub(super) struct Chunks<'a> {
    pub(super) metadata: &'a ParquetMetaData,
    pub(super) group: usize,
    pub(super) rows: usize,
    /// Rows whose pages are there, if not all.
    pub(super) fetched: Option<&'a [Range<usize>]>,
    pub(super) offsets: &'a Offsets,
    pub(super) pieces: &'a Pieces,
}

impl Chunks<'_> {
    /// What is there of a chunk, and its pages if they are known to be of use.
    fn chunk(&self, leaf: usize, chunk: &ColumnChunkMetaData) -> Option<(Chunk, Option<&Pages>)> {
        let (needed, pages) = match (self.fetched, self.offsets.of(leaf)) {
            (Some(rows), Some(pages)) => (pages.needed(rows), Some(pages)),
            _ => (vec![range(chunk)?], None),
        };
        let part = |range: Range<u64>| Some((range.start, self.pieces.get(&range)?));
        let parts = needed.into_iter().map(part).collect::<Option<Vec<_>>>()?;
        let chunk = Chunk {
            parts,
            packed: pages::is_unpacked_by_parquet(chunk),
            located: pages.is_some(),
        };
        Some((chunk, pages))
    }
}

impl RowGroups for Chunks<'_> {
    fn num_rows(&self) -> usize {
        self.rows
    }

    fn column_chunks(&self, i: usize) -> Result<Box<dyn PageIterator>> {
        let column = self.metadata.row_group(self.group).column(i);
        let Some((chunk, pages)) = self.chunk(i, column) else {
            return Err(ParquetError::General(format!(
                "the column chunk of '{}' was not fetched",
                column.column_path()
            )));
        };
        let locations = pages.map(|pages| pages.locations().to_vec());
        let pages = pages::of(chunk, column, self.rows, locations)?;
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

/// What is there of a chunk, addressed as in its file.
struct Chunk {
    parts: Vec<(u64, Bytes)>,
    /// Whether room is made for as many bytes as its pages claim.
    packed: bool,
    /// Whether pages are asked for by their locations, header and all.
    located: bool,
}

impl Chunk {
    /// The bytes from `start` on, to the end of the part that holds so many of them.
    fn from(&self, start: u64, length: usize) -> Result<Bytes> {
        let found = self.parts.iter().find_map(|(first, bytes)| {
            let from = usize::try_from(start.checked_sub(*first)?).ok()?;
            (from.checked_add(length)? <= bytes.len()).then(|| bytes.slice(from..))
        });
        found.ok_or_else(|| ParquetError::EOF(format!("{length} bytes at {start} were not read")))
    }
}

impl Length for Chunk {
    fn len(&self) -> u64 {
        let ends = self
            .parts
            .iter()
            .map(|(start, bytes)| start + bytes.len() as u64);
        ends.max().unwrap_or_default()
    }
}

impl ChunkReader for Chunk {
    type T = Header;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        Ok(Header {
            bytes: self.from(start, 1)?,
            unchecked: self.packed,
        })
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        let bytes = self.from(start, length)?.slice(..length);
        if self.packed && self.located {
            claims::page(&bytes).map_err(|what| ParquetError::General(what.to_owned()))?;
        }
        Ok(bytes)
    }
}

/// Where the header of a page may begin: it does if anything is read.
struct Header {
    bytes: Bytes,
    unchecked: bool,
}

impl Read for Header {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if std::mem::take(&mut self.unchecked) {
            claims::page(&self.bytes).map_err(io::Error::other)?;
        }
        let read = into.len().min(self.bytes.len());
        self.bytes.copy_to_slice(&mut into[..read]);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_claims_too_much_is_not_read_where_room_is_made_for_it() {
        // Type, two gibibytes unpacked, ten bytes stored.
        let header = [0x15, 0, 0x15, 0xfe, 0xff, 0xff, 0xff, 0x0f, 0x15, 20, 0];
        let chunk = |packed, located| Chunk {
            parts: vec![(7, Bytes::copy_from_slice(&header))],
            packed,
            located,
        };
        let read = |packed| chunk(packed, false).get_read(7).unwrap().read(&mut [0; 4]);
        assert!(read(true).is_err());
        assert_eq!(read(false).unwrap(), 4);
        let get = |packed| chunk(packed, true).get_bytes(7, header.len());
        assert!(get(true).is_err());
        assert_eq!(get(false).unwrap(), header[..]);
    }
}
