//! Bytes of one file, as ranges brought them.

use std::ops::Range;

use bytes::Bytes;

/// Parts of a file, none of which need touch.
#[derive(Clone, Debug, Default)]
pub(super) struct Pieces(Vec<(u64, Bytes)>);

impl Pieces {
    pub(super) fn extend(&mut self, ranges: &[Range<u64>], bytes: Vec<Bytes>) {
        self.0
            .extend(ranges.iter().map(|range| range.start).zip(bytes));
    }

    /// The bytes of a range, if one piece holds it.
    pub(super) fn get(&self, range: &Range<u64>) -> Option<Bytes> {
        self.0.iter().find_map(|(start, bytes)| {
            let from = usize::try_from(range.start.checked_sub(*start)?).ok()?;
            let to = usize::try_from(range.end.checked_sub(*start)?).ok()?;
            (from <= to && to <= bytes.len()).then(|| bytes.slice(from..to))
        })
    }

    /// Those of the ranges that no piece holds.
    pub(super) fn missing(&self, ranges: &[Range<u64>]) -> Vec<Range<u64>> {
        let missing = ranges.iter().filter(|range| self.get(range).is_none());
        missing.cloned().collect()
    }
}
