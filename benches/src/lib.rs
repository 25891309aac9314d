//! What the benches share: a store over an origin in process, tables on local disk, and the bounds that a full run judges.

pub mod bare;
pub mod process;
pub mod tables;

use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};

use bytes::Bytes;
use floe_store::{Store, StoreConfig, StoreFile};
use floe_testing::line::ScriptedOrigin;
use futures::future::BoxFuture;
use uuid::Uuid;

/// An origin without a line before it, and a directory for caches.
#[derive(Debug)]
pub struct Bench {
    /// The origin.
    pub origin: ScriptedOrigin,
    /// Where caches and plain files go; gone with the value.
    pub dir: tempfile::TempDir,
}

impl Bench {
    /// An origin and a fresh directory.
    ///
    /// # Errors
    /// If no port or no directory can be had.
    pub async fn start() -> std::io::Result<Self> {
        Ok(Self {
            origin: ScriptedOrigin::start().await?,
            dir: tempfile::tempdir()?,
        })
    }

    /// A store over a cache directory of this name.
    ///
    /// # Panics
    /// If the directory can't be used: then there is nothing to measure.
    pub fn store(&self, cache: &str, memory_bytes: u64, max_bytes: u64) -> Store {
        let mut config = StoreConfig::default();
        config.cache.dir = Some(self.dir.path().join(cache));
        config.cache.memory_bytes = memory_bytes;
        config.cache.max_bytes = max_bytes;
        config.cache.keep_free_bytes = 0;
        Store::open(config).expect("a fresh directory of our own")
    }

    /// Put an object at the origin: bytes that do not compress.
    pub fn put(&self, key: &str, length: usize) -> Bytes {
        let mut state = length as u64 | 1;
        let mut next = || {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (state >> 56) as u8
        };
        let bytes: Bytes = (0..length).map(|_| next()).collect::<Vec<_>>().into();
        self.origin.put(&format!("b/{key}"), bytes.clone());
        bytes
    }

    /// Open an object through a store.
    ///
    /// # Panics
    /// Never: the location is well formed.
    pub fn file(&self, store: &Store, key: &str) -> StoreFile {
        let properties: HashMap<String, String> = [
            ("s3.endpoint", self.origin.endpoint()),
            ("s3.access-key-id", "id".into()),
            ("s3.secret-access-key", "key".into()),
        ]
        .map(|(name, value)| (name.to_string(), value))
        .into();
        store
            .file(
                &format!("s3://b/{key}"),
                &properties,
                Some(Uuid::from_u128(1)),
            )
            .expect("a well formed location")
    }

    /// The directory for plain files.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }
}

/// The median of many runs.
pub async fn median<F: Future<Output = ()>>(runs: usize, mut run: impl FnMut() -> F) -> Duration {
    let mut times = Vec::with_capacity(runs);
    for _ in 0..runs {
        let began = Instant::now();
        run().await;
        times.push(began.elapsed());
    }
    times.sort();
    times[runs / 2]
}

/// Something that is timed against others.
pub type Work<'a> = Box<dyn Fn() -> BoxFuture<'a, ()> + 'a>;

/// The medians of several works, done in turns, so that a busy moment of the machine meets them all.
pub async fn medians(runs: usize, works: &[Work<'_>]) -> Vec<Duration> {
    let mut times = vec![Vec::with_capacity(runs); works.len()];
    for _ in 0..runs {
        for (work, times) in works.iter().zip(&mut times) {
            let began = Instant::now();
            work().await;
            times.push(began.elapsed());
        }
    }
    let middle = |mut times: Vec<Duration>| {
        times.sort();
        times[runs / 2]
    };
    times.into_iter().map(middle).collect()
}

/// A line of a full run: what was measured, what the bound is, held or short.
pub fn verdict(what: &str, measured: f64, bound: f64, unit: &str) -> String {
    let word = if measured <= bound { "held" } else { "SHORT" };
    format!("{word:5}  {what}: {measured:.3} {unit} (bound {bound} {unit})")
}
