//! Tables that other engines wrote, judged by what those engines read: every row, and every predicate's count.
//!
//! All disagreements of a set are told at once, table by table. `FLOE_TABLES=part_of_a_name` judges these tables alone.

mod dialect;
mod fixtures;
mod judge;
mod metadata;
mod rows;

use fixtures::FixtureSet;
use futures::StreamExt;

/// Tables judged at a time.
const CONCURRENCY: usize = 4;

async fn agrees_with(writer: &str) {
    let set = FixtureSet::of(writer);
    let lake = set.open().await;
    let verdicts: Vec<judge::Verdict> = futures::stream::iter(set.tables())
        .map(|table| judge::table(&set, &lake.floe, table))
        .buffered(CONCURRENCY)
        .collect()
        .await;
    let wrong: Vec<&judge::Verdict> = verdicts.iter().filter(|it| !it.is_agreed()).collect();
    let questions: usize = verdicts.iter().map(|it| it.questions).sum();
    assert!(
        wrong.is_empty(),
        "{} of {} tables by {writer} are read wrongly ({questions} questions asked)\n{}",
        wrong.len(),
        verdicts.len(),
        wrong.iter().map(ToString::to_string).collect::<String>(),
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_by_spark_are_read_as_spark_reads_them() {
    agrees_with("spark").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_by_pyiceberg_are_read_as_pyiceberg_reads_them() {
    agrees_with("pyiceberg").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_by_duckdb_are_read_as_duckdb_reads_them() {
    agrees_with("duckdb").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_by_java_are_read_as_java_reads_them() {
    agrees_with("java").await;
}
