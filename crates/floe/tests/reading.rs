//! Tables by name and by place, queries, freshness, and reading offline.

use floe::{At, ErrorKind, Floe};
use floe_testing::lake::{CATALOG_NAME, Lake, LakeConfig};
use futures::TryStreamExt;
use tempfile::TempDir;

const ROWS: u64 = 20;
const ROW_COUNT: &str = "SELECT count(*) AS n FROM football.events";

struct Lab {
    lake: Lake,
    dir: TempDir,
}

impl Lab {
    async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let config = LakeConfig {
            rows: ROWS,
            ..LakeConfig::default()
        };
        let lake = Lake::build(dir.path().join("lake"), config, |_, _, _| ())
            .await
            .unwrap();
        Self { lake, dir }
    }

    fn floe(&self, offline: bool) -> Floe {
        Floe::builder()
            .catalog(CATALOG_NAME)
            .property("type", "sql")
            .property("uri", self.lake.catalog().uri())
            .cache_dir(self.dir.path().join("cache"))
            .offline(offline)
            .build()
            .unwrap()
    }
}

async fn rows(floe: &Floe) -> usize {
    let rows = floe
        .sql("SELECT match_id FROM football.events")
        .await
        .unwrap();
    let batches: Vec<_> = rows
        .execute_stream()
        .await
        .unwrap()
        .try_collect()
        .await
        .unwrap();
    batches.iter().map(|batch| batch.num_rows()).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn scans_and_queries_of_one_handle_see_every_commit_at_once() {
    let lab = Lab::new().await;
    let floe = lab.floe(false);
    assert_eq!(
        floe.table("football.events")
            .await
            .unwrap()
            .scan()
            .count()
            .await
            .unwrap(),
        ROWS
    );
    assert_eq!(rows(&floe).await as u64, ROWS);
    let added = lab.lake.append_match().await.unwrap();
    assert_eq!(rows(&floe).await as u64, ROWS + added.rows);
    let table = floe.table("football.events").await.unwrap();
    let picked = table
        .scan()
        .select(["match_id"])
        .filter(format!("match_id = {}", added.match_id))
        .batches()
        .await
        .unwrap();
    assert_eq!(
        picked
            .iter()
            .map(|batch| batch.num_rows() as u64)
            .sum::<u64>(),
        added.rows
    );
    assert_eq!(
        table
            .files(At::Snapshot(added.snapshot_id))
            .await
            .unwrap()
            .len() as u64,
        ROWS + 1
    );
    assert_eq!(table.refs().unwrap()["main"].snapshot_id, added.snapshot_id);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_that_began_keeps_the_state_it_was_planned_on() {
    let lab = Lab::new().await;
    let floe = lab.floe(false);
    let planned = floe.sql(ROW_COUNT).await.unwrap();
    lab.lake.append_match().await.unwrap();
    let rows = planned.collect().await.unwrap();
    assert!(format!("{rows:?}").contains(&ROWS.to_string()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_is_read_by_the_place_of_its_metadata_without_a_catalog() {
    let lab = Lab::new().await;
    let place = lab
        .lake
        .table("crm", "customers")
        .await
        .unwrap()
        .metadata_location()
        .to_string();
    let floe = Floe::builder().build().unwrap();
    let table = floe.table(&place).await.unwrap();
    assert!(table.scan().count().await.unwrap() > 0);
    assert_eq!(table.iceberg().identifier().to_string(), "crm.customers");
    let error = floe.table("crm.customers").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.hint().unwrap().contains("--catalog"), "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn offline_reads_are_of_what_was_seen_last_and_only_by_wish() {
    let lab = Lab::new().await;
    assert_eq!(
        lab.floe(true)
            .table("football.events")
            .await
            .unwrap_err()
            .kind(),
        ErrorKind::Offline
    );
    lab.floe(false).table("football.events").await.unwrap();
    let offline = lab.floe(true);
    let table = offline.table("football.events").await.unwrap();
    assert!(table.last_seen().is_some());
    assert_eq!(offline.used_last_seen().len(), 1);
    assert_eq!(
        offline
            .tables(&offline.namespaces().await.unwrap()[0])
            .await
            .unwrap()
            .len(),
        1
    );
    assert_eq!(
        offline.catalog().await.unwrap_err().kind(),
        ErrorKind::Offline
    );
    // A look that takes no note leaves what was seen as it was.
    let online = lab.floe(false);
    lab.lake.append_match().await.unwrap();
    let now = online.table_unnoted("football.events").await.unwrap();
    let seen = online
        .table_seen_last("football.events")
        .await
        .unwrap()
        .unwrap();
    assert_ne!(
        now.iceberg().metadata_location(),
        seen.iceberg().metadata_location()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_have_the_kind_of_what_failed() {
    let lab = Lab::new().await;
    let floe = lab.floe(false);
    let kind = |error: floe::Error| error.kind();
    assert_eq!(
        floe.table("football.nope").await.map_err(kind).err(),
        Some(ErrorKind::NotFound)
    );
    assert_eq!(
        floe.table("nodots").await.map_err(kind).err(),
        Some(ErrorKind::Invalid)
    );
    assert_eq!(
        floe.sql("SELECT * FROM football.nope")
            .await
            .map_err(kind)
            .err(),
        Some(ErrorKind::NotFound)
    );
    assert_eq!(
        floe.sql("SELECT").await.map_err(kind).err(),
        Some(ErrorKind::Invalid)
    );
    assert_eq!(
        floe.sql("DROP TABLE football.events")
            .await
            .map_err(kind)
            .err(),
        Some(ErrorKind::Invalid)
    );
    let table = floe.table("football.events").await.unwrap();
    assert_eq!(
        table
            .scan()
            .at(At::Ref("x".into()))
            .count()
            .await
            .map_err(kind)
            .err(),
        Some(ErrorKind::NotFound)
    );
    assert_eq!(
        table.scan().filter("1 +").count().await.map_err(kind).err(),
        Some(ErrorKind::Invalid)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_gone_fails_a_query_by_name() {
    let lab = Lab::new().await;
    let floe = lab.floe(false);
    let file = floe
        .table("football.events")
        .await
        .unwrap()
        .files(At::Main)
        .await
        .unwrap()
        .remove(0)
        .location;
    std::fs::remove_file(file.strip_prefix("file://").unwrap()).unwrap();
    let query = floe
        .sql("SELECT sum(second) FROM football.events")
        .await
        .unwrap();
    let error = floe::Error::from(query.collect().await.unwrap_err());
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains(&file), "{error}");
}
