//! What of SQL is understood, so that it may prune files, and what only rows can tell.

use iceberg::spec::{NestedField, PrimitiveType, StructType, Type};

use super::*;
use crate::convert::{is_understood, may_prune};

fn schema() -> Schema {
    let optional = |id, name: &str, primitive| {
        NestedField::optional(id, name, Type::Primitive(primitive)).into()
    };
    let inner = NestedField::optional(11, "x", Type::Primitive(PrimitiveType::Int));
    let decimal = PrimitiveType::Decimal {
        precision: 9,
        scale: 2,
    };
    Schema::builder()
        .with_fields([
            optional(1, "i", PrimitiveType::Int),
            optional(2, "l", PrimitiveType::Long),
            optional(3, "s", PrimitiveType::String),
            optional(4, "d", PrimitiveType::Double),
            optional(5, "day", PrimitiveType::Date),
            optional(6, "at", PrimitiveType::Timestamptz),
            optional(7, "dec", decimal),
            optional(8, "b", PrimitiveType::Boolean),
            optional(9, "a.b", PrimitiveType::Int),
            NestedField::optional(10, "st", Type::Struct(StructType::new(vec![inner.into()])))
                .into(),
        ])
        .build()
        .unwrap()
}

fn parse(text: &str) -> Predicate {
    parse_filter(text, &schema()).unwrap_or_else(|error| panic!("{text}: {error:?}"))
}

#[test]
fn comparisons_of_a_column_with_literals_are_understood() {
    for text in [
        "i = 5",
        "5 < i",
        "l >= 7 AND s <> 'x'",
        "i < 3000000000",
        "i > 1.5",
        "s LIKE 'ab%'",
        "s NOT LIKE 'ab%'",
        "b",
        "NOT b",
        "i IS NULL",
        "i IN (1, 2, 3, 4, 5)",
        "i NOT IN (1, 2, 3, 4, 5)",
        "day = DATE '2024-08-16'",
        "at < TIMESTAMP '2024-08-16T00:00:00Z'",
        "i BETWEEN 1 AND 3",
        "d > 1.5",
        "\"a.b\" = 1",
        "st['x'] = 1",
        "i IS DISTINCT FROM 5",
        "i IS NOT DISTINCT FROM NULL",
        "(i = 5) IS NULL",
        "(i = 5) IS NOT TRUE",
        "true",
    ] {
        let predicate = parse(text);
        assert!(is_understood(&predicate), "{text}: {predicate}");
    }
}

#[test]
fn everything_else_is_left_to_rows() {
    for text in [
        "CAST(i AS VARCHAR) = '05'",
        "CAST(s AS INT) = 5",
        "i + 1 = 6",
        "d = 'NaN'",
        "i = l",
        "s LIKE '%b'",
        "s LIKE 'a_b%'",
        "s ILIKE 'ab%'",
        "i = 5 OR i = l",
        "NULL",
        "st IS NULL",
    ] {
        let predicate = parse(text);
        assert!(!may_prune(&predicate), "{text}: {predicate}");
    }
}

#[test]
fn a_conjunction_prunes_by_the_sides_that_are_understood() {
    for text in ["i = 5 AND i = l", "NOT (i <> 5 OR i = l)"] {
        let predicate = parse(text);
        assert!(!is_understood(&predicate), "{text}: {predicate}");
        assert!(predicate.columns().contains(&1) && predicate.columns().contains(&2));
    }
    assert!(may_prune(&parse("i = 5 AND i = l")));
}

#[test]
fn a_filter_that_is_none_is_told_by_what_it_is() {
    let failed = |text: &str| parse_filter(text, &schema()).unwrap_err();
    assert!(failed("i + 1").to_string().contains("not Boolean"));
    for text in [
        "",
        "i =",
        "nope = 1",
        "count(i) > 1",
        "i = (SELECT 1)",
        "i > 1; DROP TABLE t",
    ] {
        let error = failed(text);
        assert_eq!(error.kind(), ErrorKind::Invalid, "{text}");
        assert!(error.to_string().contains(&format!("'{text}'")), "{error}");
    }
}

#[test]
fn a_panic_of_the_planner_is_an_error() {
    let error = parse_filter("date 5 < day", &schema()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("date 5 < day"), "{error}");
}
