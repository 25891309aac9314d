//! What a manifest's metrics tell of a file's columns, and how their bounds are read.

use iceberg::spec::{Datum, PrimitiveLiteral, PrimitiveType};

use super::Column;
use super::datum::{is_float, typed};
use super::known::{Bound, Knowledge, Known};
use crate::task::{DataFile, Metrics};

/// What is known of a file's rows by its metrics. Metrics that are missing, or do not add up, tell nothing.
pub struct MetricsKnowledge<'a> {
    rows: u64,
    metrics: &'a [(i32, Metrics)],
}

impl<'a> MetricsKnowledge<'a> {
    /// From the metrics that planning kept of a file.
    pub fn new(file: &'a DataFile) -> Self {
        Self::of(file.rows, &file.metrics)
    }

    /// From the metrics of so many rows, sorted by field id.
    pub fn of(rows: u64, metrics: &'a [(i32, Metrics)]) -> Self {
        Self { rows, metrics }
    }
}

impl Knowledge for MetricsKnowledge<'_> {
    fn column(&self, column: &Column) -> Known {
        match self.metrics.binary_search_by_key(&column.id, |(id, _)| *id) {
            Ok(at) => of_metrics(&self.metrics[at].1, self.rows, &column.kind),
            Err(_) => Known::anything(),
        }
    }
}

fn of_metrics(metrics: &Metrics, rows: u64, kind: &PrimitiveType) -> Known {
    let (lower, upper) = bounds(metrics.lower.clone(), metrics.upper.clone());
    let known = Known::anything().between(lower, upper);
    // Some writers leave the rows of a NULL struct out of its fields' counts.
    let Some(nulls) = metrics.nulls.filter(|_| metrics.values == Some(rows)) else {
        return known;
    };
    let Some(values) = rows.checked_sub(nulls).filter(|_| rows > 0) else {
        return known;
    };
    let nans = match is_float(kind) {
        true => metrics.nans,
        false => Some(0),
    };
    let known = Known {
        nulls: nulls > 0,
        values: values > 0 && nans.is_none_or(|nans| nans < values),
        nans: values > 0 && nans.is_none_or(|nans| nans > 0),
        ..known
    };
    match nans {
        Some(nans) if nans > values => Known::anything(),
        _ => known,
    }
}

/// Bounds as far as they can be trusted.
///
/// Java's order of UUIDs, which old writers used, takes each half for a signed number. Bounds of one sign are in order by the first half at least;
/// those of two signs are in Iceberg's order, or the wrong way round and so without effect.
pub(super) fn bounds(lower: Option<Datum>, upper: Option<Datum>) -> (Option<Bound>, Option<Bound>) {
    let uuids = match (&lower, &upper) {
        (Some(lower), _) => *lower.data_type() == PrimitiveType::Uuid,
        (None, Some(upper)) => *upper.data_type() == PrimitiveType::Uuid,
        (None, None) => false,
    };
    if !uuids {
        return (lower.map(loose), upper.map(loose));
    }
    let (Some(lower), Some(upper)) = (lower, upper) else {
        return (None, None);
    };
    let (PrimitiveLiteral::UInt128(first), PrimitiveLiteral::UInt128(last)) =
        (lower.literal(), upper.literal())
    else {
        return (None, None);
    };
    if first == last || first >> 127 != last >> 127 {
        return (Some(loose(lower)), Some(loose(upper)));
    }
    let low_half = u128::from(u64::MAX);
    let uuid = |v| typed(&PrimitiveType::Uuid, &PrimitiveLiteral::UInt128(v)).map(loose);
    (uuid(first & !low_half), uuid(last | low_half))
}

fn loose(datum: Datum) -> Bound {
    Bound::loose(datum)
}

/// The value of a bound, for a column that has this type now: bounds stay as they were written, as int, float, date or a smaller decimal.
/// `None`: not a value of this type, or of one that may become it.
pub fn read_bound(bytes: &[u8], kind: &PrimitiveType) -> Option<Datum> {
    use PrimitiveType as Of;
    let days = || {
        Some(PrimitiveLiteral::Int(i32::from_le_bytes(
            bytes.try_into().ok()?,
        )))
    };
    match (kind, bytes.len()) {
        (Of::Boolean, 1)
        | (Of::Int | Of::Float | Of::Date, 4)
        | (Of::Long | Of::Double, 4 | 8)
        | (Of::Time | Of::Timestamp | Of::Timestamptz | Of::TimestampNs | Of::TimestamptzNs, 8)
        | (Of::Uuid, 16)
        | (Of::Decimal { .. }, 1..=16)
        | (Of::String | Of::Binary, _) => Datum::try_from_bytes(bytes, kind.clone()).ok(),
        (Of::Fixed(width), length) if u64::try_from(length).is_ok_and(|l| l <= *width) => {
            Datum::try_from_bytes(bytes, kind.clone()).ok()
        }
        (Of::Timestamp | Of::TimestampNs, 4) => typed(kind, &days()?),
        _ => None,
    }
}
