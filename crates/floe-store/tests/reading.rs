//! Right bytes for any range, and no byte over the line twice.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::support::{TABLE, World, content, seed};

const MIB: u64 = 1024 * 1024;

#[tokio::test]
async fn any_ranges_in_any_order_give_the_objects_bytes_and_fetch_each_block_once() {
    let mut rng = StdRng::seed_from_u64(seed());
    let world = World::new().await;
    for case in 0..12 {
        let key = format!("data/{case}.parquet");
        let length = [
            1,
            65_535,
            65_536,
            65_537,
            400_000,
            4 * MIB,
            4 * MIB + 1,
            11 * MIB + 77,
        ][case % 8];
        let bytes = world.put(&key, length as usize);
        let told = rng.random_bool(0.7);
        let open = || {
            let store = world.store();
            if told {
                store.expect_length(&format!("s3://b/{key}"), length);
            }
            world.file(&store, &key)
        };
        let mut file = open();
        let mut processes = 1;
        world.origin.reset();
        for step in 0..30 {
            let start = rng.random_range(0..length);
            let end =
                rng.random_range(start + 1..=length.min(start + [100, 100_000, 9 * MIB][step % 3]));
            assert_eq!(
                file.read(start..end).await.unwrap(),
                bytes.slice(start as usize..end as usize),
                "{start}..{end} of {length}"
            );
            if rng.random_bool(0.1) {
                // A new process: memory is gone, the disk is not.
                file = open();
                processes += 1;
            }
        }
        // As long as nothing tells the length, the block that a range ends in can't be asked for whole.
        let partial_blocks = if told { 0 } else { processes };
        let down: u64 = world
            .origin
            .requests()
            .iter()
            .map(|r| span(r.range.as_deref(), length))
            .sum();
        assert!(
            down <= length + partial_blocks * 65_536,
            "{down} bytes crossed for an object of {length}"
        );
    }
}

/// Bytes that a `Range` header asks of an object of this length.
fn span(range: Option<&str>, length: u64) -> u64 {
    let Some((start, end)) = range
        .and_then(|r| r.strip_prefix("bytes="))
        .and_then(|r| r.split_once('-'))
    else {
        return length;
    };
    let end = end
        .parse::<u64>()
        .map_or(length, |end| (end + 1).min(length));
    end - start.parse::<u64>().unwrap()
}

#[tokio::test]
async fn a_footer_read_of_a_small_file_fetches_the_whole_file_once() {
    let world = World::new().await;
    let bytes = world.put("data/a.parquet", 400_000);
    for told in [true, false] {
        let store = world.store();
        store.cache().unwrap().clear().unwrap();
        let location = "s3://b/data/a.parquet";
        if told {
            store.expect_length(location, 400_000);
        }
        let file = world.file(&store, "data/a.parquet");
        world.origin.reset();
        assert_eq!(
            file.read(380_000..400_000).await.unwrap(),
            bytes.slice(380_000..)
        );
        assert_eq!(file.read(4..70_000).await.unwrap(), bytes.slice(4..70_000));
        assert_eq!(file.read_all().await.unwrap(), bytes);
        assert_eq!(world.gets(), 1, "length told: {told}");
    }
}

#[tokio::test]
async fn a_warm_read_in_a_new_process_asks_nothing() {
    let world = World::new().await;
    let small = world.put("metadata/m0.avro", 20_000);
    let large = world.put("data/l.parquet", 10 * MIB as usize);
    let cold = world.store();
    assert_eq!(
        world
            .file(&cold, "metadata/m0.avro")
            .read_all()
            .await
            .unwrap(),
        small
    );
    assert_eq!(
        world
            .file(&cold, "data/l.parquet")
            .read(0..10 * MIB)
            .await
            .unwrap(),
        large
    );
    world.origin.reset();
    let warm = world.store();
    assert_eq!(
        world
            .file(&warm, "metadata/m0.avro")
            .read_all()
            .await
            .unwrap(),
        small
    );
    assert_eq!(
        world
            .file(&warm, "data/l.parquet")
            .read(5..9 * MIB)
            .await
            .unwrap(),
        large.slice(5..9 * MIB as usize)
    );
    assert_eq!(world.gets(), 0);
    let stats = warm.stats();
    assert_eq!(
        (stats.misses, stats.origin_bytes, stats.requests.get),
        (0, 0, 0)
    );
    assert!(
        stats.disk_hits >= 4 && stats.bytes_saved >= 9 * MIB,
        "{stats:?}"
    );
}

#[tokio::test]
async fn many_callers_of_one_range_share_one_flight() {
    let world = World::new().await;
    let bytes = world.put("data/a.parquet", 3_000_000);
    let store = world.store();
    store.expect_length("s3://b/data/a.parquet", 3_000_000);
    let readers = (0..64).map(|i| {
        let file = world.file(&store, "data/a.parquet");
        tokio::spawn(async move { file.read(i * 1000..3_000_000 - i).await.unwrap() })
    });
    for (i, read) in futures::future::join_all(readers)
        .await
        .into_iter()
        .enumerate()
    {
        assert_eq!(read.unwrap(), bytes.slice(i * 1000..3_000_000 - i));
    }
    assert_eq!(world.gets(), 1);
}

#[tokio::test]
async fn a_caller_that_goes_away_does_not_stop_the_fetch() {
    let world = World::new().await;
    let bytes = world.put("data/a.parquet", 100_000);
    let store = world.store();
    let file = world.file(&store, "data/a.parquet");
    let reading = tokio::spawn({
        let file = file.clone();
        async move { file.read(0..100_000).await }
    });
    while world.origin.stats().requests.is_empty() {
        tokio::task::yield_now().await;
    }
    reading.abort();
    assert_eq!(file.read(0..100_000).await.unwrap(), bytes);
    assert_eq!(world.gets(), 1);
}

#[tokio::test]
async fn near_ranges_share_a_request_and_far_ones_do_not() {
    let world = World::new().await;
    let bytes = world.put("data/big.parquet", 40 * MIB as usize);
    let store = world.store();
    store.expect_length("s3://b/data/big.parquet", 40 * MIB);
    let file = world.file(&store, "data/big.parquet");
    let ranges = [10..20, 130_000..131_000, 20 * MIB..20 * MIB + 5, 7..7];
    let read = file.read_ranges(&ranges).await.unwrap();
    for (range, read) in ranges.iter().zip(read) {
        assert_eq!(read, bytes.slice(range.start as usize..range.end as usize));
    }
    assert_eq!(world.gets(), 2, "two near ranges in one, the far one apart");
}

#[tokio::test]
async fn a_large_range_is_split_and_few_connections_carry_it() {
    let world = World::new().await;
    let bytes = world.put("data/big.parquet", 64 * MIB as usize);
    let store = world.store();
    store.expect_length("s3://b/data/big.parquet", 64 * MIB);
    assert_eq!(
        world
            .file(&store, "data/big.parquet")
            .read(0..64 * MIB)
            .await
            .unwrap(),
        bytes
    );
    let stats = world.origin.stats();
    assert!(stats.peak_connections <= 8, "{stats:?}");
    assert_eq!(world.gets(), 16);
}

#[tokio::test]
async fn an_empty_file_and_an_empty_range_are_no_trouble() {
    let world = World::new().await;
    world.put("data/empty.parquet", 0);
    let store = world.store();
    let file = world.file(&store, "data/empty.parquet");
    assert!(file.read(0..0).await.unwrap().is_empty());
    assert!(file.read_all().await.unwrap().is_empty());
    assert!(file.read(0..1).await.is_err());
}

#[tokio::test]
async fn a_range_past_the_end_is_an_error_with_both_numbers() {
    let world = World::new().await;
    world.put("data/a.parquet", 1000);
    let store = world.store();
    for warm in [false, true] {
        let error = world
            .file(&store, "data/a.parquet")
            .read(900..1001)
            .await
            .unwrap_err();
        assert_eq!(
            error.kind(),
            floe_store::ErrorKind::OutOfRange,
            "warm: {warm}"
        );
        assert!(
            error.to_string().contains("900..1001") && error.to_string().contains("1000"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn a_pointer_is_asked_for_each_time() {
    let world = World::new().await;
    let store = world.store();
    for (round, key) in [
        "t/metadata/version-hint.text",
        "t/metadata/v1.metadata.json",
        "catalog.json",
    ]
    .iter()
    .enumerate()
    {
        for version in 0..3 {
            let bytes = content(&format!("{key}{version}"), 50 + round);
            world.origin.put(&format!("b/{key}"), bytes.clone());
            assert_eq!(world.file(&store, key).read_all().await.unwrap(), bytes);
        }
    }
    assert_eq!(world.gets(), 9);
    assert!(store.cache().unwrap().list().unwrap().is_empty());
}

#[tokio::test]
async fn a_recreated_table_is_never_served_the_dropped_ones_files() {
    let world = World::new().await;
    let store = world.store();
    let before = world.put("t/data/part-0.parquet", 1000);
    let location = "s3://b/t/data/part-0.parquet";
    assert_eq!(
        world
            .file(&store, "t/data/part-0.parquet")
            .read_all()
            .await
            .unwrap(),
        before
    );
    let after = content("another table", 1000);
    world.origin.put("b/t/data/part-0.parquet", after.clone());
    let recreated = uuid::Uuid::from_u128(TABLE.as_u128() + 1);
    let read = store
        .file(location, &world.properties(), Some(recreated))
        .unwrap()
        .read_all()
        .await
        .unwrap();
    assert_eq!(read, after);
}

#[tokio::test]
async fn offline_serves_what_is_cached_and_names_what_is_not() {
    let world = World::new().await;
    let bytes = world.put("data/a.parquet", 1000);
    world.put("data/b.parquet", 1000);
    world
        .file(&world.store(), "data/a.parquet")
        .read_all()
        .await
        .unwrap();
    let mut config = world.config();
    config.offline = true;
    let store = floe_store::Store::open(config).unwrap();
    world.origin.reset();
    assert_eq!(
        world
            .file(&store, "data/a.parquet")
            .read_all()
            .await
            .unwrap(),
        bytes
    );
    for error in [
        world
            .file(&store, "data/b.parquet")
            .read_all()
            .await
            .unwrap_err(),
        world
            .file(&store, "data/b.parquet")
            .read(0..10)
            .await
            .unwrap_err(),
        world
            .file(&store, "version-hint.text")
            .read_all()
            .await
            .unwrap_err(),
    ] {
        assert_eq!(error.kind(), floe_store::ErrorKind::Offline);
    }
    assert_eq!(world.gets(), 0);
}

#[tokio::test]
async fn without_a_disk_or_memory_every_read_is_still_right() {
    let world = World::new().await;
    let bytes = world.put("data/a.parquet", 5 * MIB as usize);
    let mut config = world.config();
    config.cache.memory_bytes = 0;
    for dir in [None, config.cache.dir.clone()] {
        config.cache.dir = dir;
        let store = floe_store::Store::open(config.clone()).unwrap();
        let file = world.file(&store, "data/a.parquet");
        for range in [0..10, 4 * MIB - 5..4 * MIB + 5, 0..5 * MIB] {
            assert_eq!(
                file.read(range.clone()).await.unwrap(),
                bytes.slice(range.start as usize..range.end as usize)
            );
        }
    }
}
