//! The table's columns of a batch, made of what was decoded of it.

use std::collections::BTreeSet;

use arrow_array::ArrayRef;

use super::convert::{Child, Constants};
use super::group::{Group, OpenFile};
use super::needs::Part;
use super::sieve::Sieve;
use crate::error::Result;

/// The table's columns, made of what was decoded as they are asked for.
pub(super) struct Columns<'a> {
    file: &'a OpenFile,
    part: &'a Part,
    decoded: Vec<ArrayRef>,
    pub(super) rows: usize,
    /// Converted already.
    made: Vec<(usize, ArrayRef)>,
}

impl<'a> Columns<'a> {
    pub(super) fn new(
        group: &'a Group,
        part: &'a Part,
        decoded: Vec<ArrayRef>,
        rows: usize,
    ) -> Self {
        Self {
            file: &group.file,
            part,
            decoded,
            rows,
            made: Vec::new(),
        }
    }

    /// A column that will be asked for again.
    pub(super) fn remembered(&mut self, at: usize) -> Result<ArrayRef> {
        let column = self.column(at)?;
        if self.made(at).is_none() {
            self.made.push((at, column.clone()));
        }
        Ok(column)
    }

    pub(super) fn column(&self, at: usize) -> Result<ArrayRef> {
        if let Some(made) = self.made(at) {
            return Ok(made.clone());
        }
        let constants = Constants(&self.file.task.constants);
        let made = match self.source(at) {
            Some(Child::Decoded(position, convert)) => {
                let column = self
                    .decoded
                    .get(*position)
                    .ok_or_else(|| self.file.corrupt("a column is missing in what was decoded"))?;
                convert.apply(column.clone(), constants)
            }
            Some(Child::Missing(missing)) => missing.fill(self.rows, constants),
            None => return Err(self.file.corrupt("a column was not laid out")),
        };
        made.map_err(|e| self.file.unfit(e))
    }

    /// Leaves only these rows of every column that goes out; the others must not be asked for any more.
    pub(super) fn sift(&mut self, sieve: &Sieve) -> Result<()> {
        let mut made = std::mem::take(&mut self.made);
        made.retain(|(at, _)| self.file.reading.needs.goes_out(*at));
        for (at, column) in made {
            let column = self.sifted(sieve, column)?;
            self.made.push((at, column));
        }
        let unmade = self.unmade();
        let decoded = std::mem::take(&mut self.decoded).into_iter().enumerate();
        let decoded = decoded.map(|(position, column)| match unmade.contains(&position) {
            true => self.sifted(sieve, column),
            false => Ok(column),
        });
        self.decoded = decoded.collect::<Result<_>>()?;
        self.rows = sieve.rows();
        Ok(())
    }

    fn sifted(&self, sieve: &Sieve, column: ArrayRef) -> Result<ArrayRef> {
        sieve.apply(column).map_err(|e| self.file.unfit(e))
    }

    /// Decoded columns of which columns that go out are still to be made, each once.
    fn unmade(&self) -> BTreeSet<usize> {
        let needs = &self.file.reading.needs;
        let at = self.part.at.iter().copied();
        at.filter(|at| needs.goes_out(*at) && self.made(*at).is_none())
            .filter_map(|at| match self.source(at) {
                Some(Child::Decoded(position, _)) => Some(*position),
                _ => None,
            })
            .collect()
    }

    fn made(&self, at: usize) -> Option<&ArrayRef> {
        let made = self.made.iter().find(|(known, _)| *known == at);
        made.map(|(_, column)| column)
    }

    fn source(&self, at: usize) -> Option<&'a Child> {
        // Positions are in order.
        let place = self.part.at.binary_search(&at).ok()?;
        self.part.layout.columns.get(place)
    }
}
