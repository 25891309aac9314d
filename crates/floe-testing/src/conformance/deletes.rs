//! The deleting part of the contract.

use futures::StreamExt;
use iceberg::io::Storage;

use super::{is_there, kept, put, remove};

/// Deleting what isn't there is no error, alone or among others; what is named and there is gone.
pub async fn deletes_forgive_missing_files(storage: &dyn Storage, root: &str) {
    let path = |name: &str| format!("{root}/deletes/{name}");
    kept(
        storage.delete(&path("never")).await,
        "deleting a missing file",
    );
    kept(
        storage.delete_prefix(&path("nowhere")).await,
        "deleting a missing folder",
    );
    for name in ["a", "b", "c"] {
        put(storage, &path(name), name.as_bytes()).await;
    }
    let named = vec![path("a"), path("never"), path("c")];
    let deleted = storage
        .delete_stream(futures::stream::iter(named).boxed())
        .await;
    kept(deleted, "deleting several files of which one is missing");
    assert!(
        !is_there(storage, &path("a")).await && !is_there(storage, &path("c")).await,
        "files that were named"
    );
    assert!(
        is_there(storage, &path("b")).await,
        "a file that was not named"
    );
    let nothing = storage
        .delete_stream(futures::stream::empty().boxed())
        .await;
    kept(nothing, "deleting no files");
    remove(storage, &path("b")).await;
}

/// `a/b` as a prefix removes `a/b/...` at any depth, with or without a slash at the end, and spares `a/bc` and `a/b.x`.
pub async fn delete_prefix_matches_at_slashes(storage: &dyn Storage, root: &str) {
    let below = ["t/1", "t/deep/er/2"];
    let beside = ["t2/1", "t.bin", "tt/deep/2"];
    let path = |name: &str| format!("{root}/prefix/{name}");
    for end in ["", "/"] {
        for name in below.iter().chain(&beside) {
            put(storage, &path(name), name.as_bytes()).await;
        }
        let prefix = format!("{}{end}", path("t"));
        kept(storage.delete_prefix(&prefix).await, "deleting a folder");
        for name in below {
            assert!(
                !is_there(storage, &path(name)).await,
                "{name} is below {prefix} and is still there"
            );
        }
        for name in beside {
            assert!(
                is_there(storage, &path(name)).await,
                "{name} is not below {prefix} and is gone"
            );
        }
    }
    for name in beside {
        remove(storage, &path(name)).await;
    }
}
