//! Names to columns, and iceberg's unbound expressions to conditions.

use iceberg::expr::{BinaryExpression, Predicate as Unbound, PredicateOperator, Reference};
use iceberg::spec::{Datum, NestedFieldRef, PrimitiveLiteral, PrimitiveType, Schema, Type};

use super::datum::{is_float, show};
use super::{Column, Comparison, Predicate};
use crate::error::{Error, ErrorKind, Result};

impl Column {
    /// The column of this name, with dots between the levels of structs.
    pub fn find(schema: &Schema, name: &str) -> Result<Self> {
        Self::find_as(schema, name, true)
    }

    /// The same; upper and lower case are told apart or not.
    pub fn find_as(schema: &Schema, name: &str, case_sensitive: bool) -> Result<Self> {
        let field = match case_sensitive {
            true => schema.field_by_name(name),
            false => schema.field_by_name_case_insensitive(name),
        };
        let field = field.ok_or_else(|| not_found(schema, name))?;
        Self::by_id(schema, field.id).ok_or_else(|| {
            Error::new(
                ErrorKind::Invalid,
                format!(
                    "a condition can't use {name}: it is of type {}, or within a list or map",
                    field.field_type
                ),
            )
            .with_hint("use columns of primitive type, or fields of structs")
        })
    }

    /// The column of this field id; `None` if there is none, if it is not of primitive type, or within a list or map.
    pub fn by_id(schema: &Schema, id: i32) -> Option<Self> {
        let kind = primitive(schema.as_struct().fields(), id)?;
        Some(Self {
            id,
            name: schema.name_by_field_id(id)?.to_owned(),
            kind: kind.clone(),
        })
    }
}

fn primitive(fields: &[NestedFieldRef], id: i32) -> Option<&PrimitiveType> {
    fields.iter().find_map(|field| match &*field.field_type {
        Type::Primitive(kind) if field.id == id => Some(kind),
        Type::Struct(inner) => primitive(inner.fields(), id),
        _ => None,
    })
}

fn not_found(schema: &Schema, name: &str) -> Error {
    let names: Vec<&str> = schema
        .as_struct()
        .fields()
        .iter()
        .map(|field| field.name.as_str())
        .collect();
    Error::new(
        ErrorKind::NotFound,
        format!("a condition names column {name}, which the schema does not have"),
    )
    .with_hint(format!("its columns are {}", names.join(", ")))
}

impl Predicate {
    /// An expression of iceberg's, bound to a schema. NULL is SQL's, also for `!=` and NOT IN: unknown, so not a match.
    pub fn from_iceberg(
        expression: &Unbound,
        schema: &Schema,
        case_sensitive: bool,
    ) -> Result<Self> {
        let bind = |inner: &Unbound| Self::from_iceberg(inner, schema, case_sensitive);
        let find = |name: &Reference| Column::find_as(schema, name.name(), case_sensitive);
        match expression {
            Unbound::AlwaysTrue => Ok(Self::Constant(true)),
            Unbound::AlwaysFalse => Ok(Self::Constant(false)),
            Unbound::And(parts) => {
                let [left, right] = parts.inputs();
                Ok(bind(left)?.and(bind(right)?))
            }
            Unbound::Or(parts) => {
                let [left, right] = parts.inputs();
                Ok(bind(left)?.or(bind(right)?))
            }
            Unbound::Not(parts) => {
                let [inner] = parts.inputs();
                Ok(bind(inner)?.negate())
            }
            Unbound::Unary(unary) => {
                let column = find(unary.term())?;
                match unary.op() {
                    PredicateOperator::IsNull => Ok(Self::IsNull(column)),
                    PredicateOperator::NotNull => Ok(Self::IsNull(column).negate()),
                    PredicateOperator::IsNan => nan(column),
                    PredicateOperator::NotNan => Ok(nan(column)?.negate()),
                    _ => Err(not_understood(expression)),
                }
            }
            Unbound::Binary(binary) => {
                let column = find(binary.term())?;
                bind_binary(&column, binary).unwrap_or_else(|| Err(not_understood(expression)))
            }
            Unbound::Set(set) => {
                let column = find(set.term())?;
                let literals = set.literals().iter().map(|literal| cast(&column, literal));
                let literals = literals.collect::<Result<Vec<Datum>>>()?;
                let found = Self::one_of(&column, &literals)
                    .ok_or_else(|| incomparable(&column, set.literals().iter()))?;
                match set.op() {
                    PredicateOperator::In => Ok(found),
                    PredicateOperator::NotIn => Ok(found.negate()),
                    _ => Err(not_understood(expression)),
                }
            }
        }
    }
}

/// `None` for an operator that is none of two operands.
fn bind_binary(column: &Column, binary: &BinaryExpression<Reference>) -> Option<Result<Predicate>> {
    let comparison = match binary.op() {
        PredicateOperator::Eq => Comparison::Equal,
        PredicateOperator::NotEq => Comparison::NotEqual,
        PredicateOperator::LessThan => Comparison::Less,
        PredicateOperator::LessThanOrEq => Comparison::LessOrEqual,
        PredicateOperator::GreaterThan => Comparison::Greater,
        PredicateOperator::GreaterThanOrEq => Comparison::GreaterOrEqual,
        PredicateOperator::StartsWith => return Some(starts_with(column, binary.literal())),
        PredicateOperator::NotStartsWith => {
            return Some(starts_with(column, binary.literal()).map(Predicate::negate));
        }
        _ => return None,
    };
    let bound = cast(column, binary.literal()).and_then(|literal| {
        Predicate::compare(column, comparison, &literal)
            .ok_or_else(|| incomparable(column, [binary.literal()]))
    });
    Some(bound)
}

fn starts_with(column: &Column, prefix: &Datum) -> Result<Predicate> {
    match (&column.kind, prefix.literal()) {
        (PrimitiveType::String, PrimitiveLiteral::String(prefix)) => {
            Ok(Predicate::StartsWith(column.clone(), prefix.clone()))
        }
        _ => Err(incomparable(column, [prefix])),
    }
}

fn nan(column: Column) -> Result<Predicate> {
    if is_float(&column.kind) {
        return Ok(Predicate::IsNan(column));
    }
    Err(Error::new(
        ErrorKind::Invalid,
        format!(
            "column {column} is never NaN: it is of type {}",
            column.kind
        ),
    ))
}

/// What iceberg lets stand for values of other types: text for numbers and times, numbers for the days and microseconds they count.
fn cast(column: &Column, literal: &Datum) -> Result<Datum> {
    use PrimitiveType as Of;
    let stands_for = match (literal.data_type(), &column.kind) {
        (Of::String, kind) => *kind != Of::String,
        (Of::Int, Of::Date) | (Of::Long, Of::Timestamp | Of::Timestamptz) => true,
        _ => false,
    };
    if !stands_for {
        return Ok(literal.clone());
    }
    let kind = Type::Primitive(column.kind.clone());
    (literal.clone().to(&kind))
        .map_err(|source| incomparable(column, [literal]).with_source(source))
}

fn incomparable<'a>(column: &Column, literals: impl IntoIterator<Item = &'a Datum>) -> Error {
    let literals: Vec<String> = literals
        .into_iter()
        .take(3)
        .map(|literal| format!("{} {}", literal.data_type(), show(literal)))
        .collect();
    Error::new(
        ErrorKind::Invalid,
        format!(
            "can't compare column {column} of type {} exactly with {}",
            column.kind,
            literals.join(", ")
        ),
    )
    .with_hint("give literals of the column's type")
}

fn not_understood(expression: &Unbound) -> Error {
    Error::new(
        ErrorKind::Unsupported,
        format!("can't use the condition {expression}: its operator is unknown"),
    )
}
