//! A segment of an object as it is held in memory: the runs of blocks that are there.

use std::ops::Range;

use bytes::Bytes;

use crate::blocks::{BLOCK_BYTES, BlockMask, SEGMENT_BYTES, run_range};

/// Some blocks of one segment. Never changed: more blocks make another segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    index: u64,
    mask: BlockMask,
    /// Where in the object each run starts, and its bytes; in order, never touching.
    runs: Vec<(u64, Bytes)>,
}

impl Segment {
    /// A segment from runs of whole blocks (the object's last block may be short), in order.
    pub(crate) fn new(index: u64, runs: Vec<(u64, Bytes)>) -> Self {
        let base = index * SEGMENT_BYTES;
        let mask = runs
            .iter()
            .fold(BlockMask::default(), |mask, (start, bytes)| {
                let first = (start - base) / BLOCK_BYTES;
                let end = (start - base + bytes.len() as u64).div_ceil(BLOCK_BYTES);
                mask.union(BlockMask::of(first..end))
            });
        Self { index, mask, runs }
    }

    pub(crate) fn mask(&self) -> BlockMask {
        self.mask
    }

    /// Bytes of content held.
    pub(crate) fn bytes(&self) -> u64 {
        self.runs.iter().map(|(_, bytes)| bytes.len() as u64).sum()
    }

    pub(crate) fn runs(&self) -> &[(u64, Bytes)] {
        &self.runs
    }

    /// The bytes of a range of the object, without a copy, if one run holds them all.
    pub(crate) fn slice(&self, range: &Range<u64>) -> Option<Bytes> {
        let (start, bytes) = self
            .runs
            .iter()
            .rev()
            .find(|(start, _)| *start <= range.start)?;
        let end = start + bytes.len() as u64;
        (range.end <= end)
            .then(|| bytes.slice((range.start - start) as usize..(range.end - start) as usize))
    }

    /// This segment with the blocks of another. Where both hold a block, this one's is kept.
    pub(crate) fn merge(&self, other: &Self, length: u64) -> Self {
        debug_assert_eq!(self.index, other.index);
        if self.mask.contains(other.mask) {
            return self.clone();
        }
        if other.mask.contains(self.mask) {
            return other.clone();
        }
        let mask = self.mask.union(other.mask);
        let runs = mask.runs().into_iter().map(|blocks| {
            let range = run_range(self.index, &blocks, length);
            let bytes = self
                .slice(&range)
                .or_else(|| other.slice(&range))
                .unwrap_or_else(|| {
                    let mut joined = Vec::with_capacity((range.end - range.start) as usize);
                    for block in blocks.clone() {
                        let part = run_range(self.index, &(block..block + 1), length);
                        let bytes = self.slice(&part).or_else(|| other.slice(&part));
                        joined.extend_from_slice(
                            &bytes.expect("each block of the union is in one of the two"),
                        );
                    }
                    joined.into()
                });
            (range.start, bytes)
        });
        Self::new(self.index, runs.collect())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::blocks::SEGMENT_BLOCKS;

    fn content(length: u64) -> Bytes {
        (0..length)
            .map(|i| (i * 31 / 7) as u8)
            .collect::<Vec<_>>()
            .into()
    }

    fn with_blocks(index: u64, mask: BlockMask, whole: &Bytes) -> Segment {
        let length = whole.len() as u64;
        let runs = mask
            .runs()
            .into_iter()
            .map(|run| run_range(index, &run, length))
            .filter(|range| !range.is_empty());
        Segment::new(
            index,
            runs.map(|r| (r.start, whole.slice(r.start as usize..r.end as usize)))
                .collect(),
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn a_merge_holds_every_block_of_both(a: u64, b: u64, cut in 1..SEGMENT_BYTES) {
            let length = SEGMENT_BYTES + cut;
            let whole = content(length);
            let there = BlockMask::of(0..cut.div_ceil(BLOCK_BYTES));
            let (a, b) = (BlockMask(a & there.0), BlockMask(b & there.0));
            let merged = with_blocks(1, a, &whole).merge(&with_blocks(1, b, &whole), length);
            prop_assert_eq!(merged.mask(), a.union(b));
            for block in 0..SEGMENT_BLOCKS {
                let range = run_range(1, &(block..block + 1), length);
                let expected = (merged.mask().0 >> block & 1 == 1)
                    .then(|| whole.slice(range.start as usize..range.end as usize));
                prop_assert_eq!(if range.start < length { merged.slice(&range) } else { None }, expected);
            }
        }
    }

    #[test]
    fn a_slice_of_a_run_is_no_copy() {
        let whole = content(3 * BLOCK_BYTES);
        let segment = Segment::new(0, vec![(0, whole.clone())]);
        let slice = segment.slice(&(10..100_000)).unwrap();
        assert_eq!(slice.as_ptr(), whole[10..].as_ptr());
        assert_eq!(segment.slice(&(10..3 * BLOCK_BYTES + 1)), None);
    }
}
