//! Rows deleted by what they hold: one file of event ids, most of which no row has.

use std::collections::HashMap;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use bytes::Bytes;
use floe_testing::table::TestTable;
use iceberg::spec::{
    DataContentType, DataFile, DataFileBuilder, DataFileFormat, Datum, ManifestContentType, Struct,
    UnboundPartitionSpec,
};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::arrow::{PARQUET_FIELD_ID_META_KEY, ProjectionMask};
use uuid::Uuid;

use super::commit::{Added, commit};
use super::positions::encode;
use super::{local_path, version_of};

/// The column that tells events apart.
const KEY: &str = "event_id";

/// Deletes one row in `every` by a file of `keys` event ids that holds for all partitions; gives how many rows that were.
pub(super) async fn delete(
    table: &mut TestTable,
    files: &[DataFile],
    every: usize,
    keys: usize,
) -> Result<u64> {
    let spec_id = unpartitioned_spec(table).await?;
    let metadata = table.metadata();
    let id = metadata.current_schema().field_id_by_name(KEY);
    let id = id.with_context(|| format!("{} has no column {KEY}", metadata.location()))?;

    let mut wanted = Vec::with_capacity(keys);
    for file in files {
        let ids = event_ids(file)?;
        wanted.extend(ids.into_iter().step_by(every));
    }
    wanted.truncate(keys);
    let deleted = wanted.len() as u64;
    let (Some(&lowest), Some(&highest)) = (wanted.iter().min(), wanted.iter().max()) else {
        return Err(anyhow!("{} has no rows to delete", metadata.location()));
    };
    // Within the bounds of those that exist, so that no file can be told to have none of them.
    let strangers = strangers(lowest, highest).take(keys - wanted.len());
    wanted.extend(strangers);

    let bytes = key_file(id, wanted)?;
    let path = format!(
        "{}/deletes/{}-equality.parquet",
        metadata.location(),
        Uuid::new_v4()
    );
    let length = bytes.len() as u64;
    let output = table.file_io().new_output(&path)?;
    output.write(bytes.into()).await?;
    let delete = DataFileBuilder::default()
        .content(DataContentType::EqualityDeletes)
        .file_path(path)
        .file_format(DataFileFormat::Parquet)
        .partition(Struct::empty())
        .partition_spec_id(spec_id)
        .record_count(keys as u64)
        .file_size_in_bytes(length)
        .value_counts(HashMap::from([(id, keys as u64)]))
        .null_value_counts(HashMap::from([(id, 0)]))
        .lower_bounds(HashMap::from([(id, Datum::long(lowest))]))
        .upper_bounds(HashMap::from([(id, Datum::long(highest))]))
        .equality_ids(Some(vec![id]))
        .build()
        .map_err(|e| anyhow!("describing an equality-delete file: {e}"))?;
    let added = Added {
        content: ManifestContentType::Deletes,
        spec_id,
        files: vec![delete],
    };
    commit(table, version_of(table), [added]).await?;
    Ok(deleted)
}

/// The id of the table's spec without fields, which makes a delete hold everywhere; the table gets one if it had none.
async fn unpartitioned_spec(table: &mut TestTable) -> Result<i32> {
    let find = |table: &TestTable| {
        let mut specs = table.metadata().partition_specs_iter();
        let found = specs.find(|spec| spec.is_unpartitioned());
        found.map(|spec| spec.spec_id())
    };
    if find(table).is_none() {
        table
            .update(|builder| builder.add_partition_spec(UnboundPartitionSpec::default()))
            .await?;
    }
    find(table).context("adding a partition spec without fields")
}

fn event_ids(file: &DataFile) -> Result<Vec<i64>> {
    let path = local_path(file.file_path());
    let bytes = std::fs::read(path).with_context(|| format!("reading {}", path.display()))?;
    let builder = ParquetRecordBatchReaderBuilder::try_new(Bytes::from(bytes))?;
    let only = ProjectionMask::columns(builder.parquet_schema(), [KEY]);
    let mut ids = Vec::new();
    for batch in builder.with_projection(only).build()? {
        let batch = batch?;
        let column = batch.column_by_name(KEY);
        let column = column.with_context(|| format!("{} has no {KEY}", path.display()))?;
        ids.extend(column.as_primitive::<Int64Type>().iter().flatten());
    }
    Ok(ids)
}

/// Ids between these that hardly any row has (a linear congruential generator, Knuth's constants).
fn strangers(lowest: i64, highest: i64) -> impl Iterator<Item = i64> {
    let mut state = 20_241_105u64;
    let span = highest.abs_diff(lowest).max(1);
    std::iter::repeat_with(move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        lowest.saturating_add_unsigned(((u128::from(state) * u128::from(span)) >> 64) as u64)
    })
}

fn key_file(id: i32, keys: Vec<i64>) -> Result<Vec<u8>> {
    let id = (PARQUET_FIELD_ID_META_KEY.to_owned(), id.to_string());
    let field = Field::new(KEY, DataType::Int64, true).with_metadata(HashMap::from([id]));
    let column: ArrayRef = Arc::new(Int64Array::from(keys));
    let schema = Arc::new(Schema::new(vec![field]));
    encode(&RecordBatch::try_new(schema, vec![column])?)
}
