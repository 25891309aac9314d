//! PostgreSQL: the conformance suite, and refusals of a real server.

use std::sync::Arc;

use floe_catalog::{Catalog, ErrorKind, connect};
use sqlx::PgPool;
use url::Url;

use crate::support::conformance::{self, Lake};
use crate::support::{properties, store};

const SCHEMA: &str = include_str!("../support/pyiceberg.sql");
const CLEAR: &str =
    "DROP TABLE IF EXISTS iceberg_tables; DROP TABLE IF EXISTS iceberg_namespace_properties";

fn uri() -> String {
    std::env::var("FLOE_TEST_POSTGRES")
        .expect("FLOE_TEST_POSTGRES names the database for these tests")
}

struct PostgresLake {
    catalog: Arc<dyn Catalog>,
    writer: PgPool,
}

impl Lake for PostgresLake {
    fn catalog(&self) -> Arc<dyn Catalog> {
        self.catalog.clone()
    }

    async fn create_namespace(&self, levels: &[&str]) {
        sqlx::query("INSERT INTO iceberg_namespace_properties VALUES ('c', $1, 'exists', 'true') ON CONFLICT DO NOTHING")
            .bind(levels.join("."))
            .execute(&self.writer)
            .await
            .unwrap();
    }

    async fn point(&self, levels: &[&str], table: &str, location: &str) {
        self.drop_table(levels, table).await;
        sqlx::query("INSERT INTO iceberg_tables VALUES ('c', $1, $2, $3, NULL, 'TABLE')")
            .bind(levels.join("."))
            .bind(table)
            .bind(location)
            .execute(&self.writer)
            .await
            .unwrap();
    }

    async fn drop_table(&self, levels: &[&str], table: &str) {
        sqlx::query("DELETE FROM iceberg_tables WHERE table_namespace = $1 AND table_name = $2")
            .bind(levels.join("."))
            .bind(table)
            .execute(&self.writer)
            .await
            .unwrap();
    }
}

/// One test: all of it shares the server's one pair of tables.
#[tokio::test]
async fn conforms_and_says_what_the_server_refused() {
    let writer = PgPool::connect(&uri()).await.unwrap();
    sqlx::raw_sql(CLEAR).execute(&writer).await.unwrap();
    let catalog = connect("c", &properties(&[("uri", &uri())]), &store())
        .await
        .unwrap();
    let error = catalog.list_namespaces(None).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error:?}");
    assert!(error.to_string().contains("no Iceberg catalog"), "{error}");

    sqlx::raw_sql(SCHEMA).execute(&writer).await.unwrap();
    conformance::run(&PostgresLake {
        catalog,
        writer: writer.clone(),
    })
    .await;

    let mut elsewhere = Url::parse(&uri()).unwrap();
    elsewhere.set_path("/no such database");
    let lost = connect("c", &properties(&[("uri", elsewhere.as_str())]), &store())
        .await
        .unwrap();
    let error = lost.list_namespaces(None).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error:?}");

    // The first version of the schema.
    sqlx::raw_sql("ALTER TABLE iceberg_tables DROP COLUMN iceberg_type")
        .execute(&writer)
        .await
        .unwrap();
    let old = connect("c", &properties(&[("uri", &uri())]), &store())
        .await
        .unwrap();
    assert!(!old.list_namespaces(None).await.unwrap().is_empty());
    sqlx::raw_sql(CLEAR).execute(&writer).await.unwrap();
}
