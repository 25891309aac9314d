//! What every iceberg `Storage` must do, as functions that a test calls; a broken promise is a panic that names it.
//! In the manner of `object_store`'s `integration.rs`.
//!
//! `root` is a location under which the storage may write and delete, without a slash at the end. Every function uses
//! folders of its own below it and leaves them empty.
//!
//! # Contract
//! - A file has the bytes of the last finished write, whole and by range, whoever wrote it.
//! - A range that is empty gives no bytes; one that ends past the file is an error, never fewer bytes.
//! - A missing file is an error to whoever reads it, and no error to whoever deletes it.
//! - `reader` does no I/O: what is wrong with a file shows in its first read.
//! - What a writer was given is visible when `close` has returned, and not before; a writer that is dropped leaves
//!   nothing. A closed writer takes no more.
//! - `delete_prefix` removes what lies below a folder: it matches at `/` only, and never the file of that very name.
//! - Names are taken as they are: no decoding, no normalizing of what is inside them.

mod deletes;
mod reads;
mod writes;

use std::sync::Arc;

use bytes::Bytes;
use iceberg::io::Storage;

pub use deletes::{delete_prefix_matches_at_slashes, deletes_forgive_missing_files};
pub use reads::{
    missing_files_are_errors, odd_names_are_taken_as_they_are, ranges_are_exact, readers_are_lazy,
    whole_files_round_trip,
};
pub use writes::{
    aborted_writers_leave_nothing, files_hold_the_storage, overwrites_replace_the_whole_file,
    writers_publish_on_close,
};

/// A promise that a storage is known not to keep. Stating one skips what tests it, and says so in the test's source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deviation {
    /// `reader` looks at the file.
    EagerReader,
    /// Bytes are visible before `close`, and stay after an abort.
    VisiblePartialWrites,
}

/// The whole contract.
pub async fn storage_contract(storage: Arc<dyn Storage>, root: &str) {
    storage_contract_except(storage, root, &[]).await;
}

/// The contract but for what a storage is known not to keep.
pub async fn storage_contract_except(storage: Arc<dyn Storage>, root: &str, known: &[Deviation]) {
    let keeps = |deviation| !known.contains(&deviation);
    whole_files_round_trip(&*storage, root).await;
    ranges_are_exact(&*storage, root).await;
    missing_files_are_errors(&*storage, root).await;
    if keeps(Deviation::EagerReader) {
        readers_are_lazy(&*storage, root).await;
    }
    odd_names_are_taken_as_they_are(&*storage, root).await;
    overwrites_replace_the_whole_file(&*storage, root).await;
    writers_publish_on_close(&*storage, root, keeps(Deviation::VisiblePartialWrites)).await;
    if keeps(Deviation::VisiblePartialWrites) {
        aborted_writers_leave_nothing(&*storage, root).await;
    }
    files_hold_the_storage(&*storage, root).await;
    deletes_forgive_missing_files(&*storage, root).await;
    delete_prefix_matches_at_slashes(&*storage, root).await;
}

/// Unwraps with the promise that was broken.
fn kept<T, E: std::fmt::Display>(result: Result<T, E>, promise: &str) -> T {
    match result {
        Ok(value) => value,
        Err(error) => panic!("{promise}: {error:#}"),
    }
}

async fn put(storage: &dyn Storage, path: &str, bytes: &[u8]) {
    let written = storage.write(path, Bytes::copy_from_slice(bytes)).await;
    kept(written, &format!("writing {path}"));
}

async fn get(storage: &dyn Storage, path: &str) -> Bytes {
    kept(storage.read(path).await, &format!("reading {path}"))
}

async fn is_there(storage: &dyn Storage, path: &str) -> bool {
    kept(
        storage.exists(path).await,
        &format!("asking whether {path} exists"),
    )
}

async fn remove(storage: &dyn Storage, path: &str) {
    kept(storage.delete(path).await, &format!("deleting {path}"));
}

/// Bytes of which no two places look alike for long.
fn pattern(len: usize) -> Vec<u8> {
    (0..len as u64)
        .map(|i| (i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8)
        .collect()
}
