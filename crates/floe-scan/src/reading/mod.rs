//! From planned files to batches of rows.
//!
//! ```text
//!  FileTask ──▶ open ────────▶ footer (decoded once), layout: which chunks hold which fields
//!                 │            deletes: positions, vectors, equality sets (decoded once)
//!                 ▼
//!               groups ──────▶ prune by statistics; indexes: Bloom filters, pages (offsets: where they lie)
//!                 │            fetch column chunks, or the pages of them that may match
//!                 │
//!                 ▼
//!               decode ──────▶ filter columns, then the rest of the rows that are left ──▶ batches
//! ```
//!
//! The network is waited for on the async workers, bytes are decoded on blocking threads, and what is in flight is bounded in bytes.

mod bounds;
mod chunks;
mod claims;
mod columns;
mod constant;
mod convert;
mod decode;
mod deletes;
mod deltas;
mod fields;
mod footer;
mod group;
mod guess;
mod indexes;
mod layout;
mod metadata;
mod needs;
mod offsets;
mod open;
mod page_index;
mod pages;
mod pass;
mod pieces;
mod pipeline;
mod prune;
mod rows;
mod scanned;
mod sieve;
mod source;
mod spec;

use std::sync::Arc;

use arrow_array::RecordBatch;
use futures::Stream;
use futures::stream::BoxStream;

use crate::error::Result;
use crate::task::FileTask;

pub use crate::decoded::Identity;
pub use metadata::{MetadataColumn, PartitionColumn};
pub use source::{Bytewise, Source, StoreSource};
pub use spec::{Limits, ReadSpec};

/// Reads planned files of one scan. Cheap to clone.
#[derive(Clone, Debug)]
pub struct RowReader {
    shared: Arc<open::Shared>,
}

impl RowReader {
    /// A reader of files that `source` opens. Nothing is read yet.
    pub fn new(source: Arc<dyn Source>, spec: ReadSpec) -> Self {
        Self {
            shared: Arc::new(open::Shared::new(source, spec)),
        }
    }

    /// The batches of these files: in the files' order if the spec says so, as they come otherwise.
    ///
    /// Work goes on ahead of the consumer within the spec's limits, and ends when the stream is dropped. Poll it on a tokio runtime.
    pub fn read<T>(&self, tasks: T) -> BoxStream<'static, Result<RecordBatch>>
    where
        T: Stream<Item = Result<FileTask>> + Send + 'static,
    {
        pipeline::read(self.shared.clone(), tasks)
    }
}

#[cfg(test)]
mod tests;
