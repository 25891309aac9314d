//! The reading half of the contract.

use iceberg::io::Storage;

use super::{get, is_there, kept, pattern, put, remove};

/// Files of several sizes, empty ones included, give back what was written, and their length.
pub async fn whole_files_round_trip(storage: &dyn Storage, root: &str) {
    for len in [0, 1, 4096, 1_000_003] {
        let path = format!("{root}/whole/{len}.bin");
        let content = pattern(len);
        put(storage, &path, &content).await;
        assert!(
            is_there(storage, &path).await,
            "{path} was written and does not exist"
        );
        let metadata = kept(
            storage.metadata(&path).await,
            "metadata of a file that exists",
        );
        assert_eq!(metadata.size, len as u64, "the length of {path}");
        assert!(
            get(storage, &path).await == content,
            "{path} holds other bytes"
        );
        remove(storage, &path).await;
    }
}

/// Ranges: empty, of one byte, across any boundary, to the end, the whole; past the end is an error.
pub async fn ranges_are_exact(storage: &dyn Storage, root: &str) {
    const LEN: u64 = 3 * 1024 * 1024 + 17;
    let path = format!("{root}/ranges/file.bin");
    let content = pattern(LEN as usize);
    put(storage, &path, &content).await;
    let reader = kept(
        storage.reader(&path).await,
        "a reader of a file that exists",
    );
    let mib = 1024 * 1024;
    let ranges = [
        0..0,
        5..5,
        LEN..LEN,
        0..1,
        LEN - 1..LEN,
        0..LEN,
        1..LEN - 1,
        7..8191,
        mib - 1..mib + 1,
        mib..2 * mib,
        mib - 13..2 * mib + 13,
        LEN - 100..LEN,
        0..mib,
    ];
    for range in ranges {
        let read = kept(
            reader.read(range.clone()).await,
            &format!("the range {range:?} of {LEN} bytes"),
        );
        let expected = &content[range.start as usize..range.end as usize];
        assert!(read == expected, "the range {range:?} holds other bytes");
    }
    for range in [
        0..LEN + 1,
        LEN - 1..LEN + 1,
        LEN..LEN + 1,
        LEN + 5..LEN + 10,
    ] {
        let read = reader.read(range.clone()).await;
        assert!(
            read.is_err(),
            "the range {range:?} of {LEN} bytes was answered"
        );
    }
    // An error spoils nothing.
    assert!(kept(reader.read(0..10).await, "a read after an error") == content[..10]);
    remove(storage, &path).await;
}

/// What isn't there is an error to readers, and `false` to `exists`.
pub async fn missing_files_are_errors(storage: &dyn Storage, root: &str) {
    let path = format!("{root}/missing/file.bin");
    assert!(
        !is_there(storage, &path).await,
        "{path} exists and was never written"
    );
    assert!(
        storage.metadata(&path).await.is_err(),
        "metadata of a missing file"
    );
    assert!(
        storage.read(&path).await.is_err(),
        "a read of a missing file"
    );
    // A lazy reader says so with its first read, an eager one at once.
    if let Ok(reader) = storage.reader(&path).await {
        assert!(
            reader.read(0..1).await.is_err(),
            "a range of a missing file"
        );
    }
    put(storage, &path, b"now").await;
    remove(storage, &path).await;
    assert!(
        !is_there(storage, &path).await,
        "{path} exists after it was deleted"
    );
    assert!(
        storage.read(&path).await.is_err(),
        "a read of a deleted file"
    );
}

/// A reader that is made before its file exists reads it later: it can't have looked.
pub async fn readers_are_lazy(storage: &dyn Storage, root: &str) {
    let path = format!("{root}/lazy/file.bin");
    let reader = kept(storage.reader(&path).await, "a reader does no I/O");
    put(storage, &path, b"written later").await;
    let read = kept(reader.read(0..7).await, "a reader looks when it reads");
    assert_eq!(read, b"written".as_slice());
    remove(storage, &path).await;
}

/// Characters that URLs and shells take for something else are part of the name.
pub async fn odd_names_are_taken_as_they_are(storage: &dyn Storage, root: &str) {
    let names = [
        "a b",
        "a#b",
        "a?b=c&d",
        "a%b",
        "a%20b",
        "a+b",
        "match_id=1",
        "a:b",
        "ü日本ж",
        "a'b\"c",
        "..a..",
        "[x]{y}",
        "a,b;c",
        "~a!@$^()",
    ];
    for name in names {
        put(
            storage,
            &format!("{root}/odd/{name}/f.bin"),
            name.as_bytes(),
        )
        .await;
    }
    for name in names {
        let path = format!("{root}/odd/{name}/f.bin");
        assert_eq!(get(storage, &path).await, name.as_bytes(), "{path}");
        let reader = kept(storage.reader(&path).await, &path);
        assert_eq!(kept(reader.read(0..1).await, &path), name.as_bytes()[..1]);
    }
    for name in names {
        remove(storage, &format!("{root}/odd/{name}/f.bin")).await;
    }
    for name in names {
        let path = format!("{root}/odd/{name}/f.bin");
        assert!(
            !is_there(storage, &path).await,
            "{path} exists after it was deleted"
        );
    }
}
