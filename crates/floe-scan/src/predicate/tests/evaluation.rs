//! Conditions on rows, against the interpreter and by hand.

use arrow_array::types::Int32Type;
use arrow_array::{
    Array, DictionaryArray, Int32Array, LargeStringArray, StringArray, StringViewArray,
};

use super::*;

#[test]
fn rows_get_the_truths_that_the_definition_gives_them() {
    check(4_000, case(), |case| {
        let table = Table::of(&case.kinds, &case.rows);
        let truths = case.predicate.evaluate(&table).unwrap();
        let expected: BooleanArray = (case.rows.iter())
            .map(|row| interpret(&case.predicate, row))
            .collect();
        assert_eq!(truths, expected, "{}", case.predicate);
    });
}

fn evaluate(predicate: &Predicate, column: ArrayRef) -> Vec<Option<bool>> {
    let table = Table {
        rows: column.len(),
        columns: HashMap::from([(1, column)]),
    };
    predicate.evaluate(&table).unwrap().iter().collect()
}

#[test]
fn strings_may_come_in_any_of_arrows_shapes() {
    let text = vec![Some("ab"), None, Some("b"), Some("abc")];
    let keys = Int32Array::from(vec![Some(0), Some(1), Some(2), None]);
    let entries = StringArray::from(vec![Some("ab"), None, Some("b")]);
    let dictionary = DictionaryArray::<Int32Type>::try_new(keys, Arc::new(entries)).unwrap();
    let name = column(1, &PrimitiveType::String);
    let many: Vec<Datum> = ["ab", "x", "y", "z", "w", "v"].map(Datum::string).to_vec();
    let conditions = [
        Predicate::Compare(name.clone(), Comparison::Equal, Datum::string("ab")),
        Predicate::In(name.clone(), many),
    ];
    for condition in &conditions {
        for array in [
            Arc::new(StringArray::from(text.clone())) as ArrayRef,
            Arc::new(LargeStringArray::from(text.clone())),
            Arc::new(StringViewArray::from(text.clone())),
        ] {
            let truths = evaluate(condition, array);
            assert_eq!(truths, [Some(true), None, Some(false), Some(false)]);
        }
        let truths = evaluate(condition, Arc::new(dictionary.clone()));
        assert_eq!(truths, [Some(true), None, Some(false), None]);
    }
    let starts = Predicate::StartsWith(name.clone(), "ab".into());
    let truths = evaluate(&starts, Arc::new(dictionary.clone()));
    assert_eq!(truths, [Some(true), None, Some(false), None]);
    let null = evaluate(&Predicate::IsNull(name), Arc::new(dictionary));
    assert_eq!(null, [Some(false), Some(true), Some(false), Some(true)]);
}

#[test]
fn a_column_of_another_type_is_an_error_that_names_the_condition() {
    let condition = Predicate::Compare(
        column(1, &PrimitiveType::Long),
        Comparison::Less,
        Datum::long(5),
    );
    let table = Table {
        rows: 1,
        columns: HashMap::from([(1, Arc::new(Int32Array::from(vec![1])) as ArrayRef)]),
    };
    let error = condition.evaluate(&table).unwrap_err();
    assert_eq!(error.to_string(), "can't evaluate the condition c1 < 5");
}

#[test]
fn a_column_of_another_length_is_an_error() {
    let condition = Predicate::IsNull(column(1, &PrimitiveType::Int));
    let table = Table {
        rows: 2,
        columns: HashMap::from([(1, Arc::new(Int32Array::from(vec![1])) as ArrayRef)]),
    };
    assert!(condition.evaluate(&table).is_err());
}

#[derive(Debug)]
struct Outside;

impl std::fmt::Display for Outside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("outside(c1)")
    }
}

impl RowCondition for Outside {
    fn columns(&self) -> &[i32] {
        &[7, 3]
    }

    fn evaluate(&self, rows: &dyn Rows) -> Result<BooleanArray> {
        Ok(BooleanArray::from(vec![None; rows.len()]))
    }
}

#[test]
fn conditions_from_outside_are_asked_and_counted() {
    let condition = Predicate::Opaque(Arc::new(Outside))
        .negate()
        .and(Predicate::IsNan(column(1, &PrimitiveType::Double)));
    assert_eq!(condition.columns(), [1, 3, 7]);
    assert_eq!(condition.to_string(), "NOT (outside(c1)) AND c1 IS NAN");
    let nan = evaluate(
        &condition,
        Arc::new(Float64Array::from(vec![f64::NAN, 1.0])),
    );
    assert_eq!(nan, [None, Some(false)]);
    assert_eq!(condition.truths(&Told(HashMap::new())), Truths::ANY);
}

#[test]
fn conditions_read_as_people_write_them() {
    let date = column(1, &PrimitiveType::Date);
    let text = column(2, &PrimitiveType::String);
    let after = Predicate::Compare(
        date.clone(),
        Comparison::GreaterOrEqual,
        Datum::date(19_000),
    );
    let far = Predicate::Compare(date, Comparison::Less, Datum::date(i32::MAX));
    let many = (0..12).map(|v| Datum::string(v.to_string())).collect();
    let list = Predicate::In(text.clone(), many);
    let quoted = Predicate::Compare(text, Comparison::NotEqual, Datum::string("it's"));
    assert_eq!(
        after.or(far).and(list.negate()).and(quoted).to_string(),
        "(c1 >= '2022-01-08' OR c1 < day 2147483647) AND NOT (c2 IN ('0', '1', '2', '3', '4', '5', '6', '7', '8', '9', \
         and 2 more)) AND c2 <> 'it''s'"
    );
    for (_, kind) in kinds() {
        for datum in pool(&kind) {
            assert!(!crate::predicate::datum::show(&datum).is_empty());
        }
    }
}

#[test]
fn conjuncts_are_all_parts_of_nested_conjunctions() {
    let null = |id| Predicate::IsNull(column(id, &PrimitiveType::Int));
    let nested = Predicate::And(vec![
        Predicate::And(vec![null(1), Predicate::Constant(true), null(2)]),
        Predicate::Or(vec![null(3)]),
    ]);
    let names: Vec<String> = nested.conjuncts().iter().map(ToString::to_string).collect();
    assert_eq!(names, ["c1 IS NULL", "c2 IS NULL", "c3 IS NULL"]);
    assert!(Predicate::Constant(true).conjuncts().is_empty());
    let never = null(1).and(Predicate::Constant(false)).conjuncts();
    assert!(matches!(never[..], [Predicate::Constant(false)]));
}
