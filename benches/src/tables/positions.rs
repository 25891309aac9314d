//! Rows deleted by their position: Parquet files of (path, position), or deletion vectors in a Puffin file.

use std::collections::HashMap;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow};
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use flate2::Crc;
use floe_testing::table::TestTable;
use iceberg::puffin::{Blob, CompressionCodec, DELETION_VECTOR_V1, PuffinWriter};
use iceberg::spec::{
    DataContentType, DataFile, DataFileBuilder, DataFileFormat, FormatVersion, ManifestContentType,
};
use parquet::arrow::{ArrowWriter, PARQUET_FIELD_ID_META_KEY};
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use roaring::RoaringTreemap;
use uuid::Uuid;

use super::commit::{Added, commit};
use super::version_of;

/// Reserved field ids (spec, "Reserved Field IDs").
const FILE_PATH_ID: i32 = 2_147_483_546;
const POS_ID: i32 = 2_147_483_545;
/// What a deletion vector is computed over: the metadata column `_pos`.
const ROW_POSITION_ID: i32 = 2_147_483_645;
const VECTOR_MAGIC: [u8; 4] = [0xD1, 0xD3, 0x39, 0x64];
/// Length of a Puffin file's magic, behind which its first blob begins.
const PUFFIN_HEADER: u64 = 4;

/// Deletes one row in `every` by a position-delete file for each data file; gives how many rows that were.
pub(super) async fn delete(table: &mut TestTable, files: &[DataFile], every: u64) -> Result<u64> {
    let mut deletes = Vec::new();
    let mut deleted = 0;
    for file in files {
        let positions = positions(file, every);
        deleted += positions.len() as u64;
        let bytes = delete_file(file.file_path(), &positions)?;
        let path = format!(
            "{}/deletes/{}-deletes.parquet",
            table.metadata().location(),
            Uuid::new_v4()
        );
        let length = bytes.len() as u64;
        let output = table.file_io().new_output(&path)?;
        output.write(bytes.into()).await?;
        let delete = DataFileBuilder::default()
            .content(DataContentType::PositionDeletes)
            .file_path(path)
            .file_format(DataFileFormat::Parquet)
            .partition(file.partition().clone())
            .partition_spec_id(spec_of(table))
            .record_count(positions.len() as u64)
            .file_size_in_bytes(length)
            .referenced_data_file(Some(file.file_path().to_owned()))
            .build();
        deletes.push(delete.map_err(|e| anyhow!("describing a position-delete file: {e}"))?);
    }
    commit_deletes(table, version_of(table), deletes).await?;
    Ok(deleted)
}

/// Deletes one row in `every` by deletion vectors; gives how many rows that were.
pub(super) async fn delete_by_vectors(
    table: &mut TestTable,
    files: &[DataFile],
    every: u64,
) -> Result<u64> {
    let path = format!(
        "{}/deletes/{}-deletes.puffin",
        table.metadata().location(),
        Uuid::new_v4()
    );
    let output = table.file_io().new_output(&path)?;
    let mut writer = PuffinWriter::new(&output, HashMap::new(), false).await?;
    let mut placed = Vec::new();
    let mut offset = PUFFIN_HEADER;
    let mut deleted = 0;
    for file in files {
        let positions: RoaringTreemap = positions(file, every).into_iter().collect();
        let data = vector(&positions)?;
        let length = data.len() as u64;
        let blob = Blob::builder()
            .r#type(DELETION_VECTOR_V1.to_owned())
            .fields(vec![ROW_POSITION_ID])
            // Both are inherited: the snapshot is not known yet (Puffin spec, "deletion-vector-v1").
            .snapshot_id(-1)
            .sequence_number(-1)
            .data(data)
            .properties(HashMap::from([
                (
                    "referenced-data-file".to_owned(),
                    file.file_path().to_owned(),
                ),
                ("cardinality".to_owned(), positions.len().to_string()),
            ]))
            .build();
        writer.add(blob, CompressionCodec::None).await?;
        placed.push((file, positions.len(), offset, length));
        offset += length;
        deleted += positions.len();
    }
    writer.close().await?;
    let bytes = output.to_input_file().metadata().await?.size;
    let deletes = placed.into_iter().map(|(file, count, offset, length)| {
        let delete = DataFileBuilder::default()
            .content(DataContentType::PositionDeletes)
            .file_path(path.clone())
            .file_format(DataFileFormat::Puffin)
            .partition(file.partition().clone())
            .partition_spec_id(spec_of(table))
            .record_count(count)
            .file_size_in_bytes(bytes)
            .referenced_data_file(Some(file.file_path().to_owned()))
            .content_offset(Some(i64::try_from(offset)?))
            .content_size_in_bytes(Some(i64::try_from(length)?))
            .build();
        delete.map_err(|e| anyhow!("describing a deletion vector: {e}"))
    });
    let deletes = deletes.collect::<Result<Vec<_>>>()?;
    commit_deletes(table, FormatVersion::V3, deletes).await?;
    Ok(deleted)
}

async fn commit_deletes(
    table: &mut TestTable,
    version: FormatVersion,
    files: Vec<DataFile>,
) -> Result<()> {
    let added = Added {
        content: ManifestContentType::Deletes,
        spec_id: spec_of(table),
        files,
    };
    commit(table, version, [added]).await
}

fn spec_of(table: &TestTable) -> i32 {
    table.metadata().default_partition_spec().spec_id()
}

fn positions(file: &DataFile, every: u64) -> Vec<u64> {
    let every = usize::try_from(every).unwrap_or(usize::MAX);
    (0..file.record_count()).step_by(every).collect()
}

fn delete_file(path: &str, positions: &[u64]) -> Result<Vec<u8>> {
    let field = |name: &str, kind, id: i32| {
        let id = (PARQUET_FIELD_ID_META_KEY.to_owned(), id.to_string());
        Field::new(name, kind, false).with_metadata(HashMap::from([id]))
    };
    let schema = Arc::new(Schema::new(vec![
        field("file_path", DataType::Utf8, FILE_PATH_ID),
        field("pos", DataType::Int64, POS_ID),
    ]));
    let paths = StringArray::from_iter_values(std::iter::repeat_n(path, positions.len()));
    let places = positions.iter().map(|position| *position as i64);
    let columns: Vec<ArrayRef> = vec![
        Arc::new(paths),
        Arc::new(Int64Array::from_iter_values(places)),
    ];
    encode(&RecordBatch::try_new(schema, columns)?)
}

/// A batch as a Parquet file.
pub(super) fn encode(batch: &RecordBatch) -> Result<Vec<u8>> {
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
        .build();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties))?;
    writer.write(batch).context("encoding a delete file")?;
    writer.close()?;
    Ok(bytes)
}

/// Length, magic, the bitmap in its portable form, checksum (Puffin spec, "deletion-vector-v1").
fn vector(positions: &RoaringTreemap) -> Result<Vec<u8>> {
    let mut body = VECTOR_MAGIC.to_vec();
    positions.serialize_into(&mut body)?;
    let mut crc = Crc::new();
    crc.update(&body);
    let mut blob = u32::try_from(body.len())?.to_be_bytes().to_vec();
    blob.extend(&body);
    blob.extend(crc.sum().to_be_bytes());
    Ok(blob)
}
