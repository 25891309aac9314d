//! Files that were written with another schema.

use std::sync::Arc;

use arrow_array::builder::{Int32Builder, ListBuilder, MapBuilder, StringBuilder};
use arrow_array::*;
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field, Fields};
use iceberg::spec::{
    ListType, Literal, MapType, MappedField, NameMapping, NestedField, PrimitiveType, StructType,
    Type,
};
use parquet::data_type::{Int96, Int96Type};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use super::kit::*;
use crate::error::ErrorKind;

#[tokio::test]
async fn columns_are_found_by_id_whatever_they_are_called() {
    let files = Arc::new(Files::new());
    let columns: [(i32, &str, ArrayRef); 3] = [
        (3, "id", Arc::new(Int64Array::from(vec![30, 31]))),
        (1, "old", Arc::new(Int64Array::from(vec![10, 11]))),
        (9, "dropped", Arc::new(StringArray::from(vec!["x", "y"]))),
    ];
    let task = files.data("f", &batch(columns), 10);
    let long = || primitive(PrimitiveType::Long);
    let added = NestedField::required(4, "added", long()).with_initial_default(Literal::long(44));
    let table = schema([
        optional(1, "id", long()),
        optional(2, "missing", long()),
        optional(3, "three", long()),
        Arc::new(added),
    ]);
    let rows = rows(&files, spec(&table, &[4, 3, 2, 1]), vec![task]).await;
    assert_eq!(rows.unwrap(), ["44 30 NULL 10", "44 31 NULL 11"]);
}

#[tokio::test]
async fn a_required_column_that_is_missing_is_an_error() {
    let files = Arc::new(Files::new());
    let ids: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    let task = files.data("f", &batch([(1, "id", ids)]), 10);
    let required = NestedField::required(2, "r", primitive(PrimitiveType::Long));
    let table = schema([Arc::new(required)]);
    let found = error(&files, spec(&table, &[2]), task.clone()).await;
    assert_eq!(found.kind(), ErrorKind::Corrupt);
    assert!(
        whole(&found).contains("the required column 'r' is missing"),
        "{found:?}"
    );
    // Its partition may hold it.
    let task = with_constants(task, vec![(2, Some(Literal::int(7)))]);
    assert_eq!(
        rows(&files, spec(&table, &[2]), vec![task]).await.unwrap(),
        ["7"]
    );
}

#[tokio::test]
async fn constants_of_the_partition_come_before_defaults_and_behind_the_file() {
    let files = Arc::new(Files::new());
    let values: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None]));
    let task = files.data("f", &batch([(1, "a", values)]), 10);
    let constants = vec![
        (1, Some(Literal::long(9))),
        (2, None),
        (3, Some(Literal::string("p"))),
    ];
    let task = with_constants(task, constants);
    let with_default = NestedField::optional(2, "b", primitive(PrimitiveType::Long))
        .with_initial_default(Literal::long(5));
    let table = schema([
        optional(1, "a", primitive(PrimitiveType::Long)),
        Arc::new(with_default),
        optional(3, "c", primitive(PrimitiveType::String)),
    ]);
    let rows = rows(&files, spec(&table, &[1, 2, 3]), vec![task]).await;
    assert_eq!(rows.unwrap(), ["1 NULL p", "NULL NULL p"]);
}

#[tokio::test]
async fn values_are_promoted() {
    let files = Arc::new(Files::new());
    let decimals = Decimal128Array::from(vec![Some(12345), None]);
    let millis = TimestampMillisecondArray::from(vec![Some(-1), None]).with_timezone("UTC");
    let columns: [(i32, &str, ArrayRef); 8] = [
        (
            1,
            "a",
            Arc::new(Int32Array::from(vec![Some(i32::MIN), None])),
        ),
        (2, "b", Arc::new(Float32Array::from(vec![Some(0.1), None]))),
        (
            3,
            "c",
            Arc::new(decimals.with_precision_and_scale(9, 2).unwrap()),
        ),
        (4, "d", Arc::new(Date32Array::from(vec![Some(-1), None]))),
        (5, "e", Arc::new(millis)),
        (
            6,
            "f",
            Arc::new(Time32MillisecondArray::from(vec![Some(1500), None])),
        ),
        (7, "g", Arc::new(Int16Array::from(vec![Some(-7), None]))),
        (
            8,
            "h",
            Arc::new(BinaryArray::from_opt_vec(vec![Some(b"text"), None])),
        ),
    ];
    let task = files.data("f", &batch(columns), 10);
    let decimal = PrimitiveType::Decimal {
        precision: 20,
        scale: 2,
    };
    let table = schema([
        optional(1, "a", primitive(PrimitiveType::Long)),
        optional(2, "b", primitive(PrimitiveType::Double)),
        optional(3, "c", primitive(decimal)),
        optional(4, "d", primitive(PrimitiveType::Timestamp)),
        optional(5, "e", primitive(PrimitiveType::Timestamptz)),
        optional(6, "f", primitive(PrimitiveType::Time)),
        optional(7, "g", primitive(PrimitiveType::Int)),
        optional(8, "h", primitive(PrimitiveType::String)),
    ]);
    let rows = rows(&files, spec(&table, &[1, 2, 3, 4, 5, 6, 7, 8]), vec![task]).await;
    let double = f64::from(0.1f32);
    let first = format!(
        "-2147483648 {double} 123.45 1969-12-31T00:00:00 1969-12-31T23:59:59.999Z 00:00:01.500 -7 text"
    );
    assert_eq!(rows.unwrap(), [first, ["NULL"; 8].join(" ")]);
}

#[tokio::test]
async fn every_type_comes_back() {
    let files = Arc::new(Files::new());
    let uuid = FixedSizeBinaryArray::try_from_iter([[1u8; 16]].into_iter()).unwrap();
    let fixed = FixedSizeBinaryArray::try_from_iter([[2u8; 3]].into_iter()).unwrap();
    let nanos = TimestampNanosecondArray::from(vec![1]);
    let decimal = |precision| {
        let value = Decimal128Array::from(vec![-12]);
        let typed = value.with_precision_and_scale(precision, 1).unwrap();
        Arc::new(typed) as ArrayRef
    };
    let micros = || TimestampMicrosecondArray::from(vec![1]);
    let columns: [(i32, &str, ArrayRef); 14] = [
        (1, "a", Arc::new(BooleanArray::from(vec![true]))),
        (2, "b", Arc::new(Date32Array::from(vec![0]))),
        (3, "c", Arc::new(Time64MicrosecondArray::from(vec![1]))),
        (4, "d", Arc::new(micros())),
        (5, "e", Arc::new(micros().with_timezone("UTC"))),
        (6, "f", Arc::new(nanos.clone())),
        (7, "g", Arc::new(nanos.with_timezone("UTC"))),
        (8, "h", Arc::new(uuid)),
        (9, "i", Arc::new(fixed)),
        (10, "j", Arc::new(BinaryArray::from_vec(vec![b"\xFF\x00"]))),
        (11, "k", decimal(9)),
        (12, "l", decimal(18)),
        (13, "m", decimal(38)),
        (14, "n", Arc::new(Float32Array::from(vec![f32::NAN]))),
    ];
    let kinds = [
        PrimitiveType::Boolean,
        PrimitiveType::Date,
        PrimitiveType::Time,
        PrimitiveType::Timestamp,
        PrimitiveType::Timestamptz,
        PrimitiveType::TimestampNs,
        PrimitiveType::TimestamptzNs,
        PrimitiveType::Uuid,
        PrimitiveType::Fixed(3),
        PrimitiveType::Binary,
        PrimitiveType::Decimal {
            precision: 9,
            scale: 1,
        },
        PrimitiveType::Decimal {
            precision: 18,
            scale: 1,
        },
        PrimitiveType::Decimal {
            precision: 38,
            scale: 1,
        },
        PrimitiveType::Float,
    ];
    let task = files.data("f", &batch(columns), 10);
    let fields = (1..)
        .zip(kinds)
        .map(|(id, kind)| optional(id, &format!("c{id}"), primitive(kind)));
    let table = schema(fields);
    let ids: Vec<_> = (1..=14).collect();
    let rows = rows(&files, spec(&table, &ids), vec![task]).await.unwrap();
    let wanted = "true 1970-01-01 00:00:00.000001 1970-01-01T00:00:00.000001 1970-01-01T00:00:00.000001Z \
        1970-01-01T00:00:00.000000001 1970-01-01T00:00:00.000000001Z 01010101010101010101010101010101 020202 ff00 -1.2 -1.2 -1.2 NaN";
    assert_eq!(rows, [wanted]);
}

#[tokio::test]
async fn a_type_that_evolution_cannot_explain_is_an_error() {
    let files = Arc::new(Files::new());
    let values: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    let task = files.data("f", &batch([(1, "a", values)]), 10);
    for kind in [
        PrimitiveType::Int,
        PrimitiveType::String,
        PrimitiveType::Timestamp,
    ] {
        let table = schema([optional(1, "a", primitive(kind))]);
        let error = error(&files, spec(&table, &[1]), task.clone()).await;
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert!(
            error.to_string().starts_with("f holds Int64 in column 'a'"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn nulls_in_a_required_column_are_an_error() {
    let files = Arc::new(Files::new());
    let values: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None]));
    let task = files.data("f", &batch([(1, "a", values)]), 10);
    let table = schema([Arc::new(NestedField::required(
        1,
        "a",
        primitive(PrimitiveType::Long),
    ))]);
    let error = error(&files, spec(&table, &[1]), task).await;
    assert_eq!(error.kind(), ErrorKind::Corrupt);
}

/// A struct {a: int, b: string} of ids 11 and 12, NULL in its second row.
fn pair() -> StructArray {
    let fields = Fields::from(vec![
        field(11, "a", DataType::Int32, true),
        field(12, "b", DataType::Utf8, true),
    ]);
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int32Array::from(vec![Some(1), None, None])),
        Arc::new(StringArray::from(vec![Some("x"), None, Some("z")])),
    ];
    StructArray::new(
        fields,
        columns,
        Some(NullBuffer::from(vec![true, false, true])),
    )
}

/// {b2: string (12), new: int = 5 (13), a: long (11)}: renamed, added, moved, promoted.
fn evolved() -> StructType {
    let new = NestedField::optional(13, "new", primitive(PrimitiveType::Int));
    StructType::new(vec![
        optional(12, "b2", primitive(PrimitiveType::String)),
        Arc::new(new.with_initial_default(Literal::int(5))),
        optional(11, "a", primitive(PrimitiveType::Long)),
    ])
}

#[tokio::test]
async fn fields_of_structs_come_go_and_move() {
    let files = Arc::new(Files::new());
    let task = files.data("f", &batch([(1, "s", Arc::new(pair()) as ArrayRef)]), 10);
    let table = schema([optional(1, "s", Type::Struct(evolved()))]);
    let found = rows(&files, spec(&table, &[1]), vec![task.clone()]).await;
    let wanted = ["{b2: x, new: 5, a: 1}", "NULL", "{b2: z, new: 5, a: NULL}"];
    assert_eq!(found.unwrap(), wanted);
    // All that it had is gone: still one knows where it is NULL.
    let new = StructType::new(vec![optional(14, "n", primitive(PrimitiveType::Int))]);
    let table = schema([optional(1, "s", Type::Struct(new))]);
    let found = rows(&files, spec(&table, &[1]), vec![task]).await.unwrap();
    assert_eq!(found, ["{n: NULL}", "NULL", "{n: NULL}"]);
}

#[tokio::test]
async fn structs_in_lists_and_maps_evolve_too() {
    let files = Arc::new(Files::new());
    let element = field(21, "element", pair().data_type().clone(), true);
    let offsets = OffsetBuffer::from_lengths([2, 0, 1]);
    let list = ListArray::new(Arc::new(element), offsets, Arc::new(pair()), None);
    let entries = Fields::from(vec![
        field(31, "key", DataType::Utf8, false),
        field(32, "value", pair().data_type().clone(), true),
    ]);
    let keys: ArrayRef = Arc::new(StringArray::from(vec!["k", "l", "m"]));
    let entries = StructArray::new(entries, vec![keys, Arc::new(pair())], None);
    let entry = Arc::new(Field::new("key_value", entries.data_type().clone(), false));
    let offsets = OffsetBuffer::from_lengths([1, 0, 2]);
    let nulls = Some(NullBuffer::from(vec![true, false, true]));
    let map = MapArray::new(entry, offsets, entries, nulls, false);
    let columns: [(i32, &str, ArrayRef); 2] = [(1, "l", Arc::new(list)), (2, "m", Arc::new(map))];
    let task = files.data("f", &batch(columns), 2);

    let list = ListType::new(optional(21, "element", Type::Struct(evolved())));
    let lists = schema([optional(1, "l", Type::List(list))]);
    let found = rows(&files, spec(&lists, &[1]), vec![task.clone()]).await;
    let wanted = [
        "[{b2: x, new: 5, a: 1}, NULL]",
        "[]",
        "[{b2: z, new: 5, a: NULL}]",
    ];
    assert_eq!(found.unwrap(), wanted);

    let key = NestedField::required(31, "key", primitive(PrimitiveType::String));
    let value = optional(32, "value", Type::Struct(evolved()));
    let map = MapType::new(Arc::new(key), value);
    let maps = schema([optional(2, "m", Type::Map(map))]);
    let found = rows(&files, spec(&maps, &[2]), vec![task]).await;
    let wanted = [
        "{k: {b2: x, new: 5, a: 1}}",
        "NULL",
        "{l: NULL, m: {b2: z, new: 5, a: NULL}}",
    ];
    assert_eq!(found.unwrap(), wanted);
}

/// A file without ids: id, tags: list<int>, props: map<string, int>.
fn nameless() -> RecordBatch {
    let mut tags = ListBuilder::new(Int32Builder::new());
    tags.append_value([Some(1), Some(2)]);
    let mut props = MapBuilder::new(None, StringBuilder::new(), Int32Builder::new());
    props.keys().append_value("k");
    props.values().append_value(3);
    props.append(true).unwrap();
    let columns: [(&str, ArrayRef); 3] = [
        ("ID", Arc::new(Int64Array::from(vec![7]))),
        ("tags", Arc::new(tags.finish())),
        ("props", Arc::new(props.finish())),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

#[tokio::test]
async fn names_are_mapped_where_a_file_has_no_ids() {
    let files = Arc::new(Files::new());
    let task = files.data("f", &nameless(), 10);
    let int = || primitive(PrimitiveType::Int);
    let list = ListType::new(optional(4, "element", int()));
    let key = NestedField::required(5, "key", primitive(PrimitiveType::String));
    let map = MapType::new(Arc::new(key), optional(6, "value", int()));
    let table = schema([
        optional(1, "tags", Type::List(list)),
        optional(2, "props", Type::Map(map)),
        optional(3, "id", primitive(PrimitiveType::Long)),
    ]);
    let mapped = |id, name: &str, below| MappedField::new(Some(id), vec![name.into()], below);
    let mapping = NameMapping::new(vec![
        mapped(1, "tags", vec![mapped(4, "element", vec![])]),
        mapped(
            2,
            "props",
            vec![mapped(5, "key", vec![]), mapped(6, "value", vec![])],
        ),
        MappedField::new(Some(3), vec!["id".into(), "ID".into()], vec![]),
    ]);
    let with = spec(&table, &[1, 2, 3]).with_name_mapping(Some(Arc::new(mapping)));
    let found = rows(&files, with, vec![task.clone()]).await.unwrap();
    assert_eq!(found, ["[1, 2] {k: 3} 7"]);
    let without = error(&files, spec(&table, &[1, 2, 3]), task).await;
    assert_eq!(without.kind(), ErrorKind::Unsupported);
    assert!(
        without
            .hint()
            .unwrap()
            .contains("schema.name-mapping.default")
    );
}

#[tokio::test]
async fn without_ids_and_mapping_names_and_numbers_must_agree() {
    let files = Arc::new(Files::new());
    let columns: [(&str, ArrayRef); 2] = [
        ("a", Arc::new(Int64Array::from(vec![1]))),
        ("b", Arc::new(Int64Array::from(vec![2]))),
    ];
    let task = files.data("f", &RecordBatch::try_from_iter(columns).unwrap(), 10);
    let long = || primitive(PrimitiveType::Long);
    let agreed = schema([optional(2, "b", long()), optional(1, "a", long())]);
    let found = rows(&files, spec(&agreed, &[1, 2]), vec![task.clone()]).await;
    assert_eq!(found.unwrap(), ["1 2"]);
    let swapped = schema([optional(1, "b", long()), optional(2, "a", long())]);
    let found = error(&files, spec(&swapped, &[1]), task).await;
    assert_eq!(found.kind(), ErrorKind::Unsupported);
}

#[tokio::test]
async fn timestamps_of_twelve_bytes_reach_beyond_three_centuries() {
    let message = "message m { optional int96 t = 1; }";
    let message = Arc::new(parse_message_type(message).unwrap());
    let mut bytes = Vec::new();
    let mut writer = SerializedFileWriter::new(&mut bytes, message, Arc::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    let value = |julian: u32, nanos: u64| {
        let mut value = Int96::new();
        value.set_data(nanos as u32, (nanos >> 32) as u32, julian);
        value
    };
    let values = [
        value(2_440_588, 1_000),
        value(2_440_588 - 719_528 + 365, 0),
        value(2_440_588 + 400 * 365, 86_399_999_999_000),
    ];
    let typed = column.typed::<Int96Type>();
    typed
        .write_batch(&values, Some(&[1, 0, 1, 1]), None)
        .unwrap();
    column.close().unwrap();
    group.close().unwrap();
    writer.close().unwrap();

    let files = Arc::new(Files::new());
    let length = files.put("f", bytes);
    let task = task("f", length, 4);
    for (kind, zone) in [
        (PrimitiveType::Timestamp, ""),
        (PrimitiveType::Timestamptz, "Z"),
    ] {
        let table = schema([optional(1, "t", primitive(kind))]);
        let rows = rows(&files, spec(&table, &[1]), vec![task.clone()])
            .await
            .unwrap();
        let wanted = [
            "1970-01-01T00:00:00.000001",
            "",
            "0000-12-31T00:00:00",
            "2369-09-26T23:59:59.999999",
        ];
        let wanted = wanted.map(|time| match time {
            "" => "NULL".to_owned(),
            time => format!("{time}{zone}"),
        });
        assert_eq!(rows, wanted);
    }
}
