//! `floe sql`.

use std::io::Cursor;

use arrow_ipc::reader::StreamReader;
use serde_json::json;

use crate::support::Lab;

#[tokio::test(flavor = "multi_thread")]
async fn rows_come_as_a_table_or_as_objects() {
    let lab = Lab::local().await;
    let query = "SELECT match_id, count(*) AS n FROM football.events WHERE match_id < 123003 GROUP BY match_id ORDER BY match_id";
    assert_eq!(
        lab.run(&["sql", query]).await.done(),
        "match_id  n\n--------  -\n  123000  1\n  123001  1\n  123002  1\n"
    );
    let objects = lab.run(&["sql", query, "--json"]).await.json();
    assert_eq!(objects[2], json!({"match_id": 123_002, "n": 1}));
    assert_eq!(
        lab.run(&["sql", query, "--format", "json"]).await.json(),
        objects
    );
    assert_eq!(
        lab.run(&["sql", query, "--format", "csv"]).await.done(),
        "match_id,n\n123000,1\n123001,1\n123002,1\n"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_and_times_lose_nothing_in_json() {
    let lab = Lab::local().await;
    let query = "SELECT 9223372036854775807 AS big, -9223372036854775808 AS small, \
                 CAST('12345678901234567.89' AS DECIMAL(19, 2)) AS exact, TIMESTAMP '2026-03-01T12:00:00.123456' AS at, \
                 DATE '2026-03-01' AS day, NULL AS nothing, 'a\"b' AS text";
    let text = lab.run(&["sql", query, "--json"]).await.done();
    for part in [
        "\"big\":9223372036854775807",
        "\"small\":-9223372036854775808",
        "\"exact\":12345678901234567.89",
        "\"at\":\"2026-03-01T12:00:00.123456\"",
        "\"day\":\"2026-03-01\"",
        "\"nothing\":null",
        "\"text\":\"a\\\"b\"",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn metadata_tables_are_shown_in_every_form_that_holds_maps() {
    let lab = Lab::local().await;
    for metadata in [
        "snapshots",
        "refs",
        "history",
        "manifests",
        "files",
        "entries",
        "partitions",
    ] {
        let query = format!("SELECT * FROM football.\"events${metadata}\"");
        let rows = lab.run(&["sql", &query, "--json"]).await.json();
        let rows = rows.as_array().unwrap().len();
        assert!(rows > 0, "{metadata}");
        let table = lab.run(&["sql", &query]).await.done();
        assert_eq!(table.lines().count(), rows + 2, "{metadata}: {table}");
        for format in ["parquet", "arrow"] {
            let written = lab.run(&["sql", &query, "--format", format]).await;
            assert!(!written.bytes.is_empty(), "{metadata} as {format}");
        }
    }
    let sizes = "SELECT column_sizes, readable_metrics['match_id'] AS m FROM football.\"events$files\" LIMIT 1";
    let file = &lab.run(&["sql", sizes, "--json"]).await.json()[0];
    assert_eq!(file["column_sizes"]["1"], file["m"]["column_size"]);
    assert!(file["m"]["lower_bound"].is_i64(), "{file}");
}

#[tokio::test(flavor = "multi_thread")]
async fn binary_forms_are_whole() {
    let lab = Lab::local().await;
    let query = "SELECT match_id FROM football.events";
    let arrow = lab.run(&["sql", query, "--format", "arrow"]).await;
    let rows: usize = StreamReader::try_new(Cursor::new(&arrow.bytes), None)
        .unwrap()
        .map(|batch| batch.unwrap().num_rows())
        .sum();
    assert_eq!(rows, 60);
    let parquet = lab.run(&["sql", query, "--format", "parquet"]).await;
    assert!(parquet.bytes.starts_with(b"PAR1") && parquet.bytes.ends_with(b"PAR1"));
    let nothing = lab
        .run(&[
            "sql",
            "SELECT match_id FROM football.events WHERE match_id = 1",
            "--format",
            "parquet",
        ])
        .await;
    assert!(nothing.bytes.ends_with(b"PAR1"));
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_of_several_namespaces_join_and_are_listed() {
    let lab = Lab::local().await;
    let joined = "SELECT count(*) AS n FROM crm.orders o JOIN demo.crm.customers c ON o.customer_id = c.customer_id";
    assert!(
        lab.run(&["sql", joined, "--json"]).await.json()[0]["n"]
            .as_u64()
            .unwrap()
            > 0
    );
    let listed = lab.run(&["sql", "SHOW TABLES", "--json"]).await.json();
    let names: Vec<_> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["table_name"].as_str().unwrap())
        .collect();
    assert!(
        names.contains(&"events") && names.contains(&"customers"),
        "{names:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_answered_is_an_error_and_nothing_is_changed() {
    let lab = Lab::local().await;
    for (query, says) in [
        ("SELEKT 1", "SELEKT"),
        ("SELECT nope FROM football.events", "nope"),
        ("SELECT * FROM football.nope", "football.nope"),
        ("SELECT * FROM events", "events"),
        ("SELECT 1; SELECT 2", "statement"),
        ("SELECT 1 / 0", "zero"),
        ("CREATE TABLE x AS SELECT 1", "DDL"),
        ("INSERT INTO football.events (match_id) VALUES (1)", "DML"),
        ("COPY (SELECT 1) TO 'x.csv'", "DML"),
        ("SET datafusion.execution.batch_size = 1", "SetVariable"),
        ("DROP TABLE football.events", "DDL"),
    ] {
        let run = lab.run(&["sql", query]).await;
        assert_eq!(run.code, 1, "{query}: {run:?}");
        assert!(
            run.stderr.starts_with("Error: ") && run.stderr.contains(says),
            "{query}: {run:?}"
        );
    }
    let said = lab
        .run(&["sql", "SELECT * FROM football.nope"])
        .await
        .failed(1);
    assert!(said.contains("Hint: floe table list"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_can_be_looked_at() {
    let lab = Lab::local().await;
    let plan = lab
        .run(&[
            "sql",
            "EXPLAIN SELECT second FROM football.events WHERE match_id = 123001",
        ])
        .await
        .done();
    assert!(
        plan.contains("FloeScanExec: table=football.events, files=1"),
        "{plan}"
    );
}
