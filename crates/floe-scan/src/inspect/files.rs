//! Files and entries of manifests: a row each, in batches that stay small however wide the table is.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, Int32Array, Int64Array, LargeBinaryArray, RecordBatch, StringArray, StructArray,
    UInt32Array, new_null_array,
};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Fields, Schema, SchemaRef};
use arrow_select::take::take;
use iceberg::spec::{
    DataFileFormat, ManifestContentType, ManifestFile, ManifestStatus, NestedField, PrimitiveType,
};
use iceberg::table::Table;

use super::MetadataTable;
use super::column::{field, list, map, optional, required, with_id};
use super::metrics::ReadableMetrics;
use super::partition::{Partitioning, Tuple};
use super::source::{Depth, Opened};
use super::{batch, unbuilt, values};
use crate::error::Result;
use crate::manifest::{Count, DeleteDetails, Details, End, Entry, Inherited, may_hold_files};
use crate::predicate::datum::bytes;

/// Rows of a batch at most, and values in it about; few rows are better than too many values.
const BATCH_ROWS: usize = 4096;
const LEAST_BATCH_ROWS: usize = 16;
const BATCH_VALUES: usize = 1 << 20;
/// Bytes of a batch that partitions of long text may take.
const BATCH_BYTES: usize = 64 << 20;

/// A metadata table whose rows are files, bare or in the entries of manifests.
#[derive(Debug)]
pub(super) struct FileTable {
    wants: Wanted,
    columns: Vec<Column>,
    /// Of a file's struct, without its readable metrics.
    file_columns: Vec<FileColumn>,
    partitioning: Partitioning,
    metrics: ReadableMetrics,
}

/// Which rows there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// Files that are not deleted, of manifests of this content or any.
    Files(Option<ManifestContentType>),
    /// Every entry.
    Entries,
}

/// A column of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    Status,
    Snapshot,
    Sequence,
    FileSequence,
    /// The file as one struct.
    DataFile,
    File(FileColumn),
    Metrics,
}

/// A field of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FileColumn {
    Content,
    Path,
    Format,
    SpecId,
    Partition,
    Rows,
    Bytes,
    Counts(Count),
    Bounds(End),
    Key,
    SplitOffsets,
    EqualityIds,
    SortOrder,
    FirstRow,
    Referenced,
    Offset,
    Size,
}

const FILE_COLUMNS: [FileColumn; 21] = [
    FileColumn::Content,
    FileColumn::Path,
    FileColumn::Format,
    FileColumn::SpecId,
    FileColumn::Partition,
    FileColumn::Rows,
    FileColumn::Bytes,
    FileColumn::Counts(Count::Sizes),
    FileColumn::Counts(Count::Values),
    FileColumn::Counts(Count::Nulls),
    FileColumn::Counts(Count::Nans),
    FileColumn::Bounds(End::Lower),
    FileColumn::Bounds(End::Upper),
    FileColumn::Key,
    FileColumn::SplitOffsets,
    FileColumn::EqualityIds,
    FileColumn::SortOrder,
    FileColumn::FirstRow,
    FileColumn::Referenced,
    FileColumn::Offset,
    FileColumn::Size,
];

const ENTRY_COLUMNS: [Column; 6] = [
    Column::Status,
    Column::Snapshot,
    Column::Sequence,
    Column::FileSequence,
    Column::DataFile,
    Column::Metrics,
];

impl Wanted {
    fn of(table: MetadataTable) -> Self {
        match table {
            MetadataTable::Entries => Self::Entries,
            MetadataTable::DataFiles => Self::Files(Some(ManifestContentType::Data)),
            MetadataTable::DeleteFiles => Self::Files(Some(ManifestContentType::Deletes)),
            _ => Self::Files(None),
        }
    }

    /// Whether a manifest may have rows.
    pub(super) fn manifest(self, listed: &ManifestFile) -> bool {
        match self {
            Self::Files(content) => {
                may_hold_files(listed) && content.is_none_or(|content| content == listed.content)
            }
            Self::Entries => true,
        }
    }

    fn entry(self, entry: &Entry) -> bool {
        self == Self::Entries || entry.status != ManifestStatus::Deleted
    }
}

impl FileTable {
    /// The table of this kind for an Iceberg table.
    ///
    /// # Errors
    /// Partition fields that contradict each other, types that Arrow can't express.
    pub(super) fn of(table: MetadataTable, of: &Table) -> Result<Self> {
        let partitioning = Partitioning::of(of)?;
        // Without a partition there is no column for it: Java spares engines a struct without fields.
        let has =
            |column: &FileColumn| *column != FileColumn::Partition || !partitioning.is_empty();
        let file_columns: Vec<FileColumn> = FILE_COLUMNS.into_iter().filter(has).collect();
        let wants = Wanted::of(table);
        let columns = match wants {
            Wanted::Entries => ENTRY_COLUMNS.to_vec(),
            Wanted::Files(_) => {
                let columns = file_columns.iter().copied().map(Column::File);
                columns.chain([Column::Metrics]).collect()
            }
        };
        Ok(Self {
            wants,
            columns,
            file_columns,
            metrics: ReadableMetrics::of(of.metadata().current_schema())?,
            partitioning,
        })
    }

    pub(super) fn wants(&self) -> Wanted {
        self.wants
    }

    pub(super) fn schema(&self) -> Result<Schema> {
        let fields = self.columns.iter().map(|column| self.field(*column));
        Ok(Schema::new(fields.collect::<Result<Vec<_>>>()?))
    }

    fn field(&self, column: Column) -> Result<Field> {
        use PrimitiveType as Of;
        match column {
            Column::Status => field(&required(0, "status", Of::Int)),
            Column::Snapshot => field(&optional(1, "snapshot_id", Of::Long)),
            Column::Sequence => field(&optional(3, "sequence_number", Of::Long)),
            Column::FileSequence => field(&optional(4, "file_sequence_number", Of::Long)),
            Column::DataFile => {
                let fields = self.file_columns.iter().map(|column| self.of_file(*column));
                let fields = fields.collect::<Result<Fields>>()?;
                let file = Field::new("data_file", DataType::Struct(fields), false);
                Ok(with_id(file, 2))
            }
            Column::File(column) => self.of_file(column),
            Column::Metrics => Ok(self.metrics.field()),
        }
    }

    fn of_file(&self, column: FileColumn) -> Result<Field> {
        match column.definition() {
            Some(definition) => field(&definition),
            None => {
                let kind = DataType::Struct(self.partitioning.fields().clone());
                Ok(with_id(Field::new("partition", kind, false), 102))
            }
        }
    }

    /// How much of manifests these columns need.
    pub(super) fn depth(&self, chosen: &[usize]) -> Depth {
        let needs_details = |at: &usize| match self.columns[*at] {
            Column::DataFile => true,
            Column::File(column) => column.is_detail(),
            _ => false,
        };
        match chosen.iter().any(needs_details) {
            true => Depth::Details,
            false => Depth::Planning,
        }
    }

    /// The rows of a manifest in batches, each made when it is asked for.
    ///
    /// # Errors
    /// What entries or partitions hold that they can't.
    pub(super) fn batches(
        self: &Arc<Self>,
        opened: Opened,
        chosen: &Arc<[usize]>,
        schema: &SchemaRef,
    ) -> Result<Batches> {
        let wanted = |entry: &Entry| self.wants.entry(entry);
        let entries = opened.manifest.inherited(opened.listed(), wanted);
        let entries = entries.map(|found| found.map_err(|damage| damage.error(&opened.what)));
        let entries = entries.collect::<Result<Vec<Inherited>>>()?;
        let shows_partition = |at: &usize| {
            let column = self.columns[*at];
            matches!(
                column,
                Column::DataFile | Column::File(FileColumn::Partition)
            )
        };
        let mut rows = rows_of(opened.manifest.metrics().width());
        let mut partitions = None;
        if !self.partitioning.is_empty() && chosen.iter().any(shows_partition) {
            let tuples = self.partitioning.tuples(&opened)?;
            let longest = tuples.iter().map(bytes_of).max().unwrap_or(0);
            rows = rows.min(BATCH_BYTES / longest.max(1)).max(1);
            let fields = self.partitioning.fields().clone();
            let columns = self.partitioning.columns(tuples.iter())?;
            partitions = Some(StructArray::try_new(fields, columns, None).map_err(unbuilt)?);
        }
        Ok(Batches {
            table: self.clone(),
            chosen: chosen.clone(),
            schema: schema.clone(),
            opened,
            partitions,
            entries,
            next: 0,
            rows,
        })
    }
}

/// Rows of a batch in which a row has metrics of so many columns.
fn rows_of(width: usize) -> usize {
    let in_a_row = width.saturating_mul(6).max(1);
    (BATCH_VALUES / in_a_row).clamp(LEAST_BATCH_ROWS, BATCH_ROWS)
}

/// Bytes of a partition's texts.
fn bytes_of(tuple: &Tuple) -> usize {
    let values = tuple.iter().flatten();
    values.filter_map(|value| Some(bytes(value)?.len())).sum()
}

/// The rows of one manifest, batch by batch.
pub(super) struct Batches {
    table: Arc<FileTable>,
    chosen: Arc<[usize]>,
    schema: SchemaRef,
    opened: Opened,
    /// By number, if they are asked for.
    partitions: Option<StructArray>,
    entries: Vec<Inherited>,
    /// The first entry of the next batch.
    next: usize,
    /// Rows of a batch.
    rows: usize,
}

impl Iterator for Batches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.entries.get(self.next..)?;
        let entries = &rest[..rest.len().min(self.rows)];
        if entries.is_empty() {
            return None;
        }
        self.next += entries.len();
        let piece = Piece {
            table: &self.table,
            opened: &self.opened,
            partitions: self.partitions.as_ref(),
            entries,
        };
        Some(piece.batch(&self.chosen, &self.schema))
    }
}

/// Entries that become one batch.
struct Piece<'a> {
    table: &'a FileTable,
    opened: &'a Opened,
    partitions: Option<&'a StructArray>,
    entries: &'a [Inherited],
}

impl<'a> Piece<'a> {
    fn batch(&self, chosen: &[usize], schema: &SchemaRef) -> Result<RecordBatch> {
        let columns = chosen.iter().zip(schema.fields());
        let columns = columns.map(|(at, field)| self.column(self.table.columns[*at], field));
        batch(schema, columns.collect::<Result<_>>()?, self.entries.len())
    }

    fn column(&self, column: Column, field: &FieldRef) -> Result<ArrayRef> {
        let inherited = self.entries.iter();
        Ok(match column {
            Column::Status => self.ints(|entry| entry.status as i32),
            Column::Snapshot => Arc::new(Int64Array::from_iter_values(
                inherited.map(|entry| entry.snapshot_id),
            )),
            Column::Sequence => Arc::new(
                inherited
                    .map(|entry| entry.data_sequence_number)
                    .collect::<Int64Array>(),
            ),
            Column::FileSequence => Arc::new(
                inherited
                    .map(|entry| entry.file_sequence_number)
                    .collect::<Int64Array>(),
            ),
            Column::DataFile => self.data_file(field)?,
            Column::File(column) => self.of_file(column, field)?,
            Column::Metrics => {
                let rows: Vec<u32> = inherited.map(|entry| entry.row).collect();
                let metrics = self.opened.manifest.metrics();
                self.table.metrics.array(metrics, &rows)?
            }
        })
    }

    fn data_file(&self, field: &FieldRef) -> Result<ArrayRef> {
        let DataType::Struct(fields) = field.data_type() else {
            return Err(unbuilt(ArrowError::SchemaError(format!(
                "{field} is no struct"
            ))));
        };
        let columns = self.table.file_columns.iter().zip(fields);
        let columns = columns.map(|(column, field)| self.of_file(*column, field));
        let columns = columns.collect::<Result<Vec<_>>>()?;
        let array = StructArray::try_new(fields.clone(), columns, None).map_err(unbuilt)?;
        Ok(Arc::new(array))
    }

    fn of_file(&self, column: FileColumn, field: &FieldRef) -> Result<ArrayRef> {
        let kind = field.data_type();
        Ok(match column {
            FileColumn::Content => self.ints(|entry| entry.content as i32),
            FileColumn::Path => {
                let manifest = &self.opened.manifest;
                let paths = self.each().map(|entry| manifest.path(entry));
                Arc::new(StringArray::from_iter_values(paths))
            }
            FileColumn::Format => {
                let names = self.each().map(|entry| name_of(entry.format));
                Arc::new(StringArray::from_iter_values(names))
            }
            FileColumn::SpecId => {
                let spec_id = self.opened.listed().partition_spec_id;
                Arc::new(Int32Array::from_value(spec_id, self.entries.len()))
            }
            FileColumn::Partition => self.partition(kind)?,
            FileColumn::Rows => self.longs(|entry| i64::try_from(entry.rows).ok()),
            FileColumn::Bytes => self.longs(|entry| i64::try_from(entry.bytes).ok()),
            FileColumn::Counts(count) => self.counts(count, kind)?,
            FileColumn::Bounds(end) => self.bounds(end, kind)?,
            FileColumn::Key => {
                let keys = self
                    .details()
                    .map(|details| details?.key_metadata.as_deref());
                Arc::new(keys.collect::<LargeBinaryArray>())
            }
            FileColumn::SplitOffsets => {
                let offsets = self
                    .details()
                    .map(|details| details?.split_offsets.as_deref());
                let (lengths, offsets) = flat(offsets);
                values::list(kind, &lengths, Arc::new(Int64Array::from(offsets)))?
            }
            FileColumn::EqualityIds => {
                let ids = self
                    .deletes()
                    .map(|deletes| deletes?.equality_ids.as_deref());
                let (lengths, ids) = flat(ids);
                values::list(kind, &lengths, Arc::new(Int32Array::from(ids)))?
            }
            FileColumn::SortOrder => {
                let orders = self.details().map(|details| details?.sort_order_id);
                Arc::new(orders.collect::<Int32Array>())
            }
            FileColumn::FirstRow => {
                let ids = self.entries.iter().map(|entry| entry.first_row_id);
                Arc::new(ids.collect::<Int64Array>())
            }
            FileColumn::Referenced => {
                let paths = self.deletes();
                let paths = paths.map(|deletes| deletes?.referenced_data_file.as_deref());
                Arc::new(paths.collect::<StringArray>())
            }
            FileColumn::Offset => {
                let offsets = self.deletes().map(|deletes| deletes?.content_offset);
                Arc::new(offsets.collect::<Int64Array>())
            }
            FileColumn::Size => {
                let sizes = self.deletes().map(|deletes| deletes?.content_size);
                Arc::new(sizes.collect::<Int64Array>())
            }
        })
    }

    fn partition(&self, kind: &DataType) -> Result<ArrayRef> {
        let Some(partitions) = self.partitions else {
            return Ok(new_null_array(kind, self.entries.len()));
        };
        let numbers = self.each().map(|entry| entry.partition);
        let numbers = UInt32Array::from_iter_values(numbers);
        take(partitions, &numbers, None).map_err(unbuilt)
    }

    fn counts(&self, count: Count, kind: &DataType) -> Result<ArrayRef> {
        let metrics = self.opened.manifest.metrics();
        let (mut lengths, mut ids, mut numbers) = (Vec::new(), Vec::new(), Vec::new());
        for (entry, details) in self.entries.iter().zip(self.details()) {
            let before = ids.len();
            for (id, number) in metrics.counts(count, entry.row) {
                ids.push(id);
                // They were 63 bits long.
                numbers.push(i64::try_from(number).unwrap_or(i64::MAX));
            }
            let told = details.is_some_and(|details| details.has_counts(count));
            lengths.push(told.then_some(ids.len() - before));
        }
        let ids = Arc::new(Int32Array::from(ids));
        values::map(kind, &lengths, ids, Arc::new(Int64Array::from(numbers)))
    }

    fn bounds(&self, end: End, kind: &DataType) -> Result<ArrayRef> {
        let metrics = self.opened.manifest.metrics();
        let (mut lengths, mut ids, mut bounds) = (Vec::new(), Vec::new(), Vec::new());
        for (entry, details) in self.entries.iter().zip(self.details()) {
            let before = ids.len();
            for (id, bound) in metrics.bounds(end, entry.row) {
                ids.push(id);
                bounds.push(bound);
            }
            let told = details.is_some_and(|details| details.has_bounds(end));
            lengths.push(told.then_some(ids.len() - before));
        }
        let ids = Arc::new(Int32Array::from(ids));
        let bounds = Arc::new(LargeBinaryArray::from_iter_values(bounds));
        values::map(kind, &lengths, ids, bounds)
    }

    fn ints(&self, of: impl Fn(&Entry) -> i32) -> ArrayRef {
        Arc::new(Int32Array::from_iter_values(self.each().map(of)))
    }

    /// NULL where a number is beyond 63 bits, which the batch refuses.
    fn longs(&self, of: impl Fn(&Entry) -> Option<i64>) -> ArrayRef {
        Arc::new(self.each().map(of).collect::<Int64Array>())
    }

    fn each(&self) -> impl Iterator<Item = &'a Entry> + '_ {
        let all = self.opened.manifest.entries();
        self.entries.iter().map(|entry| &all[entry.row as usize])
    }

    fn details(&self) -> impl Iterator<Item = Option<&'a Details>> + '_ {
        let all = &self.opened.details;
        self.entries.iter().map(|entry| all.get(entry.row as usize))
    }

    fn deletes(&self) -> impl Iterator<Item = Option<&'a DeleteDetails>> + '_ {
        let manifest = &self.opened.manifest;
        self.each().map(|entry| manifest.delete_details(entry))
    }
}

/// Lengths of slices, and all their items in turn.
fn flat<'a, T: Copy + 'a>(
    slices: impl Iterator<Item = Option<&'a [T]>>,
) -> (Vec<Option<usize>>, Vec<T>) {
    let (mut lengths, mut items) = (Vec::new(), Vec::new());
    for slice in slices {
        lengths.push(slice.map(<[T]>::len));
        items.extend_from_slice(slice.unwrap_or_default());
    }
    (lengths, items)
}

/// A format as Java writes it.
fn name_of(format: DataFileFormat) -> &'static str {
    match format {
        DataFileFormat::Avro => "AVRO",
        DataFileFormat::Orc => "ORC",
        DataFileFormat::Parquet => "PARQUET",
        DataFileFormat::Puffin => "PUFFIN",
    }
}

impl FileColumn {
    /// The column; `None` for the partition, which is each table's own.
    fn definition(self) -> Option<NestedField> {
        use PrimitiveType as Of;
        let counts = |id, name, key, value| optional(id, name, map(key, Of::Int, value, Of::Long));
        let bounds =
            |id, name, key, value| optional(id, name, map(key, Of::Int, value, Of::Binary));
        Some(match self {
            Self::Content => optional(134, "content", Of::Int),
            Self::Path => required(100, "file_path", Of::String),
            Self::Format => required(101, "file_format", Of::String),
            Self::SpecId => optional(141, "spec_id", Of::Int),
            Self::Partition => return None,
            Self::Rows => required(103, "record_count", Of::Long),
            Self::Bytes => required(104, "file_size_in_bytes", Of::Long),
            Self::Counts(Count::Sizes) => counts(108, "column_sizes", 117, 118),
            Self::Counts(Count::Values) => counts(109, "value_counts", 119, 120),
            Self::Counts(Count::Nulls) => counts(110, "null_value_counts", 121, 122),
            Self::Counts(Count::Nans) => counts(137, "nan_value_counts", 138, 139),
            Self::Bounds(End::Lower) => bounds(125, "lower_bounds", 126, 127),
            Self::Bounds(End::Upper) => bounds(128, "upper_bounds", 129, 130),
            Self::Key => optional(131, "key_metadata", Of::Binary),
            Self::SplitOffsets => optional(132, "split_offsets", list(133, Of::Long)),
            Self::EqualityIds => optional(135, "equality_ids", list(136, Of::Int)),
            Self::SortOrder => optional(140, "sort_order_id", Of::Int),
            Self::FirstRow => optional(142, "first_row_id", Of::Long),
            Self::Referenced => optional(143, "referenced_data_file", Of::String),
            Self::Offset => optional(144, "content_offset", Of::Long),
            Self::Size => optional(145, "content_size_in_bytes", Of::Long),
        })
    }

    /// Whether only [`Details`] hold it, or tell an empty map from none.
    fn is_detail(self) -> bool {
        matches!(
            self,
            Self::Counts(_) | Self::Bounds(_) | Self::Key | Self::SplitOffsets | Self::SortOrder
        )
    }
}
