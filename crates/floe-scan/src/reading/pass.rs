//! Decoding some leaf columns of a row group, batch by batch: on one thread, or on two that share the columns.

use std::ops::Range;
use std::panic::resume_unwind;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::ArrowError;
use parquet::arrow::arrow_reader::ParquetRecordBatchReader;

use super::chunks::Chunks;
use super::group::{Group, OpenFile};
use super::needs::Part;
use super::scanned::Scanned;
use crate::error::{Error, ErrorKind, Result};

/// A pass over some leaf columns of a group.
pub(super) struct Pass {
    /// One reader, two that share the columns, or none if no leaf column is decoded.
    readers: Vec<ParquetRecordBatchReader>,
    scanned: Scanned,
}

/// Rows that a pass decoded.
pub(super) struct Decoded {
    /// Which of the group's, in order.
    pub(super) rows: Vec<Range<usize>>,
    /// How many that is.
    pub(super) length: usize,
    /// Not yet converted; empty if no leaf column was decoded.
    pub(super) columns: Vec<ArrayRef>,
}

/// Values of a pass from which on a second thread pays: below, waking it takes as long.
const WORTH_HELP: usize = 32 * 1024;

impl Pass {
    /// `fetched`: rows whose pages are there, if not all. `helped`: a second thread may work on it.
    pub(super) fn new(
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
    pub(super) fn is_over(&self) -> bool {
        self.scanned.left() == 0
    }

    pub(super) fn next(&mut self, group: &Group, helped: bool) -> Result<Option<Decoded>> {
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
        ErrorKind::Corrupt,
        format!("can't decode the rows of {}", file.location()),
    )
    .with_source(source)
}
