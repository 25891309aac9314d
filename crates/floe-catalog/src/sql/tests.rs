//! Spellings of URIs, and the waits that a test from outside would have to sit through.

use std::collections::HashMap;
use std::time::Duration;

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, SqliteConnection};

use super::database::Database;
use super::queries;
use super::uri::{Address, parse};
use crate::error::ErrorKind;

fn postgres(uri: &str, properties: &[(&str, &str)]) -> (sqlx::postgres::PgConnectOptions, String) {
    let properties: HashMap<_, _> = properties
        .iter()
        .map(|(k, v)| (k.to_string(), v.to_string()))
        .collect();
    match parse(uri, &properties) {
        Ok(Address::Postgres { options, shown }) => (*options, shown),
        Ok(Address::Sqlite(path)) => panic!("{uri} is {path:?}"),
        Err(e) => panic!("{uri}: {e}"),
    }
}

#[test]
fn a_server_is_found_in_every_spelling() {
    for uri in [
        "postgresql://ann:p%40ss@db.example:5433/lake?sslmode=require",
        "postgres://ann:p%40ss@db.example:5433/lake?sslmode=require",
        "postgresql+psycopg2://ann:p%40ss@db.example:5433/lake?sslmode=require",
        "jdbc:postgresql://db.example:5433/lake?user=ann&password=p%40ss&sslmode=require&reWriteBatchedInserts=true",
    ] {
        let (options, shown) = postgres(uri, &[]);
        assert_eq!(options.get_host(), "db.example");
        assert_eq!(options.get_port(), 5433);
        assert_eq!(options.get_username(), "ann");
        assert_eq!(options.get_database(), Some("lake"));
        assert!(format!("{:?}", options.get_ssl_mode()).contains("Require"));
        // The options show their password in Debug, which is why none of ours prints them.
        assert!(format!("{options:?}").contains("p@ss"), "{uri}");
        assert!(!shown.contains("p%40ss"), "{shown}");
    }
}

#[test]
fn jdbc_properties_complete_a_uri() {
    let (options, _) = postgres(
        "jdbc:postgresql://h/lake?currentSchema=meta",
        &[("jdbc.user", "ann"), ("jdbc.password", "pw")],
    );
    assert_eq!(options.get_username(), "ann");
    assert!(format!("{options:?}").contains("pw"));
    assert_eq!(options.get_options(), Some("-c search_path=meta"));
    let (options, _) = postgres("jdbc:postgresql:lake", &[]);
    assert_eq!(
        (options.get_host(), options.get_database()),
        ("localhost", Some("lake"))
    );
}

#[test]
fn what_can_not_be_read_shows_no_password() {
    for uri in [
        "postgresql://ann:s3cret@a:1,b:2/lake",
        "postgresql://ann:s3cret@h/lake?sslmode=perhaps",
        "postgresql://ann:s3cret@h:port/lake",
        "mysql://ann:s3cret@h/lake",
    ] {
        let Err(error) = parse(uri, &HashMap::new()) else {
            panic!("{uri} was read")
        };
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(
            !format!("{error} {error:?}").contains("s3cret"),
            "{error:?}"
        );
    }
}

#[test]
fn three_slashes_that_could_mean_two_files_are_not_guessed_at() {
    let dir = tempfile::tempdir_in(".").unwrap();
    let name = dir.path().file_name().unwrap().to_str().unwrap();
    let relative = format!("{name}/x.db");
    std::fs::write(&relative, "").unwrap();
    let path = |uri: &str| match parse(uri, &HashMap::new()) {
        Ok(Address::Sqlite(path)) => Ok(path),
        Ok(Address::Postgres { shown, .. }) => panic!("{shown}"),
        Err(error) => Err(error),
    };
    let absolute = std::path::absolute(&relative).unwrap();
    // Only SQLAlchemy's reading exists.
    assert_eq!(path(&format!("sqlite:///{relative}")).unwrap(), absolute);
    assert_eq!(path(&format!("sqlite:{relative}")).unwrap(), absolute);
    assert_eq!(path(&format!("sqlite://{relative}")).unwrap(), absolute);
    // Neither does: a URI's reading.
    assert_eq!(
        path("sqlite:///no/such.db").unwrap().to_str(),
        Some("/no/such.db")
    );
}

#[tokio::test]
async fn a_locked_database_is_unavailable_and_not_absent() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("c.db");
    let options = SqliteConnectOptions::new()
        .filename(&path)
        .create_if_missing(true);
    let mut writer: SqliteConnection = options.connect().await.unwrap();
    let tables = "CREATE TABLE iceberg_tables (catalog_name TEXT); \
        CREATE TABLE iceberg_namespace_properties (catalog_name TEXT); INSERT INTO iceberg_tables VALUES ('c')";
    sqlx::raw_sql(tables).execute(&mut writer).await.unwrap();
    let database = Database::open(Address::Sqlite(path), Duration::from_millis(20)).unwrap();
    sqlx::raw_sql("BEGIN EXCLUSIVE")
        .execute(&mut writer)
        .await
        .unwrap();
    let error = database
        .ask(queries::CATALOGS, &[], ["catalog_name"])
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
    assert!(
        error.is_retryable() && error.to_string().contains("locked"),
        "{error}"
    );
    sqlx::raw_sql("COMMIT").execute(&mut writer).await.unwrap();
    let rows = database
        .ask(queries::CATALOGS, &[], ["catalog_name"])
        .await
        .unwrap();
    assert_eq!(rows, [[Some("c".to_string())]]);
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unavailable() {
    // A port that was just free: nothing listens there.
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let address = parse(
        &format!("postgresql://ann:s3cret@127.0.0.1:{port}/lake"),
        &HashMap::new(),
    )
    .unwrap();
    let database = Database::open(address, Duration::ZERO).unwrap();
    let error = database
        .ask(queries::CATALOGS, &[], ["catalog_name"])
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
    assert!(!format!("{error:?}").contains("s3cret"), "{error:?}");
}
