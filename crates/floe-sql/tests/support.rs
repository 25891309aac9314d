//! Small tables on local disk, and reading them.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, Int32Array, Int64Array, RecordBatch, StringArray};
use floe_scan::{Position, Result, Scan, ScanRequest};
use floe_store::{Store, StoreConfig};
use floe_testing::table::{TableSpec, TestTable};
use futures::TryStreamExt;
use iceberg::io::FileIO;
use iceberg::spec::{NestedField, PrimitiveType, Schema, Type};
use iceberg::table::Table;
use iceberg::{Runtime, TableIdent};
use tempfile::TempDir;

/// The name of a table's directory.
pub(crate) const BUCKET: &str = "warehouse";

/// A table in a directory of its own, and a store without a cache.
pub(crate) struct Fixture {
    pub(crate) table: TestTable,
    pub(crate) store: Store,
    pub(crate) dir: TempDir,
}

/// `id long, name string`.
pub(crate) fn simple_schema() -> Schema {
    Schema::builder()
        .with_fields([
            NestedField::optional(1, "id", Type::Primitive(PrimitiveType::Long)).into(),
            NestedField::optional(2, "name", Type::Primitive(PrimitiveType::String)).into(),
        ])
        .build()
        .unwrap()
}

impl Fixture {
    pub(crate) async fn new(schema: Schema, partitioned_by: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        // A bucket of this name, where a test serves the directory as S3.
        let location = format!("file://{}/{BUCKET}", dir.path().display());
        let spec = partitioned_by
            .iter()
            .try_fold(TableSpec::new(location, schema), |spec, column| {
                spec.partitioned_by(column)
            })
            .unwrap();
        let table = TestTable::create(FileIO::new_with_fs(), spec)
            .await
            .unwrap();
        Self {
            table,
            store: Store::open(StoreConfig::default()).unwrap(),
            dir,
        }
    }

    /// `id, name` with one file of these ids.
    pub(crate) async fn simple(files: &[std::ops::Range<i64>]) -> Self {
        let mut fixture = Self::new(simple_schema(), &[]).await;
        for ids in files {
            fixture.append_ids(ids.clone()).await;
        }
        fixture
    }

    /// One snapshot with one file of these ids; every tenth name is NULL.
    pub(crate) async fn append_ids(&mut self, ids: std::ops::Range<i64>) -> i64 {
        let names: StringArray = ids
            .clone()
            .map(|id| (id % 10 != 0).then(|| format!("name {id}")))
            .collect();
        let columns: Vec<ArrayRef> =
            vec![Arc::new(Int64Array::from_iter_values(ids)), Arc::new(names)];
        self.append(columns).await
    }

    pub(crate) async fn append(&mut self, columns: Vec<ArrayRef>) -> i64 {
        let batch = RecordBatch::try_new(self.table.arrow_schema().unwrap(), columns).unwrap();
        self.table.append(&[batch]).await.unwrap()
    }

    /// The table, its files read through the store.
    pub(crate) fn opened(&self) -> Table {
        opened(&self.table, &self.store, &HashMap::new())
    }

    pub(crate) fn scan(&self, asked: impl Into<Asked>) -> Result<Scan> {
        let Asked {
            mut request,
            filter,
        } = asked.into();
        let table = self.opened();
        if let Some(text) = filter {
            let position = Position::resolve(&table, &request.at)?;
            request.filter = Some(floe_sql::parse_filter(&text, position.schema())?);
        }
        Scan::new(&self.store, &table, request)
    }

    pub(crate) async fn rows(&self, request: impl Into<Asked>) -> Result<Vec<RecordBatch>> {
        self.scan(request)?.stream().await?.try_collect().await
    }

    /// The ids of the rows that are read, sorted.
    pub(crate) async fn ids(&self, request: impl Into<Asked>) -> Result<Vec<i64>> {
        let mut ids: Vec<i64> = self
            .rows(request)
            .await?
            .iter()
            .flat_map(|batch| longs(batch, "id"))
            .flatten()
            .collect();
        ids.sort_unstable();
        Ok(ids)
    }
}

pub(crate) fn opened(
    table: &TestTable,
    store: &Store,
    properties: &HashMap<String, String>,
) -> Table {
    Table::builder()
        .file_io(store.file_io(properties, Some(table.metadata().uuid())))
        .metadata(table.metadata().clone())
        .metadata_location(table.metadata_location())
        .identifier(TableIdent::from_strs(["ns", "t"]).unwrap())
        .runtime(Runtime::current())
        .build()
        .unwrap()
}

/// A request whose filter is SQL text, which only the table's schema gives a meaning.
pub(crate) struct Asked {
    pub(crate) request: ScanRequest,
    pub(crate) filter: Option<String>,
}

impl From<ScanRequest> for Asked {
    fn from(request: ScanRequest) -> Self {
        Self {
            request,
            filter: None,
        }
    }
}

/// Every column of the rows that match.
pub(crate) fn filtered(filter: &str) -> Asked {
    ScanRequest::default().matching(filter)
}

pub(crate) trait Matching {
    /// The same, of the rows that match.
    fn matching(self, filter: &str) -> Asked;
}

impl Matching for ScanRequest {
    fn matching(self, filter: &str) -> Asked {
        Asked {
            request: self,
            filter: Some(filter.to_string()),
        }
    }
}

pub(crate) fn longs(batch: &RecordBatch, column: &str) -> Vec<Option<i64>> {
    batch
        .column_by_name(column)
        .unwrap()
        .as_primitive::<Int64Type>()
        .iter()
        .collect()
}

pub(crate) fn ints(batch: &RecordBatch, column: &str) -> Vec<Option<i32>> {
    batch
        .column_by_name(column)
        .unwrap()
        .as_primitive::<Int32Type>()
        .iter()
        .collect()
}

pub(crate) fn strings(batch: &RecordBatch, column: &str) -> Vec<Option<String>> {
    batch
        .column_by_name(column)
        .unwrap()
        .as_string::<i32>()
        .iter()
        .map(|s| s.map(str::to_string))
        .collect()
}

pub(crate) fn int_array(values: impl IntoIterator<Item = Option<i32>>) -> ArrayRef {
    Arc::new(values.into_iter().collect::<Int32Array>())
}

pub(crate) fn total(batches: &[RecordBatch]) -> usize {
    batches.iter().map(RecordBatch::num_rows).sum()
}

pub(crate) fn all_null(batch: &RecordBatch, column: &str) -> bool {
    let column = batch.column_by_name(column).unwrap();
    column.null_count() == column.len()
}
