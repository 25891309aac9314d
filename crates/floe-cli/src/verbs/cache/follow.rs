//! Following tables: their pointers are asked for again and again, and what new snapshots added is fetched.
//! Polls compare with the pointer that was seen last, by whichever run of floe: `--once` from a timer misses nothing.

use std::collections::HashSet;
use std::time::Duration;

use anyhow::Result;
use chrono::Utc;
use clap::Args;
use floe::{ErrorKind, Floe, Table};
use serde::Serialize;
use serde_json::json;

use super::disk;
use crate::context::Context;
use crate::failure::Usage;
use crate::ui::{bytes, count};

/// Ask for tables' pointers again and again, and fetch what new snapshots added.
#[derive(Debug, Args)]
pub(crate) struct FollowArgs {
    /// The tables, each as NAMESPACE.TABLE
    #[arg(required = true)]
    tables: Vec<String>,
    /// Seconds between two polls
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0, value_parser = interval)]
    interval: f64,
    /// Poll once
    #[arg(long, conflicts_with = "max_polls")]
    once: bool,
    /// Poll this many times
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    max_polls: Option<u64>,
}

fn interval(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds.is_finite() && (0.0..=86_400.0).contains(&seconds) => Ok(seconds),
        _ => Err("write seconds from 0 to 86400".to_string()),
    }
}

/// A snapshot that appeared.
#[derive(Serialize)]
struct Appeared {
    table: String,
    snapshot_id: i64,
    operation: String,
    timestamp: String,
    /// Files that it added, metadata included, and their bytes.
    files: u64,
    bytes: u64,
}

/// A table and the snapshots of it that are known.
struct Followed {
    name: String,
    known: Option<HashSet<i64>>,
}

pub(super) async fn run(context: &Context, args: FollowArgs) -> Result<()> {
    let polls = if args.once { Some(1) } else { args.max_polls };
    if context.ui.json && polls.is_none() {
        return Err(Usage::error(
            "following for ever never ends a JSON document: give --once or --max-polls with --json",
        ));
    }
    let floe = context.floe(false)?;
    disk(&floe)?;
    let mut followed = begin(context, &floe, args.tables).await?;
    let mut appeared = Vec::new();
    let mut poll = 0;
    loop {
        for table in &mut followed {
            match look(&floe, table).await {
                Ok(found) => {
                    for snapshot in &found {
                        tell(context, snapshot)?;
                    }
                    appeared.extend(found);
                }
                // What may pass is waited for, as long as there is a next poll.
                Err(error) if is_passing(&error) && polls.is_none_or(|polls| poll + 1 < polls) => {
                    context
                        .ui
                        .status(&format!("{}: {error}; asking again", table.name));
                }
                Err(error) => return Err(error),
            }
        }
        poll += 1;
        if polls.is_some_and(|polls| poll >= polls) {
            break;
        }
        tokio::time::sleep(Duration::from_secs_f64(args.interval)).await;
    }
    if context.ui.json {
        return context
            .ui
            .document(&json!({"polls": poll, "snapshots": appeared}));
    }
    Ok(())
}

/// What was known of the tables before the first poll: the pointers seen last.
async fn begin(context: &Context, floe: &Floe, names: Vec<String>) -> Result<Vec<Followed>> {
    let mut followed = Vec::new();
    for name in names {
        let known = match floe.table_seen_last(&name).await {
            Ok(Some(table)) => Some(snapshots(&table)),
            Ok(None) => None,
            Err(error) => {
                context.ui.status(&format!("{name}: can't tell what was seen last ({error}); beginning with what is there now"));
                None
            }
        };
        followed.push(Followed { name, known });
    }
    Ok(followed)
}

/// One poll: fetches what is new, oldest first. The first look at a table that was never seen only takes note of it.
async fn look(floe: &Floe, followed: &mut Followed) -> Result<Vec<Appeared>> {
    let table = floe.table_unnoted(&followed.name).await?;
    let mut appeared = Vec::new();
    if let Some(known) = &followed.known {
        for id in floe_scan::line_of_main(table.iceberg().metadata()) {
            if known.contains(&id) {
                continue;
            }
            appeared.push(fetch(floe, &followed.name, &table, id).await?);
        }
    }
    demote_expired(floe, followed, &table).await?;
    // Only now: a poll that failed half-way is made again in full.
    followed.known = Some(snapshots(&table));
    floe.note_seen(&table);
    Ok(appeared)
}

/// Where snapshots were expired since, what only they reached is the first to be evicted from now on.
async fn demote_expired(floe: &Floe, followed: &Followed, table: &Table) -> Result<()> {
    let now = snapshots(table);
    if followed
        .known
        .as_ref()
        .is_none_or(|known| known.is_subset(&now))
    {
        return Ok(());
    }
    let live = floe_scan::reachable(floe.store(), table.iceberg())
        .await
        .map_err(floe::Error::from)?;
    floe.store()
        .demote_unreachable(table.iceberg().metadata().uuid(), &live)
        .map_err(floe::Error::from)?;
    Ok(())
}

async fn fetch(floe: &Floe, name: &str, table: &Table, id: i64) -> Result<Appeared> {
    let metadata = table.iceberg().metadata();
    let snapshot = metadata
        .snapshot_by_id(id)
        .expect("the ids are those of the table's snapshots");
    let concurrency = floe.store().config().origin.concurrency;
    let added =
        floe_scan::prefetch_added(floe.store(), table.iceberg(), snapshot, concurrency).await;
    let progress = added.map_err(floe::Error::from)?;
    Ok(Appeared {
        table: name.to_string(),
        snapshot_id: id,
        operation: snapshot.summary().operation.as_str().to_string(),
        timestamp: snapshot
            .timestamp()
            .map_or_else(|_| String::new(), |time| time.to_rfc3339()),
        files: progress.files_done,
        bytes: progress.bytes_done,
    })
}

fn tell(context: &Context, snapshot: &Appeared) -> Result<()> {
    if context.ui.json {
        return Ok(());
    }
    context.ui.print(&format!(
        "{} {}: snapshot {} ({}), {} files, {}\n",
        Utc::now().format("%Y-%m-%dT%H:%M:%SZ"),
        snapshot.table,
        snapshot.snapshot_id,
        snapshot.operation,
        count(snapshot.files),
        bytes(snapshot.bytes)
    ))
}

fn snapshots(table: &Table) -> HashSet<i64> {
    table
        .iceberg()
        .metadata()
        .snapshots()
        .map(|snapshot| snapshot.snapshot_id())
        .collect()
}

fn is_passing(error: &anyhow::Error) -> bool {
    error
        .downcast_ref::<floe::Error>()
        .is_some_and(|error| error.kind() == ErrorKind::Unavailable)
}
