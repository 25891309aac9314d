//! Numbers with a fraction, as the SQL standard and Spark have them: `9999999.99` is that number, not the double next to it.
//!
//! DataFusion either reads every such literal as a double, and then compares a decimal column with it to fifteen digits;
//! or as a decimal, and then turns double columns into decimals, where NaN and large values have no place. Here they are
//! read as decimals, and become doubles again wherever they meet no decimal or whole number.

use std::sync::Arc;

use arrow_schema::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::expr::{Between, InList};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, LogicalPlan};
use datafusion::optimizer::AnalyzerRule;
use datafusion::optimizer::analyzer::Analyzer;
use datafusion::prelude::SessionConfig;

/// A session's configuration that reads numbers with a fraction as decimals; it needs [`number_rules`].
pub fn exact_numbers(mut config: SessionConfig) -> SessionConfig {
    config.options_mut().sql_parser.parse_float_as_decimal = true;
    config
}

/// DataFusion's analyzer rules, and before them the one that [`exact_numbers`] needs.
pub fn number_rules() -> Vec<Arc<dyn AnalyzerRule + Send + Sync>> {
    let ours: Arc<dyn AnalyzerRule + Send + Sync> = Arc::new(Numbers);
    std::iter::once(ours).chain(Analyzer::new().rules).collect()
}

#[derive(Debug)]
struct Numbers;

impl AnalyzerRule for Numbers {
    fn name(&self) -> &str {
        "numbers"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> DfResult<LogicalPlan> {
        let plan = plan.transform_up_with_subqueries(|node| {
            let mut schema = DFSchema::empty();
            for input in node.inputs() {
                schema.merge(input.schema());
            }
            if let LogicalPlan::TableScan(scan) = &node {
                schema.merge(&scan.projected_schema);
            }
            // What a query calls a column must not change with its type.
            let names = NamePreserver::new(&node);
            node.map_expressions(|expr| {
                let name = names.save(&expr);
                let changed = doubles_where_needed(expr, &schema)?;
                Ok(Transformed::yes(name.restore(changed)))
            })
        })?;
        plan.data.recompute_schema()
    }
}

/// The same expression, its decimal literals doubles where they meet no decimal or whole number.
pub(crate) fn doubles_where_needed(expr: Expr, schema: &DFSchema) -> DfResult<Expr> {
    // An expression within a subquery may name columns from outside, whose types are not known here.
    let exact = |other: &Expr| match other.get_type(schema) {
        Ok(kind) => kind.is_integer() || kind.is_decimal(),
        Err(_) => false,
    };
    let beside = |literal: Expr, exact: bool| if exact { literal } else { double(literal) };
    let transformed = expr.transform_up(|part| {
        let part = match part {
            Expr::Negative(inner) if is_decimal(&inner) => return negated(*inner),
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
                let (exact_left, exact_right) = (exact(&left), exact(&right));
                Expr::BinaryExpr(BinaryExpr::new(
                    Box::new(beside(*left, exact_right)),
                    op,
                    Box::new(beside(*right, exact_left)),
                ))
            }
            Expr::InList(list) => {
                let kept = exact(&list.expr);
                let items = list.list.into_iter().map(|item| beside(item, kept));
                Expr::InList(InList::new(list.expr, items.collect(), list.negated))
            }
            Expr::Between(between) => {
                let kept = exact(&between.expr);
                Expr::Between(Between::new(
                    between.expr,
                    between.negated,
                    Box::new(beside(*between.low, kept)),
                    Box::new(beside(*between.high, kept)),
                ))
            }
            // Alone in a projection a literal is what it says; a cast chooses for itself.
            part @ (Expr::Alias(_) | Expr::Cast(_) | Expr::Literal(..)) => part,
            part => {
                part.map_children(|child| Ok(Transformed::yes(double(child))))?
                    .data
            }
        };
        Ok(Transformed::yes(part))
    })?;
    Ok(transformed.data)
}

fn is_decimal(expr: &Expr) -> bool {
    matches!(
        expr,
        Expr::Literal(
            ScalarValue::Decimal128(Some(_), ..) | ScalarValue::Decimal256(Some(_), ..),
            _
        )
    )
}

fn negated(literal: Expr) -> DfResult<Transformed<Expr>> {
    let Expr::Literal(value, metadata) = literal else {
        return Ok(Transformed::no(literal));
    };
    Ok(Transformed::yes(Expr::Literal(
        value.arithmetic_negate()?,
        metadata,
    )))
}

/// A decimal literal as a double; anything else as it is.
fn double(expr: Expr) -> Expr {
    match &expr {
        Expr::Literal(value, metadata) if is_decimal(&expr) => {
            match value.cast_to(&DataType::Float64) {
                Ok(double) => Expr::Literal(double, metadata.clone()),
                Err(_) => expr,
            }
        }
        _ => expr,
    }
}

#[cfg(test)]
mod tests {
    use arrow_schema::{Field, Schema};

    use super::*;

    fn parsed(text: &str) -> String {
        let schema = Schema::new(vec![
            Field::new("d", DataType::Float64, true),
            Field::new("i", DataType::Int32, true),
            Field::new("c", DataType::Decimal128(9, 2), true),
        ]);
        let schema = DFSchema::try_from(schema).unwrap();
        let session = datafusion::prelude::SessionContext::new_with_config(exact_numbers(
            SessionConfig::new(),
        ));
        let expr = session.state().create_logical_expr(text, &schema).unwrap();
        doubles_where_needed(expr, &schema).unwrap().to_string()
    }

    #[test]
    fn a_number_is_a_double_beside_doubles_and_exact_beside_decimals() {
        assert!(
            parsed("d > 1.5").contains("Float64(1.5)"),
            "{}",
            parsed("d > 1.5")
        );
        assert!(parsed("d IN (1.5, 2.5)").contains("Float64(2.5)"));
        assert!(parsed("d BETWEEN 1.5 AND 2.5").contains("Float64(1.5)"));
        assert!(parsed("coalesce(d, 1.5) = 0").contains("Float64(1.5)"));
        for exact in [
            "c = 9999999.99",
            "9999999.99 = c",
            "c IN (9999999.99)",
            "c = -9999999.99",
        ] {
            assert!(
                parsed(exact).contains("Decimal128(Some("),
                "{}",
                parsed(exact)
            );
        }
    }
}
