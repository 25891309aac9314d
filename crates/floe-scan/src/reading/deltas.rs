//! Lengths stored as deltas (DELTA_LENGTH_BYTE_ARRAY, DELTA_BYTE_ARRAY): how many there are is told in front, and the decoder makes
//! room for all of them before it looks whether they are there. What they claim is checked first.

use std::num::NonZero;

use parquet::basic::Encoding;
use parquet::column::page::Page;
use parquet::errors::{ParquetError, Result};

use super::claims;

/// Bytes of a decoded length.
const LENGTH_BYTES: u64 = 4;

/// The greatest levels of a column: repetition, definition.
#[derive(Clone, Copy, Debug)]
pub(super) struct Levels {
    pub(super) repetition: i16,
    pub(super) definition: i16,
}

/// Refuses a page that claims more lengths than its bytes can hold.
pub(super) fn check(page: &Page, levels: Levels) -> Result<()> {
    let runs = match page.encoding() {
        Encoding::DELTA_LENGTH_BYTE_ARRAY => 1,
        // How much of the value before is repeated, then how much is added.
        Encoding::DELTA_BYTE_ARRAY => 2,
        _ => return Ok(()),
    };
    // A page that ends within its levels claims nothing; the decoder finds that out itself.
    let mut rest = values(page, levels).unwrap_or_default();
    for _ in 0..runs {
        let Some(run) = Run::begin(&mut rest) else {
            return Ok(());
        };
        let bytes = run.values.saturating_mul(LENGTH_BYTES);
        if !claims::may_unpack_to(rest.len() as u64, bytes) {
            return Err(ParquetError::General(format!(
                "a page claims {} values in {} bytes",
                run.values,
                rest.len()
            )));
        }
        let Some(after) = run.skip(rest) else {
            return Ok(());
        };
        rest = after;
    }
    Ok(())
}

/// The bytes of a page behind its levels.
fn values(page: &Page, levels: Levels) -> Option<&[u8]> {
    match page {
        Page::DataPage {
            buf,
            num_values,
            rep_level_encoding,
            def_level_encoding,
            ..
        } => {
            let after = skip_levels(buf, *rep_level_encoding, levels.repetition, *num_values)?;
            skip_levels(after, *def_level_encoding, levels.definition, *num_values)
        }
        Page::DataPageV2 {
            buf,
            rep_levels_byte_len,
            def_levels_byte_len,
            ..
        } => {
            let levels = rep_levels_byte_len.checked_add(*def_levels_byte_len)?;
            buf.get(usize::try_from(levels).ok()?..)
        }
        Page::DictionaryPage { .. } => None,
    }
}

fn skip_levels(bytes: &[u8], encoding: Encoding, most: i16, values: u32) -> Option<&[u8]> {
    if most == 0 {
        return Some(bytes);
    }
    // RLE has its length in front; the older form has a fixed number of bits for each value.
    if encoding == Encoding::RLE {
        let (length, rest) = bytes.split_first_chunk()?;
        return rest.get(usize::try_from(u32::from_le_bytes(*length)).ok()?..);
    }
    let bits = u64::from(i16::BITS - most.leading_zeros()) * u64::from(values);
    bytes.get(usize::try_from(bits.div_ceil(8)).ok()?..)
}

/// A run of deltas: blocks of so many values, in so many miniblocks each.
struct Run {
    miniblocks: NonZero<usize>,
    /// Of a miniblock.
    size: u64,
    values: u64,
}

impl Run {
    /// Reads what stands in front of a run; `None` if it ends early or can't be.
    fn begin(rest: &mut &[u8]) -> Option<Self> {
        let block = number(rest)?;
        let miniblocks = NonZero::new(usize::try_from(number(rest)?).ok()?)?;
        let values = number(rest)?;
        // The first value.
        number(rest)?;
        let size = block / miniblocks.get() as u64;
        (size > 0).then_some(Self {
            miniblocks,
            size,
            values,
        })
    }

    /// What follows its blocks; `None` if they end early.
    fn skip<'a>(&self, mut rest: &'a [u8]) -> Option<&'a [u8]> {
        let mut left = self.values.saturating_sub(1);
        while left > 0 {
            // The smallest delta.
            number(&mut rest)?;
            let (widths, packed) = rest.split_at_checked(self.miniblocks.get())?;
            let mut bits = 0u64;
            for width in widths {
                if left == 0 {
                    break;
                }
                bits = bits.checked_add(u64::from(*width).checked_mul(self.size)?)?;
                left = left.saturating_sub(self.size);
            }
            rest = packed.get(usize::try_from(bits / 8).ok()?..)?;
        }
        Some(rest)
    }
}

/// A number of seven bits a byte, lowest first.
fn number(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, after) = rest.split_first()?;
        *rest = after;
        value |= u64::from(byte & 0x7f) << shift;
        if *byte < 0x80 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, RecordBatch, StringArray};
    use bytes::Bytes;
    use parquet::arrow::ArrowWriter;
    use parquet::file::properties::{WriterProperties, WriterVersion};
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::schema::types::ColumnPath;

    use super::*;

    const LEVELS: Levels = Levels {
        repetition: 0,
        definition: 1,
    };

    /// The data pages of a column of texts, a third of them NULL.
    fn pages(encoding: Encoding, version: WriterVersion) -> Vec<Page> {
        let texts: StringArray = (0..5000)
            .map(|row| (row % 3 > 0).then(|| "ab".repeat(row % 70)))
            .collect();
        let properties = WriterProperties::builder()
            .set_writer_version(version)
            .set_dictionary_enabled(false)
            .set_column_encoding(ColumnPath::from("texts"), encoding)
            .set_data_page_row_count_limit(1500)
            .set_write_batch_size(100)
            .build();
        let texts: ArrayRef = Arc::new(texts);
        let batch = RecordBatch::try_from_iter([("texts", texts)]).unwrap();
        let mut bytes = Vec::new();
        let mut writer =
            ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        let file = SerializedFileReader::new(Bytes::from(bytes)).unwrap();
        let group = file.get_row_group(0).unwrap();
        let pages = group.get_column_page_reader(0).unwrap();
        pages.map(Result::unwrap).collect()
    }

    #[test]
    fn what_writers_write_is_believed_and_walked_to_its_end() {
        for encoding in [
            Encoding::DELTA_LENGTH_BYTE_ARRAY,
            Encoding::DELTA_BYTE_ARRAY,
        ] {
            for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
                let pages = pages(encoding, version);
                assert!(pages.len() > 2);
                for page in &pages {
                    assert_eq!(page.encoding(), encoding);
                    check(page, LEVELS).unwrap();
                    let mut rest = values(page, LEVELS).unwrap();
                    let first = Run::begin(&mut rest).unwrap();
                    assert!(first.values > 300 && first.values < u64::from(page.num_values()));
                    if encoding == Encoding::DELTA_BYTE_ARRAY {
                        let mut rest = first.skip(rest).unwrap();
                        assert_eq!(Run::begin(&mut rest).unwrap().values, first.values);
                    }
                }
            }
        }
    }

    fn page(encoding: Encoding, bytes: &[u8]) -> Page {
        Page::DataPage {
            buf: Bytes::copy_from_slice(bytes),
            num_values: 10,
            encoding,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        }
    }

    #[test]
    fn more_values_than_bytes_can_hold_are_refused() {
        // Blocks of 128 values in 4 miniblocks; 2^34 values, the first of which is 0.
        let many = [0x80, 1, 4, 0x80, 0x80, 0x80, 0x80, 0x40, 0];
        let one = [0x80, 1, 4, 1, 0];
        let none = Levels {
            repetition: 0,
            definition: 0,
        };
        let refused = |encoding, bytes: &[u8]| check(&page(encoding, bytes), none).is_err();
        assert!(refused(Encoding::DELTA_LENGTH_BYTE_ARRAY, &many));
        assert!(refused(Encoding::DELTA_BYTE_ARRAY, &many));
        assert!(!refused(Encoding::DELTA_BYTE_ARRAY, &[one, one].concat()));
        assert!(refused(
            Encoding::DELTA_BYTE_ARRAY,
            &[&one[..], &many[..]].concat()
        ));
        assert!(!refused(Encoding::DELTA_LENGTH_BYTE_ARRAY, &one));
        // Levels of one byte before the values.
        let behind_levels = [&[1, 0, 0, 0, 3][..], &many[..]].concat();
        assert!(check(&page(Encoding::DELTA_BYTE_ARRAY, &behind_levels), LEVELS).is_err());
        for cut in 0..many.len() - 1 {
            assert!(!refused(Encoding::DELTA_BYTE_ARRAY, &many[..cut]));
        }
    }
}
