//! Opening a database and asking it, SQLite or PostgreSQL. Nothing is written, created or kept between questions but
//! PostgreSQL's connections.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ColumnIndex, ConnectOptions, Connection, Decode, Row, Type};
use tokio::sync::Semaphore;

use super::fault;
use super::uri::Address;
use crate::error::{Error, ErrorKind, Result};

/// How long a PostgreSQL server may take, to connect and to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// Connections to one PostgreSQL server: a catalog is asked little.
const CONNECTIONS: usize = 4;

/// A database that holds a catalog.
pub(super) enum Database {
    /// A file, opened anew for each question: cheap, and a file that was replaced is seen at once.
    Sqlite {
        path: PathBuf,
        busy_timeout: Duration,
    },
    /// A server.
    Postgres { server: Box<Server>, shown: String },
}

/// A PostgreSQL server and the connections to it that wait for the next question. No pool of sqlx's: that one goes on
/// trying a port where nobody listens until its patience ends.
pub(super) struct Server {
    options: PgConnectOptions,
    idle: Mutex<Vec<PgConnection>>,
    turns: Semaphore,
}

impl Database {
    /// Get ready to ask; a server is connected to at the first question.
    pub(super) fn open(address: Address, busy_timeout: Duration) -> Result<Self> {
        match address {
            Address::Sqlite(path) => {
                check_file(&path)?;
                Ok(Self::Sqlite { path, busy_timeout })
            }
            Address::Postgres { options, shown } => {
                let server = Server {
                    options: *options,
                    idle: Mutex::default(),
                    turns: Semaphore::new(CONNECTIONS),
                };
                Ok(Self::Postgres {
                    server: Box::new(server),
                    shown,
                })
            }
        }
    }

    /// Where it is, without secrets.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Sqlite { path, .. } => path.display().to_string(),
            Self::Postgres { shown, .. } => shown.clone(),
        }
    }

    /// The text of some columns of each row that answers; a column that is not there is `None`.
    pub(super) async fn ask<const N: usize>(
        &self,
        sql: &'static str,
        values: &[&str],
        columns: [&str; N],
    ) -> Result<Vec<[Option<String>; N]>> {
        let answer = match self {
            Self::Sqlite { path, busy_timeout } => {
                check_file(path)?;
                ask_sqlite(path, *busy_timeout, sql, values, columns).await
            }
            Self::Postgres { server, .. } => {
                match tokio::time::timeout(ANSWER_TIMEOUT, server.ask(sql, values, columns)).await {
                    Ok(answer) => answer,
                    Err(_) => Err(sqlx::Error::Io(io::Error::new(
                        io::ErrorKind::TimedOut,
                        format!("no answer within {} s", ANSWER_TIMEOUT.as_secs()),
                    ))),
                }
            }
        };
        answer.map_err(|error| fault::explain(error).with_context("database", self.shown()))
    }
}

/// Reading must not create the file, and "unable to open database file" is no help.
fn check_file(path: &Path) -> Result<()> {
    let fail = |kind, message: &str| {
        Err(Error::new(kind, message).with_context("database", path.display().to_string()))
    };
    match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => fail(ErrorKind::Invalid, "the catalog's SQLite database is a directory"),
        Ok(_) => Ok(()),
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            fail(ErrorKind::Invalid, "the catalog's SQLite database does not exist").map_err(|error| {
                error.with_hint(
                    "check the catalog's uri: `sqlite:////dir/x.db` is an absolute path, `sqlite:x.db` a relative one",
                )
            })
        }
        Err(e) => fail(ErrorKind::Denied, "can't look at the catalog's SQLite database").map_err(|error| error.with_source(e)),
    }
}

async fn ask_sqlite<const N: usize>(
    path: &Path,
    busy_timeout: Duration,
    sql: &'static str,
    values: &[&str],
    columns: [&str; N],
) -> sqlx::Result<Vec<[Option<String>; N]>> {
    let options = SqliteConnectOptions::new()
        .filename(path)
        .read_only(true)
        .busy_timeout(busy_timeout);
    match ask_file(&options, sql, values, columns).await {
        // A file in WAL mode needs a shared-memory file beside it, which a directory we may not write refuses. Where
        // neither a log nor a journal waits, the file alone is the whole truth and can be read without one.
        Err(error) if fault::needs_writing(&error) && !has_log(path) => {
            ask_file(&options.immutable(true), sql, values, columns).await
        }
        answer => answer,
    }
}

async fn ask_file<const N: usize>(
    options: &SqliteConnectOptions,
    sql: &'static str,
    values: &[&str],
    columns: [&str; N],
) -> sqlx::Result<Vec<[Option<String>; N]>> {
    let mut connection: SqliteConnection = options.connect().await?;
    let mut query = sqlx::query(sql);
    for value in values {
        query = query.bind(value.to_string());
    }
    let answer = query.fetch_all(&mut connection).await;
    connection.close().await.ok();
    answer?.iter().map(|row| texts(row, columns)).collect()
}

/// Whether changes wait beside the file in a log or a journal.
fn has_log(path: &Path) -> bool {
    ["-wal", "-journal"].iter().any(|suffix| {
        let mut beside = path.as_os_str().to_owned();
        beside.push(suffix);
        std::fs::metadata(beside).is_ok_and(|found| found.len() > 0)
    })
}

impl Server {
    async fn ask<const N: usize>(
        &self,
        sql: &'static str,
        values: &[&str],
        columns: [&str; N],
    ) -> sqlx::Result<Vec<[Option<String>; N]>> {
        let _turn = self
            .turns
            .acquire()
            .await
            .expect("the semaphore is never closed");
        let waiting = self.idle().pop();
        if let Some(mut connection) = waiting {
            let answer = ask_postgres(&mut connection, sql, values, columns).await;
            // It may have died while it waited: what a new one says counts.
            if answer.is_ok() {
                self.idle().push(connection);
                return answer;
            }
        }
        let mut connection = self.options.connect().await?;
        let answer = ask_postgres(&mut connection, sql, values, columns).await;
        if answer.is_ok() {
            self.idle().push(connection);
        }
        answer
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<PgConnection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn ask_postgres<const N: usize>(
    connection: &mut PgConnection,
    sql: &'static str,
    values: &[&str],
    columns: [&str; N],
) -> sqlx::Result<Vec<[Option<String>; N]>> {
    // Poolers that hand out another connection for each transaction know no statements prepared by name.
    let mut query = sqlx::query(sql).persistent(false);
    for value in values {
        query = query.bind(value.to_string());
    }
    query
        .fetch_all(connection)
        .await?
        .iter()
        .map(|row| texts(row, columns))
        .collect()
}

fn texts<'r, R, const N: usize>(row: &'r R, columns: [&str; N]) -> sqlx::Result<[Option<String>; N]>
where
    R: Row,
    for<'c> &'c str: ColumnIndex<R>,
    Option<String>: Decode<'r, R::Database> + Type<R::Database>,
{
    let mut texts = [const { None }; N];
    for (text, column) in texts.iter_mut().zip(columns) {
        *text = match row.try_get(column) {
            Err(sqlx::Error::ColumnNotFound(_)) if column == "iceberg_type" => None,
            found => found?,
        };
    }
    Ok(texts)
}
