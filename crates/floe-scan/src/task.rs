//! What a plan hands to the reader: a data file, the files that delete its rows, and what is left to check on its rows.

use std::sync::Arc;

use iceberg::spec::{DataFileFormat, Datum, Literal, Struct};

use crate::predicate::Predicate;

/// A data file of a snapshot, as its manifest tells it.
#[derive(Clone, Debug)]
pub struct DataFile {
    /// Its location, as the manifest writes it.
    pub path: String,
    /// Its format.
    pub format: DataFileFormat,
    /// Its whole length in bytes.
    pub bytes: u64,
    /// Its rows, deleted ones included.
    pub rows: u64,
    /// The partition spec that it was written with.
    pub spec_id: i32,
    /// Its partition values, in the spec's order.
    pub partition: Arc<Struct>,
    /// The sequence number that decides which deletes apply.
    pub data_sequence_number: i64,
    /// The sequence number of the snapshot that added it.
    pub file_sequence_number: Option<i64>,
    /// `_row_id` of its first row, in tables of format version 3 (inherited from the manifest where absent).
    pub first_row_id: Option<i64>,
    /// Bytes of each column's chunks by field id, sorted by id; empty if not told.
    pub column_sizes: Vec<(i32, u64)>,
    /// Whether its key metadata says that it is encrypted.
    pub encrypted: bool,
    /// Metrics by field id that planning kept, sorted by id.
    pub metrics: Vec<(i32, Metrics)>,
}

/// What a manifest tells of one column of one file. `None`: not told.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metrics {
    /// Values, NULL and NaN included (more than rows, below a list or map).
    pub values: Option<u64>,
    /// NULLs.
    pub nulls: Option<u64>,
    /// NaNs.
    pub nans: Option<u64>,
    /// No value but NULL and NaN is smaller; it may be a truncated, smaller one. In the type of the *read* schema.
    pub lower: Option<Datum>,
    /// No value but NULL and NaN is greater; it may be a truncated, greater one. In the type of the *read* schema.
    pub upper: Option<Datum>,
}

/// A file that deletes rows of data files.
#[derive(Clone, Debug, PartialEq)]
pub struct DeleteFile {
    /// Its location.
    pub path: String,
    /// Its format (Puffin for a deletion vector).
    pub format: DataFileFormat,
    /// Its whole length in bytes.
    pub bytes: u64,
    /// Rows in it (for a deletion vector: positions).
    pub rows: u64,
    /// What it deletes by.
    pub kind: DeleteKind,
    /// Its sequence number.
    pub data_sequence_number: i64,
    /// Whether its key metadata says that it is encrypted.
    pub encrypted: bool,
}

/// How a delete file names the rows that it deletes.
#[derive(Clone, Debug, PartialEq)]
pub enum DeleteKind {
    /// Rows of (path, position).
    Positions,
    /// A blob of a Puffin file: positions of one data file, as a 64-bit roaring bitmap.
    Vector {
        /// Where the blob begins in the file.
        offset: u64,
        /// Its length in bytes.
        length: u64,
    },
    /// Rows whose columns of these field ids equal one of its own.
    Equality(Vec<i32>),
}

/// One data file to read.
#[derive(Clone, Debug)]
pub struct FileTask {
    /// The file.
    pub file: Arc<DataFile>,
    /// Files that delete rows of it, each of which may apply.
    pub deletes: Vec<Arc<DeleteFile>>,
    /// What is left to check on each row; `None` if every row is known to match.
    pub residual: Option<Arc<Predicate>>,
    /// The values that identity partitions give to fields that the file may lack, by the source field's id.
    pub constants: Arc<[(i32, Option<Literal>)]>,
}
