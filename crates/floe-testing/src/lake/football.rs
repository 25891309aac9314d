//! `football.events`: a season of events, one row an event, one file a match, one commit a match day.
//! The columns are those of the benchmark table that floe is measured with: a few dense ones, a long sparse tail.

use anyhow::Result;
use iceberg::spec::{Literal, Struct};

use super::columns::Columns;
use super::plan::Plan;
use super::random::{Random, rounded};

/// Matches of a season; a lake with fewer rows has as many matches as rows.
const MATCHES: u64 = 306;
const MATCHES_A_DAY: usize = 9;
const FIRST_MATCH_ID: i64 = 123_000;
const COLUMNS: usize = 140;
const SEED: u64 = 20_241_105;

const EVENT_TYPES: [&str; 13] = [
    "pass",
    "carry",
    "pressure",
    "duel",
    "ball receipt",
    "shot",
    "foul",
    "clearance",
    "interception",
    "block",
    "goal keeper",
    "dribble",
    "substitution",
];
const BODY_PARTS: [&str; 4] = ["right foot", "left foot", "head", "other"];
const OUTCOMES: [&str; 6] = ["complete", "incomplete", "out", "blocked", "saved", "goal"];
/// 2024-08-16T18:30:00Z.
const SEASON_START_US: i64 = 1_723_833_000_000_000;
const WEEK_US: i64 = 7 * 24 * 3600 * 1_000_000;
const HALF_TIME_MS: i64 = 47 * 60 * 1000;
const MATCH_MS: u64 = 95 * 60 * 1000;

/// The season.
pub(super) struct Season {
    /// Rows of each match.
    rows: Vec<usize>,
}

impl Season {
    /// `rows` in all, shared out unevenly among the matches, none without rows.
    pub(super) fn new(rows: u64) -> Self {
        let matches = MATCHES.min(rows);
        let mean = rows as f64 / matches as f64;
        let mut random = Random::new(SEED, u64::MAX);
        let mut counts: Vec<i64> = (0..matches)
            .map(|_| (random.normal(mean, mean / 20.0).round() as i64).max(1))
            .collect();
        // What the rounding left over, or took too much, is spread over all matches.
        let mut left = rows as i64 - counts.iter().sum::<i64>();
        while left != 0 {
            for count in &mut counts {
                let step = left.signum();
                if left != 0 && *count + step >= 1 {
                    *count += step;
                    left -= step;
                }
            }
        }
        Self {
            rows: counts.into_iter().map(|count| count as usize).collect(),
        }
    }

    /// Rows of a match that is played after the season: as many as an average match has.
    pub(super) fn extra_rows(&self) -> usize {
        (self.rows.iter().sum::<usize>() / self.rows.len()).max(1)
    }
}

/// The id of the match in this place.
pub(super) fn match_id(index: usize) -> i64 {
    FIRST_MATCH_ID + index as i64
}

/// The place of a match; `None` for no id, or one that is no match's.
pub(super) fn place_of(id: Option<i64>) -> Option<usize> {
    usize::try_from(id? - FIRST_MATCH_ID).ok()
}

/// The partition of the match in this place.
pub(super) fn partition(index: usize) -> Struct {
    Struct::from_iter([Some(Literal::long(match_id(index)))])
}

impl Plan for Season {
    fn namespace(&self) -> &str {
        "football"
    }

    fn name(&self) -> &str {
        "events"
    }

    fn partition_column(&self) -> Option<&str> {
        Some("match_id")
    }

    fn files(&self) -> usize {
        self.rows.len()
    }

    fn files_per_commit(&self) -> usize {
        MATCHES_A_DAY
    }

    fn columns(&self, file: usize) -> Result<Columns> {
        Ok(match_columns(file, self.rows[file]))
    }

    fn partition(&self, file: usize) -> Struct {
        partition(file)
    }
}

/// The events of one match.
pub(super) fn match_columns(index: usize, rows: usize) -> Columns {
    let mut random = Random::new(SEED, index as u64);
    let mut columns = Columns::default();
    let mut millis: Vec<i64> = (0..rows).map(|_| random.below(MATCH_MS) as i64).collect();
    millis.sort_unstable();
    clock_columns(&mut columns, &mut random, index, &millis);
    play_columns(&mut columns, &mut random, index, rows);
    columns.longs("possession", millis.iter().map(|ms| (ms / 20_000).min(400)));
    // A model's output: dense doubles of full entropy.
    columns.doubles(
        "model_00",
        (0..rows).map(|_| random.chance(0.9).then(|| random.unit())),
    );
    qualifier_columns(&mut columns, &mut random, rows);
    columns
}

/// Which match it is, and when in it.
fn clock_columns(columns: &mut Columns, random: &mut Random, index: usize, millis: &[i64]) {
    let rows = millis.len();
    let kickoff = SEASON_START_US + (index / MATCHES_A_DAY) as i64 * WEEK_US;
    let (home, away) = teams(index);
    columns.longs("match_id", std::iter::repeat_n(match_id(index), rows));
    columns.longs(
        "event_id",
        (0..rows).map(|_| random.between(1 << 40, 1 << 52)),
    );
    columns.ints("event_index", 0..rows as i32);
    columns.ints(
        "period",
        millis.iter().map(|ms| 1 + i32::from(*ms > HALF_TIME_MS)),
    );
    columns.ints("minute", millis.iter().map(|ms| (ms / 60_000) as i32));
    columns.ints("second", millis.iter().map(|ms| (ms / 1000 % 60) as i32));
    columns.times("event_time", millis.iter().map(|ms| kickoff + ms * 1000));
    columns.times("kickoff", std::iter::repeat_n(kickoff, rows));
    columns.strings(
        "home_team",
        std::iter::repeat_n(Some(format!("Team {home:02}")), rows),
    );
    columns.strings(
        "away_team",
        std::iter::repeat_n(Some(format!("Team {away:02}")), rows),
    );
    let sides = [home as i64, away as i64];
    columns.longs(
        "team_id",
        (0..rows).map(|_| sides[random.below(2) as usize]),
    );
}

/// Who did what, where.
fn play_columns(columns: &mut Columns, random: &mut Random, index: usize, rows: usize) {
    let squad = 1000 * (index % 18) as i64;
    let zones = zones();
    let players: Vec<String> = (0..28)
        .map(|i| (index % 20) * 28 + i)
        .map(|player| format!("Player {player:04} Lastname{:03}", player * 7919 % 997))
        .collect();
    columns.longs(
        "player_id",
        (0..rows).map(|_| squad + random.below(28) as i64),
    );
    columns.strings("player", labels(random, rows, &players, 1.0));
    columns.strings("event_type", labels(random, rows, &EVENT_TYPES, 1.0));
    columns.strings("outcome", labels(random, rows, &OUTCOMES, 0.7));
    columns.strings("body_part", labels(random, rows, &BODY_PARTS, 0.4));
    columns.strings("zone", labels(random, rows, &zones, 1.0));
    for (name, high, share) in [
        ("x", 105.0, 1.0),
        ("y", 68.0, 1.0),
        ("end_x", 105.0, 0.6),
        ("end_y", 68.0, 0.6),
    ] {
        let places = walk(random, rows, high);
        let shown = places
            .into_iter()
            .map(|at| (share >= 1.0 || random.chance(share)).then_some(at));
        columns.doubles(name, shown);
    }
    let durations = (0..rows).map(|_| {
        random
            .chance(0.7)
            .then(|| rounded(random.exponential(1.4), 3))
    });
    columns.doubles("duration", durations);
    let pressed = (0..rows).map(|_| random.chance(0.8).then(|| random.chance(0.3)));
    columns.booleans("under_pressure", pressed);
}

/// Sparse qualifiers, the long tail that makes such a table wide.
fn qualifier_columns(columns: &mut Columns, random: &mut Random, rows: usize) {
    let zones = zones();
    for i in 0.. {
        if columns.len() >= COLUMNS {
            return;
        }
        let name = format!("q_{i:03}");
        let share = [0.02, 0.05, 0.12, 0.28][i % 4];
        match i % 7 {
            0 | 3 => {
                let value = |r: &mut Random| rounded(r.exponential(8.0) + r.exponential(8.0), 2);
                columns.doubles(
                    &name,
                    (0..rows).map(|_| random.chance(share).then(|| value(random))),
                );
            }
            1 | 4 => {
                columns.longs(
                    &name,
                    (0..rows).map(|_| random.chance(share).then(|| random.between(0, 40))),
                );
            }
            2 => columns.strings(&name, labels(random, rows, &zones, share)),
            5 => {
                columns.longs(
                    &name,
                    (0..rows).map(|_| random.chance(share).then(|| random.between(0, 3000))),
                );
            }
            _ => {
                let value = |r: &mut Random| rounded(r.normal(0.0, 1.0), 3);
                columns.doubles(
                    &name,
                    (0..rows).map(|_| random.chance(share).then(|| value(random))),
                );
            }
        }
    }
}

fn teams(index: usize) -> (usize, usize) {
    let home = index * 13 % 18;
    let away = (index * 7 + 5) % 18;
    (home, if away == home { (away + 1) % 18 } else { away })
}

fn zones() -> Vec<String> {
    (0..18).map(|i| format!("zone {i:02}")).collect()
}

/// Labels of which this share is present.
fn labels<'a, S: AsRef<str>>(
    random: &'a mut Random,
    rows: usize,
    from: &'a [S],
    share: f64,
) -> impl Iterator<Item = Option<&'a str>> {
    (0..rows).map(move |_| {
        if share < 1.0 && !random.chance(share) {
            return None;
        }
        Some(from[random.below(from.len() as u64) as usize].as_ref())
    })
}

/// A walk on the pitch that re-enters on the other side.
fn walk(random: &mut Random, rows: usize, high: f64) -> Vec<f64> {
    let mut at = 0.0;
    (0..rows)
        .map(|_| {
            at += random.normal(0.0, 4.0);
            rounded(f64::rem_euclid(at, high), 2)
        })
        .collect()
}
