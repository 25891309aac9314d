//! A condition that DataFusion evaluates on rows.

use std::fmt;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, BooleanArray, RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType, SchemaRef as ArrowSchemaRef};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, DataFusionError, ScalarValue};
use datafusion::error::Result as DfResult;
use datafusion::execution::context::SessionContext;
use datafusion::logical_expr::expr::{Between, InList};
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable};
use datafusion::physical_expr::PhysicalExpr;
use floe_scan::predicate::{RowCondition, Rows};
use floe_scan::{Error, ErrorKind, Result};
use iceberg::spec::Schema;

/// An expression over some columns of a table.
pub(crate) struct SqlCondition {
    text: String,
    expr: Arc<dyn PhysicalExpr>,
    /// Field ids of its columns, and the schema that batches of them have.
    columns: Vec<i32>,
    batch: ArrowSchemaRef,
}

impl SqlCondition {
    /// An expression over a table of this schema, its types already coerced.
    pub(crate) fn new(expr: &Expr, schema: &Schema, arrow: &ArrowSchemaRef) -> DfResult<Self> {
        let names = expr.column_refs();
        let fields = schema.as_struct().fields();
        let positions: Vec<usize> = (0..fields.len())
            .filter(|&at| names.iter().any(|column| column.name == fields[at].name))
            .collect();
        if let Some(unknown) = names
            .iter()
            .find(|column| !positions.iter().any(|&at| fields[at].name == column.name))
        {
            return Err(DataFusionError::Plan(format!(
                "there is no column {}",
                unknown.name
            )));
        }
        let batch = Arc::new(arrow.project(&positions)?);
        let df_schema = DFSchema::try_from(batch.as_ref().clone())?;
        let compared = one_zero(unqualified(expr.clone())?, &df_schema)?;
        let expr_physical = SessionContext::new()
            .state()
            .create_physical_expr(compared, &df_schema)?;
        Ok(Self {
            text: expr.to_string(),
            expr: expr_physical,
            columns: positions.iter().map(|&at| fields[at].id).collect(),
            batch,
        })
    }

    fn on(&self, rows: &dyn Rows) -> DfResult<BooleanArray> {
        let columns = self.columns.iter().map(|&id| {
            rows.column(id)
                .map_err(|error| DataFusionError::External(Box::new(error)))
        });
        let columns = columns.collect::<DfResult<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        let batch = RecordBatch::try_new_with_options(self.batch.clone(), columns, &options)?;
        let truths = self.expr.evaluate(&batch)?.into_array(rows.len())?;
        match truths.data_type() {
            DataType::Boolean => Ok(truths.as_boolean().clone()),
            // A bare NULL is of no type.
            DataType::Null => Ok(BooleanArray::new_null(rows.len())),
            other => Err(DataFusionError::Plan(format!(
                "its type is {other}, not Boolean"
            ))),
        }
    }
}

impl RowCondition for SqlCondition {
    fn columns(&self) -> &[i32] {
        &self.columns
    }

    fn evaluate(&self, rows: &dyn Rows) -> Result<BooleanArray> {
        self.on(rows).map_err(|source| {
            Error::new(
                ErrorKind::Invalid,
                format!("can't evaluate {} on rows", self.text),
            )
            .with_source(source)
        })
    }
}

impl fmt::Display for SqlCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for SqlCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SqlCondition({})", self.text)
    }
}

/// Columns by their names alone: a query qualifies them with the table's.
fn unqualified(expr: Expr) -> DfResult<Expr> {
    let transformed = expr.transform_up(|part| match part {
        Expr::Column(mut column) if column.relation.is_some() => {
            column.relation = None;
            Ok(Transformed::yes(Expr::Column(column)))
        }
        other => Ok(Transformed::no(other)),
    })?;
    Ok(transformed.data)
}

/// The same with one zero: Arrow orders -0.0 before 0.0, SQL holds them equal. Adding 0.0 turns one into the other.
fn one_zero(expr: Expr, schema: &DFSchema) -> DfResult<Expr> {
    let plus_zero = |expr: Expr| -> DfResult<Expr> {
        let zero = match expr.get_type(schema)? {
            DataType::Float32 => ScalarValue::Float32(Some(0.0)),
            DataType::Float64 => ScalarValue::Float64(Some(0.0)),
            _ => return Ok(expr),
        };
        Ok(expr + Expr::Literal(zero, None))
    };
    let transformed = expr.transform_up(|part| match part {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if op.supports_propagation() => {
            let (left, right) = (plus_zero(*left)?, plus_zero(*right)?);
            let compared = BinaryExpr::new(Box::new(left), op, Box::new(right));
            Ok(Transformed::yes(Expr::BinaryExpr(compared)))
        }
        Expr::InList(list) => {
            let items = list.list.into_iter().map(plus_zero);
            let list = InList::new(
                Box::new(plus_zero(*list.expr)?),
                items.collect::<DfResult<Vec<_>>>()?,
                list.negated,
            );
            Ok(Transformed::yes(Expr::InList(list)))
        }
        Expr::Between(between) => {
            let between = Between::new(
                Box::new(plus_zero(*between.expr)?),
                between.negated,
                Box::new(plus_zero(*between.low)?),
                Box::new(plus_zero(*between.high)?),
            );
            Ok(Transformed::yes(Expr::Between(between)))
        }
        other => Ok(Transformed::no(other)),
    })?;
    Ok(transformed.data)
}
