//! `floe demo`.

use serde_json::json;

use crate::support::{Lab, keys};

#[tokio::test(flavor = "multi_thread")]
async fn the_demo_reads_cold_warm_and_fresh_and_leaves_a_lake() {
    let lab = Lab::empty();
    let demo = [
        "demo", "--dir", "d", "--rows", "40", "--mbit", "1000", "--rtt-ms", "1",
    ];
    let run = lab.run(&[&demo[..], &["--json"]].concat()).await;
    assert!(
        run.stderr.contains("building football.events") && run.stderr.contains("new process"),
        "{run:?}"
    );
    let report = run.json();
    for key in [
        "rows",
        "columns",
        "arrow_bytes",
        "link_mbit",
        "link_rtt_ms",
        "link_floor_seconds",
        "cold_seconds",
        "warm_seconds",
        "warm_new_process_seconds",
        "requests_cold",
        "requests_warm",
        "bytes_cold",
        "bytes_warm",
        "fresh_after_append",
    ] {
        assert!(keys(&report).contains(&key), "{key}: {report}");
    }
    // Forty data files, five manifests, manifest list, metadata JSON.
    assert_eq!(
        report["requests_cold"],
        json!({"GET": 47, "HEAD": 0, "LIST": 0})
    );
    assert_eq!(
        report["requests_warm"],
        json!({"GET": 0, "HEAD": 0, "LIST": 0})
    );
    assert_eq!(
        report["requests_after_append"],
        json!({"GET": 4, "HEAD": 0, "LIST": 0})
    );
    assert_eq!(
        (&report["rows"], &report["columns"], &report["bytes_warm"]),
        (&json!(40), &json!(140), &json!(0))
    );
    assert_eq!(report["fresh_after_append"], json!(true));

    // The lake stays usable, and is used again: the match that was appended is in it.
    let count = [
        "--config",
        "d/floe.toml",
        "sql",
        "SELECT count(*) AS n FROM football.events",
        "--json",
    ];
    assert_eq!(lab.run(&count).await.json(), json!([{"n": 41}]));
    assert!(
        !std::fs::read_to_string(lab.path("d/floe.toml"))
            .unwrap()
            .contains("location-map")
    );
    let text = lab
        .run(&["demo", "--dir", "d", "--mbit", "1000", "--rtt-ms", "1"])
        .await;
    assert!(!text.stderr.contains("building"), "{text:?}");
    let text = text.done();
    assert!(
        text.contains("football.events: 41 rows x 140 columns")
            && text.contains("was seen at once"),
        "{text}"
    );
    let said = lab.run(&["demo", "--dir", "d", "--rows", "50"]).await;
    assert_eq!(said.code, 1);
    assert!(said.stderr.contains("40 rows"), "{said:?}");
}
