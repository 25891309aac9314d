//! Arrays of values that have Iceberg's types, and of lists and maps of given lengths.

use std::sync::Arc;

use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Decimal128Type, DecimalType, Float32Type, Float64Type,
    Int32Type, Int64Type, Time64MicrosecondType, TimestampMicrosecondType, TimestampNanosecondType,
};
use arrow_array::{
    ArrayRef, BooleanArray, FixedSizeBinaryArray, LargeBinaryArray, ListArray, MapArray,
    PrimitiveArray, StringArray, StructArray,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{ArrowError, DataType, TimeUnit};
use iceberg::spec::{Datum, PrimitiveLiteral};

use super::unbuilt;
use crate::error::Result;

/// Values as the Arrow type that shows them ([`shown`](super::column::shown)); what is not of the type is NULL.
pub(super) fn array(
    arrow: &DataType,
    values: impl Iterator<Item = Option<Datum>>,
) -> Result<ArrayRef> {
    use PrimitiveLiteral as Is;
    Ok(match arrow {
        DataType::Boolean => Arc::new(
            values
                .map(|value| match value?.literal() {
                    Is::Boolean(value) => Some(*value),
                    _ => None,
                })
                .collect::<BooleanArray>(),
        ),
        DataType::Int32 => Arc::new(ints::<Int32Type>(values)),
        DataType::Date32 => Arc::new(ints::<Date32Type>(values)),
        DataType::Int64 => Arc::new(longs::<Int64Type>(values)),
        DataType::Time64(TimeUnit::Microsecond) => Arc::new(longs::<Time64MicrosecondType>(values)),
        DataType::Timestamp(TimeUnit::Microsecond, zone) => {
            Arc::new(longs::<TimestampMicrosecondType>(values).with_timezone_opt(zone.clone()))
        }
        DataType::Timestamp(TimeUnit::Nanosecond, zone) => {
            Arc::new(longs::<TimestampNanosecondType>(values).with_timezone_opt(zone.clone()))
        }
        DataType::Float32 => Arc::new(numbers::<Float32Type>(values, |value| match value {
            Is::Float(value) => Some(value.0),
            _ => None,
        })),
        DataType::Float64 => Arc::new(numbers::<Float64Type>(values, |value| match value {
            Is::Double(value) => Some(value.0),
            _ => None,
        })),
        DataType::Decimal128(precision, scale) => {
            let fits = |value: &i128| {
                Decimal128Type::validate_decimal_precision(*value, *precision, *scale).is_ok()
            };
            let decimals = numbers::<Decimal128Type>(values, |value| match value {
                Is::Int128(value) => Some(*value).filter(fits),
                _ => None,
            });
            Arc::new(
                decimals
                    .with_precision_and_scale(*precision, *scale)
                    .map_err(unbuilt)?,
            )
        }
        DataType::Utf8 => Arc::new(
            values
                .map(|value| match value?.literal() {
                    Is::String(value) => Some(value.clone()),
                    _ => None,
                })
                .collect::<StringArray>(),
        ),
        DataType::LargeBinary => Arc::new(
            values
                .map(|value| match value?.literal() {
                    Is::Binary(value) => Some(value.clone()),
                    _ => None,
                })
                .collect::<LargeBinaryArray>(),
        ),
        DataType::FixedSizeBinary(width @ 16) => {
            let uuids = values.map(|value| match value?.literal() {
                Is::UInt128(value) => Some(value.to_be_bytes()),
                _ => None,
            });
            let array = FixedSizeBinaryArray::try_from_sparse_iter_with_size(uuids, *width);
            Arc::new(array.map_err(unbuilt)?)
        }
        other => {
            let message = format!("no value of metadata is shown as {other}");
            return Err(unbuilt(ArrowError::NotYetImplemented(message)));
        }
    })
}

fn ints<T: ArrowPrimitiveType<Native = i32>>(
    values: impl Iterator<Item = Option<Datum>>,
) -> PrimitiveArray<T> {
    numbers(values, |value| match value {
        PrimitiveLiteral::Int(value) => Some(*value),
        _ => None,
    })
}

fn longs<T: ArrowPrimitiveType<Native = i64>>(
    values: impl Iterator<Item = Option<Datum>>,
) -> PrimitiveArray<T> {
    numbers(values, |value| match value {
        PrimitiveLiteral::Long(value) => Some(*value),
        _ => None,
    })
}

fn numbers<T: ArrowPrimitiveType>(
    values: impl Iterator<Item = Option<Datum>>,
    pick: impl Fn(&PrimitiveLiteral) -> Option<T::Native>,
) -> PrimitiveArray<T> {
    values.map(|value| pick(value?.literal())).collect()
}

/// Lists of these lengths with all their items in turn; `None` is NULL.
pub(super) fn list(
    kind: &DataType,
    lengths: &[Option<usize>],
    items: ArrayRef,
) -> Result<ArrayRef> {
    let DataType::List(item) = kind else {
        return Err(not_of(kind, "list"));
    };
    let (offsets, nulls) = offsets(lengths)?;
    let array = ListArray::try_new(item.clone(), offsets, items, nulls).map_err(unbuilt)?;
    Ok(Arc::new(array))
}

/// Maps of these lengths with all their keys and values in turn; `None` is NULL.
pub(super) fn map(
    kind: &DataType,
    lengths: &[Option<usize>],
    keys: ArrayRef,
    values: ArrayRef,
) -> Result<ArrayRef> {
    let DataType::Map(pairs, ordered) = kind else {
        return Err(not_of(kind, "map"));
    };
    let DataType::Struct(pair) = pairs.data_type() else {
        return Err(not_of(kind, "map"));
    };
    let (offsets, nulls) = offsets(lengths)?;
    let entries = StructArray::try_new(pair.clone(), vec![keys, values], None).map_err(unbuilt)?;
    let array = MapArray::try_new(pairs.clone(), offsets, entries, nulls, *ordered);
    Ok(Arc::new(array.map_err(unbuilt)?))
}

fn offsets(lengths: &[Option<usize>]) -> Result<(OffsetBuffer<i32>, Option<NullBuffer>)> {
    let nulls: NullBuffer = lengths.iter().map(Option::is_some).collect();
    let lengths = lengths.iter().map(|length| length.unwrap_or(0));
    let all = lengths.clone().try_fold(0usize, usize::checked_add);
    if all.is_none_or(|all| i32::try_from(all).is_err()) {
        let message = "a batch has too many items in its lists".to_owned();
        return Err(unbuilt(ArrowError::InvalidArgumentError(message)));
    }
    let nulls = Some(nulls).filter(|nulls| nulls.null_count() > 0);
    Ok((OffsetBuffer::from_lengths(lengths), nulls))
}

fn not_of(kind: &DataType, what: &str) -> crate::error::Error {
    unbuilt(ArrowError::SchemaError(format!("{kind} is no {what}")))
}
