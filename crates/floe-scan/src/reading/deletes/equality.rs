//! Equality deletes: a set of rows, each of which deletes every row that equals it in some columns.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_buffer::BooleanBuffer;

use super::super::layout::Wanted;
use super::super::needs::{self, KeyColumn};
use super::super::open::Shared;
use super::super::rows::below;
use super::keys::Encoder;
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
        into.insert(location, &keys)
    };
    table.decode(EqualitySet::default(), take).await
}

/// A set of rows: their bytes one after the other, found by their hashes.
#[derive(Debug)]
pub(in super::super) struct EqualitySet {
    bytes: Vec<u8>,
    /// Where each row's bytes end.
    ends: Vec<usize>,
    /// Rows by hash, counted from one; zero is free. At most half full, of a length that is a power of two.
    slots: Vec<u32>,
    hasher: RandomState,
}

impl Default for EqualitySet {
    fn default() -> Self {
        Self {
            bytes: Vec::new(),
            ends: Vec::new(),
            slots: vec![0; 16],
            hasher: RandomState::new(),
        }
    }
}

impl EqualitySet {
    /// Bytes that it takes.
    pub(super) fn weight(&self) -> usize {
        self.bytes.capacity() + 8 * self.ends.capacity() + 4 * self.slots.len()
    }

    /// Which of `rows` rows are in it, given its columns; `None` if none is.
    pub(in super::super) fn find(
        &self,
        columns: &[ArrayRef],
        rows: usize,
    ) -> Result<Option<BooleanBuffer>> {
        if self.ends.is_empty() {
            return Ok(None);
        }
        let encoder = Encoder::new(columns).map_err(|kind| unsupported("the table", kind))?;
        let mut key = Vec::new();
        let found = BooleanBuffer::collect_bool(rows, |row| {
            encoder.encode(row, &mut key);
            self.slot_of(&key).is_err()
        });
        Ok((found.count_set_bits() > 0).then_some(found))
    }

    fn insert(&mut self, location: &str, columns: &[ArrayRef]) -> Result<()> {
        let encoder = Encoder::new(columns).map_err(|kind| unsupported(location, kind))?;
        let rows = columns.first().map_or(0, |column| column.len());
        let mut key = Vec::new();
        for row in 0..rows {
            encoder.encode(row, &mut key);
            self.add(&key).ok_or_else(|| {
                Error::new(
                    ErrorKind::Unsupported,
                    format!("{location} deletes by more rows than fit in memory"),
                )
            })?;
        }
        Ok(())
    }

    fn add(&mut self, key: &[u8]) -> Option<()> {
        let Ok(slot) = self.slot_of(key) else {
            return Some(());
        };
        self.bytes.extend_from_slice(key);
        self.ends.push(self.bytes.len());
        self.slots[slot] = u32::try_from(self.ends.len()).ok()?;
        if self.ends.len() * 2 > self.slots.len() {
            self.grow();
        }
        Some(())
    }

    fn grow(&mut self) {
        self.slots = vec![0; self.slots.len() * 2];
        for row in 0..self.ends.len() {
            let mut slot = self.first_slot(self.row(row));
            while self.slots[slot] != 0 {
                slot = (slot + 1) & (self.slots.len() - 1);
            }
            // Rows were counted in 32 bits when they came.
            self.slots[slot] = (row + 1) as u32;
        }
    }

    /// The free slot where a key belongs; an error if it is there already.
    fn slot_of(&self, key: &[u8]) -> std::result::Result<usize, ()> {
        let mut slot = self.first_slot(key);
        loop {
            match self.slots[slot] {
                0 => return Ok(slot),
                row if self.row(row as usize - 1) == key => return Err(()),
                _ => slot = (slot + 1) & (self.slots.len() - 1),
            }
        }
    }

    fn first_slot(&self, key: &[u8]) -> usize {
        self.hasher.hash_one(key) as usize & (self.slots.len() - 1)
    }

    fn row(&self, row: usize) -> &[u8] {
        let start = row.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[row]]
    }
}

fn unsupported(location: &str, kind: &arrow_schema::DataType) -> Error {
    Error::new(
        ErrorKind::Unsupported,
        format!("{location}: equality deletes by a column of type {kind} are not supported"),
    )
}

#[cfg(test)]
mod tests {
    use arrow_array::{Float64Array, Int64Array, StringArray};

    use super::*;

    fn set(columns: &[ArrayRef]) -> EqualitySet {
        let mut set = EqualitySet::default();
        set.insert("f", columns).unwrap();
        set
    }

    fn found(set: &EqualitySet, columns: &[ArrayRef]) -> Vec<bool> {
        let rows = columns[0].len();
        let found = set.find(columns, rows).unwrap();
        found.map_or(vec![false; rows], |found| found.iter().collect())
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
