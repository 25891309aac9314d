//! The columns of one file while they are made: names, types and values in one place, so that schema and rows agree.

use std::sync::Arc;

use anyhow::{Context, Result};
use arrow_array::{
    ArrayRef, BooleanArray, Date32Array, Decimal128Array, Float64Array, Int32Array, Int64Array,
    RecordBatch, StringArray, TimestampMicrosecondArray,
};
use arrow_schema::SchemaRef as ArrowSchemaRef;
use iceberg::spec::{NestedField, PrimitiveType, Schema, Type};

/// Digits after the point of every amount of money.
pub(super) const MONEY_SCALE: u32 = 2;
const MONEY_PRECISION: u32 = 12;

/// Columns in order.
#[derive(Default)]
pub(super) struct Columns {
    fields: Vec<(String, PrimitiveType)>,
    arrays: Vec<ArrayRef>,
}

impl Columns {
    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.fields.len()
    }

    pub(super) fn longs(
        &mut self,
        name: &str,
        values: impl IntoIterator<Item = impl Into<Option<i64>>>,
    ) {
        let array = Int64Array::from_iter(values.into_iter().map(Into::into));
        self.push(name, PrimitiveType::Long, Arc::new(array));
    }

    pub(super) fn ints(&mut self, name: &str, values: impl IntoIterator<Item = i32>) {
        let array = Int32Array::from_iter_values(values);
        self.push(name, PrimitiveType::Int, Arc::new(array));
    }

    pub(super) fn doubles(
        &mut self,
        name: &str,
        values: impl IntoIterator<Item = impl Into<Option<f64>>>,
    ) {
        let array = Float64Array::from_iter(values.into_iter().map(Into::into));
        self.push(name, PrimitiveType::Double, Arc::new(array));
    }

    pub(super) fn booleans(
        &mut self,
        name: &str,
        values: impl IntoIterator<Item = impl Into<Option<bool>>>,
    ) {
        let array: BooleanArray = values.into_iter().map(Into::into).collect();
        self.push(name, PrimitiveType::Boolean, Arc::new(array));
    }

    pub(super) fn strings<S: AsRef<str>>(
        &mut self,
        name: &str,
        values: impl IntoIterator<Item = Option<S>>,
    ) {
        let array = StringArray::from_iter(values);
        self.push(name, PrimitiveType::String, Arc::new(array));
    }

    /// Microseconds since 1970, in UTC.
    pub(super) fn times(
        &mut self,
        name: &str,
        values: impl IntoIterator<Item = impl Into<Option<i64>>>,
    ) {
        let array = TimestampMicrosecondArray::from_iter(values.into_iter().map(Into::into));
        self.push(
            name,
            PrimitiveType::Timestamptz,
            Arc::new(array.with_timezone("+00:00")),
        );
    }

    /// Days since 1970.
    pub(super) fn dates(&mut self, name: &str, values: impl IntoIterator<Item = i32>) {
        let array = Date32Array::from_iter_values(values);
        self.push(name, PrimitiveType::Date, Arc::new(array));
    }

    /// Cents, as decimal(12, 2).
    pub(super) fn money(&mut self, name: &str, cents: impl IntoIterator<Item = i64>) -> Result<()> {
        let array = Decimal128Array::from_iter_values(cents.into_iter().map(i128::from))
            .with_precision_and_scale(MONEY_PRECISION as u8, MONEY_SCALE as i8)?;
        let kind = PrimitiveType::Decimal {
            precision: MONEY_PRECISION,
            scale: MONEY_SCALE,
        };
        self.push(name, kind, Arc::new(array));
        Ok(())
    }

    fn push(&mut self, name: &str, kind: PrimitiveType, array: ArrayRef) {
        self.fields.push((name.to_owned(), kind));
        self.arrays.push(array);
    }

    /// All columns optional, ids from 1 in order.
    pub(super) fn schema(&self) -> Result<Schema> {
        let fields = self.fields.iter().zip(1..).map(|((name, kind), id)| {
            Arc::new(NestedField::optional(
                id,
                name,
                Type::Primitive(kind.clone()),
            ))
        });
        Ok(Schema::builder().with_fields(fields).build()?)
    }

    /// The rows, under the Arrow form of the table's schema.
    pub(super) fn batch(self, schema: ArrowSchemaRef) -> Result<RecordBatch> {
        RecordBatch::try_new(schema, self.arrays).context("the columns of a generated file")
    }
}
