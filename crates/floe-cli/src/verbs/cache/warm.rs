//! Fetching what a read would fetch, and keeping it from eviction.

use std::time::Instant;

use anyhow::Result;
use clap::Args;
use floe::{At, Floe};
use floe_scan::{Prefetched, Scan};
use serde::Serialize;
use serde_json::json;

use super::disk;
use crate::args::{AtArgs, RowArgs};
use crate::context::Context;
use crate::ui::{bytes, count};

/// Fetch what a read of a table would fetch.
#[derive(Debug, Args)]
pub(crate) struct WarmArgs {
    /// NAMESPACE.TABLE, or the path or URL of a metadata JSON
    table: String,
    #[command(flatten)]
    rows: RowArgs,
    #[command(flatten)]
    at: AtArgs,
}

/// Let pinned files be evicted again.
#[derive(Debug, Args)]
pub(crate) struct UnpinArgs {
    /// The table as it was named when it was pinned
    table: String,
    #[command(flatten)]
    at: AtArgs,
}

/// What a warm-up did.
#[derive(Serialize)]
struct Warmed {
    table: String,
    snapshot_id: Option<i64>,
    /// Files that a read needs, and their bytes.
    files: u64,
    bytes: u64,
    /// What of it was not in the cache before.
    fetched_bytes: u64,
    requests: u64,
    seconds: f64,
}

pub(super) async fn warm(context: &Context, args: WarmArgs) -> Result<()> {
    let floe = context.floe(false)?;
    disk(&floe)?;
    let (warmed, _) = fetch(context, &floe, &args).await?;
    tell(context, &warmed, "cached")
}

pub(super) async fn pin(context: &Context, args: WarmArgs) -> Result<()> {
    let floe = context.floe(false)?;
    disk(&floe)?;
    let (warmed, locations) = fetch(context, &floe, &args).await?;
    floe.store()
        .pin(&pin_name(&args.table, &args.at.at()), &locations)
        .map_err(floe::Error::from)?;
    tell(context, &warmed, "pinned")
}

pub(super) fn unpin(context: &Context, args: &UnpinArgs) -> Result<()> {
    let floe = context.floe(false)?;
    let cache = disk(&floe)?;
    let name = pin_name(&args.table, &args.at.at());
    if !cache.unpin(&name).map_err(floe::Error::from)? {
        let pins = cache.usage().map_err(floe::Error::from)?.pins;
        let known = if pins.is_empty() {
            "nothing is pinned".to_string()
        } else {
            format!("pinned: {}", pins.join(", "))
        };
        return Err(
            floe::Error::new(floe::ErrorKind::NotFound, format!("{name} is not pinned"))
                .with_hint(known)
                .into(),
        );
    }
    if context.ui.json {
        return context.ui.document(&json!({"unpinned": name}));
    }
    context.ui.print(&format!("unpinned {name}\n"))
}

async fn fetch(context: &Context, floe: &Floe, args: &WarmArgs) -> Result<(Warmed, Vec<String>)> {
    let started = Instant::now();
    let table = floe.table(&args.table).await?;
    let mut builder = table.scan().at(args.at.at());
    if let Some(columns) = &args.rows.select {
        builder = builder.select(columns);
    }
    if let Some(filter) = &args.rows.filter {
        builder = builder.filter(filter);
    }
    let scan = builder.build()?;
    let before = floe.store().stats();
    let Prefetched {
        progress,
        mut locations,
    } = prefetch(context, floe, &args.table, &scan).await?;
    locations.extend(table.iceberg().metadata_location().map(str::to_string));
    let after = floe.store().stats();
    let warmed = Warmed {
        table: args.table.clone(),
        snapshot_id: scan.snapshot().map(|snapshot| snapshot.snapshot_id()),
        files: progress.files_done,
        bytes: progress.bytes_done,
        fetched_bytes: after.origin_bytes - before.origin_bytes,
        requests: after.requests.get - before.requests.get,
        seconds: started.elapsed().as_secs_f64(),
    };
    Ok((warmed, locations))
}

/// Fetches with a progress bar.
async fn prefetch(context: &Context, floe: &Floe, name: &str, scan: &Scan) -> Result<Prefetched> {
    let bar = context.ui.files_bar(name);
    let concurrency = floe.store().config().origin.concurrency;
    let done = floe_scan::prefetch(scan, concurrency, |at| {
        bar.set_length(at.files_total);
        bar.set_position(at.files_done);
        bar.set_prefix(format!(
            "{} of {}",
            bytes(at.bytes_done),
            bytes(at.bytes_total)
        ));
    });
    let done = done.await.map_err(floe::Error::from);
    bar.finish_and_clear();
    Ok(done?)
}

fn tell(context: &Context, warmed: &Warmed, verb: &str) -> Result<()> {
    if context.ui.json {
        return context.ui.document(warmed);
    }
    context.ui.print(&format!(
        "{}: {} files, {} {verb}; {} fetched in {} requests, {:.1} s\n",
        warmed.table,
        count(warmed.files),
        bytes(warmed.bytes),
        bytes(warmed.fetched_bytes),
        count(warmed.requests),
        warmed.seconds
    ))
}

/// The name of a pin: the table, and which state of it unless that is main.
fn pin_name(table: &str, at: &At) -> String {
    match at {
        At::Main => table.to_string(),
        At::Ref(name) => format!("{table}@{name}"),
        At::Snapshot(id) => format!("{table}@{id}"),
        At::Time(time) => format!("{table}@{}", time.to_rfc3339()),
    }
}
