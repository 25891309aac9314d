//! Bounds of partition fields as Java's `toHumanString` writes them. NULL stays NULL, which Java writes as the text "null".

use arrow_cast::base64::{BASE64_STANDARD, Engine};
use chrono::{DateTime, Datelike, NaiveDate, NaiveTime, Timelike};
use iceberg::spec::{PrimitiveLiteral, PrimitiveType, Transform};
use uuid::Uuid;

use crate::predicate::read_bound;

/// A bound of a field of this transform, whose values have this type. `None`: its bytes are none of the type, or what
/// they stand for can't be known.
pub(super) fn bound(transform: Transform, kind: &PrimitiveType, bytes: &[u8]) -> Option<String> {
    let bound = read_bound(bytes, kind)?;
    match (transform, bound.literal()) {
        (Transform::Void | Transform::Unknown, _) => None,
        (Transform::Year, PrimitiveLiteral::Int(years)) => {
            Some(format!("{:04}", 1970 + i64::from(*years)))
        }
        (Transform::Month, PrimitiveLiteral::Int(months)) => {
            let (years, month) = (months.div_euclid(12), months.rem_euclid(12));
            Some(format!("{:04}-{:02}", 1970 + i64::from(years), month + 1))
        }
        (Transform::Hour, PrimitiveLiteral::Int(hours)) => hour(*hours),
        (_, literal) => value(kind, literal),
    }
}

fn value(kind: &PrimitiveType, literal: &PrimitiveLiteral) -> Option<String> {
    use PrimitiveLiteral as Is;
    use PrimitiveType as Of;
    match (kind, literal) {
        (_, Is::Boolean(value)) => Some(value.to_string()),
        (Of::Date, Is::Int(days)) => {
            let at = DateTime::from_timestamp(i64::from(*days) * 86_400, 0)?;
            Some(day(at.date_naive()))
        }
        (_, Is::Int(value)) => Some(value.to_string()),
        (Of::Time, Is::Long(micros)) => time_of_day(*micros),
        (Of::Timestamp, Is::Long(micros)) => moment(DateTime::from_timestamp_micros(*micros)?),
        (Of::Timestamptz, Is::Long(micros)) => {
            moment(DateTime::from_timestamp_micros(*micros)?).map(|text| text + "Z")
        }
        (Of::TimestampNs, Is::Long(nanos)) => moment(DateTime::from_timestamp_nanos(*nanos)),
        (Of::TimestamptzNs, Is::Long(nanos)) => {
            moment(DateTime::from_timestamp_nanos(*nanos)).map(|text| text + "Z")
        }
        (_, Is::Long(value)) => Some(value.to_string()),
        (_, Is::Float(value)) => Some(float(
            f64::from(value.0),
            value.0.to_string(),
            format!("{:e}", value.0),
        )),
        (_, Is::Double(value)) => Some(float(
            value.0,
            value.0.to_string(),
            format!("{:e}", value.0),
        )),
        (_, Is::String(text)) => Some(text.clone()),
        (_, Is::UInt128(value)) => Some(Uuid::from_u128(*value).to_string()),
        (_, Is::Binary(bytes)) => Some(BASE64_STANDARD.encode(bytes)),
        (Of::Decimal { scale, .. }, Is::Int128(unscaled)) => Some(decimal(*unscaled, *scale)),
        _ => None,
    }
}

fn day(date: NaiveDate) -> String {
    format!("{:04}-{:02}-{:02}", date.year(), date.month(), date.day())
}

fn hour(hours: i32) -> Option<String> {
    let at = DateTime::from_timestamp(i64::from(hours) * 3600, 0)?;
    Some(format!("{}-{:02}", day(at.date_naive()), at.hour()))
}

/// As Java's `LocalDateTime` writes it: years beyond four digits have a sign, seconds stand there if there are any.
fn moment(at: DateTime<chrono::Utc>) -> Option<String> {
    let date = at.date_naive();
    let year = match date.year() {
        year @ 10_000.. => format!("+{year}"),
        year @ ..0 => format!("-{:04}", year.unsigned_abs()),
        year => format!("{year:04}"),
    };
    let time = clock(at.time());
    Some(format!(
        "{year}-{:02}-{:02}T{time}",
        date.month(),
        date.day()
    ))
}

fn time_of_day(micros: i64) -> Option<String> {
    let micros = u64::try_from(micros).ok()?;
    let seconds = u32::try_from(micros / 1_000_000).ok()?;
    let nanos = u32::try_from(micros % 1_000_000 * 1000).ok()?;
    NaiveTime::from_num_seconds_from_midnight_opt(seconds, nanos).map(clock)
}

/// As Java's `LocalTime` writes it: seconds only if there are any, a fraction of three, six or nine digits.
fn clock(time: NaiveTime) -> String {
    let (hour, minute, second, nanos) =
        (time.hour(), time.minute(), time.second(), time.nanosecond());
    let fraction = match nanos {
        0 if second == 0 => return format!("{hour:02}:{minute:02}"),
        0 => String::new(),
        nanos if nanos % 1_000_000 == 0 => format!(".{:03}", nanos / 1_000_000),
        nanos if nanos % 1000 == 0 => format!(".{:06}", nanos / 1000),
        nanos => format!(".{nanos:09}"),
    };
    format!("{hour:02}:{minute:02}:{second:02}{fraction}")
}

/// As Java's `Double` and `Float` write it, from its two forms in Rust.
fn float(value: f64, plain: String, scientific: String) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        let sign = if value < 0.0 { "-" } else { "" };
        return format!("{sign}Infinity");
    }
    let with_point = |digits: &str| match digits.contains('.') {
        true => digits.to_owned(),
        false => format!("{digits}.0"),
    };
    let is_plain = value == 0.0 || (1e-3..1e7).contains(&value.abs());
    match scientific.split_once('e') {
        Some((digits, exponent)) if !is_plain => format!("{}E{exponent}", with_point(digits)),
        _ => with_point(&plain),
    }
}

/// As Java's `BigDecimal` writes it: with an exponent where more than six zeros would lead.
fn decimal(unscaled: i128, scale: u32) -> String {
    let sign = if unscaled < 0 { "-" } else { "" };
    let digits = unscaled.unsigned_abs().to_string();
    let scale = scale as usize;
    if scale == 0 {
        return format!("{sign}{digits}");
    }
    if digits.len() > scale {
        let (whole, fraction) = digits.split_at(digits.len() - scale);
        return format!("{sign}{whole}.{fraction}");
    }
    let exponent = scale + 1 - digits.len();
    if exponent <= 6 {
        return format!("{sign}0.{digits:0>scale$}");
    }
    let (first, rest) = digits.split_at(1);
    let point = if rest.is_empty() { "" } else { "." };
    format!("{sign}{first}{point}{rest}E-{exponent}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(transform: Transform, kind: PrimitiveType, bytes: &[u8]) -> String {
        bound(transform, &kind, bytes).unwrap()
    }

    #[test]
    fn times_are_written_as_java_writes_them() {
        use PrimitiveType as Of;
        let year = |years: i32| of(Transform::Year, Of::Int, &years.to_le_bytes());
        assert_eq!([year(54), year(-1), year(-1970)], ["2024", "1969", "0000"]);
        let month = |months: i32| of(Transform::Month, Of::Int, &months.to_le_bytes());
        assert_eq!(
            [month(650), month(-1), month(0)],
            ["2024-03", "1969-12", "1970-01"]
        );
        let hour = |hours: i32| of(Transform::Hour, Of::Int, &hours.to_le_bytes());
        assert_eq!([hour(25), hour(-1)], ["1970-01-02-01", "1969-12-31-23"]);
        let date = |days: i32| of(Transform::Day, Of::Date, &days.to_le_bytes());
        assert_eq!([date(19_782), date(-1)], ["2024-02-29", "1969-12-31"]);
        let time = |micros: i64| of(Transform::Identity, Of::Time, &micros.to_le_bytes());
        assert_eq!(time(36_775_038_194), "10:12:55.038194");
        assert_eq!(
            [time(0), time(1_000_000), time(1000)],
            ["00:00", "00:00:01", "00:00:00.001"]
        );
        let stamp = |micros: i64| of(Transform::Identity, Of::Timestamp, &micros.to_le_bytes());
        assert_eq!(stamp(1_512_123_175_038_194), "2017-12-01T10:12:55.038194");
        assert_eq!(stamp(0), "1970-01-01T00:00");
        assert_eq!(stamp(253_402_300_800_000_000), "+10000-01-01T00:00");
        let zoned = |micros: i64| of(Transform::Identity, Of::Timestamptz, &micros.to_le_bytes());
        assert_eq!(zoned(1_512_123_175_000_000), "2017-12-01T10:12:55Z");
        let nanos = of(Transform::Identity, Of::TimestampNs, &1i64.to_le_bytes());
        assert_eq!(nanos, "1970-01-01T00:00:00.000000001");
    }

    #[test]
    fn numbers_are_written_as_java_writes_them() {
        use PrimitiveType as Of;
        let double = |value: f64| of(Transform::Identity, Of::Double, &value.to_le_bytes());
        for (value, text) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (100.0, "100.0"),
            (0.001, "0.001"),
            (0.0001, "1.0E-4"),
            (1e7, "1.0E7"),
            (9_999_999.0, "9999999.0"),
            (1.5e300, "1.5E300"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Infinity"),
        ] {
            assert_eq!(double(value), text);
        }
        let float = of(Transform::Identity, Of::Float, &0.1f32.to_le_bytes());
        assert_eq!(float, "0.1");
        for (unscaled, scale, text) in [
            (12_345, 2, "123.45"),
            (-5, 2, "-0.05"),
            (1, 6, "0.000001"),
            (1, 7, "1E-7"),
            (-12, 9, "-1.2E-8"),
            (0, 2, "0.00"),
            (7, 0, "7"),
        ] {
            assert_eq!(decimal(unscaled, scale), text);
        }
        assert_eq!(of(Transform::Bucket(4), Of::Int, &3i32.to_le_bytes()), "3");
    }

    #[test]
    fn bytes_are_base64_and_uuids_are_grouped() {
        use PrimitiveType as Of;
        assert_eq!(of(Transform::Identity, Of::Binary, &[1, 2, 3]), "AQID");
        assert_eq!(
            of(Transform::Identity, Of::Uuid, &1u128.to_be_bytes()),
            "00000000-0000-0000-0000-000000000001"
        );
        assert_eq!(of(Transform::Truncate(3), Of::String, b"abc"), "abc");
    }

    #[test]
    fn what_has_no_text_has_none() {
        use PrimitiveType as Of;
        assert_eq!(bound(Transform::Identity, &Of::Int, &[1, 2]), None);
        assert_eq!(bound(Transform::Void, &Of::Int, &1i32.to_le_bytes()), None);
        assert_eq!(bound(Transform::Unknown, &Of::String, b"x"), None);
        let beyond = i64::MAX.to_le_bytes();
        assert_eq!(bound(Transform::Identity, &Of::Time, &beyond), None);
        assert_eq!(bound(Transform::Identity, &Of::Timestamp, &beyond), None);
        assert!(bound(Transform::Identity, &Of::TimestampNs, &beyond).is_some());
        for days in [i32::MIN, i32::MAX] {
            assert_eq!(bound(Transform::Day, &Of::Date, &days.to_le_bytes()), None);
        }
        for ordinal in [i32::MIN, i32::MAX] {
            let bytes = ordinal.to_le_bytes();
            assert!(bound(Transform::Year, &Of::Int, &bytes).is_some());
            assert!(bound(Transform::Month, &Of::Int, &bytes).is_some());
        }
    }
}
