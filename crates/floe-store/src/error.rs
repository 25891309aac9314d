//! The crate's one error: a kind that tells the caller what to do, a message, the path that brought it there.
//! Credentials never enter it: locations are printed without their query, origins by endpoint and bucket only.

use std::fmt;
use std::sync::Arc;

/// What the caller can do about an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// There is no such object at the origin.
    NotFound,
    /// The origin refused the credentials; other credentials may be let in.
    PermissionDenied,
    /// The origin could not be reached or did not answer in time, after all retries; later it may.
    Unavailable,
    /// The object was overwritten in place: immutable files must not change. Purge it if that was meant.
    Overwritten,
    /// The object's length is not what the manifest or the origin said.
    WrongLength,
    /// The range asked for does not lie within the object.
    OutOfRange,
    /// The file is not in the cache, and the store was opened offline.
    Offline,
    /// The call or the configuration is wrong; fix it.
    Invalid,
    /// The cache directory can't be used.
    CacheDir,
    /// Anything else; report it.
    Unexpected,
}

/// An error of this crate. Cheap to clone, since one failed flight answers every waiter.
#[derive(Clone)]
pub struct Error(Arc<Inner>);

struct Inner {
    kind: ErrorKind,
    message: String,
    hint: Option<&'static str>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// What functions of this crate return.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error of this kind: what was attempted, on what, what was found.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Arc::new(Inner {
            kind,
            message: message.into(),
            hint: None,
            source: None,
        }))
    }

    /// The same with what lies behind it.
    #[must_use]
    pub fn with_source(self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        let Inner {
            kind,
            message,
            hint,
            ..
        } = self.into_inner();
        Self(Arc::new(Inner {
            kind,
            message,
            hint,
            source: Some(source.into()),
        }))
    }

    /// The same with what the user can do.
    #[must_use]
    pub fn with_hint(self, hint: &'static str) -> Self {
        let Inner {
            kind,
            message,
            source,
            ..
        } = self.into_inner();
        Self(Arc::new(Inner {
            kind,
            message,
            hint: Some(hint),
            source,
        }))
    }

    /// What the caller can do about it.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// What the user can do about it, if anything is known.
    pub fn hint(&self) -> Option<&'static str> {
        self.0.hint
    }

    fn into_inner(self) -> Inner {
        Arc::try_unwrap(self.0).unwrap_or_else(|shared| Inner {
            kind: shared.kind,
            message: shared.message.clone(),
            hint: shared.hint,
            source: shared.source.as_ref().map(|s| s.to_string().into()),
        })
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.0.kind, self.0.message)?;
        match &self.0.source {
            Some(source) => write!(f, ": {source}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0
            .source
            .as_deref()
            .map(|s| s as &(dyn std::error::Error + 'static))
    }
}

/// Iceberg's error has few kinds; ours stays reachable as its source.
impl From<Error> for iceberg::Error {
    fn from(error: Error) -> Self {
        let kind = match error.kind() {
            ErrorKind::Invalid
            | ErrorKind::OutOfRange
            | ErrorKind::WrongLength
            | ErrorKind::Overwritten => iceberg::ErrorKind::DataInvalid,
            _ => iceberg::ErrorKind::Unexpected,
        };
        iceberg::Error::new(kind, error.to_string()).with_source(error)
    }
}
