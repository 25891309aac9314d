//! Files in memory, tasks over them, and what a reader makes of both.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::{DataType, Field, Fields, Schema as ArrowSchema};
use async_trait::async_trait;
use bytes::Bytes;
use futures::{TryStreamExt, stream};
use iceberg::spec::{
    DataFileFormat, Literal, NestedField, PrimitiveType, Schema, SchemaRef, Struct, Type,
};
use parquet::arrow::{ArrowWriter, PARQUET_FIELD_ID_META_KEY};
use parquet::file::properties::WriterProperties;

use super::super::{Bytewise, Identity, Limits, ReadSpec, RowReader, Source};
use crate::error::{Error, ErrorKind, Result};
use crate::predicate::Predicate;
use crate::task::{DataFile, DeleteFile, DeleteKind, FileTask};

/// The ranges of a file that were asked for at once.
type Call = (String, Vec<Range<u64>>);

/// Files in memory.
#[derive(Debug)]
pub(super) struct Files {
    identity: Identity,
    files: Mutex<HashMap<String, Bytes>>,
    pub(super) asked: Arc<Mutex<Vec<Call>>>,
    whole_file_bytes: u64,
}

impl Files {
    pub(super) fn new() -> Self {
        Self::with_whole(1 << 20)
    }

    pub(super) fn with_whole(whole_file_bytes: u64) -> Self {
        Self {
            identity: Identity::apart(),
            files: Mutex::default(),
            asked: Arc::default(),
            whole_file_bytes,
        }
    }

    pub(super) fn put(&self, location: &str, bytes: impl Into<Bytes>) -> u64 {
        let bytes = bytes.into();
        let length = bytes.len() as u64;
        self.files.lock().unwrap().insert(location.into(), bytes);
        length
    }

    /// Puts a Parquet file; the task that reads it.
    pub(super) fn data(&self, location: &str, batch: &RecordBatch, group_rows: usize) -> FileTask {
        let bytes = self.put(location, parquet_of(batch, group_rows));
        task(location, bytes, batch.num_rows() as u64)
    }

    /// The same, as this writer has it.
    pub(super) fn data_with(
        &self,
        location: &str,
        batch: &RecordBatch,
        properties: WriterProperties,
    ) -> FileTask {
        let bytes = self.put(location, parquet_with(batch, properties));
        task(location, bytes, batch.num_rows() as u64)
    }

    pub(super) fn delete(
        &self,
        location: &str,
        batch: &RecordBatch,
        kind: DeleteKind,
    ) -> Arc<DeleteFile> {
        let bytes = self.put(location, parquet_of(batch, 1000));
        Arc::new(DeleteFile {
            path: location.into(),
            format: DataFileFormat::Parquet,
            bytes,
            rows: batch.num_rows() as u64,
            kind,
            data_sequence_number: 2,
            encrypted: false,
        })
    }

    pub(super) fn bytes(&self, location: &str) -> Bytes {
        self.files.lock().unwrap()[location].clone()
    }

    /// Ranges asked for so far, by call.
    pub(super) fn calls(&self) -> Vec<Call> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }
}

impl Source for Files {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn open(&self, location: &str, _: u64) -> Result<Arc<dyn Bytewise>> {
        let found = self.files.lock().unwrap().get(location).cloned();
        Ok(Arc::new(File {
            location: location.to_owned(),
            bytes: found,
            asked: self.asked.clone(),
        }))
    }

    fn whole_file_bytes(&self) -> u64 {
        self.whole_file_bytes
    }
}

#[derive(Debug)]
struct File {
    location: String,
    bytes: Option<Bytes>,
    asked: Arc<Mutex<Vec<Call>>>,
}

#[async_trait]
impl Bytewise for File {
    async fn read_ranges(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let call = (self.location.clone(), ranges.to_vec());
        self.asked.lock().unwrap().push(call);
        tokio::task::yield_now().await;
        let gone = || Error::new(ErrorKind::Read, format!("can't read {}", self.location));
        let bytes = self.bytes.clone().ok_or_else(gone)?;
        let cut = |range: &Range<u64>| match range.end <= bytes.len() as u64 {
            true => Ok(bytes.slice(range.start as usize..range.end as usize)),
            false => Err(gone()),
        };
        ranges.iter().map(cut).collect()
    }
}

pub(super) fn task(location: &str, bytes: u64, rows: u64) -> FileTask {
    FileTask {
        file: Arc::new(DataFile {
            path: location.into(),
            format: DataFileFormat::Parquet,
            bytes,
            rows,
            spec_id: 0,
            partition: Arc::new(Struct::empty()),
            data_sequence_number: 1,
            file_sequence_number: Some(1),
            first_row_id: None,
            column_sizes: Vec::new(),
            encrypted: false,
            metrics: Vec::new(),
        }),
        deletes: Vec::new(),
        residual: None,
        constants: Arc::new([]),
    }
}

/// The task with another file.
pub(super) fn with_file(mut task: FileTask, change: impl FnOnce(&mut DataFile)) -> FileTask {
    change(Arc::make_mut(&mut task.file));
    task
}

pub(super) fn with_residual(mut task: FileTask, residual: Predicate) -> FileTask {
    task.residual = Some(Arc::new(residual));
    task
}

pub(super) fn with_deletes(
    mut task: FileTask,
    deletes: impl IntoIterator<Item = Arc<DeleteFile>>,
) -> FileTask {
    task.deletes.extend(deletes);
    task
}

pub(super) fn with_constants(
    mut task: FileTask,
    constants: Vec<(i32, Option<Literal>)>,
) -> FileTask {
    task.constants = constants.into();
    task
}

pub(super) fn parquet_of(batch: &RecordBatch, group_rows: usize) -> Vec<u8> {
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(group_rows))
        .set_compression(parquet::basic::Compression::SNAPPY);
    parquet_with(batch, properties.build())
}

pub(super) fn parquet_with(batch: &RecordBatch, properties: WriterProperties) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties)).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
    bytes
}

/// A field of a file with an id.
pub(super) fn field(id: i32, name: &str, kind: DataType, nullable: bool) -> Field {
    Field::new(name, kind, nullable).with_metadata(HashMap::from([(
        PARQUET_FIELD_ID_META_KEY.into(),
        id.to_string(),
    )]))
}

/// A batch of nullable columns with ids.
pub(super) fn batch<const N: usize>(columns: [(i32, &str, ArrayRef); N]) -> RecordBatch {
    let fields: Fields = columns
        .iter()
        .map(|(id, name, column)| field(*id, name, column.data_type().clone(), true))
        .collect();
    let columns = columns.into_iter().map(|(.., column)| column).collect();
    RecordBatch::try_new(Arc::new(ArrowSchema::new(fields)), columns).unwrap()
}

pub(super) fn optional(id: i32, name: &str, kind: impl Into<Type>) -> Arc<NestedField> {
    Arc::new(NestedField::optional(id, name, kind.into()))
}

pub(super) fn primitive(kind: PrimitiveType) -> Type {
    Type::Primitive(kind)
}

pub(super) fn schema(fields: impl IntoIterator<Item = Arc<NestedField>>) -> SchemaRef {
    Arc::new(Schema::builder().with_fields(fields).build().unwrap())
}

pub(super) fn spec(schema: &SchemaRef, columns: &[i32]) -> ReadSpec {
    ReadSpec::new(schema.clone(), columns)
        .unwrap()
        .ordered(true)
}

pub(super) fn small_batches(rows: usize) -> Limits {
    Limits {
        batch_rows: rows,
        ..Limits::default()
    }
}

pub(super) async fn batches(
    files: &Arc<Files>,
    spec: ReadSpec,
    tasks: Vec<FileTask>,
) -> Result<Vec<RecordBatch>> {
    let declared = spec.arrow_schema().clone();
    let reader = RowReader::new(files.clone(), spec);
    let tasks = stream::iter(tasks.into_iter().map(Ok));
    let batches: Vec<RecordBatch> = reader.read(tasks).try_collect().await?;
    for batch in &batches {
        assert_eq!(batch.schema(), declared);
        assert!(batch.num_rows() > 0);
    }
    Ok(batches)
}

/// The rows as text, a line each.
pub(super) async fn rows(
    files: &Arc<Files>,
    spec: ReadSpec,
    tasks: Vec<FileTask>,
) -> Result<Vec<String>> {
    Ok(lines(&batches(files, spec, tasks).await?))
}

pub(super) fn lines(batches: &[RecordBatch]) -> Vec<String> {
    let options = FormatOptions::new().with_null("NULL");
    let mut lines = Vec::new();
    for batch in batches {
        let columns: Vec<_> = batch
            .columns()
            .iter()
            .map(|column| ArrayFormatter::try_new(column, &options).unwrap())
            .collect();
        for row in 0..batch.num_rows() {
            let values: Vec<_> = columns.iter().map(|c| c.value(row).to_string()).collect();
            lines.push(values.join(" "));
        }
    }
    lines
}

pub(super) async fn error(files: &Arc<Files>, spec: ReadSpec, task: FileTask) -> Error {
    match rows(files, spec, vec![task]).await {
        Ok(rows) => panic!("read {rows:?}"),
        Err(error) => error,
    }
}

/// The messages of an error and of what lies behind it.
pub(super) fn whole(error: &Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
