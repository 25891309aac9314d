//! Decoding a row group to batches, one at a time. All of this is work for a processor: no waiting, no I/O.

use std::collections::BTreeSet;
use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_buffer::BooleanBuffer;
use arrow_schema::ArrowError;
use arrow_select::concat::concat;
use arrow_select::filter::FilterPredicate;
use parquet::arrow::arrow_reader::ParquetRecordBatchReader;

use super::chunks::Chunks;
use super::convert::{Child, Constants};
use super::deletes::KeyRows;
use super::group::{Group, OpenFile};
use super::metadata::{Described, MetadataColumn};
use super::needs::{Part, Passes};
use super::rows::BatchRows;
use super::scanned::{self, Scanned};
use super::sieve::{self, Sieve};
use crate::error::{Error, Result};

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

/// A pass over some leaf columns of a group.
struct Pass {
    /// One reader, two that share the columns, or none if no leaf column is decoded.
    readers: Vec<ParquetRecordBatchReader>,
    scanned: Scanned,
}

/// Rows that a pass decoded.
struct Decoded {
    rows: Vec<Range<usize>>,
    length: usize,
    /// Not yet converted; empty if no leaf column was decoded.
    columns: Vec<ArrayRef>,
}

/// Values of a pass from which on a second thread pays: below, waking it takes as long.
const WORTH_HELP: usize = 32 * 1024;

impl Pass {
    /// `fetched`: rows whose pages are there, if not all. `helped`: a second thread may work on it.
    fn new(
        group: &Group,
        part: &Part,
        fetched: Option<&[Range<usize>]>,
        scanned: Scanned,
        helped: bool,
    ) -> Result<Self> {
        let file = &group.file;
        let layout = &part.layout;
        let worth_help = layout.leaves.len() * scanned.left() >= WORTH_HELP;
        let levels = match &layout.halves {
            Some(halves) if helped && worth_help => halves.as_slice(),
            _ => layout.levels.as_slice(),
        };
        let mut readers = Vec::new();
        if let Some(footer) = &file.footer {
            let chunks = Chunks {
                metadata: footer,
                group: group.index,
                rows: group.rows,
                fetched,
                offsets: &group.offsets,
                pieces: &group.pieces,
            };
            let batch_rows = file.batch_rows.min(group.rows);
            for levels in levels {
                let selection = scanned.selection(group.rows);
                let reader = ParquetRecordBatchReader::try_new_with_row_groups(
                    levels, &chunks, batch_rows, selection,
                );
                readers.push(reader.map_err(|source| damaged(file, source))?);
            }
        }
        Ok(Self { readers, scanned })
    }

    /// Whether all its rows were decoded.
    fn is_over(&self) -> bool {
        self.scanned.left() == 0
    }

    fn next(&mut self, group: &Group, helped: bool) -> Result<Option<Decoded>> {
        let file = &group.file;
        let (length, columns) = match self.readers.as_mut_slice() {
            [] => (self.scanned.left().min(file.batch_rows), Vec::new()),
            [reader] => columns_of(file, reader.next())?,
            readers => {
                let mut length = None;
                let mut columns = Vec::new();
                for batch in side_by_side(readers, helped) {
                    let (rows, decoded) = columns_of(file, batch)?;
                    if *length.get_or_insert(rows) != rows {
                        return Err(file.corrupt(format_args!(
                            "columns of row group {} are not of the same length",
                            group.index
                        )));
                    }
                    columns.extend(decoded);
                }
                (length.unwrap_or_default(), columns)
            }
        };
        let rows = self.scanned.take(length);
        let taken: usize = rows.iter().map(Range::len).sum();
        if taken < length || (length == 0 && self.scanned.left() > 0) {
            return Err(file.corrupt(format_args!(
                "row group {} does not hold the {} rows that its footer tells",
                group.index, group.rows
            )));
        }
        Ok((length > 0).then_some(Decoded {
            rows,
            length,
            columns,
        }))
    }
}

/// What Parquet's reader gives: nothing when it is through.
type Read = Option<std::result::Result<RecordBatch, ArrowError>>;

fn columns_of(file: &OpenFile, batch: Read) -> Result<(usize, Vec<ArrayRef>)> {
    match batch {
        None => Ok((0, Vec::new())),
        Some(Err(source)) => Err(damaged(file, source)),
        Some(Ok(batch)) => Ok((batch.num_rows(), batch.columns().to_vec())),
    }
}

/// The next batch of each reader; `helped`: at the same time.
fn side_by_side(readers: &mut [ParquetRecordBatchReader], helped: bool) -> Vec<Read> {
    if !helped {
        return readers.iter_mut().map(Iterator::next).collect();
    }
    std::thread::scope(|scope| {
        let (first, others) = readers.split_at_mut(1);
        let others: Vec<_> = others
            .iter_mut()
            .map(|reader| scope.spawn(|| reader.next()))
            .collect();
        let mut batches: Vec<_> = first.iter_mut().map(Iterator::next).collect();
        for other in others {
            // Parquet's decoder may panic on damaged bytes: whoever runs this knows.
            batches.push(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        batches
    })
}

fn damaged(file: &OpenFile, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::new(
        crate::error::ErrorKind::Corrupt,
        format!("can't decode the rows of {}", file.location()),
    )
    .with_source(source)
}

/// The table's columns, made of what was decoded as they are asked for.
struct Columns<'a> {
    file: &'a OpenFile,
    part: &'a Part,
    decoded: Vec<ArrayRef>,
    rows: usize,
    /// Converted already.
    made: Vec<(usize, ArrayRef)>,
}

impl<'a> Columns<'a> {
    fn new(group: &'a Group, part: &'a Part, decoded: Vec<ArrayRef>, rows: usize) -> Self {
        Self {
            file: &group.file,
            part,
            decoded,
            rows,
            made: Vec::new(),
        }
    }

    /// A column that will be asked for again.
    fn remembered(&mut self, at: usize) -> Result<ArrayRef> {
        let column = self.column(at)?;
        if self.made(at).is_none() {
            self.made.push((at, column.clone()));
        }
        Ok(column)
    }

    fn column(&self, at: usize) -> Result<ArrayRef> {
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
    fn sift(&mut self, sieve: &Sieve) -> Result<()> {
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
