//! Which snapshot and which schema a request means.
//! iceberg-rust scans with the snapshot's schema; main is read with the table's current one, so that a column
//! added after the last snapshot reads as NULL (or its initial default) rather than "not found".

use std::collections::BTreeMap;

use chrono::{DateTime, SecondsFormat, Utc};
use iceberg::Runtime;
use iceberg::spec::{SchemaRef, SnapshotRef, SnapshotReference, TableMetadata};
use iceberg::table::Table;

use crate::error::{Error, ErrorKind, Result};
use crate::request::At;

/// A state of a table, ready to be scanned.
#[derive(Clone, Debug)]
pub struct Position {
    table: Table,
    snapshot: Option<SnapshotRef>,
    schema: SchemaRef,
}

impl Position {
    /// Finds the snapshot and the schema that `at` means in this table.
    pub fn resolve(table: &Table, at: &At) -> Result<Self> {
        let metadata = table.metadata();
        let snapshot = match at {
            At::Main => return Self::main(table),
            At::Ref(name) if name == MAIN => return Self::main(table),
            At::Ref(name) => match metadata.snapshot_for_ref(name) {
                Some(snapshot) => snapshot.clone(),
                None => return Err(unknown_ref(table, name)?),
            },
            At::Snapshot(id) => match metadata.snapshot_by_id(*id) {
                Some(snapshot) => snapshot.clone(),
                None => return Err(unknown_snapshot(table, *id)),
            },
            At::Time(time) => at_time(table, *time)?,
        };
        let schema = snapshot.schema(metadata).map_err(|source| {
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
    fn main(table: &Table) -> Result<Self> {
        let schema = table.metadata().current_schema().clone();
        let Some(snapshot) = table.metadata().current_snapshot() else {
            return Ok(Self {
                table: table.clone(),
                snapshot: None,
                schema,
            });
        };
        if snapshot.schema_id() == Some(schema.schema_id()) || snapshot.schema_id().is_none() {
            return Ok(Self {
                table: table.clone(),
                snapshot: Some(snapshot.clone()),
                schema,
            });
        }
        let table = with_current_schema(table, snapshot.snapshot_id())?;
        let snapshot = table.metadata().current_snapshot().cloned();
        Ok(Self {
            table,
            snapshot,
            schema,
        })
    }

    /// The table that is scanned; of main, its tip carries the current schema.
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
    // iceberg-rust offers them by name only; its JSON form holds them all.
    let mut json = to_json(metadata)?;
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

/// The branch that a table is read from unless said otherwise.
const MAIN: &str = "main";

/// The same table whose snapshot `id` names the current schema as its own.
fn with_current_schema(table: &Table, id: i64) -> Result<Table> {
    let metadata = table.metadata();
    let mut json = to_json(metadata)?;
    let snapshots = json
        .get_mut("snapshots")
        .and_then(serde_json::Value::as_array_mut);
    for snapshot in snapshots.into_iter().flatten() {
        if snapshot
            .get("snapshot-id")
            .and_then(serde_json::Value::as_i64)
            == Some(id)
        {
            snapshot["schema-id"] = metadata.current_schema_id().into();
        }
    }
    let metadata: TableMetadata = serde_json::from_value(json).map_err(|source| {
        Error::new(
            ErrorKind::Unexpected,
            format!(
                "can't put the current schema on main of {}",
                table.identifier()
            ),
        )
        .with_source(source)
    })?;
    let mut builder = Table::builder()
        .file_io(table.file_io().clone())
        .identifier(table.identifier().clone())
        .readonly(true)
        .metadata(metadata)
        .runtime(runtime()?);
    if let Some(location) = table.metadata_location() {
        builder = builder.metadata_location(location);
    }
    builder
        .build()
        .map_err(|source| Error::read(format!("can't open {}", table.identifier()), source))
}

/// The runtime that the caller runs in, as iceberg wants it.
pub(crate) fn runtime() -> Result<Runtime> {
    Runtime::try_current().map_err(|source| {
        Error::new(
            ErrorKind::Invalid,
            "a scan must be started from within a tokio runtime",
        )
        .with_source(source)
    })
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

fn unknown_ref(table: &Table, name: &str) -> Result<Error> {
    let names: Vec<String> = refs(table.metadata())?.into_keys().collect();
    let known = if names.is_empty() {
        "it has none".to_string()
    } else {
        format!("it has {}", names.join(", "))
    };
    Ok(Error::new(
        ErrorKind::NotFound,
        format!(
            "{} has no branch or tag '{name}': {known}",
            table.identifier()
        ),
    ))
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
