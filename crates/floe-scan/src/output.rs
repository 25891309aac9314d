//! From the batches that are read to those that go out: rows by conditions on metadata columns, columns in the order asked for.
//! A reader hands out a table's columns first and those of metadata behind them.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::SchemaRef as ArrowSchemaRef;
use arrow_select::filter::filter_record_batch;

use crate::columns::{Chosen, described_by_id};
use crate::error::{Error, ErrorKind, Result};
use crate::predicate::{Predicate, Rows};
use crate::reading::{MetadataColumn, ReadSpec};

/// What happens to a batch before it goes out.
#[derive(Clone, Debug)]
pub(crate) struct Output {
    /// A condition that names columns of metadata, which only the reader's batches have.
    after: Option<Arc<Predicate>>,
    /// Positions in the reader's batches of the columns that go out; `None`: all, as they are.
    columns: Option<Vec<usize>>,
    schema: ArrowSchemaRef,
    /// Field ids of the reader's columns.
    ids: Vec<i32>,
}

/// What a reader is asked for, so that an output can be made of it.
#[derive(Debug)]
pub(crate) struct Asked {
    /// Field ids of columns of the table.
    pub(crate) ids: Vec<i32>,
    pub(crate) metadata: Vec<MetadataColumn>,
}

impl Asked {
    /// The chosen columns, and those that `after` needs.
    pub(crate) fn of(
        chosen: &[Chosen],
        after: Option<&Predicate>,
        top_level: impl Fn(i32) -> Option<i32>,
    ) -> Result<Self> {
        let mut asked = Self {
            ids: Vec::new(),
            metadata: Vec::new(),
        };
        for column in chosen {
            match column {
                // A name may stand twice.
                Chosen::Field(id) if asked.ids.contains(id) => {}
                Chosen::Field(id) => asked.ids.push(*id),
                Chosen::Metadata(column) => asked.add(column),
            }
        }
        for id in after.map(Predicate::columns).unwrap_or_default() {
            match (described_by_id(id), top_level(id)) {
                (Some(column), _) => asked.add(&column),
                (None, Some(top)) if top == id => {
                    if !asked.ids.contains(&id) {
                        asked.ids.push(id);
                    }
                }
                _ => {
                    return Err(Error::new(
                        ErrorKind::Unsupported,
                        "a condition can't mix fields of structs with metadata columns other than by AND",
                    ));
                }
            }
        }
        Ok(asked)
    }

    fn add(&mut self, column: &MetadataColumn) {
        if self.place_of(column).is_none() {
            self.metadata.push(column.clone());
        }
    }

    fn place_of(&self, column: &MetadataColumn) -> Option<usize> {
        let id = column.definition().id;
        self.metadata
            .iter()
            .position(|known| known.definition().id == id)
    }
}

impl Output {
    pub(crate) fn new(
        asked: &Asked,
        chosen: &[Chosen],
        after: Option<Arc<Predicate>>,
        spec: &ReadSpec,
    ) -> Result<Self> {
        let place = |column: &Chosen| match column {
            Chosen::Field(id) => asked.ids.iter().position(|known| known == id),
            Chosen::Metadata(column) => asked.place_of(column).map(|at| asked.ids.len() + at),
        };
        let columns: Vec<usize> = chosen.iter().filter_map(place).collect();
        let read = spec.arrow_schema();
        let as_read = columns.iter().copied().eq(0..read.fields().len());
        let schema = match as_read {
            true => read.clone(),
            false => Arc::new(read.project(&columns).map_err(broken)?),
        };
        let metadata = asked.metadata.iter().map(|column| column.definition().id);
        Ok(Self {
            after,
            columns: (!as_read).then_some(columns),
            schema,
            ids: asked.ids.iter().copied().chain(metadata).collect(),
        })
    }

    /// The schema of what goes out.
    pub(crate) fn schema(&self) -> &ArrowSchemaRef {
        &self.schema
    }

    /// Whether batches go out as they are read.
    pub(crate) fn is_as_read(&self) -> bool {
        self.after.is_none() && self.columns.is_none()
    }

    /// Whether rows are left out.
    pub(crate) fn filters(&self) -> bool {
        self.after.is_some()
    }

    /// A batch as it goes out.
    pub(crate) fn of(&self, mut batch: RecordBatch) -> Result<RecordBatch> {
        if let Some(after) = &self.after {
            let truths = after.evaluate(&Read {
                batch: &batch,
                ids: &self.ids,
            })?;
            batch = filter_record_batch(&batch, &truths).map_err(broken)?;
        }
        match &self.columns {
            Some(columns) => batch.project(columns).map_err(broken),
            None => Ok(batch),
        }
    }
}

fn broken(source: arrow_schema::ArrowError) -> Error {
    Error::new(
        ErrorKind::Unexpected,
        "can't choose rows and columns of a batch",
    )
    .with_source(source)
}

/// A batch as conditions see it.
struct Read<'a> {
    batch: &'a RecordBatch,
    ids: &'a [i32],
}

impl Rows for Read<'_> {
    fn len(&self) -> usize {
        self.batch.num_rows()
    }

    fn column(&self, id: i32) -> Result<ArrayRef> {
        let at = self.ids.iter().position(|known| *known == id);
        at.map(|at| self.batch.column(at).clone()).ok_or_else(|| {
            Error::new(
                ErrorKind::Unexpected,
                format!("a condition asks for field id {id}, which was not read"),
            )
        })
    }
}
