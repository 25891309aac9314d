//! Literals that are wider than the column they are compared with: an int with 3,000,000,000, a float with 0.1, a decimal(9,2) with 1.005.
//! Each is brought to the column's type without changing any row's truth, or not at all.

use iceberg::spec::{Datum, PrimitiveLiteral, PrimitiveType};

use super::datum::{decimal, order, typed};
use super::{Column, Comparison, Predicate};

/// Whole numbers up to here are exact as float and as double; an engine that rounds a column to these types goes wrong only beyond.
const FLOAT_WHOLE: i128 = 1 << 24;
const DOUBLE_WHOLE: i128 = 1 << 53;

const MICROS_PER_DAY: i128 = 86_400_000_000;
const NANOS_PER_MICRO: i128 = 1_000;

/// Where a literal lies among the values of a type.
#[derive(Debug, PartialEq)]
enum Fit {
    /// It is this value.
    Exact(Datum),
    /// It is none of them; this value is the next smaller one.
    Above(Datum),
    /// It is none of them; this value is the next greater one.
    Below(Datum),
    /// It is greater than all.
    Greatest,
    /// It is smaller than all.
    Least,
}

impl Predicate {
    /// A column against a literal of its type or a wider one, as if both were compared in the wider type: int and long, float and double,
    /// decimals of any scale, numbers with a fraction, dates with timestamps, microseconds with nanoseconds.
    /// `None`: can't be told exactly, as for a long column and a double beyond 2^53, or makes no sense.
    pub fn compare(column: &Column, comparison: Comparison, literal: &Datum) -> Option<Self> {
        use Comparison::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual};
        let against = |comparison, datum| Some(Self::Compare(column.clone(), comparison, datum));
        let never = || Some(Self::never(column));
        let always = || Some(Self::never(column).negate());
        match (fit(&column.kind, literal)?, comparison) {
            (Fit::Exact(datum), _) => against(comparison, datum),
            (Fit::Above(datum), Less | LessOrEqual) => against(LessOrEqual, datum),
            (Fit::Above(datum), Greater | GreaterOrEqual) => against(Greater, datum),
            (Fit::Below(datum), Less | LessOrEqual) => against(Less, datum),
            (Fit::Below(datum), Greater | GreaterOrEqual) => against(GreaterOrEqual, datum),
            (Fit::Greatest, Less | LessOrEqual) => always(),
            (Fit::Greatest, Greater | GreaterOrEqual) => never(),
            (Fit::Least, Less | LessOrEqual) => never(),
            (Fit::Least, Greater | GreaterOrEqual) => always(),
            (_, Equal) => never(),
            (_, NotEqual) => always(),
        }
    }

    /// Whether a column is one of these literals, each of its type or a wider one. `None` as for [`Self::compare`].
    pub fn one_of(column: &Column, literals: &[Datum]) -> Option<Self> {
        let mut datums = Vec::with_capacity(literals.len());
        for literal in literals {
            if let Fit::Exact(datum) = fit(&column.kind, literal)? {
                datums.push(datum);
            }
        }
        let by_value = |left: &Datum, right: &Datum| {
            order(left, right).expect("values of one type have an order")
        };
        datums.sort_by(by_value);
        datums.dedup_by(|left, right| by_value(left, right).is_eq());
        Some(match datums.len() {
            1 => Self::Compare(column.clone(), Comparison::Equal, datums.remove(0)),
            _ => Self::In(column.clone(), datums),
        })
    }
}

fn fit(kind: &PrimitiveType, literal: &Datum) -> Option<Fit> {
    use PrimitiveType as Of;
    match literal.literal() {
        PrimitiveLiteral::AboveMax => return Some(Fit::Greatest),
        PrimitiveLiteral::BelowMin => return Some(Fit::Least),
        _ => {}
    }
    match (kind, literal.data_type()) {
        (Of::Int | Of::Long, _) => whole(kind, literal),
        (Of::Float, _) => float(literal),
        (Of::Double, _) => double(literal),
        (Of::Decimal { scale, .. }, _) => decimals(kind, *scale, literal),
        (Of::Date, Of::Timestamp | Of::TimestampNs) => Some(floor(
            kind,
            moment(literal)?,
            MICROS_PER_DAY * NANOS_PER_MICRO,
        )),
        (Of::Timestamp, Of::Date | Of::TimestampNs) | (Of::Timestamptz, Of::TimestamptzNs) => {
            Some(floor(kind, moment(literal)?, NANOS_PER_MICRO))
        }
        (Of::TimestampNs, Of::Date | Of::Timestamp) | (Of::TimestamptzNs, Of::Timestamptz) => {
            Some(floor(kind, moment(literal)?, 1))
        }
        (Of::Fixed(length), Of::Fixed(_) | Of::Binary) => {
            let PrimitiveLiteral::Binary(bytes) = literal.literal() else {
                return None;
            };
            let right = u64::try_from(bytes.len()).is_ok_and(|bytes| bytes == *length);
            right.then(|| typed(kind, literal.literal()).map(Fit::Exact))?
        }
        (Of::Binary, Of::Fixed(_)) => typed(kind, literal.literal()).map(Fit::Exact),
        (kind, of) if kind == of => Some(Fit::Exact(literal.clone())),
        _ => None,
    }
}

/// Nanoseconds since 1970.
fn moment(literal: &Datum) -> Option<i128> {
    use PrimitiveType as Of;
    match (literal.data_type(), literal.literal()) {
        (Of::Date, PrimitiveLiteral::Int(v)) => {
            Some(i128::from(*v) * MICROS_PER_DAY * NANOS_PER_MICRO)
        }
        (Of::Timestamp | Of::Timestamptz, PrimitiveLiteral::Long(v)) => {
            Some(i128::from(*v) * NANOS_PER_MICRO)
        }
        (Of::TimestampNs | Of::TimestamptzNs, PrimitiveLiteral::Long(v)) => Some(i128::from(*v)),
        _ => None,
    }
}

/// `number / unit` among the values of a type that counts in whole units.
fn floor(kind: &PrimitiveType, number: i128, unit: i128) -> Fit {
    let below = number.div_euclid(unit);
    match in_range(kind, below) {
        Ok(datum) if below * unit == number => Fit::Exact(datum),
        Ok(datum) => Fit::Above(datum),
        Err(beyond) => beyond,
    }
}

/// A whole number as a value of a type that counts, or on which side of all its values it lies.
fn in_range(kind: &PrimitiveType, number: i128) -> Result<Datum, Fit> {
    use PrimitiveType as Of;
    let beyond = match number < 0 {
        true => Fit::Least,
        false => Fit::Greatest,
    };
    let literal = match kind {
        Of::Int | Of::Date => i32::try_from(number).ok().map(PrimitiveLiteral::Int),
        _ => i64::try_from(number).ok().map(PrimitiveLiteral::Long),
    };
    literal
        .and_then(|literal| typed(kind, &literal))
        .ok_or(beyond)
}

fn whole(kind: &PrimitiveType, literal: &Datum) -> Option<Fit> {
    use PrimitiveType as Of;
    let long = matches!(kind, Of::Long);
    match (literal.data_type(), literal.literal()) {
        (Of::Int, PrimitiveLiteral::Int(v)) => Some(floor(kind, i128::from(*v), 1)),
        (Of::Long, PrimitiveLiteral::Long(v)) => Some(floor(kind, i128::from(*v), 1)),
        (Of::Decimal { scale, .. }, PrimitiveLiteral::Int128(v)) => {
            Some(floor(kind, *v, ten_to(*scale)?))
        }
        (Of::Float, PrimitiveLiteral::Float(v)) => {
            fraction(kind, f64::from(v.0), Some(FLOAT_WHOLE))
        }
        (Of::Double, PrimitiveLiteral::Double(v)) => {
            fraction(kind, v.0, long.then_some(DOUBLE_WHOLE))
        }
        _ => None,
    }
}

/// A float among whole numbers. From `limit` on, an engine that turns the column into floats rounds it.
fn fraction(kind: &PrimitiveType, value: f64, limit: Option<i128>) -> Option<Fit> {
    if value.is_nan() || value == f64::INFINITY {
        return Some(Fit::Greatest);
    }
    if value == f64::NEG_INFINITY {
        return Some(Fit::Least);
    }
    // Saturates, far beyond every limit and every long.
    let below = value.floor() as i128;
    if limit.is_some_and(|limit| below <= -limit || below >= limit) {
        return None;
    }
    Some(match in_range(kind, below) {
        Ok(datum) if value.fract() == 0.0 => Fit::Exact(datum),
        Ok(datum) => Fit::Above(datum),
        Err(beyond) => beyond,
    })
}

fn float(literal: &Datum) -> Option<Fit> {
    let wide = match literal.literal() {
        PrimitiveLiteral::Float(_) => return Some(Fit::Exact(literal.clone())),
        PrimitiveLiteral::Double(v) => v.0,
        _ => {
            let number = whole_number(literal, FLOAT_WHOLE)?;
            return Some(Fit::Exact(Datum::float(number as f32)));
        }
    };
    let near = wide as f32;
    Some(match f64::from(near).partial_cmp(&wide) {
        Some(std::cmp::Ordering::Less) => Fit::Above(Datum::float(near)),
        Some(std::cmp::Ordering::Greater) => Fit::Below(Datum::float(near)),
        // Equal, or both NaN.
        _ => Fit::Exact(Datum::float(near)),
    })
}

fn double(literal: &Datum) -> Option<Fit> {
    Some(Fit::Exact(match literal.literal() {
        PrimitiveLiteral::Double(_) => literal.clone(),
        PrimitiveLiteral::Float(v) => Datum::double(f64::from(v.0)),
        _ => Datum::double(whole_number(literal, DOUBLE_WHOLE)? as f64),
    }))
}

fn whole_number(literal: &Datum, limit: i128) -> Option<i64> {
    let number = match (literal.data_type(), literal.literal()) {
        (PrimitiveType::Int, PrimitiveLiteral::Int(v)) => i64::from(*v),
        (PrimitiveType::Long, PrimitiveLiteral::Long(v)) => *v,
        _ => return None,
    };
    (i128::from(number).abs() <= limit).then_some(number)
}

fn decimals(kind: &PrimitiveType, scale: u32, literal: &Datum) -> Option<Fit> {
    use PrimitiveType as Of;
    let (unscaled, of) = match (literal.data_type(), literal.literal()) {
        (Of::Int, PrimitiveLiteral::Int(v)) => (i128::from(*v), 0),
        (Of::Long, PrimitiveLiteral::Long(v)) => (i128::from(*v), 0),
        (Of::Decimal { scale, .. }, PrimitiveLiteral::Int128(v)) => (*v, *scale),
        _ => return None,
    };
    let value = |unscaled| typed(kind, decimal(unscaled, scale).literal());
    if of <= scale {
        return match unscaled.checked_mul(ten_to(scale - of)?) {
            Some(unscaled) => value(unscaled).map(Fit::Exact),
            None if unscaled < 0 => Some(Fit::Least),
            None => Some(Fit::Greatest),
        };
    }
    let unit = ten_to(of - scale)?;
    let below = unscaled.div_euclid(unit);
    match below * unit == unscaled {
        true => value(below).map(Fit::Exact),
        false => value(below).map(Fit::Above),
    }
}

fn ten_to(power: u32) -> Option<i128> {
    10_i128.checked_pow(power)
}
