//! The terminal: data goes to stdout, status and progress to stderr, and progress only where someone watches.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use anyhow::Result;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

/// What of the terminal a verb may use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ui {
    /// One JSON document on stdout.
    pub(crate) json: bool,
    quiet: bool,
}

impl Ui {
    pub(crate) fn new(json: bool, quiet: bool) -> Self {
        Self { json, quiet }
    }

    /// Whether stdout is a terminal.
    pub(crate) fn shows_data(&self) -> bool {
        io::stdout().is_terminal()
    }

    /// Columns that a line of data may take; `None` where nobody looks at lines.
    pub(crate) fn width(&self) -> Option<usize> {
        if !self.shows_data() {
            return None;
        }
        terminal_size::terminal_size_of(io::stdout())
            .map(|(width, _)| usize::from(width.0))
            .filter(|width| *width > 0)
    }

    /// A line of status.
    pub(crate) fn status(&self, line: &str) {
        if !self.quiet {
            // Status that nobody can be told is no failure of the work.
            let _ = writeln!(io::stderr().lock(), "{line}");
        }
    }

    /// Text on stdout.
    pub(crate) fn print(&self, text: &str) -> Result<()> {
        let mut stdout = io::stdout().lock();
        stdout.write_all(text.as_bytes())?;
        Ok(stdout.flush()?)
    }

    /// The one JSON document of this run.
    pub(crate) fn document(&self, document: &impl Serialize) -> Result<()> {
        self.print(&(serde_json::to_string_pretty(document)? + "\n"))
    }

    /// A progress bar over files, hidden unless stderr is a terminal.
    pub(crate) fn files_bar(&self, what: &str) -> ProgressBar {
        self.bar("{msg} {bar:30} {pos}/{len} files {prefix} {elapsed}", what)
    }

    /// A spinner for work of unknown length.
    pub(crate) fn spinner(&self, what: &str) -> ProgressBar {
        self.bar("{spinner} {msg} {prefix} {elapsed}", what)
    }

    fn bar(&self, template: &str, what: &str) -> ProgressBar {
        if !self.shows_progress() {
            return ProgressBar::hidden();
        }
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        bar.set_style(
            ProgressStyle::with_template(template).expect("the templates of this file are right"),
        );
        bar.set_message(what.to_string());
        bar.enable_steady_tick(Duration::from_millis(200));
        bar
    }

    /// Whether someone watches stderr.
    pub(crate) fn shows_progress(&self) -> bool {
        !self.quiet && io::stderr().is_terminal()
    }
}

/// Bytes as people read them.
pub(crate) fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["kB", "MB", "GB", "TB", "PB"];
    if count < 1000 {
        return format!("{count} B");
    }
    let mut value = count as f64 / 1000.0;
    let mut unit = 0;
    while value >= 999.95 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

/// A count with its thousands apart.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() * 4 / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_shown_as_people_read_them() {
        assert_eq!(
            [bytes(0), bytes(999), bytes(1000), bytes(999_999)],
            ["0 B", "999 B", "1.0 kB", "1.0 MB"]
        );
        assert_eq!(bytes(121_100_000), "121.1 MB");
        assert_eq!(
            [count(0), count(999), count(1000), count(1_117_921)],
            ["0", "999", "1,000", "1,117,921"]
        );
    }
}
