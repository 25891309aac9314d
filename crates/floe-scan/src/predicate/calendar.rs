//! The spans of time behind values of the transforms year, month, day and hour (Iceberg's spec, "Partition Transforms").

use iceberg::spec::{Datum, PrimitiveLiteral, PrimitiveType, Transform};

use super::datum::typed;

const HOURS_PER_DAY: i128 = 24;

/// The first and the last value of a column that units `first` to `last` hold; `None` if the transform is not for such a column.
///
/// Old versions of Iceberg's Java library, and of iceberg-rust for some moments of a day, rounded times before 1970 up instead of down: a value of
/// at most 0 may stand for one unit less. Days of dates need no rounding.
pub(super) fn span(
    transform: Transform,
    kind: &PrimitiveType,
    first: i32,
    last: i32,
) -> Option<(Datum, Datum)> {
    let unit = Unit::of(transform)?;
    let per_day = values_per_day(kind)?;
    if matches!(unit, Unit::Hour) && per_day == 1 {
        return None;
    }
    let exact = matches!(unit, Unit::Day) && per_day == 1;
    let first = match first <= 0 && !exact {
        true => i64::from(first) - 1,
        false => i64::from(first),
    };
    let lower = unit.start(first, per_day);
    let upper = unit.start(i64::from(last) + 1, per_day) - 1;
    Some((within(kind, lower)?, within(kind, upper)?))
}

#[derive(Clone, Copy)]
enum Unit {
    Year,
    Month,
    Day,
    Hour,
}

impl Unit {
    fn of(transform: Transform) -> Option<Self> {
        match transform {
            Transform::Year => Some(Self::Year),
            Transform::Month => Some(Self::Month),
            Transform::Day => Some(Self::Day),
            Transform::Hour => Some(Self::Hour),
            _ => None,
        }
    }

    /// Where the unit of this number since 1970 starts, in a column's own count.
    fn start(self, number: i64, per_day: i128) -> i128 {
        let number = i128::from(number);
        match self {
            Self::Year => first_of_month(number * 12) * per_day,
            Self::Month => first_of_month(number) * per_day,
            Self::Day => number * per_day,
            Self::Hour => number * (per_day / HOURS_PER_DAY),
        }
    }
}

fn values_per_day(kind: &PrimitiveType) -> Option<i128> {
    match kind {
        PrimitiveType::Date => Some(1),
        PrimitiveType::Timestamp | PrimitiveType::Timestamptz => Some(86_400_000_000),
        PrimitiveType::TimestampNs | PrimitiveType::TimestamptzNs => Some(86_400_000_000_000),
        _ => None,
    }
}

/// Days from 1970-01-01 to the first of a month, counted from January 1970, in the Gregorian calendar extended both ways:
/// years begin in March, so that the leap day is the last (the well-known algorithm of H. Hinnant, `days_from_civil`).
fn first_of_month(months: i128) -> i128 {
    let (year, month) = (1970 + months.div_euclid(12), months.rem_euclid(12));
    let (year, from_march) = match month {
        0 | 1 => (year - 1, month + 10),
        _ => (year, month - 2),
    };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * from_march + 2) / 5;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// The value of the type that is nearest to this count.
fn within(kind: &PrimitiveType, count: i128) -> Option<Datum> {
    let literal = match kind {
        PrimitiveType::Date => {
            let days = count.clamp(i128::from(i32::MIN), i128::from(i32::MAX));
            PrimitiveLiteral::Int(i32::try_from(days).ok()?)
        }
        _ => {
            let count = count.clamp(i128::from(i64::MIN), i128::from(i64::MAX));
            PrimitiveLiteral::Long(i64::try_from(count).ok()?)
        }
    };
    typed(kind, &literal)
}
