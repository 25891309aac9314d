//! Columns by their names.

use std::sync::Arc;

use arrow_schema::SchemaRef as ArrowSchemaRef;
use iceberg::arrow::schema_to_arrow_schema;
use iceberg::metadata_columns;
use iceberg::spec::{NestedField, Schema};

use crate::error::{Error, ErrorKind, Result};
use crate::reading::{MetadataColumn, PartitionColumn};
use crate::snapshot::Position;

/// The Arrow schema of every column of an Iceberg schema.
///
/// # Errors
/// If a type has no counterpart in Arrow.
pub fn arrow_schema(schema: &Schema) -> Result<ArrowSchemaRef> {
    schema_to_arrow_schema(schema)
        .map(Arc::new)
        .map_err(|source| Error::read("can't express the table's schema in Arrow", source))
}

/// All columns of the table.
pub(crate) fn all(schema: &Schema) -> Vec<Chosen> {
    let fields = schema.as_struct().fields();
    fields.iter().map(|field| Chosen::Field(field.id)).collect()
}

/// A column that a scan hands out.
#[derive(Clone, Debug)]
pub(crate) enum Chosen {
    /// A column of the table, by its field id.
    Field(i32),
    /// A column that describes rows, such as `_file`.
    Metadata(MetadataColumn),
}

/// The columns with these names, in the order asked for. A column of the table goes before one of metadata of its name.
pub(crate) fn choose(position: &Position, names: &[String]) -> Result<Vec<Chosen>> {
    names.iter().map(|name| chosen(position, name)).collect()
}

fn chosen(position: &Position, name: &str) -> Result<Chosen> {
    let schema = position.schema();
    let fields = schema.as_struct().fields();
    if let Some(field) = fields.iter().find(|field| field.name == name) {
        return Ok(Chosen::Field(field.id));
    }
    if let Some(column) = metadata_column(position, name)? {
        return Ok(Chosen::Metadata(column));
    }
    let table = position.table().identifier();
    let error = Error::new(
        ErrorKind::NotFound,
        format!("{table} has no column '{name}'"),
    );
    let similar = fields
        .iter()
        .find(|field| field.name.eq_ignore_ascii_case(name));
    Err(match similar {
        Some(field) => {
            error.with_hint(format!("names are case-sensitive: it has '{}'", field.name))
        }
        None => error.with_hint(format!("its columns are {}", known(schema))),
    })
}

fn metadata_column(position: &Position, name: &str) -> Result<Option<MetadataColumn>> {
    if name == metadata_columns::RESERVED_COL_NAME_DELETED {
        return Ok(Some(MetadataColumn::Deleted));
    }
    if name != metadata_columns::RESERVED_COL_NAME_PARTITION {
        return Ok(described(name));
    }
    let metadata = position.table().metadata();
    let mut schemas = vec![position.schema().clone()];
    schemas.extend(metadata.schemas_iter().cloned());
    let specs = metadata.partition_specs_iter().map(AsRef::as_ref);
    let partition = PartitionColumn::new(&schemas, specs)?;
    Ok(Some(MetadataColumn::Partition(Arc::new(partition))))
}

/// Columns of metadata that are of a primitive type, which conditions may name.
const DESCRIBED: [MetadataColumn; 5] = [
    MetadataColumn::File,
    MetadataColumn::Position,
    MetadataColumn::SpecId,
    MetadataColumn::RowId,
    MetadataColumn::LastUpdated,
];

fn described(name: &str) -> Option<MetadataColumn> {
    DESCRIBED
        .into_iter()
        .find(|column| column.definition().name == name)
}

/// The column of metadata with this field id, if conditions may name it.
pub(crate) fn described_by_id(id: i32) -> Option<MetadataColumn> {
    DESCRIBED
        .into_iter()
        .find(|column| column.definition().id == id)
}

/// The same schema, and behind its columns those of metadata (`_file`, `_pos`, `_spec_id`, `_row_id`,
/// `_last_updated_sequence_number`) that it has no column of its own for: what a condition of a scan may name.
///
/// # Errors
/// If the schema can't be extended.
pub fn with_metadata_columns(schema: &Schema) -> Result<Schema> {
    let mut fields = schema.as_struct().fields().to_vec();
    for column in DESCRIBED {
        let field = column.definition();
        if fields.iter().all(|known| known.name != field.name) {
            let optional =
                NestedField::optional(field.id, &field.name, field.field_type.as_ref().clone());
            fields.push(Arc::new(optional));
        }
    }
    Schema::builder()
        .with_schema_id(schema.schema_id())
        .with_fields(fields)
        .build()
        .map_err(|source| Error::read("can't add metadata columns to a schema", source))
}

/// The first names of a schema, for an error.
fn known(schema: &Schema) -> String {
    const SHOWN: usize = 20;
    let fields = schema.as_struct().fields();
    let names: Vec<&str> = fields
        .iter()
        .take(SHOWN)
        .map(|field| field.name.as_str())
        .collect();
    match fields.len().saturating_sub(SHOWN) {
        0 => names.join(", "),
        rest => format!("{} and {rest} more", names.join(", ")),
    }
}
