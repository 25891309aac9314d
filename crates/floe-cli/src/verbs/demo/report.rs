//! What the demo found, for people and for scripts.

use std::path::PathBuf;
use std::time::Duration;

use floe_testing::lake::AppendedMatch;
use floe_testing::line::LineStats;
use serde_json::{Value, json};

use super::reader::Reading;
use crate::ui::{bytes, count};

/// One read and what crossed the line for it.
pub(super) struct Phase {
    reading: Reading,
    line: LineStats,
}

impl Phase {
    pub(super) fn new(reading: Reading, line: LineStats) -> Self {
        Self { reading, line }
    }

    fn requests(&self, operation: &str) -> u64 {
        self.line.requests.get(operation).copied().unwrap_or(0)
    }

    fn line_of_text(&self, what: &str) -> String {
        let requests = match self.line.requests.values().sum::<u64>() {
            0 => "none".to_string(),
            _ => self
                .line
                .requests
                .iter()
                .map(|(operation, n)| format!("{n} {operation}"))
                .collect::<Vec<_>>()
                .join(", "),
        };
        format!(
            "  {what:<24} {:>8.2} s  {:>12}  {requests}\n",
            self.reading.seconds,
            bytes(self.line.bytes_down)
        )
    }
}

/// Everything that the demo found.
pub(super) struct Report {
    pub(super) dir: PathBuf,
    pub(super) mbit: f64,
    pub(super) rtt_ms: u64,
    pub(super) needed_bytes: u64,
    pub(super) floor: Duration,
    pub(super) cold: Phase,
    pub(super) warm: Phase,
    pub(super) anew: Phase,
    pub(super) after: Phase,
    pub(super) added: AppendedMatch,
    pub(super) fresh: bool,
}

impl Report {
    /// For scripts. `requests_warm` and `bytes_warm` are those of both warm reads.
    pub(super) fn document(&self) -> Value {
        let Reading {
            rows,
            columns,
            arrow_bytes,
            ..
        } = self.cold.reading;
        let requests = |phases: &[&Phase]| {
            let sum = |operation: &str| {
                phases
                    .iter()
                    .map(|phase| phase.requests(operation))
                    .sum::<u64>()
            };
            json!({"GET": sum("GET"), "HEAD": sum("HEAD"), "LIST": sum("LIST")})
        };
        json!({
            "dir": self.dir,
            "rows": rows,
            "columns": columns,
            "arrow_bytes": arrow_bytes,
            "link_mbit": self.mbit,
            "link_rtt_ms": self.rtt_ms,
            "link_floor_seconds": self.floor.as_secs_f64(),
            "needed_bytes": self.needed_bytes,
            "cold_seconds": self.cold.reading.seconds,
            "warm_seconds": self.warm.reading.seconds,
            "warm_new_process_seconds": self.anew.reading.seconds,
            "after_append_seconds": self.after.reading.seconds,
            "requests_cold": requests(&[&self.cold]),
            "requests_warm": requests(&[&self.warm, &self.anew]),
            "requests_after_append": requests(&[&self.after]),
            "bytes_cold": self.cold.line.bytes_down,
            "bytes_warm": self.warm.line.bytes_down + self.anew.line.bytes_down,
            "bytes_after_append": self.after.line.bytes_down,
            "connections_cold": self.cold.line.connections,
            "appended_rows": self.added.rows,
            "fresh_after_append": self.fresh,
        })
    }

    /// For people.
    pub(super) fn text(&self) -> String {
        let Reading {
            rows,
            columns,
            arrow_bytes,
            ..
        } = self.cold.reading;
        let mut text = format!(
            "football.events: {} rows x {columns} columns, {} as Arrow\n\
             line: {} Mbit/s, {} ms round trip; {} must cross it, which takes {:.2} s at best\n\n",
            count(rows),
            bytes(arrow_bytes),
            self.mbit,
            self.rtt_ms,
            bytes(self.needed_bytes),
            self.floor.as_secs_f64()
        );
        text.push_str(&format!(
            "  {:<24} {:>10}  {:>12}  {}\n",
            "full read", "time", "over the line", "requests"
        ));
        text.push_str(&self.cold.line_of_text("cold"));
        text.push_str(&self.warm.line_of_text("warm, same process"));
        text.push_str(&self.anew.line_of_text("warm, new process"));
        text.push_str(&self.after.line_of_text("after one more match"));
        let seen = match self.fresh {
            true => format!(
                "the match that a second writer added was seen at once: {} new rows",
                count(self.added.rows)
            ),
            false => format!(
                "the match that a second writer added was NOT read as it should: {} rows",
                count(self.after.reading.rows)
            ),
        };
        let config = self.dir.join("floe.toml");
        text.push_str(&format!(
            "\n{seen}\n\nThe lake stays; try\n  floe --config {0} table list\n  floe --config {0} sql \
             \"SELECT match_id, count(*) AS events FROM football.events GROUP BY match_id ORDER BY events DESC LIMIT 5\"\n",
            config.display()
        ));
        text
    }
}
