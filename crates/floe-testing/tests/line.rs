//! The slow line: its rate, its counters, and every fault as a client sees it.

use std::time::{Duration, Instant};

use floe_testing::line::{Fault, FaultKind, FaultMatcher, LineConfig, ScriptedOrigin, SlowLine};
use reqwest::{Client, Response};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::{bounded, pattern};

const SIZE: usize = 50_000;

struct Setup {
    origin: ScriptedOrigin,
    line: SlowLine,
    client: Client,
}

impl Setup {
    async fn new(config: LineConfig) -> Self {
        let origin = ScriptedOrigin::start().await.unwrap();
        origin.put("b/k", pattern(SIZE));
        let line = SlowLine::start(config, origin.addr()).await.unwrap();
        Self {
            origin,
            line,
            client: Client::new(),
        }
    }

    async fn direct() -> Self {
        Self::new(LineConfig::DIRECT).await
    }

    async fn get(&self) -> reqwest::Result<Response> {
        let url = format!("{}/b/k", self.line.endpoint());
        self.client.get(url).send().await
    }

    /// Whole answer or the first error.
    async fn body(&self) -> reqwest::Result<Vec<u8>> {
        Ok(self.get().await?.bytes().await?.to_vec())
    }

    /// What one faulty GET gives; the next must be in order, on whatever connection.
    async fn once(&self, kind: FaultKind) -> reqwest::Result<Vec<u8>> {
        let id = self
            .line
            .inject(Fault::once(FaultMatcher::new("GET", "/b/k"), kind));
        let spoilt = bounded(self.body()).await;
        assert_eq!(self.line.faults().struck(id), 1);
        let next = bounded(self.body()).await.unwrap();
        assert_eq!(next, pattern(SIZE), "the answer after the fault");
        spoilt
    }
}

#[tokio::test]
async fn bytes_pass_unchanged_and_are_counted() {
    let setup = Setup::direct().await;
    for _ in 0..3 {
        assert_eq!(setup.body().await.unwrap(), pattern(SIZE));
    }
    let stats = setup.line.stats();
    assert_eq!(stats.requests.get("GET"), Some(&3));
    assert_eq!((stats.connections, stats.peak_connections), (1, 1));
    assert!(stats.bytes_down > 3 * SIZE as u64 && stats.bytes_down < 3 * SIZE as u64 + 3_000);
    assert!(stats.bytes_up > 0 && stats.bytes_up < 3_000);
    assert_eq!(setup.line.requests()[0].path, "/b/k");
    setup.line.reset();
    let stats = setup.line.stats();
    assert!(stats.requests.is_empty() && stats.bytes_down == 0 && stats.connections == 0);
    assert_eq!(
        stats.peak_connections, 1,
        "the idle connection is still open"
    );
}

#[tokio::test]
async fn ranges_stand_in_the_log() {
    let setup = Setup::direct().await;
    let url = format!("{}/b/k", setup.line.endpoint());
    setup
        .client
        .get(&url)
        .header("range", "bytes=5-9")
        .send()
        .await
        .unwrap();
    setup.client.head(&url).send().await.unwrap();
    let requests = setup.line.requests();
    assert_eq!(requests[0].range.as_deref(), Some("bytes=5-9"));
    assert_eq!(
        (requests[1].method.as_str(), &requests[1].range),
        ("HEAD", &None)
    );
}

/// Only the line's own floor is asserted: a loaded machine may be slower, nothing may be faster.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_connections_together_are_no_faster_than_the_line() {
    let config = LineConfig {
        rate_mbit: 40.0,
        rtt: Duration::from_millis(30),
    };
    let setup = Setup::new(config).await;
    setup.origin.put("b/k", pattern(300_000));
    let began = Instant::now();
    let reads = (0..8).map(|_| setup.body());
    for body in bounded(futures_all(reads)).await {
        assert_eq!(body.unwrap(), pattern(300_000));
    }
    let taken = began.elapsed();
    let floor = config.floor(8 * 300_000) + 2 * config.rtt;
    println!("8 connections: {taken:?}, the floor is {floor:?}");
    assert!(taken >= floor);
    assert_eq!(setup.line.stats().peak_connections, 8);
}

#[tokio::test]
async fn a_new_connection_costs_a_round_trip_more() {
    let rtt = Duration::from_millis(60);
    let setup = Setup::new(LineConfig {
        rate_mbit: 0.0,
        rtt,
    })
    .await;
    let began = Instant::now();
    setup.body().await.unwrap();
    assert!(began.elapsed() >= 2 * rtt);
    let began = Instant::now();
    setup.body().await.unwrap();
    assert!(began.elapsed() >= rtt);
    assert_eq!(setup.line.stats().connections, 1);
}

#[tokio::test]
async fn a_client_that_does_not_read_stops_the_server() {
    let config = LineConfig {
        rate_mbit: 800.0,
        rtt: Duration::from_millis(1),
    };
    let setup = Setup::new(config).await;
    setup.origin.put("b/k", pattern(64 * 1024 * 1024));
    let mut socket = TcpStream::connect(setup.line.addr()).await.unwrap();
    socket
        .write_all(b"GET /b/k HTTP/1.1\r\nhost: x\r\n\r\n")
        .await
        .unwrap();
    let mut last = 0;
    bounded(async {
        loop {
            // Not a wait for time to pass but for the count to come to rest.
            tokio::time::sleep(Duration::from_millis(100)).await;
            let now = setup.line.stats().bytes_down;
            if now > 0 && now == last {
                break;
            }
            last = now;
        }
    })
    .await;
    assert!(
        last < 32 * 1024 * 1024,
        "{last} bytes were taken in for a client that reads none"
    );
}

#[tokio::test]
async fn cut_after_closes_the_connection_in_the_middle() {
    let setup = Setup::direct().await;
    for at in [0, 1, 20_000, SIZE as u64 - 1] {
        assert!(setup.once(FaultKind::CutAfter(at)).await.is_err(), "{at}");
    }
}

#[tokio::test]
async fn a_lost_answer_reached_the_server() {
    let setup = Setup::direct().await;
    let put = FaultMatcher::new("PUT", "/b/new");
    setup.line.inject(Fault::once(put, FaultKind::LoseAnswer));
    let url = format!("{}/b/new", setup.line.endpoint());
    assert!(setup.client.put(url).body("x").send().await.is_err());
    assert!(setup.origin.object("b/new").is_some());
}

#[tokio::test]
async fn reset_is_seen_as_a_reset() {
    let setup = Setup::direct().await;
    assert!(setup.once(FaultKind::ResetAfter(1_000)).await.is_err());
    let matcher = FaultMatcher::default();
    setup.line.inject(Fault::once(matcher, FaultKind::Reset));
    let mut socket = TcpStream::connect(setup.line.addr()).await.unwrap();
    socket
        .write_all(b"GET /b/k HTTP/1.1\r\nhost: x\r\n\r\n")
        .await
        .unwrap();
    let error = bounded(socket.read(&mut [0; 1])).await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn a_stall_lasts_until_the_client_gives_up() {
    let setup = Setup::direct().await;
    let client = Client::builder()
        .timeout(Duration::from_millis(200))
        .build()
        .unwrap();
    let url = format!("{}/b/k", setup.line.endpoint());
    for kind in [
        FaultKind::Stall,
        FaultKind::StallAfter(0),
        FaultKind::StallAfter(1_000),
    ] {
        setup
            .line
            .inject(Fault::once(FaultMatcher::default(), kind.clone()));
        let answer = async { client.get(&url).send().await?.bytes().await };
        assert!(bounded(answer).await.unwrap_err().is_timeout(), "{kind:?}");
    }
    assert_eq!(setup.body().await.unwrap(), pattern(SIZE));
}

#[tokio::test]
async fn a_status_does_not_reach_the_server() {
    let setup = Setup::direct().await;
    setup.origin.reset();
    setup.line.inject(Fault::once(
        FaultMatcher::new("PUT", "/b/new"),
        FaultKind::Status(503),
    ));
    let url = format!("{}/b/new", setup.line.endpoint());
    let answer = setup
        .client
        .put(&url)
        .body(pattern(100_000))
        .send()
        .await
        .unwrap();
    assert_eq!(answer.status(), 503);
    assert!(answer.text().await.unwrap().contains("SlowDown"));
    assert!(setup.origin.object("b/new").is_none() && setup.origin.requests().is_empty());
    // The same connection goes on.
    assert_eq!(
        setup
            .client
            .put(&url)
            .body("x")
            .send()
            .await
            .unwrap()
            .status(),
        200
    );
    assert_eq!(setup.line.stats().connections, 1);
}

#[tokio::test]
async fn wrong_lengths_are_announced() {
    let setup = Setup::direct().await;
    assert!(setup.once(FaultKind::WrongLength(10)).await.is_err());
    assert_eq!(
        setup.once(FaultKind::WrongLength(-10)).await.unwrap(),
        &pattern(SIZE)[..SIZE - 10]
    );
    setup.line.inject(Fault::once(
        FaultMatcher::default(),
        FaultKind::WrongTotal(7),
    ));
    let url = format!("{}/b/k", setup.line.endpoint());
    let answer = setup
        .client
        .get(url)
        .header("range", "bytes=10-19")
        .send()
        .await
        .unwrap();
    assert_eq!(
        answer.headers()["content-range"],
        format!("bytes 10-19/{}", SIZE + 7)
    );
    assert_eq!(answer.bytes().await.unwrap(), pattern(SIZE)[10..20]);
}

#[tokio::test]
async fn a_flipped_byte_is_flipped_once_and_where_it_was_asked_for() {
    let setup = Setup::direct().await;
    for at in [0, 16_384, SIZE - 1] {
        let mut expected = pattern(SIZE);
        expected[at] ^= 1;
        assert_eq!(
            setup.once(FaultKind::FlipByte(at as u64)).await.unwrap(),
            expected
        );
    }
}

#[tokio::test]
async fn short_and_long_answers_are_complete_by_http() {
    let setup = Setup::direct().await;
    let short = setup.once(FaultKind::TruncateBody(123)).await.unwrap();
    assert_eq!(short, &pattern(SIZE)[..123]);
    let long = setup.once(FaultKind::ExtendBody(77)).await.unwrap();
    assert_eq!(long, [pattern(SIZE), vec![0; 77]].concat());
}

#[tokio::test]
async fn slow_answers_are_slow() {
    let setup = Setup::direct().await;
    let began = Instant::now();
    let body = setup
        .once(FaultKind::Delay(Duration::from_millis(150)))
        .await
        .unwrap();
    assert_eq!(body, pattern(SIZE));
    assert!(began.elapsed() >= Duration::from_millis(150));
    let began = Instant::now();
    assert_eq!(
        setup.once(FaultKind::Trickle(200_000)).await.unwrap(),
        pattern(SIZE)
    );
    assert!(began.elapsed() >= Duration::from_millis(240));
}

#[tokio::test]
async fn an_answer_sent_twice_arrives_twice() {
    let setup = Setup::direct().await;
    setup
        .line
        .inject(Fault::once(FaultMatcher::default(), FaultKind::Twice));
    let mut socket = TcpStream::connect(setup.line.addr()).await.unwrap();
    let request = b"GET /b/k HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    socket.write_all(request).await.unwrap();
    let mut all = Vec::new();
    bounded(socket.read_to_end(&mut all)).await.unwrap();
    let (first, second) = all.split_at(all.len() / 2);
    assert_eq!(first, second);
    assert!(first.starts_with(b"HTTP/1.1 200 OK") && first.ends_with(&pattern(SIZE)));
}

async fn futures_all<F: Future>(futures: impl Iterator<Item = F>) -> Vec<F::Output> {
    futures::future::join_all(futures).await
}
