//! Whether values are in a list: a few are compared one by one, many are looked up.

use std::collections::HashSet;
use std::hash::Hash;

use arrow_arith::boolean;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int32Type, Int64Type,
    Time64MicrosecondType, TimestampMicrosecondType, TimestampNanosecondType,
};
use arrow_array::{Array, ArrayAccessor, BooleanArray};
use arrow_schema::{ArrowError, DataType, TimeUnit};
use iceberg::spec::{Datum, PrimitiveLiteral};

use super::Comparison;
use super::datum::show;
use super::evaluate::{compare, mismatch, scalar};

/// Up to this many comparisons are quicker than hashing.
const COMPARED: usize = 4;

/// Whether each value equals one of these; NULL where it is NULL. The array is no dictionary.
pub(super) fn is_in(values: &dyn Array, datums: &[Datum]) -> Result<BooleanArray, ArrowError> {
    let Some((first, more)) = datums.split_first() else {
        return Ok(nowhere(values));
    };
    for datum in datums {
        let checked = std::ptr::eq(datum, first) || datum.data_type() != first.data_type();
        if checked && scalar(datum, values.data_type()).is_none() {
            let wanted = format!("{} {}", datum.data_type(), show(datum));
            return Err(mismatch(&wanted, values));
        }
    }
    if datums.len() <= COMPARED {
        let mut found = compare(values, Comparison::Equal, first)?;
        for datum in more {
            let next = compare(values, Comparison::Equal, datum)?;
            found = boolean::or(&found, &next)?;
        }
        return Ok(found);
    }
    look_up(values, datums).ok_or_else(|| mismatch("a list", values))
}

/// False of every value, NULL where it is NULL.
fn nowhere(values: &dyn Array) -> BooleanArray {
    let found = arrow_buffer::BooleanBuffer::new_unset(values.len());
    BooleanArray::new(found, values.logical_nulls())
}

fn look_up(values: &dyn Array, datums: &[Datum]) -> Option<BooleanArray> {
    use DataType as In;
    use TimeUnit::{Microsecond, Nanosecond};
    let found = match values.data_type() {
        In::Int32 => among(values.as_primitive::<Int32Type>(), &ints(datums), same),
        In::Date32 => among(values.as_primitive::<Date32Type>(), &ints(datums), same),
        In::Int64 => among(values.as_primitive::<Int64Type>(), &longs(datums), same),
        In::Time64(Microsecond) => {
            let values = values.as_primitive::<Time64MicrosecondType>();
            among(values, &longs(datums), same)
        }
        In::Timestamp(Microsecond, _) => {
            let values = values.as_primitive::<TimestampMicrosecondType>();
            among(values, &longs(datums), same)
        }
        In::Timestamp(Nanosecond, _) => {
            let values = values.as_primitive::<TimestampNanosecondType>();
            among(values, &longs(datums), same)
        }
        In::Decimal128(..) => {
            let values = values.as_primitive::<Decimal128Type>();
            among(values, &collect(datums, decimal), same)
        }
        In::Float32 => {
            let values = values.as_primitive::<Float32Type>();
            among(values, &collect(datums, float), |v| bits(f64::from(v)))
        }
        In::Float64 => {
            let values = values.as_primitive::<Float64Type>();
            among(values, &collect(datums, float), bits)
        }
        In::Boolean => among(values.as_boolean(), &collect(datums, boolean), same),
        In::Utf8 => {
            let wanted = strings(datums);
            BooleanArray::from_unary(values.as_string::<i32>(), |v| wanted.contains(v))
        }
        In::LargeUtf8 => {
            let wanted = strings(datums);
            BooleanArray::from_unary(values.as_string::<i64>(), |v| wanted.contains(v))
        }
        In::Utf8View => {
            let wanted = strings(datums);
            BooleanArray::from_unary(values.as_string_view(), |v| wanted.contains(v))
        }
        In::Binary => {
            let wanted = collect(datums, bytes);
            BooleanArray::from_unary(values.as_binary::<i32>(), |v| wanted.contains(v))
        }
        In::LargeBinary => {
            let wanted = collect(datums, bytes);
            BooleanArray::from_unary(values.as_binary::<i64>(), |v| wanted.contains(v))
        }
        In::BinaryView => {
            let wanted = collect(datums, bytes);
            BooleanArray::from_unary(values.as_binary_view(), |v| wanted.contains(v))
        }
        In::FixedSizeBinary(_) => {
            let wanted = collect(datums, bytes);
            BooleanArray::from_unary(values.as_fixed_size_binary(), |v| wanted.contains(v))
        }
        _ => return None,
    };
    Some(found)
}

fn among<A: ArrayAccessor, K: Eq + Hash>(
    values: A,
    wanted: &HashSet<K>,
    key: impl Fn(A::Item) -> K,
) -> BooleanArray {
    BooleanArray::from_unary(values, |value| wanted.contains(&key(value)))
}

fn same<T>(value: T) -> T {
    value
}

/// Equal floats have equal keys: one for both zeros, one for every NaN.
fn bits(value: f64) -> u64 {
    match value.is_nan() {
        true => f64::NAN.to_bits(),
        false => (value + 0.0).to_bits(),
    }
}

fn collect<'a, K: Eq + Hash>(
    datums: &'a [Datum],
    key: impl Fn(&'a PrimitiveLiteral) -> Option<K>,
) -> HashSet<K> {
    datums
        .iter()
        .filter_map(|datum| key(datum.literal()))
        .collect()
}

fn ints(datums: &[Datum]) -> HashSet<i32> {
    collect(datums, |literal| match literal {
        PrimitiveLiteral::Int(v) => Some(*v),
        _ => None,
    })
}

fn longs(datums: &[Datum]) -> HashSet<i64> {
    collect(datums, |literal| match literal {
        PrimitiveLiteral::Long(v) => Some(*v),
        _ => None,
    })
}

fn strings(datums: &[Datum]) -> HashSet<&str> {
    collect(datums, |literal| match literal {
        PrimitiveLiteral::String(v) => Some(v.as_str()),
        _ => None,
    })
}

fn decimal(literal: &PrimitiveLiteral) -> Option<i128> {
    match literal {
        PrimitiveLiteral::Int128(v) => Some(*v),
        _ => None,
    }
}

fn float(literal: &PrimitiveLiteral) -> Option<u64> {
    match literal {
        PrimitiveLiteral::Float(v) => Some(bits(f64::from(v.0))),
        PrimitiveLiteral::Double(v) => Some(bits(v.0)),
        _ => None,
    }
}

fn boolean(literal: &PrimitiveLiteral) -> Option<bool> {
    match literal {
        PrimitiveLiteral::Boolean(v) => Some(*v),
        _ => None,
    }
}

fn bytes(literal: &PrimitiveLiteral) -> Option<Vec<u8>> {
    match literal {
        PrimitiveLiteral::Binary(v) => Some(v.clone()),
        PrimitiveLiteral::UInt128(v) => Some(v.to_be_bytes().to_vec()),
        _ => None,
    }
}
