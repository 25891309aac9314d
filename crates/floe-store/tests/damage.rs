//! Flipped bytes, cut files, a directory that fails: never a wrong byte, and it heals by itself.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use floe_store::Store;

use crate::support::{World, files_below};

/// A way to spoil the bytes of a file.
type Damage = Box<dyn Fn(&mut Vec<u8>)>;

const SIZES: [(&str, usize); 3] = [
    ("m/a.avro", 900),
    ("data/b.parquet", 400_000),
    ("data/c.parquet", 9_000_000),
];

async fn filled() -> World {
    let world = World::new().await;
    let store = world.store();
    for (key, length) in SIZES {
        world.put(key, length);
        world.file(&store, key).read_all().await.unwrap();
    }
    world
}

async fn all_is_right(world: &World, store: &Store) {
    for (key, length) in SIZES {
        let expected = crate::support::content(key, length);
        assert_eq!(
            world.file(store, key).read_all().await.unwrap(),
            expected,
            "{key}"
        );
    }
}

#[tokio::test]
async fn a_flipped_or_cut_byte_in_any_file_of_a_cache_is_never_served() {
    let world = filled().await;
    let files = files_below(&world.dir.path().join("cache"));
    assert!(files.len() >= 6, "{files:?}");
    for file in files {
        let good = fs::read(&file).unwrap();
        let size = good.len();
        let damages: Vec<Damage> = vec![
            Box::new(|bytes| bytes.iter_mut().take(1).for_each(|b| *b ^= 1)),
            Box::new(move |bytes| {
                if size > 0 {
                    bytes[size / 2] ^= 0x80
                }
            }),
            Box::new(move |bytes| {
                if size > 0 {
                    bytes[size - 1] ^= 1
                }
            }),
            Box::new(move |bytes| bytes.truncate(size / 2)),
            Box::new(Vec::clear),
            Box::new(|bytes| bytes.extend_from_slice(b"more")),
        ];
        for damage in damages {
            let mut bytes = good.clone();
            damage(&mut bytes);
            fs::write(&file, bytes).unwrap();
            let store = world.store();
            all_is_right(&world, &store).await;
        }
    }
    // And in the end the cache is whole again.
    let store = world.store();
    all_is_right(&world, &store).await;
    let report = store.cache().unwrap().verify().unwrap();
    assert_eq!(report.corrupt, 0);
    world.origin.reset();
    all_is_right(&world, &world.store()).await;
    assert_eq!(world.gets(), 0);
}

#[tokio::test]
async fn a_corrupt_block_is_counted_and_fetched_again() {
    let world = filled().await;
    for file in files_below(&world.dir.path().join("cache/v1/shards")) {
        let mut bytes = fs::read(&file).unwrap();
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        fs::write(&file, bytes).unwrap();
    }
    let store = world.store();
    all_is_right(&world, &store).await;
    assert_eq!(store.stats().corruptions, 5, "one for each segment");
    all_is_right(&world, &world.store()).await;
}

#[tokio::test]
async fn verify_finds_and_removes_what_is_corrupt() {
    let world = filled().await;
    let files = files_below(&world.dir.path().join("cache/v1/shards"));
    fs::write(&files[0], b"").unwrap();
    fs::write(files[1].with_file_name("stray"), b"what is this").unwrap();
    let report = world.store().cache().unwrap().verify().unwrap();
    assert_eq!((report.files, report.corrupt), (6, 2));
    assert_eq!(world.store().cache().unwrap().verify().unwrap().corrupt, 0);
}

#[tokio::test]
async fn a_directory_that_vanishes_under_a_store_costs_no_read() {
    let world = filled().await;
    let store = world.store();
    fs::remove_dir_all(world.dir.path().join("cache")).unwrap();
    all_is_right(&world, &store).await;
    assert!(store.stats().disk_errors > 0);
    all_is_right(&world, &world.store()).await;
}

#[tokio::test]
async fn a_directory_that_cannot_be_made_costs_no_read() {
    let world = World::new().await;
    let file = world.dir.path().join("a file");
    fs::write(&file, "").unwrap();
    let mut config = world.config();
    config.cache.dir = Some(file.join("cache"));
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
    assert!(store.cache().is_none() && store.stats().disk_errors == 1);
}

#[tokio::test]
async fn files_are_closed_to_other_users() {
    let world = filled().await;
    let root = world.dir.path().join("cache");
    for file in files_below(&root) {
        assert_eq!(
            fs::metadata(&file).unwrap().permissions().mode() & 0o777,
            0o600,
            "{}",
            file.display()
        );
        let parent = file.parent().unwrap();
        assert_eq!(
            fs::metadata(parent).unwrap().permissions().mode() & 0o777,
            0o700,
            "{}",
            parent.display()
        );
    }
}

#[tokio::test]
async fn leftovers_of_killed_processes_are_swept_and_usage_is_counted_anew() {
    let world = filled().await;
    let root = world.dir.path().join("cache/v1");
    fs::write(root.join("tmp/left"), vec![0; 1000]).unwrap();
    fs::write(root.join("flights/left"), "").unwrap();
    fs::write(root.join("usage"), u64::MAX.to_le_bytes()).unwrap();
    let disk = world.store().cache().unwrap().clone();
    disk.verify().unwrap();
    assert!(!root.join("tmp/left").exists() && !root.join("flights/left").exists());
    let bytes: u64 = files_below(&root.join("shards"))
        .iter()
        .map(|f| fs::metadata(f).unwrap().len())
        .sum();
    assert_eq!(disk.usage().unwrap().used_bytes, bytes);
}
