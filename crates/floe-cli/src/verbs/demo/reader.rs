//! A full read of the demo's table, in this process or in one of its own that starts with nothing in memory.

use std::collections::HashMap;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use clap::Args;
use floe::{Floe, StoreConfig};
use floe_store::{CacheConfig, LocationMap};
use futures::TryStreamExt;
use serde::{Deserialize, Serialize};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use crate::ui::{Ui, bytes, count};

/// The table that the demo reads.
pub(super) const EVENTS: &str = "football.events";

/// Bytes of disk that the demo's cache leaves free.
const KEEP_FREE_BYTES: u64 = 100_000_000;

/// How to read the lake over the line; given to the other process on its stdin.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Source {
    pub(super) catalog: String,
    pub(super) properties: HashMap<String, String>,
    pub(super) cache_dir: PathBuf,
    pub(super) map_from: String,
    pub(super) map_to: String,
}

impl Source {
    /// The SDK over the demo's cache and line; no configuration of the user's has a say in it.
    pub(super) fn floe(&self) -> Result<Floe> {
        let mut location_map = LocationMap::new();
        location_map
            .insert(&self.map_from, &self.map_to)
            .map_err(floe::Error::from)?;
        let cache = CacheConfig {
            dir: Some(self.cache_dir.clone()),
            keep_free_bytes: KEEP_FREE_BYTES,
            ..CacheConfig::default()
        };
        let store = StoreConfig {
            cache,
            location_map,
            ..StoreConfig::default()
        };
        Ok(Floe::builder()
            .catalog(&self.catalog)
            .properties(self.properties.clone())
            .store(store)
            .build()?)
    }
}

/// What a full read found, and how long it took.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Reading {
    pub(super) rows: u64,
    pub(super) columns: u64,
    pub(super) arrow_bytes: u64,
    pub(super) seconds: f64,
}

/// Reads every row and column.
pub(super) async fn read_events(floe: &Floe, ui: &Ui) -> Result<Reading> {
    let bar = ui.spinner("reading");
    let started = Instant::now();
    let scan = floe.table(EVENTS).await?.scan().build()?;
    let mut batches = scan.stream().await.map_err(floe::Error::from)?;
    let (mut rows, mut arrow_bytes) = (0, 0);
    while let Some(batch) = batches.try_next().await.map_err(floe::Error::from)? {
        rows += batch.num_rows() as u64;
        arrow_bytes += batch.get_array_memory_size() as u64;
        bar.set_prefix(format!(
            "{} files, {} rows, {}",
            scan.timings().files,
            count(rows),
            bytes(scan.timings().bytes)
        ));
    }
    let seconds = started.elapsed().as_secs_f64();
    bar.finish_and_clear();
    Ok(Reading {
        rows,
        columns: scan.schema().fields().len() as u64,
        arrow_bytes,
        seconds,
    })
}

/// Has another process read everything; its time is that from its start to its end.
pub(super) async fn read_in_new_process(source: &Source) -> Result<Reading> {
    let program = std::env::current_exe().context("can't tell which program this is")?;
    let started = Instant::now();
    let mut child = Command::new(&program)
        .arg("demo-reader")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .kill_on_drop(true)
        .spawn()
        .with_context(|| format!("can't start {}", program.display()))?;
    let mut stdin = child.stdin.take().context("the new process has no stdin")?;
    stdin.write_all(&serde_json::to_vec(source)?).await?;
    drop(stdin);
    let output = child.wait_with_output().await?;
    let seconds = started.elapsed().as_secs_f64();
    if !output.status.success() {
        bail!("the read in a new process failed: {}", output.status);
    }
    let reading: Reading =
        serde_json::from_slice(&output.stdout).context("the new process gave no report")?;
    Ok(Reading { seconds, ..reading })
}

/// Nothing: what to read comes on stdin.
#[derive(Debug, Args)]
pub(crate) struct ReaderArgs {}

/// The other process: reads what stdin says, reports on stdout.
pub(crate) async fn run(_args: ReaderArgs) -> Result<()> {
    let source: Source =
        serde_json::from_reader(io::stdin()).context("this verb is for `floe demo` alone")?;
    let reading = read_events(&source.floe()?, &Ui::new(true, true)).await?;
    let mut stdout = io::stdout().lock();
    stdout.write_all(&serde_json::to_vec(&reading)?)?;
    Ok(stdout.flush()?)
}
