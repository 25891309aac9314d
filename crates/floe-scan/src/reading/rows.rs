//! Decoded rows, as conditions see them.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, make_array};
use arrow_buffer::NullBuffer;

use super::needs::Paths;
use crate::error::{Error, ErrorKind, Result};
use crate::predicate::Rows;

/// Rows of a batch, with the top-level columns that a condition asks for.
pub(super) struct BatchRows<'a> {
    pub(super) rows: usize,
    pub(super) columns: Vec<(i32, ArrayRef)>,
    pub(super) paths: &'a Paths,
}

impl Rows for BatchRows<'_> {
    fn len(&self) -> usize {
        self.rows
    }

    fn column(&self, id: i32) -> Result<ArrayRef> {
        let (top, path) = self.paths.of(id).unwrap_or((id, &[]));
        let found = self.columns.iter().find(|(known, _)| *known == top);
        let column = found.and_then(|(_, column)| below(column, path));
        column.ok_or_else(|| {
            Error::new(
                ErrorKind::Unexpected,
                format!("a condition asks for field id {id}, which was not read"),
            )
        })
    }
}

/// The field that lies this way down in structs: NULL where one of them is.
pub(super) fn below(column: &ArrayRef, path: &[usize]) -> Option<ArrayRef> {
    let Some((position, rest)) = path.split_first() else {
        return Some(column.clone());
    };
    let parent = column.as_struct_opt()?;
    let child = parent.columns().get(*position)?;
    let nulls = NullBuffer::union(parent.nulls(), child.logical_nulls().as_ref());
    let child = match nulls {
        None => Arc::clone(child),
        nulls => make_array(child.to_data().into_builder().nulls(nulls).build().ok()?),
    };
    below(&child, rest)
}
