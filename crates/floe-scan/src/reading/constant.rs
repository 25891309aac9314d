//! Columns of one value: partition constants, defaults of columns that a file lacks, NULL.

use std::sync::Arc;

use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int32Type, Int64Type,
    Time64MicrosecondType, TimestampMicrosecondType, TimestampNanosecondType,
};
use arrow_array::{
    ArrayRef, BooleanArray, FixedSizeBinaryArray, LargeBinaryArray, PrimitiveArray, StringArray,
    StructArray, new_null_array,
};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_schema::{DataType, TimeUnit};
use iceberg::spec::{Literal, PrimitiveLiteral, PrimitiveType, Type};

use crate::predicate::datum::typed;

/// `rows` times this value of an Iceberg type, as the Arrow type that stands for it. `None`: the value is not of the type.
pub(super) fn repeat(
    value: Option<&Literal>,
    kind: &Type,
    arrow: &DataType,
    rows: usize,
) -> Option<ArrayRef> {
    match (value, kind, arrow) {
        (None, _, _) => Some(new_null_array(arrow, rows)),
        (Some(Literal::Primitive(literal)), Type::Primitive(kind), _) => {
            primitive(literal, kind, arrow, rows)
        }
        (Some(Literal::Struct(values)), Type::Struct(kinds), DataType::Struct(fields)) => {
            let columns = kinds
                .fields()
                .iter()
                .zip(fields)
                .enumerate()
                .map(|(position, (kind, field))| {
                    let value = values.fields().get(position)?;
                    repeat(value.as_ref(), &kind.field_type, field.data_type(), rows)
                })
                .collect::<Option<Vec<_>>>()?;
            let array = match columns.is_empty() {
                true => StructArray::new_empty_fields(rows, None),
                false => StructArray::try_new(fields.clone(), columns, None).ok()?,
            };
            Some(Arc::new(array))
        }
        _ => None,
    }
}

fn primitive(
    literal: &PrimitiveLiteral,
    kind: &PrimitiveType,
    arrow: &DataType,
    rows: usize,
) -> Option<ArrayRef> {
    use PrimitiveLiteral as Is;
    // Written before the column was promoted, it is of the old type.
    let datum = typed(kind, literal)?;
    Some(match (arrow, datum.literal()) {
        (DataType::Boolean, Is::Boolean(value)) => {
            let values = match value {
                true => BooleanBuffer::new_set(rows),
                false => BooleanBuffer::new_unset(rows),
            };
            Arc::new(BooleanArray::new(values, None))
        }
        (DataType::Int32, Is::Int(value)) => {
            Arc::new(PrimitiveArray::<Int32Type>::from_value(*value, rows))
        }
        (DataType::Int64, Is::Long(value)) => {
            Arc::new(PrimitiveArray::<Int64Type>::from_value(*value, rows))
        }
        (DataType::Float32, Is::Float(value)) => {
            Arc::new(PrimitiveArray::<Float32Type>::from_value(value.0, rows))
        }
        (DataType::Float64, Is::Double(value)) => {
            Arc::new(PrimitiveArray::<Float64Type>::from_value(value.0, rows))
        }
        (DataType::Date32, Is::Int(value)) => {
            Arc::new(PrimitiveArray::<Date32Type>::from_value(*value, rows))
        }
        (DataType::Time64(TimeUnit::Microsecond), Is::Long(value)) => {
            Arc::new(PrimitiveArray::<Time64MicrosecondType>::from_value(
                *value, rows,
            ))
        }
        (DataType::Timestamp(TimeUnit::Microsecond, zone), Is::Long(value)) => Arc::new(
            PrimitiveArray::<TimestampMicrosecondType>::from_value(*value, rows)
                .with_timezone_opt(zone.clone()),
        ),
        (DataType::Timestamp(TimeUnit::Nanosecond, zone), Is::Long(value)) => Arc::new(
            PrimitiveArray::<TimestampNanosecondType>::from_value(*value, rows)
                .with_timezone_opt(zone.clone()),
        ),
        (DataType::Decimal128(precision, scale), Is::Int128(value)) => Arc::new(
            PrimitiveArray::<Decimal128Type>::from_value(*value, rows)
                .with_precision_and_scale(*precision, *scale)
                .ok()?,
        ),
        (DataType::Utf8, Is::String(value)) => Arc::new(StringArray::new_repeated(value, rows)),
        (DataType::LargeBinary, Is::Binary(value)) => {
            Arc::new(LargeBinaryArray::new_repeated(value, rows))
        }
        (DataType::FixedSizeBinary(width), Is::Binary(value)) => fixed(value, *width, rows)?,
        (DataType::FixedSizeBinary(width), Is::UInt128(value)) => {
            fixed(&value.to_be_bytes(), *width, rows)?
        }
        _ => return None,
    })
}

fn fixed(value: &[u8], width: i32, rows: usize) -> Option<ArrayRef> {
    let fits = usize::try_from(width).is_ok_and(|width| width == value.len());
    let values = fits.then(|| value.repeat(rows))?;
    let array = FixedSizeBinaryArray::try_new(width, values.into(), None::<NullBuffer>).ok()?;
    // A width of nothing can't tell the number of rows.
    (width > 0).then(|| Arc::new(array) as ArrayRef)
}
