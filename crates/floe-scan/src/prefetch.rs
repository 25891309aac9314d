//! Warming the cache: every file that a scan would read is fetched, and nothing is kept in memory.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use floe_store::Store;
use futures::FutureExt;
use futures::stream::{self, StreamExt, TryStreamExt};
use iceberg::io::FileIO;
use iceberg::scan::FileScanTask;
use iceberg::spec::{ManifestStatus, SnapshotRef};
use iceberg::table::Table;
use serde::Serialize;

use crate::error::{Error, Result};
use crate::read::FileReader;
use crate::scan::Scan;

/// How far a warm-up is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Progress {
    /// Files fetched or found in the cache.
    pub files_done: u64,
    /// Files that the scan would read.
    pub files_total: u64,
    /// Bytes of the files done, by their full lengths.
    pub bytes_done: u64,
    /// Bytes of all files, by their full lengths.
    pub bytes_total: u64,
}

/// What a warm-up did.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Prefetched {
    /// Files and bytes, all done.
    pub progress: Progress,
    /// Locations of every file that the scan reads: manifest list, manifests, delete and data files.
    #[serde(skip)]
    pub locations: Vec<String>,
}

/// Bytes read by one call of a file that is fetched whole.
const PIECE: u64 = 16 * 1024 * 1024;

/// One file to fetch.
enum Fetch {
    Whole {
        location: String,
        length: u64,
    },
    /// A large file of which the scan needs some columns only.
    Columns(Box<FileScanTask>),
}

impl Fetch {
    fn length(&self) -> u64 {
        match self {
            Self::Whole { length, .. } => *length,
            Self::Columns(task) => task.file_size_in_bytes,
        }
    }
}

/// Fetches every file of the scan into the cache, `concurrency` at once, telling `progress` after each.
///
/// A file that is in the cache already costs no request, so that a warm-up broken off is resumed by starting it again.
/// Limit and row filter don't narrow it: files are chosen by pruning alone. With a selection of columns, files longer
/// than the store fetches whole are read by those columns.
pub async fn prefetch(
    scan: &Scan,
    concurrency: usize,
    progress: impl Fn(Progress),
) -> Result<Prefetched> {
    let (plan, reader) = scan.for_prefetch().await?;
    let mut locations: Vec<String> = plan
        .metadata
        .iter()
        .map(|(location, _)| location.clone())
        .collect();
    let metadata_bytes = plan
        .metadata
        .iter()
        .filter_map(|(_, length)| *length)
        .sum::<u64>();
    let metadata_files = plan.metadata.len() as u64;
    // Pruning skips manifests that no row can come from; warming fetches them too, since another query may not.
    let manifests = plan.metadata.clone();
    let tasks: Vec<FileScanTask> = plan.tasks.try_collect().await?;
    let fetches = fetches(
        tasks,
        scan.is_projected().then(|| whole_file_bytes(scan.store())),
    );

    locations.extend(fetches.keys().cloned());
    let mut at = Progress {
        files_total: metadata_files + fetches.len() as u64,
        bytes_total: metadata_bytes + fetches.values().map(Fetch::length).sum::<u64>(),
        ..Progress::default()
    };
    progress(at);
    let reader = Arc::new(reader);
    let metadata = manifests.into_iter().map(|(location, length)| {
        (
            length,
            Fetch::Whole {
                location,
                length: length.unwrap_or(0),
            },
        )
    });
    let files = fetches
        .into_values()
        .map(|fetch| (Some(fetch.length()), fetch));
    let mut done = stream::iter(metadata.chain(files))
        .map(|(length, fetch)| {
            let reader = reader.clone();
            async move {
                run(fetch, length.is_some(), &reader)
                    .await
                    .map(|()| length.unwrap_or(0))
            }
        })
        .buffer_unordered(concurrency.max(1));
    while let Some(bytes) = done.try_next().await? {
        at.files_done += 1;
        at.bytes_done += bytes;
        progress(at);
    }
    Ok(Prefetched {
        progress: at,
        locations,
    })
}

/// Fetches the files that one snapshot added to its table: its manifest list, its own manifests, and what they add.
pub async fn prefetch_added(
    store: &Store,
    table: &Table,
    snapshot: &SnapshotRef,
    concurrency: usize,
) -> Result<Progress> {
    let list = table
        .manifest_list_reader(snapshot)
        .load()
        .await
        .map_err(|source| {
            Error::read(
                format!("can't read the manifest list {}", snapshot.manifest_list()),
                source,
            )
        })?;
    let io = table.file_io();
    let mut at = Progress {
        files_done: 1,
        files_total: 1,
        ..Progress::default()
    };
    let mut added = Vec::new();
    for manifest in list
        .entries()
        .iter()
        .filter(|manifest| manifest.added_snapshot_id == snapshot.snapshot_id())
    {
        let length = u64::try_from(manifest.manifest_length).unwrap_or_default();
        store.expect_length(&manifest.manifest_path, length);
        let read = manifest.load_manifest(io).await.map_err(|source| {
            Error::read(
                format!("can't read the manifest {}", manifest.manifest_path),
                source,
            )
        })?;
        (at.files_done, at.bytes_done) = (at.files_done + 1, at.bytes_done + length);
        added.extend(
            read.entries()
                .iter()
                .filter(|entry| entry.status() == ManifestStatus::Added)
                .cloned(),
        );
    }
    at.files_total = at.files_done + added.len() as u64;
    at.bytes_total = at.bytes_done
        + added
            .iter()
            .map(|entry| entry.file_size_in_bytes())
            .sum::<u64>();
    let reads: Vec<_> = added
        .iter()
        .map(|entry| {
            let length = entry.file_size_in_bytes();
            store.expect_length(entry.file_path(), length);
            async move {
                read_whole(io, entry.file_path(), length)
                    .await
                    .map(|()| length)
            }
            .boxed()
        })
        .collect();
    let mut done = stream::iter(reads).buffer_unordered(concurrency.max(1));
    while let Some(bytes) = done.try_next().await? {
        at.files_done += 1;
        at.bytes_done += bytes;
    }
    Ok(at)
}

/// Locations of every file that a retained snapshot of the table reaches: what is cached beside them may go first.
///
/// Reads the manifest list of every snapshot and every manifest once.
pub async fn reachable(store: &Store, table: &Table) -> Result<Vec<String>> {
    let mut live = HashSet::new();
    let mut manifests = HashMap::new();
    for snapshot in table.metadata().snapshots() {
        let list = table
            .manifest_list_reader(snapshot)
            .load()
            .await
            .map_err(|source| {
                Error::read(
                    format!("can't read the manifest list {}", snapshot.manifest_list()),
                    source,
                )
            })?;
        live.insert(snapshot.manifest_list().to_string());
        manifests.extend(
            list.consume_entries()
                .into_iter()
                .map(|manifest| (manifest.manifest_path.clone(), manifest)),
        );
    }
    for (path, manifest) in manifests {
        store.expect_length(
            &path,
            u64::try_from(manifest.manifest_length).unwrap_or_default(),
        );
        let read = manifest
            .load_manifest(table.file_io())
            .await
            .map_err(|source| Error::read(format!("can't read the manifest {path}"), source))?;
        live.extend(
            read.entries()
                .iter()
                .filter(|entry| entry.is_alive())
                .map(|entry| entry.file_path().to_string()),
        );
        live.insert(path);
    }
    Ok(live.into_iter().collect())
}

fn whole_file_bytes(store: &Store) -> u64 {
    store.config().origin.whole_file_bytes
}

/// Every data and delete file once, by location. Files longer than `whole` are fetched by columns.
fn fetches(tasks: Vec<FileScanTask>, whole: Option<u64>) -> HashMap<String, Fetch> {
    let mut fetches = HashMap::new();
    for task in tasks {
        for delete in &task.deletes {
            let fetch = Fetch::Whole {
                location: delete.file_path.clone(),
                length: delete.file_size_in_bytes,
            };
            fetches.insert(delete.file_path.clone(), fetch);
        }
        let location = task.data_file_path.clone();
        let fetch = match whole {
            Some(whole) if task.file_size_in_bytes > whole => Fetch::Columns(Box::new(task)),
            _ => Fetch::Whole {
                location: location.clone(),
                length: task.file_size_in_bytes,
            },
        };
        fetches.insert(location, fetch);
    }
    fetches
}

async fn run(fetch: Fetch, length_known: bool, reader: &FileReader) -> Result<()> {
    match fetch {
        Fetch::Whole { location, length } if length_known => {
            read_whole(&reader.io, &location, length).await
        }
        // The planner has read it through the store, which caches it whole.
        Fetch::Whole { .. } => Ok(()),
        Fetch::Columns(task) => {
            let mut batches = reader.clone().file(*task);
            while batches.try_next().await?.is_some() {}
            Ok(())
        }
    }
}

async fn read_whole(io: &FileIO, location: &str, length: u64) -> Result<()> {
    let failed = |source| Error::read(format!("can't fetch {location}"), source);
    let file = io
        .new_input(location)
        .map_err(failed)?
        .reader()
        .await
        .map_err(failed)?;
    let mut start = 0;
    while start < length {
        let end = length.min(start + PIECE);
        file.read(start..end).await.map_err(failed)?;
        start = end;
    }
    Ok(())
}
