//! One scan: a request resolved against a table, then planned and read.

use std::sync::Arc;
use std::time::Instant;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef as ArrowSchemaRef;
use floe_store::Store;
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use iceberg::spec::{NameMapping, Schema, SnapshotRef};
use iceberg::table::Table;

use crate::columns::{self, Chosen};
use crate::error::{Error, ErrorKind, Result};
use crate::inspect::{Inspection, MetadataTable};
use crate::output::{Asked, Output};
use crate::planning::{Plan, PlanSummary, Planner};
use crate::predicate::Predicate;
use crate::reading::{Limits, ReadSpec, RowReader, StoreSource};
use crate::request::ScanRequest;
use crate::snapshot::Position;
use crate::task::FileTask;
use crate::timings::{Meter, Metered, Timings};

/// The table's property that names fields of files without field ids (spec, "Column Projection").
const NAME_MAPPING: &str = "schema.name-mapping.default";

/// Batches of rows.
pub(crate) type Batches = BoxStream<'static, Result<RecordBatch>>;

/// A scan of one table: resolved (ref and columns are known to be right), not yet planned.
#[derive(Clone, Debug)]
pub struct Scan {
    store: Store,
    position: Position,
    request: ScanRequest,
    /// What plan and reader keep rows for; the output checks what names metadata columns.
    filter: Option<Arc<Predicate>>,
    chosen: Vec<Chosen>,
    spec: ReadSpec,
    output: Output,
    meter: Arc<Meter>,
}

impl Scan {
    /// Resolves a request against a table. Nothing is read yet; what the table doesn't have is an error here.
    pub fn new(store: &Store, table: &Table, request: ScanRequest) -> Result<Self> {
        let position = Position::resolve(table, &request.at)?;
        let chosen = match &request.select {
            Some(names) => columns::choose(&position, names)?,
            None => columns::all(position.schema()),
        };
        Self::of(store, position, request, chosen, Arc::default())
    }

    fn of(
        store: &Store,
        position: Position,
        mut request: ScanRequest,
        chosen: Vec<Chosen>,
        meter: Arc<Meter>,
    ) -> Result<Self> {
        let metadata = position.table().metadata();
        let limits = Limits {
            batch_rows: request.batch_rows.unwrap_or(Limits::default().batch_rows),
            files: request.fetch_concurrency,
            ..Limits::default()
        };
        let (filter, after) = split(request.filter.take());
        let asked = Asked::of(&chosen, after.as_ref(), |id| {
            let fields = position.schema().as_struct().fields();
            fields
                .iter()
                .find(|field| field.id == id)
                .map(|field| field.id)
        })?;
        let spec = ReadSpec::new(position.schema().clone(), &asked.ids)?
            .with_metadata(asked.metadata.iter().cloned())
            .with_schemas(metadata.schemas_iter().cloned())
            .with_name_mapping(name_mapping(position.table())?)
            .ordered(request.ordered)
            .with_limits(limits)
            .metered(meter.clone());
        let output = Output::new(&asked, &chosen, after.map(Arc::new), &spec)?;
        Ok(Self {
            store: store.clone(),
            position,
            request,
            filter: filter.map(Arc::new),
            chosen,
            spec,
            output,
            meter,
        })
    }

    /// The same state of the same table, with these columns (by position among this scan's), and its own filter and limit.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] for a position that this scan doesn't have.
    pub fn narrowed(
        &self,
        columns: &[usize],
        filter: Predicate,
        limit: Option<usize>,
    ) -> Result<Self> {
        let chosen = columns.iter().map(|&at| {
            self.chosen.get(at).cloned().ok_or_else(|| {
                Error::new(
                    ErrorKind::Invalid,
                    format!("a scan of {} columns has none at {at}", self.chosen.len()),
                )
            })
        });
        let chosen = chosen.collect::<Result<Vec<Chosen>>>()?;
        let request = ScanRequest {
            filter: Some(filter),
            limit,
            ..self.request.clone()
        };
        Self::of(
            &self.store,
            self.position.clone(),
            request,
            chosen,
            self.meter.clone(),
        )
    }

    /// The same at another state of the table, with all columns.
    ///
    /// # Errors
    /// If the table has no such state.
    pub fn at(&self, at: &crate::At) -> Result<Self> {
        let request = ScanRequest {
            at: at.clone(),
            select: None,
            ..self.request.clone()
        };
        Self::new(&self.store, self.table(), request)
    }

    /// A metadata table of the state that is read.
    ///
    /// # Errors
    /// As [`Inspection::new`] has them.
    pub fn inspect(&self, table: MetadataTable) -> Result<Inspection> {
        Inspection::new(&self.store, &self.position, table)
    }

    /// The schema of the batches that [`Scan::stream`] gives.
    pub fn schema(&self) -> &ArrowSchemaRef {
        self.output.schema()
    }

    /// The table's schema that rows are read with.
    pub fn iceberg_schema(&self) -> &Schema {
        self.position.schema()
    }

    /// Field ids of the columns, in the schema's order.
    pub fn field_ids(&self) -> Vec<i32> {
        let id = |column: &Chosen| match column {
            Chosen::Field(id) => *id,
            Chosen::Metadata(column) => column.definition().id,
        };
        self.chosen.iter().map(id).collect()
    }

    /// The condition that rows are kept for, if there is one.
    pub fn filter(&self) -> Option<&Predicate> {
        self.filter.as_deref()
    }

    /// The snapshot that is read; `None` for a table that never had one.
    pub fn snapshot(&self) -> Option<&SnapshotRef> {
        self.position.snapshot()
    }

    /// The table that is read.
    pub fn table(&self) -> &Table {
        self.position.table()
    }

    /// Where the time of this scan and its clones went so far.
    pub fn timings(&self) -> Timings {
        self.meter.timings()
    }

    /// The rows. Files are planned and read while batches are taken; dropping the stream ends all of it.
    pub async fn stream(&self) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        let plan = self.plan(&[]).await?;
        let tasks = if self.request.ordered {
            let mut files: Vec<FileTask> = plan.tasks.try_collect().await?;
            files.sort_by(|a, b| a.file.path.cmp(&b.file.path));
            stream::iter(files.into_iter().map(Ok)).boxed()
        } else {
            plan.tasks
        };
        Ok(self.finished(self.reader().read(tasks)))
    }

    /// Batches of the reader as they go out.
    fn finished(&self, batches: Batches) -> Batches {
        let output = self.output.clone();
        let batches = match output.is_as_read() {
            true => batches,
            false => batches
                .map(move |batch| batch.and_then(|batch| output.of(batch)))
                .boxed(),
        };
        limited(batches, self.request.limit)
    }

    /// The number of rows. Where no delete and no condition is left to check, it comes from the manifests alone.
    pub async fn count(&self) -> Result<u64> {
        if self.output.filters() {
            let batches = self.stream().await?;
            let count = |sum, batch: RecordBatch| async move { Ok(sum + batch.num_rows() as u64) };
            return batches.try_fold(0, count).await;
        }
        let limit = self.request.limit.map_or(u64::MAX, |limit| limit as u64);
        let counting = self.narrowed_to_nothing()?;
        let plan = self.plan(&[]).await?;
        let mut counted = 0;
        let mut to_read = Vec::new();
        let mut tasks = plan.tasks;
        while let Some(task) = tasks.try_next().await? {
            if task.deletes.is_empty() && task.residual.is_none() {
                counted += task.file.rows;
            } else {
                to_read.push(task);
            }
        }
        let mut batches = counting
            .reader()
            .read(stream::iter(to_read.into_iter().map(Ok)));
        while counted < limit
            && let Some(batch) = batches.try_next().await?
        {
            counted += batch.num_rows() as u64;
        }
        Ok(counted.min(limit))
    }

    /// The data files that would be read.
    pub async fn files(&self) -> Result<Vec<PlannedFile>> {
        let files = self.plan(&[]).await?.tasks;
        files
            .map_ok(|task| PlannedFile::from(&task))
            .try_collect()
            .await
    }

    /// The data files that would be read, with the metrics of this scan's columns, and what pruning spared.
    pub async fn plan_files(&self) -> Result<(Vec<FileTask>, PlanSummary)> {
        self.plan(&self.field_ids()).await?.collect().await
    }

    /// Reads these files of its plan, as one of `parts` readers that work side by side.
    pub fn read_files(
        &self,
        files: Vec<FileTask>,
        parts: usize,
    ) -> BoxStream<'static, Result<RecordBatch>> {
        let parts = parts.max(1);
        let limits = self.spec.limits();
        let limits = Limits {
            files: limits.files.div_ceil(parts),
            decoders: limits.decoders.div_ceil(parts),
            fetched_bytes: limits.fetched_bytes / parts as u64,
            decoded_bytes: limits.decoded_bytes / parts as u64,
            ..limits.clone()
        };
        let reader = RowReader::new(self.source(), self.spec.clone().with_limits(limits));
        let tasks = stream::iter(files.into_iter().map(Ok));
        self.finished(reader.read(tasks))
    }

    /// The same rows, none of their columns.
    fn narrowed_to_nothing(&self) -> Result<Self> {
        let filter = self.filter.as_deref().cloned();
        self.narrowed(
            &[],
            filter.unwrap_or(Predicate::Constant(true)),
            self.request.limit,
        )
    }

    /// The plan of this scan, with the metrics of these fields.
    pub(crate) async fn plan(&self, metrics: &[i32]) -> Result<Plan> {
        let started = Instant::now();
        let mut plan = Planner::new(&self.store, &self.position)
            .matching(self.filter.clone())
            .with_metrics(metrics.iter().copied())
            .start()
            .await?;
        self.meter.planned(started.elapsed());
        plan.tasks = Metered::plan(plan.tasks, self.meter.clone()).boxed();
        Ok(plan)
    }

    fn source(&self) -> Arc<StoreSource> {
        let table = self.position.table();
        let source = StoreSource::new(
            self.store.clone(),
            Arc::new(table.file_io().config().props().clone()),
            Some(table.metadata().uuid()).filter(|uuid| !uuid.is_nil()),
        );
        Arc::new(source.metered(self.meter.clone()))
    }

    pub(crate) fn reader(&self) -> RowReader {
        RowReader::new(self.source(), self.spec.clone())
    }

    /// Whether some columns are left out.
    pub(crate) fn is_projected(&self) -> bool {
        self.request.select.is_some()
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }
}

/// The part of a condition that plan and reader understand, and the part that names metadata columns.
fn split(filter: Option<Predicate>) -> (Option<Predicate>, Option<Predicate>) {
    let (after, filter): (Vec<_>, Vec<_>) = filter
        .unwrap_or(Predicate::Constant(true))
        .conjuncts()
        .into_iter()
        .partition(|part| {
            let mut ids = part.columns().into_iter();
            ids.any(|id| columns::described_by_id(id).is_some())
        });
    let all = |parts: Vec<Predicate>| match Predicate::all(parts) {
        Predicate::Constant(true) => None,
        some => Some(some),
    };
    (all(filter), all(after))
}

/// The first `limit` rows; files under way are given up once they are there.
fn limited(batches: Batches, limit: Option<usize>) -> Batches {
    let Some(limit) = limit else { return batches };
    stream::try_unfold((Some(batches), limit), |(batches, left)| async move {
        let Some(mut batches) = batches.filter(|_| left > 0) else {
            return Ok(None);
        };
        let Some(batch) = batches.try_next().await? else {
            return Ok(None);
        };
        let batch = batch.slice(0, batch.num_rows().min(left));
        let left = left - batch.num_rows();
        Ok(Some((batch, ((left > 0).then_some(batches), left))))
    })
    .boxed()
}

fn name_mapping(table: &Table) -> Result<Option<Arc<NameMapping>>> {
    let Some(text) = table.metadata().properties().get(NAME_MAPPING) else {
        return Ok(None);
    };
    let mapping = serde_json::from_str(text).map_err(|source| {
        Error::new(
            ErrorKind::Corrupt,
            format!(
                "can't read the property {NAME_MAPPING} of {}",
                table.identifier()
            ),
        )
        .with_source(source)
    })?;
    Ok(Some(Arc::new(mapping)))
}

/// A data file of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedFile {
    /// Where the table's metadata says it is.
    pub location: String,
    /// Rows in it, deleted ones included.
    pub rows: u64,
    /// Its length in bytes.
    pub bytes: u64,
    /// Delete files that may concern it.
    pub delete_files: u64,
}

impl From<&FileTask> for PlannedFile {
    fn from(task: &FileTask) -> Self {
        Self {
            location: task.file.path.clone(),
            rows: task.file.rows,
            bytes: task.file.bytes,
            delete_files: task.deletes.len() as u64,
        }
    }
}
