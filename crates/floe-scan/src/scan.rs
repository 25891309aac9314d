//! One scan: a request resolved against a table, then planned and read.

use std::sync::Arc;
use std::time::Instant;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef as ArrowSchemaRef;
use floe_store::Store;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use iceberg::scan::FileScanTask;
use iceberg::spec::SnapshotRef;
use iceberg::table::Table;

use crate::columns::{self, Columns};
use crate::error::{Error, ErrorKind, Result};
use crate::filter::Filter;
use crate::plan::{Plan, Wanted};
use crate::read::{self, FileReader};
use crate::request::ScanRequest;
use crate::snapshot::{self, Position};
use crate::timings::{Meter, Metered, Timings};

/// A scan of one table: resolved (ref, columns and filter are known to be right), not yet planned.
#[derive(Clone, Debug)]
pub struct Scan {
    store: Store,
    position: Position,
    request: ScanRequest,
    filter: Option<Filter>,
    /// Positions of the columns to hand out in the table's schema.
    selected: Vec<usize>,
    table_schema: ArrowSchemaRef,
    schema: ArrowSchemaRef,
    meter: Arc<Meter>,
}

impl Scan {
    /// Resolves a request against a table. Nothing is read yet; what the table doesn't have is an error here.
    pub fn new(store: &Store, table: &Table, request: ScanRequest) -> Result<Self> {
        let position = Position::resolve(table, &request.at)?;
        let table_schema = columns::arrow_schema(position.schema())?;
        let name = table.identifier().to_string();
        let selected = match &request.select {
            Some(names) => columns::positions(&table_schema, names, &name)?,
            None => (0..table_schema.fields().len()).collect(),
        };
        let filter = request
            .filter
            .as_deref()
            .map(|text| Filter::parse(text, &table_schema))
            .transpose()?;
        let schema = table_schema.project(&selected).map_err(|source| {
            Error::new(
                ErrorKind::Unexpected,
                format!("can't choose columns of {name}"),
            )
            .with_source(source)
        })?;
        Ok(Self {
            store: store.clone(),
            position,
            request,
            filter,
            selected,
            table_schema,
            schema: Arc::new(schema),
            meter: Arc::default(),
        })
    }

    /// The schema of the batches that [`Scan::stream`] gives.
    pub fn schema(&self) -> &ArrowSchemaRef {
        &self.schema
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
        let read = self.read_columns()?;
        let columns = Arc::new(Columns::at(
            self.position.schema(),
            &self.table_schema,
            &read,
        )?);
        let batches = self.batches(columns.clone()).await?;
        let output = self.output_positions(&read);
        let batches = read::limited(batches, self.request.limit);
        if output
            .iter()
            .copied()
            .eq(0..columns.schema().fields().len())
        {
            return Ok(batches);
        }
        let projected = move |batch: RecordBatch| {
            batch.project(&output).map_err(|source| {
                Error::new(
                    ErrorKind::Unexpected,
                    "can't drop the columns that only the filter needed",
                )
                .with_source(source)
            })
        };
        Ok(batches.map(move |batch| batch.and_then(&projected)).boxed())
    }

    /// The number of rows. Without a filter and deletes it comes from the manifests alone.
    pub async fn count(&self) -> Result<u64> {
        let limit = self.request.limit.map_or(u64::MAX, |limit| limit as u64);
        if self.filter.is_none() {
            let plan = self.plan(&[]).await?;
            if !plan.has_deletes {
                let counts = plan
                    .tasks
                    .and_then(|task| futures::future::ready(record_count(&task)));
                let count = counts
                    .try_fold(0, |sum, count| futures::future::ok(sum + count))
                    .await?;
                return Ok(count.min(limit));
            }
        }
        let needed = self
            .filter
            .as_ref()
            .map(Filter::columns)
            .unwrap_or_default();
        let columns = Arc::new(Columns::at(
            self.position.schema(),
            &self.table_schema,
            needed,
        )?);
        let batches = read::limited(self.batches(columns).await?, self.request.limit);
        batches
            .try_fold(0, |sum, batch| {
                futures::future::ok(sum + batch.num_rows() as u64)
            })
            .await
    }

    /// The data files that would be read.
    pub async fn files(&self) -> Result<Vec<PlannedFile>> {
        let files = self.plan(&[]).await?.tasks.map_ok(PlannedFile::from);
        files.try_collect().await
    }

    /// Positions of every column to read: those handed out, then those that only the filter needs.
    fn read_columns(&self) -> Result<Vec<usize>> {
        let mut read = Vec::with_capacity(self.selected.len());
        let needed = self
            .filter
            .as_ref()
            .map(Filter::columns)
            .unwrap_or_default();
        for &position in self.selected.iter().chain(needed) {
            if !read.contains(&position) {
                read.push(position);
            }
        }
        Ok(read)
    }

    /// Where each column to hand out lies among those that were read.
    fn output_positions(&self, read: &[usize]) -> Vec<usize> {
        let place = |wanted: &usize| {
            read.iter()
                .position(|p| p == wanted)
                .expect("every selected column is read")
        };
        self.selected.iter().map(place).collect()
    }

    async fn batches(&self, columns: Arc<Columns>) -> Result<read::Batches> {
        let tasks = self.plan(columns.field_ids()).await?.tasks;
        let reader = self.reader(columns)?;
        let concurrency = self.request.fetch_concurrency;
        if !self.request.ordered {
            return Ok(read::unordered(tasks, reader, concurrency));
        }
        let mut files: Vec<FileScanTask> = tasks.try_collect().await?;
        files.sort_by(|a, b| a.data_file_path.cmp(&b.data_file_path));
        Ok(read::ordered(files, reader, concurrency))
    }

    /// The plan of this scan for these field ids.
    async fn plan(&self, field_ids: &[i32]) -> Result<Plan> {
        let started = Instant::now();
        let filters = self.filter.iter().map(Filter::expr).collect();
        let plan = Plan::start(&self.store, &self.position, &Wanted { field_ids, filters }).await?;
        self.meter.planned(started.elapsed());
        Ok(Plan {
            tasks: Metered::plan(plan.tasks, self.meter.clone()).boxed(),
            ..plan
        })
    }

    fn reader(&self, columns: Arc<Columns>) -> Result<FileReader> {
        let filter = self
            .filter
            .as_ref()
            .map(|filter| filter.physical(columns.schema()))
            .transpose()
            .map_err(|source| {
                Error::new(ErrorKind::Invalid, "can't prepare the filter for the rows")
                    .with_source(source)
            })?;
        Ok(FileReader {
            io: self.position.table().file_io().clone(),
            runtime: snapshot::runtime()?,
            columns,
            filter,
            batch_rows: self.request.batch_rows,
            meter: self.meter.clone(),
        })
    }

    /// What warming the cache needs: the plan and a reader of its columns that doesn't filter.
    pub(crate) async fn for_prefetch(&self) -> Result<(Plan, FileReader)> {
        let read = self.read_columns()?;
        let columns = Arc::new(Columns::at(
            self.position.schema(),
            &self.table_schema,
            &read,
        )?);
        let plan = self.plan(columns.field_ids()).await?;
        let reader = FileReader {
            filter: None,
            ..self.reader(columns)?
        };
        Ok((plan, reader))
    }

    /// Whether some columns are left out.
    pub(crate) fn is_projected(&self) -> bool {
        self.request.select.is_some()
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }
}

/// A data file of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedFile {
    /// Where the table's metadata says it is.
    pub location: String,
    /// Rows in it, deleted ones included; zero if its manifest doesn't tell.
    pub rows: u64,
    /// Its length in bytes.
    pub bytes: u64,
    /// Delete files that may concern it.
    pub delete_files: u64,
}

impl From<FileScanTask> for PlannedFile {
    fn from(task: FileScanTask) -> Self {
        Self {
            rows: task.record_count.unwrap_or_default(),
            bytes: task.file_size_in_bytes,
            delete_files: task.deletes.len() as u64,
            location: task.data_file_path,
        }
    }
}

fn record_count(task: &FileScanTask) -> Result<u64> {
    task.record_count.ok_or_else(|| {
        Error::new(
            ErrorKind::Corrupt,
            format!(
                "the manifest doesn't say how many rows {} holds",
                task.data_file_path
            ),
        )
    })
}
