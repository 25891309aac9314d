//! What is pushed down and, above all, what is not.

use std::collections::HashMap;

use arrow_schema::{Field, Schema as ArrowSchema, TimeUnit};
use iceberg::spec::{
    FormatVersion, NestedField, PartitionSpec, SortOrder, TableMetadataBuilder, Transform,
    UnboundPartitionSpec,
};

use super::*;

fn schema(long_type: PrimitiveType) -> Schema {
    let optional = |id, name: &str, primitive| {
        NestedField::optional(id, name, Type::Primitive(primitive)).into()
    };
    Schema::builder()
        .with_fields([
            optional(1, "i", PrimitiveType::Int),
            optional(2, "l", long_type),
            optional(3, "s", PrimitiveType::String),
            optional(4, "d", PrimitiveType::Double),
            optional(5, "day", PrimitiveType::Date),
            optional(6, "at", PrimitiveType::Timestamptz),
            optional(
                7,
                "dec",
                PrimitiveType::Decimal {
                    precision: 9,
                    scale: 2,
                },
            ),
            optional(8, "b", PrimitiveType::Boolean),
            optional(9, "a.b", PrimitiveType::Int),
        ])
        .build()
        .unwrap()
}

/// Metadata of a table partitioned by `i`; with `promoted`, `l` was an int once.
fn metadata(promoted: bool) -> TableMetadata {
    let first = schema(if promoted {
        PrimitiveType::Int
    } else {
        PrimitiveType::Long
    });
    let spec = UnboundPartitionSpec::builder()
        .add_partition_field(1, "i", Transform::Identity)
        .unwrap()
        .build();
    let made = TableMetadataBuilder::new(
        first,
        spec,
        SortOrder::unsorted_order(),
        "file:///t".into(),
        FormatVersion::V2,
        HashMap::new(),
    );
    let mut builder = made.unwrap();
    if promoted {
        builder = builder
            .add_current_schema(schema(PrimitiveType::Long))
            .unwrap();
    }
    let metadata = builder.build().unwrap().metadata;
    assert!(metadata.default_partition_spec().as_ref() != &PartitionSpec::unpartition_spec());
    metadata
}

fn parse(text: &str) -> Filter {
    let schema = crate::columns::arrow_schema(&schema(PrimitiveType::Long)).unwrap();
    Filter::parse(text, &schema).unwrap()
}

/// What of a filter prunes files; empty if nothing does.
fn planned(text: &str) -> String {
    let metadata = metadata(false);
    let columns = PushableColumns::for_planning(metadata.current_schema(), &metadata);
    columns
        .push_down([parse(text).expr()])
        .map(|predicate| predicate.to_string())
        .unwrap_or_default()
}

#[test]
fn comparisons_with_literals_of_the_columns_type_prune() {
    assert_eq!(planned("i = 5"), "i = 5");
    assert_eq!(planned("5 < i"), "i > 5");
    assert_eq!(planned("l >= 7 AND s <> 'x'"), "(l >= 7) AND (s != \"x\")");
    assert_eq!(planned("s LIKE 'ab%'"), "s STARTS WITH \"ab\"");
    assert_eq!(planned("b"), "b = true");
    assert_eq!(planned("i IS NULL"), "i IS NULL");
    assert!(
        planned("i IN (1, 2, 3, 4, 5)").starts_with("i IN ("),
        "{}",
        planned("i IN (1, 2, 3, 4, 5)")
    );
    assert!(planned("day = DATE '2024-08-16'").contains("day = "));
    assert!(planned("at < TIMESTAMP '2024-08-16T00:00:00Z'").contains("at < "));
    assert_eq!(planned("i BETWEEN 1 AND 3"), "(i >= 1) AND (i <= 3)");
}

#[test]
fn negation_is_pushed_through_to_the_comparisons() {
    assert_eq!(planned("NOT (i < 5)"), "i >= 5");
    assert_eq!(planned("NOT (i < 5 OR l = 2)"), "(i >= 5) AND (l != 2)");
    assert_eq!(planned("NOT (i IS NULL)"), "i IS NOT NULL");
}

#[test]
fn what_both_sides_may_understand_differently_is_left_to_the_rows() {
    for text in [
        "d > 1.5",
        "d = 'NaN'",
        "dec = 1.25",
        "\"a.b\" = 1",
        "CAST(i AS VARCHAR) = '05'",
        "CAST(i AS DOUBLE) > 1.5",
        "CAST(s AS INT) = 5",
        "i + 1 = 6",
        "i = l",
        "s LIKE '%b'",
        "s LIKE 'a_b%'",
        "s ILIKE 'ab%'",
        "s NOT LIKE 'ab%'",
        "i = 5 OR d > 1.5",
        "NOT (i = 5 AND d > 1.5)",
        "i IS DISTINCT FROM 5",
    ] {
        assert_eq!(planned(text), "", "{text}");
    }
}

#[test]
fn a_conjunction_keeps_the_sides_that_are_understood() {
    assert_eq!(planned("i = 5 AND d > 1.5"), "i = 5");
    assert_eq!(planned("NOT (i <> 5 OR d > 1.5)"), "i = 5");
}

#[test]
fn a_column_whose_type_was_promoted_prunes_nothing() {
    let metadata = metadata(true);
    let columns = PushableColumns::for_planning(metadata.current_schema(), &metadata);
    assert!(columns.push_down([parse("l = 5").expr()]).is_none());
    assert!(columns.push_down([parse("i = 5").expr()]).is_some());
}

#[test]
fn the_reader_is_given_no_filter_on_what_a_file_may_lack() {
    let metadata = metadata(false);
    let columns = PushableColumns::for_reading(metadata.current_schema(), &metadata);
    assert!(
        columns.push_down([parse("i = 5").expr()]).is_none(),
        "i is an identity partition"
    );
    assert!(columns.push_down([parse("s = 'x'").expr()]).is_none());
    assert!(columns.push_down([parse("l = 5").expr()]).is_some());
}

#[test]
fn a_filter_that_is_none_is_told_by_what_it_is() {
    let schema = Arc::new(ArrowSchema::new(vec![
        Field::new("x", DataType::Int32, true),
        Field::new("t", DataType::Timestamp(TimeUnit::Microsecond, None), true),
    ]));
    let failed = |text: &str| Filter::parse(text, &schema).unwrap_err();
    assert!(failed("x + 1").to_string().contains("not Boolean"));
    for text in [
        "",
        "x =",
        "nope = 1",
        "count(x) > 1",
        "x = (SELECT 1)",
        "x > 1; DROP TABLE t",
    ] {
        let error = failed(text);
        assert_eq!(error.kind(), ErrorKind::Invalid, "{text}");
        assert!(error.to_string().contains(&format!("'{text}'")), "{error}");
    }
}
