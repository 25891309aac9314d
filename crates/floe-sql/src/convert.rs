//! Expressions of DataFusion as conditions of a scan: comparisons of a column with literals are understood, and may
//! prune files; everything else is a condition that only rows can tell.

use std::sync::Arc;

use arrow_schema::{DataType, SchemaRef as ArrowSchemaRef, TimeUnit};
use datafusion::common::ScalarValue;
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::expr::{InList, Like, ScalarFunction};
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};
use floe_scan::predicate::{Column, Comparison, Predicate};
use iceberg::spec::{Datum, PrimitiveType, Schema};

use crate::literal::datum;
use crate::opaque::SqlCondition;

/// Converts expressions over one table.
#[derive(Debug)]
pub(crate) struct Conversion<'a> {
    schema: &'a Schema,
    arrow: ArrowSchemaRef,
}

impl<'a> Conversion<'a> {
    /// For a table of this schema, which Arrow writes so.
    pub(crate) fn new(schema: &'a Schema, arrow: ArrowSchemaRef) -> Self {
        Self { schema, arrow }
    }

    /// The whole expression as a condition; an error only if it can't be evaluated on rows at all.
    pub(crate) fn convert(&self, expr: &Expr) -> DfResult<Predicate> {
        match self.connected(expr)? {
            Some(predicate) => Ok(predicate),
            None => match self.understood(expr) {
                Some(predicate) => Ok(predicate),
                None => self.opaque(expr),
            },
        }
    }

    /// What combines other conditions.
    fn connected(&self, expr: &Expr) -> DfResult<Option<Predicate>> {
        let is_true = |inner: &Expr| Ok(Predicate::IsTrue(Box::new(self.convert(inner)?)));
        let is_false = |inner: &Expr| {
            let inner = self.convert(inner)?.negate();
            Ok(Predicate::IsTrue(Box::new(inner)))
        };
        let is_unknown = |inner: &Expr| Ok(Predicate::IsUnknown(Box::new(self.convert(inner)?)));
        let predicate: DfResult<Predicate> = match expr {
            Expr::BinaryExpr(BinaryExpr {
                left,
                op: Operator::And,
                right,
            }) => Ok(self.convert(left)?.and(self.convert(right)?)),
            Expr::BinaryExpr(BinaryExpr {
                left,
                op: Operator::Or,
                right,
            }) => Ok(self.convert(left)?.or(self.convert(right)?)),
            Expr::Not(inner) => Ok(self.convert(inner)?.negate()),
            Expr::IsTrue(inner) => is_true(inner),
            Expr::IsNotTrue(inner) => Ok(is_true(inner)?.negate()),
            Expr::IsFalse(inner) => is_false(inner),
            Expr::IsNotFalse(inner) => Ok(is_false(inner)?.negate()),
            Expr::IsUnknown(inner) => is_unknown(inner),
            Expr::IsNotUnknown(inner) => Ok(is_unknown(inner)?.negate()),
            Expr::IsNull(inner) if is_condition(inner) => is_unknown(inner),
            Expr::IsNotNull(inner) if is_condition(inner) => Ok(is_unknown(inner)?.negate()),
            Expr::Alias(alias) => self.convert(&alias.expr),
            _ => return Ok(None),
        };
        predicate.map(Some)
    }

    /// A condition on one column.
    fn understood(&self, expr: &Expr) -> Option<Predicate> {
        match expr {
            Expr::Literal(ScalarValue::Boolean(Some(value)), _) => {
                Some(Predicate::Constant(*value))
            }
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => self.compare(left, *op, right),
            Expr::IsNull(inner) => Some(Predicate::IsNull(self.column(inner)?)),
            Expr::IsNotNull(inner) => Some(Predicate::IsNull(self.column(inner)?).negate()),
            Expr::InList(list) => self.in_list(list),
            Expr::Like(like) => self.like(like),
            Expr::Between(between) => {
                let low = self.compare(&between.expr, Operator::GtEq, &between.low)?;
                let high = self.compare(&between.expr, Operator::LtEq, &between.high)?;
                let within = low.and(high);
                Some(if between.negated {
                    within.negate()
                } else {
                    within
                })
            }
            Expr::Column(_) => {
                let column = self.column(expr)?;
                (column.kind == PrimitiveType::Boolean)
                    .then(|| Predicate::Compare(column, Comparison::Equal, Datum::bool(true)))
            }
            _ => None,
        }
    }

    fn compare(&self, left: &Expr, op: Operator, right: &Expr) -> Option<Predicate> {
        let (column, op, value) = match (self.column(left), right, left, self.column(right)) {
            (Some(column), Expr::Literal(value, _), ..) => (column, op, value),
            (_, _, Expr::Literal(value, _), Some(column)) => (column, op.swap()?, value),
            _ => return None,
        };
        let distinct = match op {
            Operator::IsDistinctFrom => Some(true),
            Operator::IsNotDistinctFrom => Some(false),
            _ => None,
        };
        if let Some(distinct) = distinct {
            let same = match value.is_null() {
                true => Predicate::IsNull(column),
                false => {
                    let value = datum(value, &column.kind)?;
                    let equal = Predicate::compare(&column, Comparison::Equal, &value)?;
                    Predicate::IsTrue(Box::new(equal))
                }
            };
            return Some(if distinct { same.negate() } else { same });
        }
        let value = datum(value, &column.kind)?;
        Predicate::compare(&column, comparison(op)?, &value)
    }

    fn in_list(&self, list: &InList) -> Option<Predicate> {
        let column = self.column(&list.expr)?;
        let values = list.list.iter().map(|item| match item {
            Expr::Literal(value, _) => datum(value, &column.kind),
            _ => None,
        });
        let found = Predicate::one_of(&column, &values.collect::<Option<Vec<Datum>>>()?)?;
        Some(if list.negated { found.negate() } else { found })
    }

    /// `LIKE 'prefix%'` and nothing else.
    fn like(&self, like: &Like) -> Option<Predicate> {
        let Expr::Literal(pattern, _) = like.pattern.as_ref() else {
            return None;
        };
        let prefix = pattern.try_as_str()??.strip_suffix('%')?;
        let plain = !prefix.is_empty() && !prefix.contains(['%', '_', '\\']);
        if !plain || like.case_insensitive || like.escape_char.is_some() {
            return None;
        }
        let column = self.column(&like.expr)?;
        if column.kind != PrimitiveType::String {
            return None;
        }
        let begins = Predicate::StartsWith(column, prefix.to_string());
        Some(if like.negated {
            begins.negate()
        } else {
            begins
        })
    }

    /// A column, or a field of a struct column; also within a cast that keeps every value and their order.
    fn column(&self, expr: &Expr) -> Option<Column> {
        match expr {
            Expr::Column(column) => {
                let top = self.top_level(&column.name)?;
                Column::by_id(self.schema, top)
            }
            Expr::Cast(cast) => {
                let column = self.column(&cast.expr)?;
                widens(&column.kind, &cast.data_type).then_some(column)
            }
            Expr::ScalarFunction(function) => Column::by_id(self.schema, self.nested(function)?),
            _ => None,
        }
    }

    fn top_level(&self, name: &str) -> Option<i32> {
        let fields = self.schema.as_struct().fields();
        fields
            .iter()
            .find(|field| field.name == name)
            .map(|field| field.id)
    }

    /// The field id that `get_field(get_field(column, 'a'), 'b')` or `get_field(column, 'a', 'b')` means.
    fn nested(&self, function: &ScalarFunction) -> Option<i32> {
        if function.name() != "get_field" {
            return None;
        }
        let (inner, names) = function.args.split_first()?;
        let mut id = match inner {
            Expr::Column(column) => self.top_level(&column.name)?,
            Expr::ScalarFunction(function) => self.nested(function)?,
            _ => return None,
        };
        for name in names {
            let Expr::Literal(name, _) = name else {
                return None;
            };
            let name = name.try_as_str()??;
            let field = self.schema.field_by_id(id)?;
            let iceberg::spec::Type::Struct(fields) = field.field_type.as_ref() else {
                return None;
            };
            id = fields.fields().iter().find(|field| field.name == name)?.id;
        }
        Some(id)
    }

    fn opaque(&self, expr: &Expr) -> DfResult<Predicate> {
        let condition = SqlCondition::new(expr, self.schema, &self.arrow)?;
        Ok(Predicate::Opaque(Arc::new(condition)))
    }
}

/// Whether any part of a condition may prune files; the rest is left to rows.
pub(crate) fn may_prune(predicate: &Predicate) -> bool {
    match predicate {
        Predicate::And(parts) => parts.iter().any(may_prune),
        Predicate::Or(parts) => parts.iter().all(may_prune),
        Predicate::Not(inner) | Predicate::IsTrue(inner) | Predicate::IsUnknown(inner) => {
            may_prune(inner)
        }
        Predicate::Opaque(_) => false,
        _ => true,
    }
}

/// Whether all of a condition is understood.
pub(crate) fn is_understood(predicate: &Predicate) -> bool {
    match predicate {
        Predicate::And(parts) | Predicate::Or(parts) => parts.iter().all(is_understood),
        Predicate::Not(inner) | Predicate::IsTrue(inner) | Predicate::IsUnknown(inner) => {
            is_understood(inner)
        }
        Predicate::Opaque(_) => false,
        _ => true,
    }
}

fn comparison(op: Operator) -> Option<Comparison> {
    match op {
        Operator::Eq => Some(Comparison::Equal),
        Operator::NotEq => Some(Comparison::NotEqual),
        Operator::Lt => Some(Comparison::Less),
        Operator::LtEq => Some(Comparison::LessOrEqual),
        Operator::Gt => Some(Comparison::Greater),
        Operator::GtEq => Some(Comparison::GreaterOrEqual),
        _ => None,
    }
}

/// Whether an expression is a truth itself, so that its NULL is an unknown.
fn is_condition(expr: &Expr) -> bool {
    match expr {
        Expr::BinaryExpr(BinaryExpr { op, .. }) => {
            matches!(op, Operator::And | Operator::Or) || op.supports_propagation()
        }
        Expr::Not(_) | Expr::InList(_) | Expr::Like(_) | Expr::Between(_) => true,
        _ => false,
    }
}

/// Whether a cast keeps every value of the column and their order.
fn widens(from: &PrimitiveType, to: &DataType) -> bool {
    use PrimitiveType as Of;
    match (from, to) {
        (Of::Int, DataType::Int64 | DataType::Float64 | DataType::Decimal128(..)) => true,
        // Beyond 2^53 doubles are coarser; conditions on such values are not understood anyway.
        (Of::Long, DataType::Float64 | DataType::Decimal128(..)) => true,
        (Of::Float, DataType::Float64) => true,
        (Of::Decimal { scale, .. }, DataType::Decimal128(_, wider)) => {
            i64::from(*wider) >= i64::from(*scale)
        }
        (Of::Date, DataType::Timestamp(TimeUnit::Microsecond | TimeUnit::Nanosecond, None)) => true,
        (Of::Timestamp, DataType::Timestamp(TimeUnit::Nanosecond, None)) => true,
        (Of::Timestamptz, DataType::Timestamp(_, Some(_))) => true,
        (Of::String, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View) => true,
        (
            Of::Binary | Of::Fixed(_) | Of::Uuid,
            DataType::Binary | DataType::LargeBinary | DataType::BinaryView,
        ) => true,
        _ => false,
    }
}
