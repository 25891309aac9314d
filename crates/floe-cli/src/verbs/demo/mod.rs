//! `floe demo`: a lake of its own, read cold and warm over an emulated slow line, with the numbers.
//!
//! ```text
//!  lake (D/warehouse) ◀── S3 server in process ◀── slow line ◀── store (D/cache-demo) ◀── reads
//!        ▲                                                                           this process, then a new one
//!        └── a second writer appends one match, past the line
//! ```

pub(crate) mod reader;
mod report;
mod stage;

use std::path::PathBuf;

use anyhow::{Result, ensure};
use clap::Args;
use floe_testing::lake::{AppendedMatch, Lake, LakeConfig};

use crate::context::Context;
use reader::{Reading, read_events};
use report::{Phase, Report};
use stage::Stage;

/// Build a demo lake and read it cold and warm over an emulated slow line.
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Where the lake is built, or is already
    #[arg(long, value_name = "D", default_value = "./floe-demo")]
    dir: PathBuf,
    /// Rows of football.events; the other tables scale with it [default: those of the lake that is there, or 1117921]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    rows: Option<u64>,
    /// The line's rate in Mbit/s
    #[arg(long, value_name = "RATE", default_value_t = 20.0, value_parser = rate)]
    mbit: f64,
    /// The line's round trip in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 30)]
    rtt_ms: u64,
}

fn rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if rate.is_finite() && rate > 0.0 => Ok(rate),
        _ => Err("write a rate in Mbit/s that is more than 0".to_string()),
    }
}

pub(crate) async fn run(context: &Context, args: DemoArgs) -> Result<()> {
    let ui = &context.ui;
    ui.status(&format!("demo lake in {}", args.dir.display()));
    let lake = build(context, &args).await?;
    let stage = Stage::set(&lake, args.mbit, args.rtt_ms).await?;
    let floe = stage.source().floe()?;

    ui.status(&format!(
        "reading football.events cold: {} Mbit/s, {} ms round trip",
        args.mbit, args.rtt_ms
    ));
    let (cold, cold_line) = stage.measure(read_events(&floe, ui)).await?;
    let seen_before = stage.paths_asked();
    let needed_bytes = stage::bytes_needed(&floe).await?;
    ui.status("again, warm, in the same process");
    let (warm, warm_line) = stage.measure(read_events(&floe, ui)).await?;
    ui.status("again, warm, in a new process");
    let (anew, anew_line) = stage
        .measure(reader::read_in_new_process(stage.source()))
        .await?;
    ui.status("a second writer appends one match, then the same read");
    let added = lake.append_match().await?;
    let (after, after_line) = stage.measure(read_events(&floe, ui)).await?;
    let asked_twice = stage
        .paths_asked()
        .iter()
        .any(|path| seen_before.contains(path));

    for (what, reading) in [
        ("the second read", &warm),
        ("the read in a new process", &anew),
    ] {
        ensure!(
            reading.rows == cold.rows,
            "{what} found {} rows where the first found {}: that must not be, please report it",
            reading.rows,
            cold.rows
        );
    }
    let report = Report {
        dir: args.dir.clone(),
        mbit: args.mbit,
        rtt_ms: args.rtt_ms,
        floor: stage.floor(needed_bytes),
        needed_bytes,
        fresh: is_fresh(&cold, &after, &added) && !asked_twice,
        added,
        cold: Phase::new(cold, cold_line),
        warm: Phase::new(warm, warm_line),
        anew: Phase::new(anew, anew_line),
        after: Phase::new(after, after_line),
    };
    if ui.json {
        ui.document(&report.document())
    } else {
        ui.print(&report.text())
    }
}

/// Whether a read after the append saw exactly the rows that were added.
fn is_fresh(before: &Reading, after: &Reading, added: &AppendedMatch) -> bool {
    after.rows == before.rows + added.rows
}

async fn build(context: &Context, args: &DemoArgs) -> Result<Lake> {
    let known = Lake::open(&args.dir).await?;
    let rows = args.rows.or(known.as_ref().map(|lake| lake.summary().rows));
    drop(known);
    let config = rows.map_or_else(LakeConfig::default, |rows| LakeConfig {
        rows,
        ..LakeConfig::default()
    });
    let bar = context.ui.files_bar("building");
    let mut told = String::new();
    let lake = Lake::build(&args.dir, config, |table, done, total| {
        bar.set_message(format!("building {table}"));
        bar.set_length(total);
        bar.set_position(done);
        if told != table && !context.ui.shows_progress() {
            context
                .ui
                .status(&format!("building {table}: {total} files"));
            told = table.to_string();
        }
    })
    .await?;
    bar.finish_and_clear();
    stage::write_config(&lake)?;
    Ok(lake)
}
