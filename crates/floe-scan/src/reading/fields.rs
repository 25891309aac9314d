//! The fields of a Parquet file as a tree, each with its field id: the file's own, or one that the table's name mapping gives.
//! Ids are never given by position alone.

use std::borrow::Borrow;
use std::ops::Range;

use arrow_schema::{DataType, Field, Fields};
use iceberg::spec::{MappedField, NameMapping, Schema};
use parquet::arrow::PARQUET_FIELD_ID_META_KEY;
use parquet::basic::Type as PhysicalType;
use parquet::schema::types::SchemaDescriptor;

use crate::error::{Error, ErrorKind, Result};

/// A field of a file.
#[derive(Clone, Debug)]
pub(super) struct FileField {
    pub(super) id: Option<i32>,
    pub(super) name: String,
    pub(super) kind: FileKind,
    /// Its leaf columns in the file.
    pub(super) leaves: Range<usize>,
}

/// What a field of a file is.
#[derive(Clone, Debug)]
pub(super) enum FileKind {
    Leaf {
        /// The type that it decodes to unless told otherwise.
        arrow: DataType,
        /// Whether it is one of the twelve-byte timestamps of old.
        int96: bool,
    },
    Struct(Vec<FileField>),
    List(Box<FileField>),
    /// Key and value.
    Map(Box<[FileField; 2]>),
}

impl FileField {
    /// Fields right below it.
    pub(super) fn children(&self) -> &[FileField] {
        match &self.kind {
            FileKind::Leaf { .. } => &[],
            FileKind::Struct(children) => children,
            FileKind::List(element) => std::slice::from_ref(element),
            FileKind::Map(entry) => entry.as_slice(),
        }
    }

    fn children_mut(&mut self) -> &mut [FileField] {
        match &mut self.kind {
            FileKind::Leaf { .. } => &mut [],
            FileKind::Struct(children) => children,
            FileKind::List(element) => std::slice::from_mut(element),
            FileKind::Map(entry) => entry.as_mut_slice(),
        }
    }

    fn has_ids(&self) -> bool {
        self.id.is_some() || self.children().iter().any(Self::has_ids)
    }
}

/// The top-level fields of a file, with ids.
pub(super) fn of_file(
    location: &str,
    parquet: &SchemaDescriptor,
    arrow: &Fields,
    table: &Schema,
    mapping: Option<&NameMapping>,
) -> Result<Vec<FileField>> {
    let mut leaf = 0;
    let mut fields: Vec<_> = arrow
        .iter()
        .map(|field| tree(field, parquet, &mut leaf))
        .collect();
    if leaf != parquet.num_columns() {
        return Err(Error::new(
            ErrorKind::Unsupported,
            format!(
                "can't read {location}: of its {} leaf columns only {leaf} have an Arrow counterpart",
                parquet.num_columns()
            ),
        ));
    }
    if fields.iter().any(FileField::has_ids) {
        return Ok(fields);
    }
    match mapping {
        Some(mapping) => name(&mut fields, mapping.fields()),
        None => agree(location, &mut fields, table)?,
    }
    Ok(fields)
}

fn tree(field: &Field, parquet: &SchemaDescriptor, leaf: &mut usize) -> FileField {
    let first = *leaf;
    let mut below = |field: &Field| tree(field, parquet, leaf);
    let kind = match field.data_type() {
        DataType::Struct(fields) => {
            FileKind::Struct(fields.iter().map(|field| below(field)).collect())
        }
        DataType::List(element) => FileKind::List(Box::new(below(element))),
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(entry) if entry.len() == 2 => {
                FileKind::Map(Box::new([below(&entry[0]), below(&entry[1])]))
            }
            _ => FileKind::Struct(Vec::new()),
        },
        arrow => {
            let int96 = first < parquet.num_columns()
                && parquet.column(first).physical_type() == PhysicalType::INT96;
            *leaf += 1;
            FileKind::Leaf {
                arrow: arrow.clone(),
                int96,
            }
        }
    };
    let id = field.metadata().get(PARQUET_FIELD_ID_META_KEY);
    FileField {
        id: id.and_then(|id| id.parse().ok()),
        name: field.name().clone(),
        kind,
        leaves: first..*leaf,
    }
}

/// Gives the ids of the table's name mapping. Elements, keys and values go by those names, whatever the writer called them.
fn name<M: Borrow<MappedField>>(fields: &mut [FileField], mapping: &[M]) {
    for field in fields {
        let found = mapping
            .iter()
            .map(Borrow::borrow)
            .find(|mapped| mapped.names().contains(&field.name));
        if let Some(mapped) = found {
            field.id = mapped.field_id();
            name_below(field, mapped.fields());
        }
    }
}

fn name_below<M: Borrow<MappedField>>(field: &mut FileField, mapping: &[M]) {
    let names: &[&str] = match &field.kind {
        FileKind::Leaf { .. } => return,
        FileKind::Struct(_) => return name(field.children_mut(), mapping),
        FileKind::List(_) => &["element"],
        FileKind::Map(_) => &["key", "value"],
    };
    for (child, name) in field.children_mut().iter_mut().zip(names) {
        let found = mapping
            .iter()
            .map(Borrow::borrow)
            .find(|mapped| mapped.names().iter().any(|known| known == name));
        if let Some(mapped) = found {
            child.id = mapped.field_id();
            name_below(child, mapped.fields());
        }
    }
}

/// Without ids and without a mapping, Iceberg in Java numbers the top-level columns from one. That is done here only where names say the same.
fn agree(location: &str, fields: &mut [FileField], table: &Schema) -> Result<()> {
    let columns = table.as_struct().fields();
    for (id, field) in (1..).zip(fields.iter_mut()) {
        let by_id = columns.iter().find(|column| column.id == id);
        let by_name = columns.iter().find(|column| column.name == field.name);
        let agreed = match (by_id, by_name) {
            (None, None) => continue,
            (Some(by_id), Some(by_name)) => by_id.id == by_name.id,
            _ => false,
        };
        if !agreed || !matches!(field.kind, FileKind::Leaf { .. }) {
            return Err(Error::new(
                ErrorKind::Unsupported,
                format!(
                    "can't tell which columns of the table those of {location} are: it has no field ids, and its column '{}' is not surely the table's",
                    field.name
                ),
            )
            .with_hint("set the table's property schema.name-mapping.default"));
        }
        field.id = Some(id);
    }
    Ok(())
}
