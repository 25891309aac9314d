//! Where a file's footer and columns should lie, from the sizes that its manifest tells: both can then be asked for at once.
//! What arrives is checked against the footer, so a wrong guess costs bytes, never a wrong row.

use super::footer::Approach;
use crate::task::DataFile;

/// Bytes before the first column chunk.
const MAGIC: u64 = 4;
/// More than this is no footer; the sizes tell something else then.
const LONGEST_FOOTER: u64 = 4 << 20;
/// Writers begin another row group at about this many rows or bytes; a file of more has several, whose chunks no sizes tell.
const GROUP_ROWS: u64 = 1 << 20;
const GROUP_BYTES: u64 = 128 << 20;

/// How to reach the footer of a file, given the ids of all leaf columns in the order that its writer probably had, and those that are wanted.
pub(super) fn approach(
    file: &DataFile,
    whole_file_bytes: u64,
    order: &[i32],
    wanted: &[i32],
) -> Approach {
    if file.bytes <= whole_file_bytes {
        return Approach::Whole;
    }
    let size = |id: i32| {
        let at = file.column_sizes.binary_search_by_key(&id, |(id, _)| *id);
        at.ok().map(|at| file.column_sizes[at].1)
    };
    let mut columns = file.column_sizes.iter().map(|(_, size)| *size);
    let Some(start) = columns.try_fold(MAGIC, u64::checked_add) else {
        return Approach::Suffix;
    };
    if start == MAGIC || start >= file.bytes || file.bytes - start > LONGEST_FOOTER {
        return Approach::Suffix;
    }
    let footer = start..file.bytes;
    let mut ranges = vec![footer];
    let known = order.iter().filter(|id| size(**id).is_some()).count();
    if file.rows <= GROUP_ROWS && file.bytes <= GROUP_BYTES && known == file.column_sizes.len() {
        let mut at = MAGIC;
        for id in order {
            let Some(size) = size(*id) else { continue };
            if wanted.contains(id) {
                ranges.push(at..at + size);
            }
            at += size;
        }
    }
    Approach::Guess(ranges)
}

#[cfg(test)]
mod tests {
    use std::ops::Range;
    use std::sync::Arc;

    use iceberg::spec::{DataFileFormat, Struct};

    use super::*;

    fn file(bytes: u64, column_sizes: &[(i32, u64)]) -> DataFile {
        DataFile {
            path: "f".into(),
            format: DataFileFormat::Parquet,
            bytes,
            rows: 10,
            spec_id: 0,
            partition: Arc::new(Struct::empty()),
            data_sequence_number: 1,
            file_sequence_number: Some(1),
            first_row_id: None,
            column_sizes: column_sizes.to_vec(),
            encrypted: false,
            metrics: Vec::new(),
        }
    }

    fn ranges(approach: Approach) -> Vec<Range<u64>> {
        match approach {
            Approach::Guess(ranges) => ranges,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn sizes_place_the_footer_and_the_columns() {
        let sizes = [(1, 100), (2, 50), (7, 30)];
        let guessed = ranges(approach(&file(300, &sizes), 10, &[2, 1, 7], &[1, 7]));
        assert_eq!(guessed, [184..300, 54..154, 154..184]);
    }

    #[test]
    fn columns_of_unknown_order_are_not_guessed() {
        let sizes = [(1, 100), (2, 50), (9, 30)];
        assert_eq!(
            ranges(approach(&file(300, &sizes), 10, &[2, 1], &[1])),
            std::slice::from_ref(&(184..300))
        );
    }

    #[test]
    fn sizes_that_cannot_be_are_not_believed() {
        for sizes in [&[][..], &[(1, 500)], &[(1, u64::MAX)]] {
            let approach = approach(&file(300, sizes), 10, &[1], &[1]);
            assert!(matches!(approach, Approach::Suffix), "{sizes:?}");
        }
    }

    #[test]
    fn small_files_are_read_whole() {
        let approach = approach(&file(300, &[]), 300, &[1], &[1]);
        assert!(matches!(approach, Approach::Whole));
    }
}
