//! Values of columns: made from a type and a literal, put in order, shown to people.
//! iceberg orders decimals by way of text, ranks -0.0 below 0.0, and its `Display` panics on far dates: none of it is used here.

use std::cmp::Ordering;
use std::mem::discriminant;

use chrono::{DateTime, NaiveTime};
use iceberg::spec::{Datum, PrimitiveLiteral, PrimitiveType};

const MICROS_PER_DAY: i64 = 86_400_000_000;
const NANOS_PER_DAY: i64 = 86_400_000_000_000;

/// The decimal `unscaled` x 10^-`scale`, as a literal: of any size that 128 bits hold.
pub fn decimal(unscaled: i128, scale: u32) -> Datum {
    let kind = PrimitiveType::Decimal {
        precision: 38,
        scale,
    };
    from_bytes(&unscaled.to_be_bytes(), &kind).expect("sixteen bytes always make a decimal")
}

/// The literal as a value of this type, also if it was written before the column was promoted to it.
/// `None`: the literal is not of this type, nor of one that may become it.
pub(crate) fn typed(kind: &PrimitiveType, literal: &PrimitiveLiteral) -> Option<Datum> {
    use PrimitiveLiteral as Is;
    use PrimitiveType as Of;
    match (kind, literal) {
        (Of::Boolean, Is::Boolean(v)) => Some(Datum::bool(*v)),
        (Of::Int, Is::Int(v)) => Some(Datum::int(*v)),
        (Of::Long, Is::Int(v)) => Some(Datum::long(*v)),
        (Of::Long, Is::Long(v)) => Some(Datum::long(*v)),
        (Of::Float, Is::Float(v)) => Some(Datum::float(v.0)),
        (Of::Double, Is::Float(v)) => Some(Datum::double(f64::from(v.0))),
        (Of::Double, Is::Double(v)) => Some(Datum::double(v.0)),
        (Of::Date, Is::Int(v)) => Some(Datum::date(*v)),
        (Of::Timestamp, Is::Int(days)) => i64::from(*days)
            .checked_mul(MICROS_PER_DAY)
            .map(Datum::timestamp_micros),
        (Of::TimestampNs, Is::Int(days)) => i64::from(*days)
            .checked_mul(NANOS_PER_DAY)
            .map(Datum::timestamp_nanos),
        (Of::Timestamp, Is::Long(v)) => Some(Datum::timestamp_micros(*v)),
        (Of::Timestamptz, Is::Long(v)) => Some(Datum::timestamptz_micros(*v)),
        (Of::TimestampNs, Is::Long(v)) => Some(Datum::timestamp_nanos(*v)),
        (Of::TimestamptzNs, Is::Long(v)) => Some(Datum::timestamptz_nanos(*v)),
        (Of::Time, Is::Long(v)) => from_bytes(&v.to_le_bytes(), kind),
        (Of::String, Is::String(v)) => Some(Datum::string(v)),
        (Of::Uuid, Is::UInt128(v)) => from_bytes(&v.to_be_bytes(), kind),
        (Of::Fixed(_) | Of::Binary, Is::Binary(v)) => from_bytes(v, kind),
        (Of::Decimal { .. }, Is::Int128(v)) => from_bytes(&v.to_be_bytes(), kind),
        _ => None,
    }
}

fn from_bytes(bytes: &[u8], kind: &PrimitiveType) -> Option<Datum> {
    Datum::try_from_bytes(bytes, kind.clone()).ok()
}

/// Whether columns of this type may hold NaN.
pub(crate) fn is_float(kind: &PrimitiveType) -> bool {
    matches!(kind, PrimitiveType::Float | PrimitiveType::Double)
}

/// The order of two values of one type: NaN is greatest and equals itself, -0.0 equals 0.0. `None`: they are not of one type.
pub(crate) fn order(left: &Datum, right: &Datum) -> Option<Ordering> {
    use PrimitiveLiteral as Is;
    if !comparable(left.data_type(), right.data_type()) {
        return None;
    }
    match (left.literal(), right.literal()) {
        (Is::Boolean(l), Is::Boolean(r)) => Some(l.cmp(r)),
        (Is::Int(l), Is::Int(r)) => Some(l.cmp(r)),
        (Is::Long(l), Is::Long(r)) => Some(l.cmp(r)),
        (Is::Float(l), Is::Float(r)) => Some(order_floats(f64::from(l.0), f64::from(r.0))),
        (Is::Double(l), Is::Double(r)) => Some(order_floats(l.0, r.0)),
        (Is::String(l), Is::String(r)) => Some(l.cmp(r)),
        (Is::Binary(l), Is::Binary(r)) => Some(l.cmp(r)),
        (Is::Int128(l), Is::Int128(r)) => Some(l.cmp(r)),
        (Is::UInt128(l), Is::UInt128(r)) => Some(l.cmp(r)),
        _ => None,
    }
}

fn comparable(left: &PrimitiveType, right: &PrimitiveType) -> bool {
    match (left, right) {
        (
            PrimitiveType::Decimal { scale: left, .. },
            PrimitiveType::Decimal { scale: right, .. },
        ) => left == right,
        _ => discriminant(left) == discriminant(right),
    }
}

fn order_floats(left: f64, right: f64) -> Ordering {
    left.partial_cmp(&right)
        .unwrap_or_else(|| left.is_nan().cmp(&right.is_nan()))
}

/// The bytes of a string or of binary data.
pub(crate) fn bytes(datum: &Datum) -> Option<&[u8]> {
    match datum.literal() {
        PrimitiveLiteral::String(v) => Some(v.as_bytes()),
        PrimitiveLiteral::Binary(v) => Some(v),
        _ => None,
    }
}

/// A value as people write it in a condition.
pub(crate) fn show(datum: &Datum) -> String {
    use PrimitiveLiteral as Is;
    use PrimitiveType as Of;
    match (datum.data_type(), datum.literal()) {
        (Of::Int | Of::Long, Is::AboveMax) => "a greater number than any".to_owned(),
        (Of::Int | Of::Long, Is::BelowMin) => "a smaller number than any".to_owned(),
        (Of::String, Is::String(v)) => quote(v),
        (Of::Date, Is::Int(days)) => match DateTime::from_timestamp(i64::from(*days) * 86_400, 0) {
            Some(at) => quote(&at.date_naive().to_string()),
            None => format!("day {days}"),
        },
        (Of::Time, Is::Long(micros)) => time(*micros),
        (Of::Timestamp | Of::Timestamptz, Is::Long(micros)) => {
            match DateTime::from_timestamp_micros(*micros) {
                Some(at) => quote(&moment(at, datum.data_type())),
                None => format!("microsecond {micros}"),
            }
        }
        (Of::TimestampNs | Of::TimestamptzNs, Is::Long(nanos)) => quote(&moment(
            DateTime::from_timestamp_nanos(*nanos),
            datum.data_type(),
        )),
        (Of::Fixed(_) | Of::Binary, Is::Binary(_)) => format!("X'{datum}'"),
        (Of::Uuid, Is::UInt128(_)) => format!("'{datum}'"),
        _ => datum.to_string(),
    }
}

fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn time(micros: i64) -> String {
    let (seconds, rest) = (micros.div_euclid(1_000_000), micros.rem_euclid(1_000_000));
    let time = u32::try_from(seconds).ok().and_then(|seconds| {
        NaiveTime::from_num_seconds_from_midnight_opt(seconds, u32::try_from(rest).ok()? * 1_000)
    });
    match time {
        Some(time) => quote(&time.to_string()),
        None => format!("microsecond {micros} of a day"),
    }
}

fn moment(at: DateTime<chrono::Utc>, kind: &PrimitiveType) -> String {
    match kind {
        PrimitiveType::Timestamptz | PrimitiveType::TimestamptzNs => {
            format!("{}+00:00", at.naive_utc())
        }
        _ => at.naive_utc().to_string(),
    }
}
