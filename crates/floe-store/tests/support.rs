//! A scripted origin, a store over it, and bytes that tell where they come from.

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use floe_store::{Store, StoreConfig, StoreFile};
use floe_testing::line::ScriptedOrigin;
use uuid::Uuid;

pub(crate) const TABLE: Uuid = Uuid::from_u128(7);

/// Bytes that differ at every place and for every name.
pub(crate) fn content(name: &str, length: usize) -> Bytes {
    let seed = name.bytes().fold(17_u64, |sum, byte| {
        sum.wrapping_mul(131).wrapping_add(u64::from(byte))
    });
    let mut state = seed;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        bytes.extend_from_slice(&state.to_be_bytes());
    }
    bytes.truncate(length);
    bytes.into()
}

pub(crate) struct World {
    pub(crate) origin: ScriptedOrigin,
    pub(crate) dir: tempfile::TempDir,
}

impl World {
    pub(crate) async fn new() -> Self {
        Self {
            origin: ScriptedOrigin::start().await.unwrap(),
            dir: tempfile::tempdir().unwrap(),
        }
    }

    /// A config with a cache on disk; timeouts and pauses short enough for faults.
    pub(crate) fn config(&self) -> StoreConfig {
        config(self.dir.path())
    }

    pub(crate) fn store(&self) -> Store {
        Store::open(self.config()).unwrap()
    }

    pub(crate) fn properties(&self) -> HashMap<String, String> {
        properties(&self.origin.endpoint())
    }

    pub(crate) fn file(&self, store: &Store, key: &str) -> StoreFile {
        store
            .file(&format!("s3://b/{key}"), &self.properties(), Some(TABLE))
            .unwrap()
    }

    /// Put an object at the origin.
    pub(crate) fn put(&self, key: &str, length: usize) -> Bytes {
        let bytes = content(key, length);
        self.origin.put(&format!("b/{key}"), bytes.clone());
        bytes
    }

    /// Requests since the last call, by operation.
    pub(crate) fn requests(&self) -> HashMap<String, u64> {
        let counted = self
            .origin
            .stats()
            .requests
            .iter()
            .map(|(op, n)| (op.to_string(), *n))
            .collect();
        self.origin.reset();
        counted
    }

    pub(crate) fn gets(&self) -> u64 {
        let requests = self.requests();
        assert!(
            requests.keys().all(|op| op == "GET"),
            "nothing but GET on the read path: {requests:?}"
        );
        requests.get("GET").copied().unwrap_or_default()
    }
}

pub(crate) fn config(dir: &Path) -> StoreConfig {
    let mut config = StoreConfig::default();
    config.cache.dir = Some(dir.join("cache"));
    config.cache.keep_free_bytes = 0;
    config.origin.retry_delay = Duration::from_millis(1);
    config.origin.timeout = Duration::from_millis(500);
    config
}

pub(crate) fn properties(endpoint: &str) -> HashMap<String, String> {
    [
        ("s3.endpoint", endpoint),
        ("s3.access-key-id", "id"),
        ("s3.secret-access-key", "secret"),
    ]
    .map(|(name, value)| (name.to_string(), value.to_string()))
    .into()
}

/// The seed of a random test, printed, or taken from FLOE_SEED.
pub(crate) fn seed() -> u64 {
    let seed = std::env::var("FLOE_SEED")
        .ok()
        .map_or_else(rand::random, |text| {
            text.parse().expect("FLOE_SEED is a number")
        });
    println!("FLOE_SEED={seed}");
    seed
}

/// Every regular file of a directory and its directories.
pub(crate) fn files_below(dir: &Path) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    let mut dirs = vec![dir.to_path_buf()];
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(dir).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                dirs.push(entry.path())
            } else {
                files.push(entry.path())
            }
        }
    }
    files.sort();
    files
}
