//! Columns of metadata tables by their Iceberg types, and those in Arrow.

use std::collections::HashMap;

use arrow_schema::{DataType, Field, Schema};
use iceberg::arrow::type_to_arrow_type;
use iceberg::spec::{ListType, MapType, NestedField, PrimitiveType, Type};
use parquet::arrow::PARQUET_FIELD_ID_META_KEY;

use crate::error::{Error, Result};

pub(super) fn required(id: i32, name: &str, kind: impl Into<Type>) -> NestedField {
    NestedField::required(id, name, kind.into())
}

pub(super) fn optional(id: i32, name: &str, kind: impl Into<Type>) -> NestedField {
    NestedField::optional(id, name, kind.into())
}

/// A list whose items are never NULL.
pub(super) fn list(item_id: i32, item: impl Into<Type>) -> Type {
    let item = NestedField::list_element(item_id, item.into(), true);
    Type::List(ListType::new(item.into()))
}

/// A map whose values are never NULL.
pub(super) fn map(key_id: i32, key: PrimitiveType, value_id: i32, value: PrimitiveType) -> Type {
    Type::Map(MapType::required(
        key_id,
        key.into(),
        value_id,
        value.into(),
    ))
}

/// The Arrow schema of these columns, with their field ids.
pub(super) fn schema(columns: &[NestedField]) -> Result<Schema> {
    let fields = columns.iter().map(field).collect::<Result<Vec<_>>>()?;
    Ok(Schema::new(fields))
}

/// The Arrow field of a column, with its field id.
pub(super) fn field(column: &NestedField) -> Result<Field> {
    let kind = type_to_arrow_type(&column.field_type)
        .map_err(|source| Error::read("can't express a table's metadata in Arrow", source))?;
    Ok(with_id(
        Field::new(&column.name, kind, !column.required),
        column.id,
    ))
}

/// A field of this id.
pub(super) fn with_id(field: Field, id: i32) -> Field {
    let id = (PARQUET_FIELD_ID_META_KEY.to_owned(), id.to_string());
    field.with_metadata(HashMap::from([id]))
}

/// How values of a table's column are shown.
///
/// Those of `fixed` are binary, as in Spark: bounds of it may be cut.
pub(super) fn shown(kind: &PrimitiveType) -> Result<DataType> {
    match kind {
        PrimitiveType::Fixed(_) => Ok(DataType::LargeBinary),
        other => type_to_arrow_type(&Type::Primitive(other.clone()))
            .map_err(|source| Error::read("can't express a table's metadata in Arrow", source)),
    }
}
