//! Filters against a plain reference: whatever is pushed down, the rows are those that SQL wants.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, StringArray};
use iceberg::spec::{NestedField, PrimitiveType, Schema, Type};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use crate::support::{Fixture, filtered, int_array};

/// SQL's three truths.
type Truth = Option<bool>;

#[derive(Clone, Debug)]
struct Row {
    id: i64,
    small: Option<i32>,
    word: Option<String>,
}

/// A filter as text and as its meaning.
#[derive(Clone, Debug)]
enum Expr {
    Small(&'static str, i32),
    Word(&'static str, String),
    SmallIn(Vec<i32>),
    Starts(String),
    NoSmall,
    NoWord,
    Not(Box<Expr>),
    And(Box<Expr>, Box<Expr>),
    Or(Box<Expr>, Box<Expr>),
}

impl Expr {
    fn text(&self) -> String {
        match self {
            Self::Small(op, value) => format!("small {op} {value}"),
            Self::Word(op, value) => format!("word {op} '{value}'"),
            Self::SmallIn(values) => {
                format!(
                    "small IN ({})",
                    values
                        .iter()
                        .map(i32::to_string)
                        .collect::<Vec<_>>()
                        .join(", ")
                )
            }
            Self::Starts(prefix) => format!("word LIKE '{prefix}%'"),
            Self::NoSmall => "small IS NULL".to_string(),
            Self::NoWord => "word IS NULL".to_string(),
            Self::Not(inner) => format!("NOT ({})", inner.text()),
            Self::And(a, b) => format!("({}) AND ({})", a.text(), b.text()),
            Self::Or(a, b) => format!("({}) OR ({})", a.text(), b.text()),
        }
    }

    fn eval(&self, row: &Row) -> Truth {
        match self {
            Self::Small(op, value) => row.small.map(|small| compare(op, &small, value)),
            Self::Word(op, value) => row.word.as_ref().map(|word| compare(op, word, value)),
            Self::SmallIn(values) => row.small.map(|small| values.contains(&small)),
            Self::Starts(prefix) => row.word.as_ref().map(|word| word.starts_with(prefix)),
            Self::NoSmall => Some(row.small.is_none()),
            Self::NoWord => Some(row.word.is_none()),
            Self::Not(inner) => inner.eval(row).map(|truth| !truth),
            Self::And(a, b) => match (a.eval(row), b.eval(row)) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), Some(true)) => Some(true),
                _ => None,
            },
            Self::Or(a, b) => match (a.eval(row), b.eval(row)) {
                (Some(true), _) | (_, Some(true)) => Some(true),
                (Some(false), Some(false)) => Some(false),
                _ => None,
            },
        }
    }
}

fn compare<T: PartialOrd>(op: &str, a: &T, b: &T) -> bool {
    match op {
        "=" => a == b,
        "<>" => a != b,
        "<" => a < b,
        "<=" => a <= b,
        ">" => a > b,
        _ => a >= b,
    }
}

fn operator() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["=", "<>", "<", "<=", ">", ">="])
}

fn expression() -> impl Strategy<Value = Expr> {
    let leaf = prop_oneof![
        (operator(), -3..12).prop_map(|(op, value)| Expr::Small(op, value)),
        (operator(), "[a-c]{0,3}").prop_map(|(op, value)| Expr::Word(op, value)),
        prop::collection::vec(-3..12, 1..6).prop_map(Expr::SmallIn),
        "[a-c]{1,2}".prop_map(Expr::Starts),
        Just(Expr::NoSmall),
        Just(Expr::NoWord),
    ];
    leaf.prop_recursive(3, 12, 2, |inner| {
        prop_oneof![
            inner.clone().prop_map(|e| Expr::Not(Box::new(e))),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| Expr::And(Box::new(a), Box::new(b))),
            (inner.clone(), inner).prop_map(|(a, b)| Expr::Or(Box::new(a), Box::new(b))),
        ]
    })
}

/// Rows in files with narrow ranges, so that pruning has something to prune: file n holds small values about n.
fn rows() -> Vec<Vec<Row>> {
    let mut id = 0;
    (0..10)
        .map(|file| {
            (0..6)
                .map(|place| {
                    id += 1;
                    let small = (place != 3 && file != 9).then_some(file + place % 2);
                    let letter = ["a", "b", "c"][file as usize % 3];
                    let word =
                        (place != 4 && file != 8).then(|| letter.repeat(place as usize % 3 + 1));
                    Row { id, small, word }
                })
                .collect()
        })
        .collect()
}

async fn fixture(partitioned_by: &[&str], files: &[Vec<Row>]) -> Fixture {
    let schema = Schema::builder()
        .with_fields([
            NestedField::optional(1, "id", Type::Primitive(PrimitiveType::Long)).into(),
            NestedField::optional(2, "small", Type::Primitive(PrimitiveType::Int)).into(),
            NestedField::optional(3, "word", Type::Primitive(PrimitiveType::String)).into(),
        ])
        .build()
        .unwrap();
    let mut fixture = Fixture::new(schema, partitioned_by).await;
    for rows in files {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.id))),
            int_array(rows.iter().map(|row| row.small)),
            Arc::new(
                rows.iter()
                    .map(|row| row.word.clone())
                    .collect::<StringArray>(),
            ),
        ];
        fixture.append(columns).await;
    }
    fixture
}

#[test]
fn every_filter_keeps_exactly_the_rows_that_sql_keeps() {
    let seed = std::env::var("FLOE_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok())
        .unwrap_or_else(rand::random::<u64>);
    println!("FLOE_SEED={seed}");
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let config = Config {
        cases: 150,
        failure_persistence: None,
        ..Config::default()
    };
    let mut runner =
        TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    let files = rows();
    let fixtures = runtime.block_on(async {
        [
            fixture(&[], &files).await,
            fixture(&["small", "word"], &files).await,
        ]
    });
    let tried = runner.run(&expression(), |expression| {
        let mut wanted: Vec<i64> = files
            .iter()
            .flatten()
            .filter(|row| expression.eval(row) == Some(true))
            .map(|row| row.id)
            .collect();
        wanted.sort_unstable();
        for fixture in &fixtures {
            let found = runtime.block_on(fixture.ids(filtered(&expression.text())));
            let found = found.map_err(|error| {
                TestCaseError::fail(format!("{}: {error:?}", expression.text()))
            })?;
            prop_assert_eq!(&found, &wanted, "{}", expression.text());
        }
        Ok(())
    });
    tried.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_filter_prunes_files() {
    let fixture = fixture(&[], &rows()).await;
    let files = fixture
        .scan(filtered("small = 5"))
        .unwrap()
        .files()
        .await
        .unwrap();
    // Files 4 and 5 hold fives; file 9 holds no value at all.
    assert_eq!(files.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_can_be_neither_true_nor_false_stays_unknown() {
    let fixture = fixture(&[], &rows()).await;
    let never = "small IN (0) AND small IN (1)";
    let unknown = fixture.ids(filtered("small IS NULL")).await.unwrap();
    assert_eq!(
        fixture
            .ids(filtered(&format!("({never}) IS NULL")))
            .await
            .unwrap(),
        unknown
    );
    let known = fixture
        .ids(filtered(&format!("NOT ({never})")))
        .await
        .unwrap();
    assert!(known.iter().all(|id| !unknown.contains(id)), "{known:?}");
    assert_eq!(known.len() + unknown.len(), 60);
}
