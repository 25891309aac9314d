//! Metadata tables of tables that consist of metadata only, hostile ones among them.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, RecordBatch, StructArray};
use arrow_cast::display::array_value_to_string;
use arrow_schema::{DataType, Field};
use arrow_select::concat::concat_batches;
use floe_store::{Store, StoreConfig};
use futures::TryStreamExt;
use iceberg::io::FileIO;
use iceberg::spec::{
    DataContentType, DataFile, DataFileBuilder, DataFileFormat, Datum, Literal,
    ManifestContentType, ManifestFile, ManifestListWriter, ManifestWriter, ManifestWriterBuilder,
    Struct, TableMetadata,
};
use iceberg::table::Table;
use iceberg::{Runtime, TableIdent};
use serde_json::{Value, json};

use super::{Inspection, MetadataTable};
use crate::error::{ErrorKind, Result};
use crate::request::At;
use crate::snapshot::Position;

const SNAPSHOT: i64 = 7;
const PARENT: i64 = 5;
const SEQUENCE: i64 = 40;
const TIME_MS: i64 = 1_700_000_000_000;

/// A table in memory.
struct Made {
    io: FileIO,
    json: Value,
    manifests: Vec<ManifestFile>,
}

impl Made {
    /// Of these columns (name and type, ids from 1) and these specs.
    fn new(columns: &[(&str, &str)], specs: Value) -> Self {
        let fields: Vec<Value> = (1..)
            .zip(columns)
            .map(|(id, (name, kind))| json!({"id": id, "name": name, "required": false, "type": kind}))
            .collect();
        let json = json!({
            "format-version": 2,
            "table-uuid": uuid::Uuid::new_v4().to_string(),
            "location": "memory:///t",
            "last-sequence-number": SEQUENCE,
            "last-updated-ms": TIME_MS,
            "last-column-id": columns.len(),
            "current-schema-id": 0,
            "schemas": [{"type": "struct", "schema-id": 0, "fields": fields}],
            "default-spec-id": 0,
            "partition-specs": specs,
            "last-partition-id": 1010,
            "default-sort-order-id": 0,
            "sort-orders": [{"order-id": 0, "fields": []}],
            "properties": {},
            "current-snapshot-id": SNAPSHOT,
            "snapshots": [
                {
                    "snapshot-id": PARENT, "sequence-number": SEQUENCE - 1, "timestamp-ms": TIME_MS - 1000,
                    "manifest-list": "memory:///t/metadata/gone.avro", "schema-id": 0,
                    "summary": {"operation": "append", "b": "2", "a": "1"},
                },
                {
                    "snapshot-id": SNAPSHOT, "parent-snapshot-id": PARENT, "sequence-number": SEQUENCE,
                    "timestamp-ms": TIME_MS, "manifest-list": "memory:///t/metadata/list.avro",
                    "schema-id": 0, "summary": {"operation": "overwrite"},
                },
            ],
            "snapshot-log": [
                {"snapshot-id": PARENT, "timestamp-ms": TIME_MS - 1000},
                {"snapshot-id": 6, "timestamp-ms": TIME_MS - 500},
                {"snapshot-id": SNAPSHOT, "timestamp-ms": TIME_MS},
            ],
            "refs": {
                "main": {"snapshot-id": SNAPSHOT, "type": "branch", "min-snapshots-to-keep": 3, "max-snapshot-age-ms": 4},
                "v1": {"snapshot-id": PARENT, "type": "tag", "max-ref-age-ms": 9},
            },
        });
        Self {
            io: FileIO::new_with_memory(),
            json,
            manifests: Vec::new(),
        }
    }

    fn unpartitioned(columns: &[(&str, &str)]) -> Self {
        Self::new(columns, json!([{"spec-id": 0, "fields": []}]))
    }

    fn metadata(&self) -> TableMetadata {
        serde_json::from_value(self.json.clone()).unwrap()
    }

    fn writer(&self, spec_id: i32, content: ManifestContentType) -> ManifestWriter {
        let path = format!("memory:///t/metadata/m{}.avro", self.manifests.len());
        let metadata = self.metadata();
        let spec = metadata.partition_spec_by_id(spec_id).unwrap();
        let builder = ManifestWriterBuilder::new(
            self.io.new_output(path).unwrap(),
            Some(SNAPSHOT),
            metadata.current_schema().clone(),
            spec.as_ref().clone(),
        );
        match content {
            ManifestContentType::Data => builder.build_v2_data(),
            ManifestContentType::Deletes => builder.build_v2_deletes(),
        }
    }

    /// Adds the manifest that `fill` writes.
    async fn manifest(
        &mut self,
        spec_id: i32,
        content: ManifestContentType,
        fill: impl FnOnce(&mut ManifestWriter),
    ) -> &mut ManifestFile {
        let mut writer = self.writer(spec_id, content);
        fill(&mut writer);
        let mut manifest = writer.write_manifest_file().await.unwrap();
        manifest.sequence_number = SEQUENCE;
        self.manifests.push(manifest);
        self.manifests.last_mut().unwrap()
    }

    /// Adds a manifest of data files.
    async fn data(&mut self, spec_id: i32, files: impl IntoIterator<Item = DataFileBuilder>) {
        let content = ManifestContentType::Data;
        self.manifest(spec_id, content, |writer| {
            for file in files {
                writer.add_file(built(file, spec_id), SEQUENCE).unwrap();
            }
        })
        .await;
    }

    async fn table(&self) -> Table {
        let list = self
            .io
            .new_output("memory:///t/metadata/list.avro")
            .unwrap();
        let writer = list.writer().await.unwrap();
        let mut writer = ManifestListWriter::v2(writer, SNAPSHOT, Some(PARENT), SEQUENCE);
        writer
            .add_manifests(self.manifests.iter().cloned())
            .unwrap();
        writer.close().await.unwrap();
        Table::builder()
            .file_io(self.io.clone())
            .metadata(self.metadata())
            .identifier(TableIdent::from_strs(["ns", "t"]).unwrap())
            .runtime(Runtime::current())
            .build()
            .unwrap()
    }

    async fn inspect(&self, table: MetadataTable) -> Result<Inspection> {
        let store = Store::open(StoreConfig::default()).unwrap();
        let position = Position::resolve(&self.table().await, &At::Main).unwrap();
        Inspection::new(&store, &position, table)
    }

    /// All rows with all columns.
    async fn rows(&self, table: MetadataTable) -> RecordBatch {
        collect(&self.inspect(table).await.unwrap()).await.unwrap()
    }
}

async fn collect(inspection: &Inspection) -> Result<RecordBatch> {
    let batches: Vec<RecordBatch> = inspection.stream().try_collect().await?;
    Ok(concat_batches(inspection.schema(), &batches).unwrap())
}

fn file(content: DataContentType, path: &str) -> DataFileBuilder {
    let mut builder = DataFileBuilder::default();
    builder
        .content(content)
        .file_path(path.to_string())
        .file_format(DataFileFormat::Parquet)
        .record_count(10)
        .file_size_in_bytes(100);
    builder
}

fn data(path: &str) -> DataFileBuilder {
    file(DataContentType::Data, path)
}

fn within(values: impl IntoIterator<Item = Option<Literal>>, path: &str) -> DataFileBuilder {
    let mut builder = data(path);
    builder.partition(Struct::from_iter(values));
    builder
}

fn built(mut file: DataFileBuilder, spec_id: i32) -> DataFile {
    file.partition_spec_id(spec_id).build().unwrap()
}

/// Every value of a column as text; `-` is NULL.
fn texts(column: &ArrayRef) -> Vec<String> {
    let text = |row| match column.is_null(row) {
        true => "-".to_string(),
        false => array_value_to_string(column, row).unwrap(),
    };
    (0..column.len()).map(text).collect()
}

fn shown(rows: &RecordBatch, column: &str) -> Vec<String> {
    texts(rows.column_by_name(column).unwrap())
}

/// A field within structs, by its path.
fn within_struct(rows: &RecordBatch, path: &[&str]) -> ArrayRef {
    let whole: ArrayRef = Arc::new(StructArray::from(rows.clone()));
    path.iter().fold(whole, |array, name| {
        array.as_struct().column_by_name(name).unwrap().clone()
    })
}

/// A field as people would write it: `!` for what is never NULL.
fn sketch(field: &Field) -> String {
    let never_null = if field.is_nullable() { "" } else { "!" };
    format!(
        "{}{never_null} {}",
        field.name(),
        sketch_kind(field.data_type())
    )
}

fn sketch_kind(kind: &DataType) -> String {
    match kind {
        DataType::List(item) => {
            let never_null = if item.is_nullable() { "" } else { "!" };
            format!("[{}{never_null}]", sketch_kind(item.data_type()))
        }
        DataType::Map(pairs, _) => {
            let DataType::Struct(pair) = pairs.data_type() else {
                panic!("{kind}")
            };
            let sketched: Vec<String> = pair.iter().map(|field| sketch(field)).collect();
            format!("map({})", sketched.join(", "))
        }
        DataType::Struct(fields) => {
            let sketched: Vec<String> = fields.iter().map(|field| sketch(field)).collect();
            format!("({})", sketched.join(", "))
        }
        other => other.to_string(),
    }
}

const NUMBERS: &str = "map(key! Int32, value! Int64)";
const BYTES: &str = "map(key! Int32, value! LargeBinary)";
const TIME: &str = "Timestamp(µs, \"+00:00\")";

/// The columns of a file before its partition, and behind it.
fn file_columns() -> (Vec<String>, Vec<String>) {
    let before = [
        "content Int32",
        "file_path! Utf8",
        "file_format! Utf8",
        "spec_id Int32",
    ];
    let numbers = |name: &str| format!("{name} {NUMBERS}");
    let bytes = |name: &str| format!("{name} {BYTES}");
    let after = [
        "record_count! Int64".to_string(),
        "file_size_in_bytes! Int64".to_string(),
        numbers("column_sizes"),
        numbers("value_counts"),
        numbers("null_value_counts"),
        numbers("nan_value_counts"),
        bytes("lower_bounds"),
        bytes("upper_bounds"),
        "key_metadata LargeBinary".to_string(),
        "split_offsets [Int64!]".to_string(),
        "equality_ids [Int32!]".to_string(),
        "sort_order_id Int32".to_string(),
        "first_row_id Int64".to_string(),
        "referenced_data_file Utf8".to_string(),
        "content_offset Int64".to_string(),
        "content_size_in_bytes Int64".to_string(),
    ];
    (before.map(str::to_string).to_vec(), after.to_vec())
}

#[tokio::test]
async fn columns_are_those_of_java() {
    let specs = json!([{"spec-id": 0, "fields": [{"name": "b_bucket", "transform": "bucket[4]", "source-id": 2, "field-id": 1000}]}]);
    let made = Made::new(&[("b", "long"), ("a", "fixed[3]")], specs);
    let metrics = |name: &str, kind: &str| {
        let counts = [
            "column_size",
            "value_count",
            "null_value_count",
            "nan_value_count",
        ];
        let counts = counts.map(|count| format!("{count} Int64")).join(", ");
        format!("{name} ({counts}, lower_bound {kind}, upper_bound {kind})")
    };
    let metrics = format!(
        "readable_metrics ({}, {})",
        metrics("a", "LargeBinary"),
        metrics("b", "Int64")
    );
    let (before, after) = file_columns();
    let partition = "(b_bucket Int32)";
    let files = [&before[..], &[format!("partition! {partition}")], &after].concat();
    let entries = [
        "status! Int32".to_string(),
        "snapshot_id Int64".to_string(),
        "sequence_number Int64".to_string(),
        "file_sequence_number Int64".to_string(),
        format!("data_file! ({})", files.join(", ")),
        metrics.clone(),
    ];
    let files = [&files[..], &[metrics]].concat();
    let sums = [
        "record_count! Int64",
        "file_count! Int32",
        "total_data_file_size_in_bytes! Int64",
        "position_delete_record_count! Int64",
        "position_delete_file_count! Int32",
        "equality_delete_record_count! Int64",
        "equality_delete_file_count! Int32",
        &format!("last_updated_at {TIME}"),
        "last_updated_snapshot_id Int64",
    ]
    .map(str::to_string);
    let partitions = [
        format!("partition! {partition}"),
        "spec_id! Int32".to_string(),
    ];
    let partitions = [&partitions[..], &sums].concat();
    let owned = |columns: &[&str]| columns.iter().map(ToString::to_string).collect::<Vec<_>>();
    let expected: [(MetadataTable, Vec<String>); 9] = [
        (
            MetadataTable::Snapshots,
            owned(&[
                &format!("committed_at! {TIME}"),
                "snapshot_id! Int64",
                "parent_id Int64",
                "operation Utf8",
                "manifest_list Utf8",
                "summary map(key! Utf8, value! Utf8)",
            ]),
        ),
        (
            MetadataTable::Refs,
            owned(&[
                "name! Utf8",
                "type! Utf8",
                "snapshot_id! Int64",
                "max_reference_age_in_ms Int64",
                "min_snapshots_to_keep Int32",
                "max_snapshot_age_in_ms Int64",
            ]),
        ),
        (
            MetadataTable::History,
            owned(&[
                &format!("made_current_at! {TIME}"),
                "snapshot_id! Int64",
                "parent_id Int64",
                "is_current_ancestor! Boolean",
            ]),
        ),
        (
            MetadataTable::Manifests,
            owned(&[
                "content! Int32",
                "path! Utf8",
                "length! Int64",
                "partition_spec_id! Int32",
                "added_snapshot_id! Int64",
                "added_data_files_count! Int32",
                "existing_data_files_count! Int32",
                "deleted_data_files_count! Int32",
                "added_delete_files_count! Int32",
                "existing_delete_files_count! Int32",
                "deleted_delete_files_count! Int32",
                "partition_summaries! [(contains_null! Boolean, contains_nan Boolean, lower_bound Utf8, upper_bound Utf8)!]",
            ]),
        ),
        (MetadataTable::Files, files.clone()),
        (MetadataTable::DataFiles, files.clone()),
        (MetadataTable::DeleteFiles, files),
        (MetadataTable::Entries, entries.to_vec()),
        (MetadataTable::Partitions, partitions),
    ];
    for (table, expected) in expected {
        let inspection = made.inspect(table).await.unwrap();
        let fields = inspection.schema().fields().iter();
        let found: Vec<String> = fields.map(|field| sketch(field)).collect();
        assert_eq!(found, expected, "{}", table.name());
        // What is said of them holds: a batch that breaks it is refused.
        made.rows(table).await;
    }
    let unpartitioned = Made::unpartitioned(&[("b", "long")]);
    let partitions = unpartitioned
        .inspect(MetadataTable::Partitions)
        .await
        .unwrap();
    let found: Vec<String> = partitions
        .schema()
        .fields()
        .iter()
        .map(|f| sketch(f))
        .collect();
    assert_eq!(found, sums);
    let files = unpartitioned.inspect(MetadataTable::Files).await.unwrap();
    assert!(files.schema().field_with_name("partition").is_err());
    assert!(files.schema().field_with_name("spec_id").is_ok());
}

#[tokio::test]
async fn field_ids_are_those_of_java() {
    let specs = json!([{"spec-id": 0, "fields": [{"name": "b", "transform": "identity", "source-id": 1, "field-id": 1000}]}]);
    let made = Made::new(&[("b", "long")], specs);
    let id = |field: &Field| field.metadata().get("PARQUET:field_id").cloned();
    let entries = made.inspect(MetadataTable::Entries).await.unwrap();
    let file = entries.schema().field_with_name("data_file").unwrap();
    assert_eq!(id(file).unwrap(), "2");
    let DataType::Struct(fields) = file.data_type() else {
        panic!("{file}")
    };
    let ids: Vec<String> = fields.iter().filter_map(|field| id(field)).collect();
    let all = "134 100 101 141 102 103 104 108 109 110 137 125 128 131 132 135 140 142 143 144 145";
    assert_eq!(ids.join(" "), all);
    let partitions = made.inspect(MetadataTable::Partitions).await.unwrap();
    let ids: Vec<String> = partitions
        .schema()
        .fields()
        .iter()
        .filter_map(|f| id(f))
        .collect();
    assert_eq!(ids.join(" "), "1 4 2 3 11 5 6 7 8 9 10");
}

#[tokio::test]
async fn the_table_alone_tells_of_snapshots_refs_and_history() {
    let made = Made::unpartitioned(&[("id", "long")]);
    let snapshots = made.rows(MetadataTable::Snapshots).await;
    assert_eq!(shown(&snapshots, "snapshot_id"), ["5", "7"]);
    assert_eq!(shown(&snapshots, "parent_id"), ["-", "5"]);
    assert_eq!(shown(&snapshots, "operation"), ["append", "overwrite"]);
    assert_eq!(shown(&snapshots, "summary"), ["{a: 1, b: 2}", "{}"]);
    assert_eq!(shown(&snapshots, "committed_at")[1], "2023-11-14T22:13:20Z");
    let refs = made.rows(MetadataTable::Refs).await;
    assert_eq!(shown(&refs, "name"), ["main", "v1"]);
    assert_eq!(shown(&refs, "type"), ["BRANCH", "TAG"]);
    assert_eq!(shown(&refs, "max_reference_age_in_ms"), ["-", "9"]);
    assert_eq!(shown(&refs, "min_snapshots_to_keep"), ["3", "-"]);
    assert_eq!(shown(&refs, "max_snapshot_age_in_ms"), ["4", "-"]);
    let history = made.rows(MetadataTable::History).await;
    assert_eq!(shown(&history, "snapshot_id"), ["5", "6", "7"]);
    // Snapshot 6 is gone, and main was rolled back from it.
    assert_eq!(shown(&history, "parent_id"), ["-", "-", "5"]);
    assert_eq!(
        shown(&history, "is_current_ancestor"),
        ["true", "false", "true"]
    );
}

#[tokio::test]
async fn main_of_version_1_is_told_though_a_dropped_field_has_the_name_of_a_column() {
    let fields = json!([{"name": "id", "transform": "void", "source-id": 1, "field-id": 1000}]);
    let specs = json!([{"spec-id": 0, "fields": fields.clone()}]);
    let mut made = Made::new(&[("id", "long")], specs);
    made.json["format-version"] = 1.into();
    made.json["schema"] = made.json["schemas"][0].clone();
    made.json["partition-spec"] = fields;
    // iceberg-rust keeps no other refs of version 1.
    let refs = made.rows(MetadataTable::Refs).await;
    assert_eq!(shown(&refs, "name"), ["main"]);
    assert_eq!(shown(&refs, "type"), ["BRANCH"]);
}

#[tokio::test]
async fn a_file_is_shown_with_all_that_its_manifest_tells() {
    let mut made = Made::unpartitioned(&[("id", "long"), ("name", "string")]);
    let mut whole = data("a");
    whole
        .column_sizes(HashMap::from([(1, 11), (2, 12)]))
        .value_counts(HashMap::from([(1, 10)]))
        .null_value_counts(HashMap::from([(1, 0), (2, 3)]))
        .nan_value_counts(HashMap::new())
        .lower_bounds(HashMap::from([
            (1, Datum::long(-5)),
            (2, Datum::string("b")),
        ]))
        .upper_bounds(HashMap::from([(1, Datum::long(6))]))
        .key_metadata(Some(vec![1, 2]))
        .split_offsets(Some(vec![4, 1000]))
        .sort_order_id(3);
    made.data(0, [whole, data("b")]).await;
    let content = ManifestContentType::Deletes;
    made.manifest(0, content, |writer| {
        let mut equality = file(DataContentType::EqualityDeletes, "e");
        equality.equality_ids(Some(vec![1, 2]));
        writer.add_file(built(equality, 0), SEQUENCE).unwrap();
    })
    .await;
    let files = made.rows(MetadataTable::Files).await;
    assert_eq!(shown(&files, "file_path"), ["a", "b", "e"]);
    assert_eq!(shown(&files, "content"), ["0", "0", "2"]);
    assert_eq!(shown(&files, "file_format")[0], "PARQUET");
    assert_eq!(shown(&files, "column_sizes")[0], "{1: 11, 2: 12}");
    assert_eq!(shown(&files, "null_value_counts")[0], "{1: 0, 2: 3}");
    assert_eq!(shown(&files, "upper_bounds")[0], "{1: 0600000000000000}");
    assert_eq!(shown(&files, "key_metadata"), ["0102", "-", "-"]);
    assert_eq!(shown(&files, "split_offsets"), ["[4, 1000]", "-", "-"]);
    assert_eq!(shown(&files, "equality_ids"), ["-", "-", "[1, 2]"]);
    assert_eq!(shown(&files, "sort_order_id"), ["3", "-", "-"]);
    let of = |column: &str, part: &str| {
        texts(&within_struct(&files, &["readable_metrics", column, part]))
    };
    assert_eq!(of("id", "lower_bound"), ["-5", "-", "-"]);
    assert_eq!(of("name", "lower_bound"), ["b", "-", "-"]);
    assert_eq!(of("name", "upper_bound"), ["-", "-", "-"]);
    assert_eq!(of("id", "column_size"), ["11", "-", "-"]);
    assert_eq!(of("name", "null_value_count"), ["3", "-", "-"]);
    let paths = |rows: &RecordBatch| shown(rows, "file_path");
    assert_eq!(
        paths(&made.rows(MetadataTable::DataFiles).await),
        ["a", "b"]
    );
    assert_eq!(paths(&made.rows(MetadataTable::DeleteFiles).await), ["e"]);
}

#[tokio::test]
async fn entries_keep_what_was_deleted_and_inherit_what_the_list_tells() {
    let mut made = Made::unpartitioned(&[("id", "long")]);
    let content = ManifestContentType::Data;
    made.manifest(0, content, |writer| {
        // A negative number is not written: the entry inherits one.
        writer.add_file(built(data("added"), 0), -1).unwrap();
        writer
            .add_existing_file(built(data("kept"), 0), PARENT, 30, Some(31))
            .unwrap();
        writer
            .add_delete_file(built(data("dropped"), 0), 20, Some(21))
            .unwrap();
    })
    .await;
    let entries = made.rows(MetadataTable::Entries).await;
    let paths = texts(&within_struct(&entries, &["data_file", "file_path"]));
    assert_eq!(paths, ["added", "kept", "dropped"]);
    assert_eq!(shown(&entries, "status"), ["1", "0", "2"]);
    assert_eq!(shown(&entries, "snapshot_id"), ["7", "5", "7"]);
    assert_eq!(shown(&entries, "sequence_number"), ["40", "30", "20"]);
    assert_eq!(shown(&entries, "file_sequence_number"), ["40", "31", "21"]);
    let files = made.rows(MetadataTable::Files).await;
    assert_eq!(shown(&files, "file_path"), ["added", "kept"]);
    let partitions = made.rows(MetadataTable::Partitions).await;
    assert_eq!(shown(&partitions, "record_count"), ["20"]);
    assert_eq!(shown(&partitions, "file_count"), ["2"]);
}

#[tokio::test]
async fn partitions_of_all_specs_are_one_struct() {
    let specs = json!([
        {"spec-id": 0, "fields": [
            {"name": "old", "transform": "identity", "source-id": 1, "field-id": 1000},
            {"name": "gone", "transform": "identity", "source-id": 99, "field-id": 1003},
        ]},
        {"spec-id": 1, "fields": [
            {"name": "b", "transform": "bucket[4]", "source-id": 2, "field-id": 1001},
            {"name": "odd", "transform": "unknown", "source-id": 2, "field-id": 1002},
            {"name": "new", "transform": "identity", "source-id": 1, "field-id": 1000},
        ]},
    ]);
    // Spec 0 was written when `id` was an int, and of a column that is gone since.
    let mut made = Made::new(&[("id", "int"), ("name", "string")], specs.clone());
    let schema = &mut made.json["schemas"][0]["fields"];
    let gone = json!({"id": 99, "name": "gone", "required": false, "type": "string"});
    schema.as_array_mut().unwrap().push(gone);
    let old = |id: i32, path| within([Some(Literal::int(id)), Some(Literal::string("x"))], path);
    made.data(0, [old(8, "a"), old(9, "b")]).await;
    let fields = made.json["schemas"][0]["fields"].as_array_mut().unwrap();
    fields.pop();
    fields[0]["type"] = "long".into();
    made.json["default-spec-id"] = 1.into();
    let new = |bucket: Option<i32>, id: i64, path| {
        let values = [
            bucket.map(Literal::int),
            Some(Literal::string("odd")),
            Some(Literal::long(id)),
        ];
        within(values, path)
    };
    made.data(1, [new(Some(3), 8, "c"), new(None, 9, "d")])
        .await;
    let files = made.rows(MetadataTable::Files).await;
    let partition = files.column_by_name("partition").unwrap();
    assert_eq!(sketch_kind(partition.data_type()), "(new Int64, b Int32)");
    assert_eq!(shown(&files, "spec_id"), ["0", "0", "1", "1"]);
    let of = |name: &str| texts(&within_struct(&files, &["partition", name]));
    assert_eq!(of("new"), ["8", "9", "8", "9"]);
    assert_eq!(of("b"), ["-", "-", "3", "-"]);
    // Two specs, one partition: id 9 without a bucket.
    let partitions = made.rows(MetadataTable::Partitions).await;
    assert_eq!(shown(&partitions, "file_count"), ["1", "2", "1"]);
    assert_eq!(shown(&partitions, "spec_id"), ["0", "1", "1"]);
    assert_eq!(
        shown(&partitions, "last_updated_snapshot_id"),
        ["7", "7", "7"]
    );
    let manifests = made.rows(MetadataTable::Manifests).await;
    let summaries = shown(&manifests, "partition_summaries");
    assert!(
        summaries[0].contains("lower_bound: 8, upper_bound: 9"),
        "{summaries:?}"
    );
}

#[tokio::test]
async fn partition_fields_that_contradict_each_other_are_an_error_where_they_matter() {
    let field = |name: &str, source: i32| json!([{"name": name, "transform": "identity", "source-id": source, "field-id": 1000}]);
    let specs =
        json!([{"spec-id": 0, "fields": field("a", 1)}, {"spec-id": 1, "fields": field("b", 2)}]);
    let made = Made::new(&[("a", "long"), ("b", "string")], specs);
    for table in MetadataTable::ALL {
        match table {
            MetadataTable::Snapshots
            | MetadataTable::Refs
            | MetadataTable::History
            | MetadataTable::Manifests => drop(made.rows(table).await),
            _ => {
                let error = made.inspect(table).await.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Corrupt);
                let text = error.to_string();
                assert!(
                    text.contains("1000") && text.contains("'a'") && text.contains("'b'"),
                    "{text}"
                );
            }
        }
    }
}

#[tokio::test]
async fn a_dropped_field_of_version_1_keeps_the_type_that_it_had() {
    let field = |name: &str, transform: &str| json!([{"name": name, "transform": transform, "source-id": 1, "field-id": 1000}]);
    let specs = json!([{"spec-id": 0, "fields": field("a_bucket", "bucket[2]")}, {"spec-id": 1, "fields": field("a_gone", "void")}]);
    let mut made = Made::new(&[("a", "string")], specs);
    made.data(0, [within([Some(Literal::int(1))], "x")]).await;
    made.data(1, [within([None], "y")]).await;
    let files = made.rows(MetadataTable::Files).await;
    let partition = files.column_by_name("partition").unwrap();
    assert_eq!(sketch_kind(partition.data_type()), "(a_gone Int32)");
    assert_eq!(
        texts(&within_struct(&files, &["partition", "a_gone"])),
        ["1", "-"]
    );
}

#[tokio::test]
async fn bounds_that_are_none_are_null() {
    let mut made = Made::unpartitioned(&[("i", "int"), ("d", "decimal(4,2)"), ("t", "timestamp")]);
    let mut odd = data("a");
    odd.lower_bounds(HashMap::from([
        (1, Datum::long(1)),
        (2, Datum::binary(vec![127; 16])),
        (3, Datum::string("yesterday")),
        (77, Datum::int(1)),
    ]));
    made.data(0, [odd]).await;
    let files = made.rows(MetadataTable::Files).await;
    for column in ["i", "d", "t"] {
        let bounds = within_struct(&files, &["readable_metrics", column, "lower_bound"]);
        assert_eq!(texts(&bounds), ["-"], "{column}");
    }
    let raw = files.column_by_name("lower_bounds").unwrap().as_map();
    assert_eq!(
        raw.value(0).len(),
        4,
        "they stay what they are where they are raw"
    );
}

#[tokio::test]
async fn a_partition_of_another_type_is_an_error() {
    let spec = |transform: &str| json!([{"spec-id": 0, "fields": [{"name": "p", "transform": transform, "source-id": 1, "field-id": 1000}]}]);
    let mut made = Made::new(&[("a", "string")], spec("identity"));
    made.data(0, [within([Some(Literal::string("x"))], "f")])
        .await;
    made.json["partition-specs"] = spec("bucket[2]");
    for table in [
        MetadataTable::Files,
        MetadataTable::Entries,
        MetadataTable::Partitions,
    ] {
        let inspection = made.inspect(table).await.unwrap();
        let error = collect(&inspection).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert!(
            error.to_string().contains("partition field 1000"),
            "{error}"
        );
    }
    // Who does not ask for it does not hear of it.
    let files = made.inspect(MetadataTable::Files).await.unwrap();
    let paths = collect(&files.narrowed(&[1]).unwrap()).await.unwrap();
    assert_eq!(shown(&paths, "file_path"), ["f"]);
}

#[tokio::test]
async fn sums_that_no_column_holds_are_an_error() {
    let mut made = Made::unpartitioned(&[("id", "long")]);
    let huge = |path| {
        let mut file = data(path);
        file.record_count(i64::MAX as u64);
        file
    };
    made.data(0, [huge("a"), huge("b")]).await;
    // Whatever its list tells.
    made.manifests[0].added_rows_count = Some(1);
    let inspection = made.inspect(MetadataTable::Partitions).await.unwrap();
    let error = collect(&inspection).await.unwrap_err();
    assert!(error.to_string().contains("too large"), "{error}");
    assert_eq!(
        shown(&made.rows(MetadataTable::Files).await, "file_path"),
        ["a", "b"]
    );
}

#[tokio::test]
async fn counts_that_a_list_does_not_tell_are_those_of_the_manifest() {
    let mut made = Made::unpartitioned(&[("id", "long")]);
    let content = ManifestContentType::Data;
    let manifest = made
        .manifest(0, content, |writer| {
            writer.add_file(built(data("a"), 0), SEQUENCE).unwrap();
            writer.add_file(built(data("b"), 0), SEQUENCE).unwrap();
            writer
                .add_delete_file(built(data("c"), 0), 20, Some(20))
                .unwrap();
        })
        .await;
    assert_eq!(manifest.deleted_files_count, Some(1));
    let listed = manifest.clone();
    let untold = ManifestFile {
        deleted_files_count: None,
        ..listed.clone()
    };
    let store = Store::open(StoreConfig::default()).unwrap();
    let position = Position::resolve(&made.table().await, &At::Main).unwrap();
    let source = super::Source::new(&store, &position);
    for told in [listed, untold] {
        let counts = super::manifests::counts(&source, &told).await.unwrap();
        assert_eq!(counts, [2, 0, 1]);
    }
}

#[tokio::test]
async fn a_table_that_never_had_a_snapshot_has_no_files() {
    let mut made = Made::unpartitioned(&[("id", "long")]);
    for gone in ["current-snapshot-id", "snapshots", "snapshot-log", "refs"] {
        made.json.as_object_mut().unwrap().remove(gone);
    }
    for table in MetadataTable::ALL {
        assert_eq!(made.rows(table).await.num_rows(), 0, "{}", table.name());
    }
}

#[tokio::test]
async fn only_what_is_asked_for_is_built() {
    let mut made = Made::unpartitioned(&[("id", "long"), ("name", "string")]);
    made.data(0, [data("a"), data("b")]).await;
    for table in MetadataTable::ALL {
        let inspection = made.inspect(table).await.unwrap();
        let whole = collect(&inspection).await.unwrap();
        for column in 0..whole.num_columns() {
            let alone = inspection.narrowed(&[column]).unwrap();
            assert_eq!(
                collect(&alone).await.unwrap(),
                whole.project(&[column]).unwrap()
            );
        }
        let none = inspection.narrowed(&[]).unwrap();
        let rows: Vec<RecordBatch> = none.stream().try_collect().await.unwrap();
        let rows: usize = rows.iter().map(RecordBatch::num_rows).sum();
        assert_eq!(rows, whole.num_rows(), "{}", table.name());
        let twice = inspection
            .narrowed(&[1, 0])
            .unwrap()
            .narrowed(&[1])
            .unwrap();
        assert_eq!(collect(&twice).await.unwrap(), whole.project(&[0]).unwrap());
        assert_eq!(
            inspection.narrowed(&[99]).unwrap_err().kind(),
            ErrorKind::Invalid
        );
    }
}

#[tokio::test]
async fn a_manifest_of_many_columns_comes_in_small_batches() {
    let columns: Vec<String> = (0..3000).map(|number| format!("c{number}")).collect();
    let columns: Vec<(&str, &str)> = columns.iter().map(|name| (name.as_str(), "int")).collect();
    let mut made = Made::unpartitioned(&columns);
    let metered = |number: i32| {
        let mut file = data(&format!("f{number}"));
        file.lower_bounds((1..=3000).map(|id| (id, Datum::int(number + id))).collect());
        file
    };
    made.data(0, (0..150).map(metered)).await;
    let inspection = made.inspect(MetadataTable::Files).await.unwrap();
    let batches: Vec<RecordBatch> = inspection.stream().try_collect().await.unwrap();
    assert!(batches.iter().all(|batch| batch.num_rows() <= 60));
    let files = concat_batches(inspection.schema(), &batches).unwrap();
    assert_eq!(files.num_rows(), 150);
    let bounds = within_struct(&files, &["readable_metrics", "c2999", "lower_bound"]);
    let bounds = bounds.as_primitive::<Int32Type>();
    assert_eq!((bounds.value(0), bounds.value(149)), (3000, 3149));
}

#[tokio::test]
async fn a_hundred_thousand_columns_are_shown() {
    let columns: Vec<String> = (0..100_000).map(|number| format!("c{number}")).collect();
    let columns: Vec<(&str, &str)> = columns.iter().map(|name| (name.as_str(), "long")).collect();
    let mut made = Made::unpartitioned(&columns);
    let mut metered = data("a");
    metered.upper_bounds(HashMap::from([(100_000, Datum::long(42))]));
    made.data(0, [metered]).await;
    let files = made.rows(MetadataTable::Files).await;
    let bound = within_struct(&files, &["readable_metrics", "c99999", "upper_bound"]);
    assert_eq!(bound.as_primitive::<Int64Type>().value(0), 42);
    let untold = within_struct(&files, &["readable_metrics", "c0", "upper_bound"]);
    assert_eq!(texts(&untold), ["-"]);
}

#[test]
fn names_are_found() {
    for table in MetadataTable::ALL {
        assert_eq!(MetadataTable::named(table.name()), Some(table));
    }
    assert_eq!(MetadataTable::named("Files"), None);
    assert_eq!(MetadataTable::named(""), None);
}
