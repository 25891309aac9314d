//! What bare decoding costs on this machine: every Parquet file below a directory, by the `parquet` crate, with two threads.
//!
//!     yardstick-limits DIR SCANS
//!
//! Prints one line of JSON in the form of `yardstick/peers.py`.

use std::io::Write;
use std::path::Path;
use std::time::Instant;

use floe_benches::bare::{Bare, Error};
use serde_json::json;

fn main() -> Result<(), Error> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [dir, scans] = args.as_slice() else {
        return Err("usage: yardstick-limits DIR SCANS".into());
    };
    let files = Bare::below(Path::new(dir))?;
    let mut results = Vec::new();
    for _ in 0..scans.parse()? {
        let began = Instant::now();
        let rows = files.decode()?;
        let seconds = began.elapsed().as_secs_f64();
        results.push(
            json!({"s": seconds, "cpu_s": 0, "rows": rows, "check": [0, 0, 0], "link": {}, "phases": {}}),
        );
    }
    let result = json!({"engine": "limits", "case": "stream", "import_s": 0, "max_rss_mb": 0, "scans": results});
    writeln!(std::io::stdout(), "{result}")?;
    Ok(())
}
