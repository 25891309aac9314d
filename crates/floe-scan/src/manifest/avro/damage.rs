//! What can be wrong with an Avro file. Its name is added by those who know it.

use crate::error::{Error, ErrorKind};

/// Why a file can't be decoded. Small, as every number that is read might be one.
#[derive(Debug)]
pub(crate) struct Damage(Box<Found>);

#[derive(Debug)]
struct Found {
    field: Option<String>,
    what: String,
    unsupported: bool,
}

impl Damage {
    /// The file does not hold what it should.
    #[cold]
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self(Box::new(Found {
            field: None,
            what: what.into(),
            unsupported: false,
        }))
    }

    /// The file may be right, but uses what can't be read.
    pub(crate) fn unsupported(what: impl Into<String>) -> Self {
        let mut damage = Self::new(what);
        damage.0.unsupported = true;
        damage
    }

    /// A required field that is not there, or NULL.
    pub(crate) fn missing(field: &str) -> Self {
        Self::new("it is required, but missing").of(field)
    }

    /// The same, found in this field; an inner one that is named already stays.
    pub(crate) fn of(mut self, field: &str) -> Self {
        self.0.field.get_or_insert_with(|| field.to_string());
        self
    }

    /// The error for users; `what` says what was to be read.
    pub(crate) fn error(self, what: &str) -> Error {
        let (kind, hint) = match self.0.unsupported {
            true => (
                ErrorKind::Unsupported,
                "rewrite the table's manifests with the engine that wrote them",
            ),
            false => (
                ErrorKind::Corrupt,
                "compare the file with the one in the table's storage, or read another snapshot",
            ),
        };
        let message = match self.0.field {
            Some(field) => format!("can't read {what}: {field}: {}", self.0.what),
            None => format!("can't read {what}: {}", self.0.what),
        };
        Error::new(kind, message).with_hint(hint)
    }
}
