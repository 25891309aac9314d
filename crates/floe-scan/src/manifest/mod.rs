//! Manifest lists and manifests: decoded by our own lean Avro reader, and kept decoded for the whole process.
//! What their entries mean for a scan (pruning, deletes) lives in `planning`.
//!
//! ```text
//! read ──▶ cache ──▶ list | entries ──▶ avro       location -> bytes -> decoded
//!                       entries ──▶ partition, columns, details
//! ```

mod avro;
mod columns;
mod details;
mod entries;
mod list;
mod partition;
mod read;
#[cfg(test)]
mod tests;

pub(crate) use columns::MetricColumns;
pub(crate) use details::{Count, Details, End};
pub(crate) use entries::{DeleteDetails, Entry, Inherited, Live, Manifest};
pub(crate) use list::{ManifestFiles, may_hold_files};
pub(crate) use partition::PartitionColumn;
pub(crate) use read::{manifest_files, manifest_of, read_details, read_manifest};
