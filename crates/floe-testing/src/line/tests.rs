//! What the rate promises, without sockets: reservations are exact, whoever makes them.

use std::time::Duration;

use tokio::time::Instant;

use super::LineConfig;
use super::rate::Rate;

#[test]
fn reservations_follow_each_other_without_a_gap_and_without_an_overlap() {
    let config = LineConfig {
        rate_mbit: 20.0,
        rtt: Duration::ZERO,
    };
    let rate = Rate::new(config.rate_mbit);
    let first = rate.reserve(16 * 1024);
    let mut last = first;
    for _ in 0..1000 {
        let sent = rate.reserve(16 * 1024);
        assert!(sent > last);
        last = sent;
    }
    let floor = config.floor(1000 * 16 * 1024).as_secs_f64();
    let taken = (last - first).as_secs_f64();
    assert!(
        (taken / floor - 1.0).abs() < 1e-6,
        "{taken} s, the floor is {floor} s"
    );
}

#[test]
fn an_idle_line_saves_nothing_up() {
    let rate = Rate::new(8.0);
    // The line has been free since it was made; a later reservation starts when it is made.
    let now = Instant::now();
    assert!(rate.reserve(1_000_000) >= now + Duration::from_secs(1));
}

#[test]
fn no_limit_is_no_wait() {
    let rate = Rate::new(0.0);
    rate.reserve(usize::MAX);
    assert!(rate.reserve(1) <= Instant::now());
}
