//! Rows as bytes that are equal where Iceberg calls the rows equal: NULL equals NULL, NaN equals NaN, -0.0 is not 0.0
//! (Java compares floats by their bits), decimals and timestamps by their numbers.

use std::hash::BuildHasher;
use std::sync::{Arc, LazyLock};

use arrow_arith::arity::unary;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef, Float32Array, Float64Array};
use arrow_row::{RowConverter, Rows, SortField};
use arrow_schema::{ArrowError, DataType};
use hashbrown::DefaultHashBuilder;

/// One for the whole process, so that rows are hashed once for all sets; seeded at random, so that nobody can make them collide.
static HASHER: LazyLock<DefaultHashBuilder> = LazyLock::new(DefaultHashBuilder::default);

/// Rows of some columns, encoded and hashed once for all sets in which they are looked up.
pub(in super::super) struct KeyRows {
    rows: Rows,
    hashes: Vec<u64>,
}

impl KeyRows {
    /// The rows of these columns; an error if they are of a type that can't be told apart.
    pub(in super::super) fn new(columns: &[ArrayRef]) -> Result<Self, ArrowError> {
        let columns: Vec<_> = columns.iter().map(canonical).collect();
        let field = |column: &ArrayRef| SortField::new(column.data_type().clone());
        let converter = RowConverter::new(columns.iter().map(field).collect())?;
        let rows = converter.convert_columns(&columns)?;
        let hashes = rows.iter().map(|row| hash(row.data())).collect();
        Ok(Self { rows, hashes })
    }

    pub(super) fn len(&self) -> usize {
        self.hashes.len()
    }

    /// The bytes of a row, and their hash.
    pub(super) fn row(&self, row: usize) -> (u64, &[u8]) {
        (self.hashes[row], self.rows.row(row).data())
    }
}

pub(super) fn hash(row: &[u8]) -> u64 {
    HASHER.hash_one(row)
}

/// With one NaN only.
fn canonical(column: &ArrayRef) -> ArrayRef {
    match column.data_type() {
        DataType::Float32 => {
            let one_nan = |value: f32| if value.is_nan() { f32::NAN } else { value };
            let column: Float32Array = unary(column.as_primitive::<Float32Type>(), one_nan);
            Arc::new(column)
        }
        DataType::Float64 => {
            let one_nan = |value: f64| if value.is_nan() { f64::NAN } else { value };
            let column: Float64Array = unary(column.as_primitive::<Float64Type>(), one_nan);
            Arc::new(column)
        }
        _ => Arc::clone(column),
    }
}
