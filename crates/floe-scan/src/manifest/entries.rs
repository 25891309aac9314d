//! Manifests of all format versions. What a manifest's bytes tell is kept as they tell it; what entries inherit
//! from the manifest list is added as they are gone through, since one manifest may stand in lists that tell more.

use std::ops::Range;
use std::str::FromStr;
use std::sync::Arc;

use iceberg::spec::{DataContentType, DataFileFormat, ManifestFile, ManifestStatus, Struct};

use super::avro::{Container, Cursor, Damage, Field, Node};
use super::columns::MetricColumns;
use super::details::{Count, Details, End};
use super::partition::{FixedForm, PartitionColumn, Partitions};

/// A decoded manifest.
#[derive(Debug)]
pub(crate) struct Manifest {
    entries: Vec<Entry>,
    /// Locations, one behind the other.
    text: String,
    partitions: Vec<Arc<Struct>>,
    partition_columns: Vec<PartitionColumn>,
    metrics: MetricColumns,
}

/// A file in a manifest, as it is written there.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) status: ManifestStatus,
    pub(crate) content: DataContentType,
    pub(crate) format: DataFileFormat,
    pub(crate) encrypted: bool,
    /// The number of its partition.
    pub(crate) partition: u32,
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
    pub(crate) snapshot_id: Option<i64>,
    pub(crate) sequence_number: Option<i64>,
    pub(crate) file_sequence_number: Option<i64>,
    pub(crate) first_row_id: Option<i64>,
    path: Range<usize>,
    deletes: Option<Box<DeleteDetails>>,
}

/// What only delete files have.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct DeleteDetails {
    pub(crate) equality_ids: Option<Vec<i32>>,
    pub(crate) referenced_data_file: Option<String>,
    pub(crate) content_offset: Option<i64>,
    pub(crate) content_size: Option<i64>,
}

/// An entry that is not deleted, with what it inherits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Live<'a> {
    pub(crate) manifest: &'a Manifest,
    pub(crate) entry: &'a Entry,
    /// Its number in the manifest.
    pub(crate) row: u32,
    pub(crate) data_sequence_number: i64,
    pub(crate) file_sequence_number: Option<i64>,
    pub(crate) first_row_id: Option<i64>,
}

/// An entry by its number, deleted or not, with what it inherits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Inherited {
    pub(crate) row: u32,
    pub(crate) snapshot_id: i64,
    /// `None` if neither entry nor list tells it.
    pub(crate) data_sequence_number: Option<i64>,
    pub(crate) file_sequence_number: Option<i64>,
    pub(crate) first_row_id: Option<i64>,
}

impl<'a> Live<'a> {
    /// Its location.
    pub(crate) fn path(&self) -> &'a str {
        self.manifest.path(self.entry)
    }
}

impl Manifest {
    /// Every entry, deleted ones too.
    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The location of an entry of this manifest.
    pub(crate) fn path(&self, entry: &Entry) -> &str {
        &self.text[entry.path.clone()]
    }

    /// What an entry of this manifest has if it is a delete file.
    pub(crate) fn delete_details<'a>(&self, entry: &'a Entry) -> Option<&'a DeleteDetails> {
        entry.deletes.as_deref()
    }

    /// The different partitions of its entries, by number.
    pub(crate) fn partitions(&self) -> &[Arc<Struct>] {
        &self.partitions
    }

    /// What the values of a partition are of.
    pub(crate) fn partition_columns(&self) -> &[PartitionColumn] {
        &self.partition_columns
    }

    /// Metrics by entry.
    pub(crate) fn metrics(&self) -> &MetricColumns {
        &self.metrics
    }

    /// The entries that are not deleted, with what they inherit from the list that names the manifest.
    ///
    /// # Errors
    /// What an entry needs and neither it nor the list tells; the text names the field.
    pub(crate) fn live<'a>(
        &'a self,
        listed: &'a ManifestFile,
    ) -> impl Iterator<Item = Result<Live<'a>, Damage>> + 'a {
        let live = |entry: &Entry| entry.status != ManifestStatus::Deleted;
        self.inherited(listed, live).map(|inherited| {
            let inherited = inherited?;
            Ok(Live {
                manifest: self,
                entry: &self.entries[inherited.row as usize],
                row: inherited.row,
                data_sequence_number: inherited
                    .data_sequence_number
                    .ok_or_else(|| Damage::missing("sequence_number"))?,
                file_sequence_number: inherited.file_sequence_number,
                first_row_id: inherited.first_row_id,
            })
        })
    }

    /// The entries that are `wanted`, with what they inherit from the list that names the manifest.
    ///
    /// # Errors
    /// Row ids that go beyond what 63 bits hold.
    pub(crate) fn inherited<'a>(
        &'a self,
        listed: &'a ManifestFile,
        wanted: impl Fn(&Entry) -> bool + 'a,
    ) -> impl Iterator<Item = Result<Inherited, Damage>> + 'a {
        let mut next_row_id = listed.first_row_id;
        let entries = (0u32..).zip(&self.entries);
        entries
            .filter(move |(_, entry)| wanted(entry))
            .map(move |(row, entry)| {
                let first_row_id = inherit_row_id(entry, &mut next_row_id)?;
                // Manifests of before sequence numbers stand in lists that give them 0.
                let inherits = entry.status == ManifestStatus::Added || listed.sequence_number == 0;
                let inherited = inherits.then_some(listed.sequence_number);
                Ok(Inherited {
                    row,
                    snapshot_id: entry.snapshot_id.unwrap_or(listed.added_snapshot_id),
                    data_sequence_number: entry.sequence_number.or(inherited),
                    file_sequence_number: entry.file_sequence_number.or(inherited),
                    first_row_id,
                })
            })
    }

    /// Bytes of memory that it takes.
    pub(super) fn weight(&self) -> usize {
        let details = |entry: &Entry| {
            entry.deletes.as_ref().map_or(0, |details| {
                let ids = details
                    .equality_ids
                    .as_ref()
                    .map_or(0, |ids| ids.capacity() * 4);
                let path = details
                    .referenced_data_file
                    .as_ref()
                    .map_or(0, String::capacity);
                size_of::<DeleteDetails>() + ids + path
            })
        };
        let partition = |partition: &Arc<Struct>| {
            size_of::<Struct>() + partition.fields().len() * 2 * size_of::<iceberg::spec::Literal>()
        };
        self.entries.capacity() * size_of::<Entry>()
            + self.entries.iter().map(details).sum::<usize>()
            + self.text.capacity()
            + self.partitions.iter().map(partition).sum::<usize>()
            + self.metrics.weight()
    }
}

/// The first row id of an entry: its own, or the next one that the manifest has to give, which deleted ones don't take.
/// Without any of the manifest's there is none.
fn inherit_row_id(entry: &Entry, next: &mut Option<u64>) -> Result<Option<i64>, Damage> {
    let Some(free) = *next else {
        return Ok(None);
    };
    if entry.first_row_id.is_some() || entry.status == ManifestStatus::Deleted {
        return Ok(entry.first_row_id);
    }
    let too_large = || Damage::new("it is beyond 63 bits").of("first_row_id");
    let after = free.checked_add(entry.rows).ok_or_else(too_large)?;
    *next = Some(after);
    i64::try_from(free).map(Some).map_err(|_| too_large())
}

/// What a field of an entry tells.
#[derive(Clone, Copy)]
enum Told {
    Status,
    Snapshot,
    Sequence,
    FileSequence,
    File,
}

const FIELDS: [(i32, &str, Told); 5] = [
    (0, "status", Told::Status),
    (1, "snapshot_id", Told::Snapshot),
    (3, "sequence_number", Told::Sequence),
    (4, "file_sequence_number", Told::FileSequence),
    (2, "data_file", Told::File),
];

/// What a field of an entry's file tells.
#[derive(Clone, Copy)]
enum ToldOfFile {
    Content,
    Path,
    Format,
    Partition,
    Rows,
    Bytes,
    Sizes,
    Values,
    Nulls,
    Nans,
    Lower,
    Upper,
    Key,
    EqualityIds,
    FirstRow,
    Referenced,
    Offset,
    Size,
    SplitOffsets,
    SortOrder,
}

impl ToldOfFile {
    /// Whether only [`Details`] hold it.
    fn is_detail(self) -> bool {
        matches!(self, Self::SplitOffsets | Self::SortOrder)
    }
}

const FILE_FIELDS: [(i32, &str, ToldOfFile); 20] = [
    (134, "content", ToldOfFile::Content),
    (100, "file_path", ToldOfFile::Path),
    (101, "file_format", ToldOfFile::Format),
    (102, "partition", ToldOfFile::Partition),
    (103, "record_count", ToldOfFile::Rows),
    (104, "file_size_in_bytes", ToldOfFile::Bytes),
    (108, "column_sizes", ToldOfFile::Sizes),
    (109, "value_counts", ToldOfFile::Values),
    (110, "null_value_counts", ToldOfFile::Nulls),
    (137, "nan_value_counts", ToldOfFile::Nans),
    (125, "lower_bounds", ToldOfFile::Lower),
    (128, "upper_bounds", ToldOfFile::Upper),
    (131, "key_metadata", ToldOfFile::Key),
    (135, "equality_ids", ToldOfFile::EqualityIds),
    (142, "first_row_id", ToldOfFile::FirstRow),
    (143, "referenced_data_file", ToldOfFile::Referenced),
    (144, "content_offset", ToldOfFile::Offset),
    (145, "content_size_in_bytes", ToldOfFile::Size),
    (132, "split_offsets", ToldOfFile::SplitOffsets),
    (140, "sort_order_id", ToldOfFile::SortOrder),
];

impl Manifest {
    /// Decodes a manifest.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Damage> {
        decode(bytes, Depth::Planning).map(|(manifest, _)| manifest)
    }

    /// Decodes a manifest, and what planning does not need of each entry.
    pub(super) fn decode_details(bytes: &[u8]) -> Result<(Self, Vec<Details>), Damage> {
        decode(bytes, Depth::Details)
    }
}

/// How much of an entry is decoded.
#[derive(Clone, Copy, PartialEq)]
enum Depth {
    Planning,
    Details,
}

/// A manifest, and the details of each entry if they were asked for.
type Decoded = (Manifest, Vec<Details>);

fn decode(bytes: &[u8], depth: Depth) -> Result<Decoded, Damage> {
    match decode_with(Container::open(bytes)?, FixedForm::Plain, depth) {
        // Only as a whole is a manifest of one form or the other; what is neither is damaged.
        Err(Undecoded {
            damage,
            holds_fixed: true,
        }) => decode_with(Container::open(bytes)?, FixedForm::Prefixed, depth).map_err(|_| damage),
        other => other.map_err(|undecoded| undecoded.damage),
    }
}

fn decode_with(
    container: Container<'_>,
    form: FixedForm,
    depth: Depth,
) -> Result<Decoded, Undecoded> {
    let mut decoder = Decoder::new(&container, form, depth).map_err(|damage| Undecoded {
        damage,
        holds_fixed: false,
    })?;
    let read = container.each(|cursor| decoder.entry(cursor));
    read.map_err(|damage| Undecoded {
        damage,
        holds_fixed: decoder.partitions.hold_fixed(),
    })?;
    let mut manifest = decoder.manifest;
    manifest.entries.shrink_to_fit();
    manifest.text.shrink_to_fit();
    manifest.partitions = decoder.partitions.values;
    manifest.metrics.finish();
    Ok((manifest, decoder.details))
}

/// Why a manifest was not decoded.
struct Undecoded {
    damage: Damage,
    /// Whether it may be since its partitions hold values of `fixed` in another form.
    holds_fixed: bool,
}

/// Decodes entries into a manifest.
struct Decoder {
    fields: Vec<(Option<Told>, Field)>,
    file_fields: Vec<(Option<ToldOfFile>, Field)>,
    partitions: Partitions,
    manifest: Manifest,
    depth: Depth,
    details: Vec<Details>,
}

/// What is known of an entry while it is read.
#[derive(Default)]
struct Draft {
    status: Option<i32>,
    snapshot: Option<i64>,
    sequence: Option<i64>,
    file_sequence: Option<i64>,
    content: Option<i32>,
    path: Option<Range<usize>>,
    format: Option<DataFileFormat>,
    partition: Option<u32>,
    rows: Option<i64>,
    bytes: Option<i64>,
    encrypted: bool,
    first_row: Option<i64>,
    deletes: DeleteDetails,
    details: Option<Details>,
}

impl Draft {
    /// Keeps that the file has these counts, if they were `told`.
    fn has_counts(&mut self, count: Count, told: bool) {
        if let (Some(details), true) = (&mut self.details, told) {
            details.add_counts(count);
        }
    }

    /// Keeps that the file has these bounds, if they were `told`.
    fn has_bounds(&mut self, end: End, told: bool) {
        if let (Some(details), true) = (&mut self.details, told) {
            details.add_bounds(end);
        }
    }
}

impl Decoder {
    fn new(container: &Container<'_>, form: FixedForm, depth: Depth) -> Result<Self, Damage> {
        let fields: Vec<(Option<Told>, Field)> = container
            .fields()?
            .iter()
            .map(|field| (field.role(&FIELDS), field.clone()))
            .collect();
        let file = fields
            .iter()
            .find(|(told, _)| matches!(told, Some(Told::File)));
        let (_, file) = file.ok_or_else(|| Damage::missing("data_file"))?;
        let file_fields: Vec<(Option<ToldOfFile>, Field)> = file
            .node
            .record()
            .map_err(|damage| damage.of("data_file"))?
            .iter()
            .map(|field| {
                let told = field.role(&FILE_FIELDS);
                let told = told.filter(|told| depth == Depth::Details || !told.is_detail());
                (told, field.clone())
            })
            .collect();
        let is_partition =
            |(told, _): &&(Option<ToldOfFile>, Field)| matches!(told, Some(ToldOfFile::Partition));
        let partition = file_fields.iter().find(is_partition);
        let (_, partition) = partition.ok_or_else(|| Damage::missing("partition"))?;
        let partitions = Partitions::new(&partition.node, container, form)
            .map_err(|damage| damage.of("partition"))?;
        Ok(Self {
            manifest: Manifest {
                entries: Vec::new(),
                text: String::new(),
                partitions: Vec::new(),
                partition_columns: partitions.columns(),
                metrics: MetricColumns::default(),
            },
            partitions,
            fields,
            file_fields,
            depth,
            details: Vec::new(),
        })
    }

    fn entry(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Damage> {
        let mut draft = Draft {
            details: (self.depth == Depth::Details).then(Details::default),
            ..Draft::default()
        };
        let row = u32::try_from(self.manifest.entries.len())
            .map_err(|_| Damage::new("it has too many entries"))?;
        for (told, field) in &self.fields {
            let node = &field.node;
            let mut read = || -> Result<(), Damage> {
                match told {
                    Some(Told::Status) => draft.status = node.int(cursor)?,
                    Some(Told::Snapshot) => draft.snapshot = node.long(cursor)?,
                    Some(Told::Sequence) => draft.sequence = node.long(cursor)?,
                    Some(Told::FileSequence) => draft.file_sequence = node.long(cursor)?,
                    Some(Told::File) => read_file(
                        &self.file_fields,
                        &mut self.partitions,
                        &mut self.manifest,
                        row,
                        cursor,
                        &mut draft,
                    )?,
                    None => node.skip(cursor)?,
                }
                Ok(())
            };
            read().map_err(|damage| damage.of(&field.name))?;
        }
        self.details.extend(draft.details.take());
        self.manifest.entries.push(draft.finish()?);
        Ok(())
    }
}

fn read_file(
    fields: &[(Option<ToldOfFile>, Field)],
    partitions: &mut Partitions,
    manifest: &mut Manifest,
    row: u32,
    cursor: &mut Cursor<'_>,
    draft: &mut Draft,
) -> Result<(), Damage> {
    let metrics = &mut manifest.metrics;
    for (told, field) in fields {
        let node = &field.node;
        let mut read = || -> Result<(), Damage> {
            match told {
                Some(ToldOfFile::Content) => draft.content = node.int(cursor)?,
                Some(ToldOfFile::Path) => {
                    draft.path = node.text(cursor)?.map(|path| {
                        let start = manifest.text.len();
                        manifest.text.push_str(path);
                        start..manifest.text.len()
                    });
                }
                Some(ToldOfFile::Format) => {
                    draft.format = node.text(cursor)?.map(format_of).transpose()?;
                }
                Some(ToldOfFile::Partition) => draft.partition = Some(partitions.read(cursor)?),
                Some(ToldOfFile::Rows) => draft.rows = node.long(cursor)?,
                Some(ToldOfFile::Bytes) => draft.bytes = node.long(cursor)?,
                Some(ToldOfFile::Sizes) => {
                    let told = counts(node, cursor, |id, n| metrics.sizes.tell(row, id, n))?;
                    draft.has_counts(Count::Sizes, told);
                }
                Some(ToldOfFile::Values) => {
                    let told = counts(node, cursor, |id, n| metrics.values.tell(row, id, n))?;
                    draft.has_counts(Count::Values, told);
                }
                Some(ToldOfFile::Nulls) => {
                    let told = counts(node, cursor, |id, n| metrics.nulls.tell(row, id, n))?;
                    draft.has_counts(Count::Nulls, told);
                }
                Some(ToldOfFile::Nans) => {
                    let told = counts(node, cursor, |id, n| metrics.nans.tell(row, id, n))?;
                    draft.has_counts(Count::Nans, told);
                }
                Some(ToldOfFile::Lower) => {
                    let told = bounds(node, cursor, |id, b| metrics.lower.tell(row, id, b))?;
                    draft.has_bounds(End::Lower, told);
                }
                Some(ToldOfFile::Upper) => {
                    let told = bounds(node, cursor, |id, b| metrics.upper.tell(row, id, b))?;
                    draft.has_bounds(End::Upper, told);
                }
                Some(ToldOfFile::Key) => {
                    let key = node.bytes(cursor)?;
                    draft.encrypted = key.is_some();
                    if let Some(details) = &mut draft.details {
                        details.key_metadata = key.map(<[u8]>::to_vec);
                    }
                }
                Some(ToldOfFile::EqualityIds) => {
                    draft.deletes.equality_ids =
                        numbers(node, cursor, "a field id", |item, cursor| item.int(cursor))?;
                }
                Some(ToldOfFile::FirstRow) => draft.first_row = node.long(cursor)?,
                Some(ToldOfFile::Referenced) => {
                    draft.deletes.referenced_data_file = node.text(cursor)?.map(str::to_string);
                }
                Some(ToldOfFile::Offset) => draft.deletes.content_offset = node.long(cursor)?,
                Some(ToldOfFile::Size) => draft.deletes.content_size = node.long(cursor)?,
                Some(ToldOfFile::SplitOffsets) => {
                    let offsets =
                        numbers(node, cursor, "an offset", |item, cursor| item.long(cursor))?;
                    if let Some(details) = &mut draft.details {
                        details.split_offsets = offsets;
                    }
                }
                Some(ToldOfFile::SortOrder) => {
                    let order = node.int(cursor)?;
                    if let Some(details) = &mut draft.details {
                        details.sort_order_id = order;
                    }
                }
                None => node.skip(cursor)?,
            }
            Ok(())
        };
        read().map_err(|damage| damage.of(&field.name))?;
    }
    Ok(())
}

impl Draft {
    fn finish(self) -> Result<Entry, Damage> {
        let count = |value: Option<i64>, name: &str| {
            let value = value.ok_or_else(|| Damage::missing(name))?;
            u64::try_from(value).map_err(|_| Damage::new(format!("it is {value}")).of(name))
        };
        let unknown = |value: i32, name: &str| {
            Damage::new(format!("its value {value} has no meaning")).of(name)
        };
        let status = self.status.ok_or_else(|| Damage::missing("status"))?;
        // Manifests of version 1 hold data files only.
        let content = self.content.unwrap_or(0);
        Ok(Entry {
            status: ManifestStatus::try_from(status).map_err(|_| unknown(status, "status"))?,
            content: DataContentType::try_from(content).map_err(|_| unknown(content, "content"))?,
            format: self.format.ok_or_else(|| Damage::missing("file_format"))?,
            encrypted: self.encrypted,
            partition: self.partition.ok_or_else(|| Damage::missing("partition"))?,
            rows: count(self.rows, "record_count")?,
            bytes: count(self.bytes, "file_size_in_bytes")?,
            snapshot_id: self.snapshot,
            sequence_number: self.sequence,
            file_sequence_number: self.file_sequence,
            first_row_id: self.first_row,
            path: self.path.ok_or_else(|| Damage::missing("file_path"))?,
            deletes: (self.deletes != DeleteDetails::default()).then(|| Box::new(self.deletes)),
        })
    }
}

fn format_of(name: &str) -> Result<DataFileFormat, Damage> {
    DataFileFormat::from_str(name).map_err(|_| {
        Damage::unsupported(format!(
            "floe does not know the format '{}'",
            name.escape_default()
        ))
    })
}

/// False for NULL.
fn counts(
    node: &Node,
    cursor: &mut Cursor<'_>,
    mut tell: impl FnMut(i32, i64),
) -> Result<bool, Damage> {
    node.pairs(cursor, |id, value, cursor| {
        if let Some(value) = value.long(cursor)? {
            tell(id, value);
        }
        Ok(())
    })
}

/// False for NULL.
fn bounds(
    node: &Node,
    cursor: &mut Cursor<'_>,
    mut tell: impl FnMut(i32, &[u8]) -> Result<(), Damage>,
) -> Result<bool, Damage> {
    node.pairs(cursor, |id, value, cursor| match value.bytes(cursor)? {
        Some(value) => tell(id, value),
        None => Ok(()),
    })
}

/// Numbers of which none is NULL; `None` for NULL in place of all.
fn numbers<T>(
    node: &Node,
    cursor: &mut Cursor<'_>,
    what: &str,
    read: impl Fn(&Node, &mut Cursor<'_>) -> Result<Option<T>, Damage>,
) -> Result<Option<Vec<T>>, Damage> {
    let mut numbers = Vec::new();
    let told = node.items(cursor, |item, cursor| {
        let number = read(item, cursor)?;
        numbers.push(number.ok_or_else(|| Damage::new(format!("{what} is NULL")))?);
        Ok(())
    })?;
    Ok(told.then_some(numbers))
}
