//! What an origin's failure means: which kind of error it is, and whether trying again may help.

use std::time::Duration;

use crate::error::{Error, ErrorKind};
use crate::location::Location;

/// A failed try.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) kind: ErrorKind,
    pub(crate) passing: bool,
    pub(crate) message: String,
}

impl Failure {
    pub(crate) fn new(kind: ErrorKind, passing: bool, message: impl Into<String>) -> Self {
        Self {
            kind,
            passing,
            message: message.into(),
        }
    }

    /// No byte for as long as an origin may be silent.
    pub(crate) fn stalled(timeout: Duration) -> Self {
        Self::new(
            ErrorKind::Unavailable,
            true,
            format!("it sent nothing for {} s", timeout.as_secs_f32()),
        )
    }

    /// The error of a request that is given up.
    pub(crate) fn give_up(self, what: &str, location: &Location, tries: u32) -> Error {
        let tries = if tries > 1 {
            format!(" in {tries} tries")
        } else {
            String::new()
        };
        let error = Error::new(
            self.kind,
            format!("can't {what} {location}{tries}: {}", self.message),
        );
        match self.kind {
            ErrorKind::PermissionDenied => error.with_hint("check the credentials and the bucket's policy"),
            ErrorKind::Overwritten => error.with_hint(
                "immutable files must not change; `floe cache purge` the location if the new content is meant",
            ),
            ErrorKind::Unavailable => error.with_hint("check the endpoint and the line; what is cached can be read with --offline"),
            _ => error,
        }
    }
}

impl From<opendal::Error> for Failure {
    fn from(error: opendal::Error) -> Self {
        let message = describe(&error);
        let kind = match error.kind() {
            opendal::ErrorKind::NotFound => ErrorKind::NotFound,
            opendal::ErrorKind::PermissionDenied => ErrorKind::PermissionDenied,
            opendal::ErrorKind::ConditionNotMatch => ErrorKind::Overwritten,
            opendal::ErrorKind::RangeNotSatisfied => ErrorKind::OutOfRange,
            opendal::ErrorKind::ConfigInvalid => ErrorKind::Invalid,
            // opendal has no kind for 416 in answers; its text is all there is.
            _ if message.contains("InvalidRange") || message.contains("status: 416") => {
                ErrorKind::OutOfRange
            }
            _ if error.is_temporary() => ErrorKind::Unavailable,
            _ => ErrorKind::Unexpected,
        };
        let passing =
            error.is_temporary() && kind != ErrorKind::Overwritten && kind != ErrorKind::OutOfRange;
        Self {
            kind,
            passing,
            message,
        }
    }
}

/// The server's words and what lies behind them, with no query of any URL: it may hold a signature.
fn describe(error: &opendal::Error) -> String {
    let mut text = format!("{}: {}", error.kind(), error.message());
    let mut source = std::error::Error::source(error);
    while let Some(behind) = source {
        text.push_str(": ");
        text.push_str(&behind.to_string());
        source = behind.source();
    }
    if let Some(status) = error
        .to_string()
        .split("status: ")
        .nth(1)
        .and_then(|rest| rest.get(..3))
    {
        text.push_str(&format!(" (status: {status})"));
    }
    without_queries(&text)
}

fn without_queries(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut in_query = false;
    for character in text.chars() {
        match character {
            '?' => in_query = true,
            c if c.is_whitespace() || matches!(c, '"' | '\'' | ')' | ',' | '>') => in_query = false,
            _ => {}
        }
        if !in_query {
            clean.push(character);
        }
    }
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_in_a_query_is_never_shown() {
        let error = opendal::Error::new(
            opendal::ErrorKind::Unexpected,
            "GET https://a/b?sig=hunter2&x=y failed, (https://c?sig=hunter2)",
        )
        .set_source(std::io::Error::other("at https://d?token=hunter2"));
        let failure = Failure::from(error);
        assert!(!failure.message.contains("hunter2"), "{}", failure.message);
        assert!(
            failure.message.contains("https://a/b failed, (https://c)"),
            "{}",
            failure.message
        );
    }

    #[test]
    fn a_precondition_that_failed_is_no_passing_failure() {
        let conflict =
            opendal::Error::new(opendal::ErrorKind::ConditionNotMatch, "").set_temporary();
        let failure = Failure::from(conflict);
        assert_eq!(
            (failure.kind, failure.passing),
            (ErrorKind::Overwritten, false)
        );
    }
}
