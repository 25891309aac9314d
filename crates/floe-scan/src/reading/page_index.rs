//! Page indexes of column chunks: Parquet's column index (bounds and NULLs of each page) and offset index (where it lies).
//! What does not decode tells nothing.

use bytes::{Buf, Bytes};
use parquet::basic::Type as PhysicalType;
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::page_index::column_index::ColumnIndexMetaData;
use parquet::file::reader::{ChunkReader, Length};

use super::claims;
use super::offsets::Pages;

/// What is told of the pages of one column chunk.
pub(super) struct PageIndex(ColumnIndexMetaData);

impl PageIndex {
    /// Decodes the column index of a chunk.
    pub(super) fn read(chunk: &ColumnChunkMetaData, bytes: Bytes) -> Option<Self> {
        claims::column_index(&bytes).ok()?;
        let start = u64::try_from(chunk.column_index_offset()?).ok()?;
        let placed = Placed { start, bytes };
        let chunk = std::slice::from_ref(chunk);
        let read = caught(|| {
            #[expect(deprecated, reason = "the other way reads the indexes of all columns")]
            parquet::file::page_index::index_reader::read_columns_indexes(&placed, chunk)
        });
        read?.pop().map(Self)
    }

    /// How many pages it tells of.
    pub(super) fn pages(&self) -> usize {
        usize::try_from(self.0.num_pages()).unwrap_or(usize::MAX)
    }

    /// Whether a page holds nothing but NULL.
    pub(super) fn is_null(&self, page: usize) -> bool {
        self.0.is_null_page(page)
    }

    /// How many values of a page are NULL, if that is told.
    pub(super) fn nulls(&self, page: usize) -> Option<i64> {
        self.0.null_count(page)
    }

    pub(super) fn physical_type(&self) -> Option<PhysicalType> {
        use ColumnIndexMetaData as Index;
        Some(match self.0 {
            Index::NONE => return None,
            Index::BOOLEAN(_) => PhysicalType::BOOLEAN,
            Index::INT32(_) => PhysicalType::INT32,
            Index::INT64(_) => PhysicalType::INT64,
            Index::INT96(_) => PhysicalType::INT96,
            Index::FLOAT(_) => PhysicalType::FLOAT,
            Index::DOUBLE(_) => PhysicalType::DOUBLE,
            Index::BYTE_ARRAY(_) => PhysicalType::BYTE_ARRAY,
            Index::FIXED_LEN_BYTE_ARRAY(_) => PhysicalType::FIXED_LEN_BYTE_ARRAY,
        })
    }

    /// The lower and the upper bound of a page's values, which may be truncated, as they would stand in statistics.
    pub(super) fn bounds(&self, page: usize) -> [Option<Bytes>; 2] {
        use ColumnIndexMetaData as Index;
        macro_rules! both {
            ($index:expr, $bytes:expr) => {
                [
                    $index.min_value(page).map($bytes),
                    $index.max_value(page).map($bytes),
                ]
            };
        }
        match &self.0 {
            Index::NONE | Index::INT96(_) => [None, None],
            Index::BOOLEAN(index) => both!(index, |v| Bytes::copy_from_slice(&[u8::from(*v)])),
            Index::INT32(index) => both!(index, |v| Bytes::copy_from_slice(&v.to_le_bytes())),
            Index::INT64(index) => both!(index, |v| Bytes::copy_from_slice(&v.to_le_bytes())),
            Index::FLOAT(index) => both!(index, |v| Bytes::copy_from_slice(&v.to_le_bytes())),
            Index::DOUBLE(index) => both!(index, |v| Bytes::copy_from_slice(&v.to_le_bytes())),
            Index::BYTE_ARRAY(index) | Index::FIXED_LEN_BYTE_ARRAY(index) => {
                both!(index, Bytes::copy_from_slice)
            }
        }
    }
}

/// Decodes the offset index of a chunk of so many rows.
pub(super) fn read_offsets(
    chunk: &ColumnChunkMetaData,
    bytes: Bytes,
    rows: usize,
) -> Option<Pages> {
    claims::offset_index(&bytes).ok()?;
    let start = u64::try_from(chunk.offset_index_offset()?).ok()?;
    let placed = Placed { start, bytes };
    let one = std::slice::from_ref(chunk);
    let read = caught(|| {
        #[expect(deprecated, reason = "the other way reads the indexes of all columns")]
        parquet::file::page_index::index_reader::read_offset_indexes(&placed, one)
    });
    Pages::new(chunk, read?.pop()?.page_locations(), rows)
}

/// What was decoded. Hostile bytes have made decoders panic before.
fn caught<T>(decode: impl FnOnce() -> Result<Option<T>>) -> Option<T> {
    let decode = std::panic::AssertUnwindSafe(decode);
    std::panic::catch_unwind(decode).ok()?.ok()?
}

/// Bytes of an index, addressed as in its file.
struct Placed {
    start: u64,
    bytes: Bytes,
}

impl Length for Placed {
    fn len(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }
}

impl ChunkReader for Placed {
    type T = bytes::buf::Reader<Bytes>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        let length = usize::try_from(self.len().saturating_sub(start))?;
        Ok(self.get_bytes(start, length)?.reader())
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        let from = start
            .checked_sub(self.start)
            .and_then(|from| usize::try_from(from).ok());
        let range = from.and_then(|from| Some(from..from.checked_add(length)?));
        range
            .filter(|range| range.end <= self.bytes.len())
            .map(|range| self.bytes.slice(range))
            .ok_or_else(|| ParquetError::EOF("an index reaches beyond its bytes".to_owned()))
    }
}
