//! Values of identity partition columns: the metadata holds them, a file may lack the column (tables migrated from Hive).
//! iceberg-rust fills them in if a task carries its spec, but fails on dropped or promoted source columns: those are left out.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use iceberg::TableIdent;
use iceberg::spec::{
    Literal, PartitionSpec, PrimitiveLiteral, PrimitiveType, SchemaRef, Struct, Transform,
};

use crate::error::{Error, Result};
use crate::snapshot::Position;

/// For every partition spec of a table, which of its values stand for a column.
#[derive(Debug)]
pub(crate) struct PartitionConstants {
    table: TableIdent,
    schema: SchemaRef,
    by_spec: Mutex<HashMap<i32, Option<Arc<Reduced>>>>,
}

/// A spec cut down to identity fields that can be filled in.
#[derive(Debug)]
struct Reduced {
    spec: Arc<PartitionSpec>,
    /// For each of its fields, the position in the full spec and the column's type.
    fields: Vec<(usize, PrimitiveType)>,
}

impl PartitionConstants {
    pub(crate) fn new(position: &Position) -> Self {
        Self {
            table: position.table().identifier().clone(),
            schema: position.schema().clone(),
            by_spec: Mutex::default(),
        }
    }

    /// The table, for errors.
    pub(crate) fn table(&self) -> &TableIdent {
        &self.table
    }

    /// The spec and the values to give iceberg-rust for a file of this spec and partition; `None` if none apply.
    pub(crate) fn of(
        &self,
        spec: &Arc<PartitionSpec>,
        partition: &Struct,
    ) -> Result<Option<(Arc<PartitionSpec>, Struct)>> {
        let reduced = {
            let mut by_spec = self
                .by_spec
                .lock()
                .expect("no code panics while it holds this lock");
            match by_spec.get(&spec.spec_id()) {
                Some(known) => known.clone(),
                None => {
                    let reduced = self.reduce(spec)?;
                    by_spec.insert(spec.spec_id(), reduced.clone());
                    reduced
                }
            }
        };
        let Some(reduced) = reduced else {
            return Ok(None);
        };
        let values = reduced.fields.iter().map(|(position, primitive)| {
            partition
                .fields()
                .get(*position)
                .cloned()
                .flatten()
                .map(|value| promote(value, primitive))
        });
        Ok(Some((reduced.spec.clone(), Struct::from_iter(values))))
    }

    fn reduce(&self, spec: &PartitionSpec) -> Result<Option<Arc<Reduced>>> {
        let mut builder = PartitionSpec::builder(self.schema.clone()).with_spec_id(spec.spec_id());
        let mut fields = Vec::new();
        for (position, field) in spec.fields().iter().enumerate() {
            if field.transform != Transform::Identity {
                continue;
            }
            let top_level = self
                .schema
                .as_struct()
                .fields()
                .iter()
                .find(|column| column.id == field.source_id);
            let Some(column) = top_level else { continue };
            let Some(primitive) = column
                .field_type
                .as_primitive_type()
                .filter(|primitive| fillable(primitive))
            else {
                continue;
            };
            builder = builder
                .add_partition_field(&column.name, &column.name, Transform::Identity)
                .map_err(|source| {
                    Error::read(
                        format!("can't use the partition spec of {}", self.table),
                        source,
                    )
                })?;
            fields.push((position, primitive.clone()));
        }
        if fields.is_empty() {
            return Ok(None);
        }
        let spec = builder.build().map_err(|source| {
            Error::read(
                format!("can't use the partition spec of {}", self.table),
                source,
            )
        })?;
        Ok(Some(Arc::new(Reduced {
            spec: Arc::new(spec),
            fields,
        })))
    }
}

/// Types whose constants iceberg-rust turns into Arrow faithfully.
fn fillable(primitive: &PrimitiveType) -> bool {
    use PrimitiveType::{Boolean, Date, Double, Float, Int, Long, String, Timestamp, Timestamptz};
    matches!(
        primitive,
        Boolean | Int | Long | Float | Double | Date | Timestamp | Timestamptz | String
    )
}

/// Manifests hold a value in the type its column had when they were written.
fn promote(value: Literal, primitive: &PrimitiveType) -> Literal {
    match (&value, primitive) {
        (Literal::Primitive(PrimitiveLiteral::Int(v)), PrimitiveType::Long) => {
            Literal::long(i64::from(*v))
        }
        (Literal::Primitive(PrimitiveLiteral::Float(v)), PrimitiveType::Double) => {
            Literal::double(f64::from(v.0))
        }
        _ => value,
    }
}
