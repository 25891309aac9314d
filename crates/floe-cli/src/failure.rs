//! How a failure is told: `Error:` / `Caused by:` / `Hint:` on stderr, and an exit code by its kind.

use std::error::Error as StdError;
use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;

use floe::ErrorKind;

/// The request can't be met.
const UNMET: u8 = 1;
/// The command line is wrong.
const USAGE: u8 = 2;
/// Something is wrong with floe itself.
const INTERNAL: u8 = 5;

/// A command line that clap let through but that makes no sense.
#[derive(Debug)]
pub(crate) struct Usage(String);

impl Usage {
    pub(crate) fn error(message: impl Into<String>) -> anyhow::Error {
        anyhow::Error::new(Self(message.into()))
    }
}

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl StdError for Usage {}

/// Tells the failure and gives its exit code. A reader that went away (`floe ... | head`) is none.
pub(crate) fn report(error: &anyhow::Error) -> ExitCode {
    if is_broken_pipe(error) {
        return ExitCode::SUCCESS;
    }
    // Nobody may be listening on stderr either; the exit code still tells.
    let _ = io::stderr().lock().write_all(text(error).as_bytes());
    ExitCode::from(code(error))
}

fn code(error: &anyhow::Error) -> u8 {
    if error.chain().any(|cause| cause.is::<Usage>()) {
        return USAGE;
    }
    let kind = error
        .chain()
        .find_map(|cause| cause.downcast_ref::<floe::Error>())
        .map(floe::Error::kind);
    if kind == Some(ErrorKind::Unexpected) {
        INTERNAL
    } else {
        UNMET
    }
}

fn text(error: &anyhow::Error) -> String {
    let mut lines = vec![format!("Error: {error}")];
    let mut told = error.to_string();
    for cause in error.chain().skip(1) {
        // Iceberg's text is also that of all its causes, which come next.
        let iceberg = cause.downcast_ref::<iceberg::Error>();
        let cause = iceberg.map_or_else(|| cause.to_string(), |error| error.message().to_string());
        // Many errors repeat what lies behind them.
        if !told.contains(&cause) {
            lines.push(format!("Caused by: {cause}"));
        }
        told = cause;
    }
    if let Some(hint) = hint(error) {
        lines.push(format!("Hint: {hint}"));
    }
    lines.join("\n") + "\n"
}

fn hint(error: &anyhow::Error) -> Option<String> {
    error.chain().find_map(|cause| {
        let ours = cause
            .downcast_ref::<floe::Error>()
            .and_then(floe::Error::hint);
        let scan = || {
            cause
                .downcast_ref::<floe_scan::Error>()
                .and_then(floe_scan::Error::hint)
        };
        let store = || {
            cause
                .downcast_ref::<floe_store::Error>()
                .and_then(floe_store::Error::hint)
        };
        ours.or_else(scan).or_else(store).map(str::to_string)
    })
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let io = cause.downcast_ref::<io::Error>();
        let json = cause
            .downcast_ref::<serde_json::Error>()
            .and_then(serde_json::Error::io_error_kind);
        io.map(io::Error::kind).or(json) == Some(io::ErrorKind::BrokenPipe)
    })
}

#[cfg(test)]
mod tests {
    use anyhow::Context as _;

    use super::*;

    #[test]
    fn a_cause_that_repeats_is_told_once() {
        let inner: anyhow::Result<()> = Err(anyhow::anyhow!("no route"));
        let error = inner
            .context("can't fetch x: no route")
            .context("can't read t")
            .unwrap_err();
        assert_eq!(
            text(&error),
            "Error: can't read t\nCaused by: can't fetch x: no route\n"
        );
        assert_eq!(code(&error), UNMET);
    }

    #[test]
    fn kinds_become_exit_codes_and_hints_are_told() {
        let usage = Usage::error("two of one");
        assert_eq!(code(&usage), USAGE);
        let bug = anyhow::Error::new(
            floe::Error::new(ErrorKind::Unexpected, "bug").with_hint("report it"),
        );
        assert_eq!(
            (code(&bug), text(&bug)),
            (INTERNAL, "Error: bug\nHint: report it\n".to_string())
        );
    }

    #[test]
    fn a_reader_that_went_away_is_no_error() {
        let gone =
            anyhow::Error::new(io::Error::from(io::ErrorKind::BrokenPipe)).context("writing rows");
        assert!(is_broken_pipe(&gone));
        assert!(!is_broken_pipe(&anyhow::anyhow!("else")));
    }
}
