//! What manifests tell of a file's columns, in readable form: a struct for each primitive column, by its full name.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, StructArray, new_null_array};
use arrow_schema::{DataType, Field, Fields};
use iceberg::spec::{PrimitiveType, Schema};

use super::column::shown;
use super::{unbuilt, values};
use crate::error::Result;
use crate::manifest::{Count, End, MetricColumns};
use crate::predicate::read_bound;

/// The name of the column.
const NAME: &str = "readable_metrics";

const COUNTS: [(&str, Count); 4] = [
    ("column_size", Count::Sizes),
    ("value_count", Count::Values),
    ("null_value_count", Count::Nulls),
    ("nan_value_count", Count::Nans),
];

const BOUNDS: [(&str, End); 2] = [("lower_bound", End::Lower), ("upper_bound", End::Upper)];

/// The column `readable_metrics` of a table.
#[derive(Debug, Default)]
pub(super) struct ReadableMetrics {
    /// By name.
    columns: Vec<Described>,
    fields: Fields,
}

/// A primitive column.
#[derive(Debug)]
struct Described {
    id: i32,
    kind: PrimitiveType,
    /// Of its struct; those of one type share them.
    parts: Fields,
}

impl ReadableMetrics {
    /// Of the primitive columns of a schema, nested ones too.
    ///
    /// # Errors
    /// A type that Arrow can't express.
    pub(super) fn of(schema: &Schema) -> Result<Self> {
        let mut known: HashMap<DataType, Fields> = HashMap::new();
        let mut columns = Vec::new();
        for (id, name) in schema.field_id_to_name_map() {
            let field = schema.field_by_id(*id);
            let Some(kind) = field.and_then(|field| field.field_type.as_primitive_type()) else {
                continue;
            };
            let arrow = shown(kind)?;
            let parts = known.entry(arrow.clone()).or_insert_with(|| parts(&arrow));
            let described = Described {
                id: *id,
                kind: kind.clone(),
                parts: parts.clone(),
            };
            columns.push((name.as_str(), described));
        }
        columns.sort_by_key(|(name, _)| *name);
        let field = |(name, column): &(&str, Described)| {
            Field::new(*name, DataType::Struct(column.parts.clone()), true)
        };
        let fields = columns.iter().map(field).collect();
        Ok(Self {
            columns: columns.into_iter().map(|(_, column)| column).collect(),
            fields,
        })
    }

    /// The column. Java numbers its fields behind all others, so their ids say nothing and are left out.
    pub(super) fn field(&self) -> Field {
        Field::new(NAME, DataType::Struct(self.fields.clone()), true)
    }

    /// The column of these rows.
    pub(super) fn array(&self, metrics: &MetricColumns, rows: &[u32]) -> Result<ArrayRef> {
        if self.columns.is_empty() {
            return Ok(Arc::new(StructArray::new_empty_fields(rows.len(), None)));
        }
        let mut untold: HashMap<&DataType, ArrayRef> = HashMap::new();
        let mut arrays = Vec::with_capacity(self.columns.len());
        for (column, field) in self.columns.iter().zip(&self.fields) {
            arrays.push(match metrics.tell_of(column.id) {
                true => column.array(metrics, rows)?,
                // Most columns of wide tables have no metrics: they share one array.
                false => untold
                    .entry(field.data_type())
                    .or_insert_with(|| nothing(&column.parts, rows.len()))
                    .clone(),
            });
        }
        let array = StructArray::try_new(self.fields.clone(), arrays, None);
        Ok(Arc::new(array.map_err(unbuilt)?))
    }
}

impl Described {
    fn array(&self, metrics: &MetricColumns, rows: &[u32]) -> Result<ArrayRef> {
        let mut parts: Vec<ArrayRef> = Vec::with_capacity(COUNTS.len() + BOUNDS.len());
        for (_, count) in COUNTS {
            let numbers = rows.iter().map(|row| {
                let number = metrics.count(count, *row, self.id)?;
                i64::try_from(number).ok()
            });
            parts.push(Arc::new(numbers.collect::<Int64Array>()));
        }
        for (place, (_, end)) in (COUNTS.len()..).zip(BOUNDS) {
            let bounds = rows
                .iter()
                .map(|row| read_bound(metrics.bound(end, *row, self.id)?, &self.kind));
            parts.push(values::array(self.parts[place].data_type(), bounds)?);
        }
        let array = StructArray::try_new(self.parts.clone(), parts, None);
        Ok(Arc::new(array.map_err(unbuilt)?))
    }
}

/// The struct of a column of this type.
fn parts(kind: &DataType) -> Fields {
    let counts = COUNTS.map(|(name, _)| Field::new(name, DataType::Int64, true));
    let bounds = BOUNDS.map(|(name, _)| Field::new(name, kind.clone(), true));
    counts.into_iter().chain(bounds).collect()
}

/// Structs of NULLs, which are not NULL themselves.
fn nothing(parts: &Fields, rows: usize) -> ArrayRef {
    let nulls = parts
        .iter()
        .map(|part| new_null_array(part.data_type(), rows));
    Arc::new(StructArray::new(parts.clone(), nulls.collect(), None))
}
