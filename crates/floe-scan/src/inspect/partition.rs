//! The partitions of all specs of a table as one struct, as Java's `Partitioning.partitionType` has it: a field for each
//! partition field by its id, under its newest name, of the type that it has in the table's current schema.
//!
//! Fields of a column that the table has no more are left out, as in Java. So are those of a transform that nobody knows:
//! Java refuses such a table, and what type they have is only known once manifests are read.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_schema::{Field, Fields};
use iceberg::spec::{
    Datum, Literal, PartitionField, PartitionSpecRef, PrimitiveType, Struct, Transform,
};
use iceberg::table::Table;

use super::column::{shown, with_id};
use super::source::Opened;
use super::values;
use crate::error::{Error, ErrorKind, Result};
use crate::manifest::PartitionColumn;
use crate::predicate::datum::typed;

/// The unified partition of a table.
#[derive(Debug, Default)]
pub(super) struct Partitioning {
    kinds: Vec<Unified>,
    fields: Fields,
    /// Ids of the fields of each spec by name, for manifests that tell no ids.
    ids: HashMap<i32, HashMap<String, i32>>,
}

/// A partition field of one or more specs.
#[derive(Debug)]
struct Unified {
    id: i32,
    kind: PrimitiveType,
}

/// What stands for a partition: a value for each unified field.
pub(super) type Tuple = Vec<Option<Datum>>;

impl Partitioning {
    /// The partition of a table's specs.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`] if two specs mean something else by a partition field of one id, or a field can't be of its column.
    pub(super) fn of(table: &Table) -> Result<Self> {
        let metadata = table.metadata();
        let mut specs: Vec<&PartitionSpecRef> = metadata.partition_specs_iter().collect();
        specs.sort_by_key(|spec| std::cmp::Reverse(spec.spec_id()));
        let mut unified: BTreeMap<i32, (&str, &PartitionField)> = BTreeMap::new();
        for field in specs.iter().flat_map(|spec| spec.fields()) {
            let is_gone = metadata
                .current_schema()
                .field_by_id(field.source_id)
                .is_none();
            if is_gone || field.transform == Transform::Unknown {
                continue;
            }
            let known = unified
                .entry(field.field_id)
                .or_insert((&field.name, field));
            if !is_same(known.1, field) {
                return Err(contradiction(table, known.1, field));
            }
            // Specs of version 1 keep the place of a dropped field; what it was of, older ones tell.
            if known.1.transform == Transform::Void {
                known.1 = field;
            }
        }
        let (mut kinds, mut fields) = (Vec::new(), Vec::new());
        for (id, (name, field)) in unified {
            let kind = type_of(table, field)?;
            fields.push(with_id(Field::new(name, shown(&kind)?, true), id));
            kinds.push(Unified { id, kind });
        }
        let ids = specs.iter().map(|spec| {
            let fields = spec.fields().iter();
            let ids = fields.map(|field| (field.name.clone(), field.field_id));
            (spec.spec_id(), ids.collect())
        });
        Ok(Self {
            kinds,
            fields: fields.into(),
            ids: ids.collect(),
        })
    }

    /// Whether no spec has a field: metadata tables have no column for it then.
    pub(super) fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }

    /// The fields of the struct.
    pub(super) fn fields(&self) -> &Fields {
        &self.fields
    }

    /// The partitions of a manifest, by number, as this struct has them.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`] for a value that is not of its field's type.
    pub(super) fn tuples(&self, opened: &Opened) -> Result<Vec<Tuple>> {
        let places = self.places(opened);
        let tuple = |partition: &Arc<Struct>| {
            let fields = self.kinds.iter().zip(&places);
            let values = fields.map(|(field, place)| {
                let value = place.and_then(|place| partition.fields().get(place));
                match value.and_then(Option::as_ref) {
                    None => Ok(None),
                    Some(value) => of_type(value, &field.kind)
                        .map(Some)
                        .ok_or_else(|| self.misfit(opened, field)),
                }
            });
            values.collect::<Result<Tuple>>()
        };
        opened.manifest.partitions().iter().map(tuple).collect()
    }

    /// The columns of the struct, of these partitions.
    pub(super) fn columns<'a>(
        &self,
        tuples: impl Iterator<Item = &'a Tuple> + Clone,
    ) -> Result<Vec<ArrayRef>> {
        let column = |(place, field): (usize, &Arc<Field>)| {
            let values = tuples.clone().map(|tuple| tuple[place].clone());
            values::array(field.data_type(), values)
        };
        self.fields.iter().enumerate().map(column).collect()
    }

    /// Where each field stands in the manifest's partitions.
    fn places(&self, opened: &Opened) -> Vec<Option<usize>> {
        let columns = opened.manifest.partition_columns();
        let with_ids = columns.iter().any(|column| column.id.is_some());
        let ids = self.ids.get(&opened.listed().partition_spec_id);
        let id_of = |column: &PartitionColumn| match with_ids {
            true => column.id,
            false => ids?.get(&column.name).copied(),
        };
        let place = |field: &Unified| columns.iter().position(|c| id_of(c) == Some(field.id));
        self.kinds.iter().map(place).collect()
    }

    fn misfit(&self, opened: &Opened, field: &Unified) -> Error {
        opened.corrupt(&format!(
            "a value of the partition field {} is not of its type, {}",
            field.id, field.kind
        ))
    }
}

/// A value in its field's type, also if it was written before the column was promoted.
fn of_type(value: &Literal, kind: &PrimitiveType) -> Option<Datum> {
    match value {
        Literal::Primitive(value) => typed(kind, value),
        _ => None,
    }
}

/// Whether two fields of one id mean the same; a dropped one may have been anything of its column.
fn is_same(one: &PartitionField, other: &PartitionField) -> bool {
    let is_dropped = |field: &PartitionField| field.transform == Transform::Void;
    one.source_id == other.source_id
        && (one.transform == other.transform || is_dropped(one) || is_dropped(other))
}

fn contradiction(table: &Table, one: &PartitionField, other: &PartitionField) -> Error {
    let field = |field: &PartitionField| {
        let (name, transform, source) = (&field.name, &field.transform, field.source_id);
        format!("'{name}' ({transform} of column {source})")
    };
    let message = format!(
        "can't show partitions of {}: its specs have two partition fields of the id {}, {} and {}",
        table.identifier(),
        one.field_id,
        field(one),
        field(other)
    );
    Error::new(ErrorKind::Corrupt, message)
        .with_hint("snapshots, refs, history and manifests can be shown")
}

fn type_of(table: &Table, field: &PartitionField) -> Result<PrimitiveType> {
    let schema = table.metadata().current_schema();
    let source = schema.field_by_id(field.source_id);
    let kind = source.and_then(|source| field.transform.result_type(&source.field_type).ok());
    match kind.as_ref().and_then(|kind| kind.as_primitive_type()) {
        Some(kind) => Ok(kind.clone()),
        None => {
            let message = format!(
                "can't show partitions of {}: the partition field '{}' can't be {} of its column",
                table.identifier(),
                field.name,
                field.transform
            );
            Err(Error::new(ErrorKind::Corrupt, message)
                .with_hint("snapshots, refs, history and manifests can be shown"))
        }
    }
}
