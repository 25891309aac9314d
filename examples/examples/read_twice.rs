//! A table read twice over an emulated slow line: the second read asks the store for nothing.
//!
//!     cargo run --release -p floe-examples --example read_twice

#![allow(clippy::print_stdout)]

use std::time::{Duration, Instant};

use floe::{Floe, StoreConfig};
use floe_testing::lake::{Lake, LakeConfig};
use floe_testing::line::{LineConfig, SlowLine};
use floe_testing::s3::S3Server;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let config = LakeConfig {
        rows: 10_000,
        ..LakeConfig::default()
    };
    let lake = Lake::build(dir.path(), config, |_, _, _| ()).await?;

    // The lake's files, served by an S3 server at the far end of a line of 100 Mbit/s.
    let server = S3Server::start(lake.dir(), "id", "secret").await?;
    let line = SlowLine::start(
        LineConfig {
            rate_mbit: 100.0,
            rtt: Duration::from_millis(10),
        },
        server.addr(),
    )
    .await?;

    let mut store = StoreConfig::default();
    store.cache.dir = Some(dir.path().join("cache"));
    store
        .location_map
        .insert(&lake.warehouse_location(), "s3://warehouse")?;
    let catalog = format!("sqlite:///{}", lake.dir().join("catalog.db").display());
    let floe = Floe::builder()
        .catalog("demo")
        .property("type", "sql")
        .property("uri", catalog)
        .property("s3.endpoint", line.endpoint())
        .property("s3.access-key-id", "id")
        .property("s3.secret-access-key", "secret")
        .store(store)
        .build()?;

    for read in ["first", "second"] {
        line.reset();
        let began = Instant::now();
        let rows = floe.table("football.events").await?.scan().count().await?;
        let requests: u64 = line.stats().requests.values().sum();
        println!(
            "{read} read: {rows} rows in {:.2?}, {requests} requests",
            began.elapsed()
        );
        anyhow::ensure!(rows == 10_000 && (read == "first" || requests == 0));
    }
    Ok(())
}
