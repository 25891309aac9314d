//! A snapshot that appends files: one new manifest, and a manifest list with it and all that the parent had.

use std::collections::{HashMap, HashSet};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use iceberg::io::FileIO;
use iceberg::spec::{
    DataFile, ManifestFile, ManifestList, ManifestListWriter, ManifestWriterBuilder, Operation,
    Snapshot, SnapshotRef, Summary, TableMetadata, UNASSIGNED_SEQUENCE_NUMBER,
};
use uuid::Uuid;

/// Writes the manifest and the manifest list; gives the snapshot for the next metadata file.
pub(super) async fn append_snapshot(
    file_io: &FileIO,
    metadata: &TableMetadata,
    branch: &str,
    files: Vec<DataFile>,
) -> Result<Snapshot> {
    ensure!(
        !files.is_empty(),
        "appending to {}: no files were given",
        metadata.location()
    );
    let parent = metadata.snapshot_for_ref(branch);
    let id = new_id(metadata);
    let commit = Uuid::new_v4();
    let folder = format!("{}/metadata", metadata.location());
    let summary = summary(parent, &files)?;

    let manifest_path = format!("{folder}/{commit}-m0.avro");
    let mut writer = ManifestWriterBuilder::new(
        file_io.new_output(manifest_path)?,
        Some(id),
        metadata.current_schema().clone(),
        metadata.default_partition_spec().as_ref().clone(),
    )
    .build_v2_data();
    for file in files {
        // Inherited from the manifest list: the number is known only when the commit succeeds.
        writer.add_file(file, UNASSIGNED_SEQUENCE_NUMBER)?;
    }
    let manifest = writer.write_manifest_file().await?;

    let inherited = match parent {
        Some(parent) => manifests(file_io, metadata, parent).await?,
        None => Vec::new(),
    };
    let sequence_number = metadata.next_sequence_number();
    let list_path = format!("{folder}/snap-{id}-0-{commit}.avro");
    let mut list = ManifestListWriter::v2(
        file_io.new_output(&list_path)?.writer().await?,
        id,
        parent.map(|parent| parent.snapshot_id()),
        sequence_number,
    );
    list.add_manifests(std::iter::once(manifest).chain(inherited))?;
    list.close().await?;

    Ok(Snapshot::builder()
        .with_snapshot_id(id)
        .with_parent_snapshot_id(parent.map(|parent| parent.snapshot_id()))
        .with_sequence_number(sequence_number)
        .with_timestamp_ms(later_than(metadata.last_updated_ms()))
        .with_manifest_list(list_path)
        .with_schema_id(metadata.current_schema_id())
        .with_summary(summary)
        .build())
}

/// What a snapshot's manifest list says.
pub(super) async fn manifests(
    file_io: &FileIO,
    metadata: &TableMetadata,
    snapshot: &SnapshotRef,
) -> Result<Vec<ManifestFile>> {
    let path = snapshot.manifest_list();
    let bytes = file_io.new_input(path)?.read().await?;
    let list = ManifestList::parse_with_version(&bytes, metadata.format_version())
        .with_context(|| format!("reading the manifest list {path}"))?;
    Ok(list.consume_entries().into_iter().collect())
}

/// Positive, and no other snapshot's.
fn new_id(metadata: &TableMetadata) -> i64 {
    loop {
        let (high, low) = Uuid::new_v4().as_u64_pair();
        let id = ((high ^ low) as i64) & i64::MAX;
        if id != 0 && metadata.snapshot_by_id(id).is_none() {
            return id;
        }
    }
}

/// Now, but always after `last`: a snapshot log whose times are equal has no order.
fn later_than(last: i64) -> i64 {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_millis() as i64);
    now.max(last + 1)
}

fn summary(parent: Option<&SnapshotRef>, files: &[DataFile]) -> Result<Summary> {
    let records: u64 = files.iter().map(DataFile::record_count).sum();
    let bytes: u64 = files.iter().map(DataFile::file_size_in_bytes).sum();
    let partitions: HashSet<_> = files
        .iter()
        .map(|file| format!("{:?}", file.partition()))
        .collect();
    let before = |key: &str| -> Result<u64> {
        let Some(parent) = parent else { return Ok(0) };
        let text = parent.summary().additional_properties.get(key);
        let text = text.with_context(|| format!("the parent's summary has no `{key}`"))?;
        text.parse()
            .with_context(|| format!("the parent's `{key}` is `{text}`"))
    };
    let mut properties = HashMap::new();
    let mut set = |key: &str, value: u64| properties.insert(key.to_owned(), value.to_string());
    set("added-data-files", files.len() as u64);
    set("added-records", records);
    set("added-files-size", bytes);
    set("changed-partition-count", partitions.len() as u64);
    set(
        "total-data-files",
        before("total-data-files")? + files.len() as u64,
    );
    set("total-records", before("total-records")? + records);
    set("total-files-size", before("total-files-size")? + bytes);
    for unchanged in [
        "total-delete-files",
        "total-position-deletes",
        "total-equality-deletes",
    ] {
        set(unchanged, before(unchanged)?);
    }
    Ok(Summary {
        operation: Operation::Append,
        additional_properties: properties,
    })
}
