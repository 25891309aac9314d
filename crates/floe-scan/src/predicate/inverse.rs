//! From values of a partition field back to the values of its source column.

use iceberg::spec::{Datum, Literal, PrimitiveLiteral, PrimitiveType, Transform};

use super::calendar::span;
use super::datum::{bytes, typed};
use super::known::{Bound, Known};

/// A wider truncation of ints overflows in Java, with results that nobody can invert.
const WIDEST_INT_TRUNCATION: u32 = 1 << 30;

/// What is known of a column of this type where the partition value is this one.
pub(super) fn of_value(
    transform: Transform,
    kind: &PrimitiveType,
    value: Option<&Literal>,
) -> Known {
    if matches!(transform, Transform::Void | Transform::Unknown) {
        return Known::anything();
    }
    let literal = match value {
        None => return Known::null(),
        Some(Literal::Primitive(literal)) => literal,
        Some(_) => return Known::not_null(),
    };
    let known = match transform {
        Transform::Identity => typed(kind, literal).map(Known::value),
        Transform::Truncate(width) => {
            typed(kind, literal).and_then(|start| truncated(kind, width, start))
        }
        _ => None,
    };
    known.unwrap_or_else(|| {
        let range = match literal {
            PrimitiveLiteral::Int(unit) => span(transform, kind, *unit, *unit),
            _ => None,
        };
        between(Known::not_null(), range)
    })
}

/// The bounds of a column's values where partition values lie between these two, both of the type that [`value_kind`] names.
pub(super) fn of_range(
    transform: Transform,
    kind: &PrimitiveType,
    lower: &Datum,
    upper: &Datum,
) -> Option<(Datum, Datum)> {
    match transform {
        Transform::Truncate(width) => match (lower.literal(), upper.literal()) {
            (PrimitiveLiteral::String(_) | PrimitiveLiteral::Binary(_), _) => {
                Some((lower.clone(), after(kind, &cut(upper, width))?))
            }
            _ => steps(kind, width, lower, upper),
        },
        Transform::Year | Transform::Month | Transform::Day | Transform::Hour => {
            match (lower.literal(), upper.literal()) {
                (PrimitiveLiteral::Int(lower), PrimitiveLiteral::Int(upper)) => {
                    span(transform, kind, *lower, *upper)
                }
                _ => None,
            }
        }
        Transform::Identity | Transform::Bucket(_) | Transform::Void | Transform::Unknown => None,
    }
}

/// The type of a field's partition values.
pub(super) fn value_kind(transform: Transform, kind: &PrimitiveType) -> PrimitiveType {
    match transform {
        Transform::Identity | Transform::Truncate(_) => kind.clone(),
        _ => PrimitiveType::Int,
    }
}

fn between(known: Known, range: Option<(Datum, Datum)>) -> Known {
    match range {
        Some((lower, upper)) => known.between(Some(Bound::loose(lower)), Some(Bound::loose(upper))),
        None => known,
    }
}

/// Rows whose truncated value is this one.
fn truncated(kind: &PrimitiveType, width: u32, start: Datum) -> Option<Known> {
    let Some(prefix) = bytes(&start).map(<[u8]>::to_vec) else {
        let range = steps(kind, width, &start, &start)?;
        return Some(between(Known::not_null(), Some(range)));
    };
    if shorter_than(&start, width) {
        return Some(Known::value(start));
    }
    let upper = after(kind, &prefix).map(Bound::loose);
    let known = Known {
        prefix: Some(prefix),
        ..Known::not_null()
    };
    Some(known.between(Some(Bound::loose(start)), upper))
}

/// Whether nothing was cut off. Iceberg counts code points; old Java writers counted UTF-16 units, of which there are never fewer.
fn shorter_than(value: &Datum, width: u32) -> bool {
    let length = match value.literal() {
        PrimitiveLiteral::String(text) => text.encode_utf16().count(),
        PrimitiveLiteral::Binary(bytes) => bytes.len(),
        _ => return false,
    };
    u32::try_from(length).is_ok_and(|length| length < width)
}

/// As much of a value as every writer keeps (see [`shorter_than`]).
fn cut(value: &Datum, width: u32) -> Vec<u8> {
    let width = usize::try_from(width).unwrap_or(usize::MAX);
    match value.literal() {
        PrimitiveLiteral::String(text) => {
            let mut units = 0;
            let kept = text.chars().take_while(|c| {
                units += c.len_utf16();
                units <= width
            });
            kept.collect::<String>().into_bytes()
        }
        PrimitiveLiteral::Binary(bytes) => bytes.iter().take(width).copied().collect(),
        _ => Vec::new(),
    }
}

/// The least value that is greater than all that begin with this; `None` if there is none.
fn after(kind: &PrimitiveType, prefix: &[u8]) -> Option<Datum> {
    let literal = match kind {
        PrimitiveType::String => {
            let mut text: Vec<char> = std::str::from_utf8(prefix).ok()?.chars().collect();
            loop {
                let last = text.pop()?;
                if let Some(next) =
                    ((last as u32 + 1)..=u32::from(char::MAX)).find_map(char::from_u32)
                {
                    text.push(next);
                    break PrimitiveLiteral::String(text.into_iter().collect());
                }
            }
        }
        _ => {
            let mut bytes = prefix.to_vec();
            loop {
                let last = bytes.pop()?;
                if let Some(next) = last.checked_add(1) {
                    bytes.push(next);
                    break PrimitiveLiteral::Binary(bytes);
                }
            }
        }
    };
    typed(kind, &literal)
}

/// Numbers that truncate to something between two multiples of the width.
///
/// The smallest ints have no multiple below them among ints: in Java and Rust theirs wraps around to one near the greatest int.
/// So a multiple whose step ends beyond the ints may be theirs, also if the column has become long since.
fn steps(kind: &PrimitiveType, width: u32, lower: &Datum, upper: &Datum) -> Option<(Datum, Datum)> {
    let step = width.checked_sub(1)?;
    let (first, last) = match (kind, lower.literal(), upper.literal()) {
        (PrimitiveType::Int, PrimitiveLiteral::Int(first), PrimitiveLiteral::Int(last)) => {
            let last = last.checked_add_unsigned(step)?;
            (width <= WIDEST_INT_TRUNCATION).then_some(())?;
            (PrimitiveLiteral::Int(*first), PrimitiveLiteral::Int(last))
        }
        (PrimitiveType::Long, PrimitiveLiteral::Long(first), PrimitiveLiteral::Long(last)) => {
            let last = last.checked_add_unsigned(u64::from(step))?;
            let wrapped = *first <= i64::from(i32::MAX) && last > i64::from(i32::MAX);
            let int = *first <= i64::from(i32::MAX) && last >= i64::from(i32::MIN);
            (width <= WIDEST_INT_TRUNCATION || !int).then_some(())?;
            let first = match wrapped {
                true => (*first).min(i64::from(i32::MIN)),
                false => *first,
            };
            (PrimitiveLiteral::Long(first), PrimitiveLiteral::Long(last))
        }
        (
            PrimitiveType::Decimal { .. },
            PrimitiveLiteral::Int128(first),
            PrimitiveLiteral::Int128(last),
        ) => {
            let last = last.checked_add_unsigned(u128::from(step))?;
            (
                PrimitiveLiteral::Int128(*first),
                PrimitiveLiteral::Int128(last),
            )
        }
        _ => return None,
    };
    Some((typed(kind, &first)?, typed(kind, &last)?))
}
