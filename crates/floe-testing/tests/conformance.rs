//! The contract, run on iceberg's own storages as far as they hold it, and on the wrapper.

use std::sync::Arc;

use floe_testing::conformance::{
    Deviation, aborted_writers_leave_nothing, readers_are_lazy, storage_contract_except,
};
use floe_testing::storage::FaultyStorage;
use iceberg::io::{LocalFsStorage, MemoryStorage, Storage};

/// Looks a file up, and takes its bytes, when a reader is made.
const MEMORY: [Deviation; 1] = [Deviation::EagerReader];
/// Opens a file when a reader is made, and writes in place.
const LOCAL: [Deviation; 2] = [Deviation::EagerReader, Deviation::VisiblePartialWrites];

#[tokio::test]
async fn memory_keeps_the_contract_but_for_its_eager_reader() {
    storage_contract_except(Arc::new(MemoryStorage::new()), "memory://root", &MEMORY).await;
}

#[tokio::test]
async fn local_files_keep_the_contract_but_for_an_eager_reader_and_writes_in_place() {
    let dir = tempfile::tempdir().unwrap();
    let root = format!("file://{}", dir.path().display());
    storage_contract_except(Arc::new(LocalFsStorage::new()), &root, &LOCAL).await;
}

#[tokio::test]
async fn the_wrapper_without_faults_is_what_it_wraps() {
    let wrapped = FaultyStorage::new(Arc::new(MemoryStorage::new()));
    storage_contract_except(Arc::new(wrapped), "memory://root", &MEMORY).await;
}

/// The suite must catch what it is there for.
#[tokio::test]
async fn a_broken_promise_is_caught() {
    let dir = tempfile::tempdir().unwrap();
    let root = format!("file://{}", dir.path().display());
    let lazy = tokio::spawn({
        let root = root.clone();
        async move { readers_are_lazy(&LocalFsStorage::new(), &root).await }
    });
    assert!(lazy.await.unwrap_err().is_panic());
    let aborted = tokio::spawn(async move {
        let storage: Arc<dyn Storage> = Arc::new(LocalFsStorage::new());
        aborted_writers_leave_nothing(&*storage, &root).await;
    });
    assert!(aborted.await.unwrap_err().is_panic());
}
