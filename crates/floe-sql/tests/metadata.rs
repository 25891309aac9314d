//! Metadata tables by SQL.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, StringArray};
use datafusion::physical_plan::displayable;
use datafusion::prelude::SessionContext;
use floe_scan::inspect::MetadataTable;
use iceberg::spec::{
    DataContentType, DataFileBuilder, DataFileFormat, SnapshotReference, SnapshotRetention,
    Transform, UnboundPartitionSpec,
};

use crate::session::{session, text};
use crate::support::{Fixture, simple_schema};

/// Two snapshots, the first of which has the tag `v1` and the branch `side`.
async fn two_snapshots() -> (Fixture, i64) {
    let mut fixture = Fixture::simple(&[0..10]).await;
    let first = fixture.table.metadata().current_snapshot_id().unwrap();
    fixture.append_ids(10..15).await;
    let tag = SnapshotRetention::Tag {
        max_ref_age_ms: None,
    };
    let branch = SnapshotRetention::branch(None, None, None);
    for (name, retention) in [("v1", tag), ("side", branch)] {
        let reference = SnapshotReference::new(first, retention);
        let set = fixture
            .table
            .update(|metadata| metadata.set_ref(name, reference));
        set.await.unwrap();
    }
    (fixture, first)
}

/// The whole numbers of the one row that a query gives.
async fn numbers(session: &SessionContext, sql: &str) -> Vec<i64> {
    let rows = session.sql(sql).await.unwrap().collect().await.unwrap();
    let row = rows.iter().find(|batch| batch.num_rows() == 1).unwrap();
    let columns = row.columns().iter();
    columns
        .map(|column| column.as_primitive::<Int64Type>().value(0))
        .collect()
}

async fn why(session: &SessionContext, sql: &str) -> String {
    session.sql(sql).await.unwrap_err().to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_metadata_table_has_its_rows() {
    let (fixture, _) = two_snapshots().await;
    let (session, _) = session(&fixture, 2).await;
    for (table, rows) in [
        (MetadataTable::Snapshots, 2),
        (MetadataTable::Refs, 3),
        (MetadataTable::History, 2),
        (MetadataTable::Manifests, 2),
        (MetadataTable::Files, 2),
        (MetadataTable::DataFiles, 2),
        (MetadataTable::DeleteFiles, 0),
        (MetadataTable::Entries, 2),
        (MetadataTable::Partitions, 1),
    ] {
        let name = table.name();
        let counted = numbers(&session, &format!("SELECT count(*) FROM \"t${name}\"")).await;
        assert_eq!(counted, [rows], "{name}");
        let whole = session
            .sql(&format!("SELECT * FROM ns.\"t${name}\""))
            .await
            .unwrap();
        let whole = whole.collect().await.unwrap();
        let found: usize = whole.iter().map(|batch| batch.num_rows()).sum();
        assert_eq!(found as i64, rows, "{name}");
    }
    let sum =
        "SELECT sum(record_count), max(readable_metrics['id']['upper_bound']) FROM \"t$files\"";
    assert_eq!(numbers(&session, sum).await, [15, 14]);
    let total = "SELECT record_count, CAST(file_count AS BIGINT) FROM \"t$partitions\"";
    assert_eq!(numbers(&session, total).await, [15, 2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_state_has_its_own() {
    let (fixture, first) = two_snapshots().await;
    let (session, loaded) = session(&fixture, 2).await;
    let snapshot = format!("t$snapshot_{first}");
    for (state, rows) in [
        ("t", 15),
        ("t$branch_main", 15),
        ("t$branch_side", 10),
        ("t$tag_v1", 10),
        (snapshot.as_str(), 10),
        ("t$at_2100-01-01T00:00:00Z", 15),
    ] {
        let sum = |table: &str| format!("SELECT sum(record_count) FROM \"{state}${table}\"");
        assert_eq!(numbers(&session, &sum("files")).await, [rows], "{state}");
        assert_eq!(
            numbers(&session, &sum("partitions")).await,
            [rows],
            "{state}"
        );
        let manifests = format!("SELECT count(*) FROM \"{state}$manifests\"");
        let expected = if rows == 15 { 2 } else { 1 };
        assert_eq!(numbers(&session, &manifests).await, [expected], "{state}");
        // What is the table's is the same whatever the state.
        let snapshots = format!("SELECT count(*) FROM \"{state}$snapshots\"");
        assert_eq!(numbers(&session, &snapshots).await, [2], "{state}");
    }
    // Two states in one query, which asks for the table once.
    let before = loaded.load(Ordering::Relaxed);
    let added = "SELECT a.file_path FROM \"t$files\" a LEFT ANTI JOIN \"t$tag_v1$files\" b ON a.file_path = b.file_path";
    let rows = session.sql(added).await.unwrap().collect().await.unwrap();
    assert_eq!(rows.iter().map(|batch| batch.num_rows()).sum::<usize>(), 1);
    assert_eq!(loaded.load(Ordering::Relaxed), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_metadata_table_is_not_found() {
    let (fixture, _) = two_snapshots().await;
    let (session, _) = session(&fixture, 2).await;
    for name in [
        "t$nope",
        "t$",
        "$files",
        "u$files",
        "t$files$files",
        "t$Files",
    ] {
        let error = why(&session, &format!("SELECT * FROM \"{name}\"")).await;
        assert!(error.contains(name), "{error}");
    }
    let error = why(&session, "SELECT * FROM \"t$branch_nope$files\"").await;
    assert!(error.contains("no branch or tag 'nope'"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn manifests_are_read_when_the_query_runs_and_only_columns_that_it_needs() {
    let (fixture, _) = two_snapshots().await;
    let (session, _) = session(&fixture, 2).await;
    let sql = "SELECT file_path FROM \"t$files\" WHERE record_count > 5";
    let plan = session.sql(sql).await.unwrap();
    let plan = plan.create_physical_plan().await.unwrap();
    let shown = displayable(plan.as_ref()).indent(false).to_string();
    assert!(
        shown.contains("projection=[file_path, record_count]"),
        "{shown}"
    );
    // A manifest that is gone does not keep a query from being planned.
    let metadata = fixture
        .dir
        .path()
        .join(crate::support::BUCKET)
        .join("metadata");
    for entry in std::fs::read_dir(metadata).unwrap() {
        let path = entry.unwrap().path();
        if path.to_str().unwrap().ends_with("-m0.avro") {
            std::fs::remove_file(path).unwrap();
        }
    }
    let planned = session.sql(sql).await.unwrap();
    let error = planned.collect().await.unwrap_err().to_string();
    assert!(error.contains("-m0.avro"), "{error}");
    // Those that the manifest list alone tells are there.
    assert_eq!(
        numbers(&session, "SELECT count(*) FROM \"t$manifests\"").await,
        [2]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_ends_the_reading() {
    let (fixture, _) = two_snapshots().await;
    let (session, _) = session(&fixture, 2).await;
    let rows = session
        .sql("SELECT * FROM \"t$files\" LIMIT 1")
        .await
        .unwrap();
    let rows = rows.collect().await.unwrap();
    assert_eq!(rows.iter().map(|batch| batch.num_rows()).sum::<usize>(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_table_has_metadata_too() {
    let fixture = Fixture::new(simple_schema(), &["name"]).await;
    let (session, _) = session(&fixture, 2).await;
    for table in MetadataTable::ALL {
        let name = table.name();
        let sql = format!("SELECT * FROM \"t${name}\"");
        let rows = session.sql(&sql).await.unwrap().collect().await.unwrap();
        assert!(rows.iter().all(|batch| batch.num_rows() == 0), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn several_specs_share_one_partition_column() {
    let mut fixture = Fixture::new(simple_schema(), &["name"]).await;
    let rows = |ids: Vec<i64>, name: &str| -> Vec<ArrayRef> {
        let names = StringArray::from(vec![name; ids.len()]);
        vec![Arc::new(Int64Array::from(ids)), Arc::new(names)]
    };
    fixture.append(rows(vec![1, 2], "a")).await;
    fixture.append(rows(vec![3], "b")).await;
    let bucketed = UnboundPartitionSpec::builder()
        .with_spec_id(1)
        .add_partition_field(2, "name", Transform::Identity)
        .unwrap()
        .add_partition_field(1, "id_bucket", Transform::Bucket(4))
        .unwrap()
        .build();
    let path = format!("{}/data/extra.parquet", fixture.table.metadata().location());
    fixture
        .table
        .update(|metadata| metadata.add_default_partition_spec(bucketed))
        .await
        .unwrap();
    let spec_id = fixture.table.metadata().default_partition_spec_id();
    let mut file = DataFileBuilder::default();
    file.content(DataContentType::Data)
        .file_path(path)
        .file_format(DataFileFormat::Parquet)
        .record_count(7)
        .file_size_in_bytes(100)
        .partition_spec_id(spec_id)
        .partition(iceberg::spec::Struct::from_iter([
            Some(iceberg::spec::Literal::string("a")),
            Some(iceberg::spec::Literal::int(2)),
        ]));
    fixture
        .table
        .append_files(vec![file.build().unwrap()])
        .await
        .unwrap();
    let (session, _) = session(&fixture, 2).await;
    let shown = text(
        &session,
        "SELECT partition['name'] AS name, partition['id_bucket'] AS bucket, spec_id, record_count, file_count \
         FROM \"t$partitions\" ORDER BY name, bucket NULLS FIRST",
    )
    .await;
    let lines: Vec<&str> = shown
        .lines()
        .filter(|line| line.starts_with("| a ") || line.starts_with("| b "))
        .collect();
    let cells = |line: &str| {
        line.split('|')
            .map(|cell| cell.trim().to_string())
            .collect::<Vec<_>>()
            .join(" ")
    };
    let lines: Vec<String> = lines.into_iter().map(cells).collect();
    assert_eq!(
        lines,
        [" a  0 2 1 ", " a 2 1 7 1 ", " b  0 1 1 "],
        "{shown}"
    );
    let summaries = text(&session, "SELECT partition_summaries FROM \"t$manifests\"").await;
    assert!(
        summaries.contains("lower_bound: a, upper_bound: a")
            && summaries.contains("lower_bound: 2, upper_bound: 2"),
        "{summaries}"
    );
}
