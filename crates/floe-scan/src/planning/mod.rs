//! Which files a scan reads: manifests are read through the store, files pruned by what is known of them, and each
//! matched with the files that delete its rows. Nothing of a data file is read here.
//!
//! ```text
//!  Planner ──▶ manifest list ──▶ manifests, pruned by their summaries, eight at once
//!                                   │
//!                  delete manifests ├──▶ deletes    what deletes which file
//!                    data manifests └──▶ files      pruned by partition and metrics ──▶ FileTask
//! ```

mod context;
mod deletes;
mod equality;
mod files;
mod readable;
mod running;
mod specs;
mod summary;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use floe_store::Store;
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use iceberg::spec::{ManifestContentType, ManifestFile};
use tokio::runtime::Handle;
use tracing::Instrument;

use crate::error::{Error, ErrorKind, Result};
use crate::manifest::{ManifestFiles, manifest_files, may_hold_files};
use crate::predicate::{Predicate, SummaryKnowledge};
use crate::snapshot::Position;
use crate::task::FileTask;

use context::Context;
use running::{Job, Running};
use summary::Shared;

pub(crate) use readable::readable;
pub(crate) use specs::write_value;
pub use summary::PlanSummary;

/// What a scan reads: where, which rows, and what it wants to know of files.
#[derive(Clone, Debug)]
pub(crate) struct Planner {
    store: Store,
    position: Position,
    predicate: Option<Arc<Predicate>>,
    metrics: Vec<i32>,
}

impl Planner {
    /// Plans every file at this position.
    pub(crate) fn new(store: &Store, position: &Position) -> Self {
        Self {
            store: store.clone(),
            position: position.clone(),
            predicate: None,
            metrics: Vec::new(),
        }
    }

    /// Only files that may hold rows of which this is true; it is bound to the position's schema.
    pub(crate) fn matching(mut self, predicate: Option<Arc<Predicate>>) -> Self {
        self.predicate = predicate;
        self
    }

    /// Files shall carry metrics of these fields.
    pub(crate) fn with_metrics(mut self, field_ids: impl IntoIterator<Item = i32>) -> Self {
        self.metrics = field_ids.into_iter().collect();
        self
    }

    /// Reads the manifest list and gives the plan, whose manifests are read as its files are taken.
    /// A table without a snapshot gives no files.
    ///
    /// # Errors
    /// A manifest list that can't be read, a manifest of a partition spec that the table does not have.
    pub(crate) async fn start(self) -> Result<Plan> {
        let span = tracing::debug_span!("plan", table = %self.position.table().identifier());
        self.start_inner().instrument(span).await
    }

    async fn start_inner(self) -> Result<Plan> {
        let Some(snapshot) = self.position.snapshot() else {
            return Ok(Plan::empty());
        };
        let runtime = Handle::try_current().map_err(|source| {
            let message = "a scan must be started from within a tokio runtime";
            Error::new(ErrorKind::Invalid, message).with_source(source)
        })?;
        let table = self.position.table();
        let list = manifest_files(&self.store, table, snapshot).await?;
        let list_location = snapshot.manifest_list().to_string();
        let context = Arc::new(Context::new(
            &self.store,
            &self.position,
            self.predicate,
            &self.metrics,
            &list,
        )?);
        let summary = Shared::new(PlanSummary::of_list(list_location, &list));
        let chosen = choose(&context, &list, &summary);
        tracing::debug!(
            manifests = list.entries.len(),
            read = chosen.len(),
            "chose manifests"
        );
        let jobs = chosen.into_iter().map(|at| Job::new(list.clone(), at));
        let running = Running::new(context, runtime, summary.clone(), jobs);
        let tasks = stream::try_unfold(running, Running::next).boxed();
        Ok(Plan { tasks, summary })
    }
}

/// A plan under way.
pub(crate) struct Plan {
    /// The files, as they are found; dropping it ends all reading.
    pub(crate) tasks: BoxStream<'static, Result<FileTask>>,
    summary: Shared,
}

impl Plan {
    fn empty() -> Self {
        Self {
            tasks: stream::empty().boxed(),
            summary: Shared::default(),
        }
    }

    /// Every file, and the summary.
    pub(crate) async fn collect(self) -> Result<(Vec<FileTask>, PlanSummary)> {
        let tasks = self.tasks.try_collect().await?;
        Ok((tasks, self.summary.get()))
    }
}

/// The manifests to read, those of delete files first: no data file is complete without them.
fn choose(context: &Context, list: &ManifestFiles, summary: &Shared) -> Vec<usize> {
    let mut deletes = Vec::new();
    let mut data = Vec::new();
    for (at, manifest) in list.entries.iter().enumerate() {
        if !may_hold_files(manifest) {
            continue;
        }
        // Where no row can match, no delete matters either: it is of the same partitions.
        if !may_match(context, manifest) {
            summary.update(|summary| summary.pruned_manifest(manifest));
            continue;
        }
        match manifest.content {
            ManifestContentType::Deletes => deletes.push(at),
            ManifestContentType::Data => data.push(at),
        }
    }
    deletes.append(&mut data);
    deletes
}

fn may_match(context: &Context, manifest: &ManifestFile) -> bool {
    let (Some(predicate), Some(summaries)) = (&context.predicate, &manifest.partitions) else {
        return true;
    };
    let Some(spec) = context.specs.get(manifest.partition_spec_id) else {
        return true;
    };
    // Equality deletes of an unpartitioned spec are for all partitions.
    if spec.spec.is_unpartitioned() {
        return true;
    }
    let known = SummaryKnowledge::new(&context.schema, &spec.spec, summaries);
    predicate.truths(&known).may_match()
}
