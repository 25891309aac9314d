//! A metadata table to DataFusion: one partition, whose manifests are read when the query takes its rows.

use std::any::Any;
use std::sync::Arc;

use arrow_schema::SchemaRef as ArrowSchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::error::Result as DfResult;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use floe_scan::inspect::Inspection;
use futures::TryStreamExt;

use crate::provider::external;

/// A metadata table of a state of an Iceberg table.
#[derive(Debug)]
pub(crate) struct MetadataProvider {
    inspection: Inspection,
}

impl MetadataProvider {
    pub(crate) fn new(inspection: Inspection) -> Self {
        Self { inspection }
    }
}

#[async_trait]
impl TableProvider for MetadataProvider {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn schema(&self) -> ArrowSchemaRef {
        self.inspection.schema().clone()
    }

    fn table_type(&self) -> TableType {
        TableType::View
    }

    async fn scan(
        &self,
        _state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        limit: Option<usize>,
    ) -> DfResult<Arc<dyn ExecutionPlan>> {
        // Narrowed here rather than by DataFusion: then no column is built that nobody asked for.
        let inspection = match projection {
            Some(columns) => self.inspection.narrowed(columns).map_err(external)?,
            None => self.inspection.clone(),
        };
        let schema = inspection.schema().clone();
        let rows: Arc<dyn PartitionStream> = Arc::new(Rows { inspection });
        let plan = StreamingTableExec::try_new(schema, vec![rows], None, [], false, limit)?;
        Ok(Arc::new(plan))
    }
}

#[derive(Debug)]
struct Rows {
    inspection: Inspection,
}

impl PartitionStream for Rows {
    fn schema(&self) -> &ArrowSchemaRef {
        self.inspection.schema()
    }

    fn execute(&self, _context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let batches = self.inspection.stream().map_err(external);
        let schema = self.inspection.schema().clone();
        Box::pin(RecordBatchStreamAdapter::new(schema, batches))
    }
}
