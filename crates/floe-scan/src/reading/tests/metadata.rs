//! Columns of metadata.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array};
use iceberg::spec::{
    Literal, NestedField, PartitionSpec, PrimitiveType, SchemaRef, Struct, Transform,
};

use super::super::{MetadataColumn, PartitionColumn};
use super::kit::*;
use crate::predicate::{Column, Comparison, Predicate};

fn table() -> SchemaRef {
    schema([optional(1, "id", primitive(PrimitiveType::Long))])
}

fn ids(range: std::ops::Range<i64>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(range))
}

#[tokio::test]
async fn positions_count_pruned_and_filtered_rows() {
    let files = Arc::new(Files::new());
    let columns = [(1, "id", ids(100..150)), (2, "x", ids(0..50))];
    let task = with_file(files.data("f", &batch(columns), 10), |file| {
        file.spec_id = 4;
        file.first_row_id = Some(1000);
        file.file_sequence_number = Some(9);
    });
    let table = schema([
        optional(1, "id", primitive(PrimitiveType::Long)),
        optional(2, "x", primitive(PrimitiveType::Long)),
    ]);
    let column = Column::find(&table, "id").unwrap();
    let values = [100, 115, 135, 136]
        .map(iceberg::spec::Datum::long)
        .to_vec();
    let task = with_residual(task, Predicate::In(column, values));
    for columns in [&[1][..], &[2], &[]] {
        let metadata = [
            MetadataColumn::File,
            MetadataColumn::Position,
            MetadataColumn::SpecId,
            MetadataColumn::RowId,
            MetadataColumn::LastUpdated,
        ];
        let spec = spec(&table, columns)
            .with_metadata(metadata)
            .with_limits(small_batches(3));
        let found = rows(&files, spec, vec![task.clone()]).await.unwrap();
        let wanted = [0, 15, 35, 36].map(|position| {
            let end = format!("f {position} 4 {} 9", 1000 + position);
            match columns {
                [1] => format!("{} {end}", position + 100),
                [2] => format!("{position} {end}"),
                _ => end,
            }
        });
        assert_eq!(found, wanted);
    }
}

#[tokio::test]
async fn no_lineage_is_null_and_what_a_file_holds_of_it_counts() {
    let files = Arc::new(Files::new());
    let metadata = || [MetadataColumn::RowId, MetadataColumn::LastUpdated];
    let none = files.data("f", &batch([(1, "id", ids(0..2))]), 10);
    let spec_of = || spec(&table(), &[]).with_metadata(metadata());
    let found = rows(&files, spec_of(), vec![none]).await.unwrap();
    assert_eq!(found, ["NULL NULL", "NULL NULL"]);

    let row_ids: ArrayRef = Arc::new(Int64Array::from(vec![Some(77), None]));
    let updated: ArrayRef = Arc::new(Int64Array::from(vec![None, Some(3)]));
    let columns = [
        (1, "id", ids(0..2)),
        (2_147_483_540, "_row_id", row_ids),
        (2_147_483_539, "_last_updated_sequence_number", updated),
    ];
    let task = with_file(files.data("g", &batch(columns), 10), |file| {
        file.first_row_id = Some(100);
        file.file_sequence_number = Some(8);
    });
    let found = rows(&files, spec_of(), vec![task.clone()]).await.unwrap();
    assert_eq!(found, ["77 8", "101 3"]);
    let column = Column::find(&table(), "id").unwrap();
    let one = Predicate::Compare(column, Comparison::Equal, iceberg::spec::Datum::long(1));
    let found = rows(&files, spec_of(), vec![with_residual(task, one)])
        .await
        .unwrap();
    assert_eq!(found, ["101 3"]);
}

#[tokio::test]
async fn partitions_of_several_specs_share_one_struct() {
    let table = schema([
        Arc::new(NestedField::optional(
            1,
            "id",
            primitive(PrimitiveType::Long),
        )),
        optional(2, "name", primitive(PrimitiveType::String)),
    ]);
    let old = PartitionSpec::builder(table.clone())
        .with_spec_id(0)
        .add_partition_field("name", "name", Transform::Identity)
        .unwrap()
        .build()
        .unwrap();
    let new = PartitionSpec::builder(table.clone())
        .with_spec_id(1)
        .add_unbound_field(iceberg::spec::UnboundPartitionField {
            source_id: 1,
            field_id: Some(1005),
            name: "id_bucket".into(),
            transform: Transform::Bucket(8),
        })
        .unwrap()
        .build()
        .unwrap();
    let column = PartitionColumn::new(std::slice::from_ref(&table), [&old, &new]).unwrap();
    let column = MetadataColumn::Partition(Arc::new(column));
    let files = Arc::new(Files::new());
    let task = |location: &str, spec_id, partition: Literal| {
        with_file(task(location, 100, 1), |file| {
            file.spec_id = spec_id;
            file.partition = Arc::new(Struct::from_iter([Some(partition)]));
        })
    };
    let tasks = vec![
        task("f", 0, Literal::string("x")),
        task("g", 1, Literal::int(3)),
    ];
    let spec = spec(&table, &[]).with_metadata([column]);
    let found = rows(&files, spec, tasks).await.unwrap();
    assert_eq!(
        found,
        ["{name: x, id_bucket: NULL}", "{name: NULL, id_bucket: 3}"]
    );
}
