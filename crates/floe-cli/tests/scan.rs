//! `floe scan`.

use arrow_array::RecordBatchReader;
use floe_testing::lake::Lake;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::json;

use crate::support::{Lab, ROWS, keys, lake};

async fn pointer(lake: &Lake) -> String {
    lake.table("football", "events")
        .await
        .unwrap()
        .metadata_location()
        .to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_are_counted_and_chosen() {
    let lab = Lab::local().await;
    assert_eq!(
        lab.run(&["scan", "football.events", "--count"])
            .await
            .done(),
        "60\n"
    );
    assert_eq!(
        lab.run(&["scan", "football.events", "--count", "--json"])
            .await
            .json(),
        json!({"rows": ROWS})
    );
    let one = [
        "scan",
        "football.events",
        "--where",
        "match_id = 123005",
        "--select",
        "match_id",
    ];
    assert_eq!(lab.run(&one).await.done(), "match_id\n--------\n  123005\n");
    let both = [&one[..], &["--json"]].concat();
    assert_eq!(lab.run(&both).await.json(), json!([{"match_id": 123_005}]));
    let few = lab
        .run(&["scan", "football.events", "--limit", "7", "--json"])
        .await
        .json();
    assert_eq!(few.as_array().unwrap().len(), 7);
    assert_eq!(keys(&few[0]).len(), 140);
    let none = lab
        .run(&[
            "scan",
            "football.events",
            "--where",
            "match_id = 1",
            "--json",
        ])
        .await
        .json();
    assert_eq!(none, json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_may_be_the_path_of_its_metadata_without_any_catalog() {
    let location = pointer(lake().await).await;
    let lab = Lab::empty();
    assert_eq!(
        lab.run(&["scan", &location, "--count"]).await.done(),
        "60\n"
    );
    let path = location.strip_prefix("file://").unwrap();
    assert_eq!(lab.run(&["scan", path, "--count"]).await.done(), "60\n");
    let said = lab
        .run(&["scan", "nowhere.metadata.json", "--count"])
        .await
        .failed(1);
    assert!(said.contains("nowhere.metadata.json"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_written_whole_in_the_format_that_their_name_tells() {
    let lab = Lab::local().await;
    for (name, magic) in [
        ("rows.parquet", &b"PAR1"[..]),
        ("rows.arrow", b"ARROW1"),
        ("rows.csv", b"match_id,"),
    ] {
        let run = [
            "scan",
            "football.events",
            "--select",
            "match_id,second",
            "--output",
            name,
            "--json",
        ];
        let said = lab.run(&run).await.json();
        assert_eq!(keys(&said), ["bytes", "output", "rows"]);
        let written = std::fs::read(lab.path(name)).unwrap();
        assert_eq!(
            (&said["rows"], &said["bytes"]),
            (&json!(ROWS), &json!(written.len()))
        );
        assert!(written.starts_with(magic), "{name}");
    }
    let file = std::fs::File::open(lab.path("rows.parquet")).unwrap();
    let reader = ParquetRecordBatchReaderBuilder::try_new(file)
        .unwrap()
        .build()
        .unwrap();
    assert_eq!(reader.schema().fields().len(), 2);
    assert_eq!(
        reader
            .map(|batch| batch.unwrap().num_rows() as u64)
            .sum::<u64>(),
        ROWS
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_that_fails_leaves_the_file_that_was_there() {
    let lab = Lab::local().await;
    lab.write("rows.csv", "precious");
    let failing = [
        "scan",
        "football.events",
        "--where",
        "1 / (match_id - match_id) = 1",
        "--output",
        "rows.csv",
    ];
    lab.run(&failing).await.failed(1);
    assert_eq!(
        std::fs::read_to_string(lab.path("rows.csv")).unwrap(),
        "precious"
    );
    let left: Vec<_> = std::fs::read_dir(lab.path(""))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert!(
        left.iter()
            .all(|name| !name.to_string_lossy().ends_with(".tmp")),
        "{left:?}"
    );
    let said = lab
        .run(&["scan", "football.events", "--output", "rows.txt"])
        .await
        .failed(2);
    assert!(said.contains(".parquet, .arrow or .csv"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn older_states_are_read_by_snapshot_and_time() {
    let lab = Lab::local().await;
    let snapshots = lab
        .run(&["table", "snapshots", "football.events", "--json"])
        .await
        .json();
    let first = &snapshots["snapshots"][0];
    let (id, time) = (
        first["snapshot_id"].to_string(),
        first["timestamp"].as_str().unwrap(),
    );
    assert_eq!(
        lab.run(&["scan", "football.events", "--snapshot", &id, "--count"])
            .await
            .done(),
        "9\n"
    );
    assert_eq!(
        lab.run(&["scan", "football.events", "--as-of", time, "--count"])
            .await
            .done(),
        "9\n"
    );
    assert_eq!(
        lab.run(&["scan", "football.events", "--ref", "main", "--count"])
            .await
            .done(),
        "60\n"
    );
    for (wrong, says) in [
        (["--ref", "nope"], "it has main"),
        (["--snapshot", "-1"], "its latest are"),
        (["--as-of", "1999-01-01T00:00:00Z"], "begins at"),
    ] {
        let said = lab
            .run(&[&["scan", "football.events", "--count"], &wrong[..]].concat())
            .await
            .failed(1);
        assert!(said.contains(says), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn timings_are_told_by_stage() {
    let lab = Lab::local().await;
    let run = lab
        .run(&[
            "scan",
            "football.events",
            "--where",
            "second >= 0",
            "--count",
            "--timings",
            "--json",
        ])
        .await
        .json();
    assert_eq!(keys(&run), ["rows", "timings"]);
    assert_eq!(
        keys(&run["timings"]),
        [
            "batches",
            "bytes",
            "decode_seconds",
            "disk_bytes",
            "fetch_wait_seconds",
            "files",
            "load_seconds",
            "memory_bytes",
            "origin_bytes",
            "plan_seconds",
            "requests",
            "rows",
            "total_seconds"
        ]
    );
    let run = lab
        .run(&[
            "scan",
            "football.events",
            "--limit",
            "1",
            "--select",
            "match_id",
            "--timings",
        ])
        .await;
    for stage in ["load", "plan", "fetch wait", "decode", "rows"] {
        assert!(run.stderr.contains(stage), "{run:?}");
    }
    assert_eq!(run.stdout.lines().count(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_there_is_told_and_hostile_names_are_only_names() {
    let lab = Lab::local().await;
    for name in [
        "football.nope",
        "nope.events",
        "football.e'; DROP TABLE iceberg_tables; --",
        "football.\u{1b}[2J",
        "../x.y",
        "a.%2e%2e",
        "\u{1f3d4}.\u{fe0f}x",
    ] {
        let said = lab.run(&["scan", name, "--count"]).await.failed(1);
        assert!(said.starts_with("Error: "), "{said}");
        assert!(!said.contains('\u{1b}'), "{said:?}");
    }
    assert_eq!(
        lab.run(&["scan", "football.events", "--count"])
            .await
            .done(),
        "60\n"
    );
    for name in ["events", "", ".", "a..b", "football."] {
        let said = lab.run(&["scan", name, "--count"]).await.failed(1);
        assert!(said.contains("NAMESPACE.TABLE"), "{said}");
    }
    let said = lab
        .run(&["scan", "football.events", "--select", "Match_ID"])
        .await
        .failed(1);
    assert!(said.contains("it has 'match_id'"), "{said}");
    let said = lab
        .run(&["scan", "football.events", "--where", "nope > 1"])
        .await
        .failed(1);
    assert!(
        said.contains("Caused by: ") && said.contains("nope"),
        "{said}"
    );
}
