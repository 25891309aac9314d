//! Filters: SQL text to a DataFusion expression, and the part of it that may prune files.
//! Every filter is evaluated in full on the rows that were read: what is pushed down only saves reading. So
//! whatever is not certain to be understood alike by both sides is left out here.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow_schema::{DataType, SchemaRef as ArrowSchemaRef};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, ScalarValue};
use datafusion::execution::SessionState;
use datafusion::execution::context::SessionContext;
use datafusion::logical_expr::expr::{InList, Like};
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Operator};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::physical_expr::PhysicalExpr;
use iceberg::expr::{Predicate, Reference};
use iceberg::spec::{Datum, NestedFieldRef, PrimitiveType, Schema, TableMetadata, Transform, Type};

use crate::error::{Error, ErrorKind, Result};

/// A filter of a scan, coerced and simplified against the table's schema.
#[derive(Clone, Debug)]
pub(crate) struct Filter {
    expr: Expr,
    /// Positions of the columns it needs in the table's schema, ascending.
    columns: Vec<usize>,
}

impl Filter {
    /// Reads `text`, an expression of DataFusion's SQL, against the table's schema.
    pub(crate) fn parse(text: &str, schema: &ArrowSchemaRef) -> Result<Self> {
        let wrong = |source: datafusion::error::DataFusionError| {
            Error::new(ErrorKind::Invalid, format!("can't use '{text}' as a filter"))
                .with_hint("a filter is an SQL expression over the table's columns; names with capitals need double quotes")
                .with_source(source)
        };
        let df_schema = Arc::new(DFSchema::try_from(schema.as_ref().clone()).map_err(wrong)?);
        let state = SessionContext::new().state();
        let expr = state.create_logical_expr(text, &df_schema).map_err(wrong)?;
        let expr = simplify(expr, &df_schema, &state).map_err(wrong)?;
        let found = expr.get_type(df_schema.as_ref()).map_err(wrong)?;
        if found != DataType::Boolean {
            let message =
                format!("can't use '{text}' as a filter: its type is {found}, not Boolean");
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        let mut columns = expr
            .column_refs()
            .into_iter()
            .map(|column| schema.index_of(&column.name))
            .collect::<std::result::Result<Vec<_>, _>>()
            .map_err(|source| wrong(source.into()))?;
        columns.sort_unstable();
        let filter = Self { expr, columns };
        // Whatever can't be evaluated on rows (aggregates, subqueries) is told now, not at the first batch.
        filter.physical(schema).map_err(wrong)?;
        Ok(filter)
    }

    /// The expression.
    pub(crate) fn expr(&self) -> &Expr {
        &self.expr
    }

    /// Positions of the columns it needs in the table's schema, ascending.
    pub(crate) fn columns(&self) -> &[usize] {
        &self.columns
    }

    /// The filter over batches of this schema, which holds its columns.
    pub(crate) fn physical(
        &self,
        schema: &ArrowSchemaRef,
    ) -> datafusion::error::Result<Arc<dyn PhysicalExpr>> {
        let df_schema = DFSchema::try_from(schema.as_ref().clone())?;
        SessionContext::new()
            .state()
            .create_physical_expr(self.expr.clone(), &df_schema)
    }
}

/// Coerces types, and folds constants and casts in each comparison.
///
/// Not across them: DataFusion's simplifier takes `x IN (0) AND x IN (1)` for false where it is NULL, and a NOT or an
/// IS NULL around it then keeps other rows than SQL does.
fn simplify(
    expr: Expr,
    schema: &Arc<DFSchema>,
    state: &SessionState,
) -> datafusion::error::Result<Expr> {
    let context = SimplifyContext::default()
        .with_schema(schema.clone())
        .with_current_time();
    let simplifier = ExprSimplifier::new(context);
    let mut expr = simplifier.coerce(expr, schema)?;
    for rewrite in state.analyzer().function_rewrites() {
        expr = expr
            .transform_up(|part| rewrite.rewrite(part, schema, state.config_options()))?
            .data;
    }
    let simplified = expr.transform_down(|part| {
        if connects(&part) {
            return Ok(Transformed::no(part));
        }
        let part = simplifier.simplify(part)?;
        Ok(Transformed::new(part, true, TreeNodeRecursion::Jump))
    })?;
    Ok(simplified.data)
}

/// Whether an expression only combines the truths of others.
fn connects(expr: &Expr) -> bool {
    match expr {
        Expr::BinaryExpr(BinaryExpr { op, .. }) => matches!(op, Operator::And | Operator::Or),
        Expr::Not(_)
        | Expr::IsNull(_)
        | Expr::IsNotNull(_)
        | Expr::IsTrue(_)
        | Expr::IsNotTrue(_)
        | Expr::IsFalse(_)
        | Expr::IsNotFalse(_)
        | Expr::IsUnknown(_)
        | Expr::IsNotUnknown(_) => true,
        _ => false,
    }
}

/// Columns whose comparisons mean the same to iceberg-rust as to DataFusion, by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct PushableColumns(HashMap<String, PrimitiveType>);

impl PushableColumns {
    /// Columns whose statistics and partition values may prune files.
    ///
    /// Left out: floating point (NaN, signed zero), decimals, uuid, fixed, binary, time and nanoseconds; columns
    /// whose type was ever promoted (bounds are stored in the older type, and iceberg-rust compares them wrongly);
    /// nested columns, and names that could be taken for a path into one.
    pub(crate) fn for_planning(schema: &Schema, metadata: &TableMetadata) -> Self {
        Self::choose(schema, |field, primitive| {
            use PrimitiveType::{Boolean, Date, Int, Long, String, Timestamp, Timestamptz};
            matches!(
                primitive,
                Boolean | Int | Long | Date | Timestamp | Timestamptz | String
            ) && !was_promoted(field, metadata)
                && !field.name.contains('.')
        })
    }

    /// Columns that the reader may also evaluate on a file's row groups and rows.
    ///
    /// Further left out: columns that a file may lack without being NULL there (initial defaults, identity
    /// partition values), and types whose Parquet statistics have more than one meaning in old files.
    pub(crate) fn for_reading(schema: &Schema, metadata: &TableMetadata) -> Self {
        let identity: HashSet<i32> = metadata
            .partition_specs_iter()
            .flat_map(|spec| spec.fields().iter())
            .filter(|field| field.transform == Transform::Identity)
            .map(|field| field.source_id)
            .collect();
        let Self(planning) = Self::for_planning(schema, metadata);
        Self::choose(schema, |field, primitive| {
            use PrimitiveType::{Date, Int, Long};
            planning.contains_key(&field.name)
                && matches!(primitive, Int | Long | Date)
                && field.initial_default.is_none()
                && !identity.contains(&field.id)
        })
    }

    fn choose(schema: &Schema, keep: impl Fn(&NestedFieldRef, &PrimitiveType) -> bool) -> Self {
        let fields = schema.as_struct().fields().iter();
        Self(
            fields
                .filter_map(|field| match field.field_type.as_ref() {
                    Type::Primitive(primitive) if keep(field, primitive) => {
                        Some((field.name.clone(), primitive.clone()))
                    }
                    _ => None,
                })
                .collect(),
        )
    }

    /// The part of a conjunction of filters that these columns allow; `None` if nothing does.
    pub(crate) fn push_down<'a>(
        &self,
        filters: impl IntoIterator<Item = &'a Expr>,
    ) -> Option<Predicate> {
        filters
            .into_iter()
            .filter_map(|filter| self.convert(filter, false))
            .reduce(Predicate::and)
    }

    /// Whether any part of this filter can be pushed down.
    pub(crate) fn accepts(&self, filter: &Expr) -> bool {
        self.convert(filter, false).is_some()
    }

    /// A predicate that is true wherever `expr` is (or, `negated`, wherever it is false); `None` if none is known.
    fn convert(&self, expr: &Expr, negated: bool) -> Option<Predicate> {
        match expr {
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => match op {
                Operator::And | Operator::Or => self.connect(left, *op, right, negated),
                _ => self.compare(left, *op, right, negated),
            },
            Expr::Not(inner) => self.convert(inner, !negated),
            Expr::IsNull(inner) => self.null(inner, !negated),
            Expr::IsNotNull(inner) => self.null(inner, negated),
            Expr::InList(list) => self.in_list(list, negated),
            Expr::Like(like) => self.like(like, negated),
            Expr::Between(between) if between.negated == negated => {
                let low = self.compare(&between.expr, Operator::GtEq, &between.low, false);
                let high = self.compare(&between.expr, Operator::LtEq, &between.high, false);
                both(low, high)
            }
            Expr::Column(column) => match self.column(column)? {
                (reference, PrimitiveType::Boolean) => {
                    Some(reference.equal_to(Datum::bool(!negated)))
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// AND may lose a side and OR may not: what is left must still be true wherever the whole is.
    fn connect(&self, left: &Expr, op: Operator, right: &Expr, negated: bool) -> Option<Predicate> {
        let sides = (self.convert(left, negated), self.convert(right, negated));
        if (op == Operator::And) != negated {
            return both(sides.0, sides.1);
        }
        match sides {
            (Some(left), Some(right)) => Some(left.or(right)),
            _ => None,
        }
    }

    fn compare(&self, left: &Expr, op: Operator, right: &Expr, negated: bool) -> Option<Predicate> {
        let (column, op, value) = match (left, right) {
            (Expr::Column(column), Expr::Literal(value, _)) => (column, op, value),
            (Expr::Literal(value, _), Expr::Column(column)) => (column, op.swap()?, value),
            _ => return None,
        };
        let op = if negated { op.negate()? } else { op };
        let (reference, primitive) = self.column(column)?;
        let datum = datum(value, primitive)?;
        match op {
            Operator::Eq => Some(reference.equal_to(datum)),
            Operator::NotEq => Some(reference.not_equal_to(datum)),
            Operator::Lt => Some(reference.less_than(datum)),
            Operator::LtEq => Some(reference.less_than_or_equal_to(datum)),
            Operator::Gt => Some(reference.greater_than(datum)),
            Operator::GtEq => Some(reference.greater_than_or_equal_to(datum)),
            _ => None,
        }
    }

    fn null(&self, inner: &Expr, wants_null: bool) -> Option<Predicate> {
        let Expr::Column(column) = inner else {
            return None;
        };
        let (reference, _) = self.column(column)?;
        Some(if wants_null {
            reference.is_null()
        } else {
            reference.is_not_null()
        })
    }

    fn in_list(&self, list: &InList, negated: bool) -> Option<Predicate> {
        let Expr::Column(column) = list.expr.as_ref() else {
            return None;
        };
        let (reference, primitive) = self.column(column)?;
        let datums = list
            .list
            .iter()
            .map(|item| match item {
                Expr::Literal(value, _) => datum(value, primitive),
                _ => None,
            })
            .collect::<Option<Vec<Datum>>>()?;
        Some(if list.negated == negated {
            reference.is_in(datums)
        } else {
            reference.is_not_in(datums)
        })
    }

    /// `LIKE 'prefix%'` and nothing else; its negation is left to the rows.
    fn like(&self, like: &Like, negated: bool) -> Option<Predicate> {
        let (Expr::Column(column), Expr::Literal(ScalarValue::Utf8(Some(pattern)), _)) =
            (like.expr.as_ref(), like.pattern.as_ref())
        else {
            return None;
        };
        let prefix = pattern.strip_suffix('%')?;
        let plain = !prefix.is_empty() && !prefix.contains(['%', '_', '\\']);
        if !plain || like.case_insensitive || like.escape_char.is_some() || like.negated || negated
        {
            return None;
        }
        match self.column(column)? {
            (reference, PrimitiveType::String) => {
                Some(reference.starts_with(Datum::string(prefix)))
            }
            _ => None,
        }
    }

    fn column(&self, column: &Column) -> Option<(Reference, &PrimitiveType)> {
        self.0
            .get(&column.name)
            .map(|primitive| (Reference::new(&column.name), primitive))
    }
}

fn both(left: Option<Predicate>, right: Option<Predicate>) -> Option<Predicate> {
    match (left, right) {
        (Some(left), Some(right)) => Some(left.and(right)),
        (one, other) => one.or(other),
    }
}

/// A literal as iceberg's value of exactly this type; no conversion between types is attempted.
fn datum(value: &ScalarValue, primitive: &PrimitiveType) -> Option<Datum> {
    match (primitive, value) {
        (PrimitiveType::Boolean, ScalarValue::Boolean(Some(v))) => Some(Datum::bool(*v)),
        (PrimitiveType::Int, ScalarValue::Int32(Some(v))) => Some(Datum::int(*v)),
        (PrimitiveType::Long, ScalarValue::Int64(Some(v))) => Some(Datum::long(*v)),
        (PrimitiveType::Date, ScalarValue::Date32(Some(v))) => Some(Datum::date(*v)),
        (PrimitiveType::String, ScalarValue::Utf8(Some(v))) => Some(Datum::string(v)),
        (PrimitiveType::Timestamp, ScalarValue::TimestampMicrosecond(Some(v), None)) => {
            Some(Datum::timestamp_micros(*v))
        }
        (PrimitiveType::Timestamptz, ScalarValue::TimestampMicrosecond(Some(v), Some(_))) => {
            Some(Datum::timestamptz_micros(*v))
        }
        _ => None,
    }
}

/// Whether any schema of the table gives this field another type.
fn was_promoted(field: &NestedFieldRef, metadata: &TableMetadata) -> bool {
    metadata
        .schemas_iter()
        .filter_map(|schema| schema.field_by_id(field.id))
        .any(|older| older.field_type != field.field_type)
}

#[cfg(test)]
mod tests;
