//! Which columns a scan reads, and the shape its batches have.
//! Batches of iceberg-rust carry a file's field metadata, or run-end encoded constants; here they get the declared schema.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{Schema as ArrowSchema, SchemaRef as ArrowSchemaRef};
use datafusion::arrow::compute::{CastOptions, cast_with_options};
use iceberg::arrow::schema_to_arrow_schema;
use iceberg::spec::{PrimitiveType, Schema, Type};

use crate::error::{Error, ErrorKind, Result};

/// The Arrow schema of every column of an Iceberg schema.
pub(crate) fn arrow_schema(schema: &Schema) -> Result<ArrowSchemaRef> {
    schema_to_arrow_schema(schema)
        .map(Arc::new)
        .map_err(|source| Error::read("can't express the table's schema in Arrow", source))
}

/// Columns of a scan: what is read from files, and its Arrow schema.
#[derive(Clone, Debug)]
pub(crate) struct Columns {
    /// Field ids to read, in the order of `schema`; never empty, since iceberg-rust reads every column then.
    field_ids: Vec<i32>,
    /// Schema of the batches read. When no column was asked for, a narrow one stands in for counting rows.
    schema: ArrowSchemaRef,
}

impl Columns {
    /// The columns at these positions of the table's schema. For no position, the narrowest column is read.
    pub(crate) fn at(
        table: &Schema,
        table_arrow: &ArrowSchemaRef,
        positions: &[usize],
    ) -> Result<Self> {
        let narrow = [narrowest(table)];
        let positions = if positions.is_empty() {
            &narrow[..]
        } else {
            positions
        };
        let fields = table.as_struct().fields();
        let field_ids = positions.iter().map(|&p| fields[p].id).collect();
        let schema = table_arrow.project(positions).map_err(|source| {
            Error::new(
                ErrorKind::Unexpected,
                "can't choose columns of the table's Arrow schema",
            )
            .with_source(source)
        })?;
        Ok(Self {
            field_ids,
            schema: Arc::new(schema),
        })
    }

    /// Field ids in the order of the schema.
    pub(crate) fn field_ids(&self) -> &[i32] {
        &self.field_ids
    }

    /// The schema of the batches that [`Columns::conform`] returns.
    pub(crate) fn schema(&self) -> &ArrowSchemaRef {
        &self.schema
    }

    /// The same rows under the declared schema.
    pub(crate) fn conform(
        &self,
        batch: RecordBatch,
    ) -> std::result::Result<RecordBatch, arrow_schema::ArrowError> {
        if batch.num_columns() != self.schema.fields().len() {
            return Err(arrow_schema::ArrowError::SchemaError(format!(
                "a batch has {} columns where {} were asked for",
                batch.num_columns(),
                self.schema.fields().len()
            )));
        }
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let strict = CastOptions {
            safe: false,
            ..CastOptions::default()
        };
        let columns = batch
            .columns()
            .iter()
            .zip(self.schema.fields())
            .map(|(column, field)| {
                if column.data_type() == field.data_type() {
                    Ok(column.clone())
                } else {
                    cast_with_options(column, field.data_type(), &strict)
                }
            })
            .collect::<std::result::Result<Vec<ArrayRef>, _>>()?;
        RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)
    }
}

/// Positions of the columns with these names, in the order asked for.
pub(crate) fn positions(schema: &ArrowSchema, names: &[String], table: &str) -> Result<Vec<usize>> {
    names
        .iter()
        .map(|name| position(schema, name, table))
        .collect()
}

fn position(schema: &ArrowSchema, name: &str, table: &str) -> Result<usize> {
    schema.index_of(name).map_err(|_| {
        let error = Error::new(
            ErrorKind::NotFound,
            format!("{table} has no column '{name}'"),
        );
        let similar = schema
            .fields()
            .iter()
            .find(|field| field.name().eq_ignore_ascii_case(name));
        match similar {
            Some(field) => error.with_hint(format!(
                "names are case-sensitive: it has '{}'",
                field.name()
            )),
            None => error.with_hint(format!("its columns are {}", known(schema))),
        }
    })
}

/// The first names of a schema, for an error.
fn known(schema: &ArrowSchema) -> String {
    const SHOWN: usize = 20;
    let names: Vec<&str> = schema
        .fields()
        .iter()
        .take(SHOWN)
        .map(|field| field.name().as_str())
        .collect();
    let rest = schema.fields().len().saturating_sub(SHOWN);
    match rest {
        0 => names.join(", "),
        rest => format!("{} and {rest} more", names.join(", ")),
    }
}

/// Position of the column that costs least to read, by its type.
fn narrowest(schema: &Schema) -> usize {
    schema
        .as_struct()
        .fields()
        .iter()
        .enumerate()
        .min_by_key(|(_, field)| width(&field.field_type))
        .map_or(0, |(position, _)| position)
}

/// Bytes of a value of this type, roughly; nested columns last.
fn width(field_type: &Type) -> u32 {
    match field_type {
        Type::Primitive(primitive) => match primitive {
            PrimitiveType::Boolean => 1,
            PrimitiveType::Int | PrimitiveType::Float | PrimitiveType::Date => 4,
            PrimitiveType::Long
            | PrimitiveType::Double
            | PrimitiveType::Time
            | PrimitiveType::Timestamp
            | PrimitiveType::Timestamptz
            | PrimitiveType::TimestampNs
            | PrimitiveType::TimestamptzNs => 8,
            PrimitiveType::Decimal { .. } | PrimitiveType::Uuid => 16,
            PrimitiveType::Fixed(_) | PrimitiveType::String | PrimitiveType::Binary => 32,
        },
        Type::Struct(_) | Type::List(_) | Type::Map(_) => 256,
    }
}
