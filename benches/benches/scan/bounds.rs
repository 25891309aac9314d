//! The bounds of a warm reader that need neither a line nor a peer, judged in turns with what they are measured against.

use std::hint::black_box;
use std::time::Duration;

use floe::Table;
use floe_benches::{Work, median, medians, verdict};
use floe_scan::Scan;
use futures::FutureExt;

use crate::season::{Reading, Season, drain, new_store, plan};
use crate::{ONE_MATCH, read};

/// Rounds of which a judged scan's median is taken.
const ROUNDS: usize = 9;

pub(crate) async fn judge(table: &Table, season: &Season) {
    println!("\nbounds, medians of this run:");
    judge_scans(table).await;
    judge_planning(season).await;
    judge_deletes(season).await;
    judge_decoding(season).await;
}

async fn judge_scans(table: &Table) {
    assert!(
        read(table.scan().filter(ONE_MATCH)).await > 0,
        "the lake has this match"
    );
    let one = median(51, || async {
        black_box(read(table.scan().filter(ONE_MATCH)).await);
    })
    .await;
    let one = one.as_secs_f64() * 1e3;
    held("one match, warm, in process", one, 10.0, "ms");
    let full = median(5, || async {
        black_box(read(table.scan()).await);
    })
    .await;
    println!(
        "       a full scan, batches dropped: {:.3} s",
        full.as_secs_f64()
    );
}

async fn judge_planning(season: &Season) {
    let scan = season.crowd_scan(&season.store, None);
    let again = median(ROUNDS, async || {
        plan(scan.clone()).await;
    })
    .await;
    let anew = median(ROUNDS, async || {
        let scan = season.crowd_scan(&new_store(), None);
        plan(scan).await;
    })
    .await;
    for (state, took) in [("again", again), ("anew", anew)] {
        let what = format!("{} files planned {state}", season.crowd_files);
        held(&what, took.as_secs_f64(), 0.15, "s");
    }
}

/// What deletes cost over the same files without any.
async fn judge_deletes(season: &Season) {
    let readings = [
        &season.plain,
        &season.positions,
        &season.vectors,
        &season.equality,
    ];
    let scans = readings.map(Reading::scan);
    let again: Vec<Work<'_>> = scans.iter().map(again).collect();
    let anew: Vec<Work<'_>> = readings.iter().map(|reading| anew(reading)).collect();
    for (state, works) in [("again", again), ("anew", anew)] {
        let took = medians(ROUNDS, &works).await;
        for (what, at, bound) in [
            ("position deletes", 1, 1.1),
            ("deletion vectors", 2, 1.1),
            ("a million equality deletes", 3, 1.5),
        ] {
            let what = format!("{what}, {state}, over none ({:.3?})", took[0]);
            held(&what, ratio(took[at], took[0]), bound, "x");
        }
    }
}

/// What reading costs over decoding alone, with the same two threads.
async fn judge_decoding(season: &Season) {
    let bare: Work<'_> = Box::new(|| {
        season.bare.decode().expect("files of our own");
        std::future::ready(()).boxed()
    });
    let took = medians(ROUNDS, &[bare, anew(&season.plain)]).await;
    let what = format!("a full scan, anew, over bare decoding ({:.3?})", took[0]);
    held(&what, ratio(took[1], took[0]), 1.15, "x");
}

fn again(scan: &Scan) -> Work<'_> {
    Box::new(|| drain(scan).map(drop).boxed())
}

fn anew(reading: &Reading) -> Work<'_> {
    Box::new(|| reading.drain_anew().map(drop).boxed())
}

fn ratio(took: Duration, over: Duration) -> f64 {
    took.as_secs_f64() / over.as_secs_f64()
}

fn held(what: &str, measured: f64, bound: f64, unit: &str) {
    println!("{}", verdict(what, measured, bound, unit));
}
