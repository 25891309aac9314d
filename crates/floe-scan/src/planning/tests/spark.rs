//! Plans of the tables that Spark wrote, against the counts in their snapshots and Spark's own rows.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use floe_store::{Store, StoreConfig};
use iceberg::spec::TableMetadata;
use iceberg::table::Table;
use iceberg::{Runtime, TableIdent};
use serde_json::Value;

use crate::error::ErrorKind;
use crate::planning::Planner;
use crate::request::At;
use crate::snapshot::Position;
use crate::task::{DeleteFile, DeleteKind, FileTask};

#[tokio::test]
async fn every_snapshot_of_spark_gives_the_files_that_it_counts() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/tables/spark");
    let root = root.canonicalize().unwrap();
    let json = std::fs::read(root.join("fixtures.json")).unwrap();
    let json: Value = serde_json::from_slice(&json).unwrap();
    let mut config = StoreConfig::default();
    let lake = root.join("lake");
    config
        .location_map
        .insert("file:/lake", lake.to_str().unwrap())
        .unwrap();
    let store = Store::open(config).unwrap();
    let (mut plans, mut with_vectors) = (0, 0);
    for described in json["tables"].as_array().unwrap() {
        let location = format!("file:/{}", described["metadata_file"].as_str().unwrap());
        let io = store.file_io(&HashMap::new(), None);
        let metadata = TableMetadata::read_from(&io, &location).await.unwrap();
        let name = described["table"].as_str().unwrap();
        let table = Table::builder()
            .file_io(store.file_io(&HashMap::new(), Some(metadata.uuid())))
            .metadata(metadata)
            .metadata_location(location)
            .identifier(TableIdent::from_strs(name.split('.')).unwrap())
            .runtime(Runtime::current())
            .build()
            .unwrap();
        for at in described["refs"].as_array().unwrap() {
            let Some(id) = at["snapshot_id"].as_i64() else {
                continue;
            };
            let position = Position::resolve(&table, &At::Snapshot(id)).unwrap();
            let what = format!("{name} at {}", at["ref"]);
            let plan = Planner::new(&store, &position).start().await.unwrap();
            let (tasks, summary) = match plan.collect().await {
                Ok(planned) => planned,
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Unsupported, "{what}: {error}");
                    assert!(
                        ["t.fmt_avro", "t.fmt_orc", "t.eq_avro"].contains(&name),
                        "{what}: {error}"
                    );
                    continue;
                }
            };
            plans += 1;
            assert_eq!(summary.files, tasks.len() as u64, "{what}");
            check_counts(&tasks, &position, &what);
            with_vectors += u64::from(check_vectors(&tasks, at["rows"].as_u64().unwrap(), &what));
        }
    }
    assert!(plans > 90, "{plans}");
    assert!(with_vectors > 5, "{with_vectors}");
}

fn check_counts(tasks: &[FileTask], position: &Position, what: &str) {
    let snapshot = position.snapshot().unwrap();
    let told = |name: &str| -> Option<u64> {
        let properties = &snapshot.summary().additional_properties;
        properties.get(name).map(|value| value.parse().unwrap())
    };
    if let Some(files) = told("total-data-files") {
        assert_eq!(tasks.len() as u64, files, "{what}");
    }
    if let Some(rows) = told("total-records") {
        assert_eq!(
            tasks.iter().map(|task| task.file.rows).sum::<u64>(),
            rows,
            "{what}"
        );
    }
    if let Some(deletes) = told("total-delete-files") {
        assert!(distinct(tasks).len() as u64 <= deletes, "{what}");
    }
    if position.table().metadata().format_version() == iceberg::spec::FormatVersion::V3
        && snapshot.first_row_id().is_some()
    {
        assert!(
            tasks.iter().all(|task| task.file.first_row_id.is_some()),
            "{what}"
        );
        let mut ids: Vec<_> = tasks
            .iter()
            .map(|task| (task.file.first_row_id, task.file.rows))
            .collect();
        ids.sort_unstable();
        let apart = |pair: &[(Option<i64>, u64)]| {
            pair[0].0.unwrap() + i64::try_from(pair[0].1).unwrap() <= pair[1].0.unwrap()
        };
        assert!(ids.windows(2).all(apart), "{what}: {ids:?}");
    }
}

fn distinct(tasks: &[FileTask]) -> HashSet<(&str, Option<u64>)> {
    let key = |file: &DeleteFile| match file.kind {
        DeleteKind::Vector { offset, .. } => Some(offset),
        _ => None,
    };
    let deletes = tasks.iter().flat_map(|task| &task.deletes);
    deletes
        .map(|file| (file.path.as_str(), key(file)))
        .collect()
}

/// Where all deletes are vectors, their positions are the rows that are missing.
fn check_vectors(tasks: &[FileTask], rows: u64, what: &str) -> bool {
    let deletes: Vec<_> = tasks.iter().flat_map(|task| &task.deletes).collect();
    let vectors = deletes
        .iter()
        .all(|file| matches!(file.kind, DeleteKind::Vector { .. }));
    if vectors {
        let all: u64 = tasks.iter().map(|task| task.file.rows).sum();
        let deleted: u64 = deletes.iter().map(|file| file.rows).sum();
        assert_eq!(all - deleted, rows, "{what}");
    }
    vectors && !deletes.is_empty()
}
