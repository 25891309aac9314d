//! What a table of the lake is to hold, file by file, and how it is written: threads make files, one task commits them.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::{Context, Result, anyhow};
use iceberg::io::FileIO;
use iceberg::spec::Struct;
use iceberg::{NamespaceIdent, TableIdent};
use tokio::sync::mpsc;

use super::columns::Columns;
use super::{TableSummary, local_path};
use crate::table::{DataFileEncoder, EncodedFile, SqliteCatalog, TableSpec, TestTable};

/// A table's content. A file's rows depend on the plan and its place alone, so that threads may make them in any order.
pub(super) trait Plan: Send + Sync {
    fn namespace(&self) -> &str;
    fn name(&self) -> &str;
    /// How many files there are, at least one.
    fn files(&self) -> usize;
    /// How many of them one commit appends.
    fn files_per_commit(&self) -> usize;
    /// The rows of a file.
    fn columns(&self, file: usize) -> Result<Columns>;

    /// The column whose identity partitions the table.
    fn partition_column(&self) -> Option<&str> {
        None
    }

    /// The partition of a file.
    fn partition(&self, _file: usize) -> Struct {
        Struct::empty()
    }

    fn ident(&self) -> TableIdent {
        let namespace = NamespaceIdent::new(self.namespace().to_owned());
        TableIdent::new(namespace, self.name().to_owned())
    }
}

/// Builds one table under `warehouse` (a location) and registers it; `done` is told after every file.
pub(super) async fn build_table(
    catalog: &SqliteCatalog,
    warehouse: &str,
    plan: Arc<dyn Plan>,
    mut done: impl FnMut(u64, u64),
) -> Result<TableSummary> {
    let ident = plan.ident();
    let location = format!("{warehouse}/{}/{}", plan.namespace(), plan.name());
    let mut spec = TableSpec::new(location, plan.columns(0)?.schema()?);
    if let Some(column) = plan.partition_column() {
        spec = spec.partitioned_by(column)?;
    }
    let mut table = TestTable::create(FileIO::new_with_fs(), spec).await?;
    catalog.create_namespace(plan.namespace()).await?;
    catalog.register(&ident, table.metadata_location()).await?;

    let total = plan.files();
    let mut made = Files::start(plan.clone(), table.encoder()?)?;
    let mut waiting = BTreeMap::new();
    let mut committed = 0;
    let mut summary = TableSummary::new(&ident, table.metadata().current_schema());
    for finished in 1..=total {
        let (place, file) = made.next().await?;
        summary.count(&file.data_file);
        store(&file)?;
        waiting.insert(place, file.data_file);
        done(finished as u64, total as u64);
        // Commits go in order, as the season does, whichever thread was first.
        while committed < total {
            let until = (committed + plan.files_per_commit()).min(total);
            if waiting.range(committed..until).count() < until - committed {
                break;
            }
            let rest = waiting.split_off(&until);
            let files = std::mem::replace(&mut waiting, rest)
                .into_values()
                .collect();
            commit(catalog, &ident, &mut table, files).await?;
            committed = until;
        }
    }
    made.join()?;
    Ok(summary)
}

/// Appends files to a table and moves its pointer.
pub(super) async fn commit(
    catalog: &SqliteCatalog,
    ident: &TableIdent,
    table: &mut TestTable,
    files: Vec<iceberg::spec::DataFile>,
) -> Result<i64> {
    let old = table.metadata_location().to_owned();
    let snapshot = table.append_files(files).await?;
    let moved = catalog.swap(ident, &old, table.metadata_location()).await?;
    anyhow::ensure!(
        moved,
        "appending to {ident}: another writer moved its pointer from {old}; load the table again"
    );
    Ok(snapshot)
}

/// Writes a data file where its description says.
pub(super) fn store(file: &EncodedFile) -> Result<()> {
    let path = local_path(file.data_file.file_path());
    let folder = path.parent().unwrap_or(Path::new("/"));
    std::fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
    std::fs::write(path, &file.bytes).with_context(|| format!("writing {}", path.display()))
}

type Made = Result<(usize, EncodedFile)>;

/// The threads that make files, and what they have made.
struct Files {
    made: mpsc::Receiver<Made>,
    threads: Vec<thread::JoinHandle<()>>,
}

impl Files {
    fn start(plan: Arc<dyn Plan>, encoder: DataFileEncoder) -> Result<Self> {
        let count = thread::available_parallelism()
            .map_or(1, usize::from)
            .min(plan.files());
        // Bounds the memory: a thread that is ahead waits.
        let (sender, made) = mpsc::channel(count);
        let next = Arc::new(AtomicUsize::new(0));
        let threads = (0..count)
            .map(|i| {
                let (plan, encoder) = (plan.clone(), encoder.clone());
                let (next, sender) = (next.clone(), sender.clone());
                thread::Builder::new()
                    .name(format!("lake-{i}"))
                    .spawn(move || make_files(&*plan, &encoder, &next, &sender))
                    .context("starting a thread that makes files")
            })
            .collect::<Result<_>>()?;
        Ok(Self { made, threads })
    }

    async fn next(&mut self) -> Made {
        let made = self.made.recv().await;
        made.unwrap_or_else(|| Err(anyhow!("the threads that make files ended early")))
    }

    fn join(self) -> Result<()> {
        drop(self.made);
        for thread in self.threads {
            thread
                .join()
                .map_err(|_| anyhow!("a thread that makes files panicked"))?;
        }
        Ok(())
    }
}

fn make_files(
    plan: &dyn Plan,
    encoder: &DataFileEncoder,
    next: &AtomicUsize,
    made: &mpsc::Sender<Made>,
) {
    loop {
        let place = next.fetch_add(1, Ordering::Relaxed);
        if place >= plan.files() {
            return;
        }
        let file = plan
            .columns(place)
            .and_then(|columns| columns.batch(encoder.arrow_schema().clone()))
            .and_then(|batch| encoder.encode(&batch, plan.partition(place)));
        // Nobody receives any more when the build has failed elsewhere.
        if made.blocking_send(file.map(|file| (place, file))).is_err() {
            return;
        }
    }
}
