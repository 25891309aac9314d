//! What bare decoding costs on this machine: every Parquet file below a directory, by the `parquet` crate, with two threads.
//!
//!     yardstick-limits DIR SCANS
//!
//! Prints one line of JSON in the form of `yardstick/peers.py`.

use std::hint::black_box;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use bytes::Bytes;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::json;

type Error = Box<dyn std::error::Error + Send + Sync>;

const THREADS: usize = 2;
const BATCH_ROWS: usize = 32 * 1024;

fn main() -> Result<(), Error> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [dir, scans] = args.as_slice() else {
        return Err("usage: yardstick-limits DIR SCANS".into());
    };
    let mut files = Vec::new();
    parquet_files(Path::new(dir), &mut files)?;
    let mut results = Vec::new();
    for _ in 0..scans.parse()? {
        let began = Instant::now();
        let rows = decode_all(&files)?;
        let seconds = began.elapsed().as_secs_f64();
        results.push(
            json!({"s": seconds, "cpu_s": 0, "rows": rows, "check": [0, 0, 0], "link": {}, "phases": {}}),
        );
    }
    let result = json!({"engine": "limits", "case": "stream", "import_s": 0, "max_rss_mb": 0, "scans": results});
    writeln!(std::io::stdout(), "{result}")?;
    Ok(())
}

fn parquet_files(dir: &Path, found: &mut Vec<PathBuf>) -> Result<(), Error> {
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            parquet_files(&path, found)?;
        } else if path
            .extension()
            .is_some_and(|extension| extension == "parquet")
        {
            found.push(path);
        }
    }
    Ok(())
}

/// Decodes every file to batches and drops them; gives the rows.
fn decode_all(files: &[PathBuf]) -> Result<usize, Error> {
    let next = AtomicUsize::new(0);
    let decode = || {
        let mut rows = 0;
        while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
            let bytes = Bytes::from(std::fs::read(file)?);
            let reader = ParquetRecordBatchReaderBuilder::try_new(bytes)?;
            for batch in reader.with_batch_size(BATCH_ROWS).build()? {
                rows += black_box(batch?).num_rows();
            }
        }
        Ok::<usize, Error>(rows)
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(decode)).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().map_err(|_| "a thread died")?)
            .sum()
    })
}
