//! The table builder: iceberg-rust reads the same rows, manifests say what is true, pointers move once.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Float64Array, Int64Array, RecordBatch, StringArray};
use floe_testing::table::{SqliteCatalog, TableSpec, TestTable};
use futures::TryStreamExt;
use iceberg::io::FileIO;
use iceberg::spec::{DataFile, Datum, NestedField, PrimitiveType, Schema, Type};
use iceberg::{NamespaceIdent, TableIdent};

fn schema() -> Schema {
    let field =
        |id, name: &str, kind| Arc::new(NestedField::optional(id, name, Type::Primitive(kind)));
    Schema::builder()
        .with_fields([
            field(1, "part", PrimitiveType::String),
            field(2, "n", PrimitiveType::Long),
            field(3, "x", PrimitiveType::Double),
            field(4, "none", PrimitiveType::String),
        ])
        .build()
        .unwrap()
}

async fn table(location: &str) -> TestTable {
    let spec = TableSpec::new(location, schema())
        .partitioned_by("part")
        .unwrap();
    TestTable::create(FileIO::new_with_fs(), spec)
        .await
        .unwrap()
}

fn batch(table: &TestTable, rows: &[(Option<&str>, i64, f64)]) -> RecordBatch {
    let none: Vec<Option<&str>> = vec![None; rows.len()];
    RecordBatch::try_new(
        table.arrow_schema().unwrap(),
        vec![
            Arc::new(StringArray::from_iter(rows.iter().map(|row| row.0))),
            Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.1))),
            Arc::new(Float64Array::from_iter_values(rows.iter().map(|row| row.2))),
            Arc::new(StringArray::from(none)),
        ],
    )
    .unwrap()
}

fn ident() -> TableIdent {
    TableIdent::new(NamespaceIdent::new("ns".to_owned()), "t".to_owned())
}

/// `n` and `x` of all rows, by `n`.
async fn rows(table: &TestTable) -> Vec<(i64, String)> {
    let scan = table.table(ident()).unwrap().scan().build().unwrap();
    let batches: Vec<RecordBatch> = scan.to_arrow().await.unwrap().try_collect().await.unwrap();
    let mut rows = Vec::new();
    for batch in batches {
        let n = batch
            .column_by_name("n")
            .unwrap()
            .as_primitive::<Int64Type>();
        let x = batch
            .column_by_name("x")
            .unwrap()
            .as_primitive::<Float64Type>();
        rows.extend(
            n.values()
                .iter()
                .zip(x.values())
                .map(|(n, x)| (*n, x.to_string())),
        );
    }
    rows.sort();
    rows
}

async fn files(table: &TestTable) -> Vec<DataFile> {
    let table_ = table.table(ident()).unwrap();
    let snapshot = table.metadata().current_snapshot().unwrap();
    let list = table_.manifest_list_reader(snapshot).load().await.unwrap();
    let mut files = Vec::new();
    for entry in list.entries() {
        let manifest = entry.load_manifest(table.file_io()).await.unwrap();
        files.extend(
            manifest
                .entries()
                .iter()
                .map(|entry| entry.data_file().clone()),
        );
    }
    files
}

#[tokio::test]
async fn appended_rows_are_read_back_and_described() {
    let dir = tempfile::tempdir().unwrap();
    let location = format!("file://{}/t", dir.path().display());
    let mut table = table(&location).await;
    let long = "z".repeat(200);
    let first = [
        (Some("a b/ü"), 1, 1.5),
        (Some("c"), 2, f64::NAN),
        (Some("a b/ü"), 3, -2.0),
    ];
    let second = [(Some(long.as_str()), 4, f64::NAN), (None, 5, 7.0)];
    table.append(&[batch(&table, &first)]).await.unwrap();
    table.append(&[batch(&table, &second)]).await.unwrap();

    let expected = [(1, "1.5"), (2, "NaN"), (3, "-2"), (4, "NaN"), (5, "7")];
    let expected: Vec<_> = expected.map(|(n, x)| (n, x.to_owned())).into();
    assert_eq!(rows(&table).await, expected);

    let files = files(&table).await;
    assert_eq!(files.len(), 4);
    for file in &files {
        let path = file.file_path().strip_prefix("file://").unwrap();
        assert_eq!(
            std::fs::metadata(path).unwrap().len(),
            file.file_size_in_bytes()
        );
        assert_eq!(file.value_counts()[&2], file.record_count());
        assert_eq!(file.null_value_counts()[&4], file.record_count());
        assert!(!file.lower_bounds().contains_key(&4), "a bound of nothing");
        assert_eq!(file.split_offsets(), Some([4].as_slice()));
        assert_eq!(file.column_sizes().len(), 4);
    }
    let of = |n: i64| {
        let begins = |f: &&DataFile| f.lower_bounds()[&2] == Datum::long(n);
        files.iter().find(begins).unwrap()
    };
    assert_eq!(
        (
            of(1).lower_bounds()[&3].clone(),
            of(1).upper_bounds()[&3].clone()
        ),
        (Datum::double(-2.0), Datum::double(1.5))
    );
    assert_eq!(of(2).nan_value_counts()[&3], 1);
    assert!(!of(2).lower_bounds().contains_key(&3), "NaN is no bound");
    assert_eq!(
        of(4).upper_bounds()[&1],
        Datum::string(&long),
        "a bound is never truncated"
    );
    assert!(of(5).partition().fields()[0].is_none());

    let summary = &table
        .metadata()
        .current_snapshot()
        .unwrap()
        .summary()
        .additional_properties;
    assert_eq!(
        (
            summary["total-records"].as_str(),
            summary["added-records"].as_str()
        ),
        ("5", "2")
    );
    assert_eq!(
        (
            summary["total-data-files"].as_str(),
            summary["changed-partition-count"].as_str()
        ),
        ("4", "2")
    );
    assert_eq!(table.metadata().history().len(), 2);
    assert_eq!(table.metadata().last_sequence_number(), 2);
    assert_eq!(table.metadata().metadata_log().len(), 2);
    let reopened = TestTable::open(FileIO::new_with_fs(), table.metadata_location())
        .await
        .unwrap();
    assert_eq!(reopened.metadata(), table.metadata());
}

#[tokio::test]
async fn a_branch_has_a_history_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let mut table = table(&format!("file://{}/t", dir.path().display())).await;
    table
        .append(&[batch(&table, &[(Some("a"), 1, 0.0)])])
        .await
        .unwrap();
    let written = table
        .write(&batch(&table, &[(Some("a"), 2, 0.0)]))
        .await
        .unwrap();
    let aside = table.append_files_to("audit", written).await.unwrap();
    assert_eq!(rows(&table).await.len(), 1);
    assert_eq!(
        table
            .metadata()
            .snapshot_for_ref("audit")
            .unwrap()
            .snapshot_id(),
        aside
    );
}

#[tokio::test]
async fn of_two_writers_one_moves_the_pointer() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = SqliteCatalog::open(dir.path().join("c.db"), "demo")
        .await
        .unwrap();
    catalog.create_namespace("ns").await.unwrap();
    catalog.create_namespace("ns").await.unwrap();
    catalog.register(&ident(), "one").await.unwrap();
    assert!(catalog.register(&ident(), "other").await.is_err());
    assert!(catalog.swap(&ident(), "one", "two").await.unwrap());
    assert!(!catalog.swap(&ident(), "one", "three").await.unwrap());
    assert_eq!(
        catalog.pointer(&ident()).await.unwrap().as_deref(),
        Some("two")
    );
    let elsewhere = SqliteCatalog::open(dir.path().join("c.db"), "other")
        .await
        .unwrap();
    assert_eq!(elsewhere.pointer(&ident()).await.unwrap(), None);
}
