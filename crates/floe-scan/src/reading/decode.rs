//! Decoding a row group to batches, one at a time. All of this is work for a processor: no waiting, no I/O.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_buffer::BooleanBuffer;
use arrow_select::concat::concat;
use arrow_select::filter::FilterPredicate;

use super::columns::Columns;
use super::deletes::KeyRows;
use super::group::{Group, OpenFile};
use super::metadata::{Described, MetadataColumn};
use super::needs::Passes;
use super::pass::{Decoded, Pass};
use super::rows::BatchRows;
use super::scanned::{self, Scanned};
use super::sieve::{self, Sieve};
use crate::error::Result;

/// The decoder of one row group.
pub(super) struct Decoder {
    group: Group,
    state: State,
}

enum State {
    Start,
    /// Everything in one pass.
    One(Pass, Dead),
    /// The pass over what decides which rows go out.
    Filter(Pass, Dead, Kept),
    /// The other columns of those rows are waited for.
    Fetch(Kept),
    /// The pass over the other columns of those rows.
    Rest(Pass, Kept),
    Done,
}

/// A bit for each deleted position of the group.
type Dead = Option<BooleanBuffer>;

/// What one step gave.
pub(super) enum Step {
    Batch(RecordBatch),
    /// No rows yet.
    More,
    /// These bytes must be fetched first.
    Fetch(Vec<Range<u64>>),
    Done,
}

/// Rows that were found to go out.
#[derive(Default)]
struct Kept {
    rows: Vec<Range<usize>>,
    /// Of each batch of them, the columns that go out: by position of the wanted field.
    columns: Vec<(usize, Vec<ArrayRef>)>,
    /// Whether each is deleted; kept only if that goes out.
    deleted: Vec<bool>,
    /// How many of them went out.
    out: usize,
}

impl Kept {
    /// The rows of the group whose pages the rest is read from, if not all.
    fn fetched(&self, rows: usize) -> Option<&[Range<usize>]> {
        scanned::skips_between(self.rows.len(), rows).then_some(self.rows.as_slice())
    }
}

impl Decoder {
    pub(super) fn new(group: Group) -> Self {
        Self {
            group,
            state: State::Start,
        }
    }

    /// Whether all rows went out.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.state, State::Done)
    }

    /// Decodes the next batch, or a part of the way to it. `helped`: a second thread may work on it too.
    pub(super) fn step(&mut self, helped: bool) -> Result<Step> {
        match std::mem::replace(&mut self.state, State::Done) {
            State::Start => self.start(helped)?,
            State::One(mut pass, dead) => {
                if let Some(batch) = pass.next(&self.group, helped)? {
                    let out = one(&self.group, batch, dead.as_ref())?;
                    if !pass.is_over() {
                        self.state = State::One(pass, dead);
                    }
                    return Ok(out.map_or(Step::More, Step::Batch));
                }
                return Ok(Step::Done);
            }
            State::Filter(mut pass, dead, mut kept) => match pass.next(&self.group, helped)? {
                Some(batch) => {
                    filter(&self.group, batch, dead.as_ref(), &mut kept)?;
                    self.state = State::Filter(pass, dead, kept);
                }
                None => return self.kept(kept, helped),
            },
            State::Fetch(kept) => self.rest(kept, helped)?,
            State::Rest(mut pass, mut kept) => {
                if let Some(batch) = pass.next(&self.group, helped)? {
                    let out = rest(&self.group, batch, &mut kept)?;
                    if !pass.is_over() {
                        self.state = State::Rest(pass, kept);
                    }
                    return Ok(Step::Batch(out));
                }
                return Ok(Step::Done);
            }
            State::Done => return Ok(Step::Done),
        }
        Ok(match self.state {
            State::Done => Step::Done,
            _ => Step::More,
        })
    }

    fn start(&mut self, helped: bool) -> Result<()> {
        let group = &self.group;
        let file = group.file.clone();
        let dead = group.dead();
        let mut scanned = match &group.selected {
            Some(selected) => Scanned::new(selected.iter().cloned()),
            None => Scanned::new(std::iter::once(0..group.rows)),
        };
        if let Some(dead) = &dead
            && !wants_deleted(&file)
        {
            let live = scanned.clone().without(dead);
            // Pages that are not there must not be looked at.
            if group.selected.is_none() || scanned::skips_between(live.ranges(), group.rows) {
                scanned = live;
            }
        }
        if scanned.left() == 0 {
            self.state = State::Done;
            return Ok(());
        }
        let selected = group.selected.as_deref();
        self.state = match &file.reading.passes {
            Passes::One(part) => {
                State::One(Pass::new(group, part, selected, scanned, helped)?, dead)
            }
            Passes::Two { filter, .. } => {
                let pass = Pass::new(group, filter, selected, scanned, helped)?;
                let outgoing = |at: &&usize| file.reading.needs.goes_out(**at);
                let columns = filter.at.iter().filter(outgoing);
                let columns = columns.map(|at| (*at, Vec::new())).collect();
                let kept = Kept {
                    columns,
                    ..Kept::default()
                };
                State::Filter(pass, dead, kept)
            }
        };
        Ok(())
    }

    /// The filter is through.
    fn kept(&mut self, kept: Kept, helped: bool) -> Result<Step> {
        let Passes::Two { rest, .. } = &self.group.file.reading.passes else {
            return Ok(Step::Done);
        };
        if kept.rows.is_empty() {
            return Ok(Step::Done);
        }
        let needed = self
            .group
            .ranges_of(&rest.layout.leaves, kept.fetched(self.group.rows));
        let missing = self.group.pieces.missing(&needed);
        if missing.is_empty() {
            self.rest(kept, helped)?;
            return Ok(Step::More);
        }
        self.state = State::Fetch(kept);
        Ok(Step::Fetch(missing))
    }

    /// Fetches what a step asked for.
    pub(super) async fn fetch(&mut self, ranges: &[Range<u64>]) -> Result<()> {
        self.group.fetch_ranges(ranges).await
    }

    fn rest(&mut self, mut kept: Kept, helped: bool) -> Result<()> {
        let Passes::Two { rest, .. } = &self.group.file.reading.passes else {
            return Ok(());
        };
        for (_, parts) in &mut kept.columns {
            let whole = match parts.as_slice() {
                [one] => one.clone(),
                parts => {
                    let parts: Vec<&dyn Array> = parts.iter().map(AsRef::as_ref).collect();
                    concat(&parts).map_err(|e| self.group.file.unfit(e))?
                }
            };
            *parts = vec![whole];
        }
        let scanned = Scanned::new(kept.rows.iter().cloned());
        let fetched = kept.fetched(self.group.rows);
        let pass = Pass::new(&self.group, rest, fetched, scanned, helped)?;
        self.state = State::Rest(pass, kept);
        Ok(())
    }
}

fn wants_deleted(file: &OpenFile) -> bool {
    let mut metadata = file.shared.spec.metadata.iter();
    metadata.any(|column| matches!(column, MetadataColumn::Deleted))
}

/// Which rows of a batch go out.
struct Verdict {
    /// `None`: all.
    keep: Option<BooleanBuffer>,
    /// `None`: none.
    deleted: Option<BooleanBuffer>,
}

/// Judges rows by deletes and by the residual condition.
fn judge(
    group: &Group,
    columns: &mut Columns<'_>,
    rows: &[Range<usize>],
    dead: Option<&BooleanBuffer>,
) -> Result<Verdict> {
    let file = &group.file;
    let needs = &file.reading.needs;
    let length = columns.rows;
    let mut deleted = dead
        .map(|dead| scanned::gather(dead, rows))
        .filter(|dead| dead.count_set_bits() > 0);
    for (keys, deletes) in needs.equality.iter().zip(file.deletes.equality()) {
        let keys = keys
            .iter()
            .map(|key| {
                let column = columns.remembered(key.at)?;
                super::rows::below(&column, &vec![0; key.depth])
                    .ok_or_else(|| file.corrupt("a column of an equality delete is no struct"))
            })
            .collect::<Result<Vec<_>>>()?;
        let rows = KeyRows::new(&keys).map_err(|e| file.unfit(e))?;
        for set in deletes {
            let found = set.find(&rows);
            deleted = match (deleted, found) {
                (Some(one), Some(other)) => Some(&one | &other),
                (one, other) => one.or(other),
            };
        }
    }
    let live = match &deleted {
        Some(deleted) if !wants_deleted(file) => Some(!deleted),
        _ => None,
    };
    let Some(residual) = &group.residual else {
        return Ok(Verdict {
            keep: live,
            deleted,
        });
    };
    // What is deleted must not even be looked at: a condition may fail on it.
    let filter = live.clone().map(sieve::predicate);
    let mut rows = BatchRows {
        rows: filter.as_ref().map_or(length, FilterPredicate::count),
        columns: Vec::with_capacity(needs.residual.len()),
        paths: &file.shared.paths,
    };
    for (id, at) in &needs.residual {
        let whole = columns.remembered(*at)?;
        let column = match &filter {
            Some(filter) => filter.filter(&whole).map_err(|e| file.unfit(e))?,
            None => whole,
        };
        rows.columns.push((*id, column));
    }
    let truths = residual.evaluate(&rows)?;
    // NULL is not true.
    let matching = match truths.nulls() {
        Some(nulls) => truths.values() & nulls.inner(),
        None => truths.values().clone(),
    };
    let keep = match live {
        Some(live) => scanned::nest(&live, &matching),
        None => matching,
    };
    let keep = (keep.count_set_bits() < length).then_some(keep);
    Ok(Verdict { keep, deleted })
}

/// The rows of a batch that go out, all columns of which are there.
fn one(
    group: &Group,
    decoded: Decoded,
    dead: Option<&BooleanBuffer>,
) -> Result<Option<RecordBatch>> {
    let file = &group.file;
    let Passes::One(part) = &file.reading.passes else {
        return Ok(None);
    };
    let mut columns = Columns::new(group, part, decoded.columns, decoded.length);
    let verdict = judge(group, &mut columns, &decoded.rows, dead)?;
    let mut kept = Vec::new();
    scanned::keep(&mut kept, &decoded.rows, verdict.keep.as_ref());
    if kept.is_empty() {
        return Ok(None);
    }
    let deleted = match (&verdict.keep, &verdict.deleted) {
        (Some(keep), Some(deleted)) => Some(keep.set_indices().map(|i| deleted.value(i)).collect()),
        (_, deleted) => deleted.clone(),
    };
    if let Some(keep) = verdict.keep {
        columns.sift(&Sieve::new(keep))?;
    }
    let rows = columns.rows;
    let batch = assemble(group, rows, &kept, deleted.as_ref(), |at| {
        columns.column(at)
    })?;
    Ok(Some(batch))
}

/// Adds those rows of a batch that go out to the kept ones.
fn filter(
    group: &Group,
    decoded: Decoded,
    dead: Option<&BooleanBuffer>,
    kept: &mut Kept,
) -> Result<()> {
    let file = &group.file;
    let Passes::Two { filter: part, .. } = &file.reading.passes else {
        return Ok(());
    };
    let mut columns = Columns::new(group, part, decoded.columns, decoded.length);
    let verdict = judge(group, &mut columns, &decoded.rows, dead)?;
    scanned::keep(&mut kept.rows, &decoded.rows, verdict.keep.as_ref());
    if wants_deleted(file) {
        let deleted = |index| verdict.deleted.as_ref().is_some_and(|d| d.value(index));
        match &verdict.keep {
            Some(keep) => kept.deleted.extend(keep.set_indices().map(deleted)),
            None => kept.deleted.extend((0..decoded.length).map(deleted)),
        }
    }
    if let Some(keep) = verdict.keep {
        let sieve = Sieve::new(keep);
        if sieve.rows() == 0 {
            return Ok(());
        }
        columns.sift(&sieve)?;
    }
    for (at, parts) in &mut kept.columns {
        parts.push(columns.column(*at)?);
    }
    Ok(())
}

/// Kept rows with all their columns.
fn rest(group: &Group, decoded: Decoded, kept: &mut Kept) -> Result<RecordBatch> {
    let file = &group.file;
    let Passes::Two { rest: part, .. } = &file.reading.passes else {
        return Err(file.corrupt("it was read in one pass"));
    };
    let columns = Columns::new(group, part, decoded.columns, decoded.length);
    let (from, rows) = (kept.out, decoded.length);
    let deleted = (!kept.deleted.is_empty())
        .then(|| kept.deleted[from..from + rows].iter().copied().collect());
    let batch = assemble(group, rows, &decoded.rows, deleted.as_ref(), |at| {
        let filtered = kept.columns.iter().find(|(known, _)| *known == at);
        match filtered.and_then(|(_, whole)| whole.first()) {
            Some(whole) => Ok(whole.slice(from, rows)),
            None => columns.column(at),
        }
    })?;
    kept.out += rows;
    Ok(batch)
}

/// A batch under the declared schema.
fn assemble(
    group: &Group,
    rows: usize,
    ranges: &[Range<usize>],
    deleted: Option<&BooleanBuffer>,
    mut column: impl FnMut(usize) -> Result<ArrayRef>,
) -> Result<RecordBatch> {
    let file = &group.file;
    let (spec, needs) = (&file.shared.spec, &file.reading.needs);
    let mut columns = Vec::with_capacity(spec.arrow.fields().len());
    for at in &needs.outputs {
        columns.push(column(*at)?);
    }
    let numbered = spec.metadata.iter().any(MetadataColumn::needs_positions);
    let positions: Vec<i64> = match numbered {
        true => {
            let rows = ranges.iter().cloned().flatten();
            rows.map(|row| (group.first + row as u64).cast_signed())
                .collect()
        }
        false => Vec::new(),
    };
    for (metadata, stored) in spec.metadata.iter().zip(&needs.stored) {
        let stored = stored.map(&mut column).transpose()?;
        let described = Described {
            file: &file.task.file,
            rows,
            positions: &positions,
            deleted,
        };
        columns.push(metadata.column(described, stored.as_ref())?);
    }
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Arc::clone(&spec.arrow), columns, &options)
        .map_err(|e| file.unfit(e))
}
