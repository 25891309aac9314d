//! What is left of a condition where much is known: parts with a sure outcome become constants and fall away.

use super::known::Knowledge;
use super::truths::Facts;
use super::{Predicate, Truths};

/// What the surroundings of a part make of its truth, and so what folding may change.
#[derive(Clone, Copy)]
enum Asked {
    /// Only whether it is true: NULL may become false.
    True,
    /// Only whether it is false: NULL may become true.
    False,
    /// All three.
    All,
}

impl Asked {
    /// What is asked of the inside of a NOT.
    fn negated(self) -> Self {
        match self {
            Self::True => Self::False,
            Self::False => Self::True,
            Self::All => Self::All,
        }
    }

    /// The constant that does as well as a part with these truths.
    fn constant(self, truths: Truths) -> Option<bool> {
        match (self, truths) {
            (_, Truths::TRUE) => Some(true),
            (_, Truths::FALSE) => Some(false),
            (Self::True, truths) if !truths.holds(Truths::TRUE) => Some(false),
            (Self::False, truths) if !truths.holds(Truths::FALSE) => Some(true),
            _ => None,
        }
    }
}

impl Predicate {
    /// A condition that is true of exactly the same rows, as far as rows are as they are known: with fewer parts, a constant if possible.
    /// (Of rows that don't match it may say false where this one says NULL.)
    pub fn residual(&self, known: &dyn Knowledge) -> Self {
        self.reduce(known, Asked::True).0
    }

    fn reduce(&self, known: &dyn Knowledge, asked: Asked) -> (Self, Truths) {
        let (reduced, truths) = match self {
            Self::And(parts) => {
                let (parts, truths) = reduce_all(parts, known, asked);
                let truths = truths.into_iter().fold(Truths::TRUE, Truths::and);
                (Self::all(parts), truths)
            }
            Self::Or(parts) => {
                let (parts, truths) = reduce_all(parts, known, asked);
                let truths = truths.into_iter().fold(Truths::FALSE, Truths::or);
                (Self::any(parts), truths)
            }
            Self::Not(inner) => {
                let (inner, truths) = inner.reduce(known, asked.negated());
                (inner.negate(), truths.not())
            }
            Self::IsTrue(inner) => {
                let (inner, truths) = inner.reduce(known, Asked::True);
                (Self::IsTrue(Box::new(inner)), truths.is_true())
            }
            Self::IsUnknown(inner) => {
                let (inner, truths) = inner.reduce(known, Asked::All);
                (Self::IsUnknown(Box::new(inner)), truths.is_unknown())
            }
            Self::In(column, datums) => {
                let facts = Facts::of(column, known);
                let left = datums.iter().filter(|datum| facts.may_equal(datum));
                let left = Self::In(column.clone(), left.cloned().collect());
                (left, self.truths(known))
            }
            leaf => (leaf.clone(), leaf.truths(known)),
        };
        match asked.constant(truths) {
            Some(constant) => (Self::Constant(constant), truths),
            None => (reduced, truths),
        }
    }
}

fn reduce_all(
    parts: &[Predicate],
    known: &dyn Knowledge,
    asked: Asked,
) -> (Vec<Predicate>, Vec<Truths>) {
    parts.iter().map(|part| part.reduce(known, asked)).unzip()
}
