//! The read path's bytes: an iceberg `Storage` over a cache of immutable files over the origin.
//!
//! ```text
//! iceberg FileIO ── storage ──┬─ pointer, local file ───────────────────────── origin
//!                             └─ immutable file ── read ── memory ── disk ──── origin
//! ```
//!
//! A file that Iceberg never changes is fetched once and never checked again: no HEAD, no listing, no
//! question of its age, cold or warm. What may change is never kept, so what is read is always fresh.
//! `class.rs` says which is which, `key.rs` under which name bytes are kept, `blocks.rs` which bytes
//! are asked for, `disk/` how they outlive the process.
//!
//! ```no_run
//! # fn main() -> Result<(), floe_store::Error> {
//! let mut config = floe_store::StoreConfig::default();
//! config.cache.dir = Some("/home/me/.cache/floe".into());
//! let store = floe_store::Store::open(config)?;
//! let properties = [("s3.endpoint".to_string(), "https://minio.example".to_string())].into();
//! let file_io = store.file_io(&properties, None);
//! # let _ = file_io;
//! # Ok(())
//! # }
//! ```

mod blocks;
mod class;
mod config;
mod disk;
mod error;
mod key;
mod local;
mod location;
mod memory;
mod object;
mod origin;
mod read;
mod segment;
mod stats;
mod storage;
mod store;

pub use config::{CacheConfig, CacheScope, OriginConfig, StoreConfig};
pub use disk::{CacheUsage, CachedObject, Cleared, DiskCache, VerifyReport};
pub use error::{Error, ErrorKind, Result};
pub use key::PRINCIPAL;
pub use location::LocationMap;
pub use stats::{RequestCounts, StoreStats};
pub use store::{PurgeReport, Store, StoreFile};
