//! Each way an origin can fail: the right bytes after retries, or a clear error, and never a wrong byte kept.

use std::time::Duration;

use floe_store::{ErrorKind, Store};
use floe_testing::line::{Fault, FaultKind, FaultMatcher};

use crate::support::World;

const LENGTH: usize = 300_000;

fn get() -> FaultMatcher {
    FaultMatcher::new("GET", "data/")
}

#[tokio::test]
async fn passing_faults_are_survived_and_what_came_is_not_asked_for_again() {
    for kind in [
        FaultKind::CutAfter(100_000),
        FaultKind::LoseAnswer,
        FaultKind::Stall,
        FaultKind::StallAfter(70_000),
        FaultKind::Reset,
        FaultKind::ResetAfter(70_000),
        FaultKind::Status(503),
        FaultKind::Status(500),
        FaultKind::Status(429),
    ] {
        let world = World::new().await;
        let bytes = world.put("data/a.parquet", LENGTH);
        let store = world.store();
        let fault = world.origin.inject(Fault::once(get(), kind.clone()));
        assert_eq!(
            world
                .file(&store, "data/a.parquet")
                .read_all()
                .await
                .unwrap(),
            bytes,
            "{kind:?}"
        );
        assert_eq!(world.origin.faults().struck(fault), 1, "{kind:?}");
        assert_eq!(store.stats().retries, 1, "{kind:?}");
        if let FaultKind::CutAfter(_) | FaultKind::StallAfter(_) = kind {
            let again = world
                .origin
                .requests()
                .last()
                .unwrap()
                .range
                .clone()
                .unwrap_or_default();
            assert!(
                !again.starts_with("bytes=0-"),
                "{kind:?} resumes where it broke off, not with {again}"
            );
        }
        world.origin.reset();
        assert_eq!(
            world
                .file(&world.store(), "data/a.parquet")
                .read_all()
                .await
                .unwrap(),
            bytes
        );
        assert_eq!(world.gets(), 0, "{kind:?}: what was read is cached");
    }
}

#[tokio::test]
async fn a_fault_that_lasts_ends_in_a_clear_error_and_the_next_read_heals() {
    for kind in [
        FaultKind::CutAfter(10),
        FaultKind::LoseAnswer,
        FaultKind::Stall,
        FaultKind::Reset,
        FaultKind::Status(503),
    ] {
        let world = World::new().await;
        let bytes = world.put("data/a.parquet", LENGTH);
        let mut config = world.config();
        config.origin.retries = 2;
        config.origin.timeout = Duration::from_millis(100);
        let store = Store::open(config).unwrap();
        // From the very first byte on, so that no try gets further.
        let always = Fault::always(get(), kind.clone());
        world.origin.inject(always);
        let file = world.file(&store, "data/a.parquet");
        if !matches!(kind, FaultKind::CutAfter(_)) {
            let error = file.read_all().await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unavailable, "{kind:?}: {error:?}");
            assert!(
                error
                    .to_string()
                    .contains("s3://b/data/a.parquet in 3 tries"),
                "{error}"
            );
            assert!(error.hint().is_some());
        } else {
            file.read_all().await.unwrap_err();
        }
        assert!(
            store.cache().unwrap().list().unwrap().is_empty(),
            "{kind:?}: nothing of it is kept"
        );
        world.origin.faults().clear();
        assert_eq!(file.read_all().await.unwrap(), bytes, "{kind:?}");
    }
}

#[tokio::test]
async fn a_refusal_is_not_tried_again() {
    for (status, kind) in [
        (403, ErrorKind::PermissionDenied),
        (404, ErrorKind::NotFound),
        (400, ErrorKind::Unexpected),
    ] {
        let world = World::new().await;
        world.put("data/a.parquet", LENGTH);
        let store = world.store();
        world
            .origin
            .inject(Fault::always(get(), FaultKind::Status(status)));
        let error = world
            .file(&store, "data/a.parquet")
            .read_all()
            .await
            .unwrap_err();
        assert_eq!(
            (error.kind(), store.stats().retries),
            (kind, 0),
            "{status}: {error:?}"
        );
        assert!(!format!("{error:?}{error}").contains("secret"));
    }
}

#[tokio::test]
async fn a_length_that_is_not_the_manifests_is_an_error_with_both_numbers_and_never_cached() {
    for (told, actual) in [
        (LENGTH, LENGTH - 1),
        (LENGTH, LENGTH + 1),
        (10, LENGTH),
        (LENGTH, 0),
    ] {
        let world = World::new().await;
        world.put("data/a.parquet", actual);
        let store = world.store();
        store.expect_length("s3://b/data/a.parquet", told as u64);
        let file = world.file(&store, "data/a.parquet");
        for error in [
            file.read_all().await.unwrap_err(),
            file.read(0..5).await.unwrap_err(),
        ] {
            assert_eq!(error.kind(), ErrorKind::WrongLength, "{error}");
            assert!(
                error.to_string().contains(&told.to_string())
                    && error.to_string().contains(&actual.to_string()),
                "{error}"
            );
        }
        assert!(store.cache().unwrap().list().unwrap().is_empty());
    }
}

#[tokio::test]
async fn a_server_that_lies_about_lengths_is_found_out() {
    for kind in [
        FaultKind::WrongLength(5),
        FaultKind::WrongLength(-5),
        FaultKind::WrongTotal(9),
        FaultKind::TruncateBody(1000),
        FaultKind::ExtendBody(1000),
    ] {
        let world = World::new().await;
        let bytes = world.put("data/a.parquet", LENGTH);
        let mut config = world.config();
        config.origin.retries = 1;
        let store = Store::open(config).unwrap();
        store.expect_length("s3://b/data/a.parquet", LENGTH as u64);
        world.origin.inject(Fault::always(get(), kind.clone()));
        let file = world.file(&store, "data/a.parquet");
        let error = file.read(0..LENGTH as u64).await.unwrap_err();
        assert!(
            store.cache().unwrap().list().unwrap().is_empty(),
            "{kind:?}: {error}"
        );
        world.origin.faults().clear();
        assert_eq!(file.read_all().await.unwrap(), bytes, "{kind:?}");
    }
}

#[tokio::test]
async fn an_answer_sent_twice_does_not_confuse_the_next_request() {
    let world = World::new().await;
    let one = world.put("data/a.parquet", 50_000);
    let two = world.put("data/b.parquet", 60_000);
    let store = world.store();
    world.origin.inject(Fault::once(get(), FaultKind::Twice));
    assert_eq!(
        world
            .file(&store, "data/a.parquet")
            .read_all()
            .await
            .unwrap(),
        one
    );
    assert_eq!(
        world
            .file(&store, "data/b.parquet")
            .read_all()
            .await
            .unwrap(),
        two
    );
}

#[tokio::test]
async fn a_slow_origin_is_waited_for_as_long_as_bytes_come() {
    let world = World::new().await;
    let bytes = world.put("data/a.parquet", 100_000);
    let mut config = world.config();
    config.origin.timeout = Duration::from_millis(400);
    let store = Store::open(config).unwrap();
    // Slower in all than the timeout, but never silent for so long.
    world
        .origin
        .inject(Fault::once(get(), FaultKind::Trickle(100_000)));
    assert_eq!(
        world
            .file(&store, "data/a.parquet")
            .read_all()
            .await
            .unwrap(),
        bytes
    );
    assert_eq!(store.stats().retries, 0);
}

#[tokio::test]
async fn nothing_secret_stands_in_errors_or_debug_output() {
    let world = World::new().await;
    let mut properties = world.properties();
    properties.insert("s3.secret-access-key".into(), "hunter2".into());
    properties.insert("s3.session-token".into(), "hunter3".into());
    let store = world.store();
    world.origin.inject(Fault::always(
        FaultMatcher::new("GET", ""),
        FaultKind::Status(403),
    ));
    let file = store
        .file("s3://b/data/a.parquet", &properties, None)
        .unwrap();
    let error = file.read_all().await.unwrap_err();
    let io = store.file_io(&properties, None);
    let iceberg_error = io
        .new_input("s3://b/data/a.parquet")
        .unwrap()
        .read()
        .await
        .unwrap_err();
    let shown = format!("{error:?} {error} {file:?} {store:?} {iceberg_error:?} {iceberg_error}");
    assert!(!shown.contains("hunter"), "{shown}");
}
