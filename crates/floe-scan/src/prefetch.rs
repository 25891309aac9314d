//! Warming the cache: every file that a scan would read is fetched, and nothing is kept in memory.

use std::collections::{HashMap, HashSet};

use floe_store::Store;
use futures::FutureExt;
use futures::stream::{self, StreamExt, TryStreamExt};
use iceberg::io::FileIO;
use iceberg::spec::{ManifestFile, ManifestStatus, SnapshotRef};
use iceberg::table::Table;
use serde::Serialize;

use crate::error::{Error, Result};
use crate::manifest::{Entry, manifest_files, read_manifest};
use crate::scan::Scan;
use crate::task::FileTask;

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
    Columns(Box<FileTask>),
    /// A manifest list, whose length nobody tells.
    List(String),
}

impl Fetch {
    fn length(&self) -> u64 {
        match self {
            Self::Whole { length, .. } => *length,
            Self::Columns(task) => task.file.bytes,
            Self::List(_) => 0,
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
    let (tasks, summary) = scan.plan(&[]).await?.collect().await?;
    // Pruning skips manifests that no row can come from; warming fetches them too, since another query may not.
    let metadata = summary.metadata;
    let fetches = fetches(
        tasks,
        scan.is_projected().then(|| whole_file_bytes(scan.store())),
    );

    let mut locations: Vec<String> = metadata
        .iter()
        .map(|(location, _)| location.clone())
        .collect();
    locations.extend(fetches.keys().cloned());
    let metadata_bytes: u64 = metadata.iter().filter_map(|(_, length)| *length).sum();
    let mut at = Progress {
        files_total: (metadata.len() + fetches.len()) as u64,
        bytes_total: metadata_bytes + fetches.values().map(Fetch::length).sum::<u64>(),
        ..Progress::default()
    };
    progress(at);
    let metadata = metadata.into_iter().map(|(location, length)| match length {
        Some(length) => Fetch::Whole { location, length },
        None => Fetch::List(location),
    });
    for (location, fetch) in &fetches {
        scan.store().expect_length(location, fetch.length());
    }
    let mut done = stream::iter(metadata.chain(fetches.into_values()))
        .map(|fetch| async move {
            let bytes = fetch.length();
            run(fetch, scan).await.map(|()| bytes)
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
    let list = manifest_files(store, table, snapshot).await?;
    let io = table.file_io();
    let mut at = Progress {
        files_done: 1,
        files_total: 1,
        ..Progress::default()
    };
    let mut added = Vec::new();
    let of_it = |manifest: &&ManifestFile| manifest.added_snapshot_id == snapshot.snapshot_id();
    for listed in list.entries.iter().filter(of_it) {
        let manifest = read_manifest(store, table, listed).await?;
        let length = u64::try_from(listed.manifest_length).unwrap_or_default();
        (at.files_done, at.bytes_done) = (at.files_done + 1, at.bytes_done + length);
        let entries = manifest.entries().iter();
        added.extend(
            entries
                .filter(|entry| {
                    let by_it = |id| id == snapshot.snapshot_id();
                    entry.status == ManifestStatus::Added && entry.snapshot_id.is_none_or(by_it)
                })
                .map(|entry| (manifest.path(entry).to_string(), entry.bytes)),
        );
    }
    at.files_total = at.files_done + added.len() as u64;
    at.bytes_total = at.bytes_done + added.iter().map(|(_, bytes)| bytes).sum::<u64>();
    let reads: Vec<_> = added
        .iter()
        .map(|(path, length)| {
            store.expect_length(path, *length);
            async move { read_whole(io, path, *length).await.map(|()| *length) }.boxed()
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
        let list = manifest_files(store, table, snapshot).await?;
        live.insert(snapshot.manifest_list().to_string());
        let listed = list.entries.iter().cloned();
        manifests.extend(listed.map(|manifest| (manifest.manifest_path.clone(), manifest)));
    }
    for (path, listed) in manifests {
        let manifest = read_manifest(store, table, &listed).await?;
        let kept = |entry: &&Entry| entry.status != ManifestStatus::Deleted;
        let entries = manifest.entries().iter().filter(kept);
        live.extend(entries.map(|entry| manifest.path(entry).to_string()));
        live.insert(path);
    }
    Ok(live.into_iter().collect())
}

fn whole_file_bytes(store: &Store) -> u64 {
    store.config().origin.whole_file_bytes
}

/// Every data and delete file once, by location. Files longer than `whole` are fetched by columns.
fn fetches(tasks: Vec<FileTask>, whole: Option<u64>) -> HashMap<String, Fetch> {
    let mut fetches = HashMap::new();
    for task in tasks {
        for delete in &task.deletes {
            let fetch = Fetch::Whole {
                location: delete.path.clone(),
                length: delete.bytes,
            };
            fetches.insert(delete.path.clone(), fetch);
        }
        let location = task.file.path.clone();
        let fetch = match whole {
            Some(whole) if task.file.bytes > whole => Fetch::Columns(Box::new(task)),
            _ => Fetch::Whole {
                location: location.clone(),
                length: task.file.bytes,
            },
        };
        fetches.insert(location, fetch);
    }
    fetches
}

async fn run(fetch: Fetch, scan: &Scan) -> Result<()> {
    match fetch {
        Fetch::Whole { location, length } => {
            read_whole(scan.table().file_io(), &location, length).await
        }
        Fetch::Columns(task) => {
            // Every row, whatever the filter: another query may want the others.
            let task = FileTask {
                residual: None,
                ..*task
            };
            let mut batches = scan.reader().read(stream::iter([Ok(task)]));
            while batches.try_next().await?.is_some() {}
            Ok(())
        }
        Fetch::List(location) => {
            let failed = |source| Error::read(format!("can't fetch {location}"), source);
            let file = scan
                .table()
                .file_io()
                .new_input(&location)
                .map_err(failed)?;
            file.read().await.map(drop).map_err(failed)
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
