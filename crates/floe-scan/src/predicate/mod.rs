//! Conditions over a table's columns: bound to field ids, evaluated exactly on rows and safely on what is known of a file.
//!
//! ```text
//!  iceberg's expression, SQL ──▶ bind, fit       names -> field ids, literals -> the column's type
//!                                   │
//!                               Predicate ─────▶ evaluate, membership      rows -> a truth for each
//!                                   │
//!  partition values, metrics ──▶ Knowledge ────▶ truths, residual          file -> truths that its rows may give
//! ```

mod bind;
mod bucket;
mod calendar;
mod connect;
pub(crate) mod datum;
mod display;
mod evaluate;
mod fit;
mod inverse;
mod known;
mod membership;
mod metrics;
mod partition;
mod residual;
mod truths;

use std::fmt;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray};
use iceberg::spec::{Datum, PrimitiveType};

use crate::error::Result;

pub use datum::decimal;
pub use known::{Both, Bound, Knowledge, Known};
pub use metrics::{MetricsKnowledge, read_bound};
pub use partition::{PartitionKnowledge, SummaryKnowledge};
pub use truths::Truths;

/// A condition with SQL's three truths. Floats compare as Spark has them: NaN = NaN, NaN is greatest, -0.0 = 0.0.
#[derive(Clone, Debug)]
pub enum Predicate {
    /// True (or false) of every row.
    Constant(bool),
    /// All of them.
    And(Vec<Predicate>),
    /// Any of them.
    Or(Vec<Predicate>),
    /// The contrary; NULL stays NULL.
    Not(Box<Predicate>),
    /// Whether it is true (not false, not NULL); never NULL itself.
    IsTrue(Box<Predicate>),
    /// Whether it is NULL; never NULL itself.
    IsUnknown(Box<Predicate>),
    /// A column against a value of its type; NULL where the column is.
    Compare(Column, Comparison, Datum),
    /// Whether the column is one of these values (all of its type); NULL where the column is.
    In(Column, Vec<Datum>),
    /// Whether a string column begins with this; NULL where the column is.
    StartsWith(Column, String),
    /// Whether the column is NULL.
    IsNull(Column),
    /// Whether a float is NaN; false where the column is NULL.
    IsNan(Column),
    /// A condition that only rows can tell.
    Opaque(Arc<dyn RowCondition>),
}

/// A column of primitive type: of the table, or of a struct in it (NULL where the struct is).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Column {
    /// Its field id.
    pub id: i32,
    /// Its name for people, with dots between the levels.
    pub name: String,
    /// Its type in the schema that is read.
    pub kind: PrimitiveType,
}

/// How a column is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Comparison {
    /// `=`
    Equal,
    /// `<>`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

/// Rows under evaluation: their columns by field id.
pub trait Rows {
    /// How many.
    fn len(&self) -> usize;
    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// A *top-level or nested* primitive column by its field id, or a whole top-level column of any type, `len()` long.
    fn column(&self, id: i32) -> Result<ArrayRef>;
}

/// A condition from outside, such as an expression of DataFusion: evaluated on rows, opaque to pruning.
pub trait RowCondition: fmt::Debug + fmt::Display + Send + Sync {
    /// Field ids of the top-level columns that it needs.
    fn columns(&self) -> &[i32];
    /// Its truth for each row; NULL is unknown.
    fn evaluate(&self, rows: &dyn Rows) -> Result<BooleanArray>;
}

#[cfg(test)]
mod tests;
