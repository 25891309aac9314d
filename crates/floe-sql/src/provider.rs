//! An Iceberg table to DataFusion: files are planned when a query is, and grouped into partitions that run side by side.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use arrow_schema::SchemaRef as ArrowSchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Statistics;
use datafusion::error::{DataFusionError, Result as DfResult};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties,
};
use floe_scan::inspect::{Inspection, MetadataTable};
use floe_scan::predicate::Predicate;
use floe_scan::task::FileTask;
use floe_scan::{At, PlanSummary, Result, Scan, ScanRequest, Timings};
use floe_store::Store;
use futures::TryStreamExt;
use iceberg::table::Table;

use crate::convert::{Conversion, is_understood, may_prune};
use crate::statistics;

/// A state of an Iceberg table as a DataFusion table.
#[derive(Clone, Debug)]
pub struct FloeTable {
    scan: Scan,
}

impl FloeTable {
    /// The table at this ref, snapshot or time.
    pub fn new(store: &Store, table: &Table, at: &At) -> Result<Self> {
        let request = ScanRequest {
            at: at.clone(),
            ..ScanRequest::default()
        };
        Ok(Self {
            scan: Scan::new(store, table, request)?,
        })
    }

    /// The same table at another ref, snapshot or time.
    pub(crate) fn at(&self, at: &At) -> Result<Self> {
        Ok(Self {
            scan: self.scan.at(at)?,
        })
    }

    /// A metadata table of this state.
    pub(crate) fn inspect(&self, table: MetadataTable) -> Result<Inspection> {
        self.scan.inspect(table)
    }

    /// Where the time of this table's scans went so far.
    pub fn timings(&self) -> Timings {
        self.scan.timings()
    }

    fn convert(&self, filter: &Expr) -> Option<Predicate> {
        let conversion = Conversion::new(self.scan.iceberg_schema(), self.scan.schema().clone());
        // What can't be evaluated on rows is left to DataFusion, which will say so.
        conversion.convert(filter).ok()
    }
}

#[async_trait]
impl TableProvider for FloeTable {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn schema(&self) -> ArrowSchemaRef {
        self.scan.schema().clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> DfResult<Vec<TableProviderFilterPushDown>> {
        let answer = |filter: &&Expr| match self.convert(filter) {
            // The scan keeps exactly the rows that match.
            Some(predicate) if is_understood(&predicate) => TableProviderFilterPushDown::Exact,
            Some(predicate) if may_prune(&predicate) => TableProviderFilterPushDown::Inexact,
            _ => TableProviderFilterPushDown::Unsupported,
        };
        Ok(filters.iter().map(answer).collect())
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> DfResult<Arc<dyn ExecutionPlan>> {
        let all: Vec<usize> = (0..self.schema().fields().len()).collect();
        let projection = projection.map_or(&all[..], Vec::as_slice);
        let filter = Predicate::all(filters.iter().filter_map(|filter| self.convert(filter)));
        let scan = self
            .scan
            .narrowed(projection, filter, limit)
            .map_err(external)?;
        let (tasks, pruned) = scan.plan_files().await.map_err(external)?;
        let partitions = state.config().target_partitions();
        Ok(Arc::new(FloeScanExec::new(
            scan,
            group(tasks, partitions),
            pruned,
            limit,
        )))
    }
}

/// Deals files into at most `partitions` groups of about the same number of bytes.
fn group(mut files: Vec<FileTask>, partitions: usize) -> Vec<Vec<FileTask>> {
    // By location among equals, so that a plan doesn't depend on which manifest was read first.
    files.sort_by(|a, b| {
        let (a, b) = (&a.file, &b.file);
        b.bytes.cmp(&a.bytes).then_with(|| a.path.cmp(&b.path))
    });
    let mut groups = vec![(0u64, Vec::new()); partitions.clamp(1, files.len().max(1))];
    for file in files {
        let (bytes, group) = groups
            .iter_mut()
            .min_by_key(|(bytes, _)| *bytes)
            .expect("there is at least one group");
        *bytes += file.file.bytes;
        group.push(file);
    }
    groups.into_iter().map(|(_, group)| group).collect()
}

/// Reads groups of files side by side.
#[derive(Debug)]
struct FloeScanExec {
    scan: Scan,
    groups: Vec<Vec<FileTask>>,
    pruned: PlanSummary,
    limit: Option<usize>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl FloeScanExec {
    fn new(
        scan: Scan,
        groups: Vec<Vec<FileTask>>,
        pruned: PlanSummary,
        limit: Option<usize>,
    ) -> Self {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(scan.schema().clone()),
            Partitioning::UnknownPartitioning(groups.len()),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Self {
            scan,
            groups,
            pruned,
            limit,
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }

    fn files(&self) -> impl Iterator<Item = &FileTask> + Clone {
        self.groups.iter().flatten()
    }

    /// What is read and what pruning spared.
    fn shown(&self) -> String {
        let bytes: u64 = self.files().map(|task| task.file.bytes).sum();
        let PlanSummary {
            files_pruned,
            bytes_pruned,
            manifests,
            manifests_pruned,
            ..
        } = &self.pruned;
        format!(
            "files={}, bytes={bytes}, files_pruned={files_pruned}, bytes_pruned={bytes_pruned}, manifests={manifests}, manifests_pruned={manifests_pruned}, groups={}",
            self.files().count(),
            self.groups.len()
        )
    }
}

impl DisplayAs for FloeScanExec {
    fn fmt_as(&self, kind: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match kind {
            DisplayFormatType::Default | DisplayFormatType::Verbose => {
                let schema = self.scan.schema();
                let names: Vec<&str> = schema
                    .fields()
                    .iter()
                    .map(|field| field.name().as_str())
                    .collect();
                let table = self.scan.table().identifier();
                write!(f, "FloeScanExec: table={table}, {}", self.shown())?;
                write!(f, ", projection=[{}]", names.join(", "))?;
                if let Some(filter) = self.scan.filter() {
                    write!(f, ", filter={filter}")?;
                }
                match self.limit {
                    Some(limit) => write!(f, ", limit={limit}"),
                    None => Ok(()),
                }
            }
            DisplayFormatType::TreeRender => {
                let table = self.scan.table().identifier();
                write!(f, "table={table}\nfiles={}", self.files().count())
            }
        }
    }
}

impl ExecutionPlan for FloeScanExec {
    fn name(&self) -> &str {
        "FloeScanExec"
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn with_new_children(
        self: Arc<Self>,
        _children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> DfResult<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn execute(
        &self,
        partition: usize,
        _context: Arc<TaskContext>,
    ) -> DfResult<SendableRecordBatchStream> {
        let files = self.groups.get(partition).cloned().unwrap_or_default();
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let batches = self
            .scan
            .read_files(files, self.groups.len())
            .map_err(external)
            .inspect_ok(move |batch| {
                metrics.record_output(batch.num_rows());
            });
        let schema = self.scan.schema().clone();
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn partition_statistics(&self, partition: Option<usize>) -> DfResult<Statistics> {
        let groups = match partition {
            Some(partition) => self.groups.get(partition..=partition).unwrap_or_default(),
            None => &self.groups[..],
        };
        Ok(statistics::of(
            groups.iter().flatten(),
            &self.scan.field_ids(),
            self.scan.schema(),
            self.limit,
        ))
    }
}

/// DataFusion carries our error as it is, so that kind and hint survive a query.
pub(crate) fn external(error: floe_scan::Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}
