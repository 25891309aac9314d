//! Which files a scan reads: manifests through the store, pruning by iceberg-rust's own planner.
//! Before it runs, the store is told every length that the manifests know, and what the reader can't read is refused by name.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use floe_store::Store;
use futures::stream::{self, BoxStream};
use futures::{FutureExt, StreamExt, TryStreamExt};
use iceberg::expr::{Bind, BoundPredicate};
use iceberg::scan::FileScanTask;
use iceberg::spec::{
    DataContentType, DataFileFormat, ManifestContentType, ManifestFile, ManifestList,
    PartitionSpec, Schema,
};
use tracing::Instrument;

use crate::constants::PartitionConstants;
use crate::error::{Error, ErrorKind, Result};
use crate::filter::PushableColumns;
use crate::snapshot::Position;

/// Files to read, as they are found.
pub(crate) type Tasks = BoxStream<'static, Result<FileScanTask>>;

/// Manifests read at once.
const MANIFEST_CONCURRENCY: usize = 8;

/// What a scan needs beside its position: columns and filters.
#[derive(Debug)]
pub(crate) struct Wanted<'a> {
    /// Field ids to read.
    pub(crate) field_ids: &'a [i32],
    /// Filters on the rows, taken together; they prune files here.
    pub(crate) filters: Vec<&'a datafusion::logical_expr::Expr>,
}

/// A plan under way.
pub(crate) struct Plan {
    /// Metadata files that it read: manifest list and manifests, with their lengths where known.
    pub(crate) metadata: Vec<(String, Option<u64>)>,
    /// Whether rows are deleted by files beside the data files.
    pub(crate) has_deletes: bool,
    /// Whether the reader drops rows by a predicate of its own.
    pub(crate) filters_rows: bool,
    /// The data files with their delete files.
    pub(crate) tasks: Tasks,
}

impl Plan {
    /// Plans the scan of `wanted` at this position. A table without a snapshot gives no files.
    pub(crate) async fn start(
        store: &Store,
        position: &Position,
        wanted: &Wanted<'_>,
    ) -> Result<Self> {
        let span = tracing::debug_span!("plan", table = %position.table().identifier());
        Self::start_inner(store, position, wanted)
            .instrument(span)
            .await
    }

    async fn start_inner(store: &Store, position: &Position, wanted: &Wanted<'_>) -> Result<Self> {
        let Some(snapshot) = position.snapshot() else {
            let tasks = stream::empty().boxed();
            return Ok(Self {
                metadata: Vec::new(),
                has_deletes: false,
                filters_rows: false,
                tasks,
            });
        };
        let table = position.table();
        let manifests = read_manifest_list(store, position).await?;
        let mut metadata = vec![(snapshot.manifest_list().to_string(), None)];
        metadata.extend(manifests.entries().iter().map(|m| {
            (
                m.manifest_path.clone(),
                u64::try_from(m.manifest_length).ok(),
            )
        }));

        let deletes = live_of(&manifests, ManifestContentType::Deletes);
        for manifest in &deletes {
            check_deletes(store, position, manifest).await?;
        }
        let specs = Arc::new(
            SpecOfFile::find(position, &live_of(&manifests, ManifestContentType::Data)).await?,
        );

        let pruning = prunable(position, &manifests)
            .then(|| PushableColumns::for_planning(position.schema(), table.metadata()))
            .and_then(|columns| columns.push_down(wanted.filters.iter().copied()));
        let reading = Arc::new(reader_predicate(position, wanted)?);
        let filters_rows = reading.is_some();

        let mut scan = table
            .scan()
            .snapshot_id(snapshot.snapshot_id())
            .select(column_names(position.schema(), wanted.field_ids)?)
            .with_concurrency_limit(MANIFEST_CONCURRENCY);
        if let Some(predicate) = pruning {
            tracing::debug!(%predicate, "pruning files");
            scan = scan.with_filter(predicate);
        }
        let planning = |source| {
            Error::read(
                format!("can't plan the scan of {}", table.identifier()),
                source,
            )
        };
        let files = scan
            .build()
            .map_err(planning)?
            .plan_files()
            .await
            .map_err(planning)?;

        let store = store.clone();
        let constants = PartitionConstants::new(position);
        let name = table.identifier().to_string();
        let tasks = files
            .map(move |task| {
                let task = task.map_err(|source| {
                    Error::read(format!("can't plan the scan of {name}"), source)
                })?;
                finish(task, &store, &specs, &constants, reading.as_ref().as_ref())
            })
            .boxed();
        Ok(Self {
            metadata,
            has_deletes: !deletes.is_empty(),
            filters_rows,
            tasks,
        })
    }

    /// Every file of the plan.
    pub(crate) async fn collect(self) -> Result<Vec<FileScanTask>> {
        self.tasks.try_collect().await
    }
}

/// Reads the manifest list, and tells the store how long its manifests are.
async fn read_manifest_list(store: &Store, position: &Position) -> Result<ManifestList> {
    let table = position.table();
    let snapshot = position
        .snapshot()
        .expect("only called for a position that has a snapshot");
    let list = table
        .manifest_list_reader(snapshot)
        .load()
        .await
        .map_err(|source| {
            let what = format!(
                "can't read the manifest list {} of {}",
                snapshot.manifest_list(),
                table.identifier()
            );
            Error::read(what, source)
        })?;
    for manifest in list.entries() {
        if let Ok(length) = u64::try_from(manifest.manifest_length) {
            store.expect_length(&manifest.manifest_path, length);
        }
    }
    Ok(list)
}

fn live_of(manifests: &ManifestList, content: ManifestContentType) -> Vec<&ManifestFile> {
    let live =
        |m: &&ManifestFile| m.content == content && (m.has_added_files() || m.has_existing_files());
    manifests.entries().iter().filter(live).collect()
}

/// Refuses delete files that iceberg-rust would misread or skip in silence.
async fn check_deletes(store: &Store, position: &Position, manifest: &ManifestFile) -> Result<()> {
    let what = || format!("can't read the manifest {}", manifest.manifest_path);
    let read = manifest
        .load_manifest(position.table().file_io())
        .await
        .map_err(|source| Error::read(what(), source))?;
    for entry in read.entries().iter().filter(|entry| entry.is_alive()) {
        store.expect_length(entry.file_path(), entry.file_size_in_bytes());
        let feature = match (entry.file_format(), entry.content_type()) {
            (DataFileFormat::Parquet, _) => continue,
            (DataFileFormat::Puffin, _) => "a deletion vector".to_string(),
            (format, DataContentType::EqualityDeletes) => {
                format!("equality deletes written as {format}")
            }
            (format, _) => format!("position deletes written as {format}"),
        };
        return Err(unsupported(
            position.table().identifier(),
            entry.file_path(),
            &feature,
        ));
    }
    Ok(())
}

fn unsupported(table: impl std::fmt::Display, file: &str, feature: &str) -> Error {
    Error::new(
        ErrorKind::Unsupported,
        format!("can't read {table}: {file} is {feature}, which floe can't read yet"),
    )
    .with_hint(
        "rewrite the table's data files with the engine that wrote them, or read an older snapshot",
    )
}

/// Which partition spec a data file was written with; iceberg-rust's tasks don't say.
#[derive(Debug)]
enum SpecOfFile {
    One(Option<Arc<PartitionSpec>>),
    ByPath(HashMap<String, Arc<PartitionSpec>>),
}

impl SpecOfFile {
    async fn find(position: &Position, manifests: &[&ManifestFile]) -> Result<Self> {
        let metadata = position.table().metadata();
        let ids: BTreeSet<i32> = manifests
            .iter()
            .map(|manifest| manifest.partition_spec_id)
            .collect();
        let mut ids_left = ids.iter();
        if let (first, None) = (ids_left.next(), ids_left.next()) {
            return Ok(Self::One(
                first
                    .and_then(|id| metadata.partition_spec_by_id(*id))
                    .cloned(),
            ));
        }
        let io = position.table().file_io();
        let reads: Vec<_> = manifests
            .iter()
            .map(|manifest| manifest_paths(manifest, io).boxed())
            .collect();
        let mut reads = stream::iter(reads).buffer_unordered(MANIFEST_CONCURRENCY);
        let mut by_path = HashMap::new();
        while let Some((id, paths)) = reads.try_next().await? {
            if let Some(spec) = metadata.partition_spec_by_id(id) {
                by_path.extend(paths.into_iter().map(|path| (path, spec.clone())));
            }
        }
        Ok(Self::ByPath(by_path))
    }

    fn of(&self, path: &str) -> Option<&Arc<PartitionSpec>> {
        match self {
            Self::One(spec) => spec.as_ref(),
            Self::ByPath(by_path) => by_path.get(path),
        }
    }
}

/// The live data files of a manifest, with its partition spec's id.
async fn manifest_paths(
    manifest: &ManifestFile,
    io: &iceberg::io::FileIO,
) -> Result<(i32, Vec<String>)> {
    let read = manifest.load_manifest(io).await.map_err(|source| {
        Error::read(
            format!("can't read the manifest {}", manifest.manifest_path),
            source,
        )
    })?;
    let live = read.entries().iter().filter(|entry| entry.is_alive());
    Ok((
        manifest.partition_spec_id,
        live.map(|entry| entry.file_path().to_string()).collect(),
    ))
}

/// Whether iceberg-rust can project filters to the partitions of every manifest: a spec whose source column was
/// dropped has no partition type under this schema, and planning with a filter would fail.
fn prunable(position: &Position, manifests: &ManifestList) -> bool {
    let metadata = position.table().metadata();
    manifests.entries().iter().all(|manifest| {
        metadata
            .partition_spec_by_id(manifest.partition_spec_id)
            .is_some_and(|spec| {
                spec.fields()
                    .iter()
                    .all(|field| position.schema().field_by_id(field.source_id).is_some())
            })
    })
}

fn reader_predicate(position: &Position, wanted: &Wanted<'_>) -> Result<Option<BoundPredicate>> {
    let columns = PushableColumns::for_reading(position.schema(), position.table().metadata());
    let Some(predicate) = columns.push_down(wanted.filters.iter().copied()) else {
        return Ok(None);
    };
    let bound = predicate
        .rewrite_not()
        .bind(position.schema().clone(), true);
    bound
        .map(Some)
        .map_err(|source| Error::read("can't bind a filter to the table's schema", source))
}

fn column_names(schema: &Schema, ids: &[i32]) -> Result<Vec<String>> {
    ids.iter()
        .map(|&id| {
            schema
                .name_by_field_id(id)
                .map(str::to_string)
                .ok_or_else(|| {
                    Error::new(
                        ErrorKind::Unexpected,
                        format!("the table's schema has no field of id {id}"),
                    )
                })
        })
        .collect()
}

/// A task of iceberg's planner as our reader wants it.
fn finish(
    mut task: FileScanTask,
    store: &Store,
    specs: &SpecOfFile,
    constants: &PartitionConstants,
    reading: Option<&BoundPredicate>,
) -> Result<FileScanTask> {
    if task.data_file_format != DataFileFormat::Parquet {
        let feature = format!("a data file written as {}", task.data_file_format);
        return Err(unsupported(
            constants.table(),
            &task.data_file_path,
            &feature,
        ));
    }
    store.expect_length(&task.data_file_path, task.file_size_in_bytes);
    for delete in &task.deletes {
        store.expect_length(&delete.file_path, delete.file_size_in_bytes);
    }
    // The planner's predicate may compare what the reader would get wrong; the reader gets its own.
    task.predicate = reading.cloned();
    // Zero and zero mean the whole file; a range would choose row groups by adding up their lengths.
    (task.start, task.length) = (0, 0);
    if let (Some(spec), Some(partition)) = (specs.of(&task.data_file_path), task.partition.take())
        && let Some((spec, partition)) = constants.of(spec, &partition)?
    {
        task.partition_spec = Some(spec);
        task.partition = Some(partition);
    }
    Ok(task)
}
