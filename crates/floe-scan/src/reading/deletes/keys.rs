//! Rows as bytes that are equal where Iceberg calls the rows equal: NULL equals NULL, NaN equals NaN, -0.0 is not 0.0
//! (Java compares floats by their bits), decimals and timestamps by their numbers.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int32Type, Int64Type,
    Time64MicrosecondType, TimestampMicrosecondType, TimestampNanosecondType,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, TimeUnit};

/// Writes the value of a row.
type Encode<'a> = Box<dyn Fn(usize, &mut Vec<u8>) + 'a>;

/// Writes rows of some columns as bytes.
pub(super) struct Encoder<'a>(Vec<Encode<'a>>);

impl<'a> Encoder<'a> {
    /// Of these columns; the type that can't be told apart if one can't.
    pub(super) fn new(columns: &'a [ArrayRef]) -> Result<Self, &'a DataType> {
        columns
            .iter()
            .map(column)
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// Replaces what is in `key` by that of a row.
    pub(super) fn encode(&self, row: usize, key: &mut Vec<u8>) {
        key.clear();
        self.0.iter().for_each(|encode| encode(row, key));
    }
}

fn column(array: &ArrayRef) -> Result<Encode<'_>, &DataType> {
    let value: Encode<'_> = match array.data_type() {
        DataType::Boolean => {
            let array = array.as_boolean();
            Box::new(|row, key| key.push(u8::from(array.value(row))))
        }
        DataType::Int32 => number::<Int32Type, 4>(array, i32::to_le_bytes),
        DataType::Int64 => number::<Int64Type, 8>(array, i64::to_le_bytes),
        DataType::Date32 => number::<Date32Type, 4>(array, i32::to_le_bytes),
        DataType::Time64(TimeUnit::Microsecond) => {
            number::<Time64MicrosecondType, 8>(array, i64::to_le_bytes)
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            number::<TimestampMicrosecondType, 8>(array, i64::to_le_bytes)
        }
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            number::<TimestampNanosecondType, 8>(array, i64::to_le_bytes)
        }
        DataType::Decimal128(..) => number::<Decimal128Type, 16>(array, i128::to_le_bytes),
        DataType::Float32 => number::<Float32Type, 4>(array, |value| {
            let value = if value.is_nan() { f32::NAN } else { value };
            value.to_bits().to_le_bytes()
        }),
        DataType::Float64 => number::<Float64Type, 8>(array, |value| {
            let value = if value.is_nan() { f64::NAN } else { value };
            value.to_bits().to_le_bytes()
        }),
        DataType::Utf8 => {
            let array = array.as_string::<i32>();
            Box::new(|row, key| text(array.value(row).as_bytes(), key))
        }
        DataType::LargeBinary => {
            let array = array.as_binary::<i64>();
            Box::new(|row, key| text(array.value(row), key))
        }
        DataType::FixedSizeBinary(_) => {
            let array = array.as_fixed_size_binary();
            Box::new(|row, key| key.extend_from_slice(array.value(row)))
        }
        other => return Err(other),
    };
    Ok(Box::new(move |row, key| {
        let null = array.is_null(row);
        key.push(u8::from(!null));
        if !null {
            value(row, key);
        }
    }))
}

fn number<T: ArrowPrimitiveType, const N: usize>(
    array: &ArrayRef,
    bytes: impl Fn(T::Native) -> [u8; N] + 'static,
) -> Encode<'_> {
    let values = array.as_primitive::<T>().values();
    Box::new(move |row, key| key.extend_from_slice(&bytes(values[row])))
}

/// Bytes of any length: their length first, so that no two rows run into each other.
fn text(value: &[u8], key: &mut Vec<u8>) {
    key.extend_from_slice(&(value.len() as u64).to_le_bytes());
    key.extend_from_slice(value);
}
