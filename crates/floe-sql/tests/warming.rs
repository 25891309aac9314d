//! Warming a cache over a line that counts.

use std::cell::RefCell;
use std::collections::HashMap;

use floe_scan::{Progress, Scan, ScanRequest, prefetch, prefetch_added, reachable};
use floe_store::{CacheConfig, LocationMap, Store, StoreConfig};
use floe_testing::line::{LineConfig, SlowLine};
use floe_testing::s3::S3Server;
use futures::TryStreamExt;
use iceberg::table::Table;
use tempfile::TempDir;

use crate::support::{BUCKET, Fixture, opened, total};

/// A table's files behind an S3 server and a line, and a cache.
struct Remote {
    fixture: Fixture,
    line: SlowLine,
    properties: HashMap<String, String>,
    cache: TempDir,
    _server: S3Server,
}

impl Remote {
    async fn new(fixture: Fixture) -> Self {
        let server = S3Server::start(fixture.dir.path(), "key", "secret")
            .await
            .unwrap();
        let line = SlowLine::start(LineConfig::DIRECT, server.addr())
            .await
            .unwrap();
        let endpoint = line.endpoint();
        let properties = [
            ("s3.endpoint", endpoint.as_str()),
            ("s3.path-style-access", "true"),
            ("s3.region", "us-east-1"),
            ("s3.access-key-id", "key"),
            ("s3.secret-access-key", "secret"),
        ];
        let properties = properties
            .map(|(key, value)| (key.to_string(), value.to_string()))
            .into();
        Self {
            fixture,
            line,
            properties,
            cache: tempfile::tempdir().unwrap(),
            _server: server,
        }
    }

    /// A store as a process that begins would have it.
    fn store(&self) -> Store {
        let mut location_map = LocationMap::new();
        location_map
            .insert(
                self.fixture.table.metadata().location(),
                &format!("s3://{BUCKET}"),
            )
            .unwrap();
        let dir = Some(self.cache.path().join("cache"));
        let cache = CacheConfig {
            dir,
            keep_free_bytes: 0,
            ..CacheConfig::default()
        };
        Store::open(StoreConfig {
            cache,
            location_map,
            ..StoreConfig::default()
        })
        .unwrap()
    }

    fn table(&self, store: &Store) -> Table {
        opened(&self.fixture.table, store, &self.properties)
    }

    fn requests(&self) -> u64 {
        self.line.stats().requests.values().sum()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_warmed_table_is_read_without_a_request_and_warming_again_costs_none() {
    let remote = Remote::new(Fixture::simple(&[0..50, 50..100, 100..150]).await).await;
    let store = remote.store();
    let scan = Scan::new(&store, &remote.table(&store), ScanRequest::default()).unwrap();
    let told = RefCell::new(Vec::new());
    let done = prefetch(&scan, 4, |at| told.borrow_mut().push(at))
        .await
        .unwrap();
    let told = told.into_inner();
    let Progress {
        files_done,
        files_total,
        bytes_done,
        bytes_total,
    } = done.progress;
    // Three data files, three manifests, one manifest list.
    assert_eq!((files_done, files_total), (7, 7));
    assert!(bytes_done == bytes_total && bytes_total > 0);
    assert_eq!((told.len(), told[0].files_done), (8, 0));
    assert_eq!(done.locations.len(), 7);
    assert_eq!(remote.requests(), 7);
    assert_eq!(remote.line.stats().requests.get("HEAD"), None);

    remote.line.reset();
    let store = remote.store();
    let scan = Scan::new(&store, &remote.table(&store), ScanRequest::default()).unwrap();
    let rows: Vec<_> = scan.stream().await.unwrap().try_collect().await.unwrap();
    assert_eq!(total(&rows), 150);
    prefetch(&scan, 4, |_| ()).await.unwrap();
    assert_eq!(remote.requests(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_filter_warms_only_the_files_that_may_match() {
    let remote = Remote::new(Fixture::simple(&[0..50, 50..100, 100..150]).await).await;
    let store = remote.store();
    let table = remote.table(&store);
    let filter = floe_sql::parse_filter("id < 50", table.metadata().current_schema()).unwrap();
    let request = ScanRequest {
        filter: Some(filter),
        ..ScanRequest::default()
    };
    let scan = Scan::new(&store, &table, request).unwrap();
    let done = prefetch(&scan, 4, |_| ()).await.unwrap();
    assert_eq!(done.progress.files_total, 1 + 3 + 1);
    assert_eq!(remote.requests(), 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_snapshot_added_is_all_that_is_fetched_for_it() {
    let mut remote = Remote::new(Fixture::simple(&[0..50, 50..100]).await).await;
    let id = remote.fixture.append_ids(100..150).await;
    let store = remote.store();
    let table = remote.table(&store);
    let snapshot = table.metadata().snapshot_by_id(id).unwrap();
    let done = prefetch_added(&store, &table, snapshot, 4).await.unwrap();
    // Manifest list, the new manifest, the new data file.
    assert_eq!((done.files_done, done.files_total), (3, 3));
    assert_eq!(remote.requests(), 3);
}

#[tokio::test]
async fn what_retained_snapshots_reach_is_known_with_every_file_once() {
    let fixture = Fixture::simple(&[0..50, 50..100]).await;
    let mut live = reachable(&fixture.store, &fixture.opened()).await.unwrap();
    live.sort();
    live.dedup();
    // Two manifest lists, two manifests, two data files.
    assert_eq!(live.len(), 6);
}
