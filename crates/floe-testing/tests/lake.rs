//! The demo lake, small: what is in it, that it is the same each time, that it is never half there.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use floe_testing::lake::{CATALOG_NAME, KNOWN_CUSTOMER, Lake, LakeConfig, OtherLake};
use futures::TryStreamExt;
use iceberg::expr::Reference;
use iceberg::spec::Datum;
use iceberg::{NamespaceIdent, TableIdent};

const ROWS: u64 = 1_500;

fn config(rows: u64) -> LakeConfig {
    LakeConfig {
        rows,
        other: OtherLake::Refuse,
    }
}

async fn build(dir: &Path, rows: u64) -> Lake {
    Lake::build(dir, config(rows), |_, _, _| {}).await.unwrap()
}

async fn scan(lake: &Lake, namespace: &str, name: &str, customer: Option<i64>) -> Vec<RecordBatch> {
    let ident = TableIdent::new(NamespaceIdent::new(namespace.to_owned()), name.to_owned());
    let table = lake
        .table(namespace, name)
        .await
        .unwrap()
        .table(ident)
        .unwrap();
    let mut scan = table.scan();
    if let Some(id) = customer {
        scan = scan.with_filter(Reference::new("customer_id").equal_to(Datum::long(id)));
    }
    let batches = scan.build().unwrap().to_arrow().await.unwrap();
    batches.try_collect().await.unwrap()
}

fn count(batches: &[RecordBatch]) -> u64 {
    batches.iter().map(|batch| batch.num_rows() as u64).sum()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_season_has_its_matches_its_columns_and_its_commits() {
    let dir = tempfile::tempdir().unwrap();
    let mut seen = BTreeMap::new();
    let lake = Lake::build(dir.path(), config(ROWS), |stage, done, total| {
        assert!(done <= total);
        seen.insert(stage.to_owned(), (done, total));
    });
    let lake = lake.await.unwrap();
    assert_eq!(seen.len(), 7);
    assert!(seen.values().all(|(done, total)| done == total));

    let summary = lake.summary().table("football.events").unwrap();
    assert_eq!(
        (summary.rows, summary.columns, summary.files),
        (ROWS, 140, 306)
    );
    let table = lake.table("football", "events").await.unwrap();
    assert_eq!(table.metadata().history().len(), 34);
    let batches = scan(&lake, "football", "events", None).await;
    assert_eq!(count(&batches), ROWS);
    let mut ids = BTreeSet::new();
    for batch in &batches {
        assert_eq!(batch.num_columns(), 140);
        ids.extend(
            batch
                .column_by_name("match_id")
                .unwrap()
                .as_primitive::<Int64Type>()
                .values(),
        );
    }
    assert_eq!(ids, (123_000..123_306).collect());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_known_customer_is_in_all_six_tables() {
    let dir = tempfile::tempdir().unwrap();
    let lake = build(dir.path(), ROWS).await;
    for name in [
        "customers",
        "orders",
        "payments",
        "tickets",
        "profile",
        "events",
    ] {
        let summary = lake
            .summary()
            .table(&format!("crm.{name}"))
            .unwrap()
            .clone();
        assert_eq!(
            count(&scan(&lake, "crm", name, None).await),
            summary.rows,
            "{name}"
        );
        let theirs = count(&scan(&lake, "crm", name, Some(KNOWN_CUSTOMER)).await);
        assert!(theirs > 0, "{name}");
        if matches!(name, "customers" | "profile") {
            assert_eq!(theirs, 1, "{name}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_configuration_gives_the_same_bytes() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let first = contents(build(one.path(), ROWS).await.warehouse_dir());
    let second = contents(build(two.path(), ROWS).await.warehouse_dir());
    assert!(first.len() > 300);
    assert!(first == second, "the Parquet files of two lakes differ");
}

/// All Parquet files by folder, in the order of their content: names differ.
fn contents(dir: std::path::PathBuf) -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    let mut folders = vec![dir.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "parquet") {
                let relative = folder.strip_prefix(&dir).unwrap().display().to_string();
                all.push((relative, std::fs::read(path).unwrap()));
            }
        }
    }
    all.sort();
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lake_that_is_there_is_used_again_and_a_half_built_one_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let pointer = |lake: &Lake| {
        let catalog = lake.catalog().clone();
        async move {
            let ident = TableIdent::from_strs(["football", "events"]).unwrap();
            catalog.pointer(&ident).await.unwrap().unwrap()
        }
    };
    let first = pointer(&build(dir.path(), 400).await).await;
    assert_eq!(pointer(&build(dir.path(), 400).await).await, first);
    let refused = Lake::build(dir.path(), config(401), |_, _, _| {})
        .await
        .unwrap_err();
    assert!(refused.to_string().contains("400"), "{refused}");
    let replace = LakeConfig {
        rows: 401,
        other: OtherLake::Replace,
    };
    let replaced = Lake::build(dir.path(), replace, |_, _, _| {})
        .await
        .unwrap();
    assert_eq!(replaced.summary().rows, 401);
    drop(replaced);
    // As a killed build leaves it.
    std::fs::write(dir.path().join("lake.json"), "{\"state\":\"buil").unwrap();
    assert!(Lake::open(dir.path()).await.unwrap().is_none());
    let again = build(dir.path(), 400).await;
    assert_eq!(again.summary().table("football.events").unwrap().rows, 400);
}

#[tokio::test]
async fn what_is_no_lake_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let mine = dir.path().join("warehouse/mine");
    std::fs::create_dir_all(&mine).unwrap();
    assert!(
        Lake::build(dir.path(), config(400), |_, _, _| {})
            .await
            .is_err()
    );
    assert!(mine.exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fewer_rows_than_matches_give_fewer_matches() {
    let dir = tempfile::tempdir().unwrap();
    let lake = build(dir.path(), 5).await;
    let summary = lake.summary().table("football.events").unwrap();
    assert_eq!((summary.rows, summary.files), (5, 5));
    assert!(count(&scan(&lake, "crm", "events", Some(KNOWN_CUSTOMER)).await) > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_more_match_is_one_more_file_and_one_more_commit() {
    let dir = tempfile::tempdir().unwrap();
    let lake = build(dir.path(), ROWS).await;
    let one = lake.append_match().await.unwrap();
    let two = lake.append_match().await.unwrap();
    assert_eq!((one.match_id, two.match_id), (123_306, 123_307));
    let rows = count(&scan(&lake, "football", "events", None).await);
    assert_eq!(rows, ROWS + one.rows + two.rows);
    let table = lake.table("football", "events").await.unwrap();
    assert_eq!(
        table.metadata().current_snapshot_id(),
        Some(two.snapshot_id)
    );
    assert_eq!(table.metadata().history().len(), 36);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_catalog_has_the_schema_that_other_engines_know() {
    use sqlx::Row;
    let dir = tempfile::tempdir().unwrap();
    let lake = build(dir.path(), 400).await;
    let url = format!("sqlite://{}", lake.catalog().path().display());
    let pool = sqlx::SqlitePool::connect(&url).await.unwrap();
    let tables = sqlx::query(
        "SELECT table_namespace || '.' || table_name AS name, metadata_location FROM iceberg_tables
         WHERE catalog_name = ? AND previous_metadata_location IS NOT NULL",
    );
    let tables = tables.bind(CATALOG_NAME).fetch_all(&pool).await.unwrap();
    assert_eq!(tables.len(), 7);
    for table in tables {
        let location: String = table.get("metadata_location");
        assert!(
            location.starts_with(&lake.warehouse_location()),
            "{location}"
        );
        assert!(location.ends_with(".metadata.json"), "{location}");
    }
    let namespaces = sqlx::query("SELECT DISTINCT namespace FROM iceberg_namespace_properties");
    assert_eq!(namespaces.fetch_all(&pool).await.unwrap().len(), 2);
}
