//! The crate's one error: a kind that tells the caller what to do, a message, a hint, what lies behind it.

use std::fmt;

/// What the caller can do about an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The table has no such ref, snapshot or column; the message names those it has.
    NotFound,
    /// The request is wrong (an expression that can't be read, a time before the table began); fix it.
    Invalid,
    /// The table uses a feature that floe can't read yet; the message names file and feature.
    Unsupported,
    /// A file could not be read: see the source, usually the store's error.
    Read,
    /// A file does not hold what the table's metadata says it holds.
    Corrupt,
    /// Anything else; report it.
    Unexpected,
}

/// An error of this crate.
pub struct Error {
    kind: ErrorKind,
    message: String,
    hint: Option<String>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// What functions of this crate return.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error of this kind: what was attempted, on what, what was found.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            hint: None,
            source: None,
        }
    }

    /// The same with what lies behind it.
    #[must_use]
    pub fn with_source(
        mut self,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        self.source = Some(source.into());
        self
    }

    /// The same with what the user can do.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// What the caller can do about it.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// What the user can do about it, if anything is known.
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// A read that failed in iceberg: `what` says what was attempted, on what.
    pub(crate) fn read(what: impl Into<String>, source: iceberg::Error) -> Self {
        Self::new(ErrorKind::Read, what).with_source(source)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.kind, self.message)?;
        match &self.source {
            Some(source) => write!(f, ": {source}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source
            .as_deref()
            .map(|s| s as &(dyn std::error::Error + 'static))
    }
}
