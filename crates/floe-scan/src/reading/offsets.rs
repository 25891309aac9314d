//! Where the pages of column chunks lie (Parquet's offset index): with it, only pages that hold wanted rows are read.

use std::ops::Range;
use std::sync::Arc;

use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::page_index::offset_index::PageLocation;

use super::chunks;

/// The pages of some leaf columns of a row group.
#[derive(Clone, Debug, Default)]
pub(super) struct Offsets(Vec<(usize, Pages)>);

/// The data pages of one column chunk, in order; there is one at the least.
#[derive(Clone, Debug)]
pub(super) struct Pages {
    chunk: Range<u64>,
    locations: Arc<[PageLocation]>,
    starts: Arc<[usize]>,
    rows: usize,
}

impl Offsets {
    /// The pages of a leaf column, where they are known.
    pub(super) fn of(&self, leaf: usize) -> Option<&Pages> {
        let found = self.0.iter().find(|(known, _)| *known == leaf);
        found.map(|(_, pages)| pages)
    }

    pub(super) fn add(&mut self, leaf: usize, pages: Pages) {
        self.0.push((leaf, pages));
    }
}

impl Pages {
    /// The pages of a chunk of so many rows; `None` where they can't be as they are told.
    pub(super) fn new(
        chunk: &ColumnChunkMetaData,
        locations: &[PageLocation],
        rows: usize,
    ) -> Option<Self> {
        let chunk = chunks::range(chunk)?;
        let mut end = chunk.start;
        let mut starts = Vec::with_capacity(locations.len());
        for location in locations {
            let bytes = range(location)?;
            let start = usize::try_from(location.first_row_index).ok()?;
            let follows = match starts.last() {
                Some(before) => start > *before,
                None => start == 0,
            };
            if !follows || start >= rows || bytes.start < end || bytes.is_empty() {
                return None;
            }
            end = bytes.end;
            starts.push(start);
        }
        (end <= chunk.end && !starts.is_empty()).then(|| Self {
            chunk,
            locations: locations.into(),
            starts: starts.into(),
            rows,
        })
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.starts.len()
    }

    /// The first row of each, by position in the row group.
    pub(super) fn starts(&self) -> &[usize] {
        &self.starts
    }

    /// The page that holds a row.
    pub(super) fn at(&self, row: usize) -> usize {
        self.starts.partition_point(|start| *start <= row) - 1
    }

    /// The rows of a page.
    pub(super) fn rows(&self, page: usize) -> Range<usize> {
        self.starts[page]..self.starts.get(page + 1).copied().unwrap_or(self.rows)
    }

    /// As Parquet's reader wants them.
    pub(super) fn locations(&self) -> &[PageLocation] {
        &self.locations
    }

    /// The bytes that these rows (ranges in order) need: the dictionary in front of the pages, and the pages that hold some of them.
    pub(super) fn needed(&self, rows: &[Range<usize>]) -> Vec<Range<u64>> {
        let mut rows = rows.iter().peekable();
        let mut needed = Vec::new();
        for (page, location) in self.locations.iter().enumerate() {
            let own = self.rows(page);
            while rows.next_if(|range| range.end <= own.start).is_some() {}
            if rows.peek().is_some_and(|range| range.start < own.end) {
                needed.extend(range(location));
            }
        }
        let dictionary = range(&self.locations[0]).map(|first| self.chunk.start..first.start);
        needed.extend(dictionary.filter(|dictionary| !dictionary.is_empty()));
        needed
    }
}

fn range(location: &PageLocation) -> Option<Range<u64>> {
    let start = u64::try_from(location.offset).ok()?;
    let length = u64::try_from(location.compressed_page_size).ok()?;
    Some(start..start.checked_add(length)?)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parquet::basic::Type as PhysicalType;
    use parquet::schema::types::{ColumnDescriptor, ColumnPath, Type};

    use super::*;

    /// A chunk of bytes 4 to 104, with a dictionary of ten bytes.
    fn chunk() -> ColumnChunkMetaData {
        let leaf = Type::primitive_type_builder("c", PhysicalType::INT64)
            .build()
            .unwrap();
        let column = ColumnDescriptor::new(Arc::new(leaf), 0, 0, ColumnPath::from("c"));
        ColumnChunkMetaData::builder(Arc::new(column))
            .set_dictionary_page_offset(Some(4))
            .set_data_page_offset(14)
            .set_total_compressed_size(100)
            .build()
            .unwrap()
    }

    fn location(offset: i64, compressed_page_size: i32, first_row_index: i64) -> PageLocation {
        PageLocation {
            offset,
            compressed_page_size,
            first_row_index,
        }
    }

    #[test]
    fn rows_need_the_dictionary_and_their_own_pages() {
        let told = [
            location(14, 30, 0),
            location(44, 30, 100),
            location(74, 30, 150),
        ];
        let pages = Pages::new(&chunk(), &told, 200).unwrap();
        assert_eq!((pages.at(0), pages.at(99), pages.at(150)), (0, 0, 2));
        assert_eq!((pages.rows(1), pages.rows(2)), (100..150, 150..200));
        let bytes = [14..44, 44..74, 74..104];
        let one = |rows: Range<usize>| std::iter::once(rows).collect::<Vec<_>>();
        for (rows, wanted) in [
            (one(0..1), vec![0]),
            (one(99..101), vec![0, 1]),
            (vec![100..120, 130..150], vec![1]),
            (vec![3..5, 199..200], vec![0, 2]),
            (vec![], vec![]),
        ] {
            let dictionary = 4..14;
            let wanted = wanted.iter().map(|page: &usize| bytes[*page].clone());
            let wanted: Vec<_> = wanted.chain([dictionary]).collect();
            assert_eq!(pages.needed(&rows), wanted, "{rows:?}");
        }
    }

    #[test]
    fn pages_that_cannot_be_are_not_believed() {
        for told in [
            vec![],
            vec![location(14, 30, 1)],
            vec![location(14, 30, 0), location(44, 30, 0)],
            vec![location(14, 30, 0), location(44, 30, 200)],
            vec![location(14, 30, 0), location(40, 30, 100)],
            vec![location(14, 91, 0)],
            vec![location(2, 30, 0)],
            vec![location(14, 0, 0)],
            vec![location(14, -1, 0)],
            vec![location(-1, 30, 0)],
            vec![location(i64::MAX, i32::MAX, 0)],
        ] {
            assert!(Pages::new(&chunk(), &told, 200).is_none(), "{told:?}");
        }
    }
}
