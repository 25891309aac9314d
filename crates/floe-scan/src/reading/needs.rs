//! Which fields one file must be read for: those that go out, those of its residual condition, those of equality deletes.

use std::collections::HashMap;
use std::sync::Arc;

use iceberg::arrow::type_to_arrow_type;
use iceberg::spec::{NestedField, NestedFieldRef, Schema, StructType, Type};

use super::layout::{FileSchema, Layout, Wanted};
use super::spec::ReadSpec;
use crate::error::{Error, ErrorKind, Result};

/// What the tasks of a scan differ in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Asked {
    /// Field ids of the residual's columns.
    pub(super) residual: Vec<i32>,
    /// Field ids of each set of equality deletes.
    pub(super) equality: Vec<Vec<i32>>,
}

/// Fields to read, and what each is for: positions are those in `wanted`.
#[derive(Debug)]
pub(super) struct Needs {
    pub(super) wanted: Vec<Wanted>,
    /// Of each column that goes out.
    pub(super) outputs: Vec<usize>,
    /// Of each metadata column, if a file may hold it.
    pub(super) stored: Vec<Option<usize>>,
    /// Of the residual's columns, by the top-level field's id.
    pub(super) residual: Vec<(i32, usize)>,
    /// Of each set of equality deletes, its columns.
    pub(super) equality: Vec<Vec<KeyColumn>>,
}

/// A column of an equality delete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KeyColumn {
    /// Position of the top-level column.
    pub(super) at: usize,
    /// How many structs deep it lies in it; each of them has this one field.
    pub(super) depth: usize,
}

impl Needs {
    pub(super) fn new(spec: &ReadSpec, paths: &Paths, asked: &Asked) -> Result<Self> {
        let mut wanted = Vec::new();
        let outputs = spec
            .columns
            .iter()
            .map(|id| top_level(&mut wanted, &spec.schema, *id))
            .collect::<Result<_>>()?;
        let stored = spec
            .metadata
            .iter()
            .map(|column| {
                column.stored().map(|stored| {
                    wanted.push(stored);
                    wanted.len() - 1
                })
            })
            .collect();
        let mut residual = Vec::new();
        for id in &asked.residual {
            let Some((top, _)) = paths.of(*id) else {
                return Err(Error::new(
                    ErrorKind::NotFound,
                    format!(
                        "a condition asks for field id {id}, which the schema doesn't have as a column"
                    ),
                ));
            };
            let at = top_level(&mut wanted, &spec.schema, top)?;
            if !residual.contains(&(top, at)) {
                residual.push((top, at));
            }
        }
        let equality = asked
            .equality
            .iter()
            .map(|ids| keys(&mut wanted, spec, ids))
            .collect::<Result<_>>()?;
        Ok(Self {
            wanted,
            outputs,
            stored,
            residual,
            equality,
        })
    }

    /// Whether the field at this position goes out.
    pub(super) fn goes_out(&self, at: usize) -> bool {
        self.outputs.contains(&at) || self.stored.contains(&Some(at))
    }

    /// Positions of what decides which rows go out.
    fn filters(&self) -> Vec<usize> {
        let keys = self.equality.iter().flatten().map(|key| key.at);
        let mut filters: Vec<_> = self
            .residual
            .iter()
            .map(|(_, at)| *at)
            .chain(keys)
            .collect();
        filters.sort_unstable();
        filters.dedup();
        filters
    }
}

/// The columns of one set of equality deletes, as fields to read; in the order of `ids`.
pub(super) fn keys(
    wanted: &mut Vec<Wanted>,
    spec: &ReadSpec,
    ids: &[i32],
) -> Result<Vec<KeyColumn>> {
    let key = |id: &i32| {
        let pruned = spec
            .schemas
            .iter()
            .find_map(|schema| prune(schema.as_struct(), *id));
        let (field, depth) = pruned.ok_or_else(|| {
            Error::new(
                ErrorKind::Unsupported,
                format!("an equality delete names field id {id}, which no schema of the table has as a primitive column"),
            )
        })?;
        let same = wanted.iter().position(|known| {
            known.field.id == field.id && known.field.field_type == field.field_type
        });
        let at = match same {
            Some(at) => at,
            None => push(wanted, field)?,
        };
        Ok(KeyColumn { at, depth })
    };
    ids.iter().map(key).collect()
}

/// The top-level field that leads to the primitive field `id`, cut down to it, and how deep it lies.
fn prune(fields: &StructType, id: i32) -> Option<(NestedFieldRef, usize)> {
    fields.fields().iter().find_map(|field| {
        let (kind, depth) = match field.field_type.as_ref() {
            Type::Primitive(kind) if field.id == id => (Type::Primitive(kind.clone()), 0),
            Type::Struct(inner) => {
                let (inner, depth) = prune(inner, id)?;
                (Type::Struct(StructType::new(vec![inner])), depth + 1)
            }
            _ => return None,
        };
        let mut pruned = NestedField::optional(field.id, &field.name, kind);
        pruned.initial_default = field.initial_default.clone().filter(|_| depth == 0);
        Some((Arc::new(pruned), depth))
    })
}

fn top_level(wanted: &mut Vec<Wanted>, schema: &Schema, id: i32) -> Result<usize> {
    let field = schema.as_struct().fields().iter().find(|f| f.id == id);
    let field = field.ok_or_else(|| {
        Error::new(
            ErrorKind::NotFound,
            format!("the schema has no top-level column of field id {id}"),
        )
    })?;
    let same = |known: &Wanted| Arc::ptr_eq(&known.field, field);
    match wanted.iter().position(same) {
        Some(at) => Ok(at),
        None => push(wanted, field.clone()),
    }
}

fn push(wanted: &mut Vec<Wanted>, field: NestedFieldRef) -> Result<usize> {
    let arrow = type_to_arrow_type(&field.field_type)
        .map_err(|source| Error::read("can't express a column in Arrow", source))?;
    wanted.push(Wanted { field, arrow });
    Ok(wanted.len() - 1)
}

/// For each primitive field that is not below a list or map: its top-level field, and the positions that lead down to it.
#[derive(Debug)]
pub(super) struct Paths(HashMap<i32, (i32, Vec<usize>)>);

impl Paths {
    pub(super) fn new(schema: &Schema) -> Self {
        fn walk(
            fields: &StructType,
            top: Option<i32>,
            path: &[usize],
            paths: &mut HashMap<i32, (i32, Vec<usize>)>,
        ) {
            for (position, field) in fields.fields().iter().enumerate() {
                let mut path = path.to_vec();
                if top.is_some() {
                    path.push(position);
                }
                let top = top.unwrap_or(field.id);
                if path.is_empty() || matches!(field.field_type.as_ref(), Type::Primitive(_)) {
                    paths.insert(field.id, (top, path.clone()));
                }
                if let Type::Struct(inner) = field.field_type.as_ref() {
                    walk(inner, Some(top), &path, paths);
                }
            }
        }
        let mut paths = HashMap::new();
        walk(schema.as_struct(), None, &[], &mut paths);
        Self(paths)
    }

    pub(super) fn of(&self, id: i32) -> Option<(i32, &[usize])> {
        self.0.get(&id).map(|(top, path)| (*top, path.as_slice()))
    }
}

/// How files of one schema are read for one set of needs.
#[derive(Debug)]
pub(super) struct Reading {
    pub(super) needs: Arc<Needs>,
    pub(super) passes: Passes,
}

/// In how many passes.
#[derive(Debug)]
pub(super) enum Passes {
    /// All columns together.
    One(Part),
    /// First what decides which rows go out, then the other columns of those rows.
    Two { filter: Part, rest: Part },
}

/// Some of the wanted fields, and how they are laid out.
#[derive(Debug)]
pub(super) struct Part {
    /// Positions of the wanted fields, in order.
    pub(super) at: Vec<usize>,
    /// In the same order.
    pub(super) layout: Layout,
}

impl Reading {
    /// `file`: the schema of the files; `None` if nothing is to be read of them.
    pub(super) fn new(
        location: &str,
        file: Option<&FileSchema>,
        needs: Arc<Needs>,
    ) -> Result<Self> {
        let part = |at: Vec<usize>| {
            let wanted: Vec<_> = at.iter().map(|at| needs.wanted[*at].clone()).collect();
            let layout = match file {
                Some(file) => Layout::new(location, file, &wanted)?,
                None => Layout::none(),
            };
            Ok(Part { at, layout })
        };
        let filters = needs.filters();
        let others: Vec<_> = (0..needs.wanted.len())
            .filter(|at| !filters.contains(at))
            .collect();
        // Equality deletes alone leave most rows: to find those first, and then to decode around the others, does not pay.
        let passes = match needs.residual.is_empty() || others.is_empty() {
            true => None,
            false => {
                let (filter, rest) = (part(filters)?, part(others)?);
                let both = !filter.layout.leaves.is_empty() && !rest.layout.leaves.is_empty();
                both.then_some(Passes::Two { filter, rest })
            }
        };
        let passes = match passes {
            Some(passes) => passes,
            None => Passes::One(part((0..needs.wanted.len()).collect())?),
        };
        Ok(Self { needs, passes })
    }

    /// The leaf columns that are decoded, each once.
    pub(super) fn leaves(&self) -> Vec<usize> {
        let mut leaves = match &self.passes {
            Passes::One(part) => part.layout.leaves.clone(),
            Passes::Two { filter, rest } => {
                let rest = rest.layout.leaves.iter();
                filter.layout.leaves.iter().chain(rest).copied().collect()
            }
        };
        leaves.sort_unstable();
        leaves.dedup();
        leaves
    }
}
