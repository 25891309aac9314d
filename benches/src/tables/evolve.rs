//! A schema that has moved on from what the files were written with.

use anyhow::{Context, Result};
use floe_testing::table::TestTable;
use iceberg::spec::{NestedField, NestedFieldRef, PrimitiveType, Schema, Type};

/// Renames a column, promotes every int to long, drops the last column, adds two, and moves one to the front.
pub(super) async fn evolve(table: &mut TestTable) -> Result<()> {
    let metadata = table.metadata();
    let next = metadata.last_column_id() + 1;
    let old = metadata.current_schema().as_struct().fields();
    let kept = old.len() - 1;
    let mut fields: Vec<NestedFieldRef> = old[..kept].iter().map(evolved).collect();
    let moved = fields.iter().position(|field| field.name == "possession");
    let moved = moved.context("an events table has a column possession")?;
    fields[..=moved].rotate_right(1);
    for (id, name, kind) in [
        (next, "reviewed_by", PrimitiveType::String),
        (next + 1, "rating", PrimitiveType::Double),
    ] {
        fields.push(NestedField::optional(id, name, Type::Primitive(kind)).into());
    }
    let schema = Schema::builder().with_fields(fields).build()?;
    table
        .update(|builder| builder.add_current_schema(schema))
        .await
}

fn evolved(field: &NestedFieldRef) -> NestedFieldRef {
    let mut field = field.as_ref().clone();
    if field.name == "zone" {
        field.name = "pitch_zone".to_owned();
    }
    if *field.field_type == Type::Primitive(PrimitiveType::Int) {
        field.field_type = Box::new(Type::Primitive(PrimitiveType::Long));
    }
    field.into()
}
