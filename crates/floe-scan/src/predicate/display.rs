//! Conditions as people write them.

use std::fmt;

use super::datum::show;
use super::{Column, Comparison, Predicate};

/// As many values of a list as one line bears.
const SHOWN_VALUES: usize = 10;

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Equal => "=",
            Self::NotEqual => "<>",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
        })
    }
}

impl fmt::Display for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl fmt::Display for Predicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constant(value) => write!(f, "{value}"),
            Self::And(parts) => join(f, parts, "AND", "true"),
            Self::Or(parts) => join(f, parts, "OR", "false"),
            Self::Not(inner) => write!(f, "NOT ({inner})"),
            Self::IsTrue(inner) => write!(f, "({inner}) IS TRUE"),
            Self::IsUnknown(inner) => write!(f, "({inner}) IS UNKNOWN"),
            Self::Compare(column, comparison, datum) => {
                write!(f, "{column} {comparison} {}", show(datum))
            }
            Self::In(column, datums) => {
                let shown: Vec<String> = datums.iter().take(SHOWN_VALUES).map(show).collect();
                write!(f, "{column} IN ({}", shown.join(", "))?;
                match datums.len().saturating_sub(SHOWN_VALUES) {
                    0 => f.write_str(")"),
                    more => write!(f, ", and {more} more)"),
                }
            }
            Self::StartsWith(column, prefix) => {
                write!(f, "{column} STARTS WITH '{}'", prefix.replace('\'', "''"))
            }
            Self::IsNull(column) => write!(f, "{column} IS NULL"),
            Self::IsNan(column) => write!(f, "{column} IS NAN"),
            Self::Opaque(condition) => write!(f, "{condition}"),
        }
    }
}

fn join(f: &mut fmt::Formatter<'_>, parts: &[Predicate], word: &str, empty: &str) -> fmt::Result {
    if parts.is_empty() {
        return f.write_str(empty);
    }
    for (at, part) in parts.iter().enumerate() {
        if at > 0 {
            write!(f, " {word} ")?;
        }
        match part {
            Predicate::And(_) | Predicate::Or(_) | Predicate::Opaque(_) => write!(f, "({part})")?,
            _ => write!(f, "{part}")?,
        }
    }
    Ok(())
}
