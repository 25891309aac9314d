//! Whether an equality delete can concern a data file at all, as metrics of both tell.

use std::cmp::Ordering;
use std::sync::Arc;

use iceberg::spec::{Datum, PrimitiveType};

use super::context::Fields;
use crate::manifest::Live;
use crate::predicate::datum::{is_float, order};
use crate::task::{DeleteFile, Metrics};

/// An equality-delete file with the metrics of its columns.
#[derive(Debug)]
pub(super) struct EqualityDelete {
    pub(super) file: Arc<DeleteFile>,
    metrics: Metered,
    /// Its columns of primitive type, by which it may be told apart from a file.
    columns: Fields,
}

/// Metrics of some fields of a file, sorted by id.
#[derive(Clone, Debug, Default)]
pub(super) struct Metered {
    pub(super) rows: u64,
    pub(super) metrics: Vec<(i32, Metrics)>,
}

impl Metered {
    /// Those of an entry.
    pub(super) fn of(live: Live<'_>, fields: &Fields) -> Self {
        let columns = live.manifest.metrics();
        let metrics = fields
            .iter()
            .filter_map(|(id, kind)| Some((*id, columns.of(live.row, *id, kind)?)));
        Self {
            rows: live.entry.rows,
            metrics: metrics.collect(),
        }
    }

    fn get(&self, id: i32) -> Option<Told<'_>> {
        let place = self.metrics.binary_search_by_key(&id, |(id, _)| *id).ok()?;
        Some(Told {
            rows: self.rows,
            metrics: &self.metrics[place].1,
        })
    }
}

impl EqualityDelete {
    pub(super) fn new(file: Arc<DeleteFile>, metrics: Metered, columns: Fields) -> Self {
        Self {
            file,
            metrics,
            columns,
        }
    }

    pub(super) fn columns(&self) -> &Fields {
        &self.columns
    }

    /// Whether some row of the data file may equal a row of the deletes; `false` only if none does.
    pub(super) fn may_touch(&self, data: &Metered) -> bool {
        self.columns
            .iter()
            .all(|(id, kind)| match (self.metrics.get(*id), data.get(*id)) {
                (Some(deletes), Some(data)) => may_equal(&deletes, &data, kind),
                _ => true,
            })
    }
}

/// What is told of one column of one file.
struct Told<'a> {
    rows: u64,
    metrics: &'a Metrics,
}

impl Told<'_> {
    /// NULLs, if they are counted for every row: some writers leave out the rows of a NULL struct.
    fn nulls(&self) -> Option<u64> {
        let counted = self.metrics.values == Some(self.rows);
        self.metrics
            .nulls
            .filter(|nulls| counted && *nulls <= self.rows)
    }

    fn may_be_null(&self) -> bool {
        self.nulls() != Some(0)
    }

    fn may_be_nan(&self) -> bool {
        self.metrics.nans != Some(0)
    }

    fn is_null_throughout(&self) -> bool {
        self.rows > 0 && self.nulls() == Some(self.rows)
    }

    /// Both bounds, if they make sense.
    fn bounds(&self) -> Option<(&Datum, &Datum)> {
        let (lower, upper) = (self.metrics.lower.as_ref()?, self.metrics.upper.as_ref()?);
        let sensible = !lower.is_nan()
            && !upper.is_nan()
            && matches!(order(lower, upper), Some(Ordering::Less | Ordering::Equal));
        sensible.then_some((lower, upper))
    }
}

fn may_equal(one: &Told<'_>, other: &Told<'_>, kind: &PrimitiveType) -> bool {
    // An equality delete's NULL deletes NULLs.
    if one.may_be_null() && other.may_be_null() {
        return true;
    }
    if one.is_null_throughout() || other.is_null_throughout() {
        return false;
    }
    // Bounds don't speak of NaN.
    if is_float(kind) && one.may_be_nan() && other.may_be_nan() {
        return true;
    }
    // Writers do not agree on the order of UUIDs.
    if *kind == PrimitiveType::Uuid {
        return true;
    }
    let (Some((low, high)), Some((other_low, other_high))) = (one.bounds(), other.bounds()) else {
        return true;
    };
    let below = |a, b| order(a, b) == Some(Ordering::Less);
    !below(high, other_low) && !below(other_high, low)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(rows: u64, nulls: u64, bounds: Option<(Datum, Datum)>, nans: Option<u64>) -> Metered {
        let (lower, upper) = bounds.unzip();
        let metrics = Metrics {
            values: Some(rows),
            nulls: Some(nulls),
            nans,
            lower,
            upper,
        };
        Metered {
            rows,
            metrics: vec![(1, metrics)],
        }
    }

    fn equal(one: &Metered, other: &Metered, kind: &PrimitiveType) -> bool {
        let forth = may_equal(&one.get(1).unwrap(), &other.get(1).unwrap(), kind);
        let back = may_equal(&other.get(1).unwrap(), &one.get(1).unwrap(), kind);
        assert_eq!(forth, back);
        forth
    }

    fn ints(low: i32, high: i32) -> Option<(Datum, Datum)> {
        Some((Datum::int(low), Datum::int(high)))
    }

    #[test]
    fn ranges_that_do_not_meet_share_no_value() {
        let kind = PrimitiveType::Int;
        assert!(!equal(
            &told(5, 0, ints(1, 3), None),
            &told(5, 0, ints(4, 9), None),
            &kind
        ));
        assert!(equal(
            &told(5, 0, ints(1, 4), None),
            &told(5, 0, ints(4, 9), None),
            &kind
        ));
        // One of them has no NULL.
        assert!(!equal(
            &told(5, 2, ints(1, 3), None),
            &told(5, 0, ints(4, 9), None),
            &kind
        ));
    }

    #[test]
    fn null_meets_null() {
        let kind = PrimitiveType::Int;
        assert!(equal(
            &told(5, 1, ints(1, 3), None),
            &told(5, 2, ints(4, 9), None),
            &kind
        ));
        assert!(!equal(
            &told(5, 5, None, None),
            &told(5, 0, ints(4, 9), None),
            &kind
        ));
        assert!(equal(
            &told(5, 5, None, None),
            &told(5, 1, ints(4, 9), None),
            &kind
        ));
    }

    #[test]
    fn nulls_that_are_not_counted_for_each_row_may_be_there() {
        let kind = PrimitiveType::Int;
        let mut in_struct = told(5, 0, ints(1, 3), None);
        in_struct.metrics[0].1.values = Some(3);
        assert!(equal(&in_struct, &told(5, 1, ints(4, 9), None), &kind));
    }

    #[test]
    fn nan_lies_beyond_bounds() {
        let kind = PrimitiveType::Double;
        let doubles = |low, high| Some((Datum::double(low), Datum::double(high)));
        let (low, high) = (doubles(1.0, 2.0), doubles(3.0, 4.0));
        assert!(equal(
            &told(5, 0, low.clone(), Some(1)),
            &told(5, 0, high.clone(), None),
            &kind
        ));
        assert!(!equal(
            &told(5, 0, low, Some(0)),
            &told(5, 0, high, Some(2)),
            &kind
        ));
        let zero = told(1, 0, doubles(0.0, 0.0), Some(0));
        let negative = told(1, 0, doubles(-0.0, -0.0), Some(0));
        assert!(equal(&zero, &negative, &kind));
    }

    #[test]
    fn bounds_that_make_no_sense_exclude_nothing() {
        let kind = PrimitiveType::Int;
        assert!(equal(
            &told(5, 0, ints(3, 1), None),
            &told(5, 0, ints(7, 9), None),
            &kind
        ));
        assert!(equal(
            &told(5, 0, None, None),
            &told(5, 0, ints(7, 9), None),
            &kind
        ));
    }
}
