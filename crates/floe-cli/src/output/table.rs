//! Rows as a table for people. Widths are those of the first rows; on a terminal, columns that don't fit are
//! shortened, then left out from the right with a note.

use std::io::Write;

use anyhow::Result;
use arrow_array::RecordBatch;
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::{DataType, SchemaRef};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::rows::RowWriter;

/// Rows that are looked at before widths are chosen.
const SAMPLE_ROWS: usize = 1000;
/// The least width that a column is shortened to.
const LEAST_WIDTH: usize = 8;
/// What stands between columns.
const GAP: &str = "  ";

/// Writes batches as a table.
pub(crate) struct TableWriter<W> {
    schema: SchemaRef,
    out: W,
    width: Option<usize>,
    waiting: Vec<Vec<String>>,
    layout: Option<Layout>,
}

impl<W: Write> TableWriter<W> {
    pub(crate) fn new(schema: SchemaRef, out: W, width: Option<usize>) -> Self {
        Self {
            schema,
            out,
            width,
            waiting: Vec::new(),
            layout: None,
        }
    }

    fn begin(&mut self) -> Result<()> {
        if self.layout.is_some() {
            return Ok(());
        }
        let names: Vec<&str> = self
            .schema
            .fields()
            .iter()
            .map(|field| field.name().as_str())
            .collect();
        let numbers: Vec<bool> = self
            .schema
            .fields()
            .iter()
            .map(|field| is_number(field.data_type()))
            .collect();
        let layout = Layout::fit(&names, &numbers, &self.waiting, self.width);
        layout.line(&mut self.out, &names)?;
        layout.rule(&mut self.out)?;
        for row in std::mem::take(&mut self.waiting) {
            layout.line(&mut self.out, &row)?;
        }
        self.layout = Some(layout);
        Ok(())
    }
}

impl<W: Write> RowWriter for TableWriter<W> {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let options = FormatOptions::default()
            .with_null("NULL")
            .with_display_error(true);
        let columns = batch
            .columns()
            .iter()
            .map(|column| ArrayFormatter::try_new(column, &options))
            .collect::<std::result::Result<Vec<_>, _>>()?;
        for row in 0..batch.num_rows() {
            let cells: Vec<String> = columns
                .iter()
                .map(|column| one_line(&column.value(row).to_string()))
                .collect();
            match &self.layout {
                Some(layout) => layout.line(&mut self.out, &cells)?,
                None => self.waiting.push(cells),
            }
            if self.waiting.len() >= SAMPLE_ROWS {
                self.begin()?;
            }
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        self.begin()?;
        if let Some(layout) = &self.layout {
            layout.note(&mut self.out)?;
        }
        Ok(self.out.flush()?)
    }
}

/// Widths and sides of the columns that are shown.
struct Layout {
    columns: Vec<(usize, bool)>,
    left_out: usize,
    shortens: bool,
}

impl Layout {
    /// Chooses widths for these rows within the terminal's, if there is one.
    fn fit(names: &[&str], numbers: &[bool], rows: &[Vec<String>], width: Option<usize>) -> Self {
        let mut widths: Vec<usize> = names.iter().map(|name| name.width()).collect();
        for row in rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.width());
            }
        }
        let all = widths.len();
        let mut left_out = 0;
        if let Some(terminal) = width {
            shorten(&mut widths, terminal);
            while widths.len() > 1 && total(&widths) > terminal {
                widths.pop();
                left_out = all - widths.len();
            }
            if let [only] = widths.as_mut_slice() {
                *only = (*only).min(terminal);
            }
        }
        let columns = widths.into_iter().zip(numbers.iter().copied()).collect();
        Self {
            columns,
            left_out,
            shortens: width.is_some(),
        }
    }

    fn line<W: Write>(&self, out: &mut W, cells: &[impl AsRef<str>]) -> Result<()> {
        let mut line = String::new();
        for (place, ((width, right), cell)) in self.columns.iter().zip(cells).enumerate() {
            if place > 0 {
                line.push_str(GAP);
            }
            let cell = if self.shortens {
                shortened(cell.as_ref(), *width)
            } else {
                cell.as_ref().to_string()
            };
            let blank = " ".repeat(width.saturating_sub(cell.width()));
            if *right {
                line.push_str(&blank);
                line.push_str(&cell);
            } else {
                line.push_str(&cell);
                line.push_str(&blank);
            }
        }
        Ok(writeln!(out, "{}", line.trim_end())?)
    }

    fn rule<W: Write>(&self, out: &mut W) -> Result<()> {
        let dashes: Vec<String> = self
            .columns
            .iter()
            .map(|(width, _)| "-".repeat(*width))
            .collect();
        Ok(writeln!(out, "{}", dashes.join(GAP))?)
    }

    fn note<W: Write>(&self, out: &mut W) -> Result<()> {
        match self.left_out {
            0 => Ok(()),
            1 => Ok(writeln!(out, "(1 more column does not fit)")?),
            n => Ok(writeln!(out, "({n} more columns do not fit)")?),
        }
    }
}

fn total(widths: &[usize]) -> usize {
    widths.iter().sum::<usize>() + GAP.len() * widths.len().saturating_sub(1)
}

/// Takes width from the widest columns until all fit, or all are at their least.
fn shorten(widths: &mut [usize], terminal: usize) {
    while total(widths) > terminal {
        let over = total(widths) - terminal;
        let Some(widest) = widths.iter_mut().max() else {
            return;
        };
        if *widest <= LEAST_WIDTH {
            return;
        }
        *widest -= over.min((*widest - LEAST_WIDTH).div_ceil(2));
    }
}

/// The text, or its beginning and an ellipsis.
fn shortened(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_string();
    }
    let mut left = width.saturating_sub(1);
    let mut kept: String = text
        .chars()
        .take_while(|c| {
            let needed = c.width().unwrap_or(0);
            let fits = needed <= left;
            left = left.saturating_sub(needed);
            fits
        })
        .collect();
    kept.push('…');
    kept
}

/// Control characters would break the table, or drive the terminal.
fn one_line(text: &str) -> String {
    if !text.contains(char::is_control) {
        return text.to_string();
    }
    text.chars()
        .flat_map(|c| {
            if c.is_control() {
                c.escape_default().collect()
            } else {
                vec![c]
            }
        })
        .collect()
}

fn is_number(data_type: &DataType) -> bool {
    data_type.is_numeric()
}

/// Lines of a small table of strings, the first line its head.
pub(crate) fn lines(
    head: &[&str],
    numbers: &[bool],
    rows: &[Vec<String>],
    width: Option<usize>,
) -> Result<String> {
    let rows: Vec<Vec<String>> = rows
        .iter()
        .map(|row| row.iter().map(|cell| one_line(cell)).collect())
        .collect();
    let layout = Layout::fit(head, numbers, &rows, width);
    let mut out = Vec::new();
    layout.line(&mut out, head)?;
    layout.rule(&mut out)?;
    for row in &rows {
        layout.line(&mut out, row)?;
    }
    layout.note(&mut out)?;
    Ok(String::from_utf8(out)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(rows: &[[&str; 3]], width: Option<usize>) -> String {
        let rows: Vec<Vec<String>> = rows
            .iter()
            .map(|row| row.iter().map(|cell| cell.to_string()).collect())
            .collect();
        lines(&["id", "name", "note"], &[true, false, false], &rows, width).unwrap()
    }

    #[test]
    fn without_a_terminal_every_cell_is_whole() {
        let text = shown(
            &[["1", "a", "x"], ["22", "bcd", "a note that is rather long"]],
            None,
        );
        assert_eq!(
            text,
            "id  name  note\n--  ----  --------------------------\n 1  a     x\n22  bcd   a note that is rather long\n"
        );
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        let wide = "0123456789".repeat(9);
        for width in 1..120 {
            let text = shown(&[[&wide, "ä\u{4e16}\u{754c}", &wide]], Some(width));
            let rows = text.lines().filter(|line| !line.starts_with('('));
            assert!(
                rows.clone().all(|line| line.width() <= width),
                "{width}: {text}"
            );
        }
        assert!(
            shown(&[[&wide, &wide, &wide]], Some(20)).ends_with("(1 more column does not fit)\n")
        );
    }

    #[test]
    fn what_would_drive_the_terminal_is_escaped() {
        assert_eq!(one_line("a\u{1b}[2Jb\n"), "a\\u{1b}[2Jb\\n");
    }
}
