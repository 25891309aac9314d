//! The arithmetic of ranges and blocks, without any I/O: which blocks a range touches, and which
//! requests bring what is missing. Everything here is checked against a plain reference in `tests`.
//!
//! An object is cut into blocks of 64 KiB, the unit of checksums and of what is kept, and 64 blocks
//! make a segment, the unit of files on disk and of the memory tier; so one `u64` tells which
//! blocks of a segment are there.

use std::ops::Range;

/// Bytes of a block. 64 KiB cross a 20 Mbit/s line in 26 ms, about one round trip: less would cost
/// more in requests than it saves in bytes, more would fetch what nobody asked for.
pub(crate) const BLOCK_BYTES: u64 = 64 * 1024;
/// Blocks of a segment: as many as a `u64` has bits.
pub(crate) const SEGMENT_BLOCKS: u64 = 64;
/// Bytes of a segment: 4 MiB.
pub(crate) const SEGMENT_BYTES: u64 = BLOCK_BYTES * SEGMENT_BLOCKS;

/// Which of a segment's blocks; bit i stands for block i.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BlockMask(pub(crate) u64);

impl BlockMask {
    /// The blocks `first..end` of a segment.
    pub(crate) fn of(blocks: Range<u64>) -> Self {
        debug_assert!(blocks.start <= blocks.end && blocks.end <= SEGMENT_BLOCKS);
        let below = |n: u64| {
            if n == SEGMENT_BLOCKS {
                u64::MAX
            } else {
                (1 << n) - 1
            }
        };
        Self(below(blocks.end) & !below(blocks.start))
    }

    pub(crate) fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    pub(crate) fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    pub(crate) fn count(self) -> u64 {
        u64::from(self.0.count_ones())
    }

    /// The runs of neighbouring blocks, in order.
    pub(crate) fn runs(self) -> Vec<Range<u64>> {
        let mut runs: Vec<Range<u64>> = Vec::new();
        for block in (0..SEGMENT_BLOCKS).filter(|b| self.0 >> b & 1 == 1) {
            match runs.last_mut() {
                Some(run) if run.end == block => run.end += 1,
                _ => runs.push(block..block + 1),
            }
        }
        runs
    }
}

/// The part of `range` in each segment that it touches: segment, bytes of the object, blocks of the segment.
pub(crate) fn segments_of(range: Range<u64>) -> impl Iterator<Item = (u64, Range<u64>, BlockMask)> {
    let last = if range.is_empty() {
        range.start / SEGMENT_BYTES
    } else {
        (range.end - 1) / SEGMENT_BYTES + 1
    };
    (range.start / SEGMENT_BYTES..last).map(move |segment| {
        let base = segment * SEGMENT_BYTES;
        let part = range.start.max(base)..range.end.min(base + SEGMENT_BYTES);
        let blocks = (part.start - base) / BLOCK_BYTES..(part.end - base).div_ceil(BLOCK_BYTES);
        (segment, part, BlockMask::of(blocks))
    })
}

/// The bytes of a run of a segment's blocks, cut at the object's length.
pub(crate) fn run_range(segment: u64, blocks: &Range<u64>, length: u64) -> Range<u64> {
    let base = segment * SEGMENT_BYTES;
    base + blocks.start * BLOCK_BYTES..(base + blocks.end * BLOCK_BYTES).min(length)
}

/// `range` widened to whole blocks, cut at the object's length.
pub(crate) fn align(range: &Range<u64>, length: u64) -> Range<u64> {
    range.start / BLOCK_BYTES * BLOCK_BYTES
        ..(range.end.div_ceil(BLOCK_BYTES) * BLOCK_BYTES).min(length)
}

/// What of `wanted` lies in none of `taken`; both are in order, and so is the answer.
pub(crate) fn subtract(wanted: &[Range<u64>], taken: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut left = Vec::new();
    for range in wanted {
        let mut start = range.start;
        for hole in taken {
            if hole.end <= start || hole.start >= range.end {
                continue;
            }
            if hole.start > start {
                left.push(start..hole.start);
            }
            start = hole.end;
        }
        if start < range.end {
            left.push(start..range.end);
        }
    }
    left
}

/// Ranges in order, those that overlap, touch, or lie within `gap` bytes of each other made one.
pub(crate) fn coalesce(mut ranges: Vec<Range<u64>>, gap: u64) -> Vec<Range<u64>> {
    ranges.retain(|range| !range.is_empty());
    ranges.sort_by_key(|range| range.start);
    let mut merged: Vec<Range<u64>> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match merged.last_mut() {
            Some(last) if range.start <= last.end.saturating_add(gap) => {
                last.end = last.end.max(range.end)
            }
            _ => merged.push(range),
        }
    }
    merged
}

/// The requests that bring the `missing` ranges of an object, none larger than `limit` bytes.
///
/// Missing ranges within `gap` bytes are fetched together unless bytes of `present` lie between
/// them: what was fetched once never crosses the line again.
pub(crate) fn plan_requests(
    missing: Vec<Range<u64>>,
    present: &[Range<u64>],
    gap: u64,
    limit: u64,
) -> Vec<Range<u64>> {
    subtract(&coalesce(missing, gap), present)
        .into_iter()
        .flat_map(|range| split(range, limit))
        .collect()
}

/// Cut a range at multiples of `limit`, so that the parts of one object fall together.
fn split(range: Range<u64>, limit: u64) -> Vec<Range<u64>> {
    let mut parts = Vec::new();
    let mut start = range.start;
    while start < range.end {
        let end = ((start / limit + 1) * limit).min(range.end);
        parts.push(start..end);
        start = end;
    }
    parts
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn ranges(up_to: u64) -> impl Strategy<Value = Vec<Range<u64>>> {
        prop::collection::vec((0..up_to, 1..up_to / 4), 0..8).prop_map(|pairs| {
            coalesce(
                pairs
                    .into_iter()
                    .map(|(start, length)| start..start + length)
                    .collect(),
                0,
            )
        })
    }

    fn set(ranges: &[Range<u64>]) -> BTreeSet<u64> {
        ranges.iter().cloned().flatten().collect()
    }

    proptest! {
        #[test]
        fn requests_bring_all_that_is_missing_and_nothing_that_is_there(
            missing in ranges(200), present in ranges(200), gap in 0u64..20, limit in 1u64..64,
        ) {
            let missing = subtract(&missing, &present);
            let requests = plan_requests(missing.clone(), &present, gap, limit);
            let asked = set(&requests);
            prop_assert!(set(&missing).is_subset(&asked));
            prop_assert!(asked.is_disjoint(&set(&present)));
            prop_assert_eq!(asked.len() as u64, requests.iter().map(|r| r.end - r.start).sum::<u64>(), "no byte twice");
            prop_assert!(requests.iter().all(|r| r.end - r.start <= limit));
            prop_assert!(requests.windows(2).all(|pair| pair[0].end <= pair[1].start), "in order");
            // Never more than the gaps that were worth it.
            for byte in asked.difference(&set(&missing)) {
                let before = missing.iter().rev().find(|r| r.end <= *byte).expect("a gap has a left side");
                let after = missing.iter().find(|r| r.start > *byte).expect("and a right one");
                prop_assert!(after.start - before.end <= gap);
            }
        }

        #[test]
        fn subtract_is_set_difference(wanted in ranges(150), taken in ranges(150)) {
            let expected: BTreeSet<_> = set(&wanted).difference(&set(&taken)).copied().collect();
            prop_assert_eq!(set(&subtract(&wanted, &taken)), expected);
        }

        #[test]
        fn segments_cover_a_range_exactly(start in 0..3 * SEGMENT_BYTES, length in 0..3 * SEGMENT_BYTES) {
            let range = start..start + length;
            let parts: Vec<_> = segments_of(range.clone()).collect();
            prop_assert_eq!(parts.iter().map(|(_, part, _)| part.end - part.start).sum::<u64>(), length);
            let mut at = range.start;
            for (segment, part, mask) in parts {
                prop_assert_eq!(part.start, at);
                at = part.end;
                for block in 0..SEGMENT_BLOCKS {
                    let base = segment * SEGMENT_BYTES + block * BLOCK_BYTES;
                    let touched = part.start < base + BLOCK_BYTES && base < part.end;
                    prop_assert_eq!(mask.0 >> block & 1 == 1, touched);
                }
            }
        }

        #[test]
        fn runs_of_a_mask_are_its_blocks(bits: u64) {
            let runs = BlockMask(bits).runs();
            let back = runs.iter().fold(BlockMask::default(), |mask, run| mask.union(BlockMask::of(run.clone())));
            prop_assert_eq!(back, BlockMask(bits));
            prop_assert!(runs.windows(2).all(|pair| pair[0].end < pair[1].start));
        }

        #[test]
        fn aligned_ranges_hold_the_range_and_end_at_the_object(start in 0..SEGMENT_BYTES, length in 1..SEGMENT_BYTES, more in 0..SEGMENT_BYTES) {
            let object = start + length + more;
            let aligned = align(&(start..start + length), object);
            prop_assert!(aligned.start <= start && aligned.end >= start + length && aligned.end <= object);
            prop_assert_eq!(aligned.start % BLOCK_BYTES, 0);
            prop_assert!(aligned.end == object || aligned.end.is_multiple_of(BLOCK_BYTES));
        }
    }
}
