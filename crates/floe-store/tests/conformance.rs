//! The contract that every iceberg `Storage` keeps, over each kind of origin.

use std::sync::Arc;

use floe_store::Store;
use floe_testing::s3::S3Server;
use iceberg::io::Storage;

use crate::support::{TABLE, config, properties};

/// The storage behind a `FileIO`, taken from a file that it makes.
fn storage(store: &Store, endpoint: &str) -> Arc<dyn Storage> {
    store.storage(&properties(endpoint), Some(TABLE))
}

#[tokio::test]
async fn over_s3() {
    let dir = tempfile::tempdir().unwrap();
    let server = S3Server::start(dir.path().join("s3"), "id", "secret")
        .await
        .unwrap();
    server.create_bucket("lake").unwrap();
    let store = Store::open(config(dir.path())).unwrap();
    floe_testing::conformance::storage_contract(
        storage(&store, &server.endpoint()),
        "s3://lake/root",
    )
    .await;
}

#[tokio::test]
async fn over_local_files() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(config(dir.path())).unwrap();
    let root = format!("file://{}/root", dir.path().display());
    floe_testing::conformance::storage_contract(storage(&store, "http://127.0.0.1:1"), &root).await;
}

#[tokio::test]
async fn over_memory() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(config(dir.path())).unwrap();
    floe_testing::conformance::storage_contract(
        storage(&store, "http://127.0.0.1:1"),
        "memory://root",
    )
    .await;
}
