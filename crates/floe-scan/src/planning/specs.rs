//! Partition specs of a table: what a file's partition values are of, which of them stand for columns, and which are equal.

use std::collections::HashMap;
use std::sync::Arc;

use iceberg::spec::{
    Literal, PartitionSpecRef, PrimitiveLiteral, PrimitiveType, Schema, Struct, Transform,
};
use iceberg::table::Table;

use crate::error::{Error, ErrorKind, Result};
use crate::manifest::{ManifestFiles, PartitionColumn, may_hold_files};
use crate::predicate::datum::typed;

/// The specs that a snapshot's manifests were written with.
#[derive(Debug)]
pub(super) struct Specs {
    by_id: HashMap<i32, Spec>,
}

/// A spec as it looks from the schema that is read.
#[derive(Debug)]
pub(super) struct Spec {
    pub(super) spec: PartitionSpecRef,
    /// For each field: the column whose value it is, if it is one, with the column's type.
    identities: Vec<Option<(i32, PrimitiveType)>>,
}

/// The values of a partition, comparable whatever type they were written in.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct PartitionKey {
    spec_id: i32,
    values: Vec<u8>,
}

/// Values of identity partitions by the source field's id.
pub(super) type Constants = Arc<[(i32, Option<Literal>)]>;

impl Specs {
    pub(super) fn of(table: &Table, schema: &Schema, list: &ManifestFiles) -> Result<Self> {
        let mut by_id = HashMap::new();
        for manifest in list
            .entries
            .iter()
            .filter(|manifest| may_hold_files(manifest))
        {
            let id = manifest.partition_spec_id;
            if by_id.contains_key(&id) {
                continue;
            }
            let spec = table.metadata().partition_spec_by_id(id).ok_or_else(|| {
                Error::new(
                    ErrorKind::Corrupt,
                    format!(
                        "can't plan the scan of {}: the manifest {} was written with partition spec {id}, which the table's metadata does not have",
                        table.identifier(),
                        manifest.manifest_path
                    ),
                )
            })?;
            by_id.insert(id, Spec::new(spec.clone(), schema));
        }
        Ok(Self { by_id })
    }

    pub(super) fn get(&self, id: i32) -> Option<&Spec> {
        self.by_id.get(&id)
    }
}

impl Spec {
    fn new(spec: PartitionSpecRef, schema: &Schema) -> Self {
        let identities = spec.fields().iter().map(|field| {
            let source = schema.field_by_id(field.source_id)?;
            let kind = source.field_type.as_primitive_type()?;
            (field.transform == Transform::Identity).then(|| (field.source_id, kind.clone()))
        });
        Self {
            identities: identities.collect(),
            spec,
        }
    }

    /// Where each field of the spec is among a manifest's columns; `None` if the manifest lacks one.
    pub(super) fn places(&self, columns: &[PartitionColumn]) -> Option<Vec<usize>> {
        let with_ids = columns.iter().any(|column| column.id.is_some());
        let place = |field: &iceberg::spec::PartitionField| {
            columns.iter().position(|column| match column.id {
                Some(id) => id == field.field_id,
                None => !with_ids && column.name == field.name,
            })
        };
        self.spec.fields().iter().map(place).collect()
    }

    /// A partition in the form in which equal ones are equal: ints that became longs since, floats that became doubles,
    /// dates that became timestamps. As Java has it, -0.0 is another partition than 0.0, and NaN is one.
    pub(super) fn key(&self, partition: &Struct) -> PartitionKey {
        let mut values = Vec::new();
        for (place, value) in partition.iter().enumerate() {
            let value = value.map(|value| self.promoted(place, value));
            match value {
                Some(Literal::Primitive(value)) => write_value(&mut values, &value),
                Some(_) => values.push(9),
                None => values.push(0),
            }
        }
        PartitionKey {
            spec_id: self.spec.spec_id(),
            values,
        }
    }

    /// The values that stand for columns. `None` if one is not of its column's type.
    pub(super) fn constants(&self, partition: &Struct) -> Option<Constants> {
        let mut constants = Vec::new();
        for (identity, value) in self.identities.iter().zip(partition.iter()) {
            let Some((id, kind)) = identity else { continue };
            let value = match value {
                Some(value) => Some(promote(value, kind)?),
                None => None,
            };
            constants.push((*id, value));
        }
        Some(constants.into())
    }

    fn promoted(&self, place: usize, value: &Literal) -> Literal {
        let identity = self.identities.get(place).and_then(Option::as_ref);
        identity
            .and_then(|(_, kind)| promote(value, kind))
            .unwrap_or_else(|| value.clone())
    }
}

/// A value in the type that its column has now.
fn promote(value: &Literal, kind: &PrimitiveType) -> Option<Literal> {
    let Literal::Primitive(value) = value else {
        return None;
    };
    let typed = typed(kind, value)?;
    Some(Literal::Primitive(typed.literal().clone()))
}

/// Writes a value so that two are equal if and only if their bytes are.
pub(crate) fn write_value(bytes: &mut Vec<u8>, value: &PrimitiveLiteral) {
    use PrimitiveLiteral as Of;
    let mut write = |tag: u8, value: &[u8]| {
        bytes.push(tag);
        bytes.extend_from_slice(&(value.len() as u64).to_le_bytes());
        bytes.extend_from_slice(value);
    };
    let double = |v: f64| match v.is_nan() {
        true => f64::NAN.to_bits().to_le_bytes(),
        false => v.to_bits().to_le_bytes(),
    };
    match value {
        Of::Boolean(v) => write(1, &[u8::from(*v)]),
        Of::Int(v) => write(2, &i64::from(*v).to_le_bytes()),
        Of::Long(v) => write(2, &v.to_le_bytes()),
        Of::Float(v) => write(3, &double(f64::from(v.0))),
        Of::Double(v) => write(3, &double(v.0)),
        Of::String(v) => write(4, v.as_bytes()),
        Of::Binary(v) => write(5, v),
        Of::Int128(v) => write(6, &v.to_le_bytes()),
        Of::UInt128(v) => write(7, &v.to_le_bytes()),
        Of::AboveMax | Of::BelowMin => write(8, &[]),
    }
}

#[cfg(test)]
mod tests {
    use iceberg::spec::{NestedField, PartitionSpec, Type};

    use super::*;

    fn spec(kind: PrimitiveType) -> Spec {
        let field = NestedField::optional(1, "x", Type::Primitive(kind));
        let schema = Schema::builder()
            .with_fields([field.into()])
            .build()
            .unwrap();
        let spec = PartitionSpec::builder(schema.clone())
            .add_partition_field("x", "x", Transform::Identity)
            .unwrap()
            .build()
            .unwrap();
        Spec::new(Arc::new(spec), &schema)
    }

    fn of(value: Literal) -> Struct {
        Struct::from_iter([Some(value)])
    }

    #[test]
    fn a_partition_stays_the_same_when_its_column_is_promoted() {
        let long = spec(PrimitiveType::Long);
        assert_eq!(
            long.key(&of(Literal::int(5))),
            long.key(&of(Literal::long(5)))
        );
        assert_ne!(
            long.key(&of(Literal::int(5))),
            long.key(&of(Literal::long(6)))
        );
        let double = spec(PrimitiveType::Double);
        assert_eq!(
            double.key(&of(Literal::float(0.1f32))),
            double.key(&of(Literal::double(f64::from(0.1f32))))
        );
        let timestamp = spec(PrimitiveType::Timestamp);
        let day = 86_400_000_000;
        assert_eq!(
            timestamp.key(&of(Literal::date(2))),
            timestamp.key(&of(Literal::timestamp(2 * day)))
        );
        let constants = timestamp.constants(&of(Literal::date(-1))).unwrap();
        assert_eq!(constants[..], [(1, Some(Literal::timestamp(-day)))]);
    }

    #[test]
    fn null_is_a_partition_of_its_own() {
        let spec = spec(PrimitiveType::String);
        let null = Struct::from_iter([None]);
        assert_ne!(spec.key(&null), spec.key(&of(Literal::string(""))));
        assert_eq!(spec.constants(&null).unwrap()[..], [(1, None)]);
    }

    #[test]
    fn nan_is_one_partition_and_negative_zero_another_than_zero() {
        let spec = spec(PrimitiveType::Double);
        let key = |bits: u64| spec.key(&of(Literal::double(f64::from_bits(bits))));
        assert_eq!(key(0x7ff8_0000_0000_0000), key(0xfff8_0000_0000_0001));
        assert_ne!(key(0), key((-0.0f64).to_bits()));
    }

    #[test]
    fn a_value_of_another_type_is_no_constant() {
        assert!(
            spec(PrimitiveType::Int)
                .constants(&of(Literal::string("x")))
                .is_none()
        );
    }
}
