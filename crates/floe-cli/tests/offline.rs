//! `--offline`: what was read once is read again without anybody.

use crate::support::{Lab, lake};

const ALL: [&str; 5] = [
    "scan",
    "football.events",
    "--where",
    "match_id < 123002",
    "--count",
];

#[tokio::test(flavor = "multi_thread")]
async fn what_was_seen_is_read_offline_and_that_is_said() {
    let mut lab = Lab::remote(lake().await).await;
    let filter = "SELECT second FROM football.events WHERE match_id < 123002";
    let online = lab.run(&["sql", filter, "--json"]).await.json();
    assert_eq!(online.as_array().unwrap().len(), 2);
    lab.cut().await;

    let run = lab.run(&["sql", filter, "--json", "--offline"]).await;
    assert!(
        run.stderr
            .contains("offline: football.events as it was seen last"),
        "{run:?}"
    );
    assert_eq!(run.json().as_array().unwrap().len(), 2);
    let run = lab.run(&[&ALL[..], &["--offline"]].concat()).await;
    assert!(run.stderr.contains("as it was seen last"), "{run:?}");
    assert_eq!(run.done(), "2\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_cached_is_told_by_name() {
    let mut lab = Lab::remote(lake().await).await;
    let said = lab
        .run(&[&ALL[..], &["--offline"]].concat())
        .await
        .failed(1);
    assert!(
        said.contains("never asked") && said.contains("Hint: "),
        "{said}"
    );
    lab.run(&ALL).await.done();
    lab.cut().await;
    for (not_read, kind) in [
        ("match_id = 123005", ".parquet"),
        ("match_id = 123030", ".avro"),
    ] {
        let run = lab
            .run(&[
                "scan",
                "football.events",
                "--where",
                not_read,
                "--json",
                "--offline",
            ])
            .await;
        assert_eq!(run.code, 1, "{run:?}");
        for part in [kind, "offline: it is not in the cache", "Hint: "] {
            assert!(run.stderr.contains(part), "{part}: {run:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_wish_nothing_is_read_as_it_was_seen_last() {
    let lab = Lab::remote(lake().await).await;
    lab.run(&ALL).await.done();
    // The catalog is gone: only the pointer seen last is there, and nobody wished for it.
    let toml = std::fs::read_to_string(lab.path("floe.toml")).unwrap();
    lab.write("floe.toml", &toml.replace("catalog.db", "gone.db"));
    let said = lab.run(&ALL).await.failed(1);
    assert!(said.contains("gone.db"), "{said}");
}
