//! Manifest lists of all format versions.

use iceberg::spec::{ByteBuf, FieldSummary, ManifestContentType, ManifestFile};

use super::avro::{Container, Cursor, Damage, Field, Node};

/// The manifests of a snapshot.
#[derive(Debug)]
pub(crate) struct ManifestFiles {
    /// In the list's order.
    pub(crate) entries: Vec<ManifestFile>,
}

/// Whether a manifest may hold files that are not deleted. Counts that are not told may be anything.
pub(crate) fn may_hold_files(manifest: &ManifestFile) -> bool {
    manifest.has_added_files() || manifest.has_existing_files()
}

/// What a field of a manifest list tells.
#[derive(Clone, Copy, PartialEq)]
enum Told {
    Path,
    Length,
    Spec,
    Content,
    Sequence,
    MinSequence,
    Snapshot,
    AddedFiles,
    ExistingFiles,
    DeletedFiles,
    AddedRows,
    ExistingRows,
    DeletedRows,
    Partitions,
    Key,
    FirstRow,
    Nothing,
}

/// By field id, else by name; writers of old called the counts of files those of data files.
const FIELDS: [(i32, &str, Told); 19] = [
    (500, "manifest_path", Told::Path),
    (501, "manifest_length", Told::Length),
    (502, "partition_spec_id", Told::Spec),
    (517, "content", Told::Content),
    (515, "sequence_number", Told::Sequence),
    (516, "min_sequence_number", Told::MinSequence),
    (503, "added_snapshot_id", Told::Snapshot),
    (504, "added_files_count", Told::AddedFiles),
    (504, "added_data_files_count", Told::AddedFiles),
    (505, "existing_files_count", Told::ExistingFiles),
    (505, "existing_data_files_count", Told::ExistingFiles),
    (506, "deleted_files_count", Told::DeletedFiles),
    (506, "deleted_data_files_count", Told::DeletedFiles),
    (512, "added_rows_count", Told::AddedRows),
    (513, "existing_rows_count", Told::ExistingRows),
    (514, "deleted_rows_count", Told::DeletedRows),
    (507, "partitions", Told::Partitions),
    (519, "key_metadata", Told::Key),
    (520, "first_row_id", Told::FirstRow),
];

/// What a field of a partition's summary tells.
#[derive(Clone, Copy)]
enum Summary {
    Null,
    Nan,
    Lower,
    Upper,
}

const SUMMARY_FIELDS: [(i32, &str, Summary); 4] = [
    (509, "contains_null", Summary::Null),
    (518, "contains_nan", Summary::Nan),
    (510, "lower_bound", Summary::Lower),
    (511, "upper_bound", Summary::Upper),
];

impl ManifestFiles {
    /// Decodes a manifest list.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Damage> {
        let container = Container::open(bytes)?;
        let fields: Vec<(Told, Field)> = container
            .fields()?
            .iter()
            .map(|field| (field.role(&FIELDS).unwrap_or(Told::Nothing), field.clone()))
            .collect();
        let mut entries = Vec::new();
        container.each(|cursor| {
            entries.push(read_entry(&fields, cursor)?);
            Ok(())
        })?;
        entries.shrink_to_fit();
        Ok(Self { entries })
    }

    /// Bytes of memory that it takes.
    pub(super) fn weight(&self) -> usize {
        let own = self.entries.capacity() * size_of::<ManifestFile>();
        let beside = |entry: &ManifestFile| {
            let summaries = entry.partitions.iter().flatten().map(|summary| {
                let bounds = [&summary.lower_bound, &summary.upper_bound];
                size_of::<FieldSummary>()
                    + bounds.into_iter().flatten().map(|b| b.len()).sum::<usize>()
            });
            entry.manifest_path.len() + summaries.sum::<usize>()
        };
        own + self.entries.iter().map(beside).sum::<usize>()
    }
}

fn read_entry(fields: &[(Told, Field)], cursor: &mut Cursor<'_>) -> Result<ManifestFile, Damage> {
    let (mut path, mut length, mut spec, mut snapshot) = (None, None, None, None);
    let mut entry = ManifestFile {
        manifest_path: String::new(),
        manifest_length: 0,
        partition_spec_id: 0,
        content: ManifestContentType::Data,
        sequence_number: 0,
        min_sequence_number: 0,
        added_snapshot_id: 0,
        added_files_count: None,
        existing_files_count: None,
        deleted_files_count: None,
        added_rows_count: None,
        existing_rows_count: None,
        deleted_rows_count: None,
        partitions: None,
        key_metadata: None,
        first_row_id: None,
    };
    for (told, field) in fields {
        let node = &field.node;
        let mut read = || -> Result<(), Damage> {
            match told {
                Told::Path => path = node.text(cursor)?.map(str::to_string),
                Told::Length => length = node.long(cursor)?,
                Told::Spec => spec = node.int(cursor)?,
                Told::Content => entry.content = content(node.int(cursor)?)?,
                Told::Sequence => entry.sequence_number = node.long(cursor)?.unwrap_or(0),
                Told::MinSequence => entry.min_sequence_number = node.long(cursor)?.unwrap_or(0),
                Told::Snapshot => snapshot = node.long(cursor)?,
                Told::AddedFiles => entry.added_files_count = count(node, cursor)?,
                Told::ExistingFiles => entry.existing_files_count = count(node, cursor)?,
                Told::DeletedFiles => entry.deleted_files_count = count(node, cursor)?,
                Told::AddedRows => entry.added_rows_count = rows(node, cursor)?,
                Told::ExistingRows => entry.existing_rows_count = rows(node, cursor)?,
                Told::DeletedRows => entry.deleted_rows_count = rows(node, cursor)?,
                Told::Partitions => entry.partitions = summaries(node, cursor)?,
                Told::Key => entry.key_metadata = node.bytes(cursor)?.map(<[u8]>::to_vec),
                Told::FirstRow => entry.first_row_id = rows(node, cursor)?,
                Told::Nothing => node.skip(cursor)?,
            }
            Ok(())
        };
        read().map_err(|damage| damage.of(&field.name))?;
    }
    entry.manifest_path = path.ok_or_else(|| Damage::missing("manifest_path"))?;
    entry.manifest_length = length.ok_or_else(|| Damage::missing("manifest_length"))?;
    entry.partition_spec_id = spec.ok_or_else(|| Damage::missing("partition_spec_id"))?;
    entry.added_snapshot_id = snapshot.ok_or_else(|| Damage::missing("added_snapshot_id"))?;
    Ok(entry)
}

fn content(value: Option<i32>) -> Result<ManifestContentType, Damage> {
    match value {
        None | Some(0) => Ok(ManifestContentType::Data),
        Some(1) => Ok(ManifestContentType::Deletes),
        Some(other) => Err(Damage::new(format!(
            "it is {other}, which is neither data (0) nor deletes (1)"
        ))),
    }
}

fn count(node: &Node, cursor: &mut Cursor<'_>) -> Result<Option<u32>, Damage> {
    let Some(value) = node.long(cursor)? else {
        return Ok(None);
    };
    u32::try_from(value)
        .map(Some)
        .map_err(|_| Damage::new(format!("a count is {value}")))
}

/// A number of rows; negative ones, which some writers put for unknown, are not told.
fn rows(node: &Node, cursor: &mut Cursor<'_>) -> Result<Option<u64>, Damage> {
    let value = node.long(cursor)?;
    Ok(value.and_then(|value| u64::try_from(value).ok()))
}

fn summaries(node: &Node, cursor: &mut Cursor<'_>) -> Result<Option<Vec<FieldSummary>>, Damage> {
    let mut summaries = Vec::new();
    let told = node.items(cursor, |item, cursor| {
        summaries.push(summary(item, cursor)?);
        Ok(())
    })?;
    Ok(told.then_some(summaries))
}

fn summary(item: &Node, cursor: &mut Cursor<'_>) -> Result<FieldSummary, Damage> {
    let mut summary = FieldSummary::default();
    let mut nulls = None;
    for field in item.record()? {
        let node = &field.node;
        match field.role(&SUMMARY_FIELDS) {
            Some(Summary::Null) => nulls = node.boolean(cursor)?,
            Some(Summary::Nan) => summary.contains_nan = node.boolean(cursor)?,
            Some(Summary::Lower) => summary.lower_bound = bytes(node, cursor)?,
            Some(Summary::Upper) => summary.upper_bound = bytes(node, cursor)?,
            None => node.skip(cursor)?,
        }
    }
    summary.contains_null = nulls.ok_or_else(|| Damage::missing("contains_null"))?;
    Ok(summary)
}

fn bytes(node: &Node, cursor: &mut Cursor<'_>) -> Result<Option<ByteBuf>, Damage> {
    Ok(node.bytes(cursor)?.map(ByteBuf::from))
}
