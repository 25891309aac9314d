//! What is known by metrics.

use super::*;
use crate::task::Metrics;

/// Metrics as a writer of this type counts them, bounds of text cut after `cut` characters.
fn written(
    kind: &PrimitiveType,
    read: &PrimitiveType,
    cells: &[Option<Datum>],
    cut: usize,
) -> Metrics {
    let count = |test: fn(&&Option<Datum>) -> bool| cells.iter().filter(test).count() as u64;
    let numbers: Vec<&Datum> = cells
        .iter()
        .flatten()
        .filter(|datum| !datum.is_nan())
        .collect();
    let least = numbers
        .iter()
        .min_by(|l, r| ranks(l, r))
        .map(|datum| shorter(datum, cut));
    let greatest = numbers
        .iter()
        .max_by(|l, r| ranks(l, r))
        .map(|datum| (*datum).clone());
    let stored = |datum: Option<Datum>| {
        let bytes = datum?.to_bytes().unwrap();
        Some(read_bound(&bytes, read).unwrap_or_else(|| panic!("{kind} as {read}")))
    };
    Metrics {
        values: Some(cells.len() as u64),
        nulls: Some(count(|cell| cell.is_none())),
        nans: Some(count(|cell| cell.as_ref().is_some_and(Datum::is_nan))),
        lower: stored(least),
        upper: stored(greatest),
    }
}

fn shorter(datum: &Datum, cut: usize) -> Datum {
    match datum.literal() {
        PrimitiveLiteral::String(text) => Datum::string(text.chars().take(cut).collect::<String>()),
        PrimitiveLiteral::Binary(bytes) if *datum.data_type() == PrimitiveType::Binary => {
            Datum::binary(bytes.iter().take(cut).copied())
        }
        _ => datum.clone(),
    }
}

#[test]
fn metrics_never_contradict_rows_even_of_promoted_columns() {
    let strategy =
        (prop::sample::select(kinds()), 1..7_usize).prop_flat_map(|((kind, read), rows)| {
            let condition = condition(vec![column(1, &read)]);
            (
                Just(kind.clone()),
                Just(read),
                cells(&kind, rows),
                condition,
                0..4_usize,
                0..32_u8,
            )
        });
    check(
        4_000,
        strategy,
        |(kind, read, cells, predicate, cut, absent)| {
            let mut metrics = written(&kind, &read, &cells, cut);
            let drop = |bit: u8| absent & (1 << bit) != 0;
            metrics.values = metrics.values.filter(|_| !drop(0));
            metrics.nulls = metrics.nulls.filter(|_| !drop(1));
            metrics.nans = metrics.nans.filter(|_| !drop(2));
            metrics.lower = metrics.lower.filter(|_| !drop(3));
            metrics.upper = metrics.upper.filter(|_| !drop(4));
            let rows: Vec<Row> = (cells.iter())
                .map(|cell| {
                    vec![
                        cell.as_ref()
                            .and_then(|datum| typed(&read, datum.literal())),
                    ]
                })
                .collect();
            let metrics = [(1, metrics)];
            let known = MetricsKnowledge::of(rows.len() as u64, &metrics);
            assert_sound(&predicate, &known, &rows);
        },
    );
}

fn known(metrics: Metrics, kind: &PrimitiveType) -> Known {
    MetricsKnowledge::of(10, &[(1, metrics)]).column(&column(1, kind))
}

#[test]
fn counts_tell_what_is_there() {
    let counts = |nulls, nans| Metrics {
        values: Some(10),
        nulls: Some(nulls),
        nans,
        ..Metrics::default()
    };
    let flags = |known: Known| (known.nulls, known.values, known.nans);
    let double = PrimitiveType::Double;
    assert_eq!(
        flags(known(counts(0, Some(0)), &double)),
        (false, true, false)
    );
    assert_eq!(
        flags(known(counts(10, None), &double)),
        (true, false, false)
    );
    assert_eq!(
        flags(known(counts(4, Some(6)), &double)),
        (true, false, true)
    );
    assert_eq!(flags(known(counts(4, None), &double)), (true, true, true));
    assert_eq!(
        flags(known(counts(4, None), &PrimitiveType::Int)),
        (true, true, false)
    );
    // They do not add up.
    assert_eq!(
        flags(known(counts(4, Some(7)), &double)),
        (true, true, true)
    );
    assert_eq!(
        flags(known(counts(11, Some(0)), &double)),
        (true, true, true)
    );
    // A field of a struct whose NULL rows were not counted.
    let fewer = Metrics {
        values: Some(8),
        ..counts(0, Some(0))
    };
    assert_eq!(flags(known(fewer, &double)), (true, true, true));
    assert_eq!(known(Metrics::default(), &double), Known::anything());
}

#[test]
fn bounds_are_read_in_the_type_they_were_written_in() {
    use PrimitiveType::*;
    let small = |precision| Decimal {
        precision,
        scale: 2,
    };
    for (bytes, kind, expected) in [
        (&[5_u8, 0, 0, 0][..], Long, Some(Datum::long(5))),
        (&(-5_i64).to_le_bytes(), Long, Some(Datum::long(-5))),
        (&1.5_f32.to_le_bytes(), Double, Some(Datum::double(1.5))),
        (
            &[1, 0, 0, 0],
            Timestamp,
            Some(Datum::timestamp_micros(86_400_000_000)),
        ),
        (
            &[1, 0, 0, 0],
            TimestampNs,
            Some(Datum::timestamp_nanos(86_400_000_000_000)),
        ),
        (&[1, 0, 0, 0], Timestamptz, None),
        (&i32::MAX.to_le_bytes(), TimestampNs, None),
        (
            &[0xff, 0x7f],
            small(38),
            Some(typed(&small(38), decimal(-129, 2).literal()).unwrap()),
        ),
        (&[], small(38), None),
        (&[0; 17], small(38), None),
        (&[5, 0, 0], Int, None),
        (&[5, 0, 0, 0, 0, 0, 0, 0], Int, None),
        (&[0xff, 0xfe], String, None),
        (b"", String, Some(Datum::string(""))),
        (&[1, 2, 3, 4], Fixed(3), None),
        (&[0; 15], Uuid, None),
        (&[2, 2], Boolean, None),
    ] {
        assert_eq!(read_bound(bytes, &kind), expected, "{bytes:?} as {kind}");
    }
}

#[test]
fn bounds_of_uuids_may_be_in_javas_order() {
    let uuid = |v: u128| typed(&PrimitiveType::Uuid, &PrimitiveLiteral::UInt128(v)).unwrap();
    let of = |lower, upper| {
        let metrics = Metrics {
            lower: Some(uuid(lower)),
            upper: Some(uuid(upper)),
            ..Metrics::default()
        };
        let known = known(metrics, &PrimitiveType::Uuid);
        let value = |bound: Option<Bound>| match bound?.datum.literal() {
            PrimitiveLiteral::UInt128(v) => Some(*v),
            _ => None,
        };
        (value(known.lower), value(known.upper))
    };
    let one = 1_u128 << 64;
    // Java holds (1, 2^63) for smaller than (1, 0).
    let (lower, upper) = of(one + (1 << 63), 2 * one);
    assert_eq!((lower, upper), (Some(one), Some(3 * one - 1)));
    // Java holds 2^127 for smaller than 1.
    assert_eq!(of(1 << 127, 1), (None, None));
    assert_eq!(of(1, 1 << 127), (Some(1), Some(1 << 127)));
    assert_eq!(of(7, 7), (Some(7), Some(7)));
}
