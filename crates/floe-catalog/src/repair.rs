//! What iceberg-rust 0.10.1 loses or refuses when it reads table metadata, put right.
//!
//! - A transform that it doesn't know makes the whole metadata unreadable; the specification wants such a partition field to
//!   be ignored. It is read as [`Transform::Unknown`], which forgets its name: such metadata must not be written back.
//! - Branches and tags of a version 1 table are dropped.
//! - An initial default of a nanosecond timestamp reads as none, which would make missing values NULL. It is refused by name.

use std::str::FromStr;

use iceberg::spec::{FormatVersion, SnapshotReference, TableMetadata, Transform};
use serde_json::Value;

use crate::error::{Error, ErrorKind, Result};

/// The metadata with transforms that nobody knows as unknown ones; `None` if that is not what is wrong with it.
pub(crate) fn unknown_transforms(json: &[u8]) -> Option<TableMetadata> {
    let mut metadata: Value = serde_json::from_slice(json).ok()?;
    let mut found = 0;
    for list in ["partition-specs", "sort-orders"] {
        let specs = metadata.get_mut(list).and_then(Value::as_array_mut);
        for spec in specs.into_iter().flatten() {
            found += forget_unknown_of(spec.get_mut("fields"));
        }
    }
    found += forget_unknown_of(metadata.get_mut("partition-spec"));
    if found == 0 {
        return None;
    }
    serde_json::from_value(metadata).ok()
}

/// How many of these fields had a transform that nobody knows.
fn forget_unknown_of(fields: Option<&mut Value>) -> usize {
    let fields = fields.and_then(Value::as_array_mut);
    let forgotten = fields.into_iter().flatten().map(forget_unknown);
    forgotten.filter(|forgotten| *forgotten).count()
}

fn forget_unknown(field: &mut Value) -> bool {
    let Some(name) = field.get("transform").and_then(Value::as_str) else {
        return false;
    };
    if Transform::from_str(name).is_ok() {
        return false;
    }
    field["transform"] = Transform::Unknown.to_string().into();
    true
}

/// The metadata with what was lost on the way from its JSON.
pub(crate) fn lost(json: &[u8], metadata: TableMetadata) -> Result<TableMetadata> {
    let refs = metadata.format_version() == FormatVersion::V1;
    let defaults = holds(json, b"\"initial-default\"") && holds(json, b"_ns\"");
    if !(refs || defaults) {
        return Ok(metadata);
    }
    let unreadable = |source: serde_json::Error| {
        Error::new(ErrorKind::Corrupt, "the metadata file is not JSON").with_source(source)
    };
    let value: Value = serde_json::from_slice(json).map_err(unreadable)?;
    if defaults {
        refuse_lost_defaults(&value, &metadata)?;
    }
    match value.get("refs") {
        Some(Value::Object(named)) if refs => with_refs(metadata, named),
        _ => Ok(metadata),
    }
}

fn holds(json: &[u8], text: &[u8]) -> bool {
    json.windows(text.len()).any(|window| window == text)
}

fn with_refs(
    metadata: TableMetadata,
    named: &serde_json::Map<String, Value>,
) -> Result<TableMetadata> {
    let corrupt = |message: String| Error::new(ErrorKind::Corrupt, message);
    let updated = metadata.clone();
    let mut builder = metadata.into_builder(None);
    let mut added = false;
    for (name, reference) in named {
        if updated.snapshot_for_ref(name).is_some() {
            continue;
        }
        let reference: SnapshotReference =
            serde_json::from_value(reference.clone()).map_err(|source| {
                corrupt(format!("the metadata's ref '{name}' can't be read")).with_source(source)
            })?;
        builder = builder.set_ref(name, reference).map_err(|source| {
            corrupt(format!(
                "the metadata's ref '{name}' is wrong: {}",
                source.message()
            ))
        })?;
        added = true;
    }
    if !added {
        return Ok(updated);
    }
    let built = builder.build().map_err(|source| {
        corrupt(format!(
            "the metadata's refs are wrong: {}",
            source.message()
        ))
    })?;
    Ok(built.metadata)
}

fn refuse_lost_defaults(value: &Value, metadata: &TableMetadata) -> Result<()> {
    let schemas = value.get("schemas").and_then(Value::as_array);
    for schema in schemas.into_iter().flatten() {
        let id = schema.get("schema-id").and_then(Value::as_i64);
        let parsed = metadata
            .schemas_iter()
            .find(|parsed| Some(i64::from(parsed.schema_id())) == id);
        let Some(parsed) = parsed else { continue };
        for (field, kind) in defaulted(schema) {
            let kept = i32::try_from(field)
                .ok()
                .and_then(|id| parsed.field_by_id(id))
                .is_none_or(|field| field.initial_default.is_some());
            if !kept {
                return Err(Error::new(
                    ErrorKind::Unsupported,
                    format!(
                        "field {field} has an initial default of type {kind}, which can't be read yet"
                    ),
                ));
            }
        }
    }
    Ok(())
}

/// Ids and types of the fields with an initial default, at any depth.
fn defaulted(value: &Value) -> Vec<(i64, String)> {
    let mut found = Vec::new();
    match value {
        Value::Object(object) => {
            if let (Some(id), Some(default)) = (
                object.get("id").and_then(Value::as_i64),
                object.get("initial-default"),
            ) && !default.is_null()
            {
                let kind = object.get("type").map(Value::to_string);
                found.push((id, kind.unwrap_or_default()));
            }
            found.extend(object.values().flat_map(defaulted));
        }
        Value::Array(values) => found.extend(values.iter().flat_map(defaulted)),
        _ => {}
    }
    found
}
