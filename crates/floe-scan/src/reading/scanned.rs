//! Which rows of a row group are decoded, and which of those are deleted.

use std::collections::VecDeque;
use std::ops::Range;

use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder};
use parquet::arrow::arrow_reader::RowSelection;

/// Live rows of a run, on average, from which skipping the deleted ones costs less than decoding them.
const WORTH_SKIPPING: usize = 64;

/// Rows of a run, taken or skipped, from which on average Parquet's reader skips: it decodes shorter ones and drops them.
const SKIPPED_FROM: usize = 32;

/// Whether Parquet's reader never looks at pages between so many ranges of a group's rows.
pub(super) fn skips_between(ranges: usize, rows: usize) -> bool {
    let runs = ranges.saturating_mul(2).saturating_add(1);
    rows >= runs.saturating_mul(SKIPPED_FROM)
}

/// Rows that a pass decodes, in order, of which batches take one after the other.
#[derive(Clone, Debug)]
pub(super) struct Scanned {
    ranges: VecDeque<Range<usize>>,
}

impl Scanned {
    /// These rows: ranges in order that do not touch.
    pub(super) fn new(ranges: impl IntoIterator<Item = Range<usize>>) -> Self {
        let ranges = ranges.into_iter().filter(|range| !range.is_empty());
        Self {
            ranges: ranges.collect(),
        }
    }

    /// Rows not yet taken.
    pub(super) fn left(&self) -> usize {
        self.ranges.iter().map(Range::len).sum()
    }

    /// How many stretches that do not touch.
    pub(super) fn ranges(&self) -> usize {
        self.ranges.len()
    }

    /// The next rows; fewer if there aren't as many.
    pub(super) fn take(&mut self, rows: usize) -> Vec<Range<usize>> {
        let mut left = rows;
        let mut taken = Vec::new();
        while left > 0
            && let Some(range) = self.ranges.front_mut()
        {
            let end = range.end.min(range.start + left);
            left -= end - range.start;
            taken.push(range.start..end);
            match end == range.end {
                true => drop(self.ranges.pop_front()),
                false => range.start = end,
            }
        }
        taken
    }

    /// What Parquet's reader must know; `None` if it is all of a group of `rows`.
    pub(super) fn selection(&self, rows: usize) -> Option<RowSelection> {
        let all = self.ranges.len() == 1 && self.ranges[0] == (0..rows);
        let ranges = self.ranges.iter().cloned();
        (!all).then(|| RowSelection::from_consecutive_ranges(ranges, rows))
    }

    /// Leaves out the deleted rows, where runs of live ones are long enough to pay.
    pub(super) fn without(self, dead: &BooleanBuffer) -> Self {
        let mut live = Vec::new();
        for range in &self.ranges {
            let part = !&dead.slice(range.start, range.len());
            let runs = part.set_slices();
            live.extend(runs.map(|(start, end)| range.start + start..range.start + end));
        }
        let rows: usize = live.iter().map(Range::len).sum();
        match live.len() * WORTH_SKIPPING <= rows || rows == 0 {
            true => Self::new(live),
            false => self,
        }
    }
}

/// The bits of these rows, one after the other.
pub(super) fn gather(bits: &BooleanBuffer, rows: &[Range<usize>]) -> BooleanBuffer {
    if let [rows] = rows {
        return bits.slice(rows.start, rows.len());
    }
    let mut gathered = BooleanBufferBuilder::new(rows.iter().map(Range::len).sum());
    for range in rows {
        gathered.append_buffer(&bits.slice(range.start, range.len()));
    }
    gathered.finish()
}

/// Those of `rows` whose bit is set, as ranges; they are added to `kept`, and those that touch made one.
pub(super) fn keep(
    kept: &mut Vec<Range<usize>>,
    rows: &[Range<usize>],
    bits: Option<&BooleanBuffer>,
) {
    let mut add = |range: Range<usize>| match kept.last_mut() {
        Some(last) if last.end == range.start => last.end = range.end,
        _ => kept.push(range),
    };
    let mut before = 0;
    for range in rows {
        match bits {
            None => add(range.clone()),
            Some(bits) => bits
                .slice(before, range.len())
                .set_slices()
                .for_each(|(start, end)| add(range.start + start..range.start + end)),
        }
        before += range.len();
    }
}

/// A bit for each of `outer`'s bits: unset where it is unset, the next of `inner` where it is set.
pub(super) fn nest(outer: &BooleanBuffer, inner: &BooleanBuffer) -> BooleanBuffer {
    let mut nested = BooleanBufferBuilder::new(outer.len());
    nested.append_n(outer.len(), false);
    for (inner_index, index) in outer.set_indices().enumerate() {
        if inner.value(inner_index) {
            nested.set_bit(index, true);
        }
    }
    nested.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bits(set: &[usize], length: usize) -> BooleanBuffer {
        BooleanBuffer::collect_bool(length, |index| set.contains(&index))
    }

    #[test]
    fn batches_take_rows_in_order() {
        let mut scanned = Scanned::new([0..3, 5..5, 7..10]);
        assert_eq!(scanned.left(), 6);
        assert_eq!(scanned.take(4), [0..3, 7..8]);
        assert_eq!(scanned.take(4), std::slice::from_ref(&(8..10)));
        assert!(scanned.take(4).is_empty());
    }

    #[test]
    fn deleted_rows_are_skipped_where_live_runs_are_long() {
        let all = || Scanned::new(std::iter::once(0..1000));
        let few = all().without(&bits(&[500], 1000));
        assert_eq!(few.ranges, [0..500, 501..1000]);
        let many: Vec<_> = (0..1000).step_by(2).collect();
        assert_eq!(all().without(&bits(&many, 1000)).ranges, all().ranges);
        let every: Vec<_> = (0..1000).collect();
        assert_eq!(all().without(&bits(&every, 1000)).left(), 0);
    }

    #[test]
    fn bits_of_rows_are_gathered_and_kept() {
        let all = bits(&[1, 2, 8], 10);
        let rows = [1..3, 7..9];
        let gathered = gather(&all, &rows);
        assert_eq!(gathered, bits(&[0, 1, 3], 4));
        let mut kept = std::iter::once(0..1).collect();
        keep(&mut kept, &rows, Some(&gathered));
        assert_eq!(kept, [0..3, 8..9]);
        keep(&mut kept, std::slice::from_ref(&(9..10)), None);
        assert_eq!(kept, [0..3, 8..10]);
    }

    #[test]
    fn a_mask_within_a_mask() {
        assert_eq!(
            nest(&bits(&[1, 3, 4], 5), &bits(&[0, 2], 3)),
            bits(&[1, 4], 5)
        );
    }
}
