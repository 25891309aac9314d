//! `floe config`.

use serde_json::Value;

use crate::support::{Lab, keys, lake};

fn value<'a>(document: &'a Value, key: &str) -> &'a str {
    let entries = document["entries"].as_array().unwrap();
    let entry = entries
        .iter()
        .find(|entry| entry["key"] == key)
        .unwrap_or_else(|| panic!("no {key} in {document}"));
    entry["value"].as_str().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_found_is_shown_with_its_place_and_without_secrets() {
    let lab = Lab::remote(lake().await).await;
    let shown = lab.run(&["config", "--json"]).await.json();
    assert_eq!(keys(&shown), ["entries", "files"]);
    assert_eq!(keys(&shown["entries"][0]), ["key", "source", "value"]);
    assert!(shown["files"][0].as_str().unwrap().ends_with("floe.toml"));
    assert_eq!(value(&shown, "catalog.demo.type"), "sql");
    let text = lab.run(&["config"]).await.done();
    for said in [shown.to_string(), text] {
        assert!(!said.contains("secret-of-the-test"), "{said}");
        assert!(said.contains("floe.toml"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_environment_goes_before_the_file() {
    let lab = Lab::local().await;
    let mut command = lab.command(&["config", "--json"]);
    command.env("PYICEBERG_CATALOG__DEMO__WAREHOUSE", "s3://elsewhere");
    let output = tokio::task::spawn_blocking(move || command.output().unwrap())
        .await
        .unwrap();
    let shown: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(value(&shown, "catalog.demo.warehouse"), "s3://elsewhere");
}
