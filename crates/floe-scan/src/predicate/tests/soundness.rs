//! Truths that are foretold from what is known of random rows, known exactly or less than that.

use std::cell::Cell;

use super::*;

/// How much of the truth is told of a column.
#[derive(Clone, Debug)]
struct Telling {
    lower: Looseness,
    upper: Looseness,
    flags: bool,
    prefix: bool,
}

#[derive(Clone, Debug)]
enum Looseness {
    Exact,
    Absent,
    /// Another value of the pool, if it is a bound.
    Beyond(usize),
}

fn looseness() -> impl Strategy<Value = Looseness> {
    prop_oneof![
        Just(Looseness::Exact),
        Just(Looseness::Absent),
        any::<usize>().prop_map(Looseness::Beyond)
    ]
}

fn told() -> impl Strategy<Value = Telling> {
    (looseness(), looseness(), any::<bool>(), any::<bool>()).prop_map(
        |(lower, upper, flags, prefix)| Telling {
            lower,
            upper,
            flags,
            prefix,
        },
    )
}

fn known(kind: &PrimitiveType, cells: &[Option<Datum>], told: &Telling) -> Known {
    let numbers: Vec<&Datum> = cells
        .iter()
        .flatten()
        .filter(|datum| !datum.is_nan())
        .collect();
    let bound = |found: Option<&&Datum>, looseness: &Looseness, wanted: Ordering| {
        let found = *found?;
        match looseness {
            Looseness::Exact => Some(Bound::exact(found.clone())),
            Looseness::Absent => None,
            Looseness::Beyond(which) => {
                let pool = pool(kind);
                let other = pool[which % pool.len()].clone();
                let beyond = ranks(&other, found) == wanted && !other.is_nan();
                Some(Bound::loose(if beyond { other } else { found.clone() }))
            }
        }
    };
    let least = numbers.iter().min_by(|l, r| ranks(l, r));
    let greatest = numbers.iter().max_by(|l, r| ranks(l, r));
    let shared = numbers.iter().map(|datum| match worth(datum) {
        Worth::Bytes(bytes) => bytes,
        _ => Vec::new(),
    });
    let shared = shared.reduce(|one, other| {
        let same = one.iter().zip(&other).take_while(|(l, r)| l == r).count();
        one[..same].to_vec()
    });
    let any = |test: fn(&Option<Datum>) -> bool| told.flags || cells.iter().any(test);
    let known = Known {
        nulls: any(Option::is_none),
        values: told.flags || !numbers.is_empty(),
        nans: any(|cell| cell.as_ref().is_some_and(Datum::is_nan)),
        prefix: shared.filter(|_| told.prefix),
        ..Known::anything()
    };
    known.between(
        bound(least, &told.lower, Ordering::Less),
        bound(greatest, &told.upper, Ordering::Greater),
    )
}

/// Knows columns, and answers for values by their bits, as a bloom filter does.
struct Filtered {
    columns: Told,
    rows: Vec<Row>,
    exact: bool,
}

impl Knowledge for Filtered {
    fn column(&self, column: &Column) -> Known {
        self.columns.column(column)
    }

    fn may_equal(&self, column: &Column, datum: &Datum) -> bool {
        let at = usize::try_from(column.id).unwrap() - 1;
        let bits = |datum: &Datum| datum.to_bytes().unwrap().to_vec();
        let holds = |row: &Row| {
            row[at]
                .as_ref()
                .is_some_and(|cell| bits(cell) == bits(datum))
        };
        !self.exact || self.rows.iter().any(holds)
    }
}

#[test]
fn truths_and_residuals_never_contradict_rows() {
    let strategy = (case(), prop::collection::vec(told(), 2), any::<bool>());
    let (pruned, whole) = (Cell::new(0), Cell::new(0));
    check(8_000, strategy, |(case, told, exact)| {
        let columns = (0..).zip(&case.kinds).map(|(at, kind)| {
            let cells: Vec<_> = case.rows.iter().map(|row| row[at].clone()).collect();
            (
                i32::try_from(at).unwrap() + 1,
                known(kind, &cells, &told[at]),
            )
        });
        let known = Filtered {
            columns: Told(columns.collect()),
            rows: case.rows.clone(),
            exact,
        };
        assert_sound(&case.predicate, &known, &case.rows);
        let truths = case.predicate.truths(&known);
        pruned.set(pruned.get() + usize::from(!truths.may_match()));
        whole.set(whole.get() + usize::from(truths.all_match()));
    });
    assert!(
        pruned.get() > 500 && whole.get() > 500,
        "{pruned:?} {whole:?}"
    );
}

#[test]
fn a_single_known_row_leaves_a_constant() {
    let strategy = case().prop_map(|case| Case {
        rows: vec![case.rows[0].clone()],
        ..case
    });
    check(2_000, strategy, |case| {
        let columns = (1..).zip(&case.rows[0]).map(|(id, cell)| {
            let known = match cell {
                Some(datum) => Known::value(datum.clone()),
                None => Known::null(),
            };
            (id, known)
        });
        let known = Told(columns.collect());
        let truth = interpret(&case.predicate, &case.rows[0]);
        assert_eq!(
            case.predicate.truths(&known),
            Truths::of(truth),
            "{}",
            case.predicate
        );
        let residual = case.predicate.residual(&known);
        let expected = truth == Some(true);
        assert!(
            matches!(residual, Predicate::Constant(value) if value == expected),
            "{} became {residual}",
            case.predicate
        );
    });
}

#[test]
fn sources_together_know_what_each_knows() {
    let strategy = (case(), prop::collection::vec(told(), 4));
    check(4_000, strategy, |(case, told)| {
        let of = |offset: usize| {
            let columns = (0..).zip(&case.kinds).map(|(at, kind)| {
                let cells: Vec<_> = case.rows.iter().map(|row| row[at].clone()).collect();
                (
                    i32::try_from(at).unwrap() + 1,
                    known(kind, &cells, &told[at + offset]),
                )
            });
            Told(columns.collect())
        };
        let (one, other) = (of(0), of(2));
        let both = Both(&one, &other);
        assert_sound(&case.predicate, &both, &case.rows);
    });
}
