//! Columns that no file need hold: of which file a row is, where in it, since when.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array, Int64Array, StringArray, StructArray, new_null_array};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_schema::{DataType, Field, FieldRef, Fields};
use iceberg::metadata_columns as columns;
use iceberg::spec::{Literal, NestedField, NestedFieldRef, PartitionSpec, Schema, SchemaRef, Type};
use parquet::arrow::PARQUET_FIELD_ID_META_KEY;

use super::constant;
use super::layout::Wanted;
use crate::error::{Error, ErrorKind, Result};
use crate::task::DataFile;

/// A column of metadata that goes out with the rows.
#[derive(Clone, Debug)]
pub enum MetadataColumn {
    /// `_file`: the location of the row's file.
    File,
    /// `_pos`: the row's position in its file, deleted rows counted.
    Position,
    /// `_deleted`: whether the row is deleted; with it, deleted rows go out too.
    Deleted,
    /// `_spec_id`: the partition spec of the row's file.
    SpecId,
    /// `_partition`: the partition of the row's file.
    Partition(Arc<PartitionColumn>),
    /// `_row_id`: the row's number in the table, for good; NULL in tables without row lineage.
    RowId,
    /// `_last_updated_sequence_number`: the commit that last changed the row; NULL in tables without row lineage.
    LastUpdated,
}

impl MetadataColumn {
    /// The column as Iceberg's specification reserves it.
    pub(crate) fn definition(&self) -> NestedFieldRef {
        match self {
            Self::File => columns::file_field().clone(),
            Self::Position => columns::pos_field().clone(),
            Self::Deleted => columns::deleted_field().clone(),
            Self::SpecId => columns::spec_id_field().clone(),
            Self::Partition(partition) => columns::partition_field(partition.kinds.clone()),
            Self::RowId => columns::row_id_field().clone(),
            Self::LastUpdated => columns::last_updated_sequence_number_field().clone(),
        }
    }

    /// The column in the batches' schema.
    pub fn field(&self) -> FieldRef {
        let definition = self.definition();
        let kind = match self {
            Self::File => DataType::Utf8,
            Self::Position | Self::RowId | Self::LastUpdated => DataType::Int64,
            Self::Deleted => DataType::Boolean,
            Self::SpecId => DataType::Int32,
            Self::Partition(partition) => DataType::Struct(partition.fields.clone()),
        };
        // Lineage is unknown of tables that never had it; the partition of an unpartitioned spec has no values.
        let nullable = matches!(self, Self::RowId | Self::LastUpdated);
        let id = definition.id.to_string();
        let field = Field::new(&definition.name, kind, nullable);
        Arc::new(field.with_metadata(HashMap::from([(PARQUET_FIELD_ID_META_KEY.into(), id)])))
    }

    /// The field that a file may hold itself.
    pub(super) fn stored(&self) -> Option<Wanted> {
        let definition = match self {
            Self::RowId | Self::LastUpdated => self.definition(),
            _ => return None,
        };
        let field = NestedField::optional(
            definition.id,
            &definition.name,
            definition.field_type.as_ref().clone(),
        );
        Some(Wanted {
            field: Arc::new(field),
            arrow: DataType::Int64,
        })
    }

    /// Whether it needs the rows' positions.
    pub(super) fn needs_positions(&self) -> bool {
        matches!(self, Self::Position | Self::RowId)
    }
}

/// Rows that go out, and what metadata columns are made of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Described<'a> {
    pub(super) file: &'a DataFile,
    pub(super) rows: usize,
    /// Positions in the file; empty if no column needs them.
    pub(super) positions: &'a [i64],
    /// Which rows are deleted; `None` if none is.
    pub(super) deleted: Option<&'a BooleanBuffer>,
}

impl MetadataColumn {
    /// The column of these rows. `stored`: what the file itself holds of it.
    pub(super) fn column(&self, of: Described<'_>, stored: Option<&ArrayRef>) -> Result<ArrayRef> {
        let file = of.file;
        Ok(match self {
            Self::File => Arc::new(StringArray::new_repeated(&file.path, of.rows)),
            Self::Position => Arc::new(Int64Array::from(of.positions.to_vec())),
            Self::Deleted => {
                let deleted = of.deleted.cloned();
                let deleted = deleted.unwrap_or_else(|| BooleanBuffer::new_unset(of.rows));
                Arc::new(arrow_array::BooleanArray::new(deleted, None))
            }
            Self::SpecId => Arc::new(Int32Array::from_value(file.spec_id, of.rows)),
            Self::Partition(partition) => partition.column(file, of.rows)?,
            Self::RowId => {
                let first = file.first_row_id;
                let inherited = first.map(|first| of.positions.iter().map(|p| first + p).collect());
                lineage(inherited, stored, of.rows)
            }
            Self::LastUpdated => {
                let inherited = file.first_row_id.and(file.file_sequence_number);
                let inherited = inherited.map(|number| vec![number; of.rows]);
                lineage(inherited, stored, of.rows)
            }
        })
    }
}

/// What the file holds, where it holds something; else what is inherited.
fn lineage(inherited: Option<Vec<i64>>, stored: Option<&ArrayRef>, rows: usize) -> ArrayRef {
    use arrow_array::cast::AsArray;
    use arrow_array::types::Int64Type;
    let stored = stored.and_then(|stored| stored.as_primitive_opt::<Int64Type>());
    match (inherited, stored) {
        (None, None) => new_null_array(&DataType::Int64, rows),
        (None, Some(stored)) => Arc::new(stored.clone()),
        (Some(inherited), None) => Arc::new(Int64Array::from(inherited)),
        (Some(inherited), Some(stored)) => {
            let pairs = stored.iter().zip(inherited);
            let values = pairs.map(|(stored, inherited)| stored.unwrap_or(inherited));
            Arc::new(values.collect::<Int64Array>())
        }
    }
}

/// The type of `_partition`: the fields of all specs of a table, by field id.
#[derive(Debug)]
pub struct PartitionColumn {
    kinds: Vec<NestedFieldRef>,
    fields: Fields,
    /// By spec, where the value of each field stands in a partition of it.
    places: HashMap<i32, Vec<Option<usize>>>,
}

impl PartitionColumn {
    /// The unified partition of these specs. `schemas`: where to look for source columns, the current one first.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] for a partition field whose type can't be told.
    pub fn new<'a>(
        schemas: &[SchemaRef],
        specs: impl IntoIterator<Item = &'a PartitionSpec>,
    ) -> Result<Self> {
        let specs: Vec<_> = specs.into_iter().collect();
        let mut kinds: Vec<NestedFieldRef> = Vec::new();
        // The newest spec names a field.
        let mut newest = specs.clone();
        newest.sort_by_key(|spec| std::cmp::Reverse(spec.spec_id()));
        for field in newest.iter().flat_map(|spec| spec.fields()) {
            if kinds.iter().any(|known| known.id == field.field_id) {
                continue;
            }
            let source = schemas.iter().find_map(|s| source_of(s, field.source_id));
            let kind = source.and_then(|kind| field.transform.result_type(kind).ok());
            let kind = kind.ok_or_else(|| {
                Error::new(
                    ErrorKind::Unsupported,
                    format!(
                        "can't tell the type of the partition field '{}'",
                        field.name
                    ),
                )
            })?;
            let kind = NestedField::optional(field.field_id, &field.name, kind);
            kinds.push(Arc::new(kind));
        }
        kinds.sort_by_key(|kind| kind.id);
        let fields = kinds
            .iter()
            .map(|kind| {
                let arrow = iceberg::arrow::type_to_arrow_type(&kind.field_type)
                    .map_err(|source| Error::read("can't express a partition in Arrow", source))?;
                let id = (PARQUET_FIELD_ID_META_KEY.to_owned(), kind.id.to_string());
                Ok(Field::new(&kind.name, arrow, true).with_metadata(HashMap::from([id])))
            })
            .collect::<Result<Vec<_>>>()?;
        let place = |spec: &PartitionSpec| {
            let position = |kind: &NestedFieldRef| {
                let mut fields = spec.fields().iter();
                fields.position(|field| field.field_id == kind.id)
            };
            (spec.spec_id(), kinds.iter().map(position).collect())
        };
        let places = specs.iter().map(|spec| place(spec)).collect();
        Ok(Self {
            fields: fields.into(),
            kinds,
            places,
        })
    }

    fn column(&self, file: &DataFile, rows: usize) -> Result<ArrayRef> {
        let places = self.places.get(&file.spec_id).ok_or_else(|| {
            Error::new(
                ErrorKind::Corrupt,
                format!(
                    "{} is of partition spec {}, which the table doesn't have",
                    file.path, file.spec_id
                ),
            )
        })?;
        let values = file.partition.fields();
        let columns = self
            .kinds
            .iter()
            .zip(&self.fields)
            .zip(places)
            .map(|((kind, field), place)| {
                let value: Option<&Literal> = place
                    .and_then(|place| values.get(place))
                    .and_then(Option::as_ref);
                constant::repeat(value, &kind.field_type, field.data_type(), rows).ok_or_else(
                    || {
                        Error::new(
                            ErrorKind::Corrupt,
                            format!(
                                "the partition value {value:?} of {} is none of type {}",
                                file.path, kind.field_type
                            ),
                        )
                    },
                )
            })
            .collect::<Result<Vec<_>>>()?;
        let nulls = None::<NullBuffer>;
        Ok(Arc::new(match columns.is_empty() {
            true => StructArray::new_empty_fields(rows, nulls),
            false => StructArray::new(self.fields.clone(), columns, nulls),
        }))
    }
}

fn source_of(schema: &Schema, id: i32) -> Option<&Type> {
    schema
        .field_by_id(id)
        .map(|field| field.field_type.as_ref())
}
