//! A condition on rows, exactly: SQL's three truths, a column at a time.

use std::sync::Arc;

use arrow_arith::boolean;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int32Type, Int64Type,
    Time64MicrosecondType, TimestampMicrosecondType, TimestampNanosecondType,
};
use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, BinaryArray, BinaryViewArray, BooleanArray,
    FixedSizeBinaryArray, LargeBinaryArray, LargeStringArray, PrimitiveArray, Scalar, StringArray,
    StringViewArray,
};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow_ord::cmp;
use arrow_schema::{ArrowError, DataType, TimeUnit};
use arrow_select::filter::prep_null_mask_filter;
use iceberg::spec::{Datum, PrimitiveLiteral, PrimitiveType};

use super::datum::show;
use super::membership::is_in;
use super::{Column, Comparison, Predicate, Rows};
use crate::error::{Error, ErrorKind, Result};

impl Predicate {
    /// Its truth for each row.
    pub fn evaluate(&self, rows: &dyn Rows) -> Result<BooleanArray> {
        match self {
            Self::Constant(value) => Ok(constant(*value, rows.len())),
            Self::And(parts) => all(parts, rows),
            Self::Or(parts) => any(parts, rows),
            Self::Not(inner) => {
                let truths = inner.evaluate(rows)?;
                boolean::not(&truths).map_err(|source| self.failed(source))
            }
            Self::IsTrue(inner) => inner.evaluate(rows).map(true_or_not),
            Self::IsUnknown(inner) => {
                let truths = inner.evaluate(rows)?;
                boolean::is_null(&truths).map_err(|source| self.failed(source))
            }
            Self::Compare(column, comparison, datum) => {
                self.on_values(column, rows, |values| compare(values, *comparison, datum))
            }
            Self::In(column, datums) => {
                self.on_values(column, rows, |values| is_in(values, datums))
            }
            Self::StartsWith(column, prefix) => self.on_values(column, rows, |values| {
                let prefix = scalar(&Datum::string(prefix), values.data_type())
                    .ok_or_else(|| mismatch("a string", values))?;
                arrow_string::like::starts_with(&values, &prefix)
            }),
            Self::IsNull(column) => {
                let array = fetch(column, rows)?;
                boolean::is_null(&array).map_err(|source| self.failed(source))
            }
            Self::IsNan(column) => {
                let truths = self.on_values(column, rows, |values| Ok(is_nan(values)))?;
                Ok(true_or_not(truths))
            }
            Self::Opaque(condition) => {
                let truths = condition.evaluate(rows)?;
                check_length(truths.len(), rows, condition)?;
                Ok(truths)
            }
        }
    }

    /// The truths of a column's values; of a dictionary, of its entries, handed out to the rows.
    fn on_values(
        &self,
        column: &Column,
        rows: &dyn Rows,
        evaluate: impl Fn(&dyn Array) -> std::result::Result<BooleanArray, ArrowError>,
    ) -> Result<BooleanArray> {
        let array = fetch(column, rows)?;
        let truths = match array.as_any_dictionary_opt() {
            Some(dictionary) => evaluate(dictionary.values()).and_then(|entries| {
                let taken = arrow_select::take::take(&entries, dictionary.keys(), None)?;
                Ok(taken.as_boolean().clone())
            }),
            None => evaluate(&array),
        };
        truths.map_err(|source| self.failed(source))
    }

    fn failed(&self, source: ArrowError) -> Error {
        Error::new(
            ErrorKind::Unexpected,
            format!("can't evaluate the condition {self}"),
        )
        .with_source(source)
    }
}

fn fetch(column: &Column, rows: &dyn Rows) -> Result<ArrayRef> {
    let array = rows.column(column.id)?;
    check_length(array.len(), rows, column)?;
    Ok(array)
}

fn check_length(length: usize, rows: &dyn Rows, what: impl std::fmt::Display) -> Result<()> {
    if length == rows.len() {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Unexpected,
        format!("{what} came with {length} values for {} rows", rows.len()),
    ))
}

/// NULL made false.
fn true_or_not(truths: BooleanArray) -> BooleanArray {
    match truths.null_count() {
        0 => BooleanArray::new(truths.values().clone(), None),
        _ => prep_null_mask_filter(&truths),
    }
}

fn constant(value: bool, length: usize) -> BooleanArray {
    let values = match value {
        true => BooleanBuffer::new_set(length),
        false => BooleanBuffer::new_unset(length),
    };
    BooleanArray::new(values, None)
}

/// The parts are not looked at any further once no row can match: the first ones may be cheap.
fn all(parts: &[Predicate], rows: &dyn Rows) -> Result<BooleanArray> {
    let mut truths = constant(true, rows.len());
    for part in parts {
        let next = part.evaluate(rows)?;
        truths = boolean::and_kleene(&truths, &next).map_err(|source| part.failed(source))?;
        if truths.null_count() == 0 && !truths.has_true() {
            break;
        }
    }
    Ok(truths)
}

fn any(parts: &[Predicate], rows: &dyn Rows) -> Result<BooleanArray> {
    let mut truths = constant(false, rows.len());
    for part in parts {
        let next = part.evaluate(rows)?;
        truths = boolean::or_kleene(&truths, &next).map_err(|source| part.failed(source))?;
        if truths.null_count() == 0 && !truths.has_false() {
            break;
        }
    }
    Ok(truths)
}

/// Each value against one; the array is no dictionary.
pub(super) fn compare(
    values: &dyn Array,
    comparison: Comparison,
    datum: &Datum,
) -> std::result::Result<BooleanArray, ArrowError> {
    match (values.data_type(), datum.literal()) {
        (DataType::Float32, PrimitiveLiteral::Float(wanted)) => Ok(compare_floats(
            values.as_primitive::<Float32Type>(),
            comparison,
            wanted.0,
        )),
        (DataType::Float64, PrimitiveLiteral::Double(wanted)) => Ok(compare_floats(
            values.as_primitive::<Float64Type>(),
            comparison,
            wanted.0,
        )),
        _ => {
            let wanted = scalar(datum, values.data_type()).ok_or_else(|| {
                mismatch(&format!("{} {}", datum.data_type(), show(datum)), values)
            })?;
            let kernel = match comparison {
                Comparison::Equal => cmp::eq,
                Comparison::NotEqual => cmp::neq,
                Comparison::Less => cmp::lt,
                Comparison::LessOrEqual => cmp::lt_eq,
                Comparison::Greater => cmp::gt,
                Comparison::GreaterOrEqual => cmp::gt_eq,
            };
            kernel(&values, &wanted)
        }
    }
}

/// IEEE comparison has -0.0 = 0.0 already; NaN, the greatest, is what no value is above.
fn compare_floats<T>(
    values: &PrimitiveArray<T>,
    comparison: Comparison,
    wanted: T::Native,
) -> BooleanArray
where
    T: ArrowPrimitiveType,
    T::Native: IsNan,
{
    use Comparison::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual};
    let each = |test: fn(T::Native, T::Native) -> bool| {
        BooleanArray::from_unary(values, |value| test(value, wanted))
    };
    match (comparison, wanted.is_nan()) {
        (Equal, false) => each(|value, wanted| value == wanted),
        (NotEqual, false) => each(|value, wanted| value != wanted),
        (Less, false) => each(|value, wanted| value < wanted),
        (LessOrEqual, false) => each(|value, wanted| value <= wanted),
        (Greater, false) => each(|value, wanted| value.is_nan() || value > wanted),
        (GreaterOrEqual, false) => each(|value, wanted| value.is_nan() || value >= wanted),
        (Equal | GreaterOrEqual, true) => each(|value, _| value.is_nan()),
        (NotEqual | Less, true) => each(|value, _| !value.is_nan()),
        (LessOrEqual, true) => each(|_, _| true),
        (Greater, true) => each(|_, _| false),
    }
}

/// Floats of either width.
trait IsNan: Copy + PartialOrd {
    fn is_nan(self) -> bool;
}

impl IsNan for f32 {
    fn is_nan(self) -> bool {
        f32::is_nan(self)
    }
}

impl IsNan for f64 {
    fn is_nan(self) -> bool {
        f64::is_nan(self)
    }
}

fn is_nan(values: &dyn Array) -> BooleanArray {
    match values.data_type() {
        DataType::Float32 => {
            BooleanArray::from_unary(values.as_primitive::<Float32Type>(), f32::is_nan)
        }
        DataType::Float64 => {
            BooleanArray::from_unary(values.as_primitive::<Float64Type>(), f64::is_nan)
        }
        _ => constant(false, values.len()),
    }
}

pub(super) fn mismatch(wanted: &str, values: &dyn Array) -> ArrowError {
    ArrowError::InvalidArgumentError(format!(
        "values of type {} can't be compared with {wanted}",
        values.data_type()
    ))
}

/// The value as one of Arrow's, of exactly this type; `None` if it is of another.
pub(super) fn scalar(datum: &Datum, data_type: &DataType) -> Option<Scalar<ArrayRef>> {
    use DataType as In;
    use PrimitiveLiteral as Is;
    use PrimitiveType as Of;
    let array: ArrayRef = match (datum.data_type(), datum.literal(), data_type) {
        (Of::Boolean, Is::Boolean(v), In::Boolean) => Arc::new(BooleanArray::from(vec![*v])),
        (Of::Int, Is::Int(v), In::Int32) => one::<Int32Type>(*v, data_type),
        (Of::Date, Is::Int(v), In::Date32) => one::<Date32Type>(*v, data_type),
        (Of::Long, Is::Long(v), In::Int64) => one::<Int64Type>(*v, data_type),
        (Of::Float, Is::Float(v), In::Float32) => one::<Float32Type>(v.0, data_type),
        (Of::Double, Is::Double(v), In::Float64) => one::<Float64Type>(v.0, data_type),
        (Of::Time, Is::Long(v), In::Time64(TimeUnit::Microsecond)) => {
            one::<Time64MicrosecondType>(*v, data_type)
        }
        (Of::Timestamp, Is::Long(v), In::Timestamp(TimeUnit::Microsecond, None))
        | (Of::Timestamptz, Is::Long(v), In::Timestamp(TimeUnit::Microsecond, Some(_))) => {
            one::<TimestampMicrosecondType>(*v, data_type)
        }
        (Of::TimestampNs, Is::Long(v), In::Timestamp(TimeUnit::Nanosecond, None))
        | (Of::TimestamptzNs, Is::Long(v), In::Timestamp(TimeUnit::Nanosecond, Some(_))) => {
            one::<TimestampNanosecondType>(*v, data_type)
        }
        (Of::Decimal { scale, .. }, Is::Int128(v), In::Decimal128(_, of))
            if i64::from(*of) == i64::from(*scale) =>
        {
            one::<Decimal128Type>(*v, data_type)
        }
        (Of::String, Is::String(v), In::Utf8) => Arc::new(StringArray::from(vec![v.as_str()])),
        (Of::String, Is::String(v), In::LargeUtf8) => {
            Arc::new(LargeStringArray::from(vec![v.as_str()]))
        }
        (Of::String, Is::String(v), In::Utf8View) => {
            Arc::new(StringViewArray::from(vec![v.as_str()]))
        }
        (Of::Binary | Of::Fixed(_), Is::Binary(v), In::Binary) => {
            Arc::new(BinaryArray::from(vec![v.as_slice()]))
        }
        (Of::Binary | Of::Fixed(_), Is::Binary(v), In::LargeBinary) => {
            Arc::new(LargeBinaryArray::from(vec![v.as_slice()]))
        }
        (Of::Binary | Of::Fixed(_), Is::Binary(v), In::BinaryView) => {
            Arc::new(BinaryViewArray::from(vec![v.as_slice()]))
        }
        (Of::Fixed(_), Is::Binary(v), In::FixedSizeBinary(width)) => fixed(v, *width)?,
        (Of::Uuid, Is::UInt128(v), In::FixedSizeBinary(16)) => fixed(&v.to_be_bytes(), 16)?,
        _ => return None,
    };
    Some(Scalar::new(array))
}

fn one<T: ArrowPrimitiveType>(value: T::Native, data_type: &DataType) -> ArrayRef {
    let array = PrimitiveArray::<T>::from_value(value, 1);
    Arc::new(array.with_data_type(data_type.clone()))
}

fn fixed(value: &[u8], width: i32) -> Option<ArrayRef> {
    let values = Buffer::from(value);
    let nulls: Option<NullBuffer> = None;
    let right_width = usize::try_from(width).is_ok_and(|width| width == value.len());
    if !right_width || width == 0 {
        return None;
    }
    let array = FixedSizeBinaryArray::try_new(width, values, nulls).ok()?;
    Some(Arc::new(array))
}
