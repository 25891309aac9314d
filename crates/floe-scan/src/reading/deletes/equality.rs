//! Equality deletes: a set of rows, each of which deletes every row that equals it in some columns.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_buffer::BooleanBuffer;
use hashbrown::HashTable;

use super::super::layout::Wanted;
use super::super::needs::{self, KeyColumn};
use super::super::open::Shared;
use super::super::rows::below;
use super::keys::{self, KeyRows};
use super::table::Table;
use crate::decoded::FileKey;
use crate::error::{Error, ErrorKind, Result};
use crate::task::DeleteFile;

/// The columns of a set of equality deletes.
pub(super) struct KeyColumns {
    wanted: Vec<Wanted>,
    keys: Vec<KeyColumn>,
}

impl KeyColumns {
    /// A name for columns of these ids and types.
    pub(super) fn name(&self) -> String {
        let names = self.keys.iter().map(|key| {
            let field = &self.wanted[key.at].field;
            format!("{}:{} {}", field.id, key.depth, field.field_type)
        });
        names.collect::<Vec<_>>().join(",")
    }
}

pub(super) fn columns(shared: &Shared, ids: &[i32]) -> Result<KeyColumns> {
    let mut wanted = Vec::new();
    let keys = needs::keys(&mut wanted, &shared.spec, ids)?;
    Ok(KeyColumns { wanted, keys })
}

pub(super) async fn load(
    shared: &Arc<Shared>,
    key: &FileKey,
    delete: &DeleteFile,
    columns: KeyColumns,
) -> Result<EqualitySet> {
    if columns.keys.is_empty() {
        return Err(Error::new(
            ErrorKind::Corrupt,
            format!("{} deletes by the values of no column", delete.path),
        ));
    }
    let table = Table::fetch(shared, key, delete, &columns.wanted).await?;
    let keys = columns.keys;
    let take = move |into: &mut EqualitySet, location: &str, columns: Vec<ArrayRef>| {
        let keys: Option<Vec<_>> = keys
            .iter()
            .map(|key| below(&columns[key.at], &vec![0; key.depth]))
            .collect();
        let keys = keys.ok_or_else(|| {
            Error::new(
                ErrorKind::Corrupt,
                format!("{location}: a column of the delete file is no struct"),
            )
        })?;
        let rows = KeyRows::new(&keys).map_err(|source| {
            Error::new(
                ErrorKind::Unsupported,
                format!("{location} deletes by a column of a type that is not supported"),
            )
            .with_source(source)
        })?;
        into.insert(location, &rows)
    };
    // Different rows take a byte each at least, so that no claim of many rows makes room for more than was fetched.
    let rows = usize::try_from(delete.rows.min(delete.bytes)).unwrap_or_default();
    let mut set = table.decode(EqualitySet::with_capacity(rows), take).await?;
    set.bytes.shrink_to_fit();
    Ok(set)
}

/// A set of rows: their bytes one after the other, found by their hashes.
#[derive(Debug, Default)]
pub(in super::super) struct EqualitySet {
    bytes: Vec<u8>,
    /// Where each row's bytes end.
    ends: Vec<u32>,
    /// Rows by hash.
    table: HashTable<u32>,
}

impl EqualitySet {
    fn with_capacity(rows: usize) -> Self {
        Self {
            bytes: Vec::new(),
            ends: Vec::with_capacity(rows),
            table: HashTable::with_capacity(rows),
        }
    }

    /// Bytes that it takes.
    pub(super) fn weight(&self) -> usize {
        self.bytes.capacity() + 4 * self.ends.capacity() + self.table.allocation_size()
    }

    /// Which of these rows are in it; `None` if none is.
    pub(in super::super) fn find(&self, rows: &KeyRows) -> Option<BooleanBuffer> {
        if self.ends.is_empty() {
            return None;
        }
        let found = BooleanBuffer::collect_bool(rows.len(), |row| {
            let (hash, key) = rows.row(row);
            self.table.find(hash, |at| self.row(*at) == key).is_some()
        });
        (found.count_set_bits() > 0).then_some(found)
    }

    fn insert(&mut self, location: &str, rows: &KeyRows) -> Result<()> {
        for row in 0..rows.len() {
            let (hash, key) = rows.row(row);
            if self.table.find(hash, |at| self.row(*at) == key).is_some() {
                continue;
            }
            let at = self.ends.len();
            self.bytes.extend_from_slice(key);
            let end = u32::try_from(self.bytes.len());
            let (Ok(at), Ok(end)) = (u32::try_from(at), end) else {
                return Err(Error::new(
                    ErrorKind::Unsupported,
                    format!("{location} deletes by more rows than fit in memory"),
                ));
            };
            self.ends.push(end);
            let (bytes, ends) = (&self.bytes, &self.ends);
            let rehash = |at: &u32| keys::hash(row_of(bytes, ends, *at));
            self.table.insert_unique(hash, at, rehash);
        }
        Ok(())
    }

    fn row(&self, at: u32) -> &[u8] {
        row_of(&self.bytes, &self.ends, at)
    }
}

fn row_of<'a>(bytes: &'a [u8], ends: &[u32], at: u32) -> &'a [u8] {
    let at = at as usize;
    let start = at.checked_sub(1).map_or(0, |before| ends[before]);
    &bytes[start as usize..ends[at] as usize]
}

#[cfg(test)]
mod tests {
    use arrow_array::{Float64Array, Int64Array, StringArray};

    use super::*;

    fn set(columns: &[ArrayRef]) -> EqualitySet {
        let mut set = EqualitySet::default();
        set.insert("f", &KeyRows::new(columns).unwrap()).unwrap();
        set
    }

    fn found(set: &EqualitySet, columns: &[ArrayRef]) -> Vec<bool> {
        let rows = KeyRows::new(columns).unwrap();
        let found = set.find(&rows);
        found.map_or(vec![false; rows.len()], |found| found.iter().collect())
    }

    #[test]
    fn null_equals_null_and_columns_do_not_run_into_each_other() {
        let deletes: [ArrayRef; 2] = [
            Arc::new(StringArray::from(vec![Some("a"), None, Some("")])),
            Arc::new(StringArray::from(vec![Some("bc"), Some("x"), None])),
        ];
        let rows: [ArrayRef; 2] = [
            Arc::new(StringArray::from(vec![
                Some("a"),
                Some("ab"),
                None,
                None,
                Some(""),
            ])),
            Arc::new(StringArray::from(vec![
                Some("bc"),
                Some("c"),
                Some("x"),
                None,
                None,
            ])),
        ];
        let wanted = [true, false, true, false, true];
        assert_eq!(found(&set(&deletes), &rows), wanted);
    }

    #[test]
    fn floats_are_equal_by_bits_but_for_nan() {
        let negative_nan = f64::from_bits(0xfff8_0000_0000_0001);
        let deletes: [ArrayRef; 1] = [Arc::new(Float64Array::from(vec![f64::NAN, 0.0]))];
        let rows: [ArrayRef; 1] = [Arc::new(Float64Array::from(vec![
            negative_nan,
            0.0,
            -0.0,
            1.0,
        ]))];
        assert_eq!(found(&set(&deletes), &rows), [true, true, false, false]);
    }

    #[test]
    fn many_rows_are_found_again() {
        let even: [ArrayRef; 1] = [Arc::new(Int64Array::from_iter_values(
            (0..20_000).step_by(2),
        ))];
        let all: [ArrayRef; 1] = [Arc::new(Int64Array::from_iter_values(0..20_000))];
        let wanted: Vec<_> = (0..20_000).map(|row| row % 2 == 0).collect();
        assert_eq!(found(&set(&even), &all), wanted);
    }
}
