//! A read answered by several requests is of one version, or it is an error.

use std::time::Duration;

use floe_store::{ErrorKind, Store};
use floe_testing::line::{Fault, FaultKind, FaultMatcher};

use crate::support::{World, content};

const MIB: usize = 1024 * 1024;

#[tokio::test]
async fn an_object_overwritten_between_two_ranged_reads_is_an_error_never_mixed_bytes() {
    let world = World::new().await;
    let before = world.put("data/a.parquet", 20 * MIB);
    let store = world.store();
    let file = world.file(&store, "data/a.parquet");
    assert_eq!(file.read(0..70_000).await.unwrap(), before.slice(..70_000));
    let after = content("another version", 20 * MIB);
    world.origin.put("b/data/a.parquet", after.clone());
    let error = file
        .read(10 * MIB as u64..10 * MIB as u64 + 100)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Overwritten, "{error}");
    assert!(error.hint().unwrap().contains("purge"));
    // A new process knows the version from the first bytes that the cache gives it.
    let anew = world.file(&world.store(), "data/a.parquet");
    assert_eq!(anew.read(0..100).await.unwrap(), before.slice(..100));
    let again = anew.read(10 * MIB as u64..10 * MIB as u64 + 100).await;
    assert_eq!(again.unwrap_err().kind(), ErrorKind::Overwritten);
    // And the way out that the hint names.
    store.purge(&["s3://b/data/a.parquet".to_string()]).unwrap();
    let file = world.file(&store, "data/a.parquet");
    assert_eq!(file.read(0..20 * MIB as u64).await.unwrap(), after);
}

#[tokio::test]
async fn an_object_overwritten_while_a_large_read_is_under_way_is_an_error() {
    for gets in 1..5 {
        let world = World::new().await;
        let before = world.put("data/a.parquet", 24 * MIB);
        let after = content("another version", 24 * MIB);
        let mut config = world.config();
        config.origin.concurrency = 2;
        let store = Store::open(config).unwrap();
        store.expect_length("s3://b/data/a.parquet", 24 * MIB as u64);
        world
            .origin
            .overwrite_after("b/data/a.parquet", gets, after.clone());
        match world.file(&store, "data/a.parquet").read_all().await {
            Ok(bytes) => panic!(
                "{} of two versions, {} of the first",
                bytes.len(),
                bytes.iter().zip(&before).filter(|(a, b)| a == b).count()
            ),
            Err(error) => assert_eq!(error.kind(), ErrorKind::Overwritten, "{error}"),
        }
    }
}

#[tokio::test]
async fn an_object_overwritten_between_a_cut_answer_and_its_resumption_is_an_error() {
    let world = World::new().await;
    world.put("data/a.parquet", MIB);
    let mut config = world.config();
    config.origin.retry_delay = Duration::from_millis(1);
    let store = Store::open(config).unwrap();
    world.origin.inject(Fault::once(
        FaultMatcher::new("GET", "data/a"),
        FaultKind::CutAfter(500_000),
    ));
    world
        .origin
        .overwrite_after("b/data/a.parquet", 1, content("another version", MIB));
    let error = world
        .file(&store, "data/a.parquet")
        .read_all()
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Overwritten, "{error}");
    assert!(store.cache().unwrap().list().unwrap().is_empty());
}

#[tokio::test]
async fn what_is_cached_whole_is_of_one_version_whatever_happens_at_the_origin() {
    let world = World::new().await;
    let before = world.put("data/a.parquet", MIB);
    let store = world.store();
    world
        .file(&store, "data/a.parquet")
        .read_all()
        .await
        .unwrap();
    world
        .origin
        .put("b/data/a.parquet", content("another version", MIB));
    assert_eq!(
        world
            .file(&world.store(), "data/a.parquet")
            .read_all()
            .await
            .unwrap(),
        before
    );
    // Until a manifest says that it must be another file.
    world
        .origin
        .put("b/data/a.parquet", content("a longer version", MIB + 1));
    let store = world.store();
    store.expect_length("s3://b/data/a.parquet", MIB as u64 + 1);
    let read = world
        .file(&store, "data/a.parquet")
        .read_all()
        .await
        .unwrap();
    assert_eq!(read, content("a longer version", MIB + 1));
}
