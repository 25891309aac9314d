//! Rows of an Iceberg table: which files of a ref or snapshot hold them, and reading those files.
//!
//! ```text
//!  ScanRequest ──▶ snapshot   ref, snapshot or time -> snapshot and schema
//!      │
//!      ▼
//!    Scan ────────▶ planning   manifest list and manifests (manifest: decoded once a process)
//!      │              │        -> files that may hold rows, each with its deletes, by what a predicate can't rule out
//!      │              ▼
//!      └─────────▶ reading    footers, row groups, deletes -> batches of exactly the schema asked for, filtered in full
//!
//!  inspect: a table's metadata as rows; predicate: a condition, exact on rows, safe on what is known of a file; prefetch plans and fetches, and keeps nothing.
//! ```
//!
//! Every byte comes through [`floe_store::Store`]; every pointer was looked up before by a catalog. SQL stands on top, in
//! `floe-sql`, so that whatever plans and reads need not wait for a query engine to compile.

mod columns;
mod decoded;
mod error;
#[doc(hidden)]
pub mod fuzzing;
pub mod inspect;
mod manifest;
mod output;
mod planning;
pub mod predicate;
mod prefetch;
pub mod reading;
mod request;
mod scan;
mod snapshot;
pub mod task;
mod timings;

pub use columns::{arrow_schema, with_metadata_columns};
pub use decoded::set_decoded_bytes;
pub use error::{Error, ErrorKind, Result};
pub use planning::PlanSummary;
pub use prefetch::{Prefetched, Progress, prefetch, prefetch_added, reachable};
pub use request::{At, ScanRequest};
pub use scan::{PlannedFile, Scan};
pub use snapshot::{Position, line_of_main, refs};
pub use timings::Timings;
