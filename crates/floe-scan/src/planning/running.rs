//! A plan under way: manifests are loaded and planned on tasks of their own, and files handed on while later manifests
//! still arrive. Data files wait for the delete manifests, which are asked for first.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as Waker, Poll};

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use iceberg::spec::{ManifestContentType, ManifestFile};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tracing::Instrument;

use super::context::Context;
use super::deletes::{DeleteIndex, Gathering};
use super::files::{self, Planned};
use super::readable;
use super::summary::Shared;
use crate::error::{Error, ErrorKind, Result};
use crate::manifest::{Manifest, ManifestFiles, read_manifest};
use crate::task::FileTask;

/// Manifests that are read or planned at once.
const WINDOW: usize = 8;

/// A manifest to read.
#[derive(Clone)]
pub(super) struct Job {
    list: Arc<ManifestFiles>,
    at: usize,
}

impl Job {
    pub(super) fn new(list: Arc<ManifestFiles>, at: usize) -> Self {
        Self { list, at }
    }

    fn listed(&self) -> &ManifestFile {
        &self.list.entries[self.at]
    }

    fn is_deletes(&self) -> bool {
        self.listed().content == ManifestContentType::Deletes
    }
}

/// What a task has done.
enum Done {
    Loaded(Job, Arc<Manifest>),
    Planned(Planned),
}

/// The state of a plan.
pub(super) struct Running {
    context: Arc<Context>,
    runtime: Handle,
    summary: Shared,
    /// Manifests not asked for yet, those of delete files first.
    pending: VecDeque<Job>,
    tasks: FuturesUnordered<Task>,
    /// Delete manifests that are not there yet.
    deletes_left: usize,
    deletes: Vec<(Job, Arc<Manifest>)>,
    /// Data manifests that came before the last delete manifest.
    waiting: VecDeque<(Job, Arc<Manifest>)>,
    /// Once all delete manifests are there.
    index: Option<Arc<DeleteIndex>>,
    /// Files to hand on.
    ready: std::vec::IntoIter<FileTask>,
}

impl Running {
    pub(super) fn new(
        context: Arc<Context>,
        runtime: Handle,
        summary: Shared,
        jobs: impl Iterator<Item = Job>,
    ) -> Self {
        let pending: VecDeque<Job> = jobs.collect();
        let deletes_left = pending.iter().filter(|job| job.is_deletes()).count();
        Self {
            context,
            runtime,
            summary,
            pending,
            tasks: FuturesUnordered::new(),
            index: (deletes_left == 0).then(Arc::default),
            deletes_left,
            deletes: Vec::new(),
            waiting: VecDeque::new(),
            ready: Vec::new().into_iter(),
        }
    }

    /// The next file, and the plan after it.
    pub(super) async fn next(mut self) -> Result<Option<(FileTask, Self)>> {
        loop {
            if let Some(task) = self.ready.next() {
                // A file that is pruned may be anything.
                readable(&task, self.context.table.identifier())?;
                return Ok(Some((task, self)));
            }
            self.fill();
            let Some(done) = self.tasks.next().await else {
                return Ok(None);
            };
            match done? {
                Done::Loaded(job, manifest) if job.is_deletes() => {
                    self.deletes.push((job, manifest));
                    self.deletes_left -= 1;
                    if self.deletes_left == 0 {
                        self.index_deletes()?;
                    }
                }
                Done::Loaded(job, manifest) => self.waiting.push_back((job, manifest)),
                Done::Planned(planned) => self.take(planned),
            }
        }
    }

    /// Starts tasks: planning before loading, so that what is loaded does not pile up.
    fn fill(&mut self) {
        while self.tasks.len() < WINDOW {
            if let Some(index) = &self.index
                && let Some((job, manifest)) = self.waiting.pop_front()
            {
                let (context, index) = (self.context.clone(), index.clone());
                self.tasks.push(Task::spawn(&self.runtime, async move {
                    plan(&context, &job, &manifest, &index).map(Done::Planned)
                }));
                continue;
            }
            let Some(job) = self.pending.pop_front() else {
                return;
            };
            let (context, index) = (self.context.clone(), self.index.clone());
            self.tasks.push(Task::spawn(&self.runtime, async move {
                let manifest = read_manifest(&context.store, &context.table, job.listed()).await?;
                match index {
                    Some(index) if !job.is_deletes() => {
                        plan(&context, &job, &manifest, &index).map(Done::Planned)
                    }
                    _ => Ok(Done::Loaded(job, manifest)),
                }
            }));
        }
    }

    fn index_deletes(&mut self) -> Result<()> {
        let mut gathering = Gathering::new(&self.context);
        for (job, manifest) in std::mem::take(&mut self.deletes) {
            files::gather(&self.context, job.listed(), &manifest, &mut gathering)?;
        }
        let index = gathering.finish();
        let has_deletes = index.is_live();
        self.summary
            .update(|summary| summary.has_deletes = has_deletes);
        self.index = Some(Arc::new(index));
        Ok(())
    }

    fn take(&mut self, planned: Planned) {
        self.summary.update(|summary| {
            summary.files += planned.files;
            summary.files_pruned += planned.pruned;
            summary.bytes_pruned += planned.bytes_pruned;
        });
        self.ready = planned.tasks.into_iter();
    }
}

fn plan(context: &Context, job: &Job, manifest: &Manifest, index: &DeleteIndex) -> Result<Planned> {
    files::plan(context, job.listed(), manifest, index)
}

/// Work on a task of its own, which ends with it.
struct Task(JoinHandle<Result<Done>>);

impl Task {
    fn spawn(runtime: &Handle, work: impl Future<Output = Result<Done>> + Send + 'static) -> Self {
        Self(runtime.spawn(work.in_current_span()))
    }
}

impl Future for Task {
    type Output = Result<Done>;

    fn poll(mut self: Pin<&mut Self>, waker: &mut Waker<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(waker).map(|joined| {
            joined.unwrap_or_else(|source| {
                let message = "a task that reads a manifest ended before its time";
                Err(Error::new(ErrorKind::Unexpected, message).with_source(source))
            })
        })
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}
