//! The manifests of a state, by its manifest list.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, Int32Array, Int64Array, RecordBatch, StringArray, StructArray,
};
use arrow_schema::{DataType, Fields, SchemaRef};
use iceberg::spec::{
    ByteBuf, FieldSummary, ManifestContentType, ManifestFile, ManifestStatus, NestedField,
    PrimitiveType, StructType, TableMetadata, Transform, Type,
};

use super::column::{list, optional, required};
use super::source::Source;
use super::{batch, human, unbuilt, values};
use crate::error::{Error, ErrorKind, Result};
use crate::manifest::manifest_of;

pub(super) fn fields() -> [NestedField; 12] {
    use PrimitiveType as Of;
    let summary = StructType::new(vec![
        required(10, "contains_null", Of::Boolean).into(),
        optional(11, "contains_nan", Of::Boolean).into(),
        optional(12, "lower_bound", Of::String).into(),
        optional(13, "upper_bound", Of::String).into(),
    ]);
    [
        required(14, "content", Of::Int),
        required(1, "path", Of::String),
        required(2, "length", Of::Long),
        required(3, "partition_spec_id", Of::Int),
        required(4, "added_snapshot_id", Of::Long),
        required(5, "added_data_files_count", Of::Int),
        required(6, "existing_data_files_count", Of::Int),
        required(7, "deleted_data_files_count", Of::Int),
        required(15, "added_delete_files_count", Of::Int),
        required(16, "existing_delete_files_count", Of::Int),
        required(17, "deleted_delete_files_count", Of::Int),
        required(8, "partition_summaries", list(9, Type::Struct(summary))),
    ]
}

/// Every manifest in one batch.
pub(super) async fn rows(source: &Source, schema: &SchemaRef) -> Result<RecordBatch> {
    let found = source.list().await?;
    let manifests = found.as_ref().map_or(&[][..], |list| &list.entries[..]);
    let mut counted = Vec::with_capacity(manifests.len());
    for manifest in manifests {
        counted.push(counts(source, manifest).await?);
    }
    let each = || manifests.iter();
    let contents = each().map(|manifest| match manifest.content {
        ManifestContentType::Data => 0,
        ManifestContentType::Deletes => 1,
    });
    let of = |content: ManifestContentType, place: usize| {
        let numbers = each().zip(&counted);
        let numbers = numbers.map(|(manifest, counts)| match manifest.content == content {
            true => counts[place],
            false => 0,
        });
        Arc::new(Int32Array::from_iter_values(numbers)) as ArrayRef
    };
    let (data, deletes) = (ManifestContentType::Data, ManifestContentType::Deletes);
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int32Array::from_iter_values(contents)),
        Arc::new(StringArray::from_iter_values(
            each().map(|manifest| &manifest.manifest_path),
        )),
        Arc::new(Int64Array::from_iter_values(
            each().map(|manifest| manifest.manifest_length),
        )),
        Arc::new(Int32Array::from_iter_values(
            each().map(|manifest| manifest.partition_spec_id),
        )),
        Arc::new(Int64Array::from_iter_values(
            each().map(|manifest| manifest.added_snapshot_id),
        )),
        of(data, 0),
        of(data, 1),
        of(data, 2),
        of(deletes, 0),
        of(deletes, 1),
        of(deletes, 2),
        summaries(source.metadata(), manifests, schema)?,
    ];
    batch(schema, columns, manifests.len())
}

/// How many entries of a manifest are added, existing, deleted: as the list tells it, or else as the manifest has it.
/// Lists of version 1 need not tell.
pub(super) async fn counts(source: &Source, listed: &ManifestFile) -> Result<[i32; 3]> {
    if let Some(told) = told_counts(listed) {
        return told.map_err(|count| {
            let what = manifest_of(source.table(), listed);
            let message = format!("can't show {what}: its list counts {count} files in it");
            Error::new(ErrorKind::Corrupt, message)
        });
    }
    let mut counts = [0i32; 3];
    for entry in source.manifest(listed).await?.entries() {
        let place = match entry.status {
            ManifestStatus::Added => 0,
            ManifestStatus::Existing => 1,
            ManifestStatus::Deleted => 2,
        };
        counts[place] = counts[place].saturating_add(1);
    }
    Ok(counts)
}

/// What the list tells, if it tells all; the error is a count that no column holds.
fn told_counts(listed: &ManifestFile) -> Option<std::result::Result<[i32; 3], u32>> {
    let narrow = |count: u32| i32::try_from(count).map_err(|_| count);
    let added = listed.added_files_count?;
    let existing = listed.existing_files_count?;
    let deleted = listed.deleted_files_count?;
    let all = || Ok([narrow(added)?, narrow(existing)?, narrow(deleted)?]);
    Some(all())
}

/// A list of summaries for each manifest, empty where none are told.
fn summaries(
    metadata: &TableMetadata,
    manifests: &[ManifestFile],
    schema: &SchemaRef,
) -> Result<ArrayRef> {
    let mut specs: HashMap<i32, SpecFields> = HashMap::new();
    let (mut lengths, mut all) = (Vec::with_capacity(manifests.len()), Vec::new());
    for manifest in manifests {
        let spec_id = manifest.partition_spec_id;
        let fields = specs
            .entry(spec_id)
            .or_insert_with(|| SpecFields::of(metadata, spec_id));
        let told = manifest.partitions.as_deref().unwrap_or_default();
        lengths.push(Some(told.len()));
        let shown = told.iter().enumerate();
        all.extend(shown.map(|(place, summary)| Shown::of(summary, fields, place)));
    }
    let kind = schema.field(11).data_type();
    values::list(kind, &lengths, structs(kind, &all)?)
}

/// The fields of a spec: how each makes its values, and of which type they are, where that is known.
struct SpecFields(Vec<Option<(Transform, PrimitiveType)>>);

impl SpecFields {
    fn of(metadata: &TableMetadata, spec_id: i32) -> Self {
        let Some(spec) = metadata.partition_spec_by_id(spec_id) else {
            return Self(Vec::new());
        };
        let fields = spec.fields().iter().map(|field| {
            let source = source_type(metadata, field.source_id)?;
            let kind = field.transform.result_type(source).ok()?;
            Some((field.transform, kind.as_primitive_type()?.clone()))
        });
        Self(fields.collect())
    }
}

/// The type of a column: the current one, or of a column that is gone the last one.
fn source_type(metadata: &TableMetadata, id: i32) -> Option<&Type> {
    let current = metadata.current_schema().field_by_id(id);
    let last = || {
        let schemas = metadata.schemas_iter();
        let fields =
            schemas.filter_map(|schema| Some((schema.schema_id(), schema.field_by_id(id)?)));
        fields.max_by_key(|(schema, _)| *schema)
    };
    let field = current.or_else(|| last().map(|(_, field)| field))?;
    Some(&field.field_type)
}

/// A summary as it is shown.
struct Shown {
    nulls: bool,
    nans: Option<bool>,
    lower: Option<String>,
    upper: Option<String>,
}

impl Shown {
    fn of(summary: &FieldSummary, fields: &SpecFields, place: usize) -> Self {
        let text = |bytes: &Option<ByteBuf>| {
            let (transform, kind) = fields.0.get(place)?.as_ref()?;
            human::bound(*transform, kind, bytes.as_ref()?)
        };
        Self {
            nulls: summary.contains_null,
            nans: summary.contains_nan,
            lower: text(&summary.lower_bound),
            upper: text(&summary.upper_bound),
        }
    }
}

fn structs(list: &DataType, all: &[Shown]) -> Result<ArrayRef> {
    let fields = match list {
        DataType::List(item) => match item.data_type() {
            DataType::Struct(fields) => fields.clone(),
            _ => Fields::default(),
        },
        _ => Fields::default(),
    };
    let nulls = all.iter().map(|shown| Some(shown.nulls));
    let nans = all.iter().map(|shown| shown.nans);
    let lower = all.iter().map(|shown| shown.lower.as_deref());
    let upper = all.iter().map(|shown| shown.upper.as_deref());
    let columns: Vec<ArrayRef> = vec![
        Arc::new(nulls.collect::<BooleanArray>()),
        Arc::new(nans.collect::<BooleanArray>()),
        Arc::new(lower.collect::<StringArray>()),
        Arc::new(upper.collect::<StringArray>()),
    ];
    let array = StructArray::try_new(fields, columns, None).map_err(unbuilt)?;
    Ok(Arc::new(array))
}
