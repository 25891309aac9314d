//! Iceberg tables without a catalog library: metadata (format version 2), manifests and Parquet files, written so that
//! iceberg-rust, PyIceberg, DuckDB and Spark read them. No file of a table is ever overwritten.
//!
//! ```text
//! batch -> DataFileEncoder (Parquet, statistics) -> data file -> append: manifest -> manifest list -> metadata JSON
//!                                                                         -> SqliteCatalog::swap(old, new pointer)
//! ```

mod catalog;
mod encode;
mod snapshot;

use std::collections::HashMap;
use std::sync::Arc;

use anyhow::{Context, Result};
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef as ArrowSchemaRef;
use iceberg::arrow::RecordBatchPartitionSplitter;
use iceberg::io::FileIO;
use iceberg::spec::{
    DataFile, FormatVersion, MAIN_BRANCH, ManifestFile, Schema, SortOrder, Struct, TableMetadata,
    TableMetadataBuilder, TableMetadataRef, Transform, UnboundPartitionSpec,
};
use iceberg::table::Table;
use iceberg::{MetadataLocation, Runtime, TableIdent};

pub use catalog::SqliteCatalog;
pub use encode::{DataFileEncoder, EncodedFile};

/// What a table is to be.
#[derive(Clone, Debug)]
pub struct TableSpec {
    /// Where its files go, without a slash at the end: `file:///...`, `s3://...`, whatever its `FileIO` takes.
    pub location: String,
    /// Its columns. Field ids are assigned anew, in order, from 1.
    pub schema: Schema,
    /// How its files are partitioned.
    pub partition: UnboundPartitionSpec,
    /// Table properties.
    pub properties: HashMap<String, String>,
}

impl TableSpec {
    /// An unpartitioned table, written with zstd.
    pub fn new(location: impl Into<String>, schema: Schema) -> Self {
        Self {
            location: location.into(),
            schema,
            partition: UnboundPartitionSpec::default(),
            properties: HashMap::from([(
                "write.parquet.compression-codec".to_owned(),
                "zstd".to_owned(),
            )]),
        }
    }

    /// Adds an identity partition field on a column, named as the column.
    pub fn partitioned_by(mut self, column: &str) -> Result<Self> {
        let field = self.schema.field_by_name(column).with_context(|| {
            format!("partitioning by `{column}`: the schema has no such column")
        })?;
        let mut builder = UnboundPartitionSpec::builder();
        for field in self.partition.fields() {
            builder = builder.add_partition_field(field.source_id, &field.name, field.transform)?;
        }
        self.partition = builder
            .add_partition_field(field.id, column, Transform::Identity)?
            .build();
        Ok(self)
    }
}

/// A table and its current metadata, as its only writer knows it.
#[derive(Clone, Debug)]
pub struct TestTable {
    file_io: FileIO,
    metadata: TableMetadataRef,
    metadata_location: String,
}

impl TestTable {
    /// Writes the first metadata file of a table without snapshots.
    pub async fn create(file_io: FileIO, spec: TableSpec) -> Result<Self> {
        let metadata = TableMetadataBuilder::new(
            spec.schema,
            spec.partition,
            SortOrder::unsorted_order(),
            spec.location.clone(),
            FormatVersion::V2,
            spec.properties,
        )?
        .build()?
        .metadata;
        let location = MetadataLocation::new_with_metadata(&spec.location, &metadata);
        metadata.write_to(&file_io, &location).await?;
        Ok(Self {
            file_io,
            metadata: Arc::new(metadata),
            metadata_location: location.to_string(),
        })
    }

    /// Reads a table's metadata.
    pub async fn open(file_io: FileIO, metadata_location: &str) -> Result<Self> {
        let metadata = TableMetadata::read_from(&file_io, metadata_location)
            .await
            .with_context(|| format!("reading table metadata at {metadata_location}"))?;
        Ok(Self {
            file_io,
            metadata: Arc::new(metadata),
            metadata_location: metadata_location.to_owned(),
        })
    }

    /// The current metadata.
    pub fn metadata(&self) -> &TableMetadata {
        &self.metadata
    }

    /// Where the current metadata is: what a catalog should point to.
    pub fn metadata_location(&self) -> &str {
        &self.metadata_location
    }

    /// Where the table's files are read and written.
    pub fn file_io(&self) -> &FileIO {
        &self.file_io
    }

    /// The schema that batches must have (field ids in its metadata).
    pub fn arrow_schema(&self) -> Result<ArrowSchemaRef> {
        let schema = iceberg::arrow::schema_to_arrow_schema(self.metadata.current_schema())?;
        Ok(Arc::new(schema))
    }

    /// The manifests of `main`'s snapshot, newest first; none if the table is empty.
    pub async fn manifests(&self) -> Result<Vec<ManifestFile>> {
        match self.metadata.current_snapshot() {
            Some(snapshot) => snapshot::manifests(&self.file_io, &self.metadata, snapshot).await,
            None => Ok(Vec::new()),
        }
    }

    /// Makes data files of batches, on any thread, without I/O.
    pub fn encoder(&self) -> Result<DataFileEncoder> {
        DataFileEncoder::new(&self.metadata)
    }

    /// Writes one data file for each partition in the batch (all rows in one if unpartitioned). Nothing is committed.
    pub async fn write(&self, batch: &RecordBatch) -> Result<Vec<DataFile>> {
        let encoder = self.encoder()?;
        let spec = self.metadata.default_partition_spec();
        let parts = if spec.is_unpartitioned() {
            vec![(Struct::empty(), batch.clone())]
        } else {
            RecordBatchPartitionSplitter::try_new_with_computed_values(
                self.metadata.current_schema().clone(),
                spec.clone(),
            )?
            .split(batch)?
            .into_iter()
            .map(|(key, rows)| (key.data().clone(), rows))
            .collect()
        };
        let mut files = Vec::new();
        for (partition, rows) in parts {
            let encoded = encoder.encode(&rows, partition)?;
            let output = self.file_io.new_output(encoded.data_file.file_path())?;
            output.write(encoded.bytes).await?;
            files.push(encoded.data_file);
        }
        // The splitter gives partitions in no particular order.
        files.sort_by(|a, b| a.file_path().cmp(b.file_path()));
        Ok(files)
    }

    /// Writes the batches and appends their files as one snapshot of `main`; gives its id.
    pub async fn append(&mut self, batches: &[RecordBatch]) -> Result<i64> {
        let mut files = Vec::new();
        for batch in batches {
            files.extend(self.write(batch).await?);
        }
        self.append_files(files).await
    }

    /// Appends files that are written already as one snapshot of `main`; gives its id.
    pub async fn append_files(&mut self, files: Vec<DataFile>) -> Result<i64> {
        self.append_files_to(MAIN_BRANCH, files).await
    }

    /// The same on a branch, which starts empty if it does not exist.
    pub async fn append_files_to(&mut self, branch: &str, files: Vec<DataFile>) -> Result<i64> {
        let snapshot =
            snapshot::append_snapshot(&self.file_io, &self.metadata, branch, files).await?;
        let id = snapshot.snapshot_id();
        self.update(|metadata| metadata.set_branch_snapshot(snapshot, branch))
            .await?;
        Ok(id)
    }

    /// Changes the metadata (schema, properties, refs, ...) and writes it as the next metadata file.
    pub async fn update(
        &mut self,
        change: impl FnOnce(TableMetadataBuilder) -> iceberg::Result<TableMetadataBuilder>,
    ) -> Result<()> {
        let builder = TableMetadataBuilder::new_from_metadata(
            self.metadata.as_ref().clone(),
            Some(self.metadata_location.clone()),
        );
        let metadata = change(builder)?.build()?.metadata;
        let current: MetadataLocation = self.metadata_location.parse()?;
        let next = current.with_next_version().with_new_metadata(&metadata);
        metadata.write_to(&self.file_io, &next).await?;
        self.metadata = Arc::new(metadata);
        self.metadata_location = next.to_string();
        Ok(())
    }

    /// The table as iceberg-rust reads it. Must be called in a tokio runtime.
    pub fn table(&self, ident: TableIdent) -> Result<Table> {
        Ok(Table::builder()
            .file_io(self.file_io.clone())
            .metadata(self.metadata.clone())
            .metadata_location(self.metadata_location.clone())
            .identifier(ident)
            .runtime(Runtime::try_current()?)
            .build()?)
    }
}
