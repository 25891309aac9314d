//! What the tests of conditions share: values of every type, random conditions, and a plain interpreter to judge by.

mod binding;
mod evaluation;
mod metrics;
mod partitions;
mod soundness;
mod truths;

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, Date32Array, Decimal128Array, FixedSizeBinaryArray, Float32Array,
    Float64Array, Int32Array, Int64Array, LargeBinaryArray, StringArray, Time64MicrosecondArray,
    TimestampMicrosecondArray, TimestampNanosecondArray,
};
use iceberg::spec::{Datum, NestedField, PrimitiveLiteral, PrimitiveType, Schema, Type};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::datum::typed;
use super::*;
use crate::error::{Error, ErrorKind};

const DECIMAL: PrimitiveType = PrimitiveType::Decimal {
    precision: 20,
    scale: 2,
};

/// Every type, with the types that its values may have been written as.
fn kinds() -> Vec<(PrimitiveType, PrimitiveType)> {
    use PrimitiveType::*;
    let small = Decimal {
        precision: 9,
        scale: 2,
    };
    let mut kinds = vec![(Int, Long), (Float, Double), (small, DECIMAL)];
    for kind in [
        Boolean,
        Int,
        Long,
        Float,
        Double,
        DECIMAL,
        Date,
        Time,
        Timestamp,
        Timestamptz,
        TimestampNs,
        TimestamptzNs,
        String,
        Uuid,
        Fixed(3),
        Binary,
    ] {
        kinds.push((kind.clone(), kind));
    }
    kinds
}

fn column(id: i32, kind: &PrimitiveType) -> Column {
    Column {
        id,
        name: format!("c{id}"),
        kind: kind.clone(),
    }
}

/// A schema of optional columns `c1`, `c2` ... of these types.
fn schema(kinds: &[PrimitiveType]) -> Schema {
    let fields = (1..).zip(kinds).map(|(id, kind)| {
        NestedField::optional(id, format!("c{id}"), Type::Primitive(kind.clone())).into()
    });
    Schema::builder().with_fields(fields).build().unwrap()
}

/// Few values, so that they meet; among them extremes, both zeros, NaNs, times around 1970.
fn pool(kind: &PrimitiveType) -> Vec<Datum> {
    use PrimitiveLiteral as Is;
    use PrimitiveType as Of;
    let nan = |bits: u32| f32::from_bits(bits);
    let ints = [
        i32::MIN,
        -366,
        -31,
        -11,
        -10,
        -1,
        0,
        1,
        9,
        10,
        31,
        59,
        365,
        11_016,
        i32::MAX,
    ];
    let day = 86_400_000_000_i64;
    let mut longs = vec![
        i64::MIN,
        i64::MAX,
        3_000_000_000,
        day - 1,
        day,
        -day,
        -day - 1,
    ];
    longs.extend([
        -day - 500_000,
        -day * 366 + 1,
        day * 11_016,
        -3_600_000_001,
        -999,
        -1_000,
    ]);
    longs.extend(ints.map(i64::from));
    let floats = [
        f32::NEG_INFINITY,
        f32::MIN,
        -1.5,
        -0.0,
        0.0,
        f32::MIN_POSITIVE,
        0.1,
        1.5,
    ];
    let nans = [
        nan(0x7fc0_0000),
        nan(0xffc0_0000),
        nan(0x7fc0_0001),
        f32::INFINITY,
    ];
    let floats: Vec<f32> = floats.into_iter().chain(nans).collect();
    let bytes: [&[u8]; 8] = [
        b"",
        b"a",
        b"ab",
        b"abc",
        b"abd",
        b"\xff",
        b"\xff\xff",
        b"abcdefgh\x00",
    ];
    let literals: Vec<Datum> = match kind {
        Of::Boolean => vec![Datum::bool(false), Datum::bool(true)],
        Of::Int | Of::Date => (ints.iter())
            .map(|v| {
                if *kind == Of::Int {
                    Datum::int(*v)
                } else {
                    Datum::date(*v)
                }
            })
            .collect(),
        Of::Float => floats.iter().map(|v| Datum::float(*v)).collect(),
        Of::Double => (floats.iter())
            .map(|v| Datum::double(f64::from(*v)))
            .chain([
                Datum::double(0.1),
                Datum::double(f64::MAX),
                Datum::double(f64::MIN),
            ])
            .collect(),
        Of::Decimal { precision, .. } => {
            let most = 10_i128.pow(*precision) - 1;
            let values = [
                -most, -1_000, -101, -100, -1, 0, 1, 99, 100, 127, 128, 255, 256, most,
            ];
            (values.iter())
                .map(|v| typed(kind, decimal(*v, 2).literal()).unwrap())
                .collect()
        }
        Of::String => [
            "",
            "a",
            "ab",
            "abc",
            "abd",
            "z",
            "\u{d7ff}",
            "\u{e000}",
            "😀",
            "😀😀x",
            "😀😀",
            "\u{10ffff}",
            "abcdefghijk",
        ]
        .map(Datum::string)
        .to_vec(),
        Of::Uuid => [
            0,
            1,
            1 << 63,
            1 << 64,
            (1 << 64) + (1 << 63),
            1 << 127,
            u128::MAX,
            u128::MAX >> 1,
        ]
        .map(|v| typed(kind, &Is::UInt128(v)).unwrap())
        .to_vec(),
        Of::Fixed(_) => [
            [0, 0, 0],
            [0, 0, 1],
            [97, 98, 99],
            [97, 98, 255],
            [255, 255, 255],
        ]
        .map(|v: [u8; 3]| Datum::fixed(v))
        .to_vec(),
        Of::Binary => bytes.map(|v| Datum::binary(v.to_vec())).to_vec(),
        _ => (longs.iter())
            .map(|v| typed(kind, &Is::Long(*v)).unwrap())
            .collect(),
    };
    literals
}

type Row = Vec<Option<Datum>>;

/// Columns 1, 2 ... of these types, rows of them, a condition on them.
#[derive(Clone, Debug)]
struct Case {
    kinds: Vec<PrimitiveType>,
    rows: Vec<Row>,
    predicate: Predicate,
}

fn value(kind: &PrimitiveType) -> BoxedStrategy<Datum> {
    prop::sample::select(pool(kind)).boxed()
}

fn any_kind() -> impl Strategy<Value = PrimitiveType> {
    prop::sample::select(kinds()).prop_map(|(_, kind)| kind)
}

/// Random values of a type, NULL among them or not.
fn cells(kind: &PrimitiveType, rows: usize) -> BoxedStrategy<Vec<Option<Datum>>> {
    let some = prop::collection::vec(value(kind).prop_map(Some), rows);
    let mixed = prop::collection::vec(prop::option::weighted(0.7, value(kind)), rows);
    let few = (value(kind), value(kind), prop::collection::vec(0..3, rows)).prop_map(
        |(one, other, which)| {
            (which.into_iter())
                .map(|which| match which {
                    0 => Some(one.clone()),
                    1 => Some(other.clone()),
                    _ => None,
                })
                .collect()
        },
    );
    let same = (prop::option::weighted(0.7, value(kind))).prop_map(move |cell| vec![cell; rows]);
    prop_oneof![some, mixed, few, same].boxed()
}

fn leaf(column: Column) -> BoxedStrategy<Predicate> {
    let comparison = prop::sample::select(vec![
        Comparison::Equal,
        Comparison::NotEqual,
        Comparison::Less,
        Comparison::LessOrEqual,
        Comparison::Greater,
        Comparison::GreaterOrEqual,
    ]);
    let (a, b, c, d, e) = (
        column.clone(),
        column.clone(),
        column.clone(),
        column.clone(),
        column.clone(),
    );
    let compare = (comparison, value(&column.kind))
        .prop_map(move |(comparison, datum)| Predicate::Compare(a.clone(), comparison, datum));
    let list = prop::collection::vec(value(&column.kind), 0..9)
        .prop_map(move |datums| Predicate::In(b.clone(), datums));
    let null = Just(Predicate::IsNull(c));
    let nan = Just(Predicate::IsNan(d));
    let mixed = prop_oneof![5 => compare, 3 => list, 1 => null, 1 => nan];
    if column.kind != PrimitiveType::String {
        return mixed.boxed();
    }
    let starts = prop::sample::select(vec!["", "a", "ab", "abc", "😀", "z", "zz", "\u{10ffff}"])
        .prop_map(move |prefix| Predicate::StartsWith(e.clone(), prefix.to_owned()));
    prop_oneof![3 => mixed, 2 => starts].boxed()
}

fn condition(columns: Vec<Column>) -> BoxedStrategy<Predicate> {
    let leaves: Vec<_> = columns.into_iter().map(leaf).collect();
    let leaf = prop_oneof![
        12 => proptest::strategy::Union::new(leaves),
        1 => any::<bool>().prop_map(Predicate::Constant)
    ];
    leaf.prop_recursive(3, 10, 3, |inner| {
        let parts = prop::collection::vec(inner.clone(), 0..4);
        prop_oneof![
            3 => parts.clone().prop_map(Predicate::And),
            3 => parts.prop_map(Predicate::Or),
            2 => inner.clone().prop_map(|inner| Predicate::Not(Box::new(inner))),
            1 => inner.clone().prop_map(|inner| Predicate::IsTrue(Box::new(inner))),
            1 => inner.prop_map(|inner| Predicate::IsUnknown(Box::new(inner))),
        ]
    })
    .boxed()
}

/// Rows of one or two columns, at least one.
fn case() -> BoxedStrategy<Case> {
    (prop::collection::vec(any_kind(), 1..3), 1..7_usize)
        .prop_flat_map(|(kinds, rows)| {
            let columns = (1..).zip(&kinds).map(|(id, kind)| column(id, kind));
            let condition = condition(columns.collect());
            let cells: Vec<_> = kinds.iter().map(|kind| cells(kind, rows)).collect();
            (Just(kinds), cells, condition)
        })
        .prop_map(|(kinds, cells, predicate)| {
            let rows = (0..cells[0].len())
                .map(|row| cells.iter().map(|column| column[row].clone()).collect())
                .collect();
            Case {
                kinds,
                rows,
                predicate,
            }
        })
        .boxed()
}

/// Runs a property on random values; the seed is printed, and taken back from FLOE_SEED.
fn check<S: Strategy>(cases: u32, strategy: S, property: impl Fn(S::Value)) {
    let seed = match std::env::var("FLOE_SEED") {
        Ok(text) => text.parse().expect("FLOE_SEED is a number"),
        Err(_) => rand::random::<u64>(),
    };
    println!("FLOE_SEED={seed}");
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let config = Config {
        cases,
        failure_persistence: None,
        ..Config::default()
    };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let outcome = runner.run(&strategy, |value| {
        property(value);
        Ok(())
    });
    if let Err(failure) = outcome {
        panic!("FLOE_SEED={seed}: {failure}");
    }
}

struct Table {
    rows: usize,
    columns: HashMap<i32, ArrayRef>,
}

impl Table {
    fn of(kinds: &[PrimitiveType], rows: &[Row]) -> Self {
        let columns = (0..).zip(kinds).map(|(at, kind)| {
            let cells: Vec<_> = rows.iter().map(|row| row[at].clone()).collect();
            (i32::try_from(at).unwrap() + 1, array(kind, &cells))
        });
        Self {
            rows: rows.len(),
            columns: columns.collect(),
        }
    }
}

impl Rows for Table {
    fn len(&self) -> usize {
        self.rows
    }

    fn column(&self, id: i32) -> crate::error::Result<ArrayRef> {
        let array = self.columns.get(&id).cloned();
        array.ok_or_else(|| Error::new(ErrorKind::NotFound, format!("no column {id}")))
    }
}

/// An Arrow array of the type that iceberg maps this one to.
fn array(kind: &PrimitiveType, cells: &[Option<Datum>]) -> ArrayRef {
    use PrimitiveType as Of;
    macro_rules! values {
        ($array:ty, $variant:ident) => {
            <$array>::from_iter(cells.iter().map(|cell| {
                cell.as_ref().map(|datum| match datum.literal() {
                    PrimitiveLiteral::$variant(v) => v.clone().into(),
                    other => panic!("{other:?} in a column of {kind}"),
                })
            }))
        };
    }
    let bytes = || {
        cells.iter().map(|cell| {
            cell.as_ref().map(|datum| match datum.literal() {
                PrimitiveLiteral::Binary(v) => v.clone(),
                PrimitiveLiteral::UInt128(v) => v.to_be_bytes().to_vec(),
                other => panic!("{other:?} in a column of {kind}"),
            })
        })
    };
    let fixed =
        |width| FixedSizeBinaryArray::try_from_sparse_iter_with_size(bytes(), width).unwrap();
    match kind {
        Of::Boolean => Arc::new(values!(BooleanArray, Boolean)),
        Of::Int => Arc::new(values!(Int32Array, Int)),
        Of::Long => Arc::new(values!(Int64Array, Long)),
        Of::Float => Arc::new(Float32Array::from_iter(cells.iter().map(|cell| {
            cell.as_ref().map(|datum| match datum.literal() {
                PrimitiveLiteral::Float(v) => v.0,
                other => panic!("{other:?} in a column of {kind}"),
            })
        }))),
        Of::Double => Arc::new(Float64Array::from_iter(cells.iter().map(|cell| {
            cell.as_ref().map(|datum| match datum.literal() {
                PrimitiveLiteral::Double(v) => v.0,
                other => panic!("{other:?} in a column of {kind}"),
            })
        }))),
        Of::Decimal { precision, scale } => {
            let array = values!(Decimal128Array, Int128);
            let (precision, scale) = (u8::try_from(*precision), i8::try_from(*scale));
            Arc::new(
                array
                    .with_precision_and_scale(precision.unwrap(), scale.unwrap())
                    .unwrap(),
            )
        }
        Of::Date => Arc::new(values!(Date32Array, Int)),
        Of::Time => Arc::new(values!(Time64MicrosecondArray, Long)),
        Of::Timestamp => Arc::new(values!(TimestampMicrosecondArray, Long)),
        Of::Timestamptz => {
            Arc::new(values!(TimestampMicrosecondArray, Long).with_timezone("+00:00"))
        }
        Of::TimestampNs => Arc::new(values!(TimestampNanosecondArray, Long)),
        Of::TimestamptzNs => {
            Arc::new(values!(TimestampNanosecondArray, Long).with_timezone("+00:00"))
        }
        Of::String => Arc::new(StringArray::from_iter(cells.iter().map(|cell| {
            cell.as_ref().map(|datum| match datum.literal() {
                PrimitiveLiteral::String(v) => v.clone(),
                other => panic!("{other:?} in a column of {kind}"),
            })
        }))),
        Of::Uuid => Arc::new(fixed(16)),
        Of::Fixed(width) => Arc::new(fixed(i32::try_from(*width).unwrap())),
        Of::Binary => Arc::new(LargeBinaryArray::from_iter(bytes())),
    }
}

/// What a value is worth in comparisons, written without the code under test.
enum Worth {
    Number(i128),
    Unsigned(u128),
    Float(f64),
    Bytes(Vec<u8>),
}

fn worth(datum: &Datum) -> Worth {
    match datum.literal() {
        PrimitiveLiteral::Boolean(v) => Worth::Number(i128::from(*v)),
        PrimitiveLiteral::Int(v) => Worth::Number(i128::from(*v)),
        PrimitiveLiteral::Long(v) => Worth::Number(i128::from(*v)),
        PrimitiveLiteral::Int128(v) => Worth::Number(*v),
        PrimitiveLiteral::UInt128(v) => Worth::Unsigned(*v),
        PrimitiveLiteral::Float(v) => Worth::Float(f64::from(v.0)),
        PrimitiveLiteral::Double(v) => Worth::Float(v.0),
        PrimitiveLiteral::String(v) => Worth::Bytes(v.as_bytes().to_vec()),
        PrimitiveLiteral::Binary(v) => Worth::Bytes(v.clone()),
        other => panic!("{other:?} is no value"),
    }
}

fn ranks(left: &Datum, right: &Datum) -> Ordering {
    match (worth(left), worth(right)) {
        (Worth::Number(l), Worth::Number(r)) => l.cmp(&r),
        (Worth::Unsigned(l), Worth::Unsigned(r)) => l.cmp(&r),
        (Worth::Bytes(l), Worth::Bytes(r)) => l.cmp(&r),
        (Worth::Float(l), Worth::Float(r)) => match (l.is_nan(), r.is_nan()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) if l < r => Ordering::Less,
            (false, false) if l > r => Ordering::Greater,
            (false, false) => Ordering::Equal,
        },
        _ => panic!("{left} and {right} are of different types"),
    }
}

/// The truth of a condition for one row, straight from its definition.
fn interpret(predicate: &Predicate, row: &Row) -> Option<bool> {
    let cell = |column: &Column| row[usize::try_from(column.id).unwrap() - 1].clone();
    match predicate {
        Predicate::Constant(value) => Some(*value),
        Predicate::And(parts) => {
            let truths: Vec<_> = parts.iter().map(|part| interpret(part, row)).collect();
            if truths.contains(&Some(false)) {
                return Some(false);
            }
            (!truths.contains(&None)).then_some(true)
        }
        Predicate::Or(parts) => {
            let truths: Vec<_> = parts.iter().map(|part| interpret(part, row)).collect();
            if truths.contains(&Some(true)) {
                return Some(true);
            }
            (!truths.contains(&None)).then_some(false)
        }
        Predicate::Not(inner) => interpret(inner, row).map(|truth| !truth),
        Predicate::IsTrue(inner) => Some(interpret(inner, row) == Some(true)),
        Predicate::IsUnknown(inner) => Some(interpret(inner, row).is_none()),
        Predicate::Compare(column, comparison, datum) => {
            let order = ranks(&cell(column)?, datum);
            Some(match comparison {
                Comparison::Equal => order == Ordering::Equal,
                Comparison::NotEqual => order != Ordering::Equal,
                Comparison::Less => order == Ordering::Less,
                Comparison::LessOrEqual => order != Ordering::Greater,
                Comparison::Greater => order == Ordering::Greater,
                Comparison::GreaterOrEqual => order != Ordering::Less,
            })
        }
        Predicate::In(column, datums) => {
            let value = cell(column)?;
            Some(
                datums
                    .iter()
                    .any(|datum| ranks(&value, datum) == Ordering::Equal),
            )
        }
        Predicate::StartsWith(column, prefix) => match cell(column)?.literal() {
            PrimitiveLiteral::String(text) => Some(text.starts_with(prefix)),
            other => panic!("{other:?} is no string"),
        },
        Predicate::IsNull(column) => Some(cell(column).is_none()),
        Predicate::IsNan(column) => Some(cell(column).is_some_and(|datum| datum.is_nan())),
        Predicate::Opaque(_) => panic!("not interpreted"),
    }
}

/// Knowledge as a plain table.
struct Told(HashMap<i32, Known>);

impl Knowledge for Told {
    fn column(&self, column: &Column) -> Known {
        self.0.get(&column.id).cloned().unwrap_or_default()
    }
}

/// The truths of the rows are among those foretold, and what is left of the condition is true of the same rows.
fn assert_sound(predicate: &Predicate, known: &dyn Knowledge, rows: &[Row]) {
    let truths = predicate.truths(known);
    let residual = predicate.residual(known);
    for row in rows {
        let truth = interpret(predicate, row);
        assert!(
            truths.holds(Truths::of(truth)),
            "{predicate} is {truth:?} of {row:?}, foretold {truths:?}"
        );
        let left = interpret(&residual, row);
        assert_eq!(
            left == Some(true),
            truth == Some(true),
            "{predicate} became {residual}, which is {left:?} of {row:?}"
        );
    }
}
