//! Which delete files may delete rows of which data file.
//!
//! The rules are the specification's ("Scan Planning"): deletion vectors by the path they name; position deletes of the same
//! partition, not older than the file; equality deletes of the same partition or of an unpartitioned spec, younger than the file.
//! A delete file too many costs time; one too few gives wrong rows.

use std::collections::HashMap;
use std::sync::Arc;

use iceberg::spec::{DataContentType, DataFileFormat};

use super::context::{Context, Fields};
use super::equality::{EqualityDelete, Metered};
use super::specs::{PartitionKey, Spec};
use crate::error::{Error, ErrorKind, Result};
use crate::manifest::{End, Live};
use crate::task::{DeleteFile, DeleteKind};

/// The field id of a position delete's path column.
const FILE_PATH_ID: i32 = i32::MAX - 101;

/// The delete files of a snapshot, to be found by data file.
#[derive(Debug, Default)]
pub(super) struct DeleteIndex {
    vectors: HashMap<String, Vec<Arc<DeleteFile>>>,
    positions_of_path: HashMap<String, Sorted<Arc<DeleteFile>>>,
    positions: HashMap<PartitionKey, Sorted<PositionDelete>>,
    equality: HashMap<PartitionKey, Sorted<EqualityDelete>>,
    /// Equality deletes for every partition.
    global: Sorted<EqualityDelete>,
    /// Columns that equality deletes compare, of which metrics may tell them apart from a file.
    equality_columns: Fields,
    live: bool,
}

/// Deletes, or what is wrong with them: it names the files but not the table.
pub(super) type Found<T> = std::result::Result<T, String>;

/// What of a data file decides which deletes are its.
pub(super) struct DataSide<'a> {
    pub(super) path: &'a str,
    pub(super) sequence_number: i64,
    pub(super) partition: &'a PartitionKey,
    pub(super) metrics: &'a dyn Fn(&Fields) -> Metered,
}

/// Deletes in the order of their sequence numbers.
#[derive(Debug)]
struct Sorted<T>(Vec<(i64, T)>);

impl<T> Default for Sorted<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Sorted<T> {
    fn add(&mut self, sequence_number: i64, delete: T) {
        self.0.push((sequence_number, delete));
    }

    /// By sequence number, then by location, so that a plan does not depend on which manifest came first.
    fn sort(&mut self, file: impl Fn(&T) -> &DeleteFile) {
        self.0.sort_by(|(a, one), (b, other)| {
            a.cmp(b).then_with(|| file(one).path.cmp(&file(other).path))
        });
    }

    /// Those of at least this sequence number.
    fn since(&self, sequence_number: i64) -> impl Iterator<Item = &T> {
        let first = self.0.partition_point(|(own, _)| *own < sequence_number);
        self.0[first..].iter().map(|(_, delete)| delete)
    }
}

/// A position-delete file that does not name its one data file.
#[derive(Debug)]
struct PositionDelete {
    file: Arc<DeleteFile>,
    /// Bounds of the paths in it.
    lowest: Option<Vec<u8>>,
    highest: Option<Vec<u8>>,
}

impl PositionDelete {
    fn may_name(&self, path: &str) -> bool {
        let path = path.as_bytes();
        self.lowest.as_deref().is_none_or(|lowest| lowest <= path)
            && self
                .highest
                .as_deref()
                .is_none_or(|highest| path <= highest)
    }
}

/// Gathers delete files into an index.
pub(super) struct Gathering<'a> {
    context: &'a Context,
    index: DeleteIndex,
}

impl<'a> Gathering<'a> {
    pub(super) fn new(context: &'a Context) -> Self {
        Self {
            context,
            index: DeleteIndex::default(),
        }
    }

    /// Adds a delete file of a manifest, whose location errors name.
    pub(super) fn add(
        &mut self,
        live: Live<'_>,
        manifest: &str,
        spec: &Spec,
        partition: &PartitionKey,
    ) -> Result<()> {
        let wrong = |what: &str| {
            Error::new(
                ErrorKind::Corrupt,
                format!(
                    "can't plan the scan of {}: {}, a delete file of the manifest {manifest}, {what}",
                    self.context.table.identifier(),
                    live.path()
                ),
            )
        };
        let details = live
            .manifest
            .delete_details(live.entry)
            .cloned()
            .unwrap_or_default();
        let sequence = live.data_sequence_number;
        self.index.live = true;
        match (live.entry.content, live.entry.format) {
            (DataContentType::Data, _) => Err(wrong("is listed as a data file (content 0)")),
            (DataContentType::EqualityDeletes, _) => {
                let ids = details.equality_ids.filter(|ids| !ids.is_empty());
                let ids = ids.ok_or_else(|| wrong("has no equality_ids"))?;
                let columns = self.columns(&ids);
                let file = Arc::new(delete_file(live, DeleteKind::Equality(ids)));
                let delete = EqualityDelete::new(file, Metered::of(live, &columns), columns);
                let list = match spec.spec.is_unpartitioned() {
                    true => &mut self.index.global,
                    false => self.index.equality.entry(partition.clone()).or_default(),
                };
                list.add(sequence, delete);
                Ok(())
            }
            (DataContentType::PositionDeletes, DataFileFormat::Puffin) => {
                let path = details.referenced_data_file;
                let path = path.ok_or_else(|| wrong("has no referenced_data_file"))?;
                let number = |value: Option<i64>, name: &str| {
                    let value = value.and_then(|value| u64::try_from(value).ok());
                    value.ok_or_else(|| wrong(&format!("has no {name}")))
                };
                let kind = DeleteKind::Vector {
                    offset: number(details.content_offset, "content_offset")?,
                    length: number(details.content_size, "content_size_in_bytes")?,
                };
                let file = Arc::new(delete_file(live, kind));
                self.index.vectors.entry(path).or_default().push(file);
                Ok(())
            }
            (DataContentType::PositionDeletes, _) => {
                let file = Arc::new(delete_file(live, DeleteKind::Positions));
                let metrics = live.manifest.metrics();
                let lowest = metrics.bound(End::Lower, live.row, FILE_PATH_ID);
                let highest = metrics.bound(End::Upper, live.row, FILE_PATH_ID);
                // Bounds that are one and the same path are not truncated: both ends would differ.
                let only = lowest.filter(|_| lowest == highest);
                let only = only.and_then(|path| std::str::from_utf8(path).ok());
                if let Some(path) = details.referenced_data_file.as_deref().or(only) {
                    let list = self.index.positions_of_path.entry(path.to_string());
                    list.or_default().add(sequence, file);
                    return Ok(());
                }
                let delete = PositionDelete {
                    file,
                    lowest: lowest.map(<[u8]>::to_vec),
                    highest: highest.map(<[u8]>::to_vec),
                };
                let list = self.index.positions.entry(partition.clone());
                list.or_default().add(sequence, delete);
                Ok(())
            }
        }
    }

    fn columns(&self, ids: &[i32]) -> Fields {
        let kind = |id: &i32| Some((*id, self.context.kind_of(*id)?));
        let mut columns: Fields = ids.iter().filter_map(kind).collect();
        columns.sort_by_key(|(id, _)| *id);
        columns.dedup_by_key(|(id, _)| *id);
        columns
    }

    pub(super) fn finish(self) -> DeleteIndex {
        let mut index = self.index;
        index
            .positions_of_path
            .values_mut()
            .for_each(|list| list.sort(|file| file));
        index
            .positions
            .values_mut()
            .for_each(|list| list.sort(|delete| &delete.file));
        index
            .equality
            .values_mut()
            .for_each(|list| list.sort(|delete| &delete.file));
        index.global.sort(|delete| &delete.file);
        let lists = index.equality.values().chain([&index.global]);
        let deletes = lists.flat_map(|list| list.0.iter().map(|(_, delete)| delete));
        let mut columns: Fields = deletes
            .flat_map(|delete| delete.columns().iter().cloned())
            .collect();
        columns.sort_by_key(|(id, _)| *id);
        columns.dedup_by_key(|(id, _)| *id);
        index.equality_columns = columns;
        index
    }
}

fn delete_file(live: Live<'_>, kind: DeleteKind) -> DeleteFile {
    DeleteFile {
        path: live.path().to_string(),
        format: live.entry.format,
        bytes: live.entry.bytes,
        rows: live.entry.rows,
        kind,
        data_sequence_number: live.data_sequence_number,
        encrypted: live.entry.encrypted,
    }
}

impl DeleteIndex {
    /// Whether there is any delete file.
    pub(super) fn is_live(&self) -> bool {
        self.live
    }

    /// The files that may delete rows of this data file.
    ///
    /// # Errors
    /// Two deletion vectors for it, or one that is older than it is.
    pub(super) fn of(&self, data: &DataSide<'_>) -> Found<Vec<Arc<DeleteFile>>> {
        if !self.live {
            return Ok(Vec::new());
        }
        let mut deletes = Vec::new();
        self.add_equality(data, &mut deletes);
        // Position deletes apply to files without a vector: its writer merged those that there were, and none may be added
        // to a table that has vectors (specification, "Scan Planning").
        if let Some(vector) = self.vector(data)? {
            deletes.push(vector.clone());
            return Ok(deletes);
        }

        let since = data.sequence_number;
        let of_path = self.positions_of_path.get(data.path).into_iter();
        let of_path = of_path.flat_map(|list| list.since(since));
        let of_partition = self.positions.get(data.partition).into_iter();
        let of_partition = of_partition.flat_map(|list| list.since(since));
        let of_partition = of_partition.filter(|delete| delete.may_name(data.path));
        let positions = of_path.chain(of_partition.map(|delete| &delete.file));
        deletes.extend(positions.cloned());
        Ok(deletes)
    }

    fn add_equality(&self, data: &DataSide<'_>, deletes: &mut Vec<Arc<DeleteFile>>) {
        // Only younger ones: a row that is written together with its delete replaces the deleted one.
        let Some(since) = data.sequence_number.checked_add(1) else {
            return;
        };
        let of_partition = self.equality.get(data.partition).into_iter();
        let of_partition = of_partition.flat_map(|list| list.since(since));
        let mut candidates = self.global.since(since).chain(of_partition).peekable();
        if candidates.peek().is_none() {
            return;
        }
        let metrics = (data.metrics)(&self.equality_columns);
        let touching = candidates.filter(|delete| delete.may_touch(&metrics));
        deletes.extend(touching.map(|delete| delete.file.clone()));
    }

    fn vector(&self, data: &DataSide<'_>) -> Found<Option<&Arc<DeleteFile>>> {
        match self.vectors.get(data.path).map(Vec::as_slice) {
            None | Some([]) => Ok(None),
            Some([vector]) if vector.data_sequence_number >= data.sequence_number => {
                Ok(Some(vector))
            }
            Some([vector]) => Err(format!(
                "the deletion vector in {} is older (sequence number {}) than the data file {} that it is for ({})",
                vector.path, vector.data_sequence_number, data.path, data.sequence_number
            )),
            Some([one, other, ..]) => Err(format!(
                "the data file {} has several deletion vectors, in {} and {}",
                data.path, one.path, other.path
            )),
        }
    }
}
