//! Purged files are gone: here, in other processes' memory, and from fetches under way.

use std::time::{Duration, Instant};

use floe_testing::line::{Fault, FaultKind, FaultMatcher};

use crate::support::{World, content};

#[tokio::test]
async fn a_purged_file_is_gone_from_memory_and_disk() {
    let world = World::new().await;
    world.put("data/a.parquet", 9_000_000);
    let kept = world.put("data/b.parquet", 1000);
    let store = world.store();
    for key in ["data/a.parquet", "data/b.parquet"] {
        world.file(&store, key).read_all().await.unwrap();
    }
    let report = store
        .purge(&["s3a://b/data/a.parquet".to_string()])
        .unwrap();
    assert_eq!((report.locations, report.files), (1, 3));
    let left = store.cache().unwrap().list().unwrap();
    assert_eq!(
        left.iter().map(|o| o.location.as_str()).collect::<Vec<_>>(),
        ["s3://b/data/b.parquet"]
    );
    world.origin.remove("b/data/a.parquet");
    world
        .file(&store, "data/a.parquet")
        .read_all()
        .await
        .unwrap_err();
    world.origin.reset();
    assert_eq!(
        world
            .file(&store, "data/b.parquet")
            .read_all()
            .await
            .unwrap(),
        kept
    );
    assert_eq!(world.gets(), 0);
}

#[tokio::test]
async fn a_fetch_under_way_does_not_bring_a_purged_file_back() {
    let world = World::new().await;
    world.put("data/a.parquet", 100_000);
    let store = world.store();
    let fault = world.origin.inject(Fault::once(
        FaultMatcher::new("GET", "data/a"),
        FaultKind::Delay(Duration::from_millis(200)),
    ));
    let file = world.file(&store, "data/a.parquet");
    let reading = tokio::spawn(async move { file.read_all().await });
    while world.origin.faults().struck(fault) == 0 {
        tokio::task::yield_now().await;
    }
    // Another process purges, so that this one hears of it through the directory alone.
    world
        .store()
        .purge(&["s3://b/data/a.parquet".to_string()])
        .unwrap();
    reading.await.unwrap().unwrap();
    assert!(store.cache().unwrap().list().unwrap().is_empty());
}

#[tokio::test]
async fn a_purge_reaches_the_memory_of_other_processes_within_a_second() {
    let world = World::new().await;
    world.put("data/a.parquet", 100_000);
    let (one, other) = (world.store(), world.store());
    for store in [&one, &other] {
        world
            .file(store, "data/a.parquet")
            .read_all()
            .await
            .unwrap();
    }
    assert!(other.stats().memory_used_bytes >= 100_000);
    one.purge(&["s3://b/data/a.parquet".to_string()]).unwrap();
    let purged = Instant::now();
    while other.stats().memory_used_bytes > 0 {
        assert!(
            purged.elapsed() < Duration::from_secs(20),
            "never heard of it"
        );
        tokio::task::yield_now().await;
    }
    let after = content("another", 100_000);
    world.origin.put("b/data/a.parquet", after.clone());
    assert_eq!(
        world
            .file(&other, "data/a.parquet")
            .read_all()
            .await
            .unwrap(),
        after
    );
}

#[tokio::test]
async fn a_path_purged_once_can_be_cached_again() {
    let world = World::new().await;
    let bytes = world.put("data/a.parquet", 1000);
    let store = world.store();
    store.purge(&["s3://b/data/a.parquet".to_string()]).unwrap();
    world
        .file(&store, "data/a.parquet")
        .read_all()
        .await
        .unwrap();
    world.origin.reset();
    assert_eq!(
        world
            .file(&world.store(), "data/a.parquet")
            .read_all()
            .await
            .unwrap(),
        bytes
    );
    assert_eq!(world.gets(), 0);
}
