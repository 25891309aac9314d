//! What all parts of a plan share.

use std::sync::Arc;

use floe_store::Store;
use iceberg::spec::{PrimitiveType, Schema, SchemaRef};
use iceberg::table::Table;

use super::specs::Specs;
use crate::error::Result;
use crate::manifest::ManifestFiles;
use crate::predicate::Predicate;
use crate::snapshot::Position;

/// What all parts of a plan share.
pub(super) struct Context {
    pub(super) store: Store,
    pub(super) table: Table,
    /// The schema that rows are read with.
    pub(super) schema: SchemaRef,
    pub(super) specs: Specs,
    pub(super) predicate: Option<Arc<Predicate>>,
    /// Fields whose metrics files carry, sorted by id.
    pub(super) wanted: Fields,
}

/// Primitive fields by id, sorted.
pub(super) type Fields = Vec<(i32, PrimitiveType)>;

impl Context {
    pub(super) fn new(
        store: &Store,
        position: &Position,
        predicate: Option<Arc<Predicate>>,
        wanted: &[i32],
        list: &ManifestFiles,
    ) -> Result<Self> {
        let schema = position.schema().clone();
        Ok(Self {
            store: store.clone(),
            table: position.table().clone(),
            specs: Specs::of(position.table(), &schema, list)?,
            wanted: fields(&schema, wanted),
            schema,
            predicate,
        })
    }

    /// A type of a field for reading its bounds: of the schema that is read, or else of one that the table had.
    pub(super) fn kind_of(&self, id: i32) -> Option<PrimitiveType> {
        let metadata = self.table.metadata();
        let field = match self.schema.field_by_id(id) {
            Some(field) => field,
            None => {
                let mut schemas: Vec<_> = metadata.schemas_iter().collect();
                schemas.sort_by_key(|schema| std::cmp::Reverse(schema.schema_id()));
                schemas
                    .into_iter()
                    .find_map(|schema| schema.field_by_id(id))?
            }
        };
        field.field_type.as_primitive_type().cloned()
    }
}

/// Those of the fields that are primitive.
pub(super) fn fields(schema: &Schema, ids: &[i32]) -> Fields {
    let kind = |id: &i32| {
        let field = schema.field_by_id(*id)?;
        Some((*id, field.field_type.as_primitive_type()?.clone()))
    };
    let mut fields: Fields = ids.iter().filter_map(kind).collect();
    fields.sort_by_key(|(id, _)| *id);
    fields.dedup_by_key(|(id, _)| *id);
    fields
}
