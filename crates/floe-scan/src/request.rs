//! What a caller asks of a table: which state of it, which columns, which rows.

use chrono::{DateTime, Utc};

use crate::error::{Error, ErrorKind, Result};
use crate::predicate::Predicate;

/// Which state of a table is read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum At {
    /// The tip of `main`, with the table's current schema.
    #[default]
    Main,
    /// A branch, with the table's current schema, or a tag, with the schema of its snapshot (`main` is [`At::Main`]).
    Ref(String),
    /// A snapshot by its id, with its schema.
    Snapshot(i64),
    /// The snapshot that `main` pointed to at this time, with its schema.
    Time(DateTime<Utc>),
}

impl At {
    /// Reads a time as RFC 3339 writes it, such as `2026-03-01T12:00:00Z`.
    pub fn as_of(text: &str) -> Result<Self> {
        let time = DateTime::parse_from_rfc3339(text).map_err(|source| {
            Error::new(
                ErrorKind::Invalid,
                format!("'{text}' is not a time that RFC 3339 allows"),
            )
            .with_hint("write date, time and offset, e.g. 2026-03-01T12:00:00Z")
            .with_source(source)
        })?;
        Ok(Self::Time(time.with_timezone(&Utc)))
    }
}

/// What to read of one table. The default reads every row and column of main.
#[derive(Clone, Debug)]
pub struct ScanRequest {
    /// Which state of the table.
    pub at: At,
    /// Columns by their exact names, in this order; `None`: all.
    pub select: Option<Vec<String>>,
    /// Rows to keep: those for which it is true; `None`: all.
    pub filter: Option<Predicate>,
    /// Stop after this many rows; `None`: all.
    pub limit: Option<usize>,
    /// Batches file by file in the order of the files' locations; it waits for the whole plan. Default: as they come.
    pub ordered: bool,
    /// Files being fetched and decoded at once; enough of them keep a slow line busy. Default: 8.
    pub fetch_concurrency: usize,
    /// Rows of a batch at most; `None`: as many as the reader thinks best.
    pub batch_rows: Option<usize>,
}

impl Default for ScanRequest {
    fn default() -> Self {
        Self {
            at: At::Main,
            select: None,
            filter: None,
            limit: None,
            ordered: false,
            fetch_concurrency: 8,
            batch_rows: None,
        }
    }
}
