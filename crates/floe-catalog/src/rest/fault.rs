//! What an error of iceberg-rust's REST client means. The client keeps the HTTP status and the server's words only in the
//! text of its error: they are picked out here, once, and nothing else of that text (headers, whole answers) goes on.

use serde_json::Value;

use crate::error::{Error, ErrorKind, find_source};

/// The longest piece of a server's message that is repeated, in characters.
const MESSAGE_CHARS: usize = 300;

/// What could be learnt from a client's error.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Fault {
    /// The HTTP status of the answer.
    pub(super) status: Option<u16>,
    /// The server's own words.
    pub(super) message: Option<String>,
}

impl Fault {
    /// Look into the error.
    pub(super) fn of(error: &iceberg::Error) -> Self {
        let text = error.to_string();
        // Texts of the server stand behind these keys, never before them.
        let number = |key: &str| {
            text.split_once(key)
                .and_then(|(_, rest)| rest.get(..3)?.parse().ok())
        };
        let head_is = |prefix: &str| {
            text.split_once("context: { ")
                .is_some_and(|(_, rest)| rest.starts_with(prefix))
        };
        let is_model = error.kind() == iceberg::ErrorKind::DataInvalid && head_is("type: ");
        let status = if head_is("status: ") {
            number("status: ")
        } else if head_is("code: ") || is_model {
            number("code: ")
        } else {
            None
        };
        let message = match is_model {
            true => Some(error.message().to_string()),
            false => text
                .split_once("json: ")
                .and_then(|(_, json)| error_model(json)),
        };
        Self {
            status,
            message: message.filter(|message| !message.is_empty()),
        }
    }

    /// The error for the caller; `secrets` are blotted out of the server's words.
    pub(super) fn explain(
        self,
        attempted: &str,
        error: &iceberg::Error,
        secrets: &[&str],
    ) -> Error {
        let (kind, found, hint) = self.classify(error);
        let mut text = format!("can't {attempted} of the REST catalog: {found}");
        if let Some(message) = self.message {
            text.push_str(&format!(": {}", scrub(&message, secrets)));
        }
        let explained = Error::new(kind, text);
        let explained = match hint {
            Some(hint) => explained.with_hint(hint),
            None => explained,
        };
        match find_source::<reqwest::Error>(error).and_then(std::error::Error::source) {
            // reqwest's own text holds the URL; its causes tell what happened on the wire.
            Some(cause) => explained.with_source(cause.to_string()),
            None => explained,
        }
    }

    fn classify(&self, error: &iceberg::Error) -> (ErrorKind, String, Option<&'static str>) {
        use iceberg::ErrorKind as Theirs;
        if let Some(http) = find_source::<reqwest::Error>(error) {
            return match http.is_builder() {
                true => (
                    ErrorKind::Invalid,
                    "the request could not be made".into(),
                    Some("check the catalog's uri"),
                ),
                false if http.is_timeout() => (
                    ErrorKind::Unavailable,
                    "the server did not answer in time".into(),
                    None,
                ),
                false => (
                    ErrorKind::Unavailable,
                    "the server can't be reached".into(),
                    Some("check the catalog's uri"),
                ),
            };
        }
        match (error.kind(), self.status) {
            (Theirs::NamespaceNotFound, _) => (
                ErrorKind::NamespaceNotFound,
                "there is no such namespace".into(),
                None,
            ),
            (Theirs::TableNotFound, _) => (
                ErrorKind::TableNotFound,
                "there is no such table".into(),
                None,
            ),
            (Theirs::FeatureUnsupported, _) => {
                (ErrorKind::Unsupported, error.message().into(), None)
            }
            (_, Some(status)) => {
                let found = format!("the server answered {status}");
                match status {
                    401 | 403 | 419 => (
                        ErrorKind::Denied,
                        found,
                        Some("check the catalog's `token` or `credential`, and its grants"),
                    ),
                    404 => (
                        ErrorKind::Invalid,
                        found,
                        Some(
                            "is an Iceberg REST catalog at this uri? Check `uri`, `warehouse` and `prefix`",
                        ),
                    ),
                    406 | 501 => (ErrorKind::Unsupported, found, None),
                    429 | 500..=599 => (ErrorKind::Unavailable, found, None),
                    400..=499 => (ErrorKind::Invalid, found, None),
                    _ => (ErrorKind::Unexpected, found, None),
                }
            }
            (Theirs::Unexpected, None)
                if error.message().starts_with("Failed to parse response") =>
            {
                (
                    ErrorKind::Corrupt,
                    "the answer is not what Iceberg's REST specification says".into(),
                    Some("is an Iceberg REST catalog at this uri?"),
                )
            }
            (Theirs::DataInvalid, None) => (ErrorKind::Invalid, error.message().into(), None),
            (_, None) => (ErrorKind::Unexpected, error.message().into(), None),
        }
    }
}

/// The message of `{"error": {"message": ...}}` at the beginning of a text.
fn error_model(text: &str) -> Option<String> {
    let value: Value = serde_json::Deserializer::from_str(text)
        .into_iter()
        .next()?
        .ok()?;
    Some(value.get("error")?.get("message")?.as_str()?.to_string())
}

/// A server's words, cut short, on one line, without the secrets it may echo.
fn scrub(message: &str, secrets: &[&str]) -> String {
    let mut text = message.split_whitespace().collect::<Vec<_>>().join(" ");
    for secret in secrets.iter().filter(|secret| secret.len() > 3) {
        text = text.replace(secret, "***");
    }
    match text.char_indices().nth(MESSAGE_CHARS) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}
