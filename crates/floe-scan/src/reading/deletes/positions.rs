//! Position delete files: rows of (data file, position), of any number of data files.

use std::collections::HashMap;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, Int64Array, StringArray};
use arrow_schema::DataType;
use iceberg::metadata_columns::{delete_file_path_field, delete_file_pos_field};
use roaring::RoaringTreemap;

use super::super::layout::Wanted;
use super::super::open::Shared;
use super::table::Table;
use crate::decoded::FileKey;
use crate::error::{Error, ErrorKind, Result};
use crate::task::DeleteFile;

/// Deleted positions by data file.
#[derive(Debug, Default)]
pub(super) struct PositionDeletes {
    by_file: HashMap<String, RoaringTreemap>,
}

impl PositionDeletes {
    /// The deleted positions of a data file.
    pub(super) fn of(&self, location: &str) -> Option<&RoaringTreemap> {
        self.by_file.get(location)
    }

    /// Data files that it deletes rows of.
    pub(super) fn files(&self) -> usize {
        self.by_file.len()
    }

    /// Bytes that it takes.
    pub(super) fn weight(&self) -> usize {
        let each = |(path, positions): (&String, &RoaringTreemap)| {
            path.len() + positions.serialized_size() + 96
        };
        self.by_file.iter().map(each).sum()
    }

    fn add(&mut self, location: &str, columns: &[ArrayRef]) -> Result<()> {
        let corrupt = |what: &str| {
            Error::new(
                ErrorKind::Corrupt,
                format!("{location} is no position delete file: {what}"),
            )
        };
        let (paths, positions) = match columns {
            [paths, positions] => (
                paths.as_string_opt::<i32>(),
                positions.as_primitive_opt::<Int64Type>(),
            ),
            _ => (None, None),
        };
        let (Some(paths), Some(positions)) = (paths, positions) else {
            return Err(corrupt("its columns are of other types"));
        };
        if paths.null_count() + positions.null_count() > 0 {
            return Err(corrupt("a path or position is NULL"));
        }
        let mut row = 0;
        while row < paths.len() {
            let path = paths.value(row);
            let run = run_of(paths, row);
            let deleted = match self.by_file.get_mut(path) {
                Some(deleted) => deleted,
                None => self.by_file.entry(path.to_owned()).or_default(),
            };
            extend(deleted, positions, row..run)
                .ok_or_else(|| corrupt("a position is negative"))?;
            row = run;
        }
        Ok(())
    }
}

/// The end of the run of one path that begins at `row`: files are sorted by path.
fn run_of(paths: &StringArray, row: usize) -> usize {
    let path = paths.value(row);
    (row + 1..paths.len())
        .find(|next| paths.value(*next) != path)
        .unwrap_or(paths.len())
}

fn extend(
    deleted: &mut RoaringTreemap,
    positions: &Int64Array,
    rows: std::ops::Range<usize>,
) -> Option<()> {
    for position in &positions.values()[rows] {
        deleted.insert(u64::try_from(*position).ok()?);
    }
    Some(())
}

pub(super) async fn load(
    shared: &Shared,
    key: &FileKey,
    delete: &DeleteFile,
) -> Result<PositionDeletes> {
    let wanted = [
        Wanted {
            field: delete_file_path_field().clone(),
            arrow: DataType::Utf8,
        },
        Wanted {
            field: delete_file_pos_field().clone(),
            arrow: DataType::Int64,
        },
    ];
    let table = Table::fetch(shared, key, delete, &wanted).await?;
    let none = PositionDeletes::default();
    let take = |into: &mut PositionDeletes, location: &str, columns: Vec<ArrayRef>| {
        into.add(location, &columns)
    };
    table.decode(none, take).await
}
