//! Lists of things other than rows: for people a small table, for scripts one JSON document.

use anyhow::Result;

use super::table;
use crate::ui::Ui;

/// A table of strings under a head.
pub(crate) struct Listing {
    head: Vec<&'static str>,
    numbers: Vec<bool>,
    rows: Vec<Vec<String>>,
}

impl Listing {
    /// Columns by their names; those whose name ends with `#` are numbers.
    pub(crate) fn new(columns: &[&'static str]) -> Self {
        let numbers = columns.iter().map(|column| column.ends_with('#')).collect();
        Self {
            head: columns
                .iter()
                .map(|column| column.trim_end_matches('#'))
                .collect(),
            numbers,
            rows: Vec::new(),
        }
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Prints it, or `nothing` if it is empty.
    pub(crate) fn print(&self, ui: &Ui, nothing: &str) -> Result<()> {
        if self.rows.is_empty() {
            ui.status(nothing);
            return Ok(());
        }
        ui.print(&table::lines(
            &self.head,
            &self.numbers,
            &self.rows,
            ui.width(),
        )?)
    }
}

/// Names and values, a line each.
pub(crate) fn facts(facts: &[(&str, String)]) -> String {
    let widest = facts.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    facts
        .iter()
        .map(|(name, value)| format!("{name:widest$}  {value}\n"))
        .collect()
}
