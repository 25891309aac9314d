//! Reads random ranges of random objects through a shared cache and checks every byte, until it is killed.
//!
//!     hammer ENDPOINT DIR SEED OBJECTS MAX_BYTES
//!
//! The tests run several of these over one directory. It prints a dot for each hundred reads and ends
//! at the first wrong byte with a non-zero code.

#![allow(clippy::print_stdout, clippy::print_stderr, clippy::unwrap_used)]

#[path = "../tests/support.rs"]
#[allow(dead_code)]
mod support;

use std::io::Write;
use std::path::Path;

use floe_store::Store;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// The length of an object, from its number: some within one block, some over several segments.
fn length_of(object: u64) -> u64 {
    [30_000, 400_000, 70_000, 1_500_000, 9_000_000][(object % 5) as usize] + object
}

#[tokio::main]
async fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [endpoint, dir, seed, objects, max_bytes] = args.as_slice() else {
        eprintln!("usage: hammer ENDPOINT DIR SEED OBJECTS MAX_BYTES");
        std::process::exit(2);
    };
    let number = |text: &String| text.parse::<u64>().expect("a number");
    let mut rng = StdRng::seed_from_u64(number(seed));
    let mut config = support::config(Path::new(dir));
    config.cache.max_bytes = number(max_bytes);
    config.cache.memory_bytes = 4_000_000;
    let store = Store::open(config).expect("the store opens");
    let properties = support::properties(endpoint);
    for read in 1_u64.. {
        let object = rng.random_range(0..number(objects));
        let (key, length) = (format!("data/{object}.parquet"), length_of(object));
        let start = rng.random_range(0..length);
        let end = rng.random_range(start + 1..=length);
        let file = store
            .file(&format!("s3://b/{key}"), &properties, Some(support::TABLE))
            .expect("a location");
        let bytes = file
            .read(start..end)
            .await
            .unwrap_or_else(|error| panic!("{key} {start}..{end}: {error:?}"));
        let expected = support::content(&key, length as usize).slice(start as usize..end as usize);
        assert!(bytes == expected, "wrong bytes of {key} in {start}..{end}");
        if u64::is_multiple_of(read, 20) {
            print!(".");
            std::io::stdout().flush().expect("the parent listens");
        }
    }
}
