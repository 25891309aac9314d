//! `floe table`.

use serde_json::json;

use crate::support::{Lab, keys};

#[tokio::test(flavor = "multi_thread")]
async fn tables_are_listed() {
    let lab = Lab::local().await;
    let all = lab.run(&["table", "list"]).await.done();
    assert!(all.starts_with("namespace  table\n---------  "), "{all}");
    assert!(
        all.contains("football   events\n") && all.contains("crm        customers\n"),
        "{all}"
    );
    let listed = lab
        .run(&["table", "list", "football", "--json"])
        .await
        .json();
    assert_eq!(
        listed,
        json!({"tables": [{"identifier": "football.events", "namespace": ["football"], "name": "events"}]})
    );
    let said = lab.run(&["table", "list", "nope"]).await.failed(1);
    assert!(said.contains("nope"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_is_shown() {
    let lab = Lab::local().await;
    let shown = lab
        .run(&["table", "show", "football.events", "--json"])
        .await
        .json();
    assert_eq!(
        keys(&shown),
        [
            "bytes",
            "current_snapshot_id",
            "files",
            "format_version",
            "identifier",
            "last_updated",
            "location",
            "metadata_location",
            "partition_spec",
            "properties",
            "rows",
            "schema",
            "snapshots",
            "uuid"
        ]
    );
    assert_eq!(
        (&shown["rows"], &shown["files"], &shown["format_version"]),
        (&json!(60), &json!(60), &json!(2))
    );
    assert_eq!(
        shown["partition_spec"],
        json!([{"name": "match_id", "transform": "identity"}])
    );
    assert_eq!(
        keys(&shown["schema"][0]),
        ["doc", "id", "name", "required", "type"]
    );
    let text = lab.run(&["table", "show", "football.events"]).await.done();
    assert!(
        text.contains("partitioned by  match_id (identity)\n")
            && text.contains("rows            60\n"),
        "{text}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn refs_snapshots_and_files_are_listed() {
    let lab = Lab::local().await;
    let refs = lab
        .run(&["table", "refs", "football.events", "--json"])
        .await
        .json();
    assert_eq!(keys(&refs["refs"][0]), ["name", "snapshot_id", "type"]);
    assert_eq!(
        (&refs["refs"][0]["name"], &refs["refs"][0]["type"]),
        (&json!("main"), &json!("branch"))
    );
    let snapshots = lab
        .run(&["table", "snapshots", "football.events", "--json"])
        .await
        .json();
    let snapshots = snapshots["snapshots"].as_array().unwrap();
    // A commit for each day of nine matches.
    assert_eq!(snapshots.len(), 7);
    assert_eq!(
        keys(&snapshots[0]),
        [
            "current",
            "manifest_list",
            "operation",
            "parent_id",
            "schema_id",
            "sequence_number",
            "snapshot_id",
            "summary",
            "timestamp"
        ]
    );
    assert_eq!(
        (&snapshots[0]["current"], &snapshots[6]["current"]),
        (&json!(false), &json!(true))
    );
    let files = lab
        .run(&["table", "files", "football.events", "--json"])
        .await
        .json();
    assert_eq!(files["files"].as_array().unwrap().len(), 60);
    assert_eq!(
        keys(&files["files"][0]),
        ["bytes", "delete_files", "location", "rows"]
    );
    let id = snapshots[0]["snapshot_id"].to_string();
    let files = lab
        .run(&["table", "files", "football.events", "--snapshot", &id])
        .await
        .done();
    assert_eq!(files.lines().count(), 2 + 9);
    for verb in ["refs", "snapshots"] {
        assert!(
            lab.run(&["table", verb, "football.events"])
                .await
                .done()
                .contains("main"),
            "{verb}"
        );
    }
    let said = lab.run(&["table", "show", "football.nope"]).await.failed(1);
    assert!(said.contains("nope"), "{said}");
}
