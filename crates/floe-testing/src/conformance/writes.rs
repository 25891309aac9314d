//! The writing half of the contract.

use bytes::Bytes;
use iceberg::io::Storage;

use super::{get, is_there, kept, pattern, put, remove};

/// Paths that are written twice are pointers (`version-hint.text`, `v1.metadata.json`): a reader that comes after the
/// second write sees it, whole, however long the first was. Immutable files are never written twice.
pub async fn overwrites_replace_the_whole_file(storage: &dyn Storage, root: &str) {
    let path = format!("{root}/pointers/metadata/version-hint.text");
    for content in ["1", "23456789", "2", ""] {
        put(storage, &path, content.as_bytes()).await;
        assert_eq!(
            get(storage, &path).await,
            content.as_bytes(),
            "an overwritten pointer"
        );
        let metadata = kept(storage.metadata(&path).await, "metadata of a pointer");
        assert_eq!(
            metadata.size,
            content.len() as u64,
            "the length of an overwritten pointer"
        );
        let reader = kept(storage.reader(&path).await, "a reader of a pointer");
        let read = kept(
            reader.read(0..content.len() as u64).await,
            "a range of a pointer",
        );
        assert_eq!(
            read,
            content.as_bytes(),
            "a range of an overwritten pointer"
        );
    }
    remove(storage, &path).await;
}

/// Parts become one file when the writer is closed (`atomic`: and nothing is seen before); then it takes no more.
pub async fn writers_publish_on_close(storage: &dyn Storage, root: &str, atomic: bool) {
    let path = format!("{root}/writers/file.bin");
    let content = pattern(700_001);
    let mut writer = kept(storage.writer(&path).await, "a writer");
    for part in content.chunks(99_991) {
        kept(writer.write(Bytes::copy_from_slice(part)).await, "a part");
        if atomic {
            assert!(
                !is_there(storage, &path).await,
                "{path} is visible before it is closed"
            );
        }
    }
    kept(writer.close().await, "closing a writer");
    assert!(
        get(storage, &path).await == content,
        "{path} holds other bytes than its writer was given"
    );
    assert!(
        writer.write(Bytes::from_static(b"more")).await.is_err(),
        "a closed writer took more"
    );
    assert!(writer.close().await.is_err(), "a writer was closed twice");
    remove(storage, &path).await;

    let path = format!("{root}/writers/empty.bin");
    let mut writer = kept(storage.writer(&path).await, "a writer");
    kept(
        writer.close().await,
        "closing a writer that was given nothing",
    );
    assert!(get(storage, &path).await.is_empty(), "an empty file");
    remove(storage, &path).await;
}

/// A writer that is dropped leaves nothing, and what it would have overwritten is as it was.
pub async fn aborted_writers_leave_nothing(storage: &dyn Storage, root: &str) {
    let new = format!("{root}/aborted/new.bin");
    let old = format!("{root}/aborted/old.bin");
    put(storage, &old, b"old").await;
    for path in [&new, &old] {
        let mut writer = kept(storage.writer(path).await, "a writer");
        kept(writer.write(pattern(300_000).into()).await, "a part");
        drop(writer);
    }
    assert!(
        !is_there(storage, &new).await,
        "an aborted writer left a file"
    );
    assert!(
        storage.read(&new).await.is_err(),
        "an aborted writer left bytes"
    );
    assert_eq!(
        get(storage, &old).await,
        b"old".as_slice(),
        "an aborted writer spoilt a file"
    );
    remove(storage, &old).await;
}

/// Input and output files go through the storage that made them.
pub async fn files_hold_the_storage(storage: &dyn Storage, root: &str) {
    let path = format!("{root}/files/file.bin");
    let output = kept(storage.new_output(&path), "an output file");
    assert_eq!(output.location(), path);
    kept(
        output.write(Bytes::from_static(b"by an output file")).await,
        "writing an output file",
    );
    assert_eq!(get(storage, &path).await, b"by an output file".as_slice());
    let input = kept(storage.new_input(&path), "an input file");
    assert_eq!(input.location(), path);
    assert_eq!(
        kept(input.read().await, "reading an input file"),
        b"by an output file".as_slice()
    );
    let reader = kept(input.reader().await, "a reader of an input file");
    assert_eq!(
        kept(reader.read(3..5).await, "a range of an input file"),
        b"an".as_slice()
    );
    kept(output.delete().await, "deleting an output file");
    assert!(
        !kept(input.exists().await, "whether an input file exists"),
        "{path} exists after it was deleted"
    );
}
