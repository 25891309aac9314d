//! PyIceberg's `.pyiceberg.yaml`: found where PyIceberg looks, read as PyIceberg reads it (every scalar is the text that
//! stands there). Its other settings are PyIceberg's own and are passed over.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::{
    DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor,
};

use super::catalog::{Catalogs, merge};
use super::environment::Environment;
use super::error::{Error, Result};
use super::settings::Settings;
use super::source::{Found, Place, Source};
use super::{paths, toml_file};

/// A file to read, and how it was found.
pub(super) struct Candidate {
    pub(super) path: PathBuf,
    pub(super) place: Place,
}

/// PyIceberg's search: `PYICEBERG_HOME`, the home directory, the working directory; the first that says anything. A file
/// that was `named` is read for itself.
pub(super) fn find(environment: &Environment, named: Option<&Path>) -> Result<Option<Candidate>> {
    let places = [
        (
            environment
                .get("PYICEBERG_HOME")
                .map(|dir| environment.cwd.join(dir)),
            Place::Named,
        ),
        (environment.home.clone(), Place::Home),
        (Some(environment.cwd.clone()), Place::WorkingDirectory),
    ];
    for (dir, place) in places {
        let Some(path) = dir.map(|dir| paths::plain(&dir.join(".pyiceberg.yaml"))) else {
            continue;
        };
        if path.is_file() && Some(path.as_path()) != named && !parse(&path)?.is_empty() {
            return Ok(Some(Candidate { path, place }));
        }
    }
    Ok(None)
}

/// Whether a file is in this form, by its name.
pub(super) fn is_yaml(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension == "yaml" || extension == "yml")
}

/// Take over what the file says.
pub(super) fn apply(
    path: &Path,
    source: &Source,
    settings: &mut Settings,
    catalogs: &mut Catalogs,
) -> Result<()> {
    let base = path.parent().unwrap_or(Path::new("/"));
    let wrong = |key: &str, what: &str| Error::new(format!("{}: `{key}` {what}", path.display()));
    for (key, node) in parse(path)? {
        match (key.to_lowercase().as_str(), node) {
            ("default-catalog", Node::Text(name)) if !name.is_empty() => {
                settings.default_catalog = Some(Found::new(name, source.clone()));
            }
            ("catalog", Node::Map(all)) => {
                for (name, node) in all {
                    let Node::Map(node) = node else {
                        return Err(wrong(
                            &format!("catalog.{name}"),
                            "must hold the catalog's properties",
                        ));
                    };
                    let mut properties = Vec::new();
                    flatten("", node, &mut properties);
                    for (key, value) in &mut properties {
                        *value = paths::resolve_property(&key.to_lowercase(), value, base);
                    }
                    merge(catalogs, &name, properties, source)?;
                }
            }
            ("catalog", Node::Text(text)) if !text.is_empty() => {
                return Err(wrong("catalog", "must hold catalogs by name"));
            }
            _ => {}
        }
    }
    Ok(())
}

/// A YAML document of maps and text.
enum Node {
    Text(String),
    Map(Vec<(String, Node)>),
}

fn flatten(prefix: &str, map: Vec<(String, Node)>, into: &mut Vec<(String, String)>) {
    for (key, node) in map {
        let key = format!("{prefix}{key}");
        match node {
            Node::Text(text) => into.push((key, text)),
            Node::Map(below) => flatten(&format!("{key}."), below, into),
        }
    }
}

fn parse(path: &Path) -> Result<Vec<(String, Node)>> {
    let text = toml_file::read(path)?.ok_or_else(|| {
        Error::new(format!("there is no configuration file {}", path.display()))
            .with_hint("it was named by --config or FLOE_CONFIG")
    })?;
    let wrong = |e: serde_yaml_ng::Error| {
        let place = e.location().map_or(String::new(), |at| {
            format!(", line {} column {}", at.line(), at.column())
        });
        // The parser's own text may quote a value.
        Error::new(format!(
            "{} is not valid YAML of names and values{place}",
            path.display()
        ))
    };
    let says_nothing = |line: &str| line.is_empty() || line.starts_with('#') || line == "---";
    if text.lines().all(|line| says_nothing(line.trim())) {
        return Ok(Vec::new());
    }
    // Once for the shape, once for the text: a parsed number or switch no longer tells how it was written.
    let shape: Shape = serde_yaml_ng::from_str(&text).map_err(wrong)?;
    if matches!(shape, Shape::Nothing) {
        return Ok(Vec::new());
    }
    match Shaped(&shape)
        .deserialize(serde_yaml_ng::Deserializer::from_str(&text))
        .map_err(wrong)?
    {
        Node::Map(map) => Ok(map),
        Node::Text(_) => Err(Error::new(format!(
            "{} holds no settings by name",
            path.display()
        ))),
    }
}

/// What stands where in a document, without the values themselves: those may be larger than any number type.
enum Shape {
    /// The values' shapes, in the document's order.
    Map(Vec<Shape>),
    List,
    Scalar,
    Nothing,
}

impl<'de> Deserialize<'de> for Shape {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ShapeVisitor)
    }
}

struct ShapeVisitor;

impl<'de> Visitor<'de> for ShapeVisitor {
    type Value = Shape;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("names and values")
    }

    fn visit_unit<E>(self) -> Result<Shape, E> {
        Ok(Shape::Nothing)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Shape, E> {
        Ok(Shape::Scalar)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Shape, E> {
        Ok(Shape::Scalar)
    }

    fn visit_i128<E>(self, _: i128) -> Result<Shape, E> {
        Ok(Shape::Scalar)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Shape, E> {
        Ok(Shape::Scalar)
    }

    fn visit_u128<E>(self, _: u128) -> Result<Shape, E> {
        Ok(Shape::Scalar)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Shape, E> {
        Ok(Shape::Scalar)
    }

    fn visit_str<E>(self, _: &str) -> Result<Shape, E> {
        Ok(Shape::Scalar)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Shape, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Shape::List)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Shape, A::Error> {
        let mut values = Vec::new();
        while map.next_key::<IgnoredAny>()?.is_some() {
            values.push(map.next_value()?);
        }
        Ok(Shape::Map(values))
    }
}

/// Reads a document whose shape is known: maps as maps, all else as the text that stands there.
struct Shaped<'s>(&'s Shape);

impl<'de> DeserializeSeed<'de> for Shaped<'_> {
    type Value = Node;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        match self.0 {
            Shape::Map(_) => deserializer.deserialize_map(self),
            Shape::List => Err(D::Error::custom("a list where one value is expected")),
            Shape::Scalar | Shape::Nothing => String::deserialize(deserializer).map(Node::Text),
        }
    }
}

impl<'de> Visitor<'de> for Shaped<'_> {
    type Value = Node;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("names and values")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        let shapes = match self.0 {
            Shape::Map(shapes) => shapes.as_slice(),
            _ => &[],
        };
        let mut shapes = shapes.iter();
        let mut nodes = Vec::new();
        while let Some(key) = map.next_key::<String>()? {
            let shape = shapes
                .next()
                .ok_or_else(|| A::Error::custom("two readings of one file differ"))?;
            nodes.push((key, map.next_value_seed(Shaped(shape))?));
        }
        Ok(Node::Map(nodes))
    }
}
