//! What a database's error means for the reader of a catalog.

use sqlx::error::DatabaseError;
use sqlx::sqlite::SqliteError;

use crate::error::{Error, ErrorKind};

/// SQLite's primary result codes that are told apart.
mod sqlite {
    pub(super) const ERROR: u32 = 1;
    pub(super) const PERM: u32 = 3;
    pub(super) const BUSY: u32 = 5;
    pub(super) const LOCKED: u32 = 6;
    pub(super) const READONLY: u32 = 8;
    pub(super) const IOERR: u32 = 10;
    pub(super) const CORRUPT: u32 = 11;
    pub(super) const CANTOPEN: u32 = 14;
    pub(super) const AUTH: u32 = 23;
    pub(super) const NOTADB: u32 = 26;
}

const NO_TABLES: &str = "the database holds no Iceberg catalog: the table iceberg_tables or \
                         iceberg_namespace_properties is missing";
const NO_TABLES_HINT: &str =
    "check the catalog's uri; a catalog's tables are created by the engine that writes first";

/// Whether SQLite could not open the file for want of permission to write beside it.
pub(super) fn needs_writing(error: &sqlx::Error) -> bool {
    matches!(
        sqlite_code(error),
        Some(sqlite::CANTOPEN | sqlite::READONLY)
    )
}

/// The error of a question that a database did not answer.
pub(super) fn explain(error: sqlx::Error) -> Error {
    let explained = match &error {
        sqlx::Error::Database(database) => match database.try_downcast_ref::<SqliteError>() {
            Some(_) => explain_sqlite(&error, database.message()),
            None => explain_postgres(database.as_ref()),
        },
        sqlx::Error::Io(_) | sqlx::Error::WorkerCrashed => {
            Error::new(ErrorKind::Unavailable, "can't reach the catalog's database")
                .with_hint("check host and port of the catalog's uri, and that the server runs")
        }
        sqlx::Error::Tls(_) => Error::new(
            ErrorKind::Unavailable,
            "can't agree on TLS with the catalog's database",
        )
        .with_hint("check `sslmode` in the catalog's uri"),
        sqlx::Error::Configuration(_) => {
            Error::new(ErrorKind::Invalid, "can't read the catalog's uri")
        }
        sqlx::Error::ColumnNotFound(column) => Error::new(
            ErrorKind::Corrupt,
            format!("the catalog's tables have no column {column:?}"),
        ),
        sqlx::Error::ColumnDecode { index, .. } => Error::new(
            ErrorKind::Corrupt,
            format!("the catalog holds something other than text in column {index}"),
        ),
        sqlx::Error::Protocol(_) => Error::new(
            ErrorKind::Unavailable,
            "the server does not speak PostgreSQL's protocol",
        )
        .with_hint("check host and port of the catalog's uri"),
        _ => Error::new(ErrorKind::Unexpected, "can't ask the catalog's database"),
    };
    explained.with_source(error)
}

fn explain_sqlite(error: &sqlx::Error, message: &str) -> Error {
    match sqlite_code(error) {
        Some(sqlite::BUSY | sqlite::LOCKED) => Error::new(
            ErrorKind::Unavailable,
            "the catalog's SQLite database is locked by another process",
        )
        .with_hint("try again when its writer is done"),
        Some(sqlite::CORRUPT | sqlite::NOTADB) => Error::new(
            ErrorKind::Corrupt,
            "the file is no SQLite database, or a damaged one",
        )
        .with_hint("check the catalog's uri, or restore the file from a backup"),
        Some(sqlite::CANTOPEN | sqlite::READONLY) => Error::new(
            ErrorKind::Denied,
            "can't open the catalog's SQLite database",
        )
        .with_hint(
            "a database with changes waiting in its log needs a directory that you may write",
        ),
        Some(sqlite::PERM | sqlite::AUTH) => Error::new(
            ErrorKind::Denied,
            "not allowed to read the catalog's SQLite database",
        ),
        Some(sqlite::IOERR) => Error::new(
            ErrorKind::Unavailable,
            "reading the catalog's SQLite database failed",
        ),
        Some(sqlite::ERROR) if message.contains("no such table") => {
            Error::new(ErrorKind::Invalid, NO_TABLES).with_hint(NO_TABLES_HINT)
        }
        Some(sqlite::ERROR) if message.contains("no such column") => Error::new(
            ErrorKind::Corrupt,
            "the catalog's tables lack a column of the schema",
        ),
        _ => Error::new(
            ErrorKind::Unexpected,
            "the catalog's SQLite database refused the query",
        ),
    }
}

/// By SQLSTATE, <https://www.postgresql.org/docs/current/errcodes-appendix.html>.
fn explain_postgres(error: &dyn DatabaseError) -> Error {
    let code = error.code().unwrap_or_default().into_owned();
    match code.as_str() {
        "28P01" | "28000" => Error::new(
            ErrorKind::Denied,
            "the catalog's database refused user or password",
        )
        .with_hint(
            "check the user part of the catalog's uri, jdbc.user and jdbc.password, or ~/.pgpass",
        ),
        "42501" => Error::new(
            ErrorKind::Denied,
            "not allowed to read the catalog's tables",
        )
        .with_hint("grant SELECT on iceberg_tables and iceberg_namespace_properties"),
        "3D000" => Error::new(
            ErrorKind::Invalid,
            "the server has no database of the name in the catalog's uri",
        ),
        "42P01" => Error::new(ErrorKind::Invalid, NO_TABLES).with_hint(NO_TABLES_HINT),
        "42703" => Error::new(
            ErrorKind::Corrupt,
            "the catalog's tables lack a column of the schema",
        ),
        // Connection failures, too many of them, a server shutting down or starting up, a lost serialisation.
        code if ["08", "53", "57P", "40"]
            .iter()
            .any(|class| code.starts_with(class)) =>
        {
            Error::new(
                ErrorKind::Unavailable,
                "the catalog's database can't answer now",
            )
        }
        _ => Error::new(
            ErrorKind::Unexpected,
            format!("the catalog's database refused the query (SQLSTATE {code})"),
        ),
    }
}

/// The primary result code; the higher bits tell its varieties.
fn sqlite_code(error: &sqlx::Error) -> Option<u32> {
    let database = error.as_database_error()?;
    database.try_downcast_ref::<SqliteError>()?;
    database.code()?.parse::<u32>().ok().map(|code| code & 0xff)
}
