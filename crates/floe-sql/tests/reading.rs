//! Rows, columns, limits, order, counting, and giving up.

use floe_scan::{ErrorKind, ScanRequest};
use futures::StreamExt;

use crate::support::{Fixture, Matching, filtered, longs, strings, total};

#[tokio::test(flavor = "multi_thread")]
async fn columns_come_in_the_order_asked_for_and_those_of_the_filter_alone_do_not() {
    let fixture = Fixture::simple(&[0..20, 20..40]).await;
    let request = ScanRequest {
        select: Some(vec!["name".into()]),
        ..ScanRequest::default()
    };
    let request = request.matching("id % 2 = 1 AND id < 30");
    let rows = fixture.rows(request).await.unwrap();
    assert_eq!(total(&rows), 15);
    assert!(rows.iter().all(|batch| batch.num_columns() == 1));
    assert!(
        rows.iter()
            .flat_map(|batch| strings(batch, "name"))
            .all(|name| name.is_some())
    );

    let twice = ScanRequest {
        select: Some(vec!["name".into(), "id".into(), "name".into()]),
        ..ScanRequest::default()
    };
    let rows = fixture.rows(twice).await.unwrap();
    let names: Vec<_> = rows[0]
        .schema()
        .fields()
        .iter()
        .map(|field| field.name().clone())
        .collect();
    assert_eq!(names, ["name", "id", "name"]);
    let none = ScanRequest {
        select: Some(vec![]),
        ..ScanRequest::default()
    };
    assert_eq!(total(&fixture.rows(none).await.unwrap()), 40);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ordered_scan_gives_files_in_the_order_of_their_locations_and_rows_in_the_order_of_the_file()
 {
    let fixture = Fixture::simple(
        &(0..12)
            .map(|file| file * 100..file * 100 + 50)
            .collect::<Vec<_>>(),
    )
    .await;
    let ordered = ScanRequest {
        ordered: true,
        batch_rows: Some(7),
        ..ScanRequest::default()
    };
    let read = || async {
        let rows = fixture.rows(ordered.clone()).await.unwrap();
        rows.iter()
            .flat_map(|batch| longs(batch, "id"))
            .flatten()
            .collect::<Vec<i64>>()
    };
    let ids = read().await;
    assert_eq!(ids.len(), 600);
    assert!(
        ids.chunks(50)
            .all(|file| file.is_sorted() && file[0] % 100 == 0)
    );
    assert_eq!(read().await, ids);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_is_exact_and_counts_are_too() {
    let fixture = Fixture::simple(&[0..50, 50..100]).await;
    for limit in [0, 1, 50, 99, 100, 1000] {
        let request = ScanRequest {
            limit: Some(limit),
            ..ScanRequest::default()
        };
        assert_eq!(
            total(&fixture.rows(request.clone()).await.unwrap()),
            limit.min(100)
        );
        assert_eq!(
            fixture.scan(request).unwrap().count().await.unwrap(),
            limit.min(100) as u64
        );
    }
    assert_eq!(
        fixture
            .scan(filtered("name IS NULL"))
            .unwrap()
            .count()
            .await
            .unwrap(),
        10
    );
    let scan = fixture.scan(ScanRequest::default()).unwrap();
    assert_eq!(scan.count().await.unwrap(), 100);
    assert_eq!(
        scan.timings().files,
        0,
        "counting without a filter reads no data file"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn timings_count_what_was_read() {
    let fixture = Fixture::simple(&[0..50, 50..100]).await;
    let scan = fixture.scan(ScanRequest::default()).unwrap();
    let mut rows = scan.stream().await.unwrap();
    while let Some(batch) = rows.next().await {
        batch.unwrap();
    }
    let timings = scan.timings();
    assert_eq!((timings.files, timings.rows, timings.batches), (2, 100, 2));
    assert!(
        timings.bytes > 0 && timings.decode_seconds > 0.0 && timings.plan_seconds > 0.0,
        "{timings:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_gone_is_told_by_name() {
    let fixture = Fixture::simple(&[0..5]).await;
    let file = fixture
        .scan(ScanRequest::default())
        .unwrap()
        .files()
        .await
        .unwrap()
        .remove(0);
    std::fs::remove_file(file.location.strip_prefix("file://").unwrap()).unwrap();
    let error = fixture.rows(ScanRequest::default()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Read);
    assert!(error.to_string().contains(&file.location), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_stream_ends_its_files() {
    // More files than any reader opens ahead: one that is fetched, and a few for each core that decodes.
    let files = 32 + 4 * std::thread::available_parallelism().map_or(1, usize::from) as i64;
    let fixture = Fixture::simple(
        &(0..files)
            .map(|file| file * 10..file * 10 + 10)
            .collect::<Vec<_>>(),
    )
    .await;
    let scan = fixture
        .scan(ScanRequest {
            batch_rows: Some(1),
            fetch_concurrency: 1,
            ..ScanRequest::default()
        })
        .unwrap();
    let tasks = || {
        tokio::runtime::Handle::current()
            .metrics()
            .num_alive_tasks()
    };
    let before = tasks();
    let mut rows = scan.stream().await.unwrap();
    rows.next().await.unwrap().unwrap();
    drop(rows);
    // A reader that went on would have read every file by the time its last task ends.
    while tasks() > before {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    let left = scan.timings();
    assert!(left.files < files as u64, "{left:?}");
    assert!(left.rows < 10 * files as u64, "{left:?}");
}

#[tokio::test]
async fn nothing_secret_stands_in_debug_output() {
    let fixture = Fixture::simple(&[0..5]).await;
    let properties = [("s3.secret-access-key".to_string(), "hunter2".to_string())].into();
    let table = crate::support::opened(&fixture.table, &fixture.store, &properties);
    let scan = floe_scan::Scan::new(&fixture.store, &table, ScanRequest::default()).unwrap();
    let table = floe_sql::FloeTable::new(&fixture.store, &table, &floe_scan::At::Main).unwrap();
    let source = floe_scan::reading::StoreSource::new(
        fixture.store.clone(),
        std::sync::Arc::new(properties),
        None,
    );
    let shown = format!("{scan:?} {table:?} {source:?}");
    assert!(!shown.contains("hunter2"), "{shown}");
}
