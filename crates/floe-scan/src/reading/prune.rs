//! Which row groups of a file may hold rows that match, by their statistics, and what is left to check on their rows.

use std::ops::Range;
use std::sync::Arc;

use iceberg::spec::Literal;
use parquet::basic::{ColumnOrder, Type as PhysicalType};
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use parquet::file::statistics::Statistics;

use super::bounds;
use super::fields::{FileField, FileKind};
use super::layout::FileSchema;
use super::offsets::Offsets;
use super::spec::ReadSpec;
use crate::error::{Error, ErrorKind, Result};
use crate::predicate::datum::typed;
use crate::predicate::{Bound, Column, Knowledge, Known, Predicate};
use crate::task::FileTask;

/// A row group that may hold rows that match.
#[derive(Debug)]
pub(super) struct Survivor {
    pub(super) index: usize,
    /// Position in the file of its first row.
    pub(super) first: u64,
    pub(super) rows: usize,
    /// What is left to check on its rows.
    pub(super) residual: Option<Arc<Predicate>>,
    /// Rows that may match, as ranges that do not touch; `None`: any.
    pub(super) selected: Option<Vec<Range<usize>>>,
    /// Where the pages of its columns lie, as far as that was asked.
    pub(super) offsets: Offsets,
}

/// The row groups of a file that may hold rows that match the task's residual.
pub(super) fn groups(
    spec: &ReadSpec,
    task: &FileTask,
    footer: &ParquetMetaData,
    schema: &FileSchema,
) -> Result<Vec<Survivor>> {
    let mut first = 0u64;
    let mut survivors = Vec::with_capacity(footer.num_row_groups());
    for (index, group) in footer.row_groups().iter().enumerate() {
        let rows = usize::try_from(group.num_rows()).map_err(|_| {
            Error::new(
                ErrorKind::Corrupt,
                format!("{}: a row group has less than no rows", task.file.path),
            )
        })?;
        let known = GroupKnowledge {
            spec,
            task,
            footer,
            group,
            schema,
        };
        let residual = match &task.residual {
            Some(residual) => match residual.residual(&known) {
                Predicate::Constant(true) => Some(None),
                Predicate::Constant(false) => None,
                left => Some(Some(Arc::new(left))),
            },
            None => Some(None),
        };
        if let Some(residual) = residual
            && rows > 0
        {
            survivors.push(Survivor {
                index,
                first,
                rows,
                residual,
                selected: None,
                offsets: Offsets::default(),
            });
        }
        first += rows as u64;
    }
    Ok(survivors)
}

/// What the statistics of a row group tell.
pub(super) struct GroupKnowledge<'a> {
    pub(super) spec: &'a ReadSpec,
    pub(super) task: &'a FileTask,
    pub(super) footer: &'a ParquetMetaData,
    pub(super) group: &'a RowGroupMetaData,
    pub(super) schema: &'a FileSchema,
}

impl Knowledge for GroupKnowledge<'_> {
    fn column(&self, column: &Column) -> Known {
        match self.schema.leaf(column.id) {
            Some(field) => self.of_chunk(column, field).unwrap_or_default(),
            None => self.of_missing(column),
        }
    }
}

impl GroupKnowledge<'_> {
    fn of_chunk(&self, column: &Column, field: &FileField) -> Option<Known> {
        let leaf = field.leaves.start;
        let chunk = self.group.columns().get(leaf)?;
        let statistics = chunk.statistics()?;
        let mut known = Known::anything();
        if let Some(nulls) = statistics.null_count_opt() {
            let values = u64::try_from(chunk.num_values()).ok()?;
            known.nulls = nulls > 0;
            known.values = nulls < values;
            known.nans = known.values;
            if nulls > values || values != u64::try_from(self.group.num_rows()).ok()? {
                return None;
            }
        }
        let FileKind::Leaf {
            arrow,
            int96: false,
        } = &field.kind
        else {
            return Some(known);
        };
        if !self.is_ordered(leaf, statistics) {
            return Some(known);
        }
        let bound = |bytes: Option<&[u8]>, exact| {
            let datum = bounds::read(bytes?, statistics.physical_type(), arrow, &column.kind)?;
            Some(Bound { datum, exact })
        };
        let lower = bound(statistics.min_bytes_opt(), statistics.min_is_exact());
        let upper = bound(statistics.max_bytes_opt(), statistics.max_is_exact());
        Some(known.between(lower, upper))
    }

    /// Whether its bounds are in the order of the column's values. The bounds of old were in that of signed numbers, whatever the type.
    fn is_ordered(&self, leaf: usize, statistics: &Statistics) -> bool {
        use PhysicalType::{DOUBLE, FLOAT, INT32, INT64};
        if statistics.is_min_max_deprecated() {
            return matches!(statistics.physical_type(), INT32 | INT64 | FLOAT | DOUBLE);
        }
        self.has_ordered_pages(leaf)
    }

    /// The same of the bounds in its page index, which are younger than those of old.
    pub(super) fn has_ordered_pages(&self, leaf: usize) -> bool {
        let orders = self.footer.file_metadata().column_orders();
        let order = orders.and_then(|orders| orders.get(leaf));
        matches!(order, Some(ColumnOrder::TYPE_DEFINED_ORDER(_)))
    }

    /// A column that the file lacks has one value. In a struct it is NULL too where the struct is, so nothing is known.
    fn of_missing(&self, column: &Column) -> Known {
        let fields = self.spec.schema.as_struct().fields();
        let Some(field) = fields.iter().find(|field| field.id == column.id) else {
            return Known::anything();
        };
        if self.schema.fields.iter().any(|f| f.id == Some(column.id)) {
            return Known::anything();
        }
        let mut constants = self.task.constants.iter();
        let value = match constants.find(|(id, _)| *id == column.id) {
            Some((_, value)) => value.as_ref(),
            None => field.initial_default.as_ref(),
        };
        match value {
            None => Known::null(),
            Some(Literal::Primitive(literal)) => match typed(&column.kind, literal) {
                Some(datum) => Known::value(datum),
                None => Known::anything(),
            },
            Some(_) => Known::anything(),
        }
    }
}
