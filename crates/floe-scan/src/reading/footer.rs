//! Footers of Parquet files: fetched with as little as possible, decoded once, checked before anybody trusts them.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use parquet::file::metadata::{FooterTail, ParquetMetaData, ParquetMetaDataReader};

use super::chunks;
use super::claims;
use super::pieces::Pieces;
use super::source::Bytewise;
use crate::decoded::{self, Decoded, FileKey, Form};
use crate::error::{Error, ErrorKind, Result};

/// Length of the trailer: the footer's length and the magic.
const TRAILER: u64 = 8;
/// What is read of a file's end when nothing tells where its footer begins.
const SUFFIX: u64 = 64 * 1024;
impl Decoded for ParquetMetaData {
    fn bytes(&self) -> usize {
        self.memory_size()
    }
}

/// The footer of a file, and what else of the file came with it.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) footer: Arc<ParquetMetaData>,
    pub(super) pieces: Pieces,
}

/// How to reach a footer that is not known.
#[derive(Clone, Debug)]
pub(super) enum Approach {
    /// Read the whole file.
    Whole,
    /// Read these ranges at once, of which the first is thought to be the file's end from its footer on.
    Guess(Vec<Range<u64>>),
    /// Read the end.
    Suffix,
}

/// Reads a footer by this approach; from the process's memory if it is there.
pub(super) async fn open(
    key: &FileKey,
    length: u64,
    file: &dyn Bytewise,
    approach: Approach,
) -> Result<Opened> {
    if let Some(footer) = decoded::get(key, Form::Footer) {
        let pieces = Pieces::default();
        return Ok(Opened { footer, pieces });
    }
    if length < TRAILER + 4 {
        return Err(corrupt(key, "it is too short"));
    }
    let ranges = match approach {
        Approach::Whole => {
            let whole = 0..length;
            vec![whole]
        }
        Approach::Guess(ranges) => ranges,
        Approach::Suffix => {
            let end = length.saturating_sub(SUFFIX)..length;
            vec![end]
        }
    };
    let mut pieces = Pieces::default();
    pieces.extend(&ranges, file.read_ranges(&ranges).await?);
    let range = footer_range(key, length, &pieces)?;
    for range in pieces.missing(std::slice::from_ref(&range)) {
        let bytes = file.read_ranges(std::slice::from_ref(&range)).await?;
        pieces.extend(std::slice::from_ref(&range), bytes);
    }
    let bytes = piece(key, &pieces, &range)?;
    let footer = Arc::new(decode(key, &bytes)?);
    check(key, &footer, range.start)?;
    decoded::keep(key, Form::Footer, footer.clone());
    Ok(Opened { footer, pieces })
}

/// Where the trailer says that the footer lies.
fn footer_range(key: &FileKey, length: u64, pieces: &Pieces) -> Result<Range<u64>> {
    let trailer = piece(key, pieces, &(length - TRAILER..length))?;
    let trailer: &[u8; TRAILER as usize] = trailer
        .as_ref()
        .try_into()
        .map_err(|_| corrupt(key, "its end was not read"))?;
    let tail = FooterTail::try_from(*trailer)
        .map_err(|source| corrupt(key, "it does not end as one").with_source(source))?;
    if tail.is_encrypted_footer() {
        return Err(Error::new(
            ErrorKind::Unsupported,
            format!("can't read {}: it is encrypted", key.location),
        ));
    }
    let end = length - TRAILER;
    let start = end
        .checked_sub(tail.metadata_length() as u64)
        .filter(|start| *start >= 4)
        .ok_or_else(|| corrupt(key, "its footer would begin before the file"))?;
    Ok(start..end)
}

fn piece(key: &FileKey, pieces: &Pieces, range: &Range<u64>) -> Result<Bytes> {
    pieces
        .get(range)
        .ok_or_else(|| corrupt(key, "its end was not read"))
}

fn decode(key: &FileKey, bytes: &Bytes) -> Result<ParquetMetaData> {
    claims::footer(bytes)
        .map_err(|what| corrupt(key, &format!("its footer is damaged: {what}")))?;
    // Hostile bytes have made decoders panic before.
    std::panic::catch_unwind(|| ParquetMetaDataReader::decode_metadata(bytes))
        .map_err(|_| corrupt(key, "its footer makes the decoder panic"))?
        .map_err(|source| corrupt(key, "its footer is damaged").with_source(source))
}

/// What everything after this relies on: numbers that are not negative and add up, chunks that lie before the footer.
fn check(key: &FileKey, footer: &ParquetMetaData, end: u64) -> Result<()> {
    let columns = footer.file_metadata().schema_descr().num_columns();
    let mut rows = 0i64;
    for group in footer.row_groups() {
        if group.num_rows() < 0 || group.num_columns() != columns {
            return Err(corrupt(key, "its footer contradicts itself"));
        }
        rows = rows.saturating_add(group.num_rows());
        for chunk in group.columns() {
            match chunks::range(chunk) {
                Some(range) if range.end <= end => {}
                _ => return Err(corrupt(key, "its footer points outside the file")),
            }
            let flat = chunk.column_descr().max_rep_level() == 0;
            if flat && chunk.num_values() != group.num_rows() {
                return Err(corrupt(key, "its columns differ in length"));
            }
        }
    }
    match rows == footer.file_metadata().num_rows() {
        true => Ok(()),
        false => Err(corrupt(key, "its footer contradicts itself")),
    }
}

fn corrupt(key: &FileKey, what: &str) -> Error {
    Error::new(
        ErrorKind::Corrupt,
        format!(
            "{} is no Parquet file of {} bytes: {what}",
            key.location,
            key.length.unwrap_or_default()
        ),
    )
}
