//! Where the wanted fields lie in one file: which leaf columns to decode, and how they become the table's columns.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Fields};
use iceberg::spec::{NestedFieldRef, Type};
use parquet::arrow::{
    FieldLevels, ProjectionMask, parquet_to_arrow_field_levels, parquet_to_arrow_schema,
};
use parquet::schema::types::{SchemaDescPtr, SchemaDescriptor};

use super::convert::{self, Child, Convert, Missing};
use super::fields::{self, FileField, FileKind};
use super::spec::ReadSpec;
use crate::error::{Error, ErrorKind, Result};

/// Leaf columns from which on two threads may share them.
const WORTH_SHARING: usize = 8;

/// A field that is wanted, and the type that it goes out with.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    pub(super) field: NestedFieldRef,
    pub(super) arrow: DataType,
}

/// A file's schema, taken apart.
#[derive(Debug)]
pub(super) struct FileSchema {
    parquet: SchemaDescPtr,
    arrow: Fields,
    pub(super) fields: Vec<FileField>,
}

impl FileSchema {
    pub(super) fn new(location: &str, parquet: SchemaDescPtr, spec: &ReadSpec) -> Result<Self> {
        let arrow = parquet_to_arrow_schema(&parquet, None).map_err(|source| {
            Error::new(
                ErrorKind::Unsupported,
                format!("can't express the columns of {location} in Arrow"),
            )
            .with_source(source)
        })?;
        let mapping = spec.name_mapping.as_deref();
        let fields = fields::of_file(location, &parquet, &arrow.fields, &spec.schema, mapping)?;
        Ok(Self {
            parquet,
            arrow: arrow.fields,
            fields,
        })
    }

    /// Whether it is that of this file too.
    pub(super) fn is_of(&self, parquet: &SchemaDescriptor) -> bool {
        self.parquet.root_schema() == parquet.root_schema()
    }

    /// Where to split these leaf columns in two, so that all of a top-level column are on one side.
    fn middle(&self, leaves: &[usize]) -> Option<usize> {
        if leaves.len() < WORTH_SHARING {
            return None;
        }
        let starts = self.fields.iter().map(|field| field.leaves.start);
        let places = starts.map(|start| leaves.partition_point(|leaf| *leaf < start));
        let middle = places.min_by_key(|place| place.abs_diff(leaves.len() / 2))?;
        (middle > 0 && middle < leaves.len()).then_some(middle)
    }

    /// The leaf column of a primitive field that is not below a list or map, by its id.
    pub(super) fn leaf(&self, id: i32) -> Option<&FileField> {
        fn find(fields: &[FileField], id: i32) -> Option<&FileField> {
            fields.iter().find_map(|field| match &field.kind {
                FileKind::Leaf { .. } => (field.id == Some(id)).then_some(field),
                FileKind::Struct(children) => find(children, id),
                _ => None,
            })
        }
        find(&self.fields, id)
    }
}

/// How to decode some fields of files with one schema.
#[derive(Debug)]
pub(super) struct Layout {
    /// The leaf columns to decode, in order.
    pub(super) leaves: Vec<usize>,
    /// What Parquet's reader needs to know; `None` if no leaf column is to be decoded.
    pub(super) levels: Option<FieldLevels>,
    /// The same in two parts for two threads, each of about half the leaf columns: those of the first come first. `None` if
    /// there are too few to share.
    pub(super) halves: Option<Box<[FieldLevels; 2]>>,
    /// Where each wanted field comes from.
    pub(super) columns: Vec<Child>,
}

impl Layout {
    /// Of no field.
    pub(super) fn none() -> Self {
        Self {
            leaves: Vec::new(),
            levels: None,
            halves: None,
            columns: Vec::new(),
        }
    }

    /// The layout of these fields in files of this schema.
    pub(super) fn new(location: &str, file: &FileSchema, wanted: &[Wanted]) -> Result<Self> {
        let mut marks = vec![false; file.parquet.num_columns()];
        for want in wanted {
            if let Some(field) = by_id(&file.fields, want.field.id) {
                mark(field, &want.field.field_type, &mut marks);
            }
        }
        let mut plan = Planner {
            location,
            marks: &marks,
            hints: HashMap::new(),
        };
        let columns = wanted
            .iter()
            .map(|want| plan.child(&file.fields, &want.field, &want.arrow))
            .collect::<Result<Vec<_>>>()?;
        let hints = plan.hints;

        let leaves: Vec<_> = (0..marks.len()).filter(|leaf| marks[*leaf]).collect();
        let hinted = (!hints.is_empty()).then(|| with_hints(&file.arrow, &hints, &mut 0));
        let levels = |leaves: &[usize]| {
            let mask = ProjectionMask::leaves(&file.parquet, leaves.iter().copied());
            let levels = parquet_to_arrow_field_levels(&file.parquet, mask, hinted.as_ref());
            levels.map_err(|source| {
                Error::new(
                    ErrorKind::Unsupported,
                    format!("can't express the columns of {location} in Arrow"),
                )
                .with_source(source)
            })
        };
        let halves = match file.middle(&leaves) {
            Some(middle) => {
                let (first, second) = leaves.split_at(middle);
                Some(Box::new([levels(first)?, levels(second)?]))
            }
            None => None,
        };
        Ok(Self {
            levels: (!leaves.is_empty()).then(|| levels(&leaves)).transpose()?,
            halves,
            leaves,
            columns,
        })
    }
}

fn by_id(fields: &[FileField], id: i32) -> Option<&FileField> {
    fields.iter().find(|field| field.id == Some(id))
}

/// Marks the leaf columns of a field that this type wants. At least one below each group: it tells where the group is NULL, and how long a list is.
fn mark(field: &FileField, kind: &Type, marks: &mut [bool]) {
    match (&field.kind, kind) {
        (FileKind::Leaf { .. }, Type::Primitive(_)) => marks[field.leaves.start] = true,
        (FileKind::Struct(children), Type::Struct(wanted)) => {
            for want in wanted.fields() {
                if let Some(child) = by_id(children, want.id) {
                    mark(child, &want.field_type, marks);
                }
            }
        }
        (FileKind::List(element), Type::List(list)) => {
            mark(element, &list.element_field.field_type, marks);
        }
        (FileKind::Map(entry), Type::Map(map)) => {
            mark(&entry[0], &map.key_field.field_type, marks);
            mark(&entry[1], &map.value_field.field_type, marks);
            witness(&entry[0], marks);
            witness(&entry[1], marks);
        }
        // The planner says what is wrong.
        _ => {}
    }
    witness(field, marks);
}

/// Marks a leaf column below a field unless one is marked; better one that is not repeated.
fn witness(field: &FileField, marks: &mut [bool]) {
    fn single(field: &FileField) -> Option<usize> {
        match &field.kind {
            FileKind::Leaf { .. } => Some(field.leaves.start),
            FileKind::Struct(children) => children.iter().find_map(single),
            FileKind::List(_) | FileKind::Map(_) => None,
        }
    }
    let marked = marks[field.leaves.clone()].contains(&true);
    if !marked && !field.leaves.is_empty() {
        marks[single(field).unwrap_or(field.leaves.start)] = true;
    }
}

struct Planner<'a> {
    location: &'a str,
    marks: &'a [bool],
    /// Types to decode leaf columns to.
    hints: HashMap<usize, DataType>,
}

impl Planner<'_> {
    /// Where a field comes from among these fields of the file.
    fn child(
        &mut self,
        siblings: &[FileField],
        want: &NestedFieldRef,
        arrow: &DataType,
    ) -> Result<Child> {
        let decoded = siblings
            .iter()
            .filter(|field| self.marks[field.leaves.clone()].contains(&true));
        for (position, field) in decoded.enumerate() {
            if field.id == Some(want.id) {
                let convert = self.convert(field, want, &want.field_type, arrow)?;
                return Ok(Child::Decoded(position, convert));
            }
        }
        Ok(Child::Missing(Missing {
            field: want.clone(),
            arrow: arrow.clone(),
        }))
    }

    fn convert(
        &mut self,
        field: &FileField,
        want: &NestedFieldRef,
        kind: &Type,
        arrow: &DataType,
    ) -> Result<Convert> {
        let convert = match (&field.kind, kind, arrow) {
            (FileKind::Leaf { arrow: from, int96 }, Type::Primitive(_), to) => {
                let hint = convert::hint(from, *int96, to);
                let convert = convert::leaf(hint.as_ref().unwrap_or(from), to);
                if let Some(hint) = hint {
                    self.hints.insert(field.leaves.start, hint);
                }
                convert
            }
            (FileKind::Struct(children), Type::Struct(kinds), DataType::Struct(fields)) => {
                let children = kinds
                    .fields()
                    .iter()
                    .zip(fields)
                    .map(|(want, field)| self.child(children, want, field.data_type()))
                    .collect::<Result<Vec<_>>>()?;
                Some(Convert::Struct(fields.clone(), children))
            }
            (FileKind::List(element), Type::List(list), DataType::List(field)) => {
                let want = &list.element_field;
                let element = self.convert(element, want, &want.field_type, field.data_type())?;
                Some(Convert::List(field.clone(), Box::new(element)))
            }
            (FileKind::Map(entry), Type::Map(map), DataType::Map(entries, _)) => {
                let DataType::Struct(pair) = entries.data_type() else {
                    return Err(self.unlike(field, want));
                };
                let (key, value) = (&map.key_field, &map.value_field);
                let key = self.convert(&entry[0], key, &key.field_type, pair[0].data_type())?;
                let value =
                    self.convert(&entry[1], value, &value.field_type, pair[1].data_type())?;
                Some(Convert::Map(entries.clone(), Box::new([key, value])))
            }
            _ => None,
        };
        convert.ok_or_else(|| self.unlike(field, want))
    }

    fn unlike(&self, field: &FileField, want: &NestedFieldRef) -> Error {
        let found = match &field.kind {
            FileKind::Leaf { arrow, .. } => arrow.to_string(),
            FileKind::Struct(_) => "a struct".to_owned(),
            FileKind::List(_) => "a list".to_owned(),
            FileKind::Map(_) => "a map".to_owned(),
        };
        Error::new(
            ErrorKind::Corrupt,
            format!(
                "{} holds {found} in column '{}', where the table's '{}' (field id {}) is of type {}",
                self.location, field.name, want.name, want.id, want.field_type
            ),
        )
    }
}

/// The same fields with other types for some leaf columns.
fn with_hints(fields: &Fields, hints: &HashMap<usize, DataType>, leaf: &mut usize) -> Fields {
    let field = |field: &FieldRef| with_hint(field, hints, leaf);
    fields.iter().map(field).collect()
}

fn with_hint(field: &FieldRef, hints: &HashMap<usize, DataType>, leaf: &mut usize) -> FieldRef {
    let kind = match field.data_type() {
        DataType::Struct(fields) => DataType::Struct(with_hints(fields, hints, leaf)),
        DataType::List(element) => DataType::List(with_hint(element, hints, leaf)),
        DataType::Map(entries, sorted) => DataType::Map(with_hint(entries, hints, leaf), *sorted),
        other => {
            let hint = hints.get(leaf).unwrap_or(other);
            *leaf += 1;
            hint.clone()
        }
    };
    Arc::new(Field::new(field.name(), kind, field.is_nullable()))
}
