//! From what a file's columns decode to, to the table's types: promotions, fields of structs that came, went or moved.
//! Columns that are right already pass as they are.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Int64Type, Time32MillisecondType, Time64MicrosecondType,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
};
use arrow_array::{
    Array, ArrayRef, ListArray, MapArray, PrimitiveArray, StructArray, new_null_array,
};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{ArrowError, DataType, FieldRef, Fields, TimeUnit};
use iceberg::spec::{Literal, NestedFieldRef};

use super::constant;

const DAY_MICROS: i64 = 86_400_000_000;
const DAY_NANOS: i64 = 86_400_000_000_000;

/// How a decoded column becomes the table's.
#[derive(Clone, Debug)]
pub(super) enum Convert {
    /// It is of its type.
    Keep,
    /// A value for a value.
    Leaf(Leaf, DataType),
    Struct(Fields, Vec<Child>),
    List(FieldRef, Box<Convert>),
    /// Entries, key, value.
    Map(FieldRef, Box<[Convert; 2]>),
}

/// Where a field of a struct comes from.
#[derive(Clone, Debug)]
pub(super) enum Child {
    /// The file's, at this position of those that are decoded.
    Decoded(usize, Convert),
    Missing(Missing),
}

/// A field that a file lacks.
#[derive(Clone, Debug)]
pub(super) struct Missing {
    pub(super) field: NestedFieldRef,
    pub(super) arrow: DataType,
}

/// How a value becomes one of another type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leaf {
    /// An exact cast of Arrow's, which fails where it can't be.
    Cast,
    /// The same numbers under another name.
    Retype,
    /// Days to a timestamp.
    Days,
    /// Milliseconds to microseconds.
    Millis,
    /// Nothing to NULL.
    Null,
}

/// What one file gives to columns that it lacks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Constants<'a>(pub(super) &'a [(i32, Option<Literal>)]);

/// How values of type `from` become those of type `to`; `None`: no evolution leads from one to the other.
pub(super) fn leaf(from: &DataType, to: &DataType) -> Option<Convert> {
    use DataType as T;
    if from == to {
        return Some(Convert::Keep);
    }
    let how = match (from, to) {
        (T::Null, _) => Leaf::Null,
        (T::Int8 | T::Int16 | T::UInt8 | T::UInt16, T::Int32)
        | (T::Int8 | T::Int16 | T::Int32 | T::UInt8 | T::UInt16 | T::UInt32, T::Int64)
        | (T::Float32, T::Float64)
        | (T::FixedSizeBinary(_), T::LargeBinary) => Leaf::Cast,
        (T::Decimal128(from, scale), T::Decimal128(to, same)) if scale == same && from <= to => {
            Leaf::Retype
        }
        (T::Decimal256(_, scale), T::Decimal128(_, same)) if scale == same => Leaf::Cast,
        (T::Date32, T::Timestamp(TimeUnit::Microsecond | TimeUnit::Nanosecond, None)) => Leaf::Days,
        (T::Timestamp(unit, _), T::Timestamp(same, _)) if unit == same => Leaf::Retype,
        (T::Timestamp(TimeUnit::Millisecond, _), T::Timestamp(TimeUnit::Microsecond, _))
        | (T::Time32(TimeUnit::Millisecond), T::Time64(TimeUnit::Microsecond)) => Leaf::Millis,
        _ => return None,
    };
    Some(Convert::Leaf(how, to.clone()))
}

/// The type that Parquet should decode to at once, if it is not the one that it decodes to by itself.
pub(super) fn hint(from: &DataType, int96: bool, to: &DataType) -> Option<DataType> {
    use DataType as T;
    match (from, to) {
        (T::Binary, T::LargeBinary | T::Utf8) => Some(to.clone()),
        // As nanoseconds they would not reach beyond three centuries.
        (T::Timestamp(..), T::Timestamp(TimeUnit::Microsecond, _)) if int96 => Some(to.clone()),
        _ => None,
    }
}

impl Convert {
    pub(super) fn apply(
        &self,
        array: ArrayRef,
        constants: Constants<'_>,
    ) -> Result<ArrayRef, ArrowError> {
        match self {
            Self::Keep => Ok(array),
            Self::Leaf(how, to) => how.apply(&array, to),
            Self::Struct(fields, children) => {
                let from = array
                    .as_struct_opt()
                    .ok_or_else(|| unlike("a struct", &array))?;
                let columns = children
                    .iter()
                    .map(|child| child.of(from, constants))
                    .collect::<Result<Vec<_>, _>>()?;
                let nulls = from.nulls().cloned();
                Ok(Arc::new(match columns.is_empty() {
                    true => StructArray::new_empty_fields(from.len(), nulls),
                    false => StructArray::try_new(fields.clone(), columns, nulls)?,
                }))
            }
            Self::List(field, element) => {
                let from = array
                    .as_list_opt::<i32>()
                    .ok_or_else(|| unlike("a list", &array))?;
                let values = element.apply(from.values().clone(), constants)?;
                let (offsets, nulls) = (from.offsets().clone(), from.nulls().cloned());
                let list = ListArray::try_new(field.clone(), offsets, values, nulls)?;
                Ok(Arc::new(list))
            }
            Self::Map(entries, entry) => {
                let from = array.as_map_opt().ok_or_else(|| unlike("a map", &array))?;
                let [key, value] = entry.as_ref();
                let columns = vec![
                    key.apply(from.keys().clone(), constants)?,
                    value.apply(from.values().clone(), constants)?,
                ];
                let DataType::Struct(fields) = entries.data_type() else {
                    return Err(unlike("a map", &array));
                };
                let pairs = StructArray::try_new(fields.clone(), columns, None)?;
                let (offsets, nulls) = (from.offsets().clone(), from.nulls().cloned());
                let map = MapArray::try_new(entries.clone(), offsets, pairs, nulls, false)?;
                Ok(Arc::new(map))
            }
        }
    }
}

impl Child {
    fn of(&self, parent: &StructArray, constants: Constants<'_>) -> Result<ArrayRef, ArrowError> {
        match self {
            Self::Decoded(position, convert) => {
                let column = parent.columns().get(*position).ok_or_else(|| {
                    ArrowError::SchemaError(format!("a struct has no field {position}"))
                })?;
                convert.apply(column.clone(), constants)
            }
            Self::Missing(missing) => missing.fill(parent.len(), constants),
        }
    }
}

impl Missing {
    /// The partition's constant, else the field's initial default, else NULL.
    pub(super) fn fill(
        &self,
        rows: usize,
        constants: Constants<'_>,
    ) -> Result<ArrayRef, ArrowError> {
        let constant = constants.0.iter().find(|(id, _)| *id == self.field.id);
        let value = match constant {
            Some((_, value)) => value.as_ref(),
            None => self.field.initial_default.as_ref(),
        };
        if value.is_none() && self.field.required {
            return Err(ArrowError::SchemaError(format!(
                "the required column '{}' is missing and has no initial default",
                self.field.name
            )));
        }
        constant::repeat(value, &self.field.field_type, &self.arrow, rows).ok_or_else(|| {
            ArrowError::NotYetImplemented(format!(
                "column '{}' is missing, and its value {value:?} is none of type {}",
                self.field.name, self.field.field_type
            ))
        })
    }
}

impl Leaf {
    fn apply(self, array: &ArrayRef, to: &DataType) -> Result<ArrayRef, ArrowError> {
        match self {
            Self::Cast => {
                let options = CastOptions {
                    safe: false,
                    ..CastOptions::default()
                };
                cast_with_options(array, to, &options)
            }
            Self::Retype => {
                let data = array.to_data().into_builder().data_type(to.clone());
                Ok(arrow_array::make_array(data.build()?))
            }
            Self::Days => match to {
                DataType::Timestamp(TimeUnit::Nanosecond, _) => {
                    scale::<Date32Type, TimestampNanosecondType>(array, to, DAY_NANOS)
                }
                _ => scale::<Date32Type, TimestampMicrosecondType>(array, to, DAY_MICROS),
            },
            Self::Millis => match to {
                DataType::Time64(_) => {
                    scale::<Time32MillisecondType, Time64MicrosecondType>(array, to, 1000)
                }
                _ => scale::<TimestampMillisecondType, TimestampMicrosecondType>(array, to, 1000),
            },
            Self::Null => Ok(new_null_array(to, array.len())),
        }
    }
}

/// Each number times `factor`; an overflow is an error.
fn scale<From, To>(array: &ArrayRef, to: &DataType, factor: i64) -> Result<ArrayRef, ArrowError>
where
    From: ArrowPrimitiveType,
    To: ArrowPrimitiveType<Native = i64>,
    i64: std::convert::From<From::Native>,
{
    // The array may carry a time zone of its own.
    let from = array
        .as_primitive_opt::<From>()
        .ok_or_else(|| unlike("a number of days or milliseconds", array))?;
    let scaled: PrimitiveArray<Int64Type> = from.try_unary(|value| {
        i64::from(value).checked_mul(factor).ok_or_else(|| {
            ArrowError::ArithmeticOverflow(format!("{value:?} of {} is no {to}", array.data_type()))
        })
    })?;
    let scaled = scaled.reinterpret_cast::<To>();
    Ok(Arc::new(scaled.with_data_type(to.clone())))
}

fn unlike(wanted: &str, array: &ArrayRef) -> ArrowError {
    ArrowError::SchemaError(format!("wanted {wanted}, found {}", array.data_type()))
}
