//! The SDK's one error: what the crates below report, with one kind for all of them.

use std::error::Error as StdError;
use std::fmt;

use datafusion::error::DataFusionError;

/// What the caller can do about an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// There is no such catalog, namespace, table, ref, snapshot, column or file. Check the name.
    NotFound,
    /// The call, the query or the configuration is wrong. Fix it.
    Invalid,
    /// Catalog or store can't be reached or is busy. Later it may.
    Unavailable,
    /// Catalog or store refused the credentials. Bring others.
    Denied,
    /// What is needed is not in the cache, and nothing else may be asked.
    Offline,
    /// Well formed, but more than floe can do.
    Unsupported,
    /// What is stored is not what it should be. Report it to who wrote it.
    Corrupt,
    /// Anything else; report it.
    Unexpected,
}

/// An error of the SDK. Its text is that of the crate that failed.
pub struct Error {
    kind: ErrorKind,
    hint: Option<String>,
    inner: Box<dyn StdError + Send + Sync>,
}

/// What functions of this crate return.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error of this kind: what was attempted, on what, what was found.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        let message: String = message.into();
        Self {
            kind,
            hint: None,
            inner: message.into(),
        }
    }

    /// The same with what the user can do.
    #[must_use]
    pub fn with_hint(self, hint: impl Into<String>) -> Self {
        Self {
            hint: Some(hint.into()),
            ..self
        }
    }

    /// What the caller can do about it.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// What the user can do about it, if anything is known.
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// Whether the catalog answered that it has no such table or namespace.
    pub(crate) fn is_missing_table(&self) -> bool {
        use floe_catalog::ErrorKind::{NamespaceNotFound, TableNotFound};
        let catalog = self.inner.downcast_ref::<floe_catalog::Error>();
        catalog.is_some_and(|error| matches!(error.kind(), TableNotFound | NamespaceNotFound))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {:?}", self.kind, self.inner)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.inner.source()
    }
}

impl From<crate::config::Error> for Error {
    fn from(error: crate::config::Error) -> Self {
        Self {
            kind: ErrorKind::Invalid,
            hint: error.hint().map(str::to_string),
            inner: Box::new(error),
        }
    }
}

impl From<floe_store::Error> for Error {
    fn from(error: floe_store::Error) -> Self {
        Self {
            kind: of_store(&error),
            hint: error.hint().map(str::to_string),
            inner: Box::new(error),
        }
    }
}

impl From<floe_catalog::Error> for Error {
    fn from(error: floe_catalog::Error) -> Self {
        let (kind, hint) = (of_catalog(&error), error.hint().map(str::to_string));
        Self::over(error, kind, hint)
    }
}

impl From<floe_scan::Error> for Error {
    fn from(error: floe_scan::Error) -> Self {
        let (kind, hint) = (of_scan(&error), error.hint().map(str::to_string));
        Self::over(error, kind, hint)
    }
}

/// A query fails with our own error where one of our crates failed; else with DataFusion's.
impl From<DataFusionError> for Error {
    fn from(error: DataFusionError) -> Self {
        // Shared errors can't be taken apart: they are told by what lies deepest.
        match unwrap_external(error) {
            Ok(ours) => ours,
            Err(theirs) => {
                let kind = of_query(&theirs);
                Self {
                    kind,
                    hint: None,
                    inner: Box::new(Query(theirs)),
                }
            }
        }
    }
}

impl Error {
    /// Keeps kind and hint of an error; a store's error at its root knows better what can be done.
    fn over(
        error: impl StdError + Send + Sync + 'static,
        kind: ErrorKind,
        hint: Option<String>,
    ) -> Self {
        let mut next: Option<&(dyn StdError + 'static)> = Some(&error);
        let mut found = (kind, hint);
        while let Some(cause) = next {
            if let Some(store) = cause.downcast_ref::<floe_store::Error>() {
                found = (
                    of_store(store),
                    store.hint().map(str::to_string).or(found.1),
                );
                break;
            }
            next = cause.source();
        }
        Self {
            kind: found.0,
            hint: found.1,
            inner: Box::new(error),
        }
    }
}

fn unwrap_external(error: DataFusionError) -> std::result::Result<Error, DataFusionError> {
    match error {
        DataFusionError::External(inner) => match inner.downcast::<floe_scan::Error>() {
            Ok(scan) => Ok((*scan).into()),
            Err(inner) => match inner.downcast::<floe_catalog::Error>() {
                Ok(catalog) => Ok((*catalog).into()),
                Err(inner) => match inner.downcast::<Error>() {
                    Ok(ours) => Ok(*ours),
                    Err(inner) => Err(DataFusionError::External(inner)),
                },
            },
        },
        DataFusionError::Context(text, inner) => match unwrap_external(*inner) {
            Ok(ours) => Ok(ours),
            Err(inner) => Err(DataFusionError::Context(text, Box::new(inner))),
        },
        DataFusionError::Diagnostic(diagnostic, inner) => match unwrap_external(*inner) {
            Ok(ours) => Ok(ours),
            Err(inner) => Err(DataFusionError::Diagnostic(diagnostic, Box::new(inner))),
        },
        other => Err(other),
    }
}

/// DataFusion's error without the backtrace that its text may carry.
#[derive(Debug)]
struct Query(DataFusionError);

impl fmt::Display for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.strip_backtrace())
    }
}

impl StdError for Query {}

fn of_query(error: &DataFusionError) -> ErrorKind {
    match error.find_root() {
        DataFusionError::Internal(_) => ErrorKind::Unexpected,
        DataFusionError::NotImplemented(_) => ErrorKind::Unsupported,
        DataFusionError::Plan(text) if text.contains("not found") => ErrorKind::NotFound,
        _ => ErrorKind::Invalid,
    }
}

fn of_store(error: &floe_store::Error) -> ErrorKind {
    use floe_store::ErrorKind as Store;
    match error.kind() {
        Store::NotFound => ErrorKind::NotFound,
        Store::PermissionDenied => ErrorKind::Denied,
        Store::Unavailable => ErrorKind::Unavailable,
        Store::Overwritten | Store::WrongLength | Store::OutOfRange => ErrorKind::Corrupt,
        Store::Offline => ErrorKind::Offline,
        Store::Invalid | Store::CacheDir => ErrorKind::Invalid,
        _ => ErrorKind::Unexpected,
    }
}

fn of_catalog(error: &floe_catalog::Error) -> ErrorKind {
    use floe_catalog::ErrorKind as Catalog;
    match error.kind() {
        Catalog::TableNotFound | Catalog::NamespaceNotFound | Catalog::MetadataNotFound => {
            ErrorKind::NotFound
        }
        Catalog::Unavailable => ErrorKind::Unavailable,
        Catalog::Denied => ErrorKind::Denied,
        Catalog::Invalid => ErrorKind::Invalid,
        Catalog::Corrupt => ErrorKind::Corrupt,
        Catalog::Unsupported => ErrorKind::Unsupported,
        _ => ErrorKind::Unexpected,
    }
}

fn of_scan(error: &floe_scan::Error) -> ErrorKind {
    use floe_scan::ErrorKind as Scan;
    match error.kind() {
        Scan::NotFound => ErrorKind::NotFound,
        Scan::Invalid => ErrorKind::Invalid,
        Scan::Unsupported => ErrorKind::Unsupported,
        Scan::Corrupt => ErrorKind::Corrupt,
        // Iceberg could not read what it found, or the store failed, which is looked for at the root.
        Scan::Read => ErrorKind::Corrupt,
        _ => ErrorKind::Unexpected,
    }
}
