//! Rows of warm tables: planning, footers, decoding, each kind of delete, pruning, full and narrow scans, one match, counts.
//!
//!     cargo bench -p floe-benches --bench scan               full, judged: held or short
//!     cargo bench -p floe-benches --bench scan -- --test     each once, on small tables, judging nothing
//!
//! `scan` asks as an application does; the other groups (`parts`) ask the reader alone, and `bounds` judges.

#![allow(clippy::print_stdout)]

mod bounds;
mod parts;
mod season;

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, Throughput};
use floe::{At, Floe, ScanBuilder, Table};
use floe_testing::lake::{Lake, LakeConfig};
use futures::TryStreamExt;
use season::{Season, Sizes};
use tokio::runtime::Runtime;

/// A match of the lake: one partition, one file.
const ONE_MATCH: &str = "match_id = 123100";

fn main() {
    let runtime = Runtime::new().expect("a runtime");
    let smoke = std::env::args().any(|arg| arg == "--test");
    let sizes = if smoke { Sizes::SMOKE } else { Sizes::FULL };
    let dir = tempfile::tempdir().expect("a directory");
    let lake = runtime.block_on(lake(dir.path(), sizes.rows));
    let table = runtime.block_on(events(&lake));
    let season = runtime.block_on(Season::build(&lake, &sizes));
    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_secs(1))
        .measurement_time(Duration::from_secs(3))
        .sample_size(10)
        .configure_from_args();
    scans(&mut criterion, &runtime, &table, sizes.rows);
    parts::bench(&mut criterion, &runtime, &season);
    criterion.final_summary();
    if !smoke {
        runtime.block_on(bounds::judge(&table, &season));
    }
}

/// A demo lake on local disk.
async fn lake(dir: &std::path::Path, rows: u64) -> Lake {
    let config = LakeConfig {
        rows,
        ..LakeConfig::default()
    };
    let lake = Lake::build(dir, config, |_, _, _| ()).await;
    lake.expect("a directory of our own")
}

/// Its events table.
async fn events(lake: &Lake) -> Table {
    let catalog = format!("sqlite:///{}", lake.dir().join("catalog.db").display());
    let floe = Floe::builder()
        .catalog("demo")
        .property("type", "sql")
        .property("uri", catalog)
        .build()
        .expect("a catalog of our own");
    let table = floe.table("football.events").await;
    table.expect("the lake has it")
}

fn scans(criterion: &mut Criterion, runtime: &Runtime, table: &Table, rows: u64) {
    let mut group = criterion.benchmark_group("scan");
    group.bench_function("plan", |b| {
        b.to_async(runtime)
            .iter(|| async { black_box(table.files(At::Main).await.expect("a plan")) });
    });
    group.bench_function("count", |b| {
        b.to_async(runtime)
            .iter(|| async { black_box(table.scan().count().await.expect("a count")) });
    });
    group.bench_function("count/filtered", |b| {
        let count = || table.scan().filter("minute > 80").count();
        b.to_async(runtime)
            .iter(|| async { black_box(count().await.expect("a count")) });
    });
    group.bench_function("one-match", |b| {
        b.to_async(runtime)
            .iter(|| read(table.scan().filter(ONE_MATCH)));
    });
    group.bench_function("three-columns", |b| {
        b.to_async(runtime)
            .iter(|| read(table.scan().select(["match_id", "minute", "player"])));
    });
    group.throughput(Throughput::Elements(rows));
    group.bench_function("full", |b| {
        b.to_async(runtime).iter(|| read(table.scan()));
    });
    group.finish();
}

/// Takes every batch and drops it.
async fn read(scan: ScanBuilder) -> usize {
    let (_, mut batches) = scan.stream().await.expect("a plan");
    let mut rows = 0;
    while let Some(batch) = batches.try_next().await.expect("a batch") {
        rows += black_box(batch).num_rows();
    }
    rows
}
