//! Tables in DataFusion.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use datafusion::execution::SessionStateBuilder;
use datafusion::physical_plan::displayable;
use datafusion::prelude::{SessionConfig, SessionContext};
use floe_scan::At;
use floe_sql::FloeTable;

use crate::session::{session, text};
use crate::support::Fixture;

#[tokio::test(flavor = "multi_thread")]
async fn queries_see_all_rows_whatever_the_partitions() {
    let fixture = Fixture::simple(
        &(0..7)
            .map(|file| file * 10..file * 10 + 10)
            .collect::<Vec<_>>(),
    )
    .await;
    for partitions in [1, 2, 3, 16] {
        let (session, _) = session(&fixture, partitions).await;
        let sums = text(
            &session,
            "SELECT count(*) AS n, sum(id) AS s, count(name) AS named FROM t",
        )
        .await;
        assert!(sums.contains("| 70 | 2415 | 63    |"), "{sums}");
        let one = text(&session, "SELECT name FROM t WHERE id = 42").await;
        assert!(one.contains("name 42"), "{one}");
        let few = session
            .sql("SELECT id FROM t LIMIT 13")
            .await
            .unwrap()
            .collect()
            .await
            .unwrap();
        assert_eq!(few.iter().map(|batch| batch.num_rows()).sum::<usize>(), 13);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn files_become_partitions_and_filters_prune_them() {
    let fixture = Fixture::simple(
        &(0..8)
            .map(|file| file * 10..file * 10 + 10)
            .collect::<Vec<_>>(),
    )
    .await;
    let (session, _) = session(&fixture, 4).await;
    let plan = |sql: &'static str| {
        let session = &session;
        async move {
            let plan = session
                .sql(sql)
                .await
                .unwrap()
                .create_physical_plan()
                .await
                .unwrap();
            displayable(plan.as_ref()).indent(false).to_string()
        }
    };
    let all = plan("SELECT id FROM t").await;
    assert!(
        all.contains("files=8, ") && all.contains("groups=4, projection=[id]"),
        "{all}"
    );
    let pruned = plan("SELECT name FROM t WHERE id >= 70").await;
    assert!(
        pruned.contains("files=1, ")
            && pruned.contains("files_pruned=7, ")
            && pruned.contains("filter=id >= 70")
            && !pruned.contains("FilterExec"),
        "{pruned}"
    );
    // Exact numbers from the manifests answer it without reading a file.
    let counted = plan("SELECT count(*) FROM t").await;
    assert!(!counted.contains("FloeScanExec"), "{counted}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_named_twice_is_loaded_once_and_others_not_at_all() {
    let fixture = Fixture::simple(&[0..10]).await;
    let (session, loaded) = session(&fixture, 2).await;
    let joined = text(
        &session,
        "SELECT count(*) FROM lake.ns.t a JOIN ns.t b ON a.id = b.id + 1",
    )
    .await;
    assert!(joined.contains("| 9"), "{joined}");
    assert_eq!(loaded.load(Ordering::Relaxed), 1);
    let names = text(&session, "SELECT table_schema, table_name FROM information_schema.tables WHERE table_schema <> 'information_schema'").await;
    assert!(names.contains("| deep.er      | t          |"), "{names}");
    assert_eq!(loaded.load(Ordering::Relaxed), 1, "listing loads nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn nested_namespaces_have_both_spellings() {
    let fixture = Fixture::simple(&[0..10]).await;
    let (session, _) = session(&fixture, 2).await;
    for name in ["deep.er.t", "\"deep.er\".t", "lake.\"deep.er\".t"] {
        assert!(
            text(&session, &format!("SELECT count(*) FROM {name}"))
                .await
                .contains("| 10"),
            "{name}"
        );
    }
    let error = session.sql("SELECT * FROM ns.nope").await.unwrap_err();
    assert!(error.to_string().contains("nope"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_state_of_a_table_has_a_name() {
    let mut fixture = Fixture::simple(&[0..10]).await;
    let first = fixture.table.metadata().current_snapshot_id().unwrap();
    fixture.append_ids(10..15).await;
    let (session, loaded) = session(&fixture, 2).await;
    let sql = format!(
        "SELECT (SELECT count(*) FROM \"t$snapshot_{first}\") || '/' || (SELECT count(*) FROM t) AS c"
    );
    let counts = text(&session, &sql).await;
    assert!(counts.contains("10/15"), "{counts}");
    // The name itself, which no table has, and the table once for both.
    assert_eq!(loaded.load(Ordering::Relaxed), 2);
    let error = session
        .sql("SELECT * FROM \"t$branch_nope\"")
        .await
        .unwrap_err();
    assert!(
        error.to_string().contains("no branch or tag 'nope'"),
        "{error}"
    );
    assert!(session.sql("SELECT * FROM \"t$nothing\"").await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_with_a_fraction_go_anywhere_and_leave_names_alone() {
    let fixture = Fixture::simple(&[0..10]).await;
    let mut config = floe_sql::exact_numbers(SessionConfig::new());
    config
        .options_mut()
        .catalog
        .create_default_catalog_and_schema = true;
    let state = SessionStateBuilder::new()
        .with_default_features()
        .with_config(config)
        .with_analyzer_rules(floe_sql::number_rules())
        .build();
    let session = SessionContext::new_with_state(state);
    let table = FloeTable::new(&fixture.store, &fixture.opened(), &At::Main).unwrap();
    session.register_table("t", Arc::new(table)).unwrap();
    let all = "SELECT CAST(id AS DOUBLE) * 1.5 AS x, count(*) FROM t WHERE CAST(id AS DOUBLE) > 2.5 \
               GROUP BY CAST(id AS DOUBLE) * 1.5 HAVING count(*) < 1.5 \
               ORDER BY CAST(id AS DOUBLE) * 1.5 LIMIT 1";
    let rows = text(&session, all).await;
    assert!(rows.contains("| 4.5 | 1 "), "{rows}");
    for (sql, expected) in [
        ("SELECT 0.1 + 0.2 AS x", "| 0.3 |"),
        (
            "SELECT CASE WHEN id > 8.5 THEN 1.5 ELSE 0.5 END AS x FROM t WHERE id = 9",
            "| 1.5 |",
        ),
        (
            "SELECT count(*) AS x FROM t a JOIN t b ON CAST(a.id AS DOUBLE) = b.id * 1.0",
            "| 10 |",
        ),
        (
            "SELECT count(*) AS x FROM t WHERE id IN (SELECT id FROM t WHERE id > 7.5)",
            "| 2 |",
        ),
        (
            "SELECT sum(id) FILTER (WHERE id > 7.5) AS x FROM t",
            "| 17 |",
        ),
        (
            "SELECT x FROM (VALUES (1.5), (2.5)) v(x) WHERE x > 2.0",
            "| 2.5 |",
        ),
    ] {
        let rows = text(&session, sql).await;
        assert!(rows.contains(expected), "{sql}: {rows}");
    }
}
