//! Where a value was found. Whether that place may decide where credentials go is `guard`'s.

use std::fmt;
use std::path::PathBuf;

/// A value and where it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found<T> {
    /// The value.
    pub(super) value: T,
    /// Where it was found.
    pub(super) source: Source,
}

impl<T> Found<T> {
    /// A value with its source.
    pub(super) fn new(value: T, source: Source) -> Self {
        Self { value, source }
    }
}

/// Where a value was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// Nowhere: floe's own default.
    Default,
    /// On the command line.
    Flag(&'static str),
    /// In an environment variable.
    Variable(String),
    /// In a file.
    File {
        /// Which one.
        path: PathBuf,
        /// How it was found.
        found: Place,
    },
}

/// How a file was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Named by `--config`, `FLOE_CONFIG` or `PYICEBERG_HOME`.
    Named,
    /// In the user's home directory.
    Home,
    /// In the working directory, where anyone's download may have put it.
    WorkingDirectory,
}

impl Source {
    /// Whether this is a file that nobody named: it lay in the working directory.
    pub(super) fn is_stray(&self) -> bool {
        matches!(
            self,
            Source::File {
                found: Place::WorkingDirectory,
                ..
            }
        )
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Default => f.write_str("default"),
            Source::Flag(flag) => write!(f, "flag {flag}"),
            Source::Variable(name) => write!(f, "variable {name}"),
            Source::File { path, .. } => write!(f, "file {}", path.display()),
        }
    }
}
