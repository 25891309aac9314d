//! Rows in a form to compare: values exact to the bit, types up to Arrow's variants of one.

use std::fmt::Write;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int32Type, Int64Type,
    Time64MicrosecondType, TimestampMicrosecondType, TimestampNanosecondType,
};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Schema, TimeUnit};

/// All rows of some batches, each as text, sorted.
#[derive(Debug, PartialEq)]
pub(super) struct Rows(Vec<String>);

impl Rows {
    /// The rows of `batches`; columns are written as `schema`, the expected one, has them.
    pub(super) fn of(batches: &[RecordBatch], schema: &Schema) -> Self {
        let mut rows: Vec<String> = batches
            .iter()
            .flat_map(|batch| (0..batch.num_rows()).map(|row| text_of(batch, row, schema)))
            .collect();
        rows.sort_unstable();
        Self(rows)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Rows here that are not in `others`, each as often as it is missing there.
    pub(super) fn beyond(&self, others: &Self) -> Vec<&str> {
        let mut others = others.0.iter().peekable();
        let mut beyond = Vec::new();
        for row in &self.0 {
            while others.next_if(|other| *other < row).is_some() {}
            if others.next_if(|other| *other == row).is_none() {
                beyond.push(row.as_str());
            }
        }
        beyond
    }
}

/// What is different between two schemas; `None` if they hold the same columns.
pub(super) fn difference(found: &Schema, expected: &Schema) -> Option<String> {
    let same = found.fields().len() == expected.fields().len()
        && found
            .fields()
            .iter()
            .zip(expected.fields())
            .all(|(found, expected)| {
                found.name() == expected.name() && alike(found.data_type(), expected.data_type())
            });
    (!same).then(|| {
        let [found, expected] = [found, expected].map(|schema| {
            let fields = schema.fields().iter();
            let columns: Vec<_> = fields
                .map(|field| format!("{}: {}", field.name(), plain_type(field.data_type())))
                .collect();
            columns.join(", ")
        });
        format!("columns: expected {expected}; found {found}")
    })
}

/// An engine that has no type for them shows UUIDs as text.
fn alike(found: &DataType, expected: &DataType) -> bool {
    plain_type(found) == plain_type(expected)
        || (*found == DataType::FixedSizeBinary(16) && plain_type(expected) == "string")
}

/// A type's name without what is a matter of encoding: offsets, nullability, names inside lists and maps, units.
fn plain_type(kind: &DataType) -> String {
    match kind {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "string".to_owned(),
        DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView
        | DataType::FixedSizeBinary(_) => "binary".to_owned(),
        DataType::Timestamp(_, zone) => match zone {
            Some(_) => "timestamptz".to_owned(),
            None => "timestamp".to_owned(),
        },
        DataType::List(item) | DataType::LargeList(item) => {
            format!("list<{}>", plain_type(item.data_type()))
        }
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(entry) => {
                let [key, value] = [0, 1].map(|i| plain_type(entry[i].data_type()));
                format!("map<{key}, {value}>")
            }
            other => panic!("a map of {other}"),
        },
        DataType::Struct(fields) => {
            let fields: Vec<_> = fields
                .iter()
                .map(|field| format!("{}: {}", field.name(), plain_type(field.data_type())))
                .collect();
            format!("struct<{}>", fields.join(", "))
        }
        other => other.to_string(),
    }
}

fn text_of(batch: &RecordBatch, row: usize, schema: &Schema) -> String {
    let mut text = String::new();
    for (index, column) in batch.columns().iter().enumerate() {
        if index > 0 {
            text.push_str(" | ");
        }
        let is_text = schema
            .fields()
            .get(index)
            .is_some_and(|field| plain_type(field.data_type()) == "string");
        match column.as_fixed_size_binary_opt() {
            Some(uuids) if is_text && uuids.value_length() == 16 && uuids.is_valid(row) => {
                let uuid = uuid::Uuid::from_slice(uuids.value(row)).unwrap();
                write!(text, "{:?}", uuid.to_string()).unwrap();
            }
            _ => write_value(&mut text, column, row),
        }
    }
    text
}

fn write_value(text: &mut String, array: &ArrayRef, row: usize) {
    if array.is_null(row) {
        text.push_str("NULL");
        return;
    }
    match array.data_type() {
        DataType::Null => text.push_str("NULL"),
        DataType::Boolean => write!(text, "{}", array.as_boolean().value(row)).unwrap(),
        DataType::Int32 => {
            write!(text, "{}", array.as_primitive::<Int32Type>().value(row)).unwrap()
        }
        DataType::Int64 => {
            write!(text, "{}", array.as_primitive::<Int64Type>().value(row)).unwrap()
        }
        // Debug keeps -0.0 apart, and all NaNs together.
        DataType::Float32 => {
            write!(text, "{:?}", array.as_primitive::<Float32Type>().value(row)).unwrap();
        }
        DataType::Float64 => {
            write!(text, "{:?}", array.as_primitive::<Float64Type>().value(row)).unwrap();
        }
        DataType::Decimal128(..) => {
            let decimals = array.as_primitive::<Decimal128Type>();
            text.push_str(&decimals.value_as_string(row));
        }
        DataType::Date32 => {
            write!(
                text,
                "day {}",
                array.as_primitive::<Date32Type>().value(row)
            )
            .unwrap();
        }
        DataType::Time64(TimeUnit::Microsecond) => {
            let times = array.as_primitive::<Time64MicrosecondType>();
            write!(text, "time {} us", times.value(row)).unwrap();
        }
        DataType::Timestamp(unit, _) => {
            let nanoseconds = match unit {
                TimeUnit::Microsecond => {
                    i128::from(array.as_primitive::<TimestampMicrosecondType>().value(row)) * 1000
                }
                TimeUnit::Nanosecond => {
                    i128::from(array.as_primitive::<TimestampNanosecondType>().value(row))
                }
                other => panic!("a timestamp in {other:?}s"),
            };
            write!(text, "instant {nanoseconds} ns").unwrap();
        }
        DataType::Utf8 => write!(text, "{:?}", array.as_string::<i32>().value(row)).unwrap(),
        DataType::LargeUtf8 => write!(text, "{:?}", array.as_string::<i64>().value(row)).unwrap(),
        DataType::Utf8View => write!(text, "{:?}", array.as_string_view().value(row)).unwrap(),
        DataType::Binary => write_bytes(text, array.as_binary::<i32>().value(row)),
        DataType::LargeBinary => write_bytes(text, array.as_binary::<i64>().value(row)),
        DataType::BinaryView => write_bytes(text, array.as_binary_view().value(row)),
        DataType::FixedSizeBinary(_) => write_bytes(text, array.as_fixed_size_binary().value(row)),
        DataType::List(_) => write_items(text, &array.as_list::<i32>().value(row)),
        DataType::LargeList(_) => write_items(text, &array.as_list::<i64>().value(row)),
        DataType::Struct(fields) => {
            text.push('{');
            for (field, column) in fields.iter().zip(array.as_struct().columns()) {
                write!(text, "{}: ", field.name()).unwrap();
                write_value(text, column, row);
                text.push(' ');
            }
            text.push('}');
        }
        DataType::Map(..) => write_entries(text, array, row),
        other => panic!("values of {other} are not known here"),
    }
}

fn write_bytes(text: &mut String, bytes: &[u8]) {
    text.push_str("0x");
    for byte in bytes {
        write!(text, "{byte:02x}").unwrap();
    }
}

fn write_items(text: &mut String, items: &ArrayRef) {
    text.push('[');
    for row in 0..items.len() {
        write_value(text, items, row);
        text.push(' ');
    }
    text.push(']');
}

/// The entries of a map have no order.
fn write_entries(text: &mut String, array: &ArrayRef, row: usize) {
    let entries = array.as_map().value(row);
    let mut entries: Vec<String> = (0..entries.len())
        .map(|entry| {
            let mut text = String::new();
            write_value(&mut text, entries.column(0), entry);
            text.push_str(" -> ");
            write_value(&mut text, entries.column(1), entry);
            text
        })
        .collect();
    entries.sort_unstable();
    write!(text, "<{}>", entries.join(", ")).unwrap();
}
