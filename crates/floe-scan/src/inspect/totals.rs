//! The partitions of a state, with sums over their live files.

use std::collections::HashMap;
use std::collections::hash_map::Entry as Slot;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, Int32Array, Int64Array, RecordBatch, StructArray, TimestampMicrosecondArray,
};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use futures::TryStreamExt;
use iceberg::arrow::UTC_TIME_ZONE;
use iceberg::spec::{DataContentType, ManifestStatus, NestedField, PrimitiveType};

use super::column::{self, optional, required, with_id};
use super::partition::{Partitioning, Tuple};
use super::source::{Depth, Opened, Source};
use super::state::micros;
use super::{batch, unbuilt};
use crate::error::{Error, ErrorKind, Result};
use crate::manifest::{Entry, may_hold_files};
use crate::planning::write_value;

/// Rows of a batch at most.
const BATCH_ROWS: usize = 4096;

/// The columns, without those of the partition where the table is not partitioned.
pub(super) fn schema(partitioning: &Partitioning) -> Result<Schema> {
    let mut fields = Vec::new();
    if !partitioning.is_empty() {
        let partition = DataType::Struct(partitioning.fields().clone());
        fields.push(with_id(Field::new("partition", partition, false), 1));
        fields.push(column::field(&required(4, "spec_id", PrimitiveType::Int))?);
    }
    for field in sums() {
        fields.push(column::field(&field)?);
    }
    Ok(Schema::new(fields))
}

fn sums() -> [NestedField; 9] {
    use PrimitiveType as Of;
    [
        required(2, "record_count", Of::Long),
        required(3, "file_count", Of::Int),
        required(11, "total_data_file_size_in_bytes", Of::Long),
        required(5, "position_delete_record_count", Of::Long),
        required(6, "position_delete_file_count", Of::Int),
        required(7, "equality_delete_record_count", Of::Long),
        required(8, "equality_delete_file_count", Of::Int),
        optional(9, "last_updated_at", Of::Timestamptz),
        optional(10, "last_updated_snapshot_id", Of::Long),
    ]
}

/// Every partition, in the order in which manifests name them.
#[derive(Debug)]
pub(super) struct Totals {
    partitioning: Arc<Partitioning>,
    partitions: Vec<Total>,
    /// By what makes two equal.
    places: HashMap<Vec<u8>, usize>,
}

#[derive(Debug, Default)]
struct Total {
    tuple: Tuple,
    spec_id: i32,
    data: Sum,
    positions: Sum,
    equality: Sum,
    /// The time of the snapshot that added the youngest file, and its id.
    updated: Option<(i64, i64)>,
}

#[derive(Debug, Default)]
struct Sum {
    files: u64,
    rows: u64,
    bytes: u64,
}

/// Reads every manifest of the state.
pub(super) async fn of(source: &Source, partitioning: Arc<Partitioning>) -> Result<Totals> {
    let mut totals = Totals {
        partitioning,
        partitions: Vec::new(),
        places: HashMap::new(),
    };
    let mut manifests = source.manifests(may_hold_files, Depth::Planning);
    while let Some(opened) = manifests.try_next().await? {
        totals.add(source, &opened)?;
    }
    Ok(totals)
}

impl Totals {
    fn add(&mut self, source: &Source, opened: &Opened) -> Result<()> {
        let tuples = self.partitioning.tuples(opened)?;
        let mut places: Vec<Option<usize>> = vec![None; tuples.len()];
        let spec_id = opened.listed().partition_spec_id;
        let live = |entry: &Entry| entry.status != ManifestStatus::Deleted;
        for inherited in opened.manifest.inherited(opened.listed(), live) {
            let inherited = inherited.map_err(|damage| damage.error(&opened.what))?;
            let entry = &opened.manifest.entries()[inherited.row as usize];
            let number = entry.partition as usize;
            let place = match places[number] {
                Some(place) => place,
                None => self.place(&tuples[number]),
            };
            places[number] = Some(place);
            let total = &mut self.partitions[place];
            // Partitions of several specs may be equal here: the newest spec stands for them.
            total.spec_id = total.spec_id.max(spec_id);
            let sum = match entry.content {
                DataContentType::Data => &mut total.data,
                DataContentType::PositionDeletes => &mut total.positions,
                DataContentType::EqualityDeletes => &mut total.equality,
            };
            sum.add(entry.rows, entry.bytes)?;
            let snapshot = source.metadata().snapshot_by_id(inherited.snapshot_id);
            let updated = snapshot.map(|by| (by.timestamp_ms(), by.snapshot_id()));
            if updated.map(|(at, _)| at) > total.updated.map(|(at, _)| at) {
                total.updated = updated;
            }
        }
        Ok(())
    }

    /// Where the partition stands.
    fn place(&mut self, tuple: &Tuple) -> usize {
        let next = self.partitions.len();
        match self.places.entry(key(tuple)) {
            Slot::Occupied(known) => *known.get(),
            Slot::Vacant(vacant) => {
                self.partitions.push(Total {
                    tuple: tuple.clone(),
                    spec_id: i32::MIN,
                    ..Total::default()
                });
                *vacant.insert(next)
            }
        }
    }

    /// The rows.
    pub(super) fn batches(&self, schema: &SchemaRef) -> Result<Vec<RecordBatch>> {
        let pieces = self.partitions.chunks(BATCH_ROWS);
        pieces.map(|piece| self.batch(piece, schema)).collect()
    }

    fn batch(&self, rows: &[Total], schema: &SchemaRef) -> Result<RecordBatch> {
        let mut columns: Vec<ArrayRef> = Vec::new();
        if !self.partitioning.is_empty() {
            let values = self
                .partitioning
                .columns(rows.iter().map(|total| &total.tuple))?;
            let fields = self.partitioning.fields().clone();
            let partition = StructArray::try_new(fields, values, None).map_err(unbuilt)?;
            let specs = rows.iter().map(|total| total.spec_id);
            columns.push(Arc::new(partition));
            columns.push(Arc::new(Int32Array::from_iter_values(specs)));
        }
        let times = rows.iter().map(|total| {
            let updated = total.updated.map(|(at, _)| micros(at));
            updated.transpose()
        });
        let times: TimestampMicrosecondArray = times.collect::<Result<_>>()?;
        let ids = rows.iter().map(|total| total.updated.map(|(_, id)| id));
        columns.extend([
            longs(rows, |total| total.data.rows)?,
            ints(rows, |total| total.data.files)?,
            longs(rows, |total| total.data.bytes)?,
            longs(rows, |total| total.positions.rows)?,
            ints(rows, |total| total.positions.files)?,
            longs(rows, |total| total.equality.rows)?,
            ints(rows, |total| total.equality.files)?,
            Arc::new(times.with_timezone(UTC_TIME_ZONE)),
            Arc::new(ids.collect::<Int64Array>()),
        ]);
        batch(schema, columns, rows.len())
    }
}

impl Sum {
    fn add(&mut self, rows: u64, bytes: u64) -> Result<()> {
        self.files += 1;
        self.rows = self.rows.checked_add(rows).ok_or_else(too_large)?;
        self.bytes = self.bytes.checked_add(bytes).ok_or_else(too_large)?;
        Ok(())
    }
}

/// Equal of two partitions that are equal.
fn key(tuple: &Tuple) -> Vec<u8> {
    let mut key = Vec::new();
    for value in tuple {
        match value {
            Some(value) => write_value(&mut key, value.literal()),
            None => key.push(0),
        }
    }
    key
}

fn longs(rows: &[Total], of: fn(&Total) -> u64) -> Result<ArrayRef> {
    let numbers = rows.iter().map(|total| i64::try_from(of(total)));
    let numbers = numbers.collect::<std::result::Result<Vec<_>, _>>();
    Ok(Arc::new(Int64Array::from(
        numbers.map_err(|_| too_large())?,
    )))
}

fn ints(rows: &[Total], of: fn(&Total) -> u64) -> Result<ArrayRef> {
    let numbers = rows.iter().map(|total| i32::try_from(of(total)));
    let numbers = numbers.collect::<std::result::Result<Vec<_>, _>>();
    Ok(Arc::new(Int32Array::from(
        numbers.map_err(|_| too_large())?,
    )))
}

fn too_large() -> Error {
    let message = "can't add up the files of a partition: the sum is too large for its column";
    Error::new(ErrorKind::Corrupt, message)
}
