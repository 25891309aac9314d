//! What the demo is played on: an S3 server over the lake, the slow line before it, a store that reads through both.

use std::collections::HashSet;
use std::fs;
use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use floe::{At, Floe};
use floe_testing::lake::{CATALOG_NAME, Lake};
use floe_testing::line::{LineConfig, LineStats, SlowLine};
use floe_testing::s3::S3Server;

use super::reader::{EVENTS, Source};

/// The demo's key pair: its server runs on this machine, for as long as the demo does.
const KEY: &str = "floe-demo";
const SECRET: &str = "floe-demo-secret";
/// The bucket, which is the lake's folder of that name.
const BUCKET: &str = "warehouse";

/// Server and line, running.
pub(super) struct Stage {
    line: SlowLine,
    source: Source,
    _server: S3Server,
}

impl Stage {
    /// Starts server and line, and empties the demo's own cache.
    pub(super) async fn set(lake: &Lake, mbit: f64, rtt_ms: u64) -> Result<Self> {
        let server = S3Server::start(lake.dir(), KEY, SECRET)
            .await
            .context("can't start the demo's S3 server")?;
        let config = LineConfig {
            rate_mbit: mbit,
            rtt: Duration::from_millis(rtt_ms),
        };
        let line = SlowLine::start(config, server.addr())
            .await
            .context("can't start the demo's slow line")?;
        let property = |key: &str, value: &str| (key.to_string(), value.to_string());
        let properties = [
            property("type", "sql"),
            property("uri", &lake.catalog().uri()),
            property("s3.endpoint", &line.endpoint()),
            property("s3.path-style-access", "true"),
            property("s3.region", "us-east-1"),
            property("s3.access-key-id", KEY),
            property("s3.secret-access-key", SECRET),
        ];
        let source = Source {
            catalog: CATALOG_NAME.to_string(),
            properties: properties.into(),
            cache_dir: empty_cache(lake.dir())?,
            map_from: lake.warehouse_location(),
            map_to: format!("s3://{BUCKET}"),
        };
        Ok(Self {
            line,
            source,
            _server: server,
        })
    }

    /// How to read the lake over the line.
    pub(super) fn source(&self) -> &Source {
        &self.source
    }

    /// What `work` gives, and what crossed the line while it ran.
    pub(super) async fn measure<T>(
        &self,
        work: impl Future<Output = Result<T>>,
    ) -> Result<(T, LineStats)> {
        self.line.reset();
        let done = work.await?;
        Ok((done, self.line.stats()))
    }

    /// The least time that these bytes need on the line.
    pub(super) fn floor(&self, bytes: u64) -> Duration {
        self.line.config().floor(bytes)
    }

    /// Paths asked for since the last measure began.
    pub(super) fn paths_asked(&self) -> HashSet<String> {
        self.line
            .requests()
            .into_iter()
            .map(|request| request.path)
            .collect()
    }
}

/// The demo's cache, with nothing in it.
fn empty_cache(dir: &Path) -> Result<PathBuf> {
    // The store refuses a cache that is reached through a link; the lake may be.
    let cache = dir
        .canonicalize()
        .with_context(|| format!("can't find {}", dir.display()))?
        .join("cache-demo");
    match fs::symlink_metadata(&cache) {
        Ok(found) if found.is_dir() => fs::remove_dir_all(&cache)
            .with_context(|| format!("can't empty {}", cache.display()))?,
        Ok(_) => bail!(
            "{} is in the way of the demo's cache: remove it, or give another --dir",
            cache.display()
        ),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => {
            return Err(error).with_context(|| format!("can't look at {}", cache.display()));
        }
    }
    Ok(cache)
}

/// Bytes that a full cold read can't do without: metadata JSON, manifest list, manifests, data files.
pub(super) async fn bytes_needed(floe: &Floe) -> Result<u64> {
    let table = floe.table(EVENTS).await?;
    let mut bytes: u64 = table
        .files(At::Main)
        .await?
        .iter()
        .map(|file| file.bytes)
        .sum();
    let iceberg = table.iceberg();
    let mut metadata = Vec::from_iter(iceberg.metadata_location().map(str::to_string));
    if let Some(snapshot) = iceberg.metadata().current_snapshot() {
        let list = iceberg.manifest_list_reader(snapshot).load().await?;
        bytes += list
            .entries()
            .iter()
            .filter_map(|manifest| u64::try_from(manifest.manifest_length).ok())
            .sum::<u64>();
        metadata.push(snapshot.manifest_list().to_string());
    }
    for location in metadata {
        let path = location.strip_prefix("file://").unwrap_or(&location);
        bytes += fs::metadata(path)
            .with_context(|| format!("can't look at {path}"))?
            .len();
    }
    Ok(bytes)
}

/// A `floe.toml` in the lake's folder, so that every other verb works on it afterwards. One that is there stays.
pub(super) fn write_config(lake: &Lake) -> Result<()> {
    let path = lake.dir().join("floe.toml");
    if path.exists() {
        return Ok(());
    }
    let text = format!(
        "# Written by `floe demo`. Paths are relative to this file.\n\
         default-catalog = \"{CATALOG_NAME}\"\n\n\
         [catalog.{CATALOG_NAME}]\n\
         type = \"sql\"\n\
         uri = \"sqlite:catalog.db\"\n"
    );
    let aside = path.with_extension("toml.new");
    fs::write(&aside, text)
        .and_then(|()| fs::rename(&aside, &path))
        .with_context(|| format!("can't write {}", path.display()))
}
