//! An Iceberg table to DataFusion: files are planned when a query is, and grouped into partitions that run side by side.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::{Schema as ArrowSchema, SchemaRef as ArrowSchemaRef};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Statistics;
use datafusion::common::stats::Precision;
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
use floe_store::Store;
use futures::{StreamExt, TryStreamExt, stream};
use iceberg::scan::FileScanTask;
use iceberg::table::Table;

use crate::columns::{self, Columns};
use crate::error::Result;
use crate::filter::PushableColumns;
use crate::plan::{Plan, Wanted};
use crate::read::{self, FileReader};
use crate::request::{At, ScanRequest};
use crate::snapshot::{self, Position};
use crate::timings::{Meter, Timings};

/// A state of an Iceberg table as a DataFusion table.
#[derive(Clone, Debug)]
pub struct FloeTable {
    store: Store,
    position: Position,
    schema: ArrowSchemaRef,
    pushable: PushableColumns,
    fetch_concurrency: usize,
    meter: Arc<Meter>,
}

impl FloeTable {
    /// The table at this ref, snapshot or time.
    pub fn new(store: &Store, table: &Table, at: &At) -> Result<Self> {
        let position = Position::resolve(table, at)?;
        let schema = columns::arrow_schema(position.schema())?;
        let pushable =
            PushableColumns::for_planning(position.schema(), position.table().metadata());
        let fetch_concurrency = ScanRequest::default().fetch_concurrency;
        Ok(Self {
            store: store.clone(),
            position,
            schema,
            pushable,
            fetch_concurrency,
            meter: Arc::default(),
        })
    }

    /// Where the time of this table's scans went so far.
    pub fn timings(&self) -> Timings {
        self.meter.timings()
    }
}

#[async_trait]
impl TableProvider for FloeTable {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn schema(&self) -> ArrowSchemaRef {
        self.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> DfResult<Vec<TableProviderFilterPushDown>> {
        // Inexact: DataFusion evaluates every filter again on the rows.
        let answer = |filter: &&Expr| match self.pushable.accepts(filter) {
            true => TableProviderFilterPushDown::Inexact,
            false => TableProviderFilterPushDown::Unsupported,
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
        let all: Vec<usize> = (0..self.schema.fields().len()).collect();
        let projection = projection.map_or(&all[..], Vec::as_slice);
        let columns = Columns::at(self.position.schema(), &self.schema, projection)?;
        let wanted = Wanted {
            field_ids: columns.field_ids(),
            filters: filters.iter().collect(),
        };
        let started = std::time::Instant::now();
        let plan = Plan::start(&self.store, &self.position, &wanted).await?;
        let exact = !plan.has_deletes && !plan.filters_rows;
        let files = plan.collect().await?;
        self.meter.planned(started.elapsed());
        let groups = group(files, state.config().target_partitions());
        let reader = FileReader {
            io: self.position.table().file_io().clone(),
            runtime: snapshot::runtime()?,
            columns: Arc::new(columns),
            filter: None,
            batch_rows: state.config().batch_size(),
            meter: self.meter.clone(),
        };
        let table = self.position.table().identifier().to_string();
        let output = Arc::new(self.schema.project(projection)?);
        let concurrency = self.fetch_concurrency.div_ceil(groups.len().max(1));
        Ok(Arc::new(FloeScanExec::new(
            table,
            groups,
            reader,
            output,
            Rows { exact, limit },
            concurrency,
        )))
    }
}

/// Deals files into at most `partitions` groups of about the same number of bytes.
fn group(mut files: Vec<FileScanTask>, partitions: usize) -> Vec<Vec<FileScanTask>> {
    // By location among equals, so that a plan doesn't depend on which manifest was read first.
    files.sort_by(|a, b| {
        b.file_size_in_bytes
            .cmp(&a.file_size_in_bytes)
            .then_with(|| a.data_file_path.cmp(&b.data_file_path))
    });
    let mut groups = vec![(0u64, Vec::new()); partitions.clamp(1, files.len().max(1))];
    for file in files {
        let (bytes, group) = groups
            .iter_mut()
            .min_by_key(|(bytes, _)| *bytes)
            .expect("there is at least one group");
        *bytes += file.file_size_in_bytes;
        group.push(file);
    }
    groups.into_iter().map(|(_, group)| group).collect()
}

/// What is known of the rows that a scan gives.
#[derive(Clone, Copy, Debug)]
struct Rows {
    /// Whether it gives exactly the rows that the manifests count.
    exact: bool,
    limit: Option<usize>,
}

/// Reads groups of files side by side.
#[derive(Debug)]
struct FloeScanExec {
    table: String,
    groups: Vec<Vec<FileScanTask>>,
    reader: FileReader,
    schema: ArrowSchemaRef,
    rows: Rows,
    /// Files that each group reads at once.
    concurrency: usize,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl FloeScanExec {
    fn new(
        table: String,
        groups: Vec<Vec<FileScanTask>>,
        reader: FileReader,
        schema: ArrowSchemaRef,
        rows: Rows,
        concurrency: usize,
    ) -> Self {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema.clone()),
            Partitioning::UnknownPartitioning(groups.len()),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        let metrics = ExecutionPlanMetricsSet::new();
        Self {
            table,
            groups,
            reader,
            schema,
            rows,
            concurrency,
            properties: Arc::new(properties),
            metrics,
        }
    }

    fn files(&self) -> usize {
        self.groups.iter().map(Vec::len).sum()
    }

    fn row_count(&self, groups: &[Vec<FileScanTask>]) -> Precision<usize> {
        let counts = groups.iter().flatten().map(|file| {
            file.record_count
                .and_then(|count| usize::try_from(count).ok())
        });
        let Some(count) = counts.sum::<Option<usize>>() else {
            return Precision::Absent;
        };
        let count = self.rows.limit.map_or(count, |limit| count.min(limit));
        if self.rows.exact && self.rows.limit.is_none() {
            Precision::Exact(count)
        } else {
            Precision::Inexact(count)
        }
    }
}

impl DisplayAs for FloeScanExec {
    fn fmt_as(&self, kind: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match kind {
            DisplayFormatType::Default | DisplayFormatType::Verbose => {
                let names: Vec<&str> = self
                    .schema
                    .fields()
                    .iter()
                    .map(|field| field.name().as_str())
                    .collect();
                write!(
                    f,
                    "FloeScanExec: table={}, files={}, groups={}",
                    self.table,
                    self.files(),
                    self.groups.len()
                )?;
                write!(f, ", projection=[{}]", names.join(", "))?;
                match self.rows.limit {
                    Some(limit) => write!(f, ", limit={limit}"),
                    None => Ok(()),
                }
            }
            DisplayFormatType::TreeRender => {
                write!(f, "table={}\nfiles={}", self.table, self.files())
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
        let tasks = stream::iter(files.into_iter().map(Ok)).boxed();
        let batches = read::unordered(tasks, self.reader.clone(), self.concurrency);
        let batches = read::limited(batches, self.rows.limit);
        let (schema, counting) = (self.schema.clone(), self.schema.fields().is_empty());
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let batches = batches
            .map_err(DataFusionError::from)
            .and_then(move |batch| {
                futures::future::ready(if counting {
                    without_columns(&schema, &batch)
                } else {
                    Ok(batch)
                })
            });
        let batches = batches.inspect_ok(move |batch| {
            metrics.record_output(batch.num_rows());
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            self.schema.clone(),
            batches,
        )))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn partition_statistics(&self, partition: Option<usize>) -> DfResult<Statistics> {
        let groups = match partition {
            Some(partition) => self.groups.get(partition..=partition).unwrap_or_default(),
            None => &self.groups[..],
        };
        Ok(Statistics {
            num_rows: self.row_count(groups),
            ..Statistics::new_unknown(&self.schema)
        })
    }
}

/// As many rows without any column, for queries that count.
fn without_columns(schema: &Arc<ArrowSchema>, batch: &RecordBatch) -> DfResult<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(
        schema.clone(),
        Vec::new(),
        &options,
    )?)
}
