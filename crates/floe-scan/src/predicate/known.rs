//! What is known of the values that a column has in one file, or in all files of a manifest. Knowing less is always allowed.

use std::cmp::Ordering;

use iceberg::spec::Datum;

use super::Column;
use super::datum::order;

/// A value that no value of the column but NULL and NaN goes beyond.
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    /// The value, of the column's type.
    pub datum: Datum,
    /// Whether some row holds this very value; otherwise it may be a truncated one.
    pub exact: bool,
}

impl Bound {
    /// A bound that some row holds.
    pub fn exact(datum: Datum) -> Self {
        Self { datum, exact: true }
    }

    /// A bound that may lie beyond all values.
    pub fn loose(datum: Datum) -> Self {
        Self {
            datum,
            exact: false,
        }
    }
}

/// What is known of a column's values in some rows.
///
/// The three flags say what *may* be there: with only `nulls`, every row is NULL. The bounds speak of values that are neither NULL nor NaN.
#[derive(Clone, Debug, PartialEq)]
pub struct Known {
    /// No value is smaller.
    pub lower: Option<Bound>,
    /// No value is greater.
    pub upper: Option<Bound>,
    /// Every string, or binary value, begins with these bytes.
    pub prefix: Option<Vec<u8>>,
    /// Some rows may be NULL.
    pub nulls: bool,
    /// Some rows may hold a value that is neither NULL nor NaN.
    pub values: bool,
    /// Some rows may hold NaN (of columns other than floats nobody asks).
    pub nans: bool,
}

impl Default for Known {
    fn default() -> Self {
        Self::anything()
    }
}

impl Known {
    /// Nothing is known.
    pub fn anything() -> Self {
        Self {
            lower: None,
            upper: None,
            prefix: None,
            nulls: true,
            values: true,
            nans: true,
        }
    }

    /// Every row is NULL.
    pub fn null() -> Self {
        Self {
            values: false,
            nans: false,
            ..Self::anything()
        }
    }

    /// No row is NULL.
    pub fn not_null() -> Self {
        Self {
            nulls: false,
            ..Self::anything()
        }
    }

    /// Every row holds this value, which may be NaN.
    pub fn value(datum: Datum) -> Self {
        let nan = datum.is_nan();
        let known = Self {
            nulls: false,
            values: !nan,
            nans: nan,
            ..Self::anything()
        };
        let bound = Bound::exact(datum);
        known.between(Some(bound.clone()), Some(bound))
    }

    /// The same with these bounds. Bounds that are NaN, of different types or the wrong way round say nothing: their writer did not know.
    #[must_use]
    pub fn between(mut self, lower: Option<Bound>, upper: Option<Bound>) -> Self {
        let nan = [&lower, &upper]
            .iter()
            .any(|bound| bound.as_ref().is_some_and(|b| b.datum.is_nan()));
        let ordered = match (&lower, &upper) {
            (Some(lower), Some(upper)) => matches!(
                order(&lower.datum, &upper.datum),
                Some(Ordering::Less | Ordering::Equal)
            ),
            _ => true,
        };
        (self.lower, self.upper) = match ordered && !nan {
            true => (lower, upper),
            false => (None, None),
        };
        self
    }

    /// What two sources know together. Sources that contradict each other are wrong in some way that nobody can tell: then nothing is known.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let (nulls, values, nans) = (
            self.nulls && other.nulls,
            self.values && other.values,
            self.nans && other.nans,
        );
        let Some(prefix) = longer(self.prefix, other.prefix) else {
            return Self::anything();
        };
        let lower = tighter(self.lower, other.lower, Ordering::Greater);
        let upper = tighter(self.upper, other.upper, Ordering::Less);
        let inverted = match (&lower, &upper) {
            (Some(lower), Some(upper)) => {
                order(&lower.datum, &upper.datum) == Some(Ordering::Greater)
            }
            _ => false,
        };
        if (values && inverted) || !(nulls || values || nans) {
            return Self::anything();
        }
        let known = Self {
            prefix,
            nulls,
            values,
            nans,
            ..Self::anything()
        };
        known.between(lower, upper)
    }

    /// Whether bytes may belong to a value, judged by the prefix alone.
    pub(super) fn may_begin_with(&self, bytes: &[u8]) -> bool {
        match &self.prefix {
            Some(prefix) => prefix.starts_with(bytes) || bytes.starts_with(prefix),
            None => true,
        }
    }
}

fn tighter(one: Option<Bound>, other: Option<Bound>, wanted: Ordering) -> Option<Bound> {
    match (one, other) {
        (Some(one), Some(other)) => match order(&one.datum, &other.datum) {
            Some(order) if order == wanted => Some(one),
            Some(Ordering::Equal) if one.exact => Some(one),
            _ => Some(other),
        },
        (one, other) => one.or(other),
    }
}

/// The longer of two prefixes of the same values; `None` if no value can have both.
#[expect(clippy::option_option, reason = "a contradiction, and no prefix")]
fn longer(one: Option<Vec<u8>>, other: Option<Vec<u8>>) -> Option<Option<Vec<u8>>> {
    match (one, other) {
        (Some(one), Some(other)) if one.starts_with(&other) => Some(Some(one)),
        (Some(one), Some(other)) if other.starts_with(&one) => Some(Some(other)),
        (Some(_), Some(_)) => None,
        (one, other) => Some(one.or(other)),
    }
}

/// A source of what is known about some rows: a file's partition values, its metrics, a row group's statistics.
///
/// # Contract
/// What it says holds for every row; it may say less than it could.
pub trait Knowledge {
    /// What is known of this column.
    fn column(&self, column: &Column) -> Known;

    /// Whether some row may hold exactly this value: `false` only if none does. Bucket partitions and bloom filters answer here.
    /// Never asked for NaN or zero of a float, which have several bit patterns.
    fn may_equal(&self, column: &Column, datum: &Datum) -> bool {
        let _ = (column, datum);
        true
    }
}

/// Two sources about the same rows.
pub struct Both<'a>(pub &'a dyn Knowledge, pub &'a dyn Knowledge);

impl Knowledge for Both<'_> {
    fn column(&self, column: &Column) -> Known {
        self.0.column(column).and(self.1.column(column))
    }

    fn may_equal(&self, column: &Column, datum: &Datum) -> bool {
        self.0.may_equal(column, datum) && self.1.may_equal(column, datum)
    }
}
