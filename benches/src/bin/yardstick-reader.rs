//! floe as one reader of the yardstick, in a process of its own.
//!
//!     yardstick-reader CASE SCANS CONFIG-JSON       CASE: full | match | stream | kept
//!
//! `full` and `match` keep their batches. `stream` reads as `full` does, but drops each batch: its memory is the reader's own.
//! `kept` reads as `full` does, and is what memory is judged by: it scans once, whatever SCANS says, so that nothing of
//! an earlier scan counts, and says so in words on stderr too.
//!
//! Prints one line of JSON in the form of `yardstick/peers.py`: for each scan its seconds, rows, Arrow bytes, sums, by how much the
//! process grew at most, and what the line counted meanwhile. A scan starts at the catalog and ends with Arrow in memory.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::Instant;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use floe::{Floe, StoreConfig};
use floe_benches::process::{cpu_seconds, peak_bytes, resident_bytes};
use futures::TryStreamExt;
use serde_json::{Value, json};

const TABLE: &str = "football.events";
const MATCH: &str = "match_id = 123100";

type Error = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Error> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [case, scans, config] = args.as_slice() else {
        return Err("usage: yardstick-reader full|match|stream|kept SCANS CONFIG-JSON".into());
    };
    let config: Value = serde_json::from_str(config)?;
    let text = |name: &str| config[name].as_str().map(str::to_string);
    let mut store = StoreConfig::default();
    store.cache.dir = text("cache_dir").map(Into::into);
    let uri = format!(
        "sqlite:///{}",
        text("catalog").ok_or("the config names no catalog")?
    );
    let mut builder = Floe::builder()
        .catalog("bench")
        .property("type", "sql")
        .property("uri", uri)
        .store(store);
    for (ours, theirs) in [
        ("s3.endpoint", "endpoint"),
        ("s3.access-key-id", "access_key"),
        ("s3.secret-access-key", "secret_key"),
    ] {
        if let Some(value) = text(theirs) {
            builder = builder.property(ours, value);
        }
    }
    let floe = builder.build()?;
    let mut results = Vec::new();
    let scans: usize = match case.as_str() {
        "kept" => 1,
        _ => scans.parse()?,
    };
    for _ in 0..scans {
        line(&config, "reset")?;
        let before = resident_bytes();
        let (began, cpu) = (Instant::now(), cpu_seconds());
        let scan = floe.table(TABLE).await?.scan();
        let scan = if case == "match" {
            scan.filter(MATCH)
        } else {
            scan
        };
        let (mut batches, mut rows, mut first) = (Vec::new(), 0, None);
        let (_, mut stream) = scan.stream().await?;
        while let Some(batch) = stream.try_next().await? {
            first.get_or_insert_with(|| began.elapsed().as_secs_f64());
            rows += batch.num_rows();
            if case != "stream" {
                batches.push(batch);
            }
        }
        let (seconds, cpu) = (began.elapsed().as_secs_f64(), cpu_seconds() - cpu);
        // Before the sums: what they take is no part of the scan.
        let grown = peak_bytes().saturating_sub(before);
        let mut result = describe(&batches);
        result["grown_bytes"] = json!(grown);
        result["rows"] = json!(rows);
        result["first_batch_s"] = json!(first);
        result["s"] = json!((seconds * 1e4).round() / 1e4);
        result["cpu_s"] = json!((cpu * 100.0).round() / 100.0);
        result["link"] = line(&config, "stats")?;
        result["store"] = serde_json::to_value(floe.store().stats())?;
        if case == "kept" {
            tell_memory(grown, &result)?;
        }
        results.push(result);
    }
    let result = json!({"engine": "floe", "case": case, "import_s": 0, "max_rss_mb": peak_bytes() >> 20, "scans": results});
    writeln!(std::io::stdout(), "{result}")?;
    Ok(())
}

/// Rows, columns, bytes, and the sums by which all readers are compared.
fn describe(batches: &[RecordBatch]) -> Value {
    let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
    let columns = batches.iter().flat_map(RecordBatch::columns);
    let held: usize = batches.iter().map(RecordBatch::get_array_memory_size).sum();
    let column = |batch: &RecordBatch, name: &str| batch.column_by_name(name).cloned();
    let events: i128 = batches
        .iter()
        .filter_map(|batch| column(batch, "event_id"))
        .flat_map(|ids| {
            ids.as_primitive::<Int64Type>()
                .iter()
                .flatten()
                .map(i128::from)
                .collect::<Vec<_>>()
        })
        .sum();
    let x: f64 = batches
        .iter()
        .filter_map(|batch| column(batch, "x"))
        .map(|x| {
            x.as_primitive::<Float64Type>()
                .iter()
                .flatten()
                .sum::<f64>()
        })
        .sum();
    let nulls: usize = batches
        .iter()
        .filter_map(|batch| column(batch, "outcome"))
        .map(|o| o.null_count())
        .sum();
    // As Python's sum of a 64-bit column: it wraps.
    let wrapped = i128::from(events as i64).rem_euclid(1_000_003);
    json!({
        "rows": rows,
        "columns": batches.first().map_or(0, RecordBatch::num_columns),
        "arrow_bytes": columns.map(own_bytes).sum::<usize>(),
        "held_bytes": held,
        "check": [wrapped as i64, (x * 10.0).round() / 10.0, nulls],
        "phases": {},
    })
}

/// Bytes of the values alone, as `pyarrow.Table.nbytes` counts them: no room to spare, nothing of buffers held only in part.
fn own_bytes(column: &ArrayRef) -> usize {
    column.to_data().get_slice_memory_size().unwrap_or(0)
}

fn tell_memory(grown: u64, result: &Value) -> Result<(), Error> {
    let bytes = |name: &str| result[name].as_u64().unwrap_or(0) as f64;
    let mb = |bytes: f64| bytes / 1e6;
    let (grown, arrow, held) = (grown as f64, bytes("arrow_bytes"), bytes("held_bytes"));
    writeln!(
        std::io::stderr(),
        "grew by {:.1} MB at most for {:.1} MB of Arrow ({:.3} x), whose buffers have room for {:.1} MB ({:.3} x)",
        mb(grown),
        mb(arrow),
        grown / arrow,
        mb(held),
        held / arrow,
    )?;
    Ok(())
}

/// One word to the line's control port; nothing if there is no line.
fn line(config: &Value, word: &str) -> Result<Value, Error> {
    let Some(port) = config["control"].as_u64() else {
        return Ok(json!({}));
    };
    let mut stream = TcpStream::connect(("127.0.0.1", u16::try_from(port)?))?;
    writeln!(stream, "{word}")?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer)?;
    Ok(serde_json::from_str(&answer)?)
}
