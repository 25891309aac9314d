//! Refs, snapshots and times.

use chrono::{Duration, Utc};
use floe_scan::{At, ErrorKind, ScanRequest, line_of_main, refs};
use iceberg::spec::{SnapshotReference, SnapshotRetention};

use crate::support::{Fixture, simple_schema};

fn at(at: At) -> ScanRequest {
    ScanRequest {
        at,
        ..ScanRequest::default()
    }
}

#[tokio::test]
async fn branches_tags_snapshots_and_times_are_read_as_they_were() {
    let mut fixture = Fixture::simple(&[0..3]).await;
    let first = fixture.table.metadata().current_snapshot().unwrap().clone();
    fixture.append_ids(3..5).await;
    let tag = SnapshotReference::new(
        first.snapshot_id(),
        SnapshotRetention::Tag {
            max_ref_age_ms: None,
        },
    );
    fixture
        .table
        .update(|metadata| metadata.set_ref("v1", tag))
        .await
        .unwrap();

    assert_eq!(fixture.ids(at(At::Main)).await.unwrap().len(), 5);
    assert_eq!(
        fixture.ids(at(At::Ref("main".into()))).await.unwrap().len(),
        5
    );
    assert_eq!(
        fixture.ids(at(At::Ref("v1".into()))).await.unwrap(),
        [0, 1, 2]
    );
    assert_eq!(
        fixture
            .ids(at(At::Snapshot(first.snapshot_id())))
            .await
            .unwrap(),
        [0, 1, 2]
    );
    let then = first.timestamp().unwrap();
    assert_eq!(
        fixture
            .ids(at(At::Time(Utc::now() + Duration::days(1))))
            .await
            .unwrap()
            .len(),
        5
    );
    let error = fixture
        .scan(at(At::Time(then - Duration::days(1))))
        .unwrap_err();
    assert!(error.to_string().contains("begins at"), "{error}");
    assert_eq!(
        refs(fixture.table.metadata())
            .unwrap()
            .into_keys()
            .collect::<Vec<_>>(),
        ["main", "v1"]
    );
    let line = line_of_main(fixture.table.metadata());
    assert_eq!((line.len(), line[0]), (2, first.snapshot_id()));
}

#[tokio::test]
async fn what_the_table_does_not_have_is_told_with_what_it_has() {
    let fixture = Fixture::simple(&[0..3]).await;
    let known = fixture.table.metadata().current_snapshot_id().unwrap();
    let no_ref = fixture.scan(at(At::Ref("nope".into()))).unwrap_err();
    assert_eq!(no_ref.kind(), ErrorKind::NotFound);
    assert!(
        no_ref.to_string().contains("'nope'") && no_ref.to_string().contains("main"),
        "{no_ref}"
    );
    let no_snapshot = fixture.scan(at(At::Snapshot(1))).unwrap_err();
    assert!(
        no_snapshot.to_string().contains(&known.to_string()),
        "{no_snapshot}"
    );
    let select = ScanRequest {
        select: Some(vec!["ID".into()]),
        ..ScanRequest::default()
    };
    let no_column = fixture.scan(select).unwrap_err();
    assert!(no_column.hint().unwrap().contains("'id'"), "{no_column:?}");
}

#[tokio::test]
async fn a_table_without_a_snapshot_has_no_rows() {
    let fixture = Fixture::new(simple_schema(), &[]).await;
    assert!(
        fixture
            .rows(ScanRequest::default())
            .await
            .unwrap()
            .is_empty()
    );
    assert_eq!(
        fixture
            .scan(ScanRequest::default())
            .unwrap()
            .count()
            .await
            .unwrap(),
        0
    );
    let error = fixture.scan(at(At::Time(Utc::now()))).unwrap_err();
    assert!(error.to_string().contains("no snapshot log"), "{error}");
}

#[test]
fn times_are_read_as_rfc_3339_writes_them() {
    assert!(matches!(
        At::as_of("2026-03-01T12:00:00+01:00").unwrap(),
        At::Time(_)
    ));
    for text in [
        "",
        "yesterday",
        "2026-03-01",
        "2026-03-01 12:00",
        "2026-13-01T00:00:00Z",
    ] {
        assert_eq!(
            At::as_of(text).unwrap_err().kind(),
            ErrorKind::Invalid,
            "{text}"
        );
    }
}
