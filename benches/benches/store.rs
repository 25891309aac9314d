//! The cache: hits in memory and on disk, misses, bursts, eviction under load, start-up when full.
//!
//!     cargo bench -p floe-benches --bench store              full, judged: held or short
//!     cargo bench -p floe-benches --bench store -- --test    each once, judging nothing

#![allow(clippy::print_stdout)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{BatchSize, Criterion, Throughput};
use floe_benches::{Bench, median, verdict};
use floe_store::Store;
use tokio::runtime::Runtime;

const MIB: usize = 1024 * 1024;
/// A data file of the yardstick's table.
const FILE: usize = 400_000;

fn main() {
    let runtime = Runtime::new().expect("a runtime");
    let bench = runtime
        .block_on(Bench::start())
        .expect("a port and a directory");
    let smoke = std::env::args().any(|arg| arg == "--test");
    let mut criterion = Criterion::default()
        .measurement_time(Duration::from_secs(3))
        .sample_size(20)
        .configure_from_args();
    hits(&mut criterion, &runtime, &bench);
    misses(&mut criterion, &runtime, &bench);
    inserts(&mut criterion, &runtime, &bench);
    start_up(&mut criterion, &bench, if smoke { 100 } else { 100_000 });
    criterion.final_summary();
    if !smoke {
        runtime.block_on(judge(&bench));
    }
}

fn hits(criterion: &mut Criterion, runtime: &Runtime, bench: &Bench) {
    let bytes = bench.put("hit.parquet", MIB);
    let plain = bench.path().join("plain");
    std::fs::write(&plain, &bytes).expect("a plain file");
    let mut group = criterion.benchmark_group("hit");
    group.throughput(Throughput::Bytes(MIB as u64));
    for (name, memory) in [("memory/1MiB", 64 * MIB as u64), ("disk/1MiB", 0)] {
        let file = bench.file(&bench.store("hits", memory, u64::MAX), "hit.parquet");
        runtime
            .block_on(file.read(0..MIB as u64))
            .expect("the origin answers");
        group.bench_function(name, |b| {
            b.to_async(runtime)
                .iter(|| async { black_box(file.read(0..MIB as u64).await.expect("a hit")) });
        });
    }
    group.bench_function("plain-file/1MiB", |b| {
        b.iter(|| black_box(std::fs::read(&plain).expect("it is there")))
    });
    group.finish();
}

fn misses(criterion: &mut Criterion, runtime: &Runtime, bench: &Bench) {
    bench.put("miss.parquet", FILE);
    let mut group = criterion.benchmark_group("miss");
    group.throughput(Throughput::Bytes(FILE as u64));
    let store = bench.store("misses", 64 * MIB as u64, u64::MAX);
    group.bench_function("store/400kB", |b| {
        b.to_async(runtime)
            .iter_custom(|rounds| timed_misses(bench, &store, rounds));
    });
    let client = reqwest::Client::new();
    let url = format!("{}/b/miss.parquet", bench.origin.endpoint());
    group.bench_function("plain-get/400kB", |b| {
        b.to_async(runtime)
            .iter(|| async { black_box(get(&client, &url).await) });
    });
    group.finish();
}

async fn timed_misses(bench: &Bench, store: &Store, rounds: u64) -> Duration {
    let mut spent = Duration::ZERO;
    for _ in 0..rounds {
        store
            .purge(&["s3://b/miss.parquet".to_string()])
            .expect("a cache of our own");
        let began = Instant::now();
        let file = bench.file(store, "miss.parquet");
        black_box(file.read(0..FILE as u64).await.expect("the origin answers"));
        spent += began.elapsed();
    }
    spent
}

async fn get(client: &reqwest::Client, url: &str) -> bytes::Bytes {
    client
        .get(url)
        .send()
        .await
        .expect("an answer")
        .bytes()
        .await
        .expect("a body")
}

fn inserts(criterion: &mut Criterion, runtime: &Runtime, bench: &Bench) {
    let keys: Vec<String> = (0..306).map(|i| format!("burst/{i}.parquet")).collect();
    for key in &keys {
        bench.put(key, FILE);
    }
    let mut group = criterion.benchmark_group("insert");
    group
        .sample_size(10)
        .throughput(Throughput::Bytes((keys.len() * FILE) as u64));
    for (name, limit) in [
        ("burst/306x400kB", u64::MAX),
        ("evicting/306x400kB", 20_000_000),
    ] {
        group.bench_function(name, |b| {
            b.to_async(runtime).iter_batched(
                || {
                    let store = bench.store("inserts", 0, limit);
                    store
                        .cache()
                        .expect("on disk")
                        .clear()
                        .expect("a cache of our own");
                    store
                },
                |store| read_all(bench, store, &keys),
                BatchSize::PerIteration,
            );
        });
    }
    group.finish();
}

async fn read_all(bench: &Bench, store: Store, keys: &[String]) {
    let reads: Vec<_> = keys
        .iter()
        .map(|key| {
            let file = bench.file(&store, key);
            tokio::spawn(async move { file.read(0..FILE as u64).await })
        })
        .collect();
    for read in reads {
        black_box(read.await.expect("no panic").expect("the origin answers"));
    }
}

fn start_up(criterion: &mut Criterion, bench: &Bench, files: usize) {
    let store = bench.store("full", 0, u64::MAX);
    let root = store.cache().expect("on disk").dir().join("shards");
    // Stand-ins with the names that files have: start-up must not look at them.
    for file in 0..files {
        let shard = root.join(format!("{:02x}", file % 256));
        std::fs::create_dir_all(&shard).expect("a directory of our own");
        std::fs::write(
            shard.join(format!("{:02x}{file:030x}-{file:016x}.0", file % 256)),
            b"x",
        )
        .expect("a file");
    }
    drop(store);
    criterion.bench_function(&format!("start-up/{files}-files"), |b| {
        b.iter(|| black_box(bench.store("full", 0, u64::MAX)));
    });
}

/// The bounds of the cache, each measured against its peer in this run.
async fn judge(bench: &Bench) {
    println!("\nbounds, medians of this run:");
    let memory = bench.file(
        &bench.store("hits", 64 * MIB as u64, u64::MAX),
        "hit.parquet",
    );
    let first = memory.read(0..MIB as u64).await.expect("a hit");
    let again = memory.read(0..MIB as u64).await.expect("a hit");
    let copies = f64::from(u8::from(first.as_ptr() != again.as_ptr()));
    let hit = median(100_001, || async {
        drop(black_box(memory.read(0..MIB as u64).await))
    })
    .await;
    println!(
        "{}",
        verdict("a hit in memory", hit.as_secs_f64() * 1e6, 2.0, "us")
    );
    println!("{}", verdict("copies of its bytes", copies, 0.0, "copies"));

    let disk = bench.file(&bench.store("hits", 0, u64::MAX), "hit.parquet");
    let plain = bench.path().join("plain");
    let disk_hit = median(2001, || async {
        drop(black_box(disk.read(0..MIB as u64).await))
    })
    .await;
    let file_read = median(2001, || async { drop(black_box(std::fs::read(&plain))) }).await;
    let ratio = disk_hit.as_secs_f64() / file_read.as_secs_f64();
    println!(
        "{}",
        verdict(
            &format!(
                "a hit of 1 MiB on disk ({disk_hit:.1?}) over reading a plain file ({file_read:.1?})"
            ),
            ratio,
            1.3,
            "x"
        )
    );

    let store = bench.store("misses", 64 * MIB as u64, u64::MAX);
    let mut misses = Vec::new();
    let client = reqwest::Client::new();
    let url = format!("{}/b/miss.parquet", bench.origin.endpoint());
    let plain_get = median(301, || async { drop(black_box(get(&client, &url).await)) }).await;
    for _ in 0..301 {
        misses.push(timed_misses(bench, &store, 1).await);
    }
    misses.sort();
    let added = misses[misses.len() / 2].saturating_sub(plain_get);
    println!(
        "{}",
        verdict(
            "a miss of 400 kB, beyond the origin's own time",
            added.as_secs_f64() * 1e3,
            1.0,
            "ms"
        )
    );
}
