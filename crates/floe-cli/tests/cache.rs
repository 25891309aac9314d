//! `floe cache`.

use floe_testing::lake::{Lake, LakeConfig};
use serde_json::json;

use crate::support::{Lab, keys, lake};

#[tokio::test(flavor = "multi_thread")]
async fn a_warmed_table_is_read_without_a_request() {
    let lab = Lab::remote(lake().await).await;
    let warmed = lab
        .run(&["cache", "warm", "football.events", "--json"])
        .await
        .json();
    assert_eq!(
        keys(&warmed),
        [
            "bytes",
            "fetched_bytes",
            "files",
            "requests",
            "seconds",
            "snapshot_id",
            "table"
        ]
    );
    // Sixty data files, seven manifests, one manifest list.
    assert_eq!(warmed["files"], json!(60 + 7 + 1));
    // And the metadata JSON.
    assert_eq!(lab.requests(), 60 + 7 + 1 + 1);
    let again = lab.run(&["cache", "warm", "football.events"]).await.done();
    assert!(again.contains("0 B fetched in 0 requests"), "{again}");
    assert_eq!(
        lab.run(&[
            "scan",
            "football.events",
            "--where",
            "second >= 0 OR second IS NULL",
            "--count"
        ])
        .await
        .done(),
        "60\n"
    );
    assert_eq!(lab.requests(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_cache_is_shown_verified_purged_and_cleared() {
    let lab = Lab::remote(lake().await).await;
    lab.run(&[
        "cache",
        "warm",
        "football.events",
        "--where",
        "match_id = 123000",
    ])
    .await
    .done();
    let stat = lab.run(&["cache", "stat", "--json"]).await.json();
    assert_eq!(
        keys(&stat),
        [
            "dir",
            "files",
            "free_bytes",
            "keep_free_bytes",
            "max_bytes",
            "pins",
            "used_bytes"
        ]
    );
    assert!(
        stat["files"].as_u64().unwrap() >= 10 && stat["used_bytes"].as_u64().unwrap() > 0,
        "{stat}"
    );
    assert!(
        lab.run(&["cache", "stat"])
            .await
            .done()
            .contains("pinned     nothing\n")
    );
    let listed = lab.run(&["cache", "list", "--json"]).await.json();
    let objects = listed["objects"].as_array().unwrap();
    assert_eq!(
        keys(&objects[0]),
        ["cached_bytes", "length", "location", "pinned", "table"]
    );
    assert!(
        lab.run(&["cache", "list"])
            .await
            .done()
            .contains(".parquet")
    );
    assert_eq!(
        lab.run(&["cache", "verify", "--json"]).await.json()["corrupt"],
        json!(0)
    );
    assert!(
        lab.run(&["cache", "verify"])
            .await
            .done()
            .contains("all whole")
    );

    let data = objects
        .iter()
        .find(|object| object["location"].as_str().unwrap().ends_with(".parquet"))
        .unwrap();
    let purged = lab
        .run(&[
            "cache",
            "purge",
            data["location"].as_str().unwrap(),
            "--json",
        ])
        .await
        .json();
    assert_eq!(purged, json!({"locations": 1, "files": 1}));
    lab.run(&["cache", "purge", "--table", "football.events"])
        .await
        .done();
    let left = lab.run(&["cache", "list", "--json"]).await.json();
    assert_eq!(left, json!({"objects": []}));

    lab.run(&["cache", "warm", "crm.customers"]).await.done();
    let cleared = lab.run(&["cache", "clear", "--json"]).await.json();
    assert!(cleared["files"].as_u64().unwrap() > 0, "{cleared}");
    assert_eq!(
        lab.run(&["cache", "stat", "--json"]).await.json()["files"],
        json!(0)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_is_pinned_and_unpinned() {
    let lab = Lab::remote(lake().await).await;
    let pinned = lab
        .run(&[
            "cache",
            "pin",
            "football.events",
            "--where",
            "match_id = 123000",
        ])
        .await
        .done();
    assert!(pinned.contains("pinned"), "{pinned}");
    let listed = lab.run(&["cache", "list", "--json"]).await.json();
    assert!(
        listed["objects"]
            .as_array()
            .unwrap()
            .iter()
            .any(|object| object["pinned"] == json!(true))
    );
    assert_eq!(
        lab.run(&["cache", "stat", "--json"]).await.json()["pins"],
        json!(["football.events"])
    );
    let said = lab
        .run(&["cache", "unpin", "football.events", "--ref", "v1"])
        .await
        .failed(1);
    assert!(
        said.contains("football.events@v1 is not pinned")
            && said.contains("pinned: football.events"),
        "{said}"
    );
    lab.run(&["cache", "unpin", "football.events"]).await.done();
    assert_eq!(
        lab.run(&["cache", "stat", "--json"]).await.json()["pins"],
        json!([])
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn following_fetches_only_what_new_snapshots_added() {
    let dir = tempfile::tempdir().unwrap();
    let own = Lake::build(
        dir.path().join("lake"),
        LakeConfig {
            rows: 20,
            ..LakeConfig::default()
        },
        |_, _, _| (),
    )
    .await
    .unwrap();
    let lab = Lab::remote(&own).await;
    let poll = ["cache", "follow", "football.events", "--once", "--json"];
    // The first look only takes note.
    assert_eq!(
        lab.run(&poll).await.json(),
        json!({"polls": 1, "snapshots": []})
    );
    lab.requests();
    let added = own.append_match().await.unwrap();
    let found = lab.run(&poll).await.json();
    let snapshot = &found["snapshots"][0];
    assert_eq!(
        keys(snapshot),
        [
            "bytes",
            "files",
            "operation",
            "snapshot_id",
            "table",
            "timestamp"
        ]
    );
    assert_eq!(snapshot["snapshot_id"], json!(added.snapshot_id));
    // Metadata JSON, manifest list, manifest, data file.
    assert_eq!(lab.requests(), 4);
    assert_eq!(lab.run(&poll).await.json()["snapshots"], json!([]));
    own.append_match().await.unwrap();
    let lines = lab
        .run(&[
            "cache",
            "follow",
            "football.events",
            "--max-polls",
            "2",
            "--interval",
            "0",
        ])
        .await
        .done();
    assert!(
        lines.lines().count() == 1 && lines.contains("football.events: snapshot"),
        "{lines}"
    );
    let said = lab
        .run(&["cache", "follow", "football.nope", "--once"])
        .await
        .failed(1);
    assert!(said.contains("nope"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_cache_on_disk_the_verbs_say_so() {
    let lab = Lab::empty();
    lab.write(
        "floe.toml",
        "[catalog.demo]\ntype = \"sql\"\nuri = \"sqlite:x.db\"\n[cache]\nmax-bytes = 0\n",
    );
    for verb in ["stat", "list", "verify", "clear"] {
        let said = lab.run(&["cache", verb]).await.failed(1);
        assert!(
            said.contains("no cache on disk") && said.contains("Hint: "),
            "{said}"
        );
    }
}
