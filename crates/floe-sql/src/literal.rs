//! Literals of DataFusion as Iceberg's values.

use datafusion::common::ScalarValue;
use floe_scan::predicate::decimal;
use iceberg::spec::{Datum, PrimitiveType};
use uuid::Uuid;

const SECOND: i64 = 1_000_000;
const MILLI: i64 = 1_000;

/// A literal as a value that can be compared with a column of this type; `None` for NULL and what has no such value.
pub(crate) fn datum(value: &ScalarValue, column: &PrimitiveType) -> Option<Datum> {
    use ScalarValue as Of;
    match value {
        Of::Boolean(v) => v.map(Datum::bool),
        Of::Int8(v) => v.map(|v| Datum::int(i32::from(v))),
        Of::Int16(v) => v.map(|v| Datum::int(i32::from(v))),
        Of::Int32(v) => v.map(Datum::int),
        Of::Int64(v) => v.map(Datum::long),
        Of::UInt8(v) => v.map(|v| Datum::int(i32::from(v))),
        Of::UInt16(v) => v.map(|v| Datum::int(i32::from(v))),
        Of::UInt32(v) => v.map(|v| Datum::long(i64::from(v))),
        Of::UInt64(v) => v.map(|v| decimal(i128::from(v), 0)),
        Of::Float32(v) => v.map(Datum::float),
        Of::Float64(v) => v.map(Datum::double),
        Of::Decimal128(v, _, scale) => Some(decimal((*v)?, u32::try_from(*scale).ok()?)),
        Of::Utf8(v) | Of::LargeUtf8(v) | Of::Utf8View(v) => v.as_ref().map(Datum::string),
        Of::Binary(v) | Of::LargeBinary(v) | Of::BinaryView(v) | Of::FixedSizeBinary(_, v) => {
            bytes(v.as_ref()?, column)
        }
        Of::Date32(v) => v.map(Datum::date),
        Of::Time64Microsecond(v) => time((*v)?),
        Of::Time64Nanosecond(v) => v.filter(|v| v % MILLI == 0).and_then(|v| time(v / MILLI)),
        Of::TimestampSecond(v, zone) => moment((*v)?.checked_mul(SECOND)?, zone.is_some()),
        Of::TimestampMillisecond(v, zone) => moment((*v)?.checked_mul(MILLI)?, zone.is_some()),
        Of::TimestampMicrosecond(v, zone) => moment((*v)?, zone.is_some()),
        Of::TimestampNanosecond(v, zone) => match zone {
            Some(_) => v.map(Datum::timestamptz_nanos),
            None => v.map(Datum::timestamp_nanos),
        },
        _ => None,
    }
}

fn bytes(value: &[u8], column: &PrimitiveType) -> Option<Datum> {
    match column {
        PrimitiveType::Uuid => {
            let bytes: [u8; 16] = value.try_into().ok()?;
            Some(Datum::uuid(Uuid::from_bytes(bytes)))
        }
        PrimitiveType::Fixed(_) => Some(Datum::fixed(value.iter().copied())),
        _ => Some(Datum::binary(value.iter().copied())),
    }
}

fn time(micros: i64) -> Option<Datum> {
    Datum::time_micros(micros).ok()
}

fn moment(micros: i64, zoned: bool) -> Option<Datum> {
    Some(match zoned {
        true => Datum::timestamptz_micros(micros),
        false => Datum::timestamp_micros(micros),
    })
}
