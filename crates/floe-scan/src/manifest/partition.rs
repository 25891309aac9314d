//! Partition values of a manifest's files. Many files share them: each tuple is decoded once.

use std::sync::Arc;

use hashbrown::HashMap;
use iceberg::spec::{
    Literal, PartitionField, PrimitiveLiteral, PrimitiveType, Schema, Struct, Transform,
};
use uuid::Uuid;

use super::avro::{Container, Cursor, Damage, Field, Kind, Logical, Node};

/// A field of the partition tuple, as the manifest has it.
#[derive(Clone, Debug)]
pub(crate) struct PartitionColumn {
    pub(crate) id: Option<i32>,
    pub(crate) name: String,
}

/// Decodes partition tuples, giving each a number.
pub(super) struct Partitions {
    node: Node,
    /// Types by the manifest's own spec, where Avro's do not tell all.
    types: Vec<Option<PrimitiveType>>,
    seen: HashMap<Vec<u8>, u32>,
    pub(super) values: Vec<Arc<Struct>>,
}

/// How a manifest writes values of Avro's `fixed`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FixedForm {
    /// As many bytes as the type says: Avro's specification.
    Plain,
    /// A length before them, as of `bytes`: Iceberg's Java writes partition values so, whatever its schema says.
    Prefixed,
}

impl Partitions {
    pub(super) fn new(
        node: &Node,
        container: &Container<'_>,
        form: FixedForm,
    ) -> Result<Self, Damage> {
        let node = match form {
            FixedForm::Plain => node.clone(),
            FixedForm::Prefixed => prefixed(node),
        };
        let Kind::Record(fields) = &node.kind else {
            return Err(Damage::new("it is no record"));
        };
        let types = match fields.iter().any(|field| ambiguous(&field.node)) {
            true => own_types(fields, container),
            false => vec![None; fields.len()],
        };
        Ok(Self {
            types,
            node,
            seen: HashMap::new(),
            values: Vec::new(),
        })
    }

    /// Whether tuples hold a `fixed` that stands for nothing else.
    pub(super) fn hold_fixed(&self) -> bool {
        holds_fixed(&self.node)
    }

    pub(super) fn columns(&self) -> Vec<PartitionColumn> {
        let column = |field: &Field| PartitionColumn {
            id: field.id,
            name: field.name.clone(),
        };
        self.fields().iter().map(column).collect()
    }

    fn fields(&self) -> &[Field] {
        match &self.node.kind {
            Kind::Record(fields) => fields,
            _ => &[],
        }
    }

    /// Reads a tuple and gives its number.
    pub(super) fn read(&mut self, cursor: &mut Cursor<'_>) -> Result<u32, Damage> {
        let start = cursor.position();
        self.node.skip(cursor)?;
        let bytes = cursor.since(start);
        if let Some(known) = self.seen.get(bytes) {
            return Ok(*known);
        }
        let values = self.decode(bytes)?;
        let number = u32::try_from(self.values.len())
            .map_err(|_| Damage::new("it has too many partitions"))?;
        self.values.push(Arc::new(values));
        self.seen.insert(bytes.to_vec(), number);
        Ok(number)
    }

    fn decode(&self, bytes: &[u8]) -> Result<Struct, Damage> {
        let mut cursor = Cursor::new(bytes);
        let fields = self.fields().iter().zip(&self.types);
        let values = fields.map(|(field, kind)| {
            literal(&field.node, kind.as_ref(), &mut cursor).map_err(|d| d.of(&field.name))
        });
        Ok(Struct::from_iter(values.collect::<Result<Vec<_>, _>>()?))
    }
}

/// Whether a tuple holds a `fixed` that stands for nothing else.
fn holds_fixed(node: &Node) -> bool {
    match &node.kind {
        Kind::Record(fields) => fields.iter().any(|field| holds_fixed(&field.node)),
        Kind::Union(variants) => variants.iter().any(holds_fixed),
        Kind::Fixed(_) => node.logical.is_none(),
        _ => false,
    }
}

/// The same type with a length before each such `fixed`.
fn prefixed(node: &Node) -> Node {
    let mut node = node.clone();
    match &node.kind {
        Kind::Record(fields) => {
            let field = |field: &Field| Field {
                node: prefixed(&field.node),
                ..field.clone()
            };
            node.kind = Kind::Record(fields.iter().map(field).collect());
        }
        Kind::Union(variants) => node.kind = Kind::Union(variants.iter().map(prefixed).collect()),
        Kind::Fixed(_) if node.logical.is_none() => node.kind = Kind::Bytes,
        _ => {}
    }
    node
}

/// Whether bytes may stand for something else that only the table's types tell.
fn ambiguous(node: &Node) -> bool {
    match &node.kind {
        Kind::Union(variants) => variants.iter().any(ambiguous),
        Kind::Bytes | Kind::Fixed(_) => node.logical.is_none(),
        _ => false,
    }
}

/// Types of the partition fields by the schema and the spec in the manifest's header; `None` where they don't tell.
fn own_types(fields: &[Field], container: &Container<'_>) -> Vec<Option<PrimitiveType>> {
    let schema = container
        .property("schema")
        .and_then(|json| serde_json::from_slice::<Schema>(json).ok());
    let spec = container
        .property("partition-spec")
        .and_then(|json| serde_json::from_slice::<Vec<PartitionField>>(json).ok());
    let (Some(schema), Some(spec)) = (schema, spec) else {
        return vec![None; fields.len()];
    };
    let of = |field: &Field| {
        let own = spec.iter().find(|own| match field.id {
            Some(id) => own.field_id == id,
            None => own.name == field.name,
        })?;
        if own.transform == Transform::Unknown {
            return None;
        }
        let source = schema.field_by_id(own.source_id)?;
        let kind = own.transform.result_type(&source.field_type).ok()?;
        kind.as_primitive_type().cloned()
    };
    fields.iter().map(of).collect()
}

fn literal(
    node: &Node,
    kind: Option<&PrimitiveType>,
    cursor: &mut Cursor<'_>,
) -> Result<Option<Literal>, Damage> {
    use PrimitiveLiteral as Of;
    let node = node.chosen(cursor)?;
    if node.logical == Some(Logical::Millis) {
        return Err(Damage::unsupported("it is a time in milliseconds"));
    }
    let value = match node.kind {
        Kind::Null => return Ok(None),
        Kind::Boolean => Of::Boolean(super::avro::boolean(cursor)?),
        Kind::Int => Of::Int(super::avro::int(cursor)?),
        Kind::Long => Of::Long(cursor.long()?),
        Kind::Float => Of::Float(f32::from_le_bytes(array(cursor.take(4)?)?).into()),
        Kind::Double => Of::Double(f64::from_le_bytes(array(cursor.take(8)?)?).into()),
        Kind::Text if node.logical == Some(Logical::Uuid) => Of::UInt128(
            Uuid::parse_str(cursor.text()?)
                .map_err(|_| Damage::new("it is no UUID"))?
                .as_u128(),
        ),
        Kind::Text => Of::String(cursor.text()?.to_string()),
        Kind::Bytes => of_bytes(cursor.bytes()?, node.logical, kind)?,
        Kind::Fixed(width) => of_bytes(cursor.take(width)?, node.logical, kind)?,
        _ => return Err(Damage::new("it is no value of a primitive type")),
    };
    Ok(Some(Literal::Primitive(value)))
}

fn of_bytes(
    bytes: &[u8],
    logical: Option<Logical>,
    kind: Option<&PrimitiveType>,
) -> Result<PrimitiveLiteral, Damage> {
    match (logical, kind) {
        (Some(Logical::Decimal), _) | (None, Some(PrimitiveType::Decimal { .. })) => {
            unscaled(bytes).map(PrimitiveLiteral::Int128)
        }
        (Some(Logical::Uuid), _) | (None, Some(PrimitiveType::Uuid)) => Ok(
            PrimitiveLiteral::UInt128(u128::from_be_bytes(array(bytes)?)),
        ),
        _ => Ok(PrimitiveLiteral::Binary(bytes.to_vec())),
    }
}

/// A decimal's digits as a number: two's complement, the greatest byte first.
fn unscaled(bytes: &[u8]) -> Result<i128, Damage> {
    let Some(first) = bytes.first() else {
        return Err(Damage::new("a decimal has no bytes"));
    };
    let fill = if *first < 0x80 { 0 } else { 0xff };
    let (spare, own) = bytes.split_at(bytes.len().saturating_sub(16));
    let mut whole = [fill; 16];
    whole[16 - own.len()..].copy_from_slice(own);
    let value = i128::from_be_bytes(whole);
    match spare.iter().all(|byte| *byte == fill) && (value < 0) == (fill == 0xff) {
        true => Ok(value),
        false => Err(Damage::new("a decimal is longer than 128 bits")),
    }
}

fn array<const N: usize>(bytes: &[u8]) -> Result<[u8; N], Damage> {
    bytes
        .try_into()
        .map_err(|_| Damage::new(format!("it has {} bytes instead of {N}", bytes.len())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_of_any_width_are_read() {
        assert_eq!(unscaled(&[0x00]).unwrap(), 0);
        assert_eq!(unscaled(&[0xff]).unwrap(), -1);
        assert_eq!(unscaled(&[0x01, 0x00]).unwrap(), 256);
        assert_eq!(unscaled(&[0xff; 17]).unwrap(), -1);
        assert_eq!(unscaled(&i128::MIN.to_be_bytes()).unwrap(), i128::MIN);
        let mut wide = vec![0u8];
        wide.extend(i128::MAX.to_be_bytes());
        assert_eq!(unscaled(&wide).unwrap(), i128::MAX);
        wide[0] = 1;
        assert!(unscaled(&wide).is_err());
        assert!(unscaled(&[]).is_err());
    }
}
