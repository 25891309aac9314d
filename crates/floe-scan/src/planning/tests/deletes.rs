//! Which deletes are matched with which data file: a test for each rule.

use std::collections::HashMap;

use iceberg::spec::{DataContentType, DataFileBuilder, DataFileFormat, Datum};

use super::lake::{Lake, between, data, expected, file, part};
use crate::error::ErrorKind;
use crate::task::DeleteKind;

const FILE_PATH_ID: i32 = 2_147_483_546;

fn positions(path: &str) -> DataFileBuilder {
    file(DataContentType::PositionDeletes, path)
}

fn equality(path: &str, ids: &[i32]) -> DataFileBuilder {
    let mut builder = file(DataContentType::EqualityDeletes, path);
    builder.equality_ids(Some(ids.to_vec()));
    builder
}

fn vector(path: &str, of: &str, offset: i64) -> DataFileBuilder {
    let mut builder = positions(path);
    builder
        .file_format(DataFileFormat::Puffin)
        .referenced_data_file(Some(of.to_string()))
        .content_offset(Some(offset))
        .content_size_in_bytes(Some(50));
    builder
}

fn of(mut builder: DataFileBuilder, value: &str) -> DataFileBuilder {
    builder.partition(part(value));
    builder
}

fn of_paths(path: &str, low: &str, high: &str) -> DataFileBuilder {
    let mut builder = positions(path);
    between(
        &mut builder,
        FILE_PATH_ID,
        Datum::string(low),
        Datum::string(high),
    );
    builder
}

#[tokio::test]
async fn position_deletes_reach_older_files_of_their_partition() {
    let mut lake = Lake::new(2);
    let files = [
        (1, of(data("x1"), "x")),
        (2, of(data("x2"), "x")),
        (3, of(data("x3"), "x")),
        (1, of(data("y1"), "y")),
    ];
    lake.data(0, files).await;
    lake.data(1, [(1, data("u1"))]).await;
    lake.deletes(0, [(2, of(positions("dx"), "x"))]).await;
    lake.deletes(1, [(2, positions("du"))]).await;
    let expected = expected(&[
        ("u1", &["du"]),
        ("x1", &["dx"]),
        ("x2", &["dx"]),
        ("x3", &[]),
        ("y1", &[]),
    ]);
    assert_eq!(lake.matched().await, expected);
}

#[tokio::test]
async fn position_deletes_reach_the_paths_that_they_may_name() {
    let mut lake = Lake::new(2);
    lake.data(1, ["a", "b", "c", "d"].map(|path| (1, data(path))))
        .await;
    let mut referring = positions("d-refers-to-d");
    referring.referenced_data_file(Some("d".to_string()));
    let deletes = [
        (1, of_paths("d-a", "a", "a")),
        (1, of_paths("d-a-to-bz", "a", "bz")),
        (1, referring),
        (1, positions("d-any")),
    ];
    lake.deletes(1, deletes).await;
    let expected = expected(&[
        ("a", &["d-a", "d-a-to-bz", "d-any"]),
        ("b", &["d-a-to-bz", "d-any"]),
        ("c", &["d-any"]),
        ("d", &["d-any", "d-refers-to-d"]),
    ]);
    assert_eq!(lake.matched().await, expected);
}

#[tokio::test]
async fn equality_deletes_reach_strictly_older_files() {
    let mut lake = Lake::new(2);
    let files = [
        (1, of(data("x1"), "x")),
        (2, of(data("x2"), "x")),
        (1, of(data("y1"), "y")),
    ];
    lake.data(0, files).await;
    lake.data(1, [(1, data("u1")), (5, data("u5"))]).await;
    lake.deletes(0, [(2, of(equality("ex", &[1]), "x"))]).await;
    lake.deletes(1, [(3, equality("global", &[1]))]).await;
    let expected = expected(&[
        ("u1", &["global"]),
        ("u5", &[]),
        ("x1", &["ex", "global"]),
        ("x2", &["global"]),
        ("y1", &["global"]),
    ]);
    assert_eq!(lake.matched().await, expected);
}

#[tokio::test]
async fn equality_deletes_of_other_values_are_left_out() {
    let mut lake = Lake::new(2);
    let mut low = data("low");
    between(&mut low, 1, Datum::long(1), Datum::long(5));
    let mut high = data("high");
    between(&mut high, 1, Datum::long(6), Datum::long(9));
    lake.data(1, [(1, low), (1, high), (1, data("unknown"))])
        .await;
    let mut of_three = equality("e3", &[1]);
    between(&mut of_three, 1, Datum::long(3), Datum::long(3));
    // Of a column that the file's metrics say nothing of.
    let mut of_name = equality("name", &[4]);
    between(&mut of_name, 4, Datum::string("a"), Datum::string("b"));
    lake.deletes(1, [(2, of_three), (2, of_name)]).await;
    let expected = expected(&[
        ("high", &["name"]),
        ("low", &["e3", "name"]),
        ("unknown", &["e3", "name"]),
    ]);
    assert_eq!(lake.matched().await, expected);
}

#[tokio::test]
async fn a_vector_stands_for_all_position_deletes_but_not_for_equality() {
    let mut lake = Lake::new(3);
    lake.data(1, [(1, data("a")), (1, data("b"))]).await;
    let deletes = [
        (2, positions("old")),
        (3, of_paths("old-of-a", "a", "a")),
        (5, positions("younger")),
        (4, equality("equal", &[1])),
        (3, vector("v.puffin", "a", 4)),
    ];
    lake.deletes(1, deletes).await;
    let expected = expected(&[
        ("a", &["equal", "v.puffin"]),
        ("b", &["equal", "old", "younger"]),
    ]);
    assert_eq!(lake.matched().await, expected);
    let (tasks, summary) = lake.plan(None).await.unwrap();
    assert!(summary.has_deletes);
    let vector = tasks[0]
        .deletes
        .iter()
        .find(|file| file.path == "v.puffin")
        .unwrap();
    assert_eq!(
        vector.kind,
        DeleteKind::Vector {
            offset: 4,
            length: 50
        }
    );
    assert_eq!(tasks[0].file.first_row_id, Some(0));
    assert_eq!(tasks[1].file.first_row_id, Some(10));
}

async fn refused(lake: &Lake) -> String {
    let error = lake.plan(None).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    error.to_string()
}

#[tokio::test]
async fn vectors_that_make_no_sense_are_refused() {
    let with = async |deletes: Vec<(i64, DataFileBuilder)>| {
        let mut lake = Lake::new(3);
        lake.data(1, [(3, data("a"))]).await;
        lake.deletes(1, deletes).await;
        refused(&lake).await
    };
    let two = with(vec![(3, vector("v", "a", 4)), (4, vector("w", "a", 9))]).await;
    assert!(
        two.contains("several deletion vectors, in v and w"),
        "{two}"
    );
    let older = with(vec![(2, vector("v", "a", 4))]).await;
    assert!(older.contains("older"), "{older}");
    let mut unplaced = vector("v", "a", 4);
    unplaced.content_offset(None);
    let unplaced = with(vec![(3, unplaced)]).await;
    assert!(
        unplaced.contains("v, a delete file of the manifest"),
        "{unplaced}"
    );
    assert!(unplaced.contains("has no content_offset"), "{unplaced}");
    let mut nobodys = vector("v", "a", 4);
    nobodys.referenced_data_file(None);
    let nobodys = with(vec![(3, nobodys)]).await;
    assert!(nobodys.contains("has no referenced_data_file"), "{nobodys}");
}

#[tokio::test]
async fn equality_deletes_without_columns_are_refused() {
    let mut lake = Lake::new(2);
    lake.data(1, [(3, data("a"))]).await;
    lake.deletes(1, [(4, equality("e", &[]))]).await;
    let error = refused(&lake).await;
    assert!(error.contains("has no equality_ids"), "{error}");
}

#[tokio::test]
async fn what_the_reader_cannot_read_is_named() {
    for (delete, feature) in [
        (positions("d"), "d is position deletes written as avro"),
        (equality("e", &[1]), "e is equality deletes written as avro"),
    ] {
        let mut lake = Lake::new(2);
        lake.data(1, [(3, data("a"))]).await;
        let mut delete = delete;
        delete.file_format(DataFileFormat::Avro);
        lake.deletes(1, [(4, delete)]).await;
        let error = lake.plan(None).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains(feature), "{error}");
    }
    let mut lake = Lake::new(2);
    let mut secret = data("a");
    secret.key_metadata(Some(vec![1]));
    lake.data(1, [(3, secret)]).await;
    let error = lake.plan(None).await.unwrap_err();
    assert!(error.to_string().contains("a is encrypted"), "{error}");
}

#[tokio::test]
async fn many_deletes_are_matched_soon() {
    let mut lake = Lake::new(2);
    for manifest in 0..20 {
        let files = (0..2000).map(|i| {
            let name = format!("f{manifest}-{i}");
            let mut file = of(data(&name), &format!("p{}", i % 100));
            file.column_sizes(HashMap::from([(1, 10)]));
            (1, file)
        });
        lake.data(0, files).await;
    }
    for manifest in 0..4 {
        let files = (0..2500).map(|i| {
            let of_file = format!("f{}-{i}", manifest * 5);
            let path = format!("d{manifest}-{i}");
            (
                2,
                of(
                    of_paths(&path, &of_file, &of_file),
                    &format!("p{}", i % 100),
                ),
            )
        });
        lake.deletes(0, files).await;
        let files = (0..25).map(|i| {
            let path = format!("e{manifest}-{i}");
            (3, of(equality(&path, &[1]), &format!("p{i}")))
        });
        lake.deletes(0, files).await;
    }
    let planner = lake.planner().await;
    for round in ["cold", "warm"] {
        let started = std::time::Instant::now();
        let (tasks, _) = planner
            .clone()
            .start()
            .await
            .unwrap()
            .collect()
            .await
            .unwrap();
        println!(
            "{round}: planned {} files with 10,100 deletes in {:?}",
            tasks.len(),
            started.elapsed()
        );
        assert_eq!(tasks.len(), 40_000);
        let matched: usize = tasks.iter().map(|task| task.deletes.len()).sum();
        assert_eq!(matched, 4 * 2000 + 40_000 / 100 * 25 * 4);
    }
}
