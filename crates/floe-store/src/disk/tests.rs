//! The disk tier on its own: merging, limits, races between an insert and a purge.

use std::collections::HashMap;
use std::fs;

use bytes::Bytes;

use super::*;
use crate::blocks::{BLOCK_BYTES, run_range};
use crate::config::CacheScope;
use crate::location::Location;

const LENGTH: u64 = 40 * BLOCK_BYTES + 100;

struct Case {
    _temp: tempfile::TempDir,
    disk: DiskCache,
    key: ObjectKey,
    facts: Facts,
    whole: Bytes,
}

fn case(max_bytes: u64) -> Case {
    let temp = tempfile::tempdir().unwrap();
    let config = CacheConfig {
        max_bytes,
        keep_free_bytes: 0,
        ..CacheConfig::default()
    };
    let disk = DiskCache::open(temp.path(), &config, Arc::default()).unwrap();
    Case {
        _temp: temp,
        disk,
        key: key("k.parquet"),
        facts: Facts {
            length: LENGTH,
            version: Some("\"1\"".into()),
        },
        whole: (0..LENGTH)
            .map(|i| (i % 249) as u8)
            .collect::<Vec<_>>()
            .into(),
    }
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::new(
        &Location::parse(&format!("s3://b/{name}")).unwrap(),
        &HashMap::new(),
        None,
        CacheScope::User,
    )
}

impl Case {
    fn segment(&self, mask: BlockMask) -> Segment {
        let runs = mask
            .runs()
            .into_iter()
            .map(|run| run_range(0, &run, LENGTH))
            .map(|r| (r.start, self.whole.slice(r.start as usize..r.end as usize)));
        Segment::new(0, runs.collect())
    }

    fn insert(&self, key: &ObjectKey, mask: BlockMask, ticket: &Ticket) -> bool {
        self.disk.insert(&Insert {
            key,
            facts: &self.facts,
            index: 0,
            segment: self.segment(mask),
            ticket,
        })
    }
}

#[test]
fn blocks_that_come_one_by_one_end_in_one_file() {
    let case = case(u64::MAX);
    let ticket = case.disk.ticket(case.key.path_hash());
    let all = BlockMask::of(0..41);
    for block in [3, 40, 0, 7, 4].into_iter().chain(0..41) {
        assert!(case.insert(&case.key, BlockMask::of(block..block + 1), &ticket));
    }
    let found = case.disk.read(&case.key, 0, all).unwrap();
    assert_eq!(
        (found.segment, &found.facts),
        (case.segment(all), &case.facts)
    );
    let usage = case.disk.usage().unwrap();
    let file = fs::metadata(case.disk.path_of(&case.key, 0)).unwrap().len();
    assert_eq!((usage.files, usage.used_bytes), (1, file));
}

#[test]
fn threads_that_add_blocks_of_one_segment_lose_none_and_count_right() {
    let case = case(u64::MAX);
    let ticket = case.disk.ticket(case.key.path_hash());
    std::thread::scope(|scope| {
        for start in 0..4 {
            let (case, ticket) = (&case, &ticket);
            scope.spawn(move || {
                (0..10).for_each(|step| {
                    let block = start * 10 + step;
                    while !case.insert(&case.key, BlockMask::of(block..block + 1), ticket) {}
                })
            });
        }
    });
    let found = case.disk.read(&case.key, 0, BlockMask::of(0..40)).unwrap();
    assert_eq!(found.segment.mask(), BlockMask::of(0..40));
    assert_eq!(
        case.disk.usage().unwrap().used_bytes,
        fs::metadata(case.disk.path_of(&case.key, 0)).unwrap().len()
    );
}

#[test]
fn an_insert_whose_path_was_purged_meanwhile_is_dropped() {
    let case = case(u64::MAX);
    let before = case.disk.ticket(case.key.path_hash());
    case.disk.purge(&[case.key.path_hash()]).unwrap();
    assert!(!case.insert(&case.key, BlockMask(1), &before));
    assert!(case.disk.read(&case.key, 0, BlockMask(1)).is_none());
    assert_eq!(case.disk.usage().unwrap().used_bytes, 0);
    let after = case.disk.ticket(case.key.path_hash());
    assert!(case.insert(&case.key, BlockMask(1), &after));
}

#[test]
fn another_version_takes_the_name() {
    let mut case = case(u64::MAX);
    let ticket = case.disk.ticket(case.key.path_hash());
    assert!(case.insert(&case.key, BlockMask(0b11), &ticket));
    case.facts.version = Some("\"2\"".into());
    assert!(case.insert(&case.key, BlockMask(0b100), &ticket));
    let found = case.disk.read(&case.key, 0, BlockMask(0b111)).unwrap();
    assert_eq!(
        (found.segment.mask(), found.facts.version.as_deref()),
        (BlockMask(0b100), Some("\"2\""))
    );
}

#[test]
fn a_file_is_never_larger_than_the_limit_and_the_limit_never_passed() {
    let case = case(10 * BLOCK_BYTES);
    let ticket = Ticket::default();
    assert!(
        !case.insert(&case.key, BlockMask::of(0..20), &ticket),
        "it can't fit"
    );
    for i in 0..40 {
        assert!(case.insert(&key(&format!("{i}.parquet")), BlockMask(1), &ticket));
        assert!(case.disk.usage().unwrap().used_bytes <= 10 * BLOCK_BYTES);
    }
    assert!(case.disk.usage().unwrap().files >= 8);
}

#[test]
fn an_object_with_the_same_hash_is_a_miss_not_a_mix_up() {
    let case = case(u64::MAX);
    let ticket = Ticket::default();
    let other = key("other.parquet");
    assert!(case.insert(&other, BlockMask(1), &ticket));
    // As if both had the hash of the first.
    let name = case.disk.path_of(&case.key, 0);
    fs::create_dir_all(name.parent().unwrap()).unwrap();
    fs::rename(case.disk.path_of(&other, 0), &name).unwrap();
    assert!(case.disk.read(&case.key, 0, BlockMask(1)).is_none());
    assert!(name.exists());
}

#[test]
fn what_was_verified_is_read_again_until_another_file_takes_its_name() {
    let case = case(u64::MAX);
    let ticket = case.disk.ticket(case.key.path_hash());
    let (some, all) = (BlockMask::of(0..20), BlockMask::of(0..41));
    case.insert(&case.key, some, &ticket);
    // Larger than what is read whole at once: only these two blocks are verified.
    let two = BlockMask::of(3..5);
    let known = case.disk.read(&case.key, 0, two).unwrap().verified;
    let again = |wanted| case.disk.read_again(&case.key, 0, wanted, &known);
    if let Some(segment) = again(two) {
        assert_eq!(segment, case.segment(two));
    }
    assert_eq!(
        again(BlockMask::of(3..6)),
        None,
        "block 5 was never verified"
    );

    case.insert(&case.key, all, &ticket);
    assert_eq!(again(two), None, "the file is another one now");
    let found = case.disk.read(&case.key, 0, two).unwrap();
    assert_eq!(found.segment, case.segment(two));
}
