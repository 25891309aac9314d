//! Pages of a column chunk, decompressed. Parquet's reader makes a compressor and a decompressor of Zstandard for every column chunk, which
//! of files with many narrow columns is felt; here each thread has one decompressor for good.

use std::cell::RefCell;
use std::io::Read;
use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::Compression;
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::page_index::offset_index::PageLocation;
use parquet::file::reader::ChunkReader;
use parquet::file::serialized_reader::SerializedPageReader;
use zstd::bulk::Decompressor;
use zstd::zstd_safe::get_frame_content_size;

use super::claims;
use super::deltas::{self, Levels};

/// No page is larger: its header tells its size in 31 bits.
const LARGEST_PAGE: u64 = i32::MAX as u64;

thread_local! {
    static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

/// Whether Parquet's reader unpacks the pages of a chunk, and so makes room for what they claim.
pub(super) fn is_unpacked_by_parquet(chunk: &ColumnChunkMetaData) -> bool {
    !matches!(
        chunk.compression(),
        Compression::ZSTD(_) | Compression::UNCOMPRESSED
    )
}

/// The pages of a chunk of so many rows: those at these locations, or one after the other.
pub(super) fn of<R: ChunkReader + 'static>(
    reader: R,
    chunk: &ColumnChunkMetaData,
    rows: usize,
    locations: Option<Vec<PageLocation>>,
) -> Result<Box<dyn PageReader>> {
    let reader = Arc::new(reader);
    let zstandard = matches!(chunk.compression(), Compression::ZSTD(_));
    let pages = match zstandard {
        false => SerializedPageReader::new(reader, chunk, rows, locations)?,
        true => {
            // As if it were not compressed: the pages come as they are stored.
            let stored = chunk.clone().into_builder();
            let stored = stored.set_compression(Compression::UNCOMPRESSED).build()?;
            SerializedPageReader::new(reader, &stored, rows, locations)?
        }
    };
    let column = chunk.column_descr();
    let levels = Levels {
        repetition: column.max_rep_level(),
        definition: column.max_def_level(),
    };
    Ok(Box::new(Pages {
        pages,
        zstandard,
        levels,
    }))
}

/// Pages, unpacked here if they are stored in Zstandard.
struct Pages<R: ChunkReader> {
    pages: SerializedPageReader<R>,
    zstandard: bool,
    levels: Levels,
}

impl<R: ChunkReader> Iterator for Pages<R> {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl<R: ChunkReader> PageReader for Pages<R> {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let mut page = self.pages.get_next_page()?;
        if let Some(page) = &mut page {
            if self.zstandard {
                unpack(page)?;
            }
            check(page)?;
            deltas::check(page, self.levels)?;
        }
        Ok(page)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.pages.skip_next_page()
    }

    fn at_record_boundary(&mut self) -> Result<bool> {
        self.pages.at_record_boundary()
    }
}

fn unpack(page: &mut Page) -> Result<()> {
    match page {
        Page::DataPage { buf, .. } | Page::DictionaryPage { buf, .. } => {
            *buf = decompress(buf, 0)?;
        }
        Page::DataPageV2 {
            buf,
            def_levels_byte_len,
            rep_levels_byte_len,
            is_compressed,
            ..
        } => {
            // Levels are stored in front, as they are.
            let levels = u64::from(*def_levels_byte_len) + u64::from(*rep_levels_byte_len);
            if *is_compressed {
                *buf = decompress(buf, usize::try_from(levels)?)?;
            }
        }
    }
    Ok(())
}

/// The decoder makes room for all values of a dictionary before it looks for them; each takes a byte at the least.
fn check(page: &Page) -> Result<()> {
    match page {
        Page::DictionaryPage {
            buf, num_values, ..
        } if u64::from(*num_values) > buf.len() as u64 => Err(ParquetError::General(format!(
            "a dictionary claims {num_values} values in {} bytes",
            buf.len()
        ))),
        _ => Ok(()),
    }
}

/// The page whose bytes from `plain` on are compressed.
fn decompress(stored: &Bytes, plain: usize) -> Result<Bytes> {
    let Some((plain, compressed)) = stored.split_at_checked(plain) else {
        return Err(ParquetError::General(
            "the levels of a page reach beyond it".to_owned(),
        ));
    };
    let mut page = Vec::new();
    // Writers that stream do not tell the size beforehand, and a size that can hardly be makes room for nothing.
    let size = get_frame_content_size(compressed).ok().flatten();
    let believed = |size: &u64| claims::may_unpack_to(compressed.len() as u64, *size);
    let size = size.filter(|size| *size <= LARGEST_PAGE && believed(size));
    let size = size.filter(|_| !compressed.is_empty());
    if let Some(size) = size {
        reserve(&mut page, plain.len() + usize::try_from(size)?)?;
        page.extend_from_slice(plain);
        if at_once(compressed, &mut page, plain.len()) {
            return Ok(page.into());
        }
    }
    page.clear();
    page.extend_from_slice(plain);
    if !compressed.is_empty() {
        let stream = zstd::stream::read::Decoder::new(compressed)?;
        let read = stream.take(LARGEST_PAGE + 1).read_to_end(&mut page)?;
        if read as u64 > LARGEST_PAGE {
            return Err(ParquetError::General("a page is too large".to_owned()));
        }
    }
    Ok(page.into())
}

fn reserve(page: &mut Vec<u8>, bytes: usize) -> Result<()> {
    page.try_reserve_exact(bytes)
        .map_err(|e| ParquetError::General(format!("no memory for a page of {bytes} bytes: {e}")))
}

/// Decompresses into the room behind what is in the page already; false if that can't be, for whatever reason.
fn at_once(compressed: &[u8], page: &mut Vec<u8>, from: usize) -> bool {
    DECOMPRESSOR.with_borrow_mut(|kept| {
        let decompressor = match kept {
            Some(decompressor) => decompressor,
            None => match Decompressor::new() {
                Ok(new) => kept.insert(new),
                Err(_) => return false,
            },
        };
        let mut room = std::io::Cursor::new(page);
        room.set_position(from as u64);
        let done = decompressor.decompress_to_buffer(compressed, &mut room);
        done.is_ok()
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn data() -> Vec<u8> {
        (0..50_000u32).flat_map(|v| (v / 7).to_le_bytes()).collect()
    }

    #[test]
    fn pages_of_known_and_unknown_size_come_back() {
        let known = zstd::bulk::compress(&data(), 3).unwrap();
        let mut stream = zstd::stream::write::Encoder::new(Vec::new(), 3).unwrap();
        stream.include_contentsize(false).unwrap();
        stream.write_all(&data()).unwrap();
        let unknown = stream.finish().unwrap();
        let two = [known.as_slice(), unknown.as_slice()].concat();
        for (compressed, times) in [(known, 1), (unknown, 1), (two, 2)] {
            let stored = Bytes::from([b"levels", compressed.as_slice()].concat());
            let page = decompress(&stored, 6).unwrap();
            let wanted = [b"levels".to_vec(), data().repeat(times)].concat();
            assert!(page == wanted);
        }
        let empty = Bytes::from_static(b"levels");
        assert_eq!(decompress(&empty, 6).unwrap(), empty);
    }

    #[test]
    fn damage_is_an_error() {
        let stored = Bytes::from(zstd::bulk::compress(&data(), 3).unwrap());
        for cut in 1..stored.len() {
            assert!(decompress(&stored.slice(..cut), 0).is_err(), "cut at {cut}");
        }
        assert!(decompress(&Bytes::from_static(b"no frame at all"), 0).is_err());
        assert!(decompress(&stored, stored.len() + 1).is_err());
    }

    #[test]
    fn a_dictionary_has_no_more_values_than_bytes() {
        let of = |num_values| Page::DictionaryPage {
            buf: Bytes::from_static(&[0; 8]),
            num_values,
            encoding: parquet::basic::Encoding::PLAIN,
            is_sorted: false,
        };
        assert!(check(&of(8)).is_ok());
        assert!(check(&of(9)).is_err());
    }
}
