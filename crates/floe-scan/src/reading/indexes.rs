//! Page indexes and Bloom filters: what they tell beyond the statistics of row groups, where asking them pays.

use std::collections::BTreeSet;
use std::ops::Range;

use bytes::Bytes;
use iceberg::spec::Datum;
use parquet::bloom_filter::Sbbf;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData};

use super::bounds;
use super::chunks;
use super::fields::{FileField, FileKind};
use super::layout::FileSchema;
use super::offsets::{Offsets, Pages};
use super::page_index::{self, PageIndex};
use super::pieces::Pieces;
use super::prune::{GroupKnowledge, Survivor};
use super::scanned;
use super::source::Bytewise;
use super::spec::ReadSpec;
use crate::error::Result;
use crate::predicate::{Bound, Column, Comparison, Knowledge, Known, Predicate};
use crate::task::FileTask;

/// A Bloom filter is asked for if the chunks that it may spare are so many times longer.
const WORTH_A_FILTER: u64 = 8;
/// Stretches of rows that are judged each on its own, at most; of more, none is left out.
const MOST_STRETCHES: usize = 100_000;

/// A file whose row groups are to be narrowed.
pub(super) struct Narrowing<'a> {
    pub(super) spec: &'a ReadSpec,
    pub(super) task: &'a FileTask,
    pub(super) footer: &'a ParquetMetaData,
    pub(super) schema: &'a FileSchema,
    /// The leaf columns that are read.
    pub(super) leaves: &'a [usize],
}

impl Narrowing<'_> {
    /// Leaves out row groups whose Bloom filters rule the condition out, and of the others rows whose pages do.
    pub(super) async fn narrow(
        &self,
        survivors: Vec<Survivor>,
        file: &dyn Bytewise,
        mut pieces: Pieces,
    ) -> Result<Vec<Survivor>> {
        let wanted: Vec<_> = survivors.iter().flat_map(|s| self.wanted(s)).collect();
        let missing = pieces.missing(&wanted);
        if !missing.is_empty() {
            let bytes = file.read_ranges(&missing).await?;
            pieces.extend(&missing, bytes);
        }
        let narrowed = survivors.into_iter().filter_map(|survivor| {
            if !self.is_worthwhile(&survivor) {
                return Some(survivor);
            }
            self.narrow_group(survivor, &pieces)
        });
        Ok(narrowed.collect())
    }

    fn group(&self, survivor: &Survivor) -> &RowGroupMetaData {
        self.footer.row_group(survivor.index)
    }

    fn is_worthwhile(&self, survivor: &Survivor) -> bool {
        survivor.residual.is_some()
            && self.chunk_bytes(survivor) >= self.spec.limits.round_trip_bytes
    }

    /// Bytes of the column chunks that are read.
    fn chunk_bytes(&self, survivor: &Survivor) -> u64 {
        let columns = self.group(survivor).columns();
        let read = self.leaves.iter().filter_map(|leaf| columns.get(*leaf));
        read.filter_map(chunks::range)
            .map(|range| range.end - range.start)
            .sum()
    }

    /// The leaf columns of the fields that a group's condition names, each with its field.
    fn conditional<'a>(
        &'a self,
        survivor: &Survivor,
    ) -> Vec<(&'a FileField, &'a ColumnChunkMetaData)> {
        let columns = self.group(survivor).columns();
        let residual = survivor.residual.iter();
        residual
            .flat_map(|residual| residual.columns())
            .filter_map(|id| {
                let field = self.schema.leaf(id)?;
                Some((field, columns.get(field.leaves.start)?))
            })
            .collect()
    }

    /// The bytes of indexes and filters that are asked.
    fn wanted(&self, survivor: &Survivor) -> Vec<Range<u64>> {
        if !self.is_worthwhile(survivor) {
            return Vec::new();
        }
        let columns = self.group(survivor).columns();
        let conditional = self.conditional(survivor);
        let filters = conditional
            .iter()
            .filter(|(field, _)| field.id.is_some_and(|id| self.asks_filter(survivor, id)))
            .filter_map(|(_, chunk)| self.filter_range(survivor, chunk));
        let mut wanted: Vec<_> = filters.collect();
        // Only where the condition's own columns tell of their pages is anything to be gained.
        let indexes: Vec<_> = conditional
            .iter()
            .filter_map(|(_, chunk)| self.column_index(chunk).zip(self.offset_index(chunk)))
            .collect();
        if !indexes.is_empty() {
            wanted.extend(
                indexes
                    .into_iter()
                    .flat_map(|(column, offset)| [column, offset]),
            );
            let read = self.leaves.iter().filter_map(|leaf| columns.get(*leaf));
            wanted.extend(read.filter_map(|chunk| self.offset_index(chunk)));
        }
        wanted
    }

    fn within_file(&self, start: Option<i64>, length: Option<i32>) -> Option<Range<u64>> {
        let start = u64::try_from(start?).ok()?;
        let end = start.checked_add(u64::try_from(length?).ok()?)?;
        (start < end && end <= self.task.file.bytes).then_some(start..end)
    }

    fn column_index(&self, chunk: &ColumnChunkMetaData) -> Option<Range<u64>> {
        self.within_file(chunk.column_index_offset(), chunk.column_index_length())
    }

    fn offset_index(&self, chunk: &ColumnChunkMetaData) -> Option<Range<u64>> {
        self.within_file(chunk.offset_index_offset(), chunk.offset_index_length())
    }

    /// Where the Bloom filter of a chunk lies, if it has one that is short enough to pay.
    fn filter_range(&self, survivor: &Survivor, chunk: &ColumnChunkMetaData) -> Option<Range<u64>> {
        let range = self.within_file(chunk.bloom_filter_offset(), chunk.bloom_filter_length())?;
        let pays = (range.end - range.start).saturating_mul(WORTH_A_FILTER);
        (pays <= self.chunk_bytes(survivor)).then_some(range)
    }

    /// Whether a Bloom filter of this column may settle the group's condition.
    fn asks_filter(&self, survivor: &Survivor, id: i32) -> bool {
        let mut residual = survivor.residual.iter();
        residual.any(|residual| compares_for_equality(residual, id))
    }

    /// The group with fewer rows, or none if no row can match.
    fn narrow_group(&self, mut survivor: Survivor, pieces: &Pieces) -> Option<Survivor> {
        let Some(residual) = survivor.residual.clone() else {
            return Some(survivor);
        };
        let group = GroupKnowledge {
            spec: self.spec,
            task: self.task,
            footer: self.footer,
            group: self.group(&survivor),
            schema: self.schema,
        };
        let known = Filtered {
            group: &group,
            filters: self.filters(&survivor, pieces),
        };
        if !residual.truths(&known).may_match() {
            return None;
        }
        let pages = self.pages(&survivor, pieces);
        if pages.is_empty() {
            return Some(survivor);
        }
        survivor.selected = matching_rows(&residual, &known, &pages, survivor.rows);
        if survivor.selected.as_ref().is_some_and(Vec::is_empty) {
            return None;
        }
        survivor.offsets = self.offsets(&survivor, pieces);
        Some(survivor)
    }

    fn filters<'a>(&'a self, survivor: &Survivor, pieces: &Pieces) -> Vec<Filter<'a>> {
        let read = |(field, chunk): (&'a FileField, &'a ColumnChunkMetaData)| {
            let bytes = pieces.get(&self.filter_range(survivor, chunk)?)?;
            let filter = Sbbf::from_bytes(&bytes).ok()?;
            (filter.num_blocks() > 0).then_some(Filter {
                field,
                chunk,
                filter,
            })
        };
        let conditional = self.conditional(survivor).into_iter();
        conditional.filter_map(read).collect()
    }

    /// What the page indexes of the condition's columns tell. One that can't be read, or can't be true, tells nothing.
    fn pages<'a>(&'a self, survivor: &Survivor, pieces: &Pieces) -> Vec<ColumnPages<'a>> {
        let read = |(field, chunk): (&'a FileField, &'a ColumnChunkMetaData)| {
            let pages = self.pages_of(survivor, chunk, pieces)?;
            let index = PageIndex::read(chunk, pieces.get(&self.column_index(chunk)?)?)?;
            let told = index.pages() == pages.count() && pages.count() > 1;
            told.then_some(ColumnPages {
                field,
                pages,
                index,
            })
        };
        let conditional = self.conditional(survivor).into_iter();
        conditional.filter_map(read).collect()
    }

    fn offsets(&self, survivor: &Survivor, pieces: &Pieces) -> Offsets {
        let columns = self.group(survivor).columns();
        let mut offsets = Offsets::default();
        for leaf in self.leaves {
            let chunk = columns.get(*leaf);
            if let Some(pages) = chunk.and_then(|chunk| self.pages_of(survivor, chunk, pieces)) {
                offsets.add(*leaf, pages);
            }
        }
        offsets
    }

    fn pages_of(
        &self,
        survivor: &Survivor,
        chunk: &ColumnChunkMetaData,
        pieces: &Pieces,
    ) -> Option<Pages> {
        let bytes = pieces.get(&self.offset_index(chunk)?)?;
        page_index::read_offsets(chunk, bytes, survivor.rows)
    }
}

/// Whether the condition asks, anywhere, whether this column has a certain value.
fn compares_for_equality(condition: &Predicate, id: i32) -> bool {
    match condition {
        Predicate::And(parts) | Predicate::Or(parts) => {
            parts.iter().any(|part| compares_for_equality(part, id))
        }
        Predicate::Not(inner) | Predicate::IsTrue(inner) | Predicate::IsUnknown(inner) => {
            compares_for_equality(inner, id)
        }
        Predicate::Compare(column, comparison, _) => {
            let equality = matches!(comparison, Comparison::Equal | Comparison::NotEqual);
            equality && column.id == id
        }
        Predicate::In(column, _) => column.id == id,
        _ => false,
    }
}

/// The Bloom filter of a leaf column of a group.
struct Filter<'a> {
    field: &'a FileField,
    chunk: &'a ColumnChunkMetaData,
    filter: Sbbf,
}

/// What statistics and Bloom filters of a group tell.
struct Filtered<'a> {
    group: &'a GroupKnowledge<'a>,
    filters: Vec<Filter<'a>>,
}

impl Knowledge for Filtered<'_> {
    fn column(&self, column: &Column) -> Known {
        self.group.column(column)
    }

    fn may_equal(&self, column: &Column, datum: &Datum) -> bool {
        let mut filters = self.filters.iter();
        let Some(of) = filters.find(|filter| filter.field.id == Some(column.id)) else {
            return true;
        };
        let FileKind::Leaf {
            arrow,
            int96: false,
        } = &of.field.kind
        else {
            return true;
        };
        match bounds::write(datum, of.chunk.column_descr(), arrow) {
            Some(stored) => of.filter.check(stored.as_slice()),
            None => true,
        }
    }
}

/// What the page index of a leaf column tells.
struct ColumnPages<'a> {
    field: &'a FileField,
    pages: Pages,
    index: PageIndex,
}

impl ColumnPages<'_> {
    fn known(&self, page: usize, column: &Column, ordered: bool) -> Known {
        if self.index.is_null(page) {
            return Known::null();
        }
        let mut known = Known::anything();
        if let Some(nulls) = self.index.nulls(page) {
            known.nulls = nulls != 0;
        }
        let FileKind::Leaf {
            arrow,
            int96: false,
        } = &self.field.kind
        else {
            return known;
        };
        if !ordered {
            return known;
        }
        let bound = |bytes: Option<Bytes>| {
            let physical = self.index.physical_type()?;
            bounds::read(&bytes?, physical, arrow, &column.kind).map(Bound::loose)
        };
        let [lower, upper] = self.index.bounds(page);
        known.between(bound(lower), bound(upper))
    }
}

/// Rows that lie between two borders of pages, with what all columns' pages tell of them.
struct Stretch<'a> {
    group: &'a Filtered<'a>,
    pages: &'a [ColumnPages<'a>],
    start: usize,
}

impl Knowledge for Stretch<'_> {
    fn column(&self, column: &Column) -> Known {
        let known = self.group.column(column);
        let mut pages = self.pages.iter();
        match pages.find(|pages| pages.field.id == Some(column.id)) {
            Some(of) => {
                let ordered = self.group.group.has_ordered_pages(of.field.leaves.start);
                known.and(of.known(of.pages.at(self.start), column, ordered))
            }
            None => known,
        }
    }

    fn may_equal(&self, column: &Column, datum: &Datum) -> bool {
        self.group.may_equal(column, datum)
    }
}

/// Rows that may match, as ranges that do not touch; `None`: all of them, or too many stretches to be of use.
fn matching_rows(
    residual: &Predicate,
    group: &Filtered<'_>,
    pages: &[ColumnPages<'_>],
    rows: usize,
) -> Option<Vec<Range<usize>>> {
    let borders: BTreeSet<usize> = pages
        .iter()
        .flat_map(|column| column.pages.starts().iter().copied())
        .collect();
    if borders.len() > MOST_STRETCHES {
        return None;
    }
    let ends = borders.iter().copied().skip(1).chain([rows]);
    let mut matching: Vec<Range<usize>> = Vec::new();
    for (start, end) in borders.iter().copied().zip(ends) {
        let known = Stretch {
            group,
            pages,
            start,
        };
        if !residual.truths(&known).may_match() {
            continue;
        }
        match matching.last_mut() {
            Some(last) if last.end == start => last.end = end,
            _ => matching.push(start..end),
        }
    }
    let all = matches!(matching.as_slice(), [one] if *one == (0..rows));
    (!all && scanned::skips_between(matching.len(), rows)).then_some(matching)
}
