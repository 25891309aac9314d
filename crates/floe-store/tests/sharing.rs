//! One directory, many processes, no daemon: each sees what others fetched, kill -9 breaks nothing,
//! and the limits hold.

use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use floe_store::Store;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::support::{World, content, files_below, seed};

/// `cargo test` builds the examples of the package beside its tests.
fn hammer() -> PathBuf {
    let me = std::env::current_exe().unwrap();
    me.parent()
        .and_then(|deps| deps.parent())
        .unwrap()
        .join("examples/hammer")
}

fn spawn(world: &World, seed: u64, objects: u64, max_bytes: u64) -> Child {
    let args = [
        world.origin.endpoint(),
        world.dir.path().display().to_string(),
        seed.to_string(),
        objects.to_string(),
        max_bytes.to_string(),
    ];
    Command::new(hammer())
        .args(args)
        .stdout(Stdio::piped())
        .spawn()
        .expect("the hammer is built with the tests")
}

/// Wait until a hammer printed a dot more; it must not have ended.
fn wait_for_progress(child: &mut Child) {
    let mut dot = [0];
    let read = child.stdout.as_mut().unwrap().read(&mut dot).unwrap();
    assert_eq!(read, 1, "a hammer ended: {:?}", child.wait());
}

fn lengths(object: u64) -> usize {
    [30_000, 400_000, 70_000, 1_500_000, 9_000_000][(object % 5) as usize] + object as usize
}

fn on_disk(world: &World) -> u64 {
    let root = world.dir.path().join("cache/v1");
    if !root.exists() {
        return 0;
    }
    // A file may go between the listing and the look.
    let shards = std::panic::catch_unwind(|| files_below(&root)).unwrap_or_default();
    shards
        .iter()
        .filter(|f| !f.ends_with("usage"))
        .filter_map(|f| std::fs::metadata(f).ok())
        .map(|m| m.len())
        .sum()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_hammering_one_directory_and_killed_at_random_serve_no_wrong_byte() {
    let seed = seed();
    let mut rng = StdRng::seed_from_u64(seed);
    let world = World::new().await;
    const OBJECTS: u64 = 20;
    const MAX_BYTES: u64 = 20_000_000;
    for object in 0..OBJECTS {
        world.put(&format!("data/{object}.parquet"), lengths(object));
    }
    let mut children: Vec<Child> = (0..3)
        .map(|i| spawn(&world, seed.wrapping_add(i), OBJECTS, MAX_BYTES))
        .collect();
    for round in 0..12 {
        for child in &mut children {
            wait_for_progress(child);
        }
        assert!(on_disk(&world) <= MAX_BYTES, "round {round}");
        // At any moment of its work.
        let until = Instant::now() + Duration::from_micros(rng.random_range(0..20_000));
        while Instant::now() < until {
            std::hint::spin_loop();
        }
        let victim = rng.random_range(0..children.len());
        children[victim].kill().unwrap();
        children[victim].wait().unwrap();
        children[victim] = spawn(&world, seed.wrapping_add(100 + round), OBJECTS, MAX_BYTES);
    }
    for mut child in children {
        wait_for_progress(&mut child);
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let mut config = world.config();
    config.cache.max_bytes = MAX_BYTES;
    let store = Store::open(config).unwrap();
    let report = store.cache().unwrap().verify().unwrap();
    assert_eq!(report.corrupt, 0, "{report:?}");
    assert!(report.files > 0);
    let left: Vec<_> = ["tmp", "flights"]
        .iter()
        .flat_map(|d| files_below(&world.dir.path().join("cache/v1").join(d)))
        .collect();
    assert!(left.is_empty(), "{left:?}");
    for object in 0..OBJECTS {
        let key = format!("data/{object}.parquet");
        assert_eq!(
            world.file(&store, &key).read_all().await.unwrap(),
            content(&key, lengths(object))
        );
    }
}

#[tokio::test]
async fn two_processes_that_want_the_same_fetch_it_once() {
    let world = World::new().await;
    let bytes = world.put("data/a.parquet", 3_000_000);
    // Two stores are two processes to each other: they share nothing but the directory.
    let (one, two) = (world.store(), world.store());
    let (a, b) = (
        world.file(&one, "data/a.parquet"),
        world.file(&two, "data/a.parquet"),
    );
    let (a, b) = tokio::join!(a.read_all(), b.read_all());
    assert_eq!((a.unwrap(), b.unwrap()), (bytes.clone(), bytes));
    assert_eq!(world.gets(), 1);
}

#[tokio::test]
async fn nothing_of_a_burst_is_lost() {
    let world = World::new().await;
    for i in 0..306 {
        world.put(&format!("data/{i}.parquet"), 40_000);
    }
    let store = world.store();
    let reads = (0..306).map(|i| {
        let file = world.file(&store, &format!("data/{i}.parquet"));
        async move { file.read_all().await.unwrap() }
    });
    futures::future::join_all(reads).await;
    drop(store);
    world.origin.reset();
    let warm = world.store();
    for i in 0..306 {
        let key = format!("data/{i}.parquet");
        assert_eq!(
            world.file(&warm, &key).read_all().await.unwrap(),
            content(&key, 40_000)
        );
    }
    assert_eq!(world.gets(), 0);
}

#[tokio::test]
async fn the_limit_holds_and_what_is_used_again_stays() {
    let world = World::new().await;
    let mut config = world.config();
    config.cache.max_bytes = 3_000_000;
    config.cache.memory_bytes = 0;
    let store = Store::open(config).unwrap();
    for i in 0..100 {
        world.put(&format!("data/{i}.parquet"), 100_000);
    }
    for i in 0..100 {
        for key in ["data/0.parquet".to_string(), format!("data/{i}.parquet")] {
            world.file(&store, &key).read_all().await.unwrap();
        }
        assert!(on_disk(&world) <= 3_000_000);
    }
    assert!(store.stats().evictions >= 70);
    world.origin.reset();
    world
        .file(&store, "data/0.parquet")
        .read_all()
        .await
        .unwrap();
    assert_eq!(
        world.gets(),
        0,
        "the file read a hundred times is still here"
    );
}

#[tokio::test]
async fn pinned_files_outlive_any_eviction_until_they_are_unpinned() {
    let world = World::new().await;
    let mut config = world.config();
    config.cache.max_bytes = 2_000_000;
    config.cache.memory_bytes = 0;
    let store = Store::open(config).unwrap();
    for i in 0..60 {
        world.put(&format!("data/{i}.parquet"), 100_000);
    }
    let pinned: Vec<String> = (0..5).map(|i| format!("s3://b/data/{i}.parquet")).collect();
    store.pin("crm.orders", &pinned).unwrap();
    for i in 0..60 {
        world
            .file(&store, &format!("data/{i}.parquet"))
            .read_all()
            .await
            .unwrap();
    }
    world.origin.reset();
    for i in 0..5 {
        world
            .file(&store, &format!("data/{i}.parquet"))
            .read_all()
            .await
            .unwrap();
    }
    assert_eq!(world.gets(), 0);
    assert_eq!(store.cache().unwrap().usage().unwrap().pins, ["crm.orders"]);
    assert!(store.cache().unwrap().unpin("crm.orders").unwrap());
    for i in 10..60 {
        world
            .file(&store, &format!("data/{i}.parquet"))
            .read_all()
            .await
            .unwrap();
    }
    let left = store.cache().unwrap().list().unwrap();
    assert!(
        left.iter()
            .filter(|object| pinned.contains(&object.location))
            .count()
            < 5
    );
}

#[tokio::test]
async fn a_cache_full_of_pinned_files_reads_on_from_the_origin() {
    let world = World::new().await;
    let mut config = world.config();
    config.cache.max_bytes = 250_000;
    let store = Store::open(config).unwrap();
    store
        .pin(
            "all",
            &(0..3)
                .map(|i| format!("s3://b/data/{i}.parquet"))
                .collect::<Vec<_>>(),
        )
        .unwrap();
    for i in 0..3 {
        let bytes = world.put(&format!("data/{i}.parquet"), 100_000);
        assert_eq!(
            world
                .file(&store, &format!("data/{i}.parquet"))
                .read_all()
                .await
                .unwrap(),
            bytes
        );
    }
    assert_eq!(store.cache().unwrap().list().unwrap().len(), 2);
    assert!(on_disk(&world) <= 250_000);
}

#[tokio::test]
async fn what_no_snapshot_reaches_is_the_first_to_go() {
    let world = World::new().await;
    let mut config = world.config();
    config.cache.max_bytes = 1_100_000;
    config.cache.memory_bytes = 0;
    let store = Store::open(config).unwrap();
    for i in 0..20 {
        world.put(&format!("data/{i}.parquet"), 100_000);
    }
    // The unreachable ones are even the last that were read.
    for i in (0..10).rev() {
        world
            .file(&store, &format!("data/{i}.parquet"))
            .read_all()
            .await
            .unwrap();
    }
    let live: Vec<String> = (5..20)
        .map(|i| format!("s3://b/data/{i}.parquet"))
        .collect();
    assert_eq!(
        store
            .demote_unreachable(crate::support::TABLE, &live)
            .unwrap(),
        5
    );
    for i in 10..14 {
        world
            .file(&store, &format!("data/{i}.parquet"))
            .read_all()
            .await
            .unwrap();
    }
    let left: Vec<String> = store
        .cache()
        .unwrap()
        .list()
        .unwrap()
        .into_iter()
        .map(|o| o.location)
        .collect();
    let kept = live.iter().take(9).filter(|l| left.contains(l)).count();
    assert_eq!(kept, 9, "all that is reachable is still here: {left:?}");
}

#[tokio::test]
async fn free_space_is_left_to_others() {
    let world = World::new().await;
    let mut config = world.config();
    config.cache.keep_free_bytes = u64::MAX / 2;
    let store = Store::open(config).unwrap();
    let bytes = world.put("data/a.parquet", 1000);
    assert_eq!(
        world
            .file(&store, "data/a.parquet")
            .read_all()
            .await
            .unwrap(),
        bytes
    );
    assert!(store.cache().unwrap().list().unwrap().is_empty());
}

#[tokio::test]
async fn principals_share_nothing_under_principal_scope() {
    let world = World::new().await;
    world.put("data/a.parquet", 1000);
    let mut config = world.config();
    config.cache.scope = floe_store::CacheScope::Principal;
    let store = Store::open(config).unwrap();
    for who in ["ann", "bob", "ann"] {
        let mut properties = world.properties();
        properties.insert("s3.access-key-id".into(), who.into());
        store
            .file("s3://b/data/a.parquet", &properties, None)
            .unwrap()
            .read_all()
            .await
            .unwrap();
    }
    assert_eq!(world.gets(), 2);
}
