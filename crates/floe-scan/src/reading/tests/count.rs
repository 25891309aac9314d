//! Scans that want no column.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array};
use iceberg::spec::PrimitiveType;
use roaring::RoaringTreemap;

use super::super::deletes::vector;
use super::deletes::{position_deletes, vector_delete};
use super::kit::*;

#[tokio::test]
async fn rows_are_counted_without_reading_a_byte_of_data() {
    let table = schema([optional(1, "id", primitive(PrimitiveType::Long))]);
    let files = Arc::new(Files::new());
    // There is no such file.
    let task = task("nowhere", 1000, 5_000_000);
    let batches = batches(&files, spec(&table, &[]), vec![task])
        .await
        .unwrap();
    assert_eq!(
        batches.iter().map(|b| b.num_rows()).sum::<usize>(),
        5_000_000
    );
    assert!(files.calls().is_empty());
}

#[tokio::test]
async fn deleted_positions_are_not_counted() {
    let table = schema([optional(1, "id", primitive(PrimitiveType::Long))]);
    let files = Arc::new(Files::new());
    let positions = position_deletes(&files, "d", &[("f", 1), ("f", 3), ("other", 2), ("f", 999)]);
    let blob = vector::blob(&RoaringTreemap::from_iter([3, 4]));
    let vector = vector_delete(&files, "v", &blob, 2);
    let task = with_deletes(task("f", 1000, 10), [positions, vector]);
    let batches = batches(&files, spec(&table, &[]), vec![task])
        .await
        .unwrap();
    assert_eq!(batches.iter().map(|b| b.num_rows()).sum::<usize>(), 7);
}

#[tokio::test]
async fn rows_that_match_are_counted() {
    use crate::predicate::{Column, Comparison, Predicate};
    let table = schema([optional(1, "id", primitive(PrimitiveType::Long))]);
    let files = Arc::new(Files::new());
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..100));
    let task = files.data("f", &batch([(1, "id", ids)]), 30);
    let column = Column::find(&table, "id").unwrap();
    let ten = iceberg::spec::Datum::long(10);
    let less = Predicate::Compare(column, Comparison::Less, ten);
    let task = with_residual(task, less);
    let batches = batches(&files, spec(&table, &[]), vec![task])
        .await
        .unwrap();
    assert_eq!(batches.iter().map(|b| b.num_rows()).sum::<usize>(), 10);
}
