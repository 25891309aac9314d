//! The crate's one error: a kind that tells the caller what to do, a message, context, a hint, the source.
//! Secrets never enter it: URIs pass through `redact`, and of a foreign error only what can't hold one is kept.

use std::error::Error as StdError;
use std::fmt;

/// What functions of this crate return.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What the caller can do about an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The catalog answered: there is no such table. Check the name, or create it.
    TableNotFound,
    /// The catalog answered: there is no such namespace. Check the name, or create it.
    NamespaceNotFound,
    /// The metadata file is not where the pointer or the caller said. Restore it, or correct the location.
    MetadataNotFound,
    /// The catalog or the metadata's store can't be reached or is busy. Nothing is known; try again later.
    Unavailable,
    /// The catalog or the metadata's store refused the credentials. Bring others.
    Denied,
    /// The call or the configuration is wrong. Fix it.
    Invalid,
    /// What is stored can't be understood: a damaged database, metadata that is none. Report it to who wrote it.
    Corrupt,
    /// Well formed, but more than floe can do.
    Unsupported,
    /// Anything else; report it.
    Unexpected,
}

/// An error of this crate.
///
/// `Display` is one line: what was attempted, on what, what was found. What to do about it is [`Error::hint`], what lies
/// behind it is the `source` chain.
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    message: String,
    context: Vec<(&'static str, String)>,
    hint: Option<String>,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl Error {
    /// An error of this kind: what was attempted, what was found.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            kind,
            message: message.into(),
            context: Vec::new(),
            hint: None,
            source: None,
        }))
    }

    /// The same, with one thing it happened on. The value must not hold a secret.
    #[must_use]
    pub fn with_context(mut self, key: &'static str, value: impl Into<String>) -> Self {
        self.0.context.push((key, value.into()));
        self
    }

    /// The same, with what the user can do about it.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    /// The same, with what lies behind it. Its text must not hold a secret.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// What the caller can do about it.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// What was attempted and found, without the context.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// What it happened on.
    pub fn context(&self) -> &[(&'static str, String)] {
        &self.0.context
    }

    /// What the user can do about it, if anything is known.
    pub fn hint(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }

    /// Whether the same call may succeed later without anyone changing anything.
    pub fn is_retryable(&self) -> bool {
        self.0.kind == ErrorKind::Unavailable
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)?;
        for (i, (key, value)) in self.0.context.iter().enumerate() {
            write!(f, "{}{key}: {value}", if i == 0 { " (" } else { ", " })?;
        }
        if self.0.context.is_empty() {
            Ok(())
        } else {
            f.write_str(")")
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {self}", self.0.kind)?;
        let mut source = self.source();
        while let Some(cause) = source {
            write!(f, ": {cause}")?;
            source = cause.source();
        }
        match &self.0.hint {
            Some(hint) => write!(f, " [{hint}]"),
            None => Ok(()),
        }
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0
            .source
            .as_deref()
            .map(|source| source as &(dyn StdError + 'static))
    }
}

/// The first error of type `T` in the chain of sources, `error` itself included.
pub(crate) fn find_source<'a, T: StdError + 'static>(
    error: &'a (dyn StdError + 'static),
) -> Option<&'a T> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<T>() {
            return Some(found);
        }
        next = error.source();
    }
    None
}
