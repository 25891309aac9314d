//! Metrics of a manifest's files, a column for each field: a plan looks at few fields of many files.
//! Memory is in proportion to what the manifest tells, however its files and fields are spread.

use hashbrown::HashMap;
use iceberg::spec::PrimitiveType;

use super::avro::Damage;
use super::details::{Count, End};
use crate::predicate::read_bound;
use crate::task::Metrics;

/// All metrics of all files of a manifest; files are rows.
#[derive(Debug, Default)]
pub(crate) struct MetricColumns {
    pub(super) sizes: Table<Numbers>,
    pub(super) values: Table<Numbers>,
    pub(super) nulls: Table<Numbers>,
    pub(super) nans: Table<Numbers>,
    pub(super) lower: Table<Blobs>,
    pub(super) upper: Table<Blobs>,
}

impl MetricColumns {
    /// Everything is told: lay it out for reading.
    pub(super) fn finish(&mut self) {
        self.sizes.finish();
        self.values.finish();
        self.nulls.finish();
        self.nans.finish();
        self.lower.finish();
        self.upper.finish();
    }

    /// What is told of a column of this type in a row; `None` if nothing is.
    pub(crate) fn of(&self, row: u32, id: i32, kind: &PrimitiveType) -> Option<Metrics> {
        let bound = |table: &Table<Blobs>| read_bound(table.get(row, id)?, kind);
        let metrics = Metrics {
            values: self.values.get(row, id),
            nulls: self.nulls.get(row, id),
            nans: self.nans.get(row, id),
            lower: bound(&self.lower),
            upper: bound(&self.upper),
        };
        (metrics != Metrics::default()).then_some(metrics)
    }

    /// Columns of which anything of one kind is told, for the kind that is told of the most.
    pub(crate) fn width(&self) -> usize {
        let counts = [&self.sizes, &self.values, &self.nulls, &self.nans];
        let bounds = [&self.lower, &self.upper];
        let counts = counts.iter().map(|table| table.columns.len());
        let bounds = bounds.iter().map(|table| table.columns.len());
        counts.chain(bounds).max().unwrap_or(0)
    }

    /// Whether anything is told of a column, in whatever row.
    pub(crate) fn tell_of(&self, id: i32) -> bool {
        let counts = [&self.sizes, &self.values, &self.nulls, &self.nans];
        let bounds = [&self.lower, &self.upper];
        counts.iter().any(|table| table.find(id).is_some())
            || bounds.iter().any(|table| table.find(id).is_some())
    }

    /// A number of a column in a row.
    pub(crate) fn count(&self, count: Count, row: u32, id: i32) -> Option<u64> {
        self.table(count).get(row, id)
    }

    /// The numbers of each column in a row, sorted by field id.
    pub(crate) fn counts(&self, count: Count, row: u32) -> impl Iterator<Item = (i32, u64)> + '_ {
        let columns = self.table(count).columns.iter();
        columns.filter_map(move |(id, column)| Some((*id, column.get(row)?)))
    }

    /// A bound of a column in a row, as it was written.
    pub(crate) fn bound(&self, end: End, row: u32, id: i32) -> Option<&[u8]> {
        self.blobs(end).get(row, id)
    }

    /// The bounds of each column in a row, as they were written, sorted by field id.
    pub(crate) fn bounds(&self, end: End, row: u32) -> impl Iterator<Item = (i32, &[u8])> + '_ {
        let columns = self.blobs(end).columns.iter();
        columns.filter_map(move |(id, column)| Some((*id, column.get(row)?)))
    }

    fn table(&self, count: Count) -> &Table<Numbers> {
        match count {
            Count::Sizes => &self.sizes,
            Count::Values => &self.values,
            Count::Nulls => &self.nulls,
            Count::Nans => &self.nans,
        }
    }

    fn blobs(&self, end: End) -> &Table<Blobs> {
        match end {
            End::Lower => &self.lower,
            End::Upper => &self.upper,
        }
    }

    /// Bytes of each column of a row, sorted by field id.
    pub(crate) fn column_sizes(&self, row: u32) -> Vec<(i32, u64)> {
        let mut sizes = Vec::with_capacity(self.sizes.columns.len());
        sizes.extend(self.counts(Count::Sizes, row));
        sizes
    }

    /// Bytes of memory that it takes.
    pub(super) fn weight(&self) -> usize {
        let numbers = [&self.sizes, &self.values, &self.nulls, &self.nans];
        let blobs = [&self.lower, &self.upper];
        numbers.iter().map(|table| table.weight()).sum::<usize>()
            + blobs.iter().map(|table| table.weight()).sum::<usize>()
    }
}

/// Values of some rows.
pub(super) trait Column: Default {
    fn shrink(&mut self);
    /// Bytes of memory beside the struct itself.
    fn weight(&self) -> usize;
}

/// One kind of metric: its columns by field id.
#[derive(Debug, Default)]
pub(super) struct Table<C> {
    /// Sorted by field id once finished.
    columns: Vec<(i32, C)>,
    /// While it is filled: where each field's column is.
    places: HashMap<i32, usize>,
    /// The column after the one filled last: writers mostly name fields in one order.
    next: usize,
}

impl<C: Column> Table<C> {
    #[inline]
    fn column(&mut self, id: i32) -> &mut C {
        let place = match self.columns.get(self.next) {
            Some((next, _)) if *next == id => self.next,
            _ => *self.places.entry(id).or_insert_with(|| {
                self.columns.push((id, C::default()));
                self.columns.len() - 1
            }),
        };
        self.next = match place + 1 {
            beyond if beyond == self.columns.len() => 0,
            next => next,
        };
        &mut self.columns[place].1
    }

    fn finish(&mut self) {
        self.places = HashMap::new();
        self.columns.sort_by_key(|(id, _)| *id);
        self.columns.shrink_to_fit();
        self.columns
            .iter_mut()
            .for_each(|(_, column)| column.shrink());
    }

    fn find(&self, id: i32) -> Option<&C> {
        let place = self.columns.binary_search_by_key(&id, |(id, _)| *id).ok()?;
        Some(&self.columns[place].1)
    }

    fn weight(&self) -> usize {
        let own = self.columns.capacity() * size_of::<(i32, C)>();
        own + self
            .columns
            .iter()
            .map(|(_, column)| column.weight())
            .sum::<usize>()
    }
}

impl Table<Numbers> {
    /// Tells a count. Negative ones mean nothing.
    #[inline]
    pub(super) fn tell(&mut self, row: u32, id: i32, value: i64) {
        if let Ok(value) = u64::try_from(value) {
            self.column(id).push(row, value);
        }
    }

    fn get(&self, row: u32, id: i32) -> Option<u64> {
        self.find(id)?.get(row)
    }
}

impl Table<Blobs> {
    /// Tells a bound.
    #[inline]
    pub(super) fn tell(&mut self, row: u32, id: i32, value: &[u8]) -> Result<(), Damage> {
        self.column(id).push(row, value)
    }

    fn get(&self, row: u32, id: i32) -> Option<&[u8]> {
        self.find(id)?.get(row)
    }
}

/// Which rows have a value, in ascending order.
#[derive(Debug, Default)]
struct Rows {
    first: u32,
    count: u32,
    /// All of them, unless they follow each other without a gap.
    listed: Option<Vec<u32>>,
}

impl Rows {
    /// Adds a row that is not before the last one; false if it is the last one.
    #[inline]
    fn push(&mut self, row: u32) -> bool {
        let follows = self.first.saturating_add(self.count);
        match &mut self.listed {
            Some(listed) if listed.last() == Some(&row) => return false,
            Some(listed) => listed.push(row),
            None if self.count == 0 => self.first = row,
            None if row == follows => {}
            None if row + 1 == follows => return false,
            None => self.listed = Some((self.first..follows).chain([row]).collect()),
        }
        self.count += 1;
        true
    }

    #[inline]
    fn place(&self, row: u32) -> Option<usize> {
        match &self.listed {
            Some(listed) => listed.binary_search(&row).ok(),
            None => {
                let place = row.checked_sub(self.first)?;
                (place < self.count).then_some(place as usize)
            }
        }
    }

    fn shrink(&mut self) {
        self.listed.iter_mut().for_each(Vec::shrink_to_fit);
    }

    fn weight(&self) -> usize {
        self.listed
            .as_ref()
            .map_or(0, |listed| listed.capacity() * 4)
    }
}

/// Counts, in 32 bits while they fit.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    rows: Rows,
    narrow: Vec<u32>,
    /// All of them, once one was too large.
    wide: Option<Vec<u64>>,
}

impl Numbers {
    #[inline]
    fn push(&mut self, row: u32, value: u64) {
        if !self.rows.push(row) {
            // A field named twice: the last one counts.
            self.narrow.pop();
            self.wide.as_mut().and_then(Vec::pop);
        }
        match (&mut self.wide, u32::try_from(value)) {
            (Some(wide), _) => wide.push(value),
            (None, Ok(value)) => self.narrow.push(value),
            (None, Err(_)) => {
                let narrow = std::mem::take(&mut self.narrow);
                self.wide = Some(narrow.into_iter().map(u64::from).chain([value]).collect());
            }
        }
    }

    #[inline]
    fn get(&self, row: u32) -> Option<u64> {
        let place = self.rows.place(row)?;
        match &self.wide {
            Some(wide) => wide.get(place).copied(),
            None => self.narrow.get(place).copied().map(u64::from),
        }
    }
}

impl Column for Numbers {
    fn shrink(&mut self) {
        self.rows.shrink();
        self.narrow.shrink_to_fit();
        self.wide.iter_mut().for_each(Vec::shrink_to_fit);
    }

    fn weight(&self) -> usize {
        let wide = self.wide.as_ref().map_or(0, |wide| wide.capacity() * 8);
        self.rows.weight() + self.narrow.capacity() * 4 + wide
    }
}

/// Bounds, one behind the other.
#[derive(Debug, Default)]
pub(super) struct Blobs {
    rows: Rows,
    ends: Vec<u32>,
    bytes: Vec<u8>,
}

impl Blobs {
    #[inline]
    fn push(&mut self, row: u32, value: &[u8]) -> Result<(), Damage> {
        if !self.rows.push(row) {
            self.ends.pop();
            self.bytes
                .truncate(self.ends.last().map_or(0, |end| *end as usize));
        }
        self.bytes.extend_from_slice(value);
        let end =
            u32::try_from(self.bytes.len()).map_err(|_| Damage::new("its bounds are too long"))?;
        self.ends.push(end);
        Ok(())
    }

    fn get(&self, row: u32) -> Option<&[u8]> {
        let place = self.rows.place(row)?;
        let start = match place {
            0 => 0,
            place => *self.ends.get(place - 1)?,
        };
        self.bytes
            .get(start as usize..*self.ends.get(place)? as usize)
    }
}

impl Column for Blobs {
    fn shrink(&mut self) {
        self.rows.shrink();
        self.ends.shrink_to_fit();
        self.bytes.shrink_to_fit();
    }

    fn weight(&self) -> usize {
        self.rows.weight() + self.ends.capacity() * 4 + self.bytes.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_found_and_nothing_else() {
        let mut table = Table::<Numbers>::default();
        let told = |row: u32, id: i32| match (row, id) {
            (_, 1) => Some(u64::from(row) * 3),
            (_, 2) if row % 5 == 2 => Some(u64::from(row) << 31),
            (20.., 3) => Some(9),
            _ => None,
        };
        for row in 0..50 {
            for id in [1, 3, 2] {
                if let Some(value) = told(row, id) {
                    table.tell(row, id, i64::try_from(value).unwrap());
                }
            }
        }
        table.tell(50, 2, -1);
        table.finish();
        for row in 0..52 {
            for id in 0..5 {
                let expected = told(row, id).filter(|_| row < 50);
                assert_eq!(table.get(row, id), expected, "{row} {id}");
            }
        }
    }

    #[test]
    fn a_field_named_twice_has_its_last_value() {
        let mut numbers = Table::<Numbers>::default();
        let mut blobs = Table::<Blobs>::default();
        for row in [0, 3, 4] {
            for value in ["a", "bc", "def"] {
                numbers.tell(row, 7, i64::try_from(value.len()).unwrap() << 31);
                blobs.tell(row, 7, value.as_bytes()).unwrap();
            }
        }
        for row in [0, 3, 4] {
            assert_eq!(numbers.get(row, 7), Some(3 << 31));
            assert_eq!(blobs.find(7).unwrap().get(row), Some(&b"def"[..]));
        }
        assert_eq!(blobs.find(7).unwrap().get(1), None);
    }

    #[test]
    fn many_fields_of_few_rows_take_little() {
        let mut table = Table::<Numbers>::default();
        for row in 0..20_000 {
            table.tell(row, 1, 1);
        }
        for id in 0..20_000 {
            table.tell(20_000, id, 1);
        }
        table.finish();
        assert!(table.weight() < 20_000 * 200, "{}", table.weight());
    }
}
