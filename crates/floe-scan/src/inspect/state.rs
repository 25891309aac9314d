//! What a table's metadata tells by itself: snapshots, refs, the history of main. They are the table's, whatever state is looked at.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, Int32Array, Int64Array, RecordBatch, StringArray,
    TimestampMicrosecondArray,
};
use arrow_schema::SchemaRef;
use iceberg::arrow::UTC_TIME_ZONE;
use iceberg::spec::{NestedField, PrimitiveType, SnapshotRef, SnapshotRetention};

use super::batch;
use super::column::{map, optional, required};
use super::source::Source;
use super::values;
use crate::error::{Error, ErrorKind, Result};
use crate::snapshot::{self, line_of_main};

pub(super) fn snapshot_fields() -> [NestedField; 6] {
    use PrimitiveType as Of;
    [
        required(1, "committed_at", Of::Timestamptz),
        required(2, "snapshot_id", Of::Long),
        optional(3, "parent_id", Of::Long),
        optional(4, "operation", Of::String),
        optional(5, "manifest_list", Of::String),
        optional(6, "summary", map(7, Of::String, 8, Of::String)),
    ]
}

pub(super) fn ref_fields() -> [NestedField; 6] {
    use PrimitiveType as Of;
    [
        required(1, "name", Of::String),
        required(2, "type", Of::String),
        required(3, "snapshot_id", Of::Long),
        optional(4, "max_reference_age_in_ms", Of::Long),
        optional(5, "min_snapshots_to_keep", Of::Int),
        optional(6, "max_snapshot_age_in_ms", Of::Long),
    ]
}

pub(super) fn history_fields() -> [NestedField; 4] {
    use PrimitiveType as Of;
    [
        required(1, "made_current_at", Of::Timestamptz),
        required(2, "snapshot_id", Of::Long),
        optional(3, "parent_id", Of::Long),
        required(4, "is_current_ancestor", Of::Boolean),
    ]
}

/// The snapshots as they were committed: iceberg-rust keeps no order of them.
pub(super) fn snapshots(source: &Source, schema: &SchemaRef) -> Result<RecordBatch> {
    let mut snapshots: Vec<&SnapshotRef> = source.metadata().snapshots().collect();
    snapshots.sort_by_key(|snapshot| {
        let time = snapshot.timestamp_ms();
        (snapshot.sequence_number(), time, snapshot.snapshot_id())
    });
    let each = || snapshots.iter();
    let times = each().map(|snapshot| micros(snapshot.timestamp_ms()));
    let operations = each().map(|snapshot| snapshot.summary().operation.as_str());
    // Metadata of old may hold its manifests itself.
    let lists = each().map(|snapshot| Some(snapshot.manifest_list()).filter(|at| !at.is_empty()));
    let columns: Vec<ArrayRef> = vec![
        moments(times)?,
        Arc::new(Int64Array::from_iter_values(
            each().map(|snapshot| snapshot.snapshot_id()),
        )),
        Arc::new(
            each()
                .map(|snapshot| snapshot.parent_snapshot_id())
                .collect::<Int64Array>(),
        ),
        Arc::new(StringArray::from_iter_values(operations)),
        Arc::new(lists.collect::<StringArray>()),
        summaries(&snapshots, schema)?,
    ];
    batch(schema, columns, snapshots.len())
}

fn summaries(snapshots: &[&SnapshotRef], schema: &SchemaRef) -> Result<ArrayRef> {
    let (mut lengths, mut keys, mut texts) = (Vec::new(), Vec::new(), Vec::new());
    for snapshot in snapshots {
        let properties = &snapshot.summary().additional_properties;
        let mut sorted: Vec<(&String, &String)> = properties.iter().collect();
        sorted.sort();
        lengths.push(Some(sorted.len()));
        for (key, text) in sorted {
            keys.push(key.as_str());
            texts.push(text.as_str());
        }
    }
    let kind = schema.field(5).data_type();
    let keys = Arc::new(StringArray::from(keys));
    values::map(kind, &lengths, keys, Arc::new(StringArray::from(texts)))
}

/// Branches and tags by name.
pub(super) fn refs(source: &Source, schema: &SchemaRef) -> Result<RecordBatch> {
    let refs = snapshot::refs(source.metadata())?;
    let each = || refs.values();
    let kinds = each().map(|found| match found.is_branch() {
        true => "BRANCH",
        false => "TAG",
    });
    let ages = each().map(|found| match found.retention {
        SnapshotRetention::Branch { max_ref_age_ms, .. } => max_ref_age_ms,
        SnapshotRetention::Tag { max_ref_age_ms } => max_ref_age_ms,
    });
    let of_branch = |found: &iceberg::spec::SnapshotReference| match found.retention {
        SnapshotRetention::Branch {
            min_snapshots_to_keep,
            max_snapshot_age_ms,
            ..
        } => (min_snapshots_to_keep, max_snapshot_age_ms),
        SnapshotRetention::Tag { .. } => (None, None),
    };
    let columns: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from_iter_values(refs.keys())),
        Arc::new(StringArray::from_iter_values(kinds)),
        Arc::new(Int64Array::from_iter_values(
            each().map(|found| found.snapshot_id),
        )),
        Arc::new(ages.collect::<Int64Array>()),
        Arc::new(
            each()
                .map(|found| of_branch(found).0)
                .collect::<Int32Array>(),
        ),
        Arc::new(
            each()
                .map(|found| of_branch(found).1)
                .collect::<Int64Array>(),
        ),
    ];
    batch(schema, columns, refs.len())
}

/// The log of main, oldest entry first.
pub(super) fn history(source: &Source, schema: &SchemaRef) -> Result<RecordBatch> {
    let metadata = source.metadata();
    let log = metadata.history();
    let line: HashSet<i64> = line_of_main(metadata).into_iter().collect();
    let parents = log.iter().map(|entry| {
        let snapshot = metadata.snapshot_by_id(entry.snapshot_id)?;
        snapshot.parent_snapshot_id()
    });
    let led = log.iter().map(|entry| line.contains(&entry.snapshot_id));
    let columns: Vec<ArrayRef> = vec![
        moments(log.iter().map(|entry| micros(entry.timestamp_ms)))?,
        Arc::new(Int64Array::from_iter_values(
            log.iter().map(|entry| entry.snapshot_id),
        )),
        Arc::new(parents.collect::<Int64Array>()),
        Arc::new(led.map(Some).collect::<BooleanArray>()),
    ];
    batch(schema, columns, log.len())
}

fn moments(micros: impl Iterator<Item = Result<i64>>) -> Result<ArrayRef> {
    let micros = micros.collect::<Result<Vec<i64>>>()?;
    Ok(Arc::new(
        TimestampMicrosecondArray::from(micros).with_timezone(UTC_TIME_ZONE),
    ))
}

/// A time of metadata in the unit that columns have.
pub(super) fn micros(millis: i64) -> Result<i64> {
    millis.checked_mul(1000).ok_or_else(|| {
        let message = format!("the table's metadata has the time {millis} ms, which is beyond any");
        Error::new(ErrorKind::Corrupt, message)
    })
}
