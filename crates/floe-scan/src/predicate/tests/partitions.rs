//! What is known by partition values, against iceberg's own transforms.

use iceberg::spec::{FieldSummary, Literal, PartitionSpec, Struct, Transform};
use iceberg::transform::create_transform_function;

use super::*;

fn transforms(kind: &PrimitiveType) -> Vec<Transform> {
    use PrimitiveType::*;
    use Transform as T;
    let mut transforms = vec![T::Identity];
    if !matches!(kind, Boolean | Float | Double) {
        transforms.extend([T::Bucket(1), T::Bucket(3), T::Bucket(16)]);
    }
    if matches!(kind, Int | Long | Decimal { .. } | String | Binary) {
        transforms.extend([T::Truncate(1), T::Truncate(2), T::Truncate(10)]);
    }
    if matches!(
        kind,
        Date | Timestamp | Timestamptz | TimestampNs | TimestamptzNs
    ) {
        transforms.extend([T::Year, T::Month, T::Day]);
    }
    if matches!(kind, Timestamp | Timestamptz | TimestampNs | TimestamptzNs) {
        transforms.push(T::Hour);
    }
    transforms
}

/// A partition value by iceberg's transform; `None` in the outer place if it can't be had.
#[expect(clippy::option_option, reason = "not to be had, and NULL")]
fn transformed(
    transform: Transform,
    cell: Option<&Datum>,
    old: bool,
) -> Option<Option<PrimitiveLiteral>> {
    use PrimitiveType as Of;
    let Some(datum) = cell else {
        return Some(None);
    };
    // iceberg-rust overflows or panics on these.
    let extreme = match (transform, datum.data_type(), datum.literal()) {
        (Transform::Truncate(_), _, PrimitiveLiteral::Int(v)) => *v == i32::MIN,
        (Transform::Truncate(_), _, PrimitiveLiteral::Long(v)) => *v == i64::MIN,
        (Transform::Year | Transform::Month, Of::Date, PrimitiveLiteral::Int(v)) => {
            v.unsigned_abs() > 10_000_000
        }
        (
            Transform::Day | Transform::Hour,
            Of::Timestamp | Of::Timestamptz,
            PrimitiveLiteral::Long(v),
        ) => v.unsigned_abs() > 1 << 60,
        _ => false,
    };
    if extreme {
        return None;
    }
    if let (Transform::Truncate(width), PrimitiveLiteral::Binary(bytes)) =
        (transform, datum.literal())
    {
        let kept = bytes.iter().take(width as usize).copied().collect();
        return Some(Some(PrimitiveLiteral::Binary(kept)));
    }
    let function = create_transform_function(&transform).unwrap();
    let value = function.transform_literal(datum).ok()??.literal().clone();
    let time = matches!(
        transform,
        Transform::Year | Transform::Month | Transform::Hour
    ) || (transform == Transform::Day && *datum.data_type() != Of::Date);
    Some(Some(match value {
        PrimitiveLiteral::Int(v) if time && old && v < 0 && !is_rounded(transform, datum, v) => {
            PrimitiveLiteral::Int(v + 1)
        }
        value => value,
    }))
}

/// Whether iceberg-rust itself rounded towards 1970: its `day` does so within a second of midnight. No writer does it twice.
fn is_rounded(transform: Transform, datum: &Datum, day: i32) -> bool {
    use PrimitiveType::{TimestampNs, TimestamptzNs};
    const DAY_MICROS: i64 = 86_400_000_000;
    let per_micro = match datum.data_type() {
        TimestampNs | TimestamptzNs => 1_000,
        _ => 1,
    };
    match datum.literal() {
        PrimitiveLiteral::Long(moment) if transform == Transform::Day => {
            i64::from(day) > moment.div_euclid(DAY_MICROS * per_micro)
        }
        _ => false,
    }
}

fn spec(schema: &Schema, transforms: &[Transform]) -> PartitionSpec {
    let mut builder = PartitionSpec::builder(schema.clone()).with_spec_id(1);
    for (at, transform) in transforms.iter().enumerate() {
        builder = builder
            .add_partition_field("c1", format!("p{at}"), *transform)
            .unwrap();
    }
    builder.build().unwrap()
}

#[derive(Clone, Debug)]
struct Written {
    kind: PrimitiveType,
    read: PrimitiveType,
    transforms: Vec<Transform>,
    cells: Vec<(Option<Datum>, bool)>,
    predicate: Predicate,
}

fn written() -> BoxedStrategy<Written> {
    (prop::sample::select(kinds()), 1..9_usize)
        .prop_flat_map(|((kind, read), rows)| {
            let transforms =
                prop::sample::subsequence(transforms(&kind), 1..3.min(transforms(&kind).len() + 1));
            let old = prop::collection::vec(any::<bool>(), rows);
            let condition = condition(vec![column(1, &read)]);
            (
                Just(kind.clone()),
                Just(read),
                transforms,
                cells(&kind, rows),
                old,
                condition,
            )
        })
        .prop_map(|(kind, read, transforms, cells, old, predicate)| Written {
            kind,
            read,
            transforms: without_a_second_time(transforms),
            cells: cells.into_iter().zip(old).collect(),
            predicate,
        })
        .boxed()
}

/// iceberg allows one transform of time a column.
fn without_a_second_time(mut transforms: Vec<Transform>) -> Vec<Transform> {
    use Transform::{Day, Hour, Month, Year};
    let mut times = 0;
    transforms.retain(|transform| {
        times += usize::from(matches!(transform, Year | Month | Day | Hour));
        times < 2 || !matches!(transform, Year | Month | Day | Hour)
    });
    transforms
}

/// Rows by their partition values, promoted to the type that is read.
fn partitions(written: &Written) -> Vec<(Vec<Option<PrimitiveLiteral>>, Vec<Row>)> {
    let mut partitions: Vec<(Vec<Option<PrimitiveLiteral>>, Vec<Row>)> = Vec::new();
    for (cell, old) in &written.cells {
        let values: Option<Vec<_>> = (written.transforms.iter())
            .map(|transform| transformed(*transform, cell.as_ref(), *old))
            .collect();
        let Some(values) = values else { continue };
        let row = vec![
            cell.as_ref()
                .and_then(|datum| typed(&written.read, datum.literal())),
        ];
        match partitions.iter_mut().find(|(known, _)| *known == values) {
            Some((_, rows)) => rows.push(row),
            None => partitions.push((values, vec![row])),
        }
    }
    partitions
}

#[test]
fn partition_values_never_contradict_rows() {
    check(8_000, written(), |written| {
        let schema = schema(std::slice::from_ref(&written.read));
        let before = super::schema(std::slice::from_ref(&written.kind));
        let spec = spec(&before, &written.transforms);
        for (values, rows) in partitions(&written) {
            let values = values.iter().cloned().map(|v| v.map(Literal::Primitive));
            let partition = Struct::from_iter(values);
            let known = PartitionKnowledge::new(&schema, &spec, &partition);
            assert_sound(&written.predicate, &known, &rows);
        }
    });
}

#[test]
fn summaries_of_partition_values_never_contradict_rows() {
    check(8_000, written(), |written| {
        let schema = schema(std::slice::from_ref(&written.read));
        let before = super::schema(std::slice::from_ref(&written.kind));
        let spec = spec(&before, &written.transforms);
        let partitions = partitions(&written);
        let summaries: Vec<FieldSummary> = (written.transforms.iter().enumerate())
            .map(|(at, transform)| {
                let kind = crate::predicate::inverse::value_kind(*transform, &written.kind);
                let values: Vec<Option<Datum>> = (partitions.iter())
                    .map(|(values, _)| Some(typed(&kind, values[at].as_ref()?).unwrap()))
                    .collect();
                summary(&values)
            })
            .collect();
        let known = SummaryKnowledge::new(&schema, &spec, &summaries);
        for (_, rows) in &partitions {
            assert_sound(&written.predicate, &known, rows);
        }
    });
}

fn summary(values: &[Option<Datum>]) -> FieldSummary {
    let numbers: Vec<&Datum> = values
        .iter()
        .flatten()
        .filter(|datum| !datum.is_nan())
        .collect();
    let stored = |datum: Option<&&Datum>| datum.map(|datum| datum.to_bytes().unwrap());
    FieldSummary {
        contains_null: values.iter().any(Option::is_none),
        contains_nan: Some(values.iter().flatten().any(Datum::is_nan)),
        lower_bound: stored(numbers.iter().min_by(|l, r| ranks(l, r))),
        upper_bound: stored(numbers.iter().max_by(|l, r| ranks(l, r))),
    }
}

/// What is known of column 1 of this type where the partition value is this one.
fn known(kind: &PrimitiveType, transform: Transform, value: Option<Literal>) -> Known {
    let schema = schema(std::slice::from_ref(kind));
    let spec = spec(&schema, &[transform]);
    let partition = Struct::from_iter([value]);
    PartitionKnowledge::new(&schema, &spec, &partition).column(&column(1, kind))
}

fn range(known: &Known) -> (String, String) {
    let show = |bound: &Option<Bound>| match bound {
        Some(bound) => crate::predicate::datum::show(&bound.datum),
        None => "-".to_owned(),
    };
    (show(&known.lower), show(&known.upper))
}

#[test]
fn values_cover_the_span_that_they_stand_for() {
    use PrimitiveType::*;
    for (kind, transform, value, lower, upper) in [
        (
            Date,
            Transform::Year,
            Literal::int(54),
            "'2024-01-01'",
            "'2024-12-31'",
        ),
        (
            Date,
            Transform::Month,
            Literal::int(649),
            "'2024-02-01'",
            "'2024-02-29'",
        ),
        (
            Date,
            Transform::Day,
            Literal::int(-1),
            "'1969-12-31'",
            "'1969-12-31'",
        ),
        // Old writers rounded towards 1970.
        (
            Date,
            Transform::Month,
            Literal::int(0),
            "'1969-12-01'",
            "'1970-01-31'",
        ),
        (
            Date,
            Transform::Year,
            Literal::int(-1),
            "'1968-01-01'",
            "'1969-12-31'",
        ),
        (
            Timestamp,
            Transform::Day,
            Literal::date(1),
            "'1970-01-02 00:00:00'",
            "'1970-01-02 23:59:59.999999'",
        ),
        (
            Timestamp,
            Transform::Day,
            Literal::date(-1),
            "'1969-12-30 00:00:00'",
            "'1969-12-31 23:59:59.999999'",
        ),
        (
            TimestampNs,
            Transform::Hour,
            Literal::int(1),
            "'1970-01-01 01:00:00'",
            "'1970-01-01 01:59:59.999999999'",
        ),
        (Int, Transform::Truncate(10), Literal::int(-10), "-10", "-1"),
        (
            Int,
            Transform::Truncate(10),
            Literal::int(2_147_483_640),
            "-",
            "-",
        ),
        (
            Long,
            Transform::Truncate(10),
            Literal::int(2_147_483_640),
            "-2147483648",
            "2147483649",
        ),
        (
            Long,
            Transform::Truncate(10),
            Literal::long(i64::MAX - 7),
            "-",
            "-",
        ),
        (
            DECIMAL,
            Transform::Truncate(50),
            Literal::decimal(1_050),
            "10.50",
            "10.99",
        ),
        (
            String,
            Transform::Truncate(3),
            Literal::string("abc"),
            "'abc'",
            "'abd'",
        ),
        (
            String,
            Transform::Truncate(3),
            Literal::string("ab"),
            "'ab'",
            "'ab'",
        ),
        (
            String,
            Transform::Truncate(1),
            Literal::string("\u{10ffff}"),
            "'\u{10ffff}'",
            "-",
        ),
        (
            String,
            Transform::Truncate(1),
            Literal::string("\u{d7ff}"),
            "'\u{d7ff}'",
            "'\u{e000}'",
        ),
        // Two UTF-16 units may have been cut off after two of them.
        (
            String,
            Transform::Truncate(2),
            Literal::string("😀"),
            "'😀'",
            "'😁'",
        ),
        (
            Binary,
            Transform::Truncate(2),
            Literal::binary(vec![1, 255]),
            "X'01FF'",
            "X'02'",
        ),
        (Long, Transform::Identity, Literal::int(7), "7", "7"),
        (
            Timestamp,
            Transform::Identity,
            Literal::date(1),
            "'1970-01-02 00:00:00'",
            "'1970-01-02 00:00:00'",
        ),
    ] {
        let known = known(&kind, transform, Some(value.clone()));
        let expected = (lower.to_owned(), upper.to_owned());
        assert_eq!(range(&known), expected, "{transform} of {kind}: {value:?}");
        assert!(!known.nulls, "{transform} of {kind}: {value:?}");
    }
}

#[test]
fn a_null_value_means_null_except_where_every_value_gives_it() {
    let int = PrimitiveType::Int;
    for transform in [
        Transform::Identity,
        Transform::Bucket(4),
        Transform::Truncate(4),
    ] {
        assert_eq!(known(&int, transform, None), Known::null());
    }
    assert_eq!(known(&int, Transform::Void, None), Known::anything());
    let seen = super::super::inverse::of_value(Transform::Unknown, &int, None);
    assert_eq!(seen, Known::anything());
}

#[test]
fn identities_of_floats_know_nan_and_zero() {
    let double = PrimitiveType::Double;
    let nan = known(
        &double,
        Transform::Identity,
        Some(Literal::double(f64::NAN)),
    );
    assert!(nan.nans && !nan.values && !nan.nulls);
    let zero = known(&double, Transform::Identity, Some(Literal::double(-0.0)));
    let told = Told(HashMap::from([(1, zero)]));
    let equal = Predicate::Compare(column(1, &double), Comparison::Equal, Datum::double(0.0));
    assert_eq!(equal.truths(&told), Truths::TRUE);
}

#[test]
fn values_of_a_dropped_column_or_another_spec_tell_nothing() {
    let int = PrimitiveType::Int;
    let schema = schema(std::slice::from_ref(&int));
    let spec = spec(&schema, &[Transform::Identity]);
    let two = Struct::from_iter([Some(Literal::int(1)), Some(Literal::int(2))]);
    let misfit = PartitionKnowledge::new(&schema, &spec, &two);
    assert_eq!(misfit.column(&column(1, &int)), Known::anything());
    let without = super::schema(&[]);
    let one = Struct::from_iter([Some(Literal::int(1))]);
    let dropped = PartitionKnowledge::new(&without, &spec, &one);
    assert_eq!(dropped.column(&column(1, &int)), Known::anything());
    let other = PartitionKnowledge::new(&schema, &spec, &one);
    assert_eq!(other.column(&column(2, &int)), Known::anything());
}

#[test]
fn buckets_rule_values_out_by_hash() {
    // The spec's examples, appendix B.
    let long = PrimitiveType::Long;
    let schema = schema(std::slice::from_ref(&long));
    let spec = spec(&schema, &[Transform::Bucket(16)]);
    let column = column(1, &long);
    let right = (2_017_239_379 & i32::MAX) % 16;
    for bucket in 0..16 {
        let partition = Struct::from_iter([Some(Literal::int(bucket))]);
        let known = PartitionKnowledge::new(&schema, &spec, &partition);
        let equal = Predicate::Compare(column.clone(), Comparison::Equal, Datum::long(34));
        assert_eq!(equal.truths(&known).may_match(), bucket == right);
        let list = Predicate::In(column.clone(), vec![Datum::long(34)]);
        assert_eq!(list.truths(&known).may_match(), bucket == right);
        assert!(!equal.truths(&known).all_match());
    }
    let summaries = [summary(&[
        Some(Datum::int(right + 1)),
        Some(Datum::int(right + 2)),
    ])];
    let known = SummaryKnowledge::new(&schema, &spec, &summaries);
    let equal = Predicate::Compare(column, Comparison::Equal, Datum::long(34));
    assert!(!equal.truths(&known).may_match());
}

#[test]
fn summaries_without_bounds_hold_null_or_nothing() {
    let of = |kind: &PrimitiveType, contains_null, contains_nan| {
        let schema = schema(std::slice::from_ref(kind));
        let spec = spec(&schema, &[Transform::Identity]);
        let summaries = [FieldSummary {
            contains_null,
            contains_nan,
            lower_bound: None,
            upper_bound: None,
        }];
        let known = SummaryKnowledge::new(&schema, &spec, &summaries).column(&column(1, kind));
        (known.nulls, known.values, known.nans)
    };
    assert_eq!(of(&PrimitiveType::Int, true, None), (true, false, false));
    assert_eq!(of(&PrimitiveType::Int, false, None), (false, true, false));
    assert_eq!(of(&PrimitiveType::Double, true, None), (true, true, true));
    assert_eq!(
        of(&PrimitiveType::Double, true, Some(false)),
        (true, false, false)
    );
}

#[test]
fn two_fields_of_one_column_are_both_believed() {
    let int = PrimitiveType::Int;
    let schema = schema(std::slice::from_ref(&int));
    let spec = spec(&schema, &[Transform::Truncate(10), Transform::Truncate(4)]);
    let partition = Struct::from_iter([Some(Literal::int(20)), Some(Literal::int(28))]);
    let known = PartitionKnowledge::new(&schema, &spec, &partition).column(&column(1, &int));
    assert_eq!(range(&known), ("28".to_owned(), "29".to_owned()));
}
