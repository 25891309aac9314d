//! Which truths a condition may give for rows that are known only by bounds and counts.
//! A set of truths needs no rewriting of NOT: what it leaves out never happens, what it holds may.

use std::cmp::Ordering;
use std::ops::BitOr;

use iceberg::spec::{Datum, PrimitiveLiteral};

use super::datum::{bytes, is_float, order};
use super::known::{Knowledge, Known};
use super::{Column, Comparison, Predicate};

/// A set of true, false and NULL: those that some row may give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Truths(u8);

impl Truths {
    /// No truth: there are no rows.
    pub const NONE: Self = Self(0);
    /// True alone.
    pub const TRUE: Self = Self(1);
    /// False alone.
    pub const FALSE: Self = Self(2);
    /// NULL alone.
    pub const NULL: Self = Self(4);
    /// Each of them.
    pub const ANY: Self = Self(7);

    /// Whether some row may match.
    pub fn may_match(self) -> bool {
        self.holds(Self::TRUE)
    }

    /// Whether every row matches.
    pub fn all_match(self) -> bool {
        self == Self::TRUE || self == Self::NONE
    }

    /// Whether all of the other's truths are in it.
    pub fn holds(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The set of this one truth.
    pub fn of(truth: Option<bool>) -> Self {
        match truth {
            Some(true) => Self::TRUE,
            Some(false) => Self::FALSE,
            None => Self::NULL,
        }
    }

    pub(super) fn and(self, other: Self) -> Self {
        self.combine(other, |left, right| match (left, right) {
            (Some(false), _) | (_, Some(false)) => Some(false),
            (Some(true), Some(true)) => Some(true),
            _ => None,
        })
    }

    pub(super) fn or(self, other: Self) -> Self {
        self.not().and(other.not()).not()
    }

    pub(super) fn not(self) -> Self {
        self.map(|truth| truth.map(|truth| !truth))
    }

    pub(super) fn is_true(self) -> Self {
        self.map(|truth| Some(truth == Some(true)))
    }

    pub(super) fn is_unknown(self) -> Self {
        self.map(|truth| Some(truth.is_none()))
    }

    fn map(self, f: impl Fn(Option<bool>) -> Option<bool>) -> Self {
        self.each()
            .fold(Self::NONE, |set, truth| set | Self::of(f(truth)))
    }

    fn combine(self, other: Self, f: impl Fn(Option<bool>, Option<bool>) -> Option<bool>) -> Self {
        self.each().fold(Self::NONE, |set, left| {
            other
                .each()
                .fold(set, |set, right| set | Self::of(f(left, right)))
        })
    }

    fn each(self) -> impl Iterator<Item = Option<bool>> {
        [Some(true), Some(false), None]
            .into_iter()
            .filter(move |truth| self.holds(Self::of(*truth)))
    }
}

impl BitOr for Truths {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl Predicate {
    /// The truths that it may give for rows of which this much is known.
    pub fn truths(&self, known: &dyn Knowledge) -> Truths {
        match self {
            Self::Constant(value) => Truths::of(Some(*value)),
            Self::And(parts) => parts
                .iter()
                .fold(Truths::TRUE, |truths, part| truths.and(part.truths(known))),
            Self::Or(parts) => parts
                .iter()
                .fold(Truths::FALSE, |truths, part| truths.or(part.truths(known))),
            Self::Not(inner) => inner.truths(known).not(),
            Self::IsTrue(inner) => inner.truths(known).is_true(),
            Self::IsUnknown(inner) => inner.truths(known).is_unknown(),
            Self::Compare(column, comparison, datum) => {
                compare(&Facts::of(column, known), *comparison, datum)
            }
            Self::In(column, datums) => is_in(&Facts::of(column, known), datums),
            Self::StartsWith(column, prefix) => {
                starts_with(&known.column(column), prefix.as_bytes())
            }
            Self::IsNull(column) => {
                let facts = Facts::of(column, known);
                facts.each(Truths::TRUE, Truths::FALSE, Truths::FALSE)
            }
            Self::IsNan(column) => {
                let facts = Facts::of(column, known);
                facts.each(Truths::FALSE, Truths::FALSE, Truths::TRUE)
            }
            Self::Opaque(_) => Truths::ANY,
        }
    }
}

/// One column with all that is known of it.
pub(super) struct Facts<'a> {
    column: &'a Column,
    known: Known,
    source: &'a dyn Knowledge,
}

/// How a column's values may stand to one value.
#[derive(Clone, Copy)]
struct Orders {
    less: bool,
    equal: bool,
    greater: bool,
}

impl<'a> Facts<'a> {
    pub(super) fn of(column: &'a Column, source: &'a dyn Knowledge) -> Self {
        Self {
            column,
            known: source.column(column),
            source,
        }
    }

    /// Whether some row may equal this.
    pub(super) fn may_equal(&self, datum: &Datum) -> bool {
        match datum.is_nan() {
            true => self.nans(),
            false => self.known.values && self.orders(datum).equal,
        }
    }

    fn nans(&self) -> bool {
        self.known.nans && is_float(&self.column.kind)
    }

    /// The union of what NULLs, other values and NaNs give, as far as there may be any.
    fn each(&self, nulls: Truths, values: Truths, nans: Truths) -> Truths {
        let mut truths = Truths::NONE;
        if self.known.nulls {
            truths = truths | nulls;
        }
        if self.known.values {
            truths = truths | values;
        }
        if self.nans() {
            truths = truths | nans;
        }
        truths
    }

    /// How values that are neither NULL nor NaN may stand to this.
    fn orders(&self, datum: &Datum) -> Orders {
        let mut orders = Orders {
            less: true,
            equal: !datum.is_nan(),
            greater: !datum.is_nan(),
        };
        let to = |bound: &Option<super::Bound>| {
            bound.as_ref().and_then(|bound| order(&bound.datum, datum))
        };
        if let Some(lower) = to(&self.known.lower) {
            orders.less &= lower == Ordering::Less;
            orders.equal &= lower != Ordering::Greater;
        }
        if let Some(upper) = to(&self.known.upper) {
            orders.greater &= upper == Ordering::Greater;
            orders.equal &= upper != Ordering::Less;
        }
        orders.equal &= self.may_hold(datum);
        match orders.less || orders.equal || orders.greater {
            true => orders,
            // Sources that contradict each other: believe none.
            false => Orders {
                less: true,
                equal: true,
                greater: true,
            },
        }
    }

    fn may_hold(&self, datum: &Datum) -> bool {
        let prefixed = match (&self.known.prefix, bytes(datum)) {
            (Some(prefix), Some(bytes)) => bytes.starts_with(prefix),
            _ => true,
        };
        prefixed && (several_patterns(datum) || self.source.may_equal(self.column, datum))
    }
}

/// Whether equal values of it may have different bits, so that no hash of it proves anything.
fn several_patterns(datum: &Datum) -> bool {
    match datum.literal() {
        PrimitiveLiteral::Float(v) => v.0 == 0.0 || v.0.is_nan(),
        PrimitiveLiteral::Double(v) => v.0 == 0.0 || v.0.is_nan(),
        _ => false,
    }
}

impl Comparison {
    /// Its truth for a value that stands in this order to the other.
    pub(super) fn holds(self, order: Ordering) -> bool {
        match self {
            Self::Equal => order.is_eq(),
            Self::NotEqual => order.is_ne(),
            Self::Less => order.is_lt(),
            Self::LessOrEqual => order.is_le(),
            Self::Greater => order.is_gt(),
            Self::GreaterOrEqual => order.is_ge(),
        }
    }
}

fn compare(facts: &Facts<'_>, comparison: Comparison, datum: &Datum) -> Truths {
    let truth = |order| Truths::of(Some(comparison.holds(order)));
    let orders = facts.orders(datum);
    let mut values = Truths::NONE;
    for (may, order) in [
        (orders.less, Ordering::Less),
        (orders.equal, Ordering::Equal),
        (orders.greater, Ordering::Greater),
    ] {
        if may {
            values = values | truth(order);
        }
    }
    let nans = truth(match datum.is_nan() {
        true => Ordering::Equal,
        false => Ordering::Greater,
    });
    facts.each(Truths::NULL, values, nans)
}

fn is_in(facts: &Facts<'_>, datums: &[Datum]) -> Truths {
    let (mut one, mut all) = (false, false);
    for datum in datums.iter().filter(|datum| !datum.is_nan()) {
        let orders = facts.orders(datum);
        one |= orders.equal;
        all |= orders.equal && !orders.less && !orders.greater;
        if all {
            break;
        }
    }
    let values = match (one, all) {
        (_, true) => Truths::TRUE,
        (true, false) => Truths::TRUE | Truths::FALSE,
        (false, false) => Truths::FALSE,
    };
    let nans = Truths::of(Some(datums.iter().any(Datum::is_nan)));
    facts.each(Truths::NULL, values, nans)
}

fn starts_with(known: &Known, prefix: &[u8]) -> Truths {
    let lower = known.lower.as_ref().and_then(|bound| bytes(&bound.datum));
    let upper = known.upper.as_ref().and_then(|bound| bytes(&bound.datum));
    let none = upper.is_some_and(|upper| upper < prefix)
        || lower.is_some_and(|lower| lower > prefix && !lower.starts_with(prefix))
        || !known.may_begin_with(prefix);
    let begins = |bound: Option<&[u8]>| bound.is_some_and(|bound| bound.starts_with(prefix));
    let all =
        prefix.is_empty() || begins(known.prefix.as_deref()) || (begins(lower) && begins(upper));
    let mut truths = match (none, all) {
        (true, false) => Truths::FALSE,
        (false, true) => Truths::TRUE,
        // Neither is sure, or they contradict each other.
        _ => Truths::TRUE | Truths::FALSE,
    };
    if !known.values {
        truths = Truths::NONE;
    }
    match known.nulls {
        true => truths | Truths::NULL,
        false => truths,
    }
}
