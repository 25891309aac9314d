//! Rows of a warm table: planning, full and narrow scans, one match, counts.
//!
//!     cargo bench -p floe-benches --bench scan               full, judged: held or short
//!     cargo bench -p floe-benches --bench scan -- --test     each once, on a small lake, judging nothing

#![allow(clippy::print_stdout)]

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, Throughput};
use floe::{At, Floe, ScanBuilder, Table};
use floe_benches::{median, verdict};
use floe_testing::lake::{DEFAULT_ROWS, Lake, LakeConfig};
use futures::TryStreamExt;
use tokio::runtime::Runtime;

/// A match of the lake: one partition, one file.
const ONE_MATCH: &str = "match_id = 123100";

fn main() {
    let runtime = Runtime::new().expect("a runtime");
    let smoke = std::env::args().any(|arg| arg == "--test");
    let dir = tempfile::tempdir().expect("a directory");
    let rows = if smoke { 10_000 } else { DEFAULT_ROWS };
    let table = runtime.block_on(lake(dir.path(), rows));
    let mut criterion = Criterion::default()
        .measurement_time(Duration::from_secs(5))
        .sample_size(10)
        .configure_from_args();
    scans(&mut criterion, &runtime, &table, rows);
    criterion.final_summary();
    if !smoke {
        runtime.block_on(judge(&table));
    }
}

/// The events table of a demo lake, on local disk.
async fn lake(dir: &std::path::Path, rows: u64) -> Table {
    let config = LakeConfig {
        rows,
        ..LakeConfig::default()
    };
    let lake = Lake::build(dir, config, |_, _, _| ()).await;
    let lake = lake.expect("a directory of our own");
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

/// The bounds of a warm reader that need no peer.
async fn judge(table: &Table) {
    assert!(
        read(table.scan().filter(ONE_MATCH)).await > 0,
        "the lake has this match"
    );
    println!("\nbounds, medians of this run:");
    let one = median(51, || async {
        black_box(read(table.scan().filter(ONE_MATCH)).await);
    })
    .await;
    println!(
        "{}",
        verdict(
            "one match, warm, in process",
            one.as_secs_f64() * 1e3,
            10.0,
            "ms"
        )
    );
    let full = median(5, || async {
        black_box(read(table.scan()).await);
    })
    .await;
    println!(
        "       a full scan, batches dropped: {:.3} s",
        full.as_secs_f64()
    );
}
