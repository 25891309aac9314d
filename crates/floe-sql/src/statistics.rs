//! What a plan tells DataFusion of the rows to come: their number, and least and greatest values where files tell them.

use arrow_schema::{DataType, SchemaRef as ArrowSchemaRef};
use datafusion::common::stats::Precision;
use datafusion::common::{ColumnStatistics, ScalarValue, Statistics};
use floe_scan::task::{FileTask, Metrics};
use iceberg::spec::{Datum, PrimitiveLiteral};

/// Statistics of the rows of these files, over columns of these field ids.
pub(crate) fn of<'a>(
    tasks: impl Iterator<Item = &'a FileTask> + Clone,
    ids: &[i32],
    schema: &ArrowSchemaRef,
    limit: Option<usize>,
) -> Statistics {
    let mut statistics = Statistics::new_unknown(schema);
    let rows = tasks.clone().try_fold(0usize, |sum, task| {
        sum.checked_add(usize::try_from(task.file.rows).ok()?)
    });
    let Some(rows) = rows else {
        return statistics;
    };
    let exact = limit.is_none() && tasks.clone().all(gives_all_rows);
    let rows_told = limit.map_or(rows, |limit| rows.min(limit));
    statistics.num_rows = precise(rows_told, exact);
    if limit.is_none() {
        for (column, (id, field)) in ids.iter().zip(schema.fields()).enumerate() {
            statistics.column_statistics[column] =
                column_statistics(tasks.clone(), *id, field.data_type(), exact);
        }
    }
    statistics
}

/// Whether a scan of the file gives exactly the rows that its manifest counts.
fn gives_all_rows(task: &FileTask) -> bool {
    task.deletes.is_empty() && task.residual.is_none()
}

fn precise<T: std::fmt::Debug + Clone + PartialEq + Eq + PartialOrd>(
    value: T,
    exact: bool,
) -> Precision<T> {
    if exact {
        Precision::Exact(value)
    } else {
        Precision::Inexact(value)
    }
}

fn column_statistics<'a>(
    tasks: impl Iterator<Item = &'a FileTask> + Clone,
    id: i32,
    kind: &DataType,
    exact: bool,
) -> ColumnStatistics {
    let mut statistics = ColumnStatistics::new_unknown();
    let metrics = |task: &'a FileTask| {
        let at = task.file.metrics.binary_search_by_key(&id, |(id, _)| *id);
        at.ok().map(|at| &task.file.metrics[at].1)
    };
    let nulls = tasks
        .clone()
        .try_fold(0, |sum, task| Some(sum + metrics(task)?.nulls?));
    if let Some(nulls) = nulls.and_then(|nulls| usize::try_from(nulls).ok()) {
        statistics.null_count = precise(nulls, exact);
    }
    if !bounds_are_values(kind) {
        return statistics;
    }
    let bound = |of: fn(&Metrics) -> &Option<Datum>, greater: bool| {
        let mut best: Option<ScalarValue> = None;
        for task in tasks.clone() {
            let told = metrics(task)?;
            if told.nulls == Some(task.file.rows) {
                continue;
            }
            let value = scalar(of(told).as_ref()?, kind)?;
            let better = best
                .as_ref()
                .is_none_or(|best| (value > *best) == greater && value != *best);
            if better {
                best = Some(value);
            }
        }
        best
    };
    if let Some(least) = bound(|metrics| &metrics.lower, false) {
        statistics.min_value = precise(least, exact);
    }
    if let Some(greatest) = bound(|metrics| &metrics.upper, true) {
        statistics.max_value = precise(greatest, exact);
    }
    statistics
}

/// Whether writers give the least and greatest value themselves as bounds: not of text, which they cut, nor of floats, which hide NaN.
fn bounds_are_values(kind: &DataType) -> bool {
    matches!(
        kind,
        DataType::Int32
            | DataType::Int64
            | DataType::Date32
            | DataType::Timestamp(..)
            | DataType::Decimal128(..)
    )
}

fn scalar(datum: &Datum, kind: &DataType) -> Option<ScalarValue> {
    use arrow_schema::TimeUnit::{Microsecond, Nanosecond};
    match (datum.literal(), kind) {
        (PrimitiveLiteral::Int(v), DataType::Int32) => Some(ScalarValue::Int32(Some(*v))),
        (PrimitiveLiteral::Int(v), DataType::Date32) => Some(ScalarValue::Date32(Some(*v))),
        (PrimitiveLiteral::Long(v), DataType::Int64) => Some(ScalarValue::Int64(Some(*v))),
        (PrimitiveLiteral::Long(v), DataType::Timestamp(Microsecond, zone)) => {
            Some(ScalarValue::TimestampMicrosecond(Some(*v), zone.clone()))
        }
        (PrimitiveLiteral::Long(v), DataType::Timestamp(Nanosecond, zone)) => {
            Some(ScalarValue::TimestampNanosecond(Some(*v), zone.clone()))
        }
        (PrimitiveLiteral::Int128(v), DataType::Decimal128(precision, scale)) => {
            Some(ScalarValue::Decimal128(Some(*v), *precision, *scale))
        }
        _ => None,
    }
}
