//! The faulty storage: every kind of fault, its counts, and that the files it makes are its own.

use std::sync::Arc;

use bytes::Bytes;
use floe_testing::storage::{
    FaultyStorage, FaultyStorageFactory, Gate, Operation, StorageFault, StorageFaultKind,
};
use iceberg::io::{FileIO, FileIOBuilder, MemoryStorage, Storage};

use crate::support::bounded;

const PATH: &str = "memory://t/data/file.parquet";

async fn storage() -> FaultyStorage {
    let storage = FaultyStorage::new(Arc::new(MemoryStorage::new()));
    storage
        .write(PATH, Bytes::from_static(b"0123456789"))
        .await
        .unwrap();
    storage.faults().reset_counts();
    storage
}

fn file_io(storage: &FaultyStorage) -> FileIO {
    FileIOBuilder::new(Arc::new(FaultyStorageFactory::new(storage.clone()))).build()
}

#[tokio::test]
async fn an_error_strikes_the_operation_and_the_path_it_is_meant_for() {
    let storage = storage().await;
    let fault = StorageFault::once(Operation::Read, "file", StorageFaultKind::Error).after(1);
    let id = storage.faults().inject(fault);
    assert!(storage.read(PATH).await.is_ok());
    assert!(storage.metadata(PATH).await.is_ok());
    let error = storage.read(PATH).await.unwrap_err();
    assert!(
        error
            .to_string()
            .contains("injected fault: Read of memory://t/data"),
        "{error}"
    );
    assert!(storage.read(PATH).await.is_ok());
    assert_eq!(storage.faults().struck(id), 1);
    storage.faults().inject(StorageFault::always(
        Operation::Read,
        "",
        StorageFaultKind::Error,
    ));
    assert!(storage.read(PATH).await.is_err());
    storage.faults().clear();
    assert!(storage.read(PATH).await.is_ok());
}

#[tokio::test]
async fn files_of_a_file_io_are_counted_and_spoilt_too() {
    let storage = storage().await;
    let short = StorageFault::once(Operation::ReadRange, "", StorageFaultKind::ShortRead(2));
    let wrong = StorageFault::once(Operation::ReadRange, "", StorageFaultKind::WrongByte(0));
    storage.faults().inject(short);
    storage.faults().inject(wrong.after(1));
    let input = file_io(&storage).new_input(PATH).unwrap();
    let reader = input.reader().await.unwrap();
    assert_eq!(reader.read(2..8).await.unwrap(), b"2345".as_slice());
    assert_eq!(reader.read(2..4).await.unwrap(), b"33".as_slice());
    assert_eq!(reader.read(2..4).await.unwrap(), b"23".as_slice());
    assert_eq!(storage.faults().count(Operation::Reader), 1);
    assert_eq!(storage.faults().count(Operation::ReadRange), 3);
    assert_eq!(storage.faults().records()[1].range, Some(2..8));
}

#[tokio::test]
async fn a_lost_answer_is_an_error_after_the_fact() {
    let storage = storage().await;
    let fault = StorageFault::once(Operation::Close, "new", StorageFaultKind::LoseAnswer);
    storage.faults().inject(fault);
    let output = file_io(&storage).new_output("memory://t/new").unwrap();
    let mut writer = output.writer().await.unwrap();
    writer.write(Bytes::from_static(b"landed")).await.unwrap();
    assert!(writer.close().await.is_err());
    assert_eq!(
        storage.read("memory://t/new").await.unwrap(),
        b"landed".as_slice()
    );
    assert_eq!(storage.faults().count(Operation::WritePart), 1);
}

#[tokio::test]
async fn held_operations_go_on_when_the_gate_opens() {
    let storage = storage().await;
    let gate = Gate::default();
    let fault = StorageFault::always(Operation::Read, "", StorageFaultKind::Hold(gate.clone()));
    storage.faults().inject(fault);
    let reads: Vec<_> = (0..3)
        .map(|_| {
            let storage = storage.clone();
            tokio::spawn(async move { storage.read(PATH).await })
        })
        .collect();
    bounded(gate.held(3)).await;
    assert!(reads.iter().all(|read| !read.is_finished()));
    gate.open();
    for read in reads {
        assert_eq!(
            bounded(read).await.unwrap().unwrap(),
            b"0123456789".as_slice()
        );
    }
}

#[tokio::test]
async fn one_of_several_deletes_can_fail() {
    use futures::StreamExt;
    let storage = storage().await;
    storage.write("memory://t/a", Bytes::new()).await.unwrap();
    let fault = StorageFault::once(Operation::Delete, "file", StorageFaultKind::Error);
    storage.faults().inject(fault);
    let paths = futures::stream::iter(["memory://t/a".to_owned(), PATH.to_owned()]).boxed();
    assert!(storage.delete_stream(paths).await.is_err());
    assert!(!storage.exists("memory://t/a").await.unwrap());
    assert!(storage.exists(PATH).await.unwrap());
}
