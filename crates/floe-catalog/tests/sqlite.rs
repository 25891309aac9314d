//! SQLite: the conformance suite, and what can be wrong with a file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use floe_catalog::{Catalog, Error, ErrorKind, connect};
use iceberg::{NamespaceIdent, TableIdent};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode};
use sqlx::{ConnectOptions, Connection, SqliteConnection};
use tempfile::TempDir;
use tokio::sync::Mutex;

use crate::support::conformance::{self, Lake};
use crate::support::{TableFiles, properties, store};

const SCHEMA: &str = include_str!("support/pyiceberg.sql");
/// The schema before `iceberg_type`.
const OLD_TABLES: &str = "CREATE TABLE iceberg_tables (catalog_name VARCHAR(255) NOT NULL, \
    table_namespace VARCHAR(255) NOT NULL, table_name VARCHAR(255) NOT NULL, metadata_location VARCHAR(1000), \
    previous_metadata_location VARCHAR(1000), PRIMARY KEY (catalog_name, table_namespace, table_name))";
const PROPERTIES: &str = "CREATE TABLE iceberg_namespace_properties (catalog_name VARCHAR(255) NOT NULL, \
    namespace VARCHAR(255) NOT NULL, property_key VARCHAR(255) NOT NULL, property_value VARCHAR(1000), \
    PRIMARY KEY (catalog_name, namespace, property_key))";

/// A database file with a writer's connection.
struct Database {
    dir: TempDir,
    path: PathBuf,
    writer: Mutex<SqliteConnection>,
    name: String,
}

impl Database {
    async fn new(journal: SqliteJournalMode) -> Self {
        let database = Self::bare("catalog.db", journal).await;
        database.execute(SCHEMA).await;
        database
    }

    async fn bare(file: &str, journal: SqliteJournalMode) -> Self {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join(file);
        let options = SqliteConnectOptions::new()
            .filename(&path)
            .create_if_missing(true)
            .journal_mode(journal);
        let writer = Mutex::new(options.connect().await.unwrap());
        Self {
            dir,
            path,
            writer,
            name: "c".to_string(),
        }
    }

    async fn execute(&self, sql: &str) {
        sqlx::raw_sql(sql)
            .execute(&mut *self.writer.lock().await)
            .await
            .unwrap();
    }

    async fn insert(
        &self,
        catalog: &str,
        namespace: &str,
        table: &str,
        location: Option<&str>,
        kind: Option<&str>,
    ) {
        sqlx::query("INSERT OR REPLACE INTO iceberg_tables VALUES ($1, $2, $3, $4, NULL, $5)")
            .bind(catalog)
            .bind(namespace)
            .bind(table)
            .bind(location)
            .bind(kind)
            .execute(&mut *self.writer.lock().await)
            .await
            .unwrap();
    }

    async fn open(&self) -> Arc<dyn Catalog> {
        open(&self.name, &format!("sqlite:///{}", self.path.display()))
            .await
            .unwrap()
    }
}

async fn open(name: &str, uri: &str) -> Result<Arc<dyn Catalog>, Error> {
    connect(name, &properties(&[("uri", uri)]), &store()).await
}

struct SqliteLake {
    database: Database,
    catalog: Arc<dyn Catalog>,
}

impl SqliteLake {
    async fn new(journal: SqliteJournalMode) -> Self {
        let database = Database::new(journal).await;
        let catalog = database.open().await;
        Self { database, catalog }
    }
}

impl Lake for SqliteLake {
    fn catalog(&self) -> Arc<dyn Catalog> {
        self.catalog.clone()
    }

    async fn create_namespace(&self, levels: &[&str]) {
        sqlx::query(
            "INSERT OR REPLACE INTO iceberg_namespace_properties VALUES ($1, $2, 'exists', 'true')",
        )
        .bind(&self.database.name)
        .bind(levels.join("."))
        .execute(&mut *self.database.writer.lock().await)
        .await
        .unwrap();
    }

    async fn point(&self, levels: &[&str], table: &str, location: &str) {
        let namespace = levels.join(".");
        self.database
            .insert(
                &self.database.name,
                &namespace,
                table,
                Some(location),
                Some("TABLE"),
            )
            .await;
    }

    async fn drop_table(&self, levels: &[&str], table: &str) {
        sqlx::query("DELETE FROM iceberg_tables WHERE table_namespace = $1 AND table_name = $2")
            .bind(levels.join("."))
            .bind(table)
            .execute(&mut *self.database.writer.lock().await)
            .await
            .unwrap();
    }
}

fn namespace(name: &str) -> NamespaceIdent {
    NamespaceIdent::new(name.to_string())
}

fn ident(space: &str, table: &str) -> TableIdent {
    TableIdent::new(namespace(space), table.to_string())
}

#[tokio::test]
async fn conforms_with_a_rollback_journal() {
    conformance::run(&SqliteLake::new(SqliteJournalMode::Delete).await).await;
}

#[tokio::test]
async fn conforms_with_a_write_ahead_log() {
    conformance::run(&SqliteLake::new(SqliteJournalMode::Wal).await).await;
}

#[tokio::test]
async fn a_log_that_no_writer_keeps_open_is_read() {
    let database = Database::new(SqliteJournalMode::Wal).await;
    let files = TableFiles::new(database.dir.path());
    database
        .insert("c", "ns", "t", Some(&files.write(1)), None)
        .await;
    let Database {
        dir: _dir,
        path,
        writer,
        ..
    } = database;
    writer.into_inner().close().await.unwrap();
    let catalog = open("c", &format!("sqlite:{}", path.display()))
        .await
        .unwrap();
    assert_eq!(
        catalog
            .load_table(&ident("ns", "t"))
            .await
            .unwrap()
            .metadata()
            .uuid(),
        files.uuid
    );
}

#[tokio::test]
async fn every_spelling_of_a_file_opens_it() {
    let database = Database::new(SqliteJournalMode::Delete).await;
    database.insert("c", "ns", "t", None, None).await;
    let path = database.path.display();
    for uri in [
        format!("sqlite:///{path}"),
        format!("sqlite://{path}"),
        format!("sqlite:{path}"),
        format!("jdbc:sqlite:{path}"),
        format!("jdbc:sqlite:file:{path}?cache=shared"),
        format!("sqlite+pysqlite:///{path}?timeout=5"),
    ] {
        let catalog = open("c", &uri)
            .await
            .unwrap_or_else(|e| panic!("{uri}: {e}"));
        assert_eq!(
            catalog.list_namespaces(None).await.unwrap(),
            [namespace("ns")],
            "{uri}"
        );
    }
}

#[tokio::test]
async fn a_file_with_a_hostile_name_opens() {
    for file in [
        "per%20cent.db",
        "que?ry.db",
        "ha#sh ünï'\".db",
        "file:x.db",
        "a=b&c.db",
    ] {
        let database = Database::bare(file, SqliteJournalMode::Delete).await;
        database.execute(SCHEMA).await;
        database.insert("c", "ns", "t", None, None).await;
        let catalog = database.open().await;
        assert_eq!(
            catalog.list_namespaces(None).await.unwrap(),
            [namespace("ns")],
            "{file}"
        );
    }
}

#[tokio::test]
async fn a_file_that_does_not_exist_is_said_and_not_made() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("no.db");
    let error = open("c", &format!("sqlite:///{}", path.display()))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(
        error.to_string().contains(path.to_str().unwrap()) && error.hint().is_some(),
        "{error:?}"
    );
    assert!(!path.exists());
    let error = open("c", &format!("sqlite:///{}", dir.path().display()))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("directory"), "{error}");
    for uri in [
        "sqlite://",
        "sqlite:",
        "sqlite::memory:",
        "sqlite:///:memory:",
        "jdbc:sqlite:",
        "mysql://h/db",
        "x",
    ] {
        let error = connect("c", &properties(&[("uri", uri), ("type", "sql")]), &store())
            .await
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{uri}: {error}");
    }
}

#[tokio::test]
async fn a_file_removed_or_replaced_later_is_noticed() {
    let database = Database::new(SqliteJournalMode::Delete).await;
    database.insert("c", "one", "t", None, None).await;
    let other = Database::new(SqliteJournalMode::Delete).await;
    other.insert("c", "two", "t", None, None).await;
    let catalog = database.open().await;
    assert_eq!(
        catalog.list_namespaces(None).await.unwrap(),
        [namespace("one")]
    );
    std::fs::rename(&other.path, &database.path).unwrap();
    assert_eq!(
        catalog.list_namespaces(None).await.unwrap(),
        [namespace("two")]
    );
    std::fs::remove_file(&database.path).unwrap();
    assert_eq!(
        catalog.list_namespaces(None).await.unwrap_err().kind(),
        ErrorKind::Invalid
    );
    assert!(!database.path.exists());
}

#[tokio::test]
async fn what_is_no_database_is_told_apart() {
    let dir = TempDir::new().unwrap();
    let check = |file: &'static str, bytes: Vec<u8>| {
        let path = dir.path().join(file);
        std::fs::write(&path, bytes).unwrap();
        async move {
            let catalog = open("c", &format!("sqlite:///{}", path.display()))
                .await
                .unwrap();
            catalog.load_table(&ident("ns", "t")).await.unwrap_err()
        }
    };
    let error = check(
        "text.db",
        b"this is not a database, but it is long enough to look at".repeat(50),
    )
    .await;
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error:?}");
    let error = check("empty.db", Vec::new()).await;
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error:?}");
    assert!(error.to_string().contains("no Iceberg catalog"), "{error}");
}

#[tokio::test]
async fn a_damaged_database_is_corrupt() {
    let database = Database::new(SqliteJournalMode::Delete).await;
    for i in 0..500 {
        database
            .insert("c", "ns", &format!("t{i}"), Some(&"x".repeat(200)), None)
            .await;
    }
    let mut bytes = std::fs::read(&database.path).unwrap();
    let keep = 4096.min(bytes.len());
    bytes[keep..].fill(0xa5);
    std::fs::write(&database.path, bytes).unwrap();
    let error = database
        .open()
        .await
        .list_tables(&namespace("ns"))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error:?}");
}

#[tokio::test]
async fn a_database_without_the_catalogs_tables_says_so() {
    let database = Database::bare("other.db", SqliteJournalMode::Delete).await;
    database.execute("CREATE TABLE songs (title TEXT)").await;
    let error = database
        .open()
        .await
        .list_namespaces(None)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("iceberg_tables"), "{error}");
    assert!(
        error.to_string().contains(database.path.to_str().unwrap()),
        "{error}"
    );
}

#[tokio::test]
async fn the_schema_without_types_is_read() {
    let database = Database::bare("old.db", SqliteJournalMode::Delete).await;
    database.execute(OLD_TABLES).await;
    database.execute(PROPERTIES).await;
    let files = TableFiles::new(database.dir.path());
    let insert = format!(
        "INSERT INTO iceberg_tables VALUES ('c', 'ns', 't', '{}', NULL)",
        files.write(1)
    );
    database.execute(&insert).await;
    let catalog = database.open().await;
    assert_eq!(
        catalog.list_tables(&namespace("ns")).await.unwrap(),
        [ident("ns", "t")]
    );
    assert_eq!(
        catalog
            .load_table(&ident("ns", "t"))
            .await
            .unwrap()
            .metadata()
            .uuid(),
        files.uuid
    );
}

#[tokio::test]
async fn views_are_no_tables() {
    let database = Database::new(SqliteJournalMode::Delete).await;
    for (table, kind) in [
        ("a", Some("TABLE")),
        ("b", None),
        ("c", Some("")),
        ("v", Some("VIEW")),
    ] {
        database
            .insert("c", "ns", table, Some("file:///nowhere"), kind)
            .await;
    }
    database
        .insert(
            "c",
            "views.only",
            "v",
            Some("file:///nowhere"),
            Some("VIEW"),
        )
        .await;
    let catalog = database.open().await;
    let tables = catalog.list_tables(&namespace("ns")).await.unwrap();
    assert_eq!(tables, ["a", "b", "c"].map(|table| ident("ns", table)));
    let error = catalog.load_table(&ident("ns", "v")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TableNotFound);
    assert!(error.hint().unwrap().contains("view"), "{error:?}");
    assert_eq!(
        catalog
            .list_tables(&NamespaceIdent::from_strs(["views", "only"]).unwrap())
            .await
            .unwrap(),
        []
    );
}

#[tokio::test]
async fn a_table_without_a_pointer_is_corrupt() {
    let database = Database::new(SqliteJournalMode::Delete).await;
    database.insert("c", "ns", "t", None, Some("TABLE")).await;
    let error = database
        .open()
        .await
        .load_table(&ident("ns", "t"))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error:?}");
}

#[tokio::test]
async fn catalogs_in_one_database_are_apart_and_a_wrong_name_is_hinted_at() {
    let database = Database::new(SqliteJournalMode::Delete).await;
    database.insert("prod", "ns", "t", None, None).await;
    database.insert("it's", "ns", "t", None, None).await;
    let catalog = database.open().await;
    for error in [
        catalog.load_table(&ident("ns", "t")).await.unwrap_err(),
        catalog.list_tables(&namespace("ns")).await.unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::NamespaceNotFound);
        let hint = error.hint().unwrap();
        assert!(
            hint.contains("\"prod\"") && hint.contains("\"it's\"") && hint.contains("\"c\""),
            "{hint}"
        );
    }
    assert_eq!(catalog.list_namespaces(None).await.unwrap(), []);
    database.insert("c", "mine", "t", None, None).await;
    let error = catalog.load_table(&ident("ns", "t")).await.unwrap_err();
    assert_eq!(
        (error.kind(), error.hint()),
        (ErrorKind::NamespaceNotFound, None)
    );
}

#[tokio::test]
async fn reading_writes_nothing() {
    let database = Database::new(SqliteJournalMode::Delete).await;
    database.insert("c", "ns", "t", None, None).await;
    let before = (
        std::fs::read(&database.path).unwrap(),
        files_of(database.dir.path()),
    );
    let catalog = database.open().await;
    catalog.list_namespaces(None).await.unwrap();
    catalog.load_table(&ident("ns", "t")).await.unwrap_err();
    assert!(
        before
            == (
                std::fs::read(&database.path).unwrap(),
                files_of(database.dir.path())
            )
    );
}

fn files_of(dir: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> = std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    files
}
