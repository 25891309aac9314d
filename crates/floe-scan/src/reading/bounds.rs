//! Bounds in Parquet's statistics, as values of a column's type in the table. What is not surely understood is no bound.

use arrow_schema::{DataType, TimeUnit};
use iceberg::spec::{Datum, PrimitiveLiteral, PrimitiveType};
use parquet::basic::Type as PhysicalType;
use parquet::schema::types::ColumnDescriptor;

use crate::predicate::datum::typed;

/// A bound of a leaf column that decodes to `arrow`, as a value of type `kind`.
pub(super) fn read(
    bytes: &[u8],
    physical: PhysicalType,
    arrow: &DataType,
    kind: &PrimitiveType,
) -> Option<Datum> {
    use DataType as T;
    use PrimitiveLiteral as Is;
    use PrimitiveType as Of;
    let int = || bytes.try_into().ok().map(i32::from_le_bytes);
    let long = || bytes.try_into().ok().map(i64::from_le_bytes);
    let literal = match (physical, arrow, kind) {
        (PhysicalType::BOOLEAN, T::Boolean, Of::Boolean) => match bytes {
            [0] => Is::Boolean(false),
            [1] => Is::Boolean(true),
            _ => return None,
        },
        (PhysicalType::INT32, T::Int8 | T::Int16 | T::Int32, Of::Int | Of::Long)
        | (PhysicalType::INT32, T::Date32, Of::Date | Of::Timestamp | Of::TimestampNs) => {
            Is::Int(int()?)
        }
        (PhysicalType::INT64, T::Int64, Of::Long)
        | (PhysicalType::INT64, T::Time64(TimeUnit::Microsecond), Of::Time)
        | (
            PhysicalType::INT64,
            T::Timestamp(TimeUnit::Microsecond, _),
            Of::Timestamp | Of::Timestamptz,
        )
        | (
            PhysicalType::INT64,
            T::Timestamp(TimeUnit::Nanosecond, _),
            Of::TimestampNs | Of::TimestamptzNs,
        ) => Is::Long(long()?),
        (
            PhysicalType::INT64,
            T::Timestamp(TimeUnit::Millisecond, _),
            Of::Timestamp | Of::Timestamptz,
        ) => Is::Long(long()?.checked_mul(1000)?),
        (PhysicalType::FLOAT, T::Float32, Of::Float | Of::Double) => {
            return float(f32::from_le_bytes(bytes.try_into().ok()?), kind);
        }
        (PhysicalType::DOUBLE, T::Float64, Of::Double) => {
            return Some(Datum::double(f64::from_le_bytes(bytes.try_into().ok()?)));
        }
        (PhysicalType::INT32, T::Decimal128(_, scale), Of::Decimal { .. }) => {
            Is::Int128(unscaled(i128::from(int()?), *scale, kind)?)
        }
        (PhysicalType::INT64, T::Decimal128(_, scale), Of::Decimal { .. }) => {
            Is::Int128(unscaled(i128::from(long()?), *scale, kind)?)
        }
        (
            PhysicalType::BYTE_ARRAY | PhysicalType::FIXED_LEN_BYTE_ARRAY,
            T::Decimal128(_, scale),
            Of::Decimal { .. },
        ) => Is::Int128(unscaled(big_endian(bytes)?, *scale, kind)?),
        (PhysicalType::BYTE_ARRAY, T::Utf8 | T::Binary, Of::String) => {
            Is::String(std::str::from_utf8(bytes).ok()?.to_owned())
        }
        (PhysicalType::BYTE_ARRAY, T::Binary, Of::Binary) => Is::Binary(bytes.to_vec()),
        (PhysicalType::FIXED_LEN_BYTE_ARRAY, T::FixedSizeBinary(_), Of::Uuid) => {
            // A truncated bound has fewer bytes: it is none.
            Is::UInt128(u128::from_be_bytes(bytes.try_into().ok()?))
        }
        (PhysicalType::FIXED_LEN_BYTE_ARRAY, T::FixedSizeBinary(width), Of::Fixed(_))
            if usize::try_from(*width).is_ok_and(|width| width == bytes.len()) =>
        {
            Is::Binary(bytes.to_vec())
        }
        _ => return None,
    };
    typed(kind, &literal)
}

fn float(value: f32, kind: &PrimitiveType) -> Option<Datum> {
    match kind {
        PrimitiveType::Float => Some(Datum::float(value)),
        PrimitiveType::Double => Some(Datum::double(f64::from(value))),
        _ => None,
    }
}

fn unscaled(value: i128, scale: i8, kind: &PrimitiveType) -> Option<i128> {
    match kind {
        PrimitiveType::Decimal { scale: same, .. } => {
            (i64::from(scale) == i64::from(*same)).then_some(value)
        }
        _ => None,
    }
}

fn big_endian(bytes: &[u8]) -> Option<i128> {
    let negative = bytes.first()? & 0x80 != 0;
    let mut whole = [if negative { 0xFF } else { 0 }; 16];
    let start = whole.len().checked_sub(bytes.len())?;
    whole[start..].copy_from_slice(bytes);
    Some(i128::from_be_bytes(whole))
}

/// How a value of the table's type stands in a leaf column that decodes to `arrow`; `None` if that is not surely understood.
pub(super) fn write(datum: &Datum, column: &ColumnDescriptor, arrow: &DataType) -> Option<Vec<u8>> {
    use PrimitiveLiteral as Is;
    let kind = datum.data_type();
    let physical = column.physical_type();
    let stored = match (physical, datum.literal()) {
        (PhysicalType::INT32, Is::Int(value)) => value.to_le_bytes().to_vec(),
        (PhysicalType::INT32, Is::Long(value)) => i32::try_from(*value).ok()?.to_le_bytes().into(),
        (PhysicalType::INT64, Is::Long(value)) => value.to_le_bytes().to_vec(),
        (PhysicalType::FLOAT, Is::Float(value)) => value.to_le_bytes().to_vec(),
        (PhysicalType::DOUBLE, Is::Double(value)) => value.to_le_bytes().to_vec(),
        (PhysicalType::BYTE_ARRAY, Is::String(value)) => value.as_bytes().to_vec(),
        (PhysicalType::BYTE_ARRAY | PhysicalType::FIXED_LEN_BYTE_ARRAY, Is::Binary(value)) => {
            value.clone()
        }
        (PhysicalType::FIXED_LEN_BYTE_ARRAY, Is::UInt128(value)) => value.to_be_bytes().to_vec(),
        (PhysicalType::INT32, Is::Int128(value)) => {
            i32::try_from(*value).ok()?.to_le_bytes().to_vec()
        }
        (PhysicalType::INT64, Is::Int128(value)) => {
            i64::try_from(*value).ok()?.to_le_bytes().to_vec()
        }
        (PhysicalType::FIXED_LEN_BYTE_ARRAY, Is::Int128(value)) => {
            let bytes = value.to_be_bytes();
            let width = usize::try_from(column.type_length()).ok()?;
            bytes[bytes.len().checked_sub(width)?..].to_vec()
        }
        _ => return None,
    };
    // What does not read as the value again is not how it is stored.
    (read(&stored, physical, arrow, kind).as_ref() == Some(datum)).then_some(stored)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_signed_whatever_their_length() {
        assert_eq!(big_endian(&[0xFF, 0x38]), Some(-200));
        assert_eq!(big_endian(&[0x00, 0xC8]), Some(200));
        assert_eq!(big_endian(&[]), None);
        assert_eq!(big_endian(&[0; 17]), None);
    }

    #[test]
    fn bounds_of_other_types_are_none() {
        let five = 5i32.to_le_bytes();
        let read = |arrow, kind| read(&five, PhysicalType::INT32, &arrow, &kind);
        assert_eq!(
            read(DataType::Int32, PrimitiveType::Long),
            Some(Datum::long(5))
        );
        // Unsigned: its order is another one.
        assert_eq!(read(DataType::UInt32, PrimitiveType::Long), None);
        assert_eq!(read(DataType::Int32, PrimitiveType::String), None);
        let scale = |scale| {
            let kind = PrimitiveType::Decimal {
                precision: 9,
                scale,
            };
            read(DataType::Decimal128(9, 2), kind).is_some()
        };
        assert!(scale(2) && !scale(3));
    }
}
