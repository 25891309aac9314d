//! `floe scan`: the rows of one table, to stdout or into a file.

use std::io::{self, BufWriter};
use std::path::PathBuf;
use std::time::Instant;

use anyhow::Result;
use arrow_array::RecordBatch;
use clap::Args;
use floe::{Floe, Timings};
use futures::TryStreamExt;
use indicatif::ProgressBar;
use serde::Serialize;

use crate::args::{AtArgs, RowArgs};
use crate::context::Context;
use crate::output::file::OutputFile;
use crate::output::listing::facts;
use crate::output::rows::{self, Format};
use crate::ui::{bytes, count};

/// Read one table.
#[derive(Debug, Args)]
pub(crate) struct ScanArgs {
    /// NAMESPACE.TABLE, or the path or URL of a metadata JSON
    table: String,
    #[command(flatten)]
    rows: RowArgs,
    #[command(flatten)]
    at: AtArgs,
    /// Stop after this many rows
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// The number of rows instead of the rows
    #[arg(long, conflicts_with = "output")]
    count: bool,
    /// Write the rows into this file: .parquet, .arrow or .csv
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Say where the time went
    #[arg(long)]
    timings: bool,
    /// Ask nobody: the table as it was seen last, files from the cache alone
    #[arg(long)]
    offline: bool,
}

/// Where the time of this run went, by stage.
#[derive(Debug, Serialize)]
struct Stages {
    load_seconds: f64,
    #[serde(flatten)]
    scan: Timings,
    total_seconds: f64,
    /// Bytes that came from the origin, from the cache on disk, from memory.
    origin_bytes: u64,
    disk_bytes: u64,
    memory_bytes: u64,
    requests: u64,
}

#[derive(Serialize)]
struct Counted {
    rows: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    timings: Option<Stages>,
}

#[derive(Serialize)]
struct Written {
    output: PathBuf,
    rows: u64,
    bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    timings: Option<Stages>,
}

pub(crate) async fn run(context: &Context, args: ScanArgs) -> Result<()> {
    let started = Instant::now();
    let floe = context.floe(args.offline)?;
    let table = floe.table(&args.table).await?;
    let load_seconds = started.elapsed().as_secs_f64();
    context.tell_last_seen(&floe);
    let mut builder = table.scan().at(args.at.at());
    if let Some(columns) = &args.rows.select {
        builder = builder.select(columns);
    }
    if let Some(filter) = &args.rows.filter {
        builder = builder.filter(filter);
    }
    if let Some(limit) = args.limit {
        builder = builder.limit(limit);
    }
    let scan = builder.build()?;
    let stages = || {
        args.timings
            .then(|| stages(&floe, scan.timings(), load_seconds, started))
    };

    if args.count {
        let rows = scan.count().await.map_err(floe::Error::from)?;
        return tell_count(context, rows, stages());
    }
    let bar = context.ui.spinner("scan");
    match &args.output {
        Some(path) => {
            let mut file = OutputFile::create(path, scan.schema())?;
            let rows = read(&scan, &bar, |batch| file.write(batch)).await?;
            let bytes = file.finish()?;
            tell_written(
                context,
                Written {
                    output: path.clone(),
                    rows,
                    bytes,
                    timings: stages(),
                },
            )
        }
        None => {
            let format = if context.ui.json {
                Format::Json
            } else {
                Format::Table
            };
            let mut writer = rows::writer(
                format,
                scan.schema(),
                BufWriter::new(io::stdout()),
                context.ui.width(),
            )?;
            read(&scan, &bar, |batch| {
                // A bar that goes on beside the rows would run into them.
                bar.finish_and_clear();
                writer.write(batch)
            })
            .await?;
            writer.finish()?;
            if let Some(stages) = stages() {
                context.ui.status(show(&stages).trim_end());
            }
            Ok(())
        }
    }
}

/// Hands on every batch; gives the number of rows.
async fn read(
    scan: &floe_scan::Scan,
    bar: &ProgressBar,
    mut take: impl FnMut(&RecordBatch) -> Result<()>,
) -> Result<u64> {
    let mut batches = scan.stream().await.map_err(floe::Error::from)?;
    let mut rows = 0;
    while let Some(batch) = batches.try_next().await.map_err(floe::Error::from)? {
        rows += batch.num_rows() as u64;
        take(&batch)?;
        let so_far = scan.timings();
        bar.set_prefix(format!(
            "{} files, {} rows, {}",
            so_far.files,
            count(rows),
            bytes(so_far.bytes)
        ));
    }
    bar.finish_and_clear();
    Ok(rows)
}

fn tell_count(context: &Context, rows: u64, timings: Option<Stages>) -> Result<()> {
    if context.ui.json {
        return context.ui.document(&Counted { rows, timings });
    }
    context.ui.print(&format!("{rows}\n"))?;
    if let Some(stages) = timings {
        context.ui.status(show(&stages).trim_end());
    }
    Ok(())
}

fn tell_written(context: &Context, written: Written) -> Result<()> {
    if context.ui.json {
        return context.ui.document(&written);
    }
    context.ui.status(&format!(
        "{}: {} rows, {}",
        written.output.display(),
        count(written.rows),
        bytes(written.bytes)
    ));
    if let Some(stages) = &written.timings {
        context.ui.status(show(stages).trim_end());
    }
    Ok(())
}

fn stages(floe: &Floe, scan: Timings, load_seconds: f64, started: Instant) -> Stages {
    let stats = floe.store().stats();
    let requests = stats.requests;
    Stages {
        load_seconds,
        scan,
        total_seconds: started.elapsed().as_secs_f64(),
        origin_bytes: stats.origin_bytes,
        disk_bytes: stats.disk_bytes,
        memory_bytes: stats.memory_bytes,
        requests: requests.get + requests.head + requests.list,
    }
}

fn show(stages: &Stages) -> String {
    let seconds = |value: f64| format!("{value:8.3} s");
    facts(&[
        ("load", seconds(stages.load_seconds)),
        ("plan", seconds(stages.scan.plan_seconds)),
        (
            "fetch wait",
            format!(
                "{}, summed over files",
                seconds(stages.scan.fetch_wait_seconds)
            ),
        ),
        (
            "decode",
            format!("{}, summed over files", seconds(stages.scan.decode_seconds)),
        ),
        ("total", seconds(stages.total_seconds)),
        ("rows", count(stages.scan.rows)),
        ("files", count(stages.scan.files)),
        ("bytes read", bytes(stages.scan.bytes)),
        (
            "from origin",
            format!(
                "{} in {} requests",
                bytes(stages.origin_bytes),
                stages.requests
            ),
        ),
        ("from disk", bytes(stages.disk_bytes)),
        ("from memory", bytes(stages.memory_bytes)),
    ])
}
