//! Rows of an Iceberg table: which files of a ref or snapshot hold them, and reading those files.
//!
//! ```text
//!  ScanRequest ──▶ snapshot   ref, snapshot or time -> snapshot and schema
//!      │              │
//!      │           filter     SQL text -> expression; the part that may prune files
//!      ▼              ▼
//!    Scan ────────▶ plan      manifests through the store -> files (pruned, lengths told to the store)
//!      │              │
//!      │              ▼
//!      └─────────▶ read       each file on a task of its own -> batches under the declared schema, filtered in full
//!
//!  FloeTable (DataFusion) goes the same way with files in groups; FloeCatalogList finds tables when a query names them;
//!  prefetch plans and fetches, and keeps nothing.
//! ```
//!
//! Every byte comes through [`floe_store::Store`]; every pointer was looked up before by a catalog.

mod catalog;
mod columns;
mod constants;
mod error;
mod filter;
mod plan;
mod prefetch;
mod provider;
mod read;
mod request;
mod scan;
mod snapshot;
mod timings;

pub use catalog::{FloeCatalogList, FloeCatalogProvider, SourceError, TableSource};
pub use error::{Error, ErrorKind, Result};
pub use prefetch::{Prefetched, Progress, prefetch, prefetch_added, reachable};
pub use provider::FloeTable;
pub use request::{At, ScanRequest};
pub use scan::{PlannedFile, Scan};
pub use snapshot::{Position, line_of_main, refs};
pub use timings::Timings;
