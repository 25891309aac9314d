//! What holds for every verb: usage, errors, pipes, quiet.

use std::io::Read;
use std::process::Stdio;

use crate::support::{Lab, Run};

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_command_line_is_usage() {
    let lab = Lab::empty();
    for arguments in [
        &["nonsense"][..],
        &["scan"],
        &["scan", "a.b", "--count", "--output", "x.csv"],
        &["scan", "a.b", "--ref", "x", "--snapshot", "1"],
        &["scan", "a.b", "--as-of", "yesterday"],
        &["sql", "SELECT 1", "--format", "xml"],
        &["sql", "SELECT 1", "--json", "--format", "csv"],
        &["erase"],
        &["table", "create", "a.b"],
        &["cache", "purge", "a.b"],
        &["cache", "follow", "a.b", "--json"],
        &["demo", "--mbit", "0"],
    ] {
        let run = lab.run(arguments).await;
        assert_eq!(run.code, 2, "{arguments:?}: {run:?}");
        assert!(
            run.stdout.is_empty() && !run.stderr.is_empty(),
            "{arguments:?}: {run:?}"
        );
    }
    assert!(lab.run(&["--help"]).await.done().contains("scan"));
    assert!(!lab.run(&["--help"]).await.done().contains("demo-reader"));
    assert!(lab.run(&["--version"]).await.done().starts_with("floe "));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_catalog_the_error_says_how_to_name_one() {
    let lab = Lab::empty();
    let said = lab.run(&["scan", "football.events"]).await.failed(1);
    assert!(
        said.starts_with("Error: ") && said.contains("\nHint: "),
        "{said}"
    );
    assert!(said.contains("--config"), "{said}");
    let said = lab
        .run(&["--catalog", "nope", "table", "list"])
        .await
        .failed(1);
    assert!(said.contains("nope"), "{said}");
    let said = lab
        .run(&["--config", "none.toml", "table", "list"])
        .await
        .failed(1);
    assert!(said.contains("none.toml"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_goes_away_is_no_error() {
    let lab = Lab::local().await;
    for arguments in [
        &["scan", "football.events", "--json"][..],
        &["sql", "SELECT * FROM football.events a, football.events b"],
    ] {
        let mut command = lab.command(arguments);
        let run = tokio::task::spawn_blocking(move || {
            let mut child = command
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            let mut stdout = child.stdout.take().unwrap();
            stdout.read_exact(&mut [0; 10]).unwrap();
            drop(stdout);
            Run::from(child.wait_with_output().unwrap())
        });
        let run = run.await.unwrap();
        assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{arguments:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn logs_go_to_stderr_when_asked_for() {
    let lab = Lab::local().await;
    let mut command = lab.command(&["scan", "football.events", "--count"]);
    command.env("RUST_LOG", "floe_scan=debug");
    let run = Run::from(
        tokio::task::spawn_blocking(move || command.output().unwrap())
            .await
            .unwrap(),
    );
    assert_eq!(run.stdout, "60\n");
    assert!(!run.stderr.contains('\u{1b}'));
    assert!(
        lab.run(&["scan", "football.events", "--count"])
            .await
            .stderr
            .is_empty()
    );
}
