//! Names and literals: what becomes of those that do not fit the column.

use iceberg::expr::Reference;
use iceberg::spec::{ListType, StructType};

use super::*;

fn bound(column: &Column, comparison: Comparison, literal: Datum) -> String {
    match Predicate::compare(column, comparison, &literal) {
        Some(predicate) => predicate.to_string(),
        None => "inexact".to_owned(),
    }
}

#[test]
fn literals_beyond_an_int_are_true_or_false_of_every_value() {
    let int = column(1, &PrimitiveType::Int);
    let big = || Datum::long(3_000_000_000_i64);
    assert_eq!(bound(&int, Comparison::Less, big()), "NOT (c1 IN ())");
    assert_eq!(bound(&int, Comparison::NotEqual, big()), "NOT (c1 IN ())");
    assert_eq!(bound(&int, Comparison::Equal, big()), "c1 IN ()");
    assert_eq!(
        bound(&int, Comparison::Greater, Datum::long(-3_000_000_000_i64)),
        "NOT (c1 IN ())"
    );
    assert_eq!(
        bound(&int, Comparison::Less, Datum::double(f64::NAN)),
        "NOT (c1 IN ())"
    );
    assert_eq!(bound(&int, Comparison::Greater, Datum::long(7)), "c1 > 7");
}

#[test]
fn literals_between_two_values_move_to_a_neighbour() {
    let int = column(1, &PrimitiveType::Int);
    assert_eq!(bound(&int, Comparison::Less, decimal(25, 1)), "c1 <= 2");
    assert_eq!(
        bound(&int, Comparison::GreaterOrEqual, decimal(-25, 1)),
        "c1 > -3"
    );
    assert_eq!(bound(&int, Comparison::Equal, decimal(25, 1)), "c1 IN ()");
    assert_eq!(bound(&int, Comparison::Equal, decimal(20, 1)), "c1 = 2");
    let price = column(1, &DECIMAL);
    assert_eq!(
        bound(&price, Comparison::LessOrEqual, decimal(1_005, 3)),
        "c1 <= 1.00"
    );
    assert_eq!(bound(&price, Comparison::Equal, Datum::int(3)), "c1 = 3.00");
    assert_eq!(
        bound(&price, Comparison::Equal, Datum::double(3.0)),
        "inexact"
    );
    let date = column(1, &PrimitiveType::Date);
    let noon = Datum::timestamp_micros(43_200_000_000);
    assert_eq!(
        bound(&date, Comparison::Less, noon.clone()),
        "c1 <= '1970-01-01'"
    );
    assert_eq!(bound(&date, Comparison::Equal, noon), "c1 IN ()");
    let at = column(1, &PrimitiveType::Timestamp);
    assert_eq!(
        bound(&at, Comparison::Greater, Datum::timestamp_nanos(-1)),
        "c1 > '1969-12-31 23:59:59.999999'"
    );
    assert_eq!(
        bound(&at, Comparison::Equal, Datum::timestamptz_micros(0)),
        "inexact"
    );
}

#[test]
fn floats_are_compared_as_doubles() {
    let float = column(1, &PrimitiveType::Float);
    assert_eq!(
        bound(&float, Comparison::Equal, Datum::double(0.1)),
        "c1 IN ()"
    );
    assert_eq!(
        bound(&float, Comparison::Equal, Datum::double(0.5)),
        "c1 = 0.5"
    );
    assert_eq!(
        bound(&float, Comparison::Equal, Datum::long(1 << 24)),
        "c1 = 16777216"
    );
    assert_eq!(
        bound(&float, Comparison::Equal, Datum::long((1 << 24) + 1)),
        "inexact"
    );
    let long = column(1, &PrimitiveType::Long);
    assert_eq!(
        bound(&long, Comparison::Less, Datum::double(1e16)),
        "inexact"
    );
    assert_eq!(
        bound(&long, Comparison::Less, Datum::double(f64::INFINITY)),
        "NOT (c1 IN ())"
    );
    assert_eq!(
        bound(&long, Comparison::Less, Datum::double(2.5)),
        "c1 <= 2"
    );
    let double = column(1, &PrimitiveType::Double);
    assert_eq!(
        bound(&double, Comparison::Less, Datum::float(2.5)),
        "c1 < 2.5"
    );
}

/// Numbers of any type as fractions over 2^60 would overflow: compare them as a pair of whole part and rest.
fn exact(datum: &Datum) -> (i128, f64) {
    let scaled = |unscaled: i128, unit: i128| {
        let rest = unscaled.rem_euclid(unit) as f64 / unit as f64;
        (unscaled.div_euclid(unit), rest)
    };
    match (datum.data_type(), datum.literal()) {
        (PrimitiveType::Decimal { scale, .. }, PrimitiveLiteral::Int128(v)) => {
            scaled(*v, 10_i128.pow(*scale))
        }
        (_, PrimitiveLiteral::Int(v)) => (i128::from(*v), 0.0),
        (_, PrimitiveLiteral::Long(v)) => (i128::from(*v), 0.0),
        (_, PrimitiveLiteral::Float(v)) => {
            let v = f64::from(v.0);
            (v.floor() as i128, v - v.floor())
        }
        (_, PrimitiveLiteral::Double(v)) => (v.0.floor() as i128, v.0 - v.0.floor()),
        other => panic!("{other:?} is no number"),
    }
}

#[test]
fn wider_literals_keep_every_rows_truth() {
    use PrimitiveType::{Double, Float, Int, Long};
    let finite = |kind: &PrimitiveType| {
        let pool = pool(kind).into_iter().filter(|datum| match worth(datum) {
            Worth::Float(v) => v.is_finite() && v.abs() < 1e30,
            _ => true,
        });
        prop::sample::select(pool.collect::<Vec<_>>())
    };
    let fine = prop::sample::select(vec![
        decimal(25, 1),
        decimal(-999, 3),
        decimal(1_005, 3),
        decimal(1, 0),
        decimal(i128::MAX, 0),
        decimal(10_i128.pow(37), 20),
        Datum::double(0.5),
        Datum::double(16_777_217.0),
        Datum::float(-2.5),
    ]);
    let kind = || prop::sample::select(vec![Int, Long, Float, Double, DECIMAL]);
    let strategy = (kind(), kind()).prop_flat_map(move |(kind, of)| {
        (
            Just(kind.clone()),
            finite(&kind),
            prop_oneof![finite(&of), fine.clone()],
            0..6_usize,
        )
    });
    check(4_000, strategy, |(kind, value, literal, which)| {
        let comparison = [
            Comparison::Equal,
            Comparison::NotEqual,
            Comparison::Less,
            Comparison::LessOrEqual,
            Comparison::Greater,
            Comparison::GreaterOrEqual,
        ][which];
        let column = column(1, &kind);
        let Some(predicate) = Predicate::compare(&column, comparison, &literal) else {
            return;
        };
        let order = exact(&value).partial_cmp(&exact(&literal)).unwrap();
        let truth = interpret(&predicate, &vec![Some(value.clone())]);
        assert_eq!(
            truth,
            Some(comparison.holds(order)),
            "{value} {comparison} {literal}: {predicate}"
        );
        assert_eq!(interpret(&predicate, &vec![None]), None);
        let listed = Predicate::one_of(&column, std::slice::from_ref(&literal)).unwrap();
        let truth = interpret(&listed, &vec![Some(value.clone())]);
        assert_eq!(truth, Some(order.is_eq()), "{value} in {literal}: {listed}");
    });
}

fn nested() -> Schema {
    let inner = StructType::new(vec![
        NestedField::optional(3, "Speed", Type::Primitive(PrimitiveType::Double)).into(),
    ]);
    let list = ListType::new(
        NestedField::list_element(5, Type::Primitive(PrimitiveType::Int), false).into(),
    );
    Schema::builder()
        .with_fields([
            NestedField::optional(1, "id", Type::Primitive(PrimitiveType::Int)).into(),
            NestedField::optional(2, "wind", Type::Struct(inner)).into(),
            NestedField::optional(4, "list", Type::List(list)).into(),
            NestedField::optional(6, "name", Type::Primitive(PrimitiveType::String)).into(),
            NestedField::optional(7, "day", Type::Primitive(PrimitiveType::Date)).into(),
        ])
        .build()
        .unwrap()
}

#[test]
fn columns_are_found_by_name_within_structs_only() {
    let schema = nested();
    let speed = Column::find(&schema, "wind.Speed").unwrap();
    assert_eq!((speed.id, speed.kind), (3, PrimitiveType::Double));
    assert_eq!(Column::find_as(&schema, "WIND.speed", false).unwrap().id, 3);
    let error = Column::find(&schema, "wind.speed").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert_eq!(
        error.hint(),
        Some("its columns are id, wind, list, name, day")
    );
    assert_eq!(
        Column::find(&schema, "list.element").unwrap_err().kind(),
        ErrorKind::Invalid
    );
    assert_eq!(
        Column::find(&schema, "wind").unwrap_err().kind(),
        ErrorKind::Invalid
    );
}

#[test]
fn icebergs_expressions_become_conditions() {
    let schema = nested();
    let name = |name: &str| Reference::new(name);
    for (expression, expected) in [
        (name("id").less_than(Datum::long(7)), "id < 7"),
        (name("id").not_equal_to(Datum::int(7)), "id <> 7"),
        (
            name("id").is_in([Datum::int(3), Datum::int(1), Datum::long(1_i64 << 40)]),
            "id IN (1, 3)",
        ),
        (
            name("id").is_not_in([Datum::int(3), Datum::int(1)]),
            "NOT (id IN (1, 3))",
        ),
        (name("id").is_in([Datum::int(3)]), "id = 3"),
        (name("id").equal_to(Datum::string("12")), "id = 12"),
        (
            name("id").less_than(Datum::string("3000000000")),
            "NOT (id IN ())",
        ),
        (name("day").equal_to(Datum::int(1)), "day = '1970-01-02'"),
        (name("wind.Speed").is_nan(), "wind.Speed IS NAN"),
        (name("wind.Speed").is_not_nan(), "NOT (wind.Speed IS NAN)"),
        (
            name("name").not_starts_with(Datum::string("a")),
            "NOT (name STARTS WITH 'a')",
        ),
        (
            !name("name").is_null().and(name("id").is_not_null()),
            "NOT (name IS NULL AND NOT (id IS NULL))",
        ),
        (
            name("name")
                .is_null()
                .or(iceberg::expr::Predicate::AlwaysTrue),
            "true",
        ),
    ] {
        let predicate = Predicate::from_iceberg(&expression, &schema, true).unwrap();
        assert_eq!(predicate.to_string(), expected, "{expression}");
    }
    for wrong in [
        name("id").is_nan(),
        name("id").equal_to(Datum::string("x")),
        name("id").starts_with(Datum::string("x")),
        name("name").equal_to(Datum::int(1)),
        name("day").equal_to(Datum::timestamptz_micros(1)),
    ] {
        let error = Predicate::from_iceberg(&wrong, &schema, true).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{wrong}");
    }
    let unknown = name("ID").is_null();
    assert!(Predicate::from_iceberg(&unknown, &schema, true).is_err());
    assert!(Predicate::from_iceberg(&unknown, &schema, false).is_ok());
}
