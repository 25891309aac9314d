//! What is read and what is not: manifests by their summaries, files by partition and metrics.

use std::collections::HashMap;

use futures::StreamExt;
use iceberg::spec::{DataContentType, DataFileFormat, Datum, Literal, PrimitiveType};

use super::lake::{Lake, between, data, file, part};
use crate::error::ErrorKind;
use crate::predicate::{Column, Comparison, Predicate};
use crate::task::FileTask;

fn column(id: i32, name: &str, kind: PrimitiveType) -> Column {
    Column {
        id,
        name: name.to_string(),
        kind,
    }
}

fn part_is(value: &str) -> Predicate {
    let column = column(2, "part", PrimitiveType::String);
    Predicate::Compare(column, Comparison::Equal, Datum::string(value))
}

fn id_below(value: i64) -> Predicate {
    let column = column(1, "id", PrimitiveType::Long);
    Predicate::Compare(column, Comparison::Less, Datum::long(value))
}

fn paths(tasks: &[FileTask]) -> Vec<&str> {
    tasks.iter().map(|task| task.file.path.as_str()).collect()
}

/// Manifest 0: partitions x and y; manifest 1: z, in ORC; `id` is 0..9 in x, 10..19 in y.
async fn lake() -> Lake {
    let mut lake = Lake::new(2);
    let mut x = data("x");
    between(&mut x, 1, Datum::long(0), Datum::long(9));
    x.partition(part("x"))
        .column_sizes(HashMap::from([(4, 7), (1, 5)]));
    let mut y = data("y");
    between(&mut y, 1, Datum::long(10), Datum::long(19));
    y.partition(part("y"));
    lake.data(0, [(1, x), (1, y)]).await;
    let mut z = data("z");
    z.partition(part("z")).file_format(DataFileFormat::Orc);
    lake.data(0, [(1, z)]).await;
    lake
}

#[tokio::test]
async fn manifests_and_files_of_other_partitions_are_left_out() {
    let lake = lake().await;
    let (tasks, summary) = lake.plan(Some(part_is("x"))).await.unwrap();
    assert_eq!(paths(&tasks), ["x"]);
    // The partition says it all.
    assert!(tasks[0].residual.is_none());
    assert_eq!((summary.manifests, summary.manifests_pruned), (2, 1));
    assert_eq!(
        (summary.files, summary.files_pruned, summary.bytes_pruned),
        (3, 2, 100)
    );
    assert_eq!(summary.metadata.len(), 3);
    assert!(summary.metadata[1].1.is_some());
    assert!(!summary.has_deletes);
}

#[tokio::test]
async fn a_file_that_cannot_be_read_is_an_error_only_if_it_is_needed() {
    let lake = lake().await;
    let error = lake.plan(None).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(
        error
            .to_string()
            .contains("z is a data file written as orc"),
        "{error}"
    );
    assert!(lake.plan(Some(part_is("y"))).await.is_ok());
}

#[tokio::test]
async fn metrics_leave_out_files_and_parts_of_the_condition() {
    let lake = lake().await;
    let not_z = Predicate::all([Predicate::Not(Box::new(part_is("z"))), id_below(15)]);
    let (tasks, _) = lake.plan(Some(not_z)).await.unwrap();
    assert_eq!(paths(&tasks), ["x", "y"]);
    assert!(tasks[0].residual.is_none(), "{:?}", tasks[0].residual);
    let left = tasks[1].residual.as_ref().unwrap();
    assert_eq!(left.columns(), [1], "{left:?}");
    let (tasks, summary) = lake
        .plan(Some(Predicate::all([part_is("y"), id_below(10)])))
        .await
        .unwrap();
    assert!(tasks.is_empty());
    assert_eq!(summary.files_pruned, 3);
}

#[tokio::test]
async fn a_file_is_told_as_its_manifest_has_it() {
    let lake = lake().await;
    let planner = lake.planner().await.matching(Some(part_is("x").into()));
    let planner = planner.with_metrics([3, 1, 1, 99]);
    let (tasks, _) = planner.start().await.unwrap().collect().await.unwrap();
    let [task] = &tasks[..] else {
        panic!("{tasks:?}")
    };
    let file = &task.file;
    assert_eq!((file.bytes, file.rows, file.spec_id), (100, 10, 0));
    assert_eq!(*file.partition, part("x"));
    assert_eq!(file.column_sizes, [(1, 5), (4, 7)]);
    assert_eq!(file.metrics.len(), 1);
    assert_eq!(file.metrics[0].0, 1);
    assert_eq!(file.metrics[0].1.lower, Some(Datum::long(0)));
    assert_eq!(file.metrics[0].1.upper, Some(Datum::long(9)));
    assert_eq!(
        (file.data_sequence_number, file.file_sequence_number),
        (1, Some(100))
    );
    assert_eq!(file.first_row_id, None);
    assert_eq!(task.constants[..], [(2, Some(Literal::string("x")))]);
}

#[tokio::test]
async fn files_are_handed_on_while_later_manifests_arrive() {
    let mut lake = Lake::new(2);
    for i in 0..20 {
        lake.data(1, [(1, data(&format!("f{i:02}")))]).await;
    }
    lake.damage(19).await;
    let mut plan = lake.start(None).await.unwrap();
    let mut taken = 0;
    let error = loop {
        match plan.tasks.next().await.unwrap() {
            Ok(_) => taken += 1,
            Err(error) => break error,
        }
    };
    assert!(taken >= 8, "{taken}");
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    let message = error.to_string();
    assert!(
        message.contains("m19.avro") && message.contains("by its manifest list"),
        "{message}"
    );
    assert!(plan.tasks.next().await.is_none());
    assert_eq!(plan.summary.get().files, taken);
}

#[tokio::test]
async fn a_spec_that_the_table_lacks_is_an_error() {
    let mut lake = lake().await;
    lake.manifests[1].partition_spec_id = 7;
    let error = lake.plan(None).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.to_string().contains("partition spec 7"), "{error}");
    // Of a manifest without files nobody asks.
    lake.manifests[1].added_files_count = Some(0);
    lake.manifests[1].existing_files_count = Some(0);
    assert_eq!(lake.plan(None).await.unwrap().0.len(), 2);
}

#[tokio::test]
async fn an_encrypted_manifest_is_an_error_only_if_it_is_needed() {
    let mut lake = lake().await;
    lake.manifests[1].key_metadata = Some(vec![1]);
    assert!(lake.plan(Some(part_is("x"))).await.is_ok());
    let error = lake.plan(None).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("m1.avro"), "{error}");
}

#[tokio::test]
async fn a_delete_file_among_data_files_is_an_error() {
    let mut lake = Lake::new(2);
    let mut listed_as_data = Lake::new(2);
    let deletes = file(DataContentType::PositionDeletes, "d");
    lake.deletes(1, [(1, deletes)]).await;
    listed_as_data
        .deletes(1, [(1, file(DataContentType::PositionDeletes, "d"))])
        .await;
    listed_as_data.manifests[0].content = iceberg::spec::ManifestContentType::Data;
    assert!(lake.plan(None).await.unwrap().0.is_empty());
    let error = listed_as_data.plan(None).await.unwrap_err();
    assert!(error.to_string().contains("among data files"), "{error}");
}

#[tokio::test]
async fn a_plan_read_again_is_the_same() {
    let lake = lake().await;
    let planner = lake.planner().await.matching(Some(part_is("x").into()));
    let first = planner
        .clone()
        .start()
        .await
        .unwrap()
        .collect()
        .await
        .unwrap();
    // What is decoded is kept: nothing is read again.
    lake.damage(0).await;
    let second = planner.start().await.unwrap().collect().await.unwrap();
    assert_eq!(paths(&first.0), paths(&second.0));
    assert_eq!(first.1, second.1);
}

#[tokio::test]
async fn deletes_of_other_partitions_are_left_out_but_not_those_for_all() {
    let mut lake = lake().await;
    let equality = |path: &str| {
        let mut builder = file(DataContentType::EqualityDeletes, path);
        builder.equality_ids(Some(vec![1]));
        builder
    };
    let mut of_y = equality("e-y");
    of_y.partition(part("y"));
    let mut of_x = equality("e-x");
    of_x.partition(part("x"));
    lake.deletes(0, [(5, of_y)]).await;
    lake.deletes(0, [(5, of_x)]).await;
    lake.deletes(1, [(5, equality("e-all"))]).await;
    let (tasks, summary) = lake.plan(Some(part_is("x"))).await.unwrap();
    assert_eq!(paths(&tasks), ["x"]);
    let mut deletes: Vec<_> = tasks[0]
        .deletes
        .iter()
        .map(|file| file.path.as_str())
        .collect();
    deletes.sort_unstable();
    assert_eq!(deletes, ["e-all", "e-x"]);
    assert_eq!((summary.manifests, summary.manifests_pruned), (5, 2));
}
