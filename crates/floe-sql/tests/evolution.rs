//! Schemas that changed after the files were written.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, StringArray};
use floe_scan::{At, ErrorKind, ScanRequest};
use iceberg::spec::{
    Literal, NestedField, PrimitiveType, Schema, Transform, Type, UnboundPartitionSpec,
};

use crate::support::{
    Fixture, all_null, filtered, int_array, ints, longs, simple_schema, strings, total,
};

fn with(field: NestedField) -> Schema {
    let fields = simple_schema()
        .as_struct()
        .fields()
        .iter()
        .cloned()
        .chain([field.into()])
        .collect::<Vec<_>>();
    Schema::builder().with_fields(fields).build().unwrap()
}

fn added() -> Schema {
    with(NestedField::optional(
        3,
        "extra",
        Type::Primitive(PrimitiveType::Int),
    ))
}

#[tokio::test]
async fn a_column_added_after_the_last_snapshot_is_null_on_main_and_unknown_to_the_snapshot() {
    let mut fixture = Fixture::simple(&[0..5]).await;
    let snapshot = fixture.table.metadata().current_snapshot_id().unwrap();
    fixture
        .table
        .update(|metadata| metadata.add_current_schema(added()))
        .await
        .unwrap();

    let rows = fixture.rows(ScanRequest::default()).await.unwrap();
    assert_eq!(total(&rows), 5);
    assert!(
        rows.iter()
            .all(|batch| batch.num_columns() == 3 && all_null(batch, "extra"))
    );
    let select = ScanRequest {
        select: Some(vec!["extra".into()]),
        ..ScanRequest::default()
    };
    assert_eq!(total(&fixture.rows(select.clone()).await.unwrap()), 5);

    let at = ScanRequest {
        at: At::Snapshot(snapshot),
        ..ScanRequest::default()
    };
    assert!(
        fixture
            .rows(at)
            .await
            .unwrap()
            .iter()
            .all(|batch| batch.num_columns() == 2)
    );
    let error = fixture
        .scan(ScanRequest {
            at: At::Snapshot(snapshot),
            ..select
        })
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn filters_on_a_column_that_files_lack_see_null() {
    let mut fixture = Fixture::simple(&[0..5]).await;
    fixture
        .table
        .update(|metadata| metadata.add_current_schema(added()))
        .await
        .unwrap();
    fixture
        .append(vec![
            Arc::new(Int64Array::from(vec![100, 101])) as ArrayRef,
            Arc::new(StringArray::from(vec!["a", "b"])),
            int_array([Some(1), None]),
        ])
        .await;
    assert_eq!(
        fixture.ids(filtered("extra IS NULL")).await.unwrap(),
        [0, 1, 2, 3, 4, 101]
    );
    assert_eq!(fixture.ids(filtered("extra = 1")).await.unwrap(), [100]);
    assert_eq!(fixture.ids(filtered("extra <> 1")).await.unwrap(), [0; 0]);
    assert_eq!(
        fixture
            .ids(filtered("NOT (extra = 1) OR extra IS NULL"))
            .await
            .unwrap(),
        [0, 1, 2, 3, 4, 101]
    );
}

#[tokio::test]
async fn a_promoted_column_reads_old_files_and_no_filter_loses_their_rows() {
    let int = Schema::builder()
        .with_fields([NestedField::optional(1, "id", Type::Primitive(PrimitiveType::Int)).into()])
        .build()
        .unwrap();
    let long = Schema::builder()
        .with_fields([NestedField::optional(1, "id", Type::Primitive(PrimitiveType::Long)).into()])
        .build()
        .unwrap();
    let mut fixture = Fixture::new(int, &[]).await;
    fixture
        .append(vec![int_array([Some(-5), Some(7), None])])
        .await;
    fixture
        .table
        .update(|metadata| metadata.add_current_schema(long))
        .await
        .unwrap();
    fixture
        .append(vec![
            Arc::new(Int64Array::from(vec![7, 1 << 40])) as ArrayRef
        ])
        .await;
    assert_eq!(
        fixture.ids(ScanRequest::default()).await.unwrap(),
        [-5, 7, 7, 1 << 40]
    );
    assert_eq!(fixture.ids(filtered("id = 7")).await.unwrap(), [7, 7]);
    assert_eq!(fixture.ids(filtered("id < 0")).await.unwrap(), [-5]);
    assert_eq!(fixture.ids(filtered("id > 7")).await.unwrap(), [1 << 40]);
    assert_eq!(
        fixture
            .scan(filtered("id IS NULL"))
            .unwrap()
            .count()
            .await
            .unwrap(),
        1
    );
}

#[tokio::test]
async fn a_renamed_column_is_found_by_its_id() {
    let mut fixture = Fixture::simple(&[1..4]).await;
    let renamed = Schema::builder()
        .with_fields([
            NestedField::optional(2, "label", Type::Primitive(PrimitiveType::String)).into(),
            NestedField::optional(1, "id", Type::Primitive(PrimitiveType::Long)).into(),
        ])
        .build()
        .unwrap();
    fixture
        .table
        .update(|metadata| metadata.add_current_schema(renamed))
        .await
        .unwrap();
    let rows = fixture.rows(filtered("label = 'name 2'")).await.unwrap();
    assert_eq!(
        rows.iter()
            .flat_map(|batch| longs(batch, "id"))
            .collect::<Vec<_>>(),
        [Some(2)]
    );
    assert_eq!(
        rows.iter()
            .flat_map(|batch| strings(batch, "label"))
            .collect::<Vec<_>>(),
        [Some("name 2".to_string())]
    );
}

#[tokio::test]
async fn a_column_of_another_type_under_an_old_name_is_another_column() {
    let mut fixture = Fixture::simple(&[1..4]).await;
    let replaced = Schema::builder()
        .with_fields([
            NestedField::optional(1, "id", Type::Primitive(PrimitiveType::Long)).into(),
            NestedField::optional(3, "name", Type::Primitive(PrimitiveType::Int)).into(),
        ])
        .build()
        .unwrap();
    fixture
        .table
        .update(|metadata| metadata.add_current_schema(replaced))
        .await
        .unwrap();
    let rows = fixture.rows(ScanRequest::default()).await.unwrap();
    assert!(
        rows.iter()
            .all(|batch| ints(batch, "name").iter().all(Option::is_none))
    );
}

#[tokio::test]
async fn partitions_read_across_specs_and_identity_values_have_the_columns_type() {
    let schema = Schema::builder()
        .with_fields([
            NestedField::optional(1, "id", Type::Primitive(PrimitiveType::Long)).into(),
            NestedField::optional(2, "team", Type::Primitive(PrimitiveType::String)).into(),
            NestedField::optional(3, "round", Type::Primitive(PrimitiveType::Int)).into(),
        ])
        .build()
        .unwrap();
    let mut fixture = Fixture::new(schema, &["team"]).await;
    let columns = |ids: [i64; 3], teams: [Option<&str>; 3], rounds: [i32; 3]| -> Vec<ArrayRef> {
        vec![
            Arc::new(Int64Array::from_iter_values(ids)),
            Arc::new(StringArray::from_iter(teams)),
            int_array(rounds.map(Some)),
        ]
    };
    fixture
        .append(columns([1, 2, 3], [Some("a"), Some("b"), None], [1, 1, 2]))
        .await;
    let by_round = UnboundPartitionSpec::builder()
        .add_partition_field(3, "round", Transform::Identity)
        .unwrap()
        .build();
    fixture
        .table
        .update(|metadata| metadata.add_default_partition_spec(by_round))
        .await
        .unwrap();
    fixture
        .append(columns([4, 5, 6], [Some("a"), Some("c"), None], [2, 2, 3]))
        .await;

    assert_eq!(
        fixture.ids(ScanRequest::default()).await.unwrap(),
        [1, 2, 3, 4, 5, 6]
    );
    assert_eq!(fixture.ids(filtered("team = 'a'")).await.unwrap(), [1, 4]);
    assert_eq!(fixture.ids(filtered("team IS NULL")).await.unwrap(), [3, 6]);
    assert_eq!(
        fixture
            .ids(filtered("round = 2 AND team IS NOT NULL"))
            .await
            .unwrap(),
        [4, 5]
    );
    let rows = fixture.rows(filtered("id = 1")).await.unwrap();
    assert_eq!(strings(&rows[0], "team"), [Some("a".to_string())]);
    // Team b's own file, and of the rounds the one whose teams go from a to c.
    let scan = fixture.scan(filtered("team = 'b'")).unwrap();
    assert_eq!(scan.files().await.unwrap().len(), 2);
}

#[tokio::test]
async fn a_dropped_partition_column_does_not_break_filters() {
    let schema = Schema::builder()
        .with_fields([
            NestedField::optional(1, "id", Type::Primitive(PrimitiveType::Long)).into(),
            NestedField::optional(2, "team", Type::Primitive(PrimitiveType::String)).into(),
        ])
        .build()
        .unwrap();
    let mut fixture = Fixture::new(schema, &["team"]).await;
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from(vec![1, 2])),
        Arc::new(StringArray::from(vec!["a", "b"])),
    ];
    fixture.append(columns).await;
    fixture
        .table
        .update(|metadata| metadata.add_default_partition_spec(UnboundPartitionSpec::default()))
        .await
        .unwrap();
    let without = Schema::builder()
        .with_fields([NestedField::optional(1, "id", Type::Primitive(PrimitiveType::Long)).into()])
        .build()
        .unwrap();
    fixture
        .table
        .update(|metadata| metadata.add_current_schema(without))
        .await
        .unwrap();
    assert_eq!(fixture.ids(filtered("id >= 2")).await.unwrap(), [2]);
    assert_eq!(fixture.ids(ScanRequest::default()).await.unwrap(), [1, 2]);
}

#[tokio::test]
async fn an_initial_default_stands_for_a_missing_column_also_in_filters() {
    let mut fixture = Fixture::simple(&[1..4]).await;
    let field = NestedField::optional(3, "extra", Type::Primitive(PrimitiveType::Int))
        .with_initial_default(Literal::int(9));
    fixture
        .table
        .update(|metadata| metadata.upgrade_format_version(iceberg::spec::FormatVersion::V3))
        .await
        .unwrap();
    fixture
        .table
        .update(|metadata| metadata.add_current_schema(with(field)))
        .await
        .unwrap();
    let rows = fixture.rows(ScanRequest::default()).await.unwrap();
    assert!(
        rows.iter()
            .all(|batch| ints(batch, "extra").iter().all(|value| *value == Some(9)))
    );
    assert_eq!(fixture.ids(filtered("extra = 9")).await.unwrap(), [1, 2, 3]);
    assert_eq!(
        fixture.ids(filtered("extra IS NULL")).await.unwrap(),
        [0; 0]
    );
}
