//! What partition values tell of columns: those of one file, and those that a manifest list sums up for a whole manifest.

use iceberg::spec::{
    FieldSummary, Literal, PartitionField, PartitionSpec, PrimitiveLiteral, PrimitiveType, Schema,
    Struct, Transform,
};

use super::Column;
use super::bucket::may_be_in;
use super::datum::is_float;
use super::inverse::{of_range, of_value, value_kind};
use super::known::{Knowledge, Known};
use super::metrics::{bounds, read_bound};

/// What is known of a file's rows by its partition values.
pub struct PartitionKnowledge<'a> {
    schema: &'a Schema,
    fields: Vec<(&'a PartitionField, Option<&'a Literal>)>,
}

impl<'a> PartitionKnowledge<'a> {
    /// From the values of a file that was written with this spec; columns are those of the schema that is read.
    /// Values that do not fit the spec tell nothing.
    pub fn new(schema: &'a Schema, spec: &'a PartitionSpec, partition: &'a Struct) -> Self {
        let fields = match spec.fields().len() == partition.fields().len() {
            true => spec.fields().iter().zip(partition.iter()).collect(),
            false => Vec::new(),
        };
        Self { schema, fields }
    }
}

impl Knowledge for PartitionKnowledge<'_> {
    fn column(&self, column: &Column) -> Known {
        known_of(column, self.schema, &self.fields, |field, value| {
            of_value(field.transform, &column.kind, *value)
        })
    }

    fn may_equal(&self, column: &Column, datum: &iceberg::spec::Datum) -> bool {
        let fields = self.fields.iter();
        let mut own = fields.filter(|(field, _)| field.source_id == column.id);
        own.all(|(field, value)| match (field.transform, value) {
            (
                Transform::Bucket(buckets),
                Some(Literal::Primitive(PrimitiveLiteral::Int(bucket))),
            ) => may_be_in(datum, buckets, &(*bucket..=*bucket)),
            _ => true,
        })
    }
}

/// What all partition fields of a column tell together.
fn known_of<T>(
    column: &Column,
    schema: &Schema,
    fields: &[(&PartitionField, T)],
    tells: impl Fn(&PartitionField, &T) -> Known,
) -> Known {
    if !is_of(column, schema) {
        return Known::anything();
    }
    fields
        .iter()
        .filter(|(field, _)| field.source_id == column.id)
        .map(|(field, told)| tells(field, told))
        .fold(Known::anything(), Known::and)
}

/// What is known of all rows of a manifest by the summary of its partition values.
pub struct SummaryKnowledge<'a> {
    schema: &'a Schema,
    fields: Vec<(&'a PartitionField, &'a FieldSummary)>,
}

impl<'a> SummaryKnowledge<'a> {
    /// From the summaries of a manifest that was written with this spec; columns are those of the schema that is read.
    /// Summaries that do not fit the spec tell nothing.
    pub fn new(schema: &'a Schema, spec: &'a PartitionSpec, summaries: &'a [FieldSummary]) -> Self {
        let fields = match spec.fields().len() == summaries.len() {
            true => spec.fields().iter().zip(summaries).collect(),
            false => Vec::new(),
        };
        Self { schema, fields }
    }
}

impl Knowledge for SummaryKnowledge<'_> {
    fn column(&self, column: &Column) -> Known {
        known_of(column, self.schema, &self.fields, |field, summary| {
            of_summary(field.transform, &column.kind, summary)
        })
    }

    fn may_equal(&self, column: &Column, datum: &iceberg::spec::Datum) -> bool {
        let fields = self.fields.iter();
        let mut own = fields.filter(|(field, _)| field.source_id == column.id);
        own.all(|(field, summary)| match field.transform {
            Transform::Bucket(buckets) => match bucket_range(summary) {
                Some(range) => may_be_in(datum, buckets, &range),
                None => true,
            },
            _ => true,
        })
    }
}

/// A condition bound to another schema is not answered.
fn is_of(column: &Column, schema: &Schema) -> bool {
    schema
        .field_by_id(column.id)
        .is_some_and(|field| field.field_type.as_primitive_type() == Some(&column.kind))
}

fn of_summary(transform: Transform, kind: &PrimitiveType, summary: &FieldSummary) -> Known {
    if matches!(transform, Transform::Void | Transform::Unknown) {
        return Known::anything();
    }
    let bounded = summary.lower_bound.is_some() || summary.upper_bound.is_some();
    let may_be_nan = is_float(kind) && summary.contains_nan != Some(false);
    let known = Known {
        nulls: summary.contains_null,
        // Bounds are absent only if all partition values are NULL or NaN.
        values: bounded || !summary.contains_null || may_be_nan,
        nans: may_be_nan,
        ..Known::anything()
    };
    let of = value_kind(transform, kind);
    let read = |bytes: &Option<_>| {
        let bytes: &iceberg::spec::ByteBuf = bytes.as_ref()?;
        read_bound(bytes, &of)
    };
    let (lower, upper) = (read(&summary.lower_bound), read(&summary.upper_bound));
    if transform == Transform::Identity {
        let (lower, upper) = bounds(lower, upper);
        return known.between(lower, upper);
    }
    let range = match (&lower, &upper) {
        (Some(lower), Some(upper)) => of_range(transform, kind, lower, upper),
        _ => None,
    };
    let (lower, upper) = range.unzip();
    let (lower, upper) = bounds(lower, upper);
    known.between(lower, upper)
}

fn bucket_range(summary: &FieldSummary) -> Option<std::ops::RangeInclusive<i32>> {
    let read = |bytes: &iceberg::spec::ByteBuf| {
        let datum = read_bound(bytes, &PrimitiveType::Int)?;
        match datum.literal() {
            PrimitiveLiteral::Int(bucket) => Some(*bucket),
            _ => None,
        }
    };
    let (lower, upper) = (
        read(summary.lower_bound.as_ref()?)?,
        read(summary.upper_bound.as_ref()?)?,
    );
    (lower <= upper).then_some(lower..=upper)
}
