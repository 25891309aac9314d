//! A snapshot that adds files of any content to what its parent has. Format version 3 numbers its rows.

use std::collections::HashMap;

use anyhow::{Context, Result};
use floe_testing::table::TestTable;
use iceberg::spec::{
    DataFile, FormatVersion, MAIN_BRANCH, ManifestContentType, ManifestFile, ManifestListWriter,
    ManifestWriter, ManifestWriterBuilder, Operation, Snapshot, Summary, TableMetadata,
    UNASSIGNED_SEQUENCE_NUMBER,
};
use uuid::Uuid;

/// Files of one new manifest.
pub(super) struct Added {
    pub(super) content: ManifestContentType,
    pub(super) spec_id: i32,
    pub(super) files: Vec<DataFile>,
}

/// Adds the files as one snapshot of main, a manifest each; the table is of this format version from now on.
pub(super) async fn commit(
    table: &mut TestTable,
    version: FormatVersion,
    added: impl IntoIterator<Item = Added>,
) -> Result<()> {
    let metadata = table.metadata().clone();
    let id = new_id();
    let mut manifests = Vec::new();
    for (number, added) in added.into_iter().enumerate() {
        manifests.push(write_manifest(table, version, id, number, added).await?);
    }
    manifests.extend(table.manifests().await?);

    let parent = metadata.current_snapshot_id();
    let sequence_number = metadata.next_sequence_number();
    let path = format!("{}/metadata/snap-{id}.avro", metadata.location());
    let output = table.file_io().new_output(&path)?.writer().await?;
    let first_row = metadata.next_row_id();
    let mut list = match version {
        FormatVersion::V3 => {
            ManifestListWriter::v3(output, id, parent, sequence_number, Some(first_row))
        }
        _ => ManifestListWriter::v2(output, id, parent, sequence_number),
    };
    list.add_manifests(manifests.into_iter())?;
    let numbered = list.next_row_id();
    list.close().await?;

    let snapshot = Snapshot::builder()
        .with_snapshot_id(id)
        .with_parent_snapshot_id(parent)
        .with_sequence_number(sequence_number)
        .with_timestamp_ms(metadata.last_updated_ms() + 1)
        .with_manifest_list(path)
        .with_schema_id(metadata.current_schema_id())
        .with_summary(summary(&metadata));
    let snapshot = match numbered {
        Some(next) => snapshot.with_row_range(first_row, next - first_row).build(),
        None => snapshot.build(),
    };
    table
        .update(|builder| {
            let builder = builder.upgrade_format_version(version)?;
            builder.set_branch_snapshot(snapshot, MAIN_BRANCH)
        })
        .await
}

async fn write_manifest(
    table: &TestTable,
    version: FormatVersion,
    snapshot: i64,
    number: usize,
    added: Added,
) -> Result<ManifestFile> {
    let metadata = table.metadata();
    let spec = metadata
        .partition_spec_by_id(added.spec_id)
        .with_context(|| {
            format!(
                "{} has no partition spec {}",
                metadata.location(),
                added.spec_id
            )
        })?;
    let path = format!("{}/metadata/{snapshot}-m{number}.avro", metadata.location());
    let builder = ManifestWriterBuilder::new(
        table.file_io().new_output(path)?,
        Some(snapshot),
        metadata.current_schema().clone(),
        spec.as_ref().clone(),
    );
    let mut writer = writer(builder, version, added.content);
    for file in added.files {
        writer.add_file(file, UNASSIGNED_SEQUENCE_NUMBER)?;
    }
    Ok(writer.write_manifest_file().await?)
}

fn writer(
    builder: ManifestWriterBuilder,
    version: FormatVersion,
    content: ManifestContentType,
) -> ManifestWriter {
    match (version, content) {
        (FormatVersion::V3, ManifestContentType::Data) => builder.build_v3_data(),
        (FormatVersion::V3, ManifestContentType::Deletes) => builder.build_v3_deletes(),
        (_, ManifestContentType::Data) => builder.build_v2_data(),
        (_, ManifestContentType::Deletes) => builder.build_v2_deletes(),
    }
}

/// The parent's totals: readers of a snapshot need none of its own.
fn summary(metadata: &TableMetadata) -> Summary {
    let parent = metadata.current_snapshot();
    let totals = parent.map(|parent| &parent.summary().additional_properties);
    let totals: HashMap<String, String> = totals
        .into_iter()
        .flatten()
        .filter(|(name, _)| name.starts_with("total-"))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    Summary {
        operation: Operation::Overwrite,
        additional_properties: totals,
    }
}

/// Positive, and hardly any other snapshot's.
fn new_id() -> i64 {
    let (high, low) = Uuid::new_v4().as_u64_pair();
    ((high ^ low) as i64) & i64::MAX
}
