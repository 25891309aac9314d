//! A writer's schema, compiled for reading: what each value is, what it may be taken for, how to get past it.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;

use super::cursor::text;
use super::{Cursor, Damage};

/// A type of the writer's schema.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) kind: Kind,
    pub(crate) logical: Option<Logical>,
    size: Size,
}

/// What a value is on the wire.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Null,
    Boolean,
    Int,
    Long,
    Float,
    Double,
    Bytes,
    Text,
    Fixed(usize),
    Enum,
    Array(Arc<Node>),
    Map(Arc<Node>),
    Union(Arc<[Node]>),
    Record(Arc<[Field]>),
}

/// What a value on the wire stands for, where it makes a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Logical {
    Decimal,
    Uuid,
    /// Times in milliseconds, which Iceberg has not.
    Millis,
}

/// A field of a record.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(crate) name: String,
    /// Iceberg's field id, if the writer gives it.
    pub(crate) id: Option<i32>,
    pub(crate) node: Node,
}

impl Field {
    /// What the field is for, among `known` of (id, name, role): by its id, or by its name where writers give no ids.
    pub(crate) fn role<T: Copy>(&self, known: &[(i32, &str, T)]) -> Option<T> {
        let is_this = |(id, name, _): &&(i32, &str, T)| match self.id {
            Some(own) => own == *id,
            None => self.name == *name,
        };
        known.iter().find(is_this).map(|(_, _, role)| *role)
    }
}

/// Bounds on a type, so that hostile schemas cost no more than their length.
#[derive(Clone, Copy, Debug)]
struct Size {
    /// Bytes that a value takes at the least.
    least: usize,
    /// Types in it, named ones counted each time.
    types: usize,
    depth: usize,
}

const LEAF: Size = Size {
    least: 1,
    types: 1,
    depth: 1,
};

/// Types in a schema, and how deep they may lie.
const MOST_TYPES: usize = 10_000;
const MOST_DEPTH: usize = 32;

impl Node {
    /// Compiles a schema from its JSON form.
    pub(crate) fn parse(json: &[u8]) -> Result<Self, Damage> {
        let json: Value = serde_json::from_slice(json)
            .map_err(|source| Damage::new(format!("it is no JSON: {source}")))?;
        Compiler::default().node(&json, "")
    }

    fn new(kind: Kind, size: Size) -> Result<Self, Damage> {
        if size.types > MOST_TYPES || size.depth > MOST_DEPTH {
            return Err(Damage::new("the schema is too large"));
        }
        Ok(Self {
            kind,
            logical: None,
            size,
        })
    }

    /// Bytes that a value takes at the least.
    pub(crate) fn least_bytes(&self) -> usize {
        self.size.least
    }

    /// The type of the next value, which of a union it chooses itself.
    #[inline]
    pub(crate) fn chosen(&self, cursor: &mut Cursor<'_>) -> Result<&Self, Damage> {
        let Kind::Union(variants) = &self.kind else {
            return Ok(self);
        };
        let index = cursor.length()?;
        variants
            .get(index)
            .ok_or_else(|| Damage::new(format!("a union has no type {index}")))
    }

    /// A whole number; `None` for NULL.
    #[inline]
    pub(crate) fn long(&self, cursor: &mut Cursor<'_>) -> Result<Option<i64>, Damage> {
        match self.chosen(cursor)?.kind {
            Kind::Null => Ok(None),
            Kind::Long => cursor.long().map(Some),
            Kind::Int => int(cursor).map(|v| Some(i64::from(v))),
            _ => Err(Damage::new("it is no whole number")),
        }
    }

    /// A whole number of 32 bits; `None` for NULL.
    #[inline]
    pub(crate) fn int(&self, cursor: &mut Cursor<'_>) -> Result<Option<i32>, Damage> {
        let Some(value) = self.long(cursor)? else {
            return Ok(None);
        };
        i32::try_from(value)
            .map(Some)
            .map_err(|_| Damage::new(format!("{value} is beyond 32 bits")))
    }

    /// True or false; `None` for NULL.
    pub(crate) fn boolean(&self, cursor: &mut Cursor<'_>) -> Result<Option<bool>, Damage> {
        match self.chosen(cursor)?.kind {
            Kind::Null => Ok(None),
            Kind::Boolean => boolean(cursor).map(Some),
            _ => Err(Damage::new("it is neither true nor false")),
        }
    }

    /// Bytes, or those of a text; `None` for NULL.
    #[inline]
    pub(crate) fn bytes<'a>(&self, cursor: &mut Cursor<'a>) -> Result<Option<&'a [u8]>, Damage> {
        match self.chosen(cursor)?.kind {
            Kind::Null => Ok(None),
            Kind::Bytes | Kind::Text => cursor.bytes().map(Some),
            Kind::Fixed(width) => cursor.take(width).map(Some),
            _ => Err(Damage::new("it is neither text nor bytes")),
        }
    }

    /// Text; `None` for NULL.
    pub(crate) fn text<'a>(&self, cursor: &mut Cursor<'a>) -> Result<Option<&'a str>, Damage> {
        self.bytes(cursor)?.map(text).transpose()
    }

    /// Hands each item of an array with its type to `read`; false for NULL.
    #[inline]
    pub(crate) fn items<'a>(
        &self,
        cursor: &mut Cursor<'a>,
        mut read: impl FnMut(&Node, &mut Cursor<'a>) -> Result<(), Damage>,
    ) -> Result<bool, Damage> {
        let item = match &self.chosen(cursor)?.kind {
            Kind::Null => return Ok(false),
            Kind::Array(item) => item,
            _ => return Err(Damage::new("it is no array")),
        };
        loop {
            let count = cursor.block_count(item.size.least)?;
            if count == 0 {
                return Ok(true);
            }
            for _ in 0..count {
                read(item, cursor)?;
            }
        }
    }

    /// Hands each pair of a map with whole numbers as keys, which Avro knows as an array of records, to `read`; false for NULL.
    #[inline]
    pub(crate) fn pairs<'a>(
        &self,
        cursor: &mut Cursor<'a>,
        mut read: impl FnMut(i32, &Node, &mut Cursor<'a>) -> Result<(), Damage>,
    ) -> Result<bool, Damage> {
        self.items(cursor, |item, cursor| {
            let Kind::Record(fields) = &item.kind else {
                return Err(Damage::new("it is no map of pairs"));
            };
            // Key and value in this order, whatever their names.
            let [key, value] = &fields[..] else {
                return Err(Damage::new("its pairs are not of two fields"));
            };
            let key = key.node.int(cursor)?;
            let key = key.ok_or_else(|| Damage::new("a key is NULL"))?;
            read(key, &value.node, cursor)
        })
    }

    /// The fields of a record.
    pub(crate) fn record(&self) -> Result<&[Field], Damage> {
        match &self.kind {
            Kind::Record(fields) => Ok(fields),
            _ => Err(Damage::new("it is no record")),
        }
    }

    /// Gets past a value.
    pub(crate) fn skip(&self, cursor: &mut Cursor<'_>) -> Result<(), Damage> {
        match &self.kind {
            Kind::Null => Ok(()),
            Kind::Boolean => boolean(cursor).map(drop),
            Kind::Int | Kind::Long | Kind::Enum => cursor.long().map(drop),
            Kind::Float => cursor.take(4).map(drop),
            Kind::Double => cursor.take(8).map(drop),
            Kind::Bytes | Kind::Text => cursor.bytes().map(drop),
            Kind::Fixed(width) => cursor.take(*width).map(drop),
            Kind::Array(_) => self.items(cursor, Node::skip).map(drop),
            Kind::Map(value) => loop {
                let count = cursor.block_count(1 + value.size.least)?;
                if count == 0 {
                    return Ok(());
                }
                for _ in 0..count {
                    cursor.bytes()?;
                    value.skip(cursor)?;
                }
            },
            Kind::Union(_) => self.chosen(cursor)?.skip(cursor),
            Kind::Record(fields) => fields.iter().try_for_each(|field| field.node.skip(cursor)),
        }
    }
}

#[inline]
pub(crate) fn int(cursor: &mut Cursor<'_>) -> Result<i32, Damage> {
    let value = cursor.long()?;
    i32::try_from(value).map_err(|_| Damage::new(format!("{value} is beyond 32 bits")))
}

pub(crate) fn boolean(cursor: &mut Cursor<'_>) -> Result<bool, Damage> {
    match cursor.byte()? {
        0 => Ok(false),
        1 => Ok(true),
        other => Err(Damage::new(format!("a boolean is {other}"))),
    }
}

/// Compiles types, keeping those with names for later mentions.
#[derive(Default)]
struct Compiler {
    named: HashMap<String, Node>,
}

impl Compiler {
    fn node(&mut self, json: &Value, namespace: &str) -> Result<Node, Damage> {
        match json {
            Value::String(name) => self.of_name(name, namespace),
            Value::Array(variants) => self.union(variants, namespace),
            Value::Object(object) => match object.get("type") {
                Some(Value::String(name)) => {
                    let mut node = self.of_object(name, object, namespace)?;
                    node.logical = logical(object).or(node.logical);
                    Ok(node)
                }
                Some(inner) => self.node(inner, namespace),
                None => Err(Damage::new("a type has no name")),
            },
            _ => Err(Damage::new("a type is neither name nor object nor array")),
        }
    }

    fn of_name(&self, name: &str, namespace: &str) -> Result<Node, Damage> {
        let (kind, least) = match name {
            "null" => (Kind::Null, 0),
            "boolean" => (Kind::Boolean, 1),
            "int" => (Kind::Int, 1),
            "long" => (Kind::Long, 1),
            "float" => (Kind::Float, 4),
            "double" => (Kind::Double, 8),
            "bytes" => (Kind::Bytes, 1),
            "string" => (Kind::Text, 1),
            other => {
                let known = self.named.get(&full_name(other, namespace));
                return known
                    .or_else(|| self.named.get(other))
                    .cloned()
                    .ok_or_else(|| Damage::new(format!("a type '{other}' is not defined")));
            }
        };
        Node::new(kind, Size { least, ..LEAF })
    }

    fn of_object(
        &mut self,
        kind: &str,
        object: &serde_json::Map<String, Value>,
        namespace: &str,
    ) -> Result<Node, Damage> {
        let inner = |name: &str| {
            object
                .get(name)
                .ok_or_else(|| Damage::new(format!("the type {kind} lacks '{name}'")))
        };
        match kind {
            "array" => {
                let item = self.node(inner("items")?, namespace)?;
                if item.size.least == 0 {
                    return Err(Damage::new("an array of items without any bytes"));
                }
                let size = around(item.size, 1);
                Node::new(Kind::Array(Arc::new(item)), size)
            }
            "map" => {
                let value = self.node(inner("values")?, namespace)?;
                let size = around(value.size, 1);
                Node::new(Kind::Map(Arc::new(value)), size)
            }
            "record" | "error" => self.record(object, namespace),
            "enum" => {
                let node = Node::new(Kind::Enum, LEAF)?;
                self.define(object, namespace, &node);
                Ok(node)
            }
            "fixed" => {
                let width = inner("size")?
                    .as_u64()
                    .and_then(|w| usize::try_from(w).ok());
                let width = width.ok_or_else(|| Damage::new("a fixed type has no size"))?;
                let size = Size {
                    least: width,
                    ..LEAF
                };
                let mut node = Node::new(Kind::Fixed(width), size)?;
                node.logical = logical(object);
                self.define(object, namespace, &node);
                Ok(node)
            }
            name => self.of_name(name, namespace),
        }
    }

    fn record(
        &mut self,
        object: &serde_json::Map<String, Value>,
        namespace: &str,
    ) -> Result<Node, Damage> {
        let own = namespace_of(object, namespace);
        let fields = object.get("fields").and_then(Value::as_array);
        let fields = fields.ok_or_else(|| Damage::new("a record has no fields"))?;
        let mut compiled = Vec::with_capacity(fields.len());
        let mut size = Size {
            least: 0,
            types: 1,
            depth: 1,
        };
        for field in fields {
            let name = field.get("name").and_then(Value::as_str);
            let name = name.ok_or_else(|| Damage::new("a field has no name"))?;
            let kind = field.get("type").unwrap_or(&Value::Null);
            let node = self.node(kind, &own).map_err(|damage| damage.of(name))?;
            size.least = size.least.saturating_add(node.size.least);
            size.types = size.types.saturating_add(node.size.types);
            size.depth = size.depth.max(node.size.depth + 1);
            let id = field.get("field-id").and_then(Value::as_i64);
            compiled.push(Field {
                name: name.to_string(),
                id: id.and_then(|id| i32::try_from(id).ok()),
                node,
            });
            if size.types > MOST_TYPES {
                return Err(Damage::new("the schema is too large"));
            }
        }
        let node = Node::new(Kind::Record(compiled.into()), size)?;
        // Defined when it is complete: nothing in a manifest contains itself.
        self.define(object, namespace, &node);
        Ok(node)
    }

    fn union(&mut self, variants: &[Value], namespace: &str) -> Result<Node, Damage> {
        let mut compiled = Vec::with_capacity(variants.len());
        let mut size = LEAF;
        for variant in variants {
            let node = self.node(variant, namespace)?;
            if matches!(node.kind, Kind::Union(_)) {
                return Err(Damage::new("a union holds a union"));
            }
            size.types = size.types.saturating_add(node.size.types);
            size.depth = size.depth.max(node.size.depth + 1);
            compiled.push(node);
        }
        Node::new(Kind::Union(compiled.into()), size)
    }

    fn define(&mut self, object: &serde_json::Map<String, Value>, namespace: &str, node: &Node) {
        let Some(name) = object.get("name").and_then(Value::as_str) else {
            return;
        };
        let namespace = namespace_of(object, namespace);
        self.named.insert(full_name(name, &namespace), node.clone());
    }
}

fn around(inner: Size, least: usize) -> Size {
    Size {
        least,
        types: inner.types.saturating_add(1),
        depth: inner.depth + 1,
    }
}

fn namespace_of(object: &serde_json::Map<String, Value>, outer: &str) -> String {
    let name = object.get("name").and_then(Value::as_str);
    match (
        name.and_then(|name| name.rsplit_once('.')),
        object.get("namespace").and_then(Value::as_str),
    ) {
        (Some((namespace, _)), _) | (None, Some(namespace)) => namespace.to_string(),
        (None, None) => outer.to_string(),
    }
}

fn full_name(name: &str, namespace: &str) -> String {
    match namespace.is_empty() || name.contains('.') {
        true => name.to_string(),
        false => format!("{namespace}.{name}"),
    }
}

fn logical(object: &serde_json::Map<String, Value>) -> Option<Logical> {
    match object.get("logicalType")?.as_str()? {
        "decimal" => Some(Logical::Decimal),
        "uuid" => Some(Logical::Uuid),
        "timestamp-millis" | "local-timestamp-millis" | "time-millis" => Some(Logical::Millis),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(json: &str) -> Result<Node, Damage> {
        Node::parse(json.as_bytes())
    }

    #[test]
    fn types_are_found_by_the_names_they_were_given() {
        let node = parse(
            r#"{"type":"record","name":"a.outer","fields":[
                {"name":"x","type":{"type":"fixed","name":"f","size":16,"logicalType":"uuid"},"field-id":7},
                {"name":"y","type":["null","f"]},
                {"name":"z","type":"a.f"}]}"#,
        )
        .unwrap();
        let Kind::Record(fields) = &node.kind else {
            panic!("{node:?}")
        };
        assert_eq!(fields[0].id, Some(7));
        assert_eq!(fields[2].node.logical, Some(Logical::Uuid));
        assert_eq!(node.least_bytes(), 16 + 1 + 16);
    }

    #[test]
    fn a_union_may_name_its_types_in_any_order() {
        let node = parse(r#"["long","null"]"#).unwrap();
        assert_eq!(node.long(&mut Cursor::new(&[0, 84])).unwrap(), Some(42));
        assert_eq!(node.long(&mut Cursor::new(&[2])).unwrap(), None);
        assert!(node.long(&mut Cursor::new(&[4, 0])).is_err());
    }

    #[test]
    fn hostile_schemas_are_refused() {
        let mut deep = r#""int""#.to_string();
        for _ in 0..60 {
            deep = format!(r#"{{"type":"array","items":{deep}}}"#);
        }
        assert!(parse(&deep).is_err());
        // Each record mentions the one before it twice.
        let mut fields = r#"{"name":"f0","type":{"type":"record","name":"r0","fields":[{"name":"x","type":"int"}]}}"#.to_string();
        for i in 1..40 {
            let before = i - 1;
            fields += &format!(
                r#",{{"name":"f{i}","type":{{"type":"record","name":"r{i}","fields":[{{"name":"x","type":"r{before}"}},{{"name":"y","type":"r{before}"}}]}}}}"#
            );
        }
        assert!(
            parse(&format!(
                r#"{{"type":"record","name":"r","fields":[{fields}]}}"#
            ))
            .is_err()
        );
        assert!(parse(r#"{"type":"array","items":"null"}"#).is_err());
        assert!(
            parse(r#"{"type":"record","name":"r","fields":[{"name":"x","type":"r"}]}"#).is_err()
        );
        assert!(parse("{").is_err());
    }
}
