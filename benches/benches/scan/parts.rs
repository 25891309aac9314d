//! Parts of a scan, asked of the reader alone: planning and pruning, footers and decoding, each kind of delete, counting.

use std::hint::black_box;

use criterion::{Criterion, Throughput};
use iceberg::expr::{Predicate, Reference};
use iceberg::spec::Datum;
use tokio::runtime::Runtime;

use crate::season::{Season, drain, new_store, plan, scan};

/// A match of the season: one partition, one file.
const ONE_MATCH: i64 = 123_100;

pub(crate) fn bench(criterion: &mut Criterion, runtime: &Runtime, season: &Season) {
    planning(criterion, runtime, season);
    reading(criterion, runtime, season);
    deletes(criterion, runtime, season);
    counting(criterion, runtime, season);
}

fn one_match() -> Predicate {
    Reference::new("match_id").equal_to(Datum::long(ONE_MATCH))
}

/// No statistics tell the rows of it: the condition is evaluated, and the rest read of the rows that are left.
fn late_minutes() -> Predicate {
    Reference::new("minute").greater_than(Datum::int(80))
}

/// Conditions on the table of very many files: none, one that its partitions tell, one that only metrics tell.
fn conditions(files: usize) -> [(&'static str, Option<Predicate>); 3] {
    let middle = files as i64 / 2;
    let one = Reference::new("c_1").equal_to(Datum::long(middle));
    let half = Reference::new("c_7").less_than(Datum::long(middle * 100));
    [
        ("all", None),
        ("one-partition", Some(one)),
        ("half-by-metrics", Some(half)),
    ]
}

fn planning(criterion: &mut Criterion, runtime: &Runtime, season: &Season) {
    let mut group = criterion.benchmark_group("plan");
    group.bench_function("season/again", |b| {
        b.to_async(runtime).iter(|| plan(season.plain.scan()));
    });
    group.bench_function("season/anew", |b| {
        b.to_async(runtime)
            .iter(|| plan(scan(&new_store(), &season.plain.table, None)));
    });
    group.throughput(Throughput::Elements(season.crowd_files as u64));
    for (name, filter) in conditions(season.crowd_files) {
        let again = season.crowd_scan(&season.store, filter.clone());
        group.bench_function(format!("crowd/{name}/again"), |b| {
            b.to_async(runtime).iter(|| plan(again.clone()));
        });
        group.bench_function(format!("crowd/{name}/anew"), |b| {
            b.to_async(runtime)
                .iter(|| plan(season.crowd_scan(&new_store(), filter.clone())));
        });
    }
    group.finish();
}

fn reading(criterion: &mut Criterion, runtime: &Runtime, season: &Season) {
    let plain = &season.plain;
    let index = plain.selecting(&["event_index"]);
    let ids = index.field_ids();
    let scans = [
        ("footers/again", index),
        ("late-minutes", plain.matching(late_minutes())),
        ("one-match", plain.matching(one_match())),
        ("decode/again", plain.scan()),
        ("decode/evolved", season.evolved.scan()),
    ];
    let mut group = criterion.benchmark_group("read");
    group.bench_function("footers/anew", |b| {
        b.to_async(runtime).iter(|| plain.drain_columns_anew(&ids));
    });
    for (name, scan) in &scans {
        group.bench_function(*name, |b| b.to_async(runtime).iter(|| drain(scan)));
    }
    group.bench_function("decode/anew", |b| {
        b.to_async(runtime).iter(|| plain.drain_anew());
    });
    group.bench_function("decode/bare", |b| {
        b.iter(|| season.bare.decode().expect("files of our own"));
    });
    group.bench_function("footers/bare", |b| {
        b.iter(|| season.bare.parse_footers().expect("files of our own"));
    });
    group.finish();
}

fn deletes(criterion: &mut Criterion, runtime: &Runtime, season: &Season) {
    let mut group = criterion.benchmark_group("deletes");
    for (name, reading) in season.with_deletes() {
        let again = reading.scan();
        group.bench_function(format!("{name}/again"), |b| {
            b.to_async(runtime).iter(|| drain(&again));
        });
        group.bench_function(format!("{name}/anew"), |b| {
            b.to_async(runtime).iter(|| reading.drain_anew());
        });
    }
    group.finish();
}

fn counting(criterion: &mut Criterion, runtime: &Runtime, season: &Season) {
    let one_match = ("one-match", season.plain.matching(one_match()));
    let with_deletes = season.with_deletes();
    let with_deletes = with_deletes.map(|(name, reading)| (name, reading.scan()));
    let mut group = criterion.benchmark_group("count");
    for (name, scan) in std::iter::once(one_match).chain(with_deletes) {
        group.bench_function(name, |b| {
            b.to_async(runtime)
                .iter(|| async { black_box(scan.count().await.expect("a count")) });
        });
    }
    group.finish();
}
