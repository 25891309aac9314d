//! Which snapshot and which schema a request means.
//! Main and other branches are read with the table's current schema, so that a column added after the last snapshot reads as
//! NULL (or its initial default) rather than "not found"; tags, snapshots and times with the snapshot's. So does Spark.

use std::collections::BTreeMap;
use std::fmt;

use chrono::{DateTime, SecondsFormat, Utc};
use iceberg::spec::{
    FormatVersion, SchemaRef, SnapshotRef, SnapshotReference, SortOrder, TableMetadata,
    TableMetadataBuilder, UnboundPartitionSpec,
};
use iceberg::table::Table;

use crate::error::{Error, ErrorKind, Result};
use crate::request::At;

/// A state of a table, ready to be scanned.
#[derive(Clone)]
pub struct Position {
    table: Table,
    snapshot: Option<SnapshotRef>,
    schema: SchemaRef,
}

/// Without the table's access to files: it may hold secrets.
impl fmt::Debug for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let snapshot = self
            .snapshot
            .as_ref()
            .map(|snapshot| snapshot.snapshot_id());
        f.debug_struct("Position")
            .field("table", self.table.identifier())
            .field("snapshot", &snapshot)
            .finish_non_exhaustive()
    }
}

impl Position {
    /// Finds the snapshot and the schema that `at` means in this table.
    pub fn resolve(table: &Table, at: &At) -> Result<Self> {
        let metadata = table.metadata();
        let snapshot = match at {
            At::Main => return Ok(Self::main(table)),
            At::Ref(name) if name == MAIN => return Ok(Self::main(table)),
            At::Ref(name) => return Self::at_ref(table, name),
            At::Snapshot(id) => match metadata.snapshot_by_id(*id) {
                Some(snapshot) => snapshot.clone(),
                None => return Err(unknown_snapshot(table, *id)),
            },
            At::Time(time) => at_time(table, *time)?,
        };
        Self::with_its_schema(table, snapshot)
    }

    /// A branch is written on, with the table's current schema; a tag stays what it was.
    fn at_ref(table: &Table, name: &str) -> Result<Self> {
        let refs = refs(table.metadata())?;
        let Some(found) = refs.get(name) else {
            return Err(unknown_ref(table, name, &refs));
        };
        let Some(snapshot) = table.metadata().snapshot_by_id(found.snapshot_id) else {
            return Err(unknown_snapshot(table, found.snapshot_id));
        };
        match found.is_branch() {
            true => Ok(Self {
                table: table.clone(),
                snapshot: Some(snapshot.clone()),
                schema: table.metadata().current_schema().clone(),
            }),
            false => Self::with_its_schema(table, snapshot.clone()),
        }
    }

    fn with_its_schema(table: &Table, snapshot: SnapshotRef) -> Result<Self> {
        let schema = snapshot.schema(table.metadata()).map_err(|source| {
            Error::read(
                format!(
                    "can't find the schema of snapshot {} of {}",
                    snapshot.snapshot_id(),
                    table.identifier()
                ),
                source,
            )
        })?;
        Ok(Self {
            table: table.clone(),
            snapshot: Some(snapshot),
            schema,
        })
    }

    /// The tip of main under the table's current schema.
    fn main(table: &Table) -> Self {
        Self {
            table: table.clone(),
            snapshot: table.metadata().current_snapshot().cloned(),
            schema: table.metadata().current_schema().clone(),
        }
    }

    /// The table that is scanned.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// The snapshot, or `None` for a table that never had one: it has no rows.
    pub fn snapshot(&self) -> Option<&SnapshotRef> {
        self.snapshot.as_ref()
    }

    /// The schema that rows are read with.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }
}

/// Branches and tags of a table by name.
pub fn refs(metadata: &TableMetadata) -> Result<BTreeMap<String, SnapshotReference>> {
    // iceberg-rust offers them by name only; its JSON form holds them all, unless it is of version 1.
    let mut json = match metadata.format_version() {
        FormatVersion::V1 => to_json(&as_version_2(metadata)?)?,
        _ => to_json(metadata)?,
    };
    let mut refs: BTreeMap<String, SnapshotReference> =
        match json.get_mut("refs").map(serde_json::Value::take) {
            None | Some(serde_json::Value::Null) => BTreeMap::new(),
            Some(refs) => serde_json::from_value(refs).map_err(|source| {
                Error::new(
                    ErrorKind::Unexpected,
                    "can't read the refs of a table's metadata",
                )
                .with_source(source)
            })?,
        };
    // Version 1 metadata has no refs; its current snapshot is the tip of main.
    if let (false, Some(tip)) = (refs.contains_key(MAIN), metadata.snapshot_for_ref(MAIN)) {
        let retention = iceberg::spec::SnapshotRetention::branch(None, None, None);
        refs.insert(
            MAIN.to_string(),
            SnapshotReference::new(tip.snapshot_id(), retention),
        );
    }
    Ok(refs)
}

/// Ids of the snapshots that led to the tip of main, oldest first, as far back as they are retained.
pub fn line_of_main(metadata: &TableMetadata) -> Vec<i64> {
    let parent = |snapshot: &&SnapshotRef| {
        snapshot
            .parent_snapshot_id()
            .and_then(|id| metadata.snapshot_by_id(id))
    };
    let mut line: Vec<i64> = std::iter::successors(metadata.current_snapshot(), parent)
        // Damaged metadata may name a snapshot as its own ancestor; the line can't be longer than all of them.
        .take(metadata.snapshots().len())
        .map(|snapshot| snapshot.snapshot_id())
        .collect();
    line.reverse();
    line
}

/// What stands for the sort order that was added last.
const LAST_ADDED: i64 = TableMetadataBuilder::LAST_ADDED as i64;

/// The branch that a table is read from unless said otherwise.
const MAIN: &str = "main";

/// The same refs; neither spec nor order, which a builder would judge by rules that the table need not keep: dropped
/// partition fields of version 1 may have a column's name.
fn as_version_2(metadata: &TableMetadata) -> Result<TableMetadata> {
    let builder = metadata.clone().into_builder(None);
    let upgraded = builder
        .upgrade_format_version(FormatVersion::V2)
        .and_then(|builder| {
            builder.add_default_partition_spec(UnboundPartitionSpec::builder().build())
        })
        .and_then(|builder| builder.add_sort_order(SortOrder::unsorted_order()))
        .and_then(|builder| builder.set_default_sort_order(LAST_ADDED))
        .and_then(|builder| builder.build());
    upgraded
        .map(|built| built.metadata)
        .map_err(|source| Error::read("can't read the refs of a table's metadata", source))
}

fn to_json(metadata: &TableMetadata) -> Result<serde_json::Value> {
    serde_json::to_value(metadata).map_err(|source| {
        Error::new(
            ErrorKind::Unexpected,
            "can't write a table's metadata as JSON",
        )
        .with_source(source)
    })
}

/// What main pointed to at `time`: the last entry of its log that is not later.
fn at_time(table: &Table, time: DateTime<Utc>) -> Result<SnapshotRef> {
    let metadata = table.metadata();
    let millis = time.timestamp_millis();
    let entry = metadata
        .history()
        .iter()
        .rfind(|entry| entry.timestamp_ms <= millis);
    let Some(entry) = entry else {
        let found = match metadata.history().first() {
            Some(first) => format!(
                "the snapshot log of main begins at {}",
                show_time(first.timestamp_ms)
            ),
            None => "main has no snapshot log".to_string(),
        };
        let message = format!(
            "{} has no state as of {}: {found}",
            table.identifier(),
            show_time(millis)
        );
        return Err(Error::new(ErrorKind::NotFound, message).with_hint("ask for a later time"));
    };
    metadata
        .snapshot_by_id(entry.snapshot_id)
        .cloned()
        .ok_or_else(|| {
            Error::new(
                ErrorKind::NotFound,
                format!(
                    "main of {} pointed to snapshot {} as of {}, which has been expired since",
                    table.identifier(),
                    entry.snapshot_id,
                    show_time(millis)
                ),
            )
            .with_hint("ask for a later time")
        })
}

fn unknown_ref(table: &Table, name: &str, refs: &BTreeMap<String, SnapshotReference>) -> Error {
    let names: Vec<&str> = refs.keys().map(String::as_str).collect();
    let known = if names.is_empty() {
        "it has none".to_string()
    } else {
        format!("it has {}", names.join(", "))
    };
    Error::new(
        ErrorKind::NotFound,
        format!(
            "{} has no branch or tag '{name}': {known}",
            table.identifier()
        ),
    )
}

fn unknown_snapshot(table: &Table, id: i64) -> Error {
    let mut snapshots: Vec<_> = table.metadata().snapshots().collect();
    snapshots.sort_by_key(|snapshot| std::cmp::Reverse(snapshot.timestamp_ms()));
    let known: Vec<String> = snapshots
        .iter()
        .take(SHOWN)
        .map(|s| s.snapshot_id().to_string())
        .collect();
    let known = match (known.is_empty(), snapshots.len() > SHOWN) {
        (true, _) => "it has none".to_string(),
        (false, true) => format!("its latest are {}", known.join(", ")),
        (false, false) => format!("it has {}", known.join(", ")),
    };
    Error::new(
        ErrorKind::NotFound,
        format!("{} has no snapshot {id}: {known}", table.identifier()),
    )
}

/// Snapshots that an error names at most.
const SHOWN: usize = 5;

fn show_time(millis: i64) -> String {
    DateTime::from_timestamp_millis(millis).map_or_else(
        || format!("{millis} ms"),
        |time| time.to_rfc3339_opts(SecondsFormat::Millis, true),
    )
}
