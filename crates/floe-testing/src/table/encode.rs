//! A batch as the bytes of a Parquet file, and what a manifest says of it. Pure: no I/O, so that threads can share it.

use std::collections::HashMap;
use std::sync::Arc;

use anyhow::{Context, Result};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, SchemaRef as ArrowSchemaRef};
use bytes::Bytes;
use iceberg::spec::{
    DataContentType, DataFile, DataFileBuilder, DataFileFormat, Datum, PartitionSpecRef,
    PrimitiveType, SchemaRef, Struct, TableMetadata,
};
use parquet::arrow::PARQUET_FIELD_ID_META_KEY;
use parquet::arrow::arrow_writer::{ArrowWriter, ArrowWriterOptions};
use parquet::basic::{Compression, Type as PhysicalType, ZstdLevel};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::statistics::Statistics;
use uuid::Uuid;

/// Turns batches into data files of one table.
#[derive(Clone, Debug)]
pub struct DataFileEncoder {
    location: String,
    schema: SchemaRef,
    arrow_schema: ArrowSchemaRef,
    spec: PartitionSpecRef,
    properties: WriterProperties,
}

/// A data file that is not written yet.
#[derive(Clone, Debug)]
pub struct EncodedFile {
    /// Its content.
    pub bytes: Bytes,
    /// What the manifest will say; `file_path()` is where the content belongs.
    pub data_file: DataFile,
}

impl DataFileEncoder {
    pub(super) fn new(metadata: &TableMetadata) -> Result<Self> {
        let schema = metadata.current_schema().clone();
        let arrow_schema = Arc::new(iceberg::arrow::schema_to_arrow_schema(&schema)?);
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
            // Bounds come from these statistics: a truncated one would be a wrong bound.
            .set_statistics_truncate_length(None)
            // The files have a page a column chunk: page indexes would only make the footer larger.
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_offset_index_disabled(true)
            .build();
        Ok(Self {
            location: metadata.location().to_owned(),
            schema,
            arrow_schema,
            spec: metadata.default_partition_spec().clone(),
            properties,
        })
    }

    /// The schema that batches must have.
    pub fn arrow_schema(&self) -> &ArrowSchemaRef {
        &self.arrow_schema
    }

    /// Encodes rows that all belong to `partition` as one file under a new name.
    /// The same rows give the same bytes; only the name differs.
    pub fn encode(&self, batch: &RecordBatch, partition: Struct) -> Result<EncodedFile> {
        // The Arrow schema in the footer would be larger than the rest of it, and field ids say all that readers need.
        let options = ArrowWriterOptions::new()
            .with_properties(self.properties.clone())
            .with_skip_arrow_metadata(true);
        let mut bytes = Vec::new();
        let mut writer =
            ArrowWriter::try_new_with_options(&mut bytes, self.arrow_schema.clone(), options)?;
        writer.write(batch).context("encoding a data file")?;
        let footer = writer.close()?;
        let name = format!("{}.parquet", Uuid::new_v4());
        let path = if self.spec.is_unpartitioned() {
            format!("{}/data/{name}", self.location)
        } else {
            let folder = self.spec.partition_to_path(&partition, self.schema.clone());
            format!("{}/data/{folder}/{name}", self.location)
        };
        let mut statistics = FileStatistics::of(&footer, &self.schema)?;
        statistics.count_nans(batch);
        let data_file = DataFileBuilder::default()
            .content(DataContentType::Data)
            .file_path(path)
            .file_format(DataFileFormat::Parquet)
            .partition(partition)
            .partition_spec_id(self.spec.spec_id())
            .record_count(batch.num_rows() as u64)
            .file_size_in_bytes(bytes.len() as u64)
            .column_sizes(statistics.sizes)
            .value_counts(statistics.values)
            .null_value_counts(statistics.nulls)
            .nan_value_counts(statistics.nans)
            .lower_bounds(statistics.lower)
            .upper_bounds(statistics.upper)
            .split_offsets(Some(split_offsets(&footer)))
            .build()
            .map_err(|e| anyhow::anyhow!("describing a data file: {e}"))?;
        Ok(EncodedFile {
            bytes: bytes.into(),
            data_file,
        })
    }
}

/// Where row groups start, as Java's Iceberg says it.
fn split_offsets(footer: &ParquetMetaData) -> Vec<i64> {
    footer
        .row_groups()
        .iter()
        .filter_map(|group| group.columns().first())
        .map(|column| {
            let data = column.data_page_offset();
            column
                .dictionary_page_offset()
                .map_or(data, |at| at.min(data))
        })
        .collect()
}

/// By field id.
#[derive(Default)]
struct FileStatistics {
    sizes: HashMap<i32, u64>,
    values: HashMap<i32, u64>,
    nulls: HashMap<i32, u64>,
    nans: HashMap<i32, u64>,
    lower: HashMap<i32, Datum>,
    upper: HashMap<i32, Datum>,
}

impl FileStatistics {
    fn of(footer: &ParquetMetaData, schema: &SchemaRef) -> Result<Self> {
        let mut all = Self::default();
        // A column with a chunk whose bounds are unknown has none.
        let mut unbounded = Vec::new();
        for column in footer.row_groups().iter().flat_map(|group| group.columns()) {
            let info = column.column_descr().self_type().get_basic_info();
            if !info.has_id() {
                continue;
            }
            let id = info.id();
            *all.sizes.entry(id).or_default() += column.compressed_size() as u64;
            *all.values.entry(id).or_default() += column.num_values() as u64;
            let nulls = column.statistics().and_then(Statistics::null_count_opt);
            *all.nulls.entry(id).or_default() += nulls.unwrap_or(0);
            let field = schema.field_by_id(id);
            let Some(kind) = field.and_then(|field| field.field_type.as_primitive_type()) else {
                continue;
            };
            // Of elements of lists and maps a bound means nothing.
            if column.column_descr().max_rep_level() > 0 {
                continue;
            }
            match bounds(column, kind)? {
                Bounds::Known(lower, upper) => all.widen(id, lower, upper),
                Bounds::NoValues => {}
                Bounds::Unknown => unbounded.push(id),
            }
        }
        for id in unbounded {
            all.lower.remove(&id);
            all.upper.remove(&id);
        }
        Ok(all)
    }

    fn widen(&mut self, id: i32, lower: Datum, upper: Datum) {
        let known = self.lower.entry(id).or_insert_with(|| lower.clone());
        if lower < *known {
            *known = lower;
        }
        let known = self.upper.entry(id).or_insert_with(|| upper.clone());
        if upper > *known {
            *known = upper;
        }
    }

    /// Parquet's statistics don't count NaN; top-level columns do here.
    fn count_nans(&mut self, batch: &RecordBatch) {
        for (field, array) in batch.schema().fields().iter().zip(batch.columns()) {
            let id = field.metadata().get(PARQUET_FIELD_ID_META_KEY);
            let Some(id) = id.and_then(|id| id.parse().ok()) else {
                continue;
            };
            let nans = match array.data_type() {
                DataType::Float64 => {
                    let values = array.as_primitive::<Float64Type>();
                    values.iter().flatten().filter(|v| v.is_nan()).count()
                }
                DataType::Float32 => {
                    let values = array.as_primitive::<Float32Type>();
                    values.iter().flatten().filter(|v| v.is_nan()).count()
                }
                _ => continue,
            };
            self.nans.insert(id, nans as u64);
            if nans > 0 && nans + array.null_count() == array.len() {
                self.lower.remove(&id);
                self.upper.remove(&id);
            }
        }
    }
}

enum Bounds {
    Known(Datum, Datum),
    /// All null: no bound, and no other chunk's bound is spoilt.
    NoValues,
    Unknown,
}

/// The bounds of one column chunk. Parquet's plain encoding is Iceberg's single-value encoding but for decimals.
fn bounds(column: &ColumnChunkMetaData, kind: &PrimitiveType) -> Result<Bounds> {
    let Some(statistics) = column.statistics() else {
        return Ok(Bounds::Unknown);
    };
    if statistics.null_count_opt() == Some(column.num_values() as u64) {
        return Ok(Bounds::NoValues);
    }
    let (Some(min), Some(max)) = (statistics.min_bytes_opt(), statistics.max_bytes_opt()) else {
        return Ok(Bounds::Unknown);
    };
    if !statistics.min_is_exact() || !statistics.max_is_exact() {
        return Ok(Bounds::Unknown);
    }
    let little_endian = matches!(
        statistics.physical_type(),
        PhysicalType::INT32 | PhysicalType::INT64
    );
    let datum = |bytes: &[u8]| {
        let mut bytes = bytes.to_vec();
        if little_endian && matches!(kind, PrimitiveType::Decimal { .. }) {
            bytes.reverse();
        }
        Datum::try_from_bytes(&bytes, kind.clone())
    };
    Ok(Bounds::Known(datum(min)?, datum(max)?))
}
