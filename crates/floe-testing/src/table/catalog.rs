//! Table pointers in SQLite, in the schema that Java's JDBC catalog, PyIceberg and iceberg-rust share.
//! A pointer moves by compare-and-swap: who holds the old one wins once.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use iceberg::TableIdent;
use sqlx::SqlitePool;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions};

/// One catalog, by its name, in one SQLite file.
#[derive(Clone, Debug)]
pub struct SqliteCatalog {
    path: PathBuf,
    name: String,
    pool: SqlitePool,
}

const TABLES: &str = "CREATE TABLE IF NOT EXISTS iceberg_tables (
    catalog_name VARCHAR(255) NOT NULL,
    table_namespace VARCHAR(255) NOT NULL,
    table_name VARCHAR(255) NOT NULL,
    metadata_location VARCHAR(1000),
    previous_metadata_location VARCHAR(1000),
    iceberg_type VARCHAR(5),
    PRIMARY KEY (catalog_name, table_namespace, table_name))";

const NAMESPACES: &str = "CREATE TABLE IF NOT EXISTS iceberg_namespace_properties (
    catalog_name VARCHAR(255) NOT NULL,
    namespace VARCHAR(255) NOT NULL,
    property_key VARCHAR(255) NOT NULL,
    property_value VARCHAR(1000) NOT NULL,
    PRIMARY KEY (catalog_name, namespace, property_key))";

impl SqliteCatalog {
    /// Opens the file, creating it and its two tables where they are missing.
    pub async fn open(path: impl AsRef<Path>, name: &str) -> Result<Self> {
        let path = path.as_ref().to_owned();
        let options = SqliteConnectOptions::new()
            .filename(&path)
            .create_if_missing(true)
            .busy_timeout(Duration::from_secs(30));
        let pool = SqlitePoolOptions::new()
            .max_connections(4)
            .connect_with(options)
            .await
            .with_context(|| format!("opening the catalog {}", path.display()))?;
        for statement in [TABLES, NAMESPACES] {
            sqlx::query(statement)
                .execute(&pool)
                .await
                .with_context(|| format!("creating the tables of {}", path.display()))?;
        }
        Ok(Self {
            path,
            name: name.to_owned(),
            pool,
        })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The value of `uri` in a catalog's configuration, for PyIceberg and for floe.
    pub fn uri(&self) -> String {
        format!("sqlite:///{}", self.path.display())
    }

    /// Creates a namespace (no error if it is there).
    pub async fn create_namespace(&self, namespace: &str) -> Result<()> {
        sqlx::query(
            "INSERT OR IGNORE INTO iceberg_namespace_properties VALUES (?, ?, 'exists', 'true')",
        )
        .bind(&self.name)
        .bind(namespace)
        .execute(&self.pool)
        .await
        .with_context(|| format!("creating the namespace {namespace}"))?;
        Ok(())
    }

    /// Adds a table; an error if there is one of that name.
    pub async fn register(&self, ident: &TableIdent, metadata_location: &str) -> Result<()> {
        sqlx::query("INSERT INTO iceberg_tables VALUES (?, ?, ?, ?, NULL, 'TABLE')")
            .bind(&self.name)
            .bind(ident.namespace().join("."))
            .bind(ident.name())
            .bind(metadata_location)
            .execute(&self.pool)
            .await
            .with_context(|| format!("registering the table {ident}"))?;
        Ok(())
    }

    /// Where a table's current metadata is; `None` if there is no such table.
    pub async fn pointer(&self, ident: &TableIdent) -> Result<Option<String>> {
        let row: Option<(String,)> = sqlx::query_as(
            "SELECT metadata_location FROM iceberg_tables
             WHERE catalog_name = ? AND table_namespace = ? AND table_name = ?",
        )
        .bind(&self.name)
        .bind(ident.namespace().join("."))
        .bind(ident.name())
        .fetch_optional(&self.pool)
        .await
        .with_context(|| format!("looking up the table {ident}"))?;
        Ok(row.map(|(location,)| location))
    }

    /// Moves a pointer from `old` to `new`; `false` if it isn't at `old` any more.
    pub async fn swap(&self, ident: &TableIdent, old: &str, new: &str) -> Result<bool> {
        let done = sqlx::query(
            "UPDATE iceberg_tables SET metadata_location = ?, previous_metadata_location = ?
             WHERE catalog_name = ? AND table_namespace = ? AND table_name = ? AND metadata_location = ?",
        )
        .bind(new)
        .bind(old)
        .bind(&self.name)
        .bind(ident.namespace().join("."))
        .bind(ident.name())
        .bind(old)
        .execute(&self.pool)
        .await
        .with_context(|| format!("moving the pointer of {ident}"))?
        .rows_affected();
        ensure!(
            done <= 1,
            "the table {ident} has {done} rows in {}",
            self.path.display()
        );
        Ok(done == 1)
    }

    /// Closes the file; without this it is closed some time after the last handle is dropped.
    pub async fn close(self) {
        self.pool.close().await;
    }
}
