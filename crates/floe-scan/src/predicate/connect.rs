//! Putting conditions together and taking them apart.

use std::collections::BTreeSet;

use super::{Column, Predicate};

impl Predicate {
    /// Both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self::all([self, other])
    }

    /// Either.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self::any([self, other])
    }

    /// The contrary.
    #[must_use]
    pub fn negate(self) -> Self {
        match self {
            Self::Constant(value) => Self::Constant(!value),
            Self::Not(inner) => *inner,
            other => Self::Not(Box::new(other)),
        }
    }

    /// All of these, flattened, without constants.
    pub fn all(parts: impl IntoIterator<Item = Self>) -> Self {
        let mut all = Vec::new();
        for part in parts {
            match part {
                Self::Constant(true) => {}
                Self::Constant(false) => return part,
                Self::And(inner) => match Self::all(inner) {
                    Self::And(inner) => all.extend(inner),
                    Self::Constant(true) => {}
                    Self::Constant(false) => return Self::Constant(false),
                    one => all.push(one),
                },
                other => all.push(other),
            }
        }
        single(all, true, Self::And)
    }

    /// Any of these, flattened, without constants.
    pub fn any(parts: impl IntoIterator<Item = Self>) -> Self {
        let mut any = Vec::new();
        for part in parts {
            match part {
                Self::Constant(false) => {}
                Self::Constant(true) => return part,
                Self::Or(inner) => match Self::any(inner) {
                    Self::Or(inner) => any.extend(inner),
                    Self::Constant(false) => {}
                    Self::Constant(true) => return Self::Constant(true),
                    one => any.push(one),
                },
                other => any.push(other),
            }
        }
        single(any, false, Self::Or)
    }

    /// The conditions that must all be true where this one is; none if it always is.
    pub fn conjuncts(self) -> Vec<Self> {
        match Self::all([self]) {
            Self::And(parts) => parts,
            Self::Constant(true) => Vec::new(),
            one => vec![one],
        }
    }

    /// The field ids of the columns that it reads, in order, each once; of a nested column its own.
    pub fn columns(&self) -> Vec<i32> {
        let mut ids = BTreeSet::new();
        self.collect(&mut ids);
        ids.into_iter().collect()
    }

    fn collect(&self, ids: &mut BTreeSet<i32>) {
        match self {
            Self::Constant(_) => {}
            Self::And(parts) | Self::Or(parts) => {
                parts.iter().for_each(|part| part.collect(ids));
            }
            Self::Not(inner) | Self::IsTrue(inner) | Self::IsUnknown(inner) => inner.collect(ids),
            Self::Compare(column, ..)
            | Self::In(column, _)
            | Self::StartsWith(column, _)
            | Self::IsNull(column)
            | Self::IsNan(column) => {
                ids.insert(column.id);
            }
            Self::Opaque(condition) => ids.extend(condition.columns()),
        }
    }

    /// False of every value, NULL where the column is.
    pub(super) fn never(column: &Column) -> Self {
        Self::In(column.clone(), Vec::new())
    }
}

fn single(
    mut parts: Vec<Predicate>,
    empty: bool,
    connect: fn(Vec<Predicate>) -> Predicate,
) -> Predicate {
    match parts.len() {
        1 => parts.remove(0),
        0 => Predicate::Constant(empty),
        _ => connect(parts),
    }
}
