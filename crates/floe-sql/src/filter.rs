//! SQL text to a condition of a scan.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, LazyLock};

use arrow_schema::{DataType, Schema as ArrowSchema};
use datafusion::common::DFSchema;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::error::{DataFusionError, Result as DfResult};
use datafusion::execution::SessionState;
use datafusion::execution::context::SessionContext;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Operator};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::prelude::SessionConfig;
use floe_scan::predicate::Predicate;
use floe_scan::{Error, ErrorKind, Result};
use iceberg::spec::Schema;

use crate::convert::Conversion;
use crate::numbers::{doubles_where_needed, exact_numbers};

/// Functions and rules that conditions are read with. To make them takes as long as a small scan.
static STATE: LazyLock<SessionState> =
    LazyLock::new(|| SessionContext::new_with_config(exact_numbers(SessionConfig::new())).state());

/// Reads `text`, an expression of DataFusion's SQL, as a condition over a table of this schema.
///
/// Floats compare as Spark has them (see [`Predicate`]); the rest is DataFusion's SQL.
///
/// # Errors
/// [`ErrorKind::Invalid`] for what is no condition on rows of this schema.
pub fn parse_filter(text: &str, schema: &Schema) -> Result<Predicate> {
    // DataFusion 53 panics on a type's name before a number, such as `date 5`.
    let parsed = std::panic::catch_unwind(AssertUnwindSafe(|| parse(text, schema)));
    parsed.unwrap_or_else(|_| {
        let message = format!("can't use '{text}' as a filter: DataFusion's planner panics on it");
        Err(Error::new(ErrorKind::Invalid, message))
    })
}

fn parse(text: &str, schema: &Schema) -> Result<Predicate> {
    let wrong = |source: DataFusionError| {
        Error::new(ErrorKind::Invalid, format!("can't use '{text}' as a filter"))
            .with_hint("a filter is an SQL expression over the table's columns; names with capitals need double quotes")
            .with_source(source)
    };
    let arrow = floe_scan::arrow_schema(schema)?;
    let df_schema = Arc::new(DFSchema::try_from(ArrowSchema::clone(&arrow)).map_err(wrong)?);
    let expr = STATE.create_logical_expr(text, &df_schema).map_err(wrong)?;
    let expr = doubles_where_needed(expr, &df_schema).map_err(wrong)?;
    let expr = simplify(expr, &df_schema, &STATE).map_err(wrong)?;
    let found = expr.get_type(df_schema.as_ref()).map_err(wrong)?;
    // A bare NULL has no type, and is true of no row.
    if found != DataType::Boolean && found != DataType::Null {
        let message = format!("can't use '{text}' as a filter: its type is {found}, not Boolean");
        return Err(Error::new(ErrorKind::Invalid, message));
    }
    let conversion = Conversion::new(schema, arrow);
    conversion.convert(&expr).map_err(wrong)
}

/// Coerces types, and folds constants and casts in each comparison.
///
/// Not across them: DataFusion's simplifier takes `x IN (0) AND x IN (1)` for false where it is NULL, and a NOT or an
/// IS NULL around it then keeps other rows than SQL does.
fn simplify(expr: Expr, schema: &Arc<DFSchema>, state: &SessionState) -> DfResult<Expr> {
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

#[cfg(test)]
mod tests;
