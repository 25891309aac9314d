//! The SDK: fast reads of Iceberg tables over slow lines.
//!
//! ```text
//!  Floe::builder ──▶ config      floe.toml, .pyiceberg.yaml, environment      (config)
//!       │
//!       ▼
//!     Floe ── table ──▶ catalog  the pointer, asked for at every load         (floe-catalog)
//!       │        │                 └ offline: the pointer seen last, by wish  (pointers)
//!       │        ▼
//!      sql     Table ── scan ──▶ plan ──▶ read ──▶ batches                    (floe-scan)
//!       │                         │        │
//!       └──▶ DataFusion ──────────┴────────┴──▶ memory ── disk ── origin      (floe-store)
//! ```
//!
//! An immutable file is fetched once and never checked again; a pointer is never cached.
//!
//! ```no_run
//! use floe::Floe;
//! use floe::config::{Config, Discover, Environment};
//! use futures::TryStreamExt;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let environment = Environment::of_process()?;
//! let config = Config::discover(&Discover { environment, ..Discover::default() })?;
//! let floe = Floe::builder().config(config).catalog("demo").build()?;
//!
//! let events = floe.table("football.events").await?;
//! let passes = events.scan().select(["match_id", "minute"]).filter("type = 'Pass'").batches().await?;
//!
//! let per_team = floe.sql("SELECT team, count(*) FROM football.events GROUP BY team").await?;
//! let rows: Vec<_> = per_team.execute_stream().await?.try_collect().await?;
//! # let _ = (passes, rows);
//! # Ok(())
//! # }
//! ```

pub mod config;

mod builder;
mod error;
mod floe;
mod pointers;
mod sql;
mod table;

pub use builder::FloeBuilder;
pub use error::{Error, ErrorKind, Result};
pub use floe::Floe;
pub use floe_catalog::Catalog;
pub use floe_scan::{At, Timings};
pub use floe_store::{Store, StoreConfig, StoreStats};
pub use pointers::LastSeen;
pub use table::{FileEntry, ScanBuilder, Table};
