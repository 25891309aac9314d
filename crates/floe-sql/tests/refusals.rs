//! What can't be read rightly is refused by name.

use floe_scan::{ErrorKind, ScanRequest};
use iceberg::spec::{
    DataContentType, DataFileBuilder, DataFileFormat, ManifestListWriter, ManifestWriterBuilder,
    Operation, Snapshot, Struct, Summary,
};

use crate::support::Fixture;

/// Commits one more file of this content and format, which nobody ever wrote.
async fn commit(
    fixture: &mut Fixture,
    content: DataContentType,
    format: DataFileFormat,
    name: &str,
) {
    let metadata = fixture.table.metadata().clone();
    let (io, location) = (
        fixture.table.file_io().clone(),
        metadata.location().to_string(),
    );
    let id = 4711;
    let file = DataFileBuilder::default()
        .content(content)
        .file_path(format!("{location}/data/{name}"))
        .file_format(format)
        .partition(Struct::empty())
        .partition_spec_id(0)
        .record_count(1)
        .file_size_in_bytes(100)
        .build()
        .unwrap();
    let output = io
        .new_output(format!("{location}/metadata/refused-m0.avro"))
        .unwrap();
    let builder = ManifestWriterBuilder::new(
        output,
        Some(id),
        metadata.current_schema().clone(),
        metadata.default_partition_spec().as_ref().clone(),
    );
    let mut writer = match content {
        DataContentType::Data => builder.build_v2_data(),
        _ => builder.build_v2_deletes(),
    };
    let sequence = metadata.next_sequence_number();
    writer.add_file(file, sequence).unwrap();
    let manifest = writer.write_manifest_file().await.unwrap();
    let list_path = format!("{location}/metadata/snap-refused.avro");
    let output = io.new_output(&list_path).unwrap().writer().await.unwrap();
    let mut list = ManifestListWriter::v2(output, id, metadata.current_snapshot_id(), sequence);
    let parent = metadata.current_snapshot().unwrap().clone();
    let table = fixture.opened();
    let inherited = table.manifest_list_reader(&parent).load().await.unwrap();
    list.add_manifests(std::iter::once(manifest).chain(inherited.consume_entries()))
        .unwrap();
    list.close().await.unwrap();
    let snapshot = Snapshot::builder()
        .with_snapshot_id(id)
        .with_parent_snapshot_id(Some(parent.snapshot_id()))
        .with_sequence_number(sequence)
        .with_timestamp_ms(parent.timestamp_ms() + 1)
        .with_manifest_list(list_path)
        .with_summary(Summary {
            operation: Operation::Delete,
            additional_properties: Default::default(),
        })
        .with_schema_id(metadata.current_schema_id())
        .build();
    fixture
        .table
        .update(|metadata| metadata.set_branch_snapshot(snapshot, "main"))
        .await
        .unwrap();
}

async fn refused(content: DataContentType, format: DataFileFormat, name: &str) -> String {
    let mut fixture = Fixture::simple(&[0..5]).await;
    commit(&mut fixture, content, format, name).await;
    let error = fixture.rows(ScanRequest::default()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error:?}");
    error.to_string()
}

#[tokio::test]
async fn files_that_are_not_parquet_are_refused_by_file_and_format() {
    let text = refused(DataContentType::Data, DataFileFormat::Avro, "rows.avro").await;
    assert!(
        text.contains("rows.avro") && text.contains("avro"),
        "{text}"
    );
    let text = refused(DataContentType::Data, DataFileFormat::Orc, "rows.orc").await;
    assert!(text.contains("rows.orc") && text.contains("orc"), "{text}");
    let text = refused(
        DataContentType::PositionDeletes,
        DataFileFormat::Avro,
        "deletes.avro",
    )
    .await;
    assert!(
        text.contains("deletes.avro") && text.contains("position deletes"),
        "{text}"
    );
}
