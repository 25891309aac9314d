//! What this machine needs for a directory of Parquet files without any engine around it: the limit that floe is measured against.

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};

/// What can go wrong while files are read and decoded.
pub type Error = Box<dyn std::error::Error + Send + Sync>;

/// Threads of every step.
const THREADS: usize = 2;
/// Rows of a batch, at most.
const BATCH_ROWS: usize = 32 * 1024;

/// Parquet files, decoded by the `parquet` crate alone with two threads.
#[derive(Clone, Debug)]
pub struct Bare {
    files: Vec<PathBuf>,
}

impl Bare {
    /// Every Parquet file of these; an error if there is none.
    ///
    /// # Errors
    /// If there is no file.
    pub fn of(files: Vec<PathBuf>) -> Result<Self, Error> {
        match files.is_empty() {
            true => Err("there is no Parquet file to decode".into()),
            false => Ok(Self { files }),
        }
    }

    /// Every Parquet file below a directory.
    ///
    /// # Errors
    /// If the directory can't be read or holds none.
    pub fn below(dir: &Path) -> Result<Self, Error> {
        let mut files = Vec::new();
        collect(dir, &mut files)?;
        files.sort();
        Self::of(files)
    }

    /// Row groups of all files, by their footers.
    ///
    /// # Errors
    /// If a file can't be read.
    pub fn parse_footers(&self) -> Result<usize, Error> {
        let groups = self.spread(|file| {
            let bytes = Bytes::from(std::fs::read(file)?);
            let footer = ArrowReaderMetadata::load(&bytes, ArrowReaderOptions::new())?;
            Ok(footer.metadata().num_row_groups())
        })?;
        Ok(groups.into_iter().sum())
    }

    /// Reads, parses and decodes every file, and drops the batches; gives the rows.
    ///
    /// # Errors
    /// If a file can't be read.
    pub fn decode(&self) -> Result<usize, Error> {
        let rows = self.spread(|file| {
            let mut rows = 0;
            for batch in batches(file)? {
                rows += black_box(batch?).num_rows();
            }
            Ok(rows)
        })?;
        Ok(rows.into_iter().sum())
    }

    /// `work` over all files, shared out among the threads.
    fn spread<T: Send>(
        &self,
        work: impl Fn(&Path) -> Result<T, Error> + Sync,
    ) -> Result<Vec<T>, Error> {
        let next = AtomicUsize::new(0);
        let run = || {
            let mut done = Vec::new();
            while let Some(file) = self.files.get(next.fetch_add(1, Ordering::Relaxed)) {
                done.push(work(file)?);
            }
            Ok::<_, Error>(done)
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(run)).collect();
            let mut done = Vec::with_capacity(self.files.len());
            for thread in threads {
                done.extend(thread.join().map_err(|_| "a thread panicked")??);
            }
            Ok(done)
        })
    }
}

type Batches = parquet::arrow::arrow_reader::ParquetRecordBatchReader;

fn batches(file: &Path) -> Result<Batches, Error> {
    let bytes = Bytes::from(std::fs::read(file)?);
    let reader = ParquetRecordBatchReaderBuilder::try_new(bytes)?;
    Ok(reader.with_batch_size(BATCH_ROWS).build()?)
}

fn collect(dir: &Path, found: &mut Vec<PathBuf>) -> Result<(), Error> {
    let entries = std::fs::read_dir(dir).map_err(|e| format!("reading {}: {e}", dir.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, found)?;
        } else if path.extension().is_some_and(|kind| kind == "parquet") {
            found.push(path);
        }
    }
    Ok(())
}
