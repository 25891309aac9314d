//! Row groups that are not read, and conditions that statistics settle.

use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, Int64Array, StringArray, StructArray};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, Fields};
use iceberg::spec::{Datum, Literal, NestedField, PrimitiveType, SchemaRef, StructType, Type};

use super::kit::*;
use crate::predicate::{Column, Comparison, Predicate};

fn table() -> SchemaRef {
    let with_default = NestedField::optional(4, "late", primitive(PrimitiveType::Long));
    schema([
        optional(1, "id", primitive(PrimitiveType::Long)),
        optional(2, "x", primitive(PrimitiveType::Double)),
        optional(3, "name", primitive(PrimitiveType::String)),
        Arc::new(with_default.with_initial_default(Literal::long(7))),
    ])
}

fn compare(name: &str, comparison: Comparison, datum: Datum) -> Predicate {
    Predicate::Compare(Column::find(&table(), name).unwrap(), comparison, datum)
}

/// Groups of ten: in each, ids of its own, a NaN, and a name.
fn data(files: &Files) -> crate::task::FileTask {
    let x = (0..100).map(|row| {
        if row % 10 == 3 {
            f64::NAN
        } else {
            f64::from(row)
        }
    });
    let names = (0..100).map(|row| format!("name {:03}", row / 10));
    let columns: [(i32, &str, ArrayRef); 3] = [
        (1, "id", Arc::new(Int64Array::from_iter_values(0..100))),
        (2, "x", Arc::new(Float64Array::from_iter_values(x))),
        (3, "name", Arc::new(StringArray::from_iter_values(names))),
    ];
    files.data("f", &batch(columns), 10)
}

/// The rows, and how many column chunks were fetched for them.
async fn read(condition: Predicate) -> (Vec<String>, usize) {
    let files = Arc::new(Files::with_whole(0));
    let task = with_residual(data(&files), condition);
    rows(&files, spec(&table(), &[1]), vec![task.clone()])
        .await
        .unwrap();
    files.calls();
    let rows = rows(&files, spec(&table(), &[1]), vec![task])
        .await
        .unwrap();
    let calls = files.calls();
    (rows, calls.iter().map(|(_, ranges)| ranges.len()).sum())
}

#[tokio::test]
async fn groups_that_cannot_match_are_not_fetched() {
    let (rows, chunks) = read(compare("id", Comparison::GreaterOrEqual, Datum::long(95))).await;
    assert_eq!((rows.len(), chunks), (5, 1));
    let (rows, chunks) = read(compare(
        "name",
        Comparison::Equal,
        Datum::string("name 004"),
    ))
    .await;
    assert_eq!(rows.len(), 10);
    // Every row of that group matches, so the name itself is not read.
    assert_eq!(chunks, 1);
    let (rows, chunks) = read(compare("name", Comparison::Equal, Datum::string("other"))).await;
    assert_eq!((rows.len(), chunks), (0, 0));
}

#[tokio::test]
async fn nan_is_greater_than_any_bound() {
    let (rows, _) = read(compare("x", Comparison::Greater, Datum::double(1000.0))).await;
    assert_eq!(
        rows,
        ["3", "13", "23", "33", "43", "53", "63", "73", "83", "93"]
    );
}

#[tokio::test]
async fn a_column_that_the_file_lacks_has_one_value() {
    let (rows, _) = read(compare("late", Comparison::Equal, Datum::long(7))).await;
    assert_eq!(rows.len(), 100);
    let (rows, chunks) = read(compare("late", Comparison::NotEqual, Datum::long(7))).await;
    assert_eq!((rows.len(), chunks), (0, 0));
    let late = Column::find(&table(), "late").unwrap();
    let (rows, _) = read(Predicate::IsNull(late)).await;
    assert_eq!(rows.len(), 0);
}

#[tokio::test]
async fn fields_of_structs_are_judged_with_their_structs() {
    let inner = StructType::new(vec![
        optional(11, "a", primitive(PrimitiveType::Long)),
        optional(12, "b", primitive(PrimitiveType::Long)),
    ]);
    let table = schema([
        optional(1, "s", Type::Struct(inner)),
        optional(2, "id", primitive(PrimitiveType::Long)),
    ]);
    let fields = Fields::from(vec![field(11, "a", DataType::Int64, true)]);
    let a: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), Some(2), None, Some(4)]));
    let nulls = NullBuffer::from(vec![true, false, true, true]);
    let columns: [(i32, &str, ArrayRef); 2] = [
        (
            1,
            "s",
            Arc::new(StructArray::new(fields, vec![a], Some(nulls))),
        ),
        (2, "id", Arc::new(Int64Array::from_iter_values(0..4))),
    ];
    let files = Arc::new(Files::new());
    let task = files.data("f", &batch(columns), 2);
    let column = |name| Column::find(&table, name).unwrap();
    let cases = [
        (Predicate::IsNull(column("s.a")), vec!["1", "2"]),
        (Predicate::IsNull(column("s.b")), vec!["0", "1", "2", "3"]),
        (
            Predicate::Compare(column("s.a"), Comparison::Greater, Datum::long(1)),
            vec!["3"],
        ),
    ];
    for (condition, wanted) in cases {
        let task = with_residual(task.clone(), condition);
        let rows = rows(&files, spec(&table, &[2]), vec![task]).await.unwrap();
        assert_eq!(rows, wanted);
    }
}

#[tokio::test]
async fn a_condition_never_sees_deleted_rows() {
    use std::fmt;

    use arrow_array::BooleanArray;
    use arrow_array::cast::AsArray;
    use arrow_array::types::Int64Type;

    use super::deletes::position_deletes;
    use crate::error::Result;
    use crate::predicate::{RowCondition, Rows};

    #[derive(Debug)]
    struct NoThirteen;
    impl fmt::Display for NoThirteen {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("no thirteen")
        }
    }
    impl RowCondition for NoThirteen {
        fn columns(&self) -> &[i32] {
            &[1]
        }
        fn evaluate(&self, rows: &dyn Rows) -> Result<BooleanArray> {
            let ids = rows.column(1)?;
            let ids = ids.as_primitive::<Int64Type>();
            assert_eq!(ids.len(), rows.len());
            assert!(!ids.values().contains(&13));
            Ok(ids.iter().map(|id| id.map(|id| id % 2 == 1)).collect())
        }
    }
    let files = Arc::new(Files::new());
    let deletes = position_deletes(&files, "d", &[("f", 13)]);
    let task = with_residual(data(&files), Predicate::Opaque(Arc::new(NoThirteen)));
    let task = with_deletes(task, [deletes]);
    let rows = rows(&files, spec(&table(), &[3, 1]), vec![task])
        .await
        .unwrap();
    assert_eq!(rows.len(), 49);
}
