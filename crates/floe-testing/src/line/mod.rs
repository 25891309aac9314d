//! The slow line: a TCP proxy on loopback in front of an HTTP server, with one rate that all connections share.
//!
//! ```text
//! client -> read -> reserve the line -> queue (until sent + half a round trip) -> server
//! client <- queue <- reserve the line <- (faults) <- read <- server
//! ```
//!
//! Each direction has the configured rate; bytes arrive half a round trip after they were sent; a new connection costs
//! one more round trip before its first byte moves, as a TCP handshake does. There is no loss, no slow start and no
//! TLS, which flatters clients that open many connections. The queue of a connection holds about a bandwidth-delay
//! product, so that a slow client is felt by the server.

mod fault;
mod http;
mod origin;
mod pump;
mod rate;
mod spoil;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::Serialize;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

use crate::requests::{RequestLog, RequestRecord};
pub use fault::{Fault, FaultId, FaultKind, FaultMatcher, FaultPlan};
pub use origin::{ObjectVersion, ScriptedOrigin};
use rate::Rate;

/// What the line is like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LineConfig {
    /// Megabits (10^6 bits) a second in each direction; 0: no limit.
    pub rate_mbit: f64,
    /// Round-trip time.
    pub rtt: Duration,
}

impl LineConfig {
    /// No limit and no delay: a line that only counts, and injects faults.
    pub const DIRECT: Self = Self {
        rate_mbit: 0.0,
        rtt: Duration::ZERO,
    };

    /// The least time that this many bytes take; zero without a limit.
    pub fn floor(&self, bytes: u64) -> Duration {
        if self.rate_mbit <= 0.0 {
            return Duration::ZERO;
        }
        Duration::from_secs_f64(bytes as f64 * 8.0 / (self.rate_mbit * 1e6))
    }
}

/// What crossed the line since the start or the last reset.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LineStats {
    /// By operation: `GET`, `HEAD`, `LIST` (a GET of a bucket), `PUT`, ...
    pub requests: BTreeMap<String, u64>,
    /// Bytes towards the client, heads included.
    pub bytes_down: u64,
    /// Bytes towards the server, heads included.
    pub bytes_up: u64,
    /// Connections opened.
    pub connections: u64,
    /// The most connections open at one time.
    pub peak_connections: u64,
    /// Connections open now.
    pub open_connections: u64,
}

/// A running line. Dropping it closes its port and all its connections.
#[derive(Debug)]
pub struct SlowLine {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

/// What every connection shares.
#[derive(Debug)]
struct Shared {
    config: LineConfig,
    upstream: SocketAddr,
    down: Rate,
    up: Rate,
    counters: Counters,
    log: RequestLog,
    faults: FaultPlan,
}

#[derive(Debug, Default)]
struct Counters {
    down: AtomicU64,
    up: AtomicU64,
    connections: AtomicU64,
    open: AtomicU64,
    peak: AtomicU64,
}

impl SlowLine {
    /// Listens on a free port of 127.0.0.1 and carries every connection to `upstream`.
    pub async fn start(config: LineConfig, upstream: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            config,
            upstream,
            down: Rate::new(config.rate_mbit),
            up: Rate::new(config.rate_mbit),
            counters: Counters::default(),
            log: RequestLog::default(),
            faults: FaultPlan::default(),
        });
        let accepting = tokio::spawn(accept(listener, shared.clone()));
        Ok(Self {
            address,
            shared,
            accepting,
        })
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.address
    }

    /// The value for `s3.endpoint`.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What it was configured to be.
    pub fn config(&self) -> LineConfig {
        self.shared.config
    }

    /// What crossed it since the start or the last [`reset`](Self::reset).
    pub fn stats(&self) -> LineStats {
        let counters = &self.shared.counters;
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        LineStats {
            requests: self.shared.log.counts(),
            bytes_down: read(&counters.down),
            bytes_up: read(&counters.up),
            connections: read(&counters.connections),
            peak_connections: read(&counters.peak),
            open_connections: read(&counters.open),
        }
    }

    /// Starts counting anew; connections that are open stay, and count towards the new peak.
    pub fn reset(&self) {
        let counters = &self.shared.counters;
        self.shared.log.clear();
        counters.down.store(0, Ordering::Relaxed);
        counters.up.store(0, Ordering::Relaxed);
        counters.connections.store(0, Ordering::Relaxed);
        let open = counters.open.load(Ordering::Relaxed);
        counters.peak.store(open, Ordering::Relaxed);
    }

    /// The requests themselves, in the order in which their heads entered the line.
    pub fn requests(&self) -> Vec<RequestRecord> {
        self.shared.log.records()
    }

    /// The faults to inject.
    pub fn faults(&self) -> &FaultPlan {
        &self.shared.faults
    }

    /// Shorthand for [`faults`](Self::faults)`().inject(fault)`.
    pub fn inject(&self, fault: Fault) -> FaultId {
        self.shared.faults.inject(fault)
    }

    /// Closes the port and all connections, and waits until that is done.
    pub async fn stop(mut self) {
        self.accepting.abort();
        let _cancelled = (&mut self.accepting).await;
    }
}

impl Drop for SlowLine {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    // Owned by this task, so that ending it ends the connections.
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((client, _)) => {
                    connections.spawn(connect(client, shared.clone()));
                }
                Err(error) => tracing::warn!(%error, "accepting a connection of the slow line"),
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn connect(client: TcpStream, shared: Arc<Shared>) {
    let _open = OpenConnection::count(shared.clone());
    match TcpStream::connect(shared.upstream).await {
        Ok(server) => pump::carry(client, server, &shared).await,
        Err(error) => tracing::debug!(%error, upstream = %shared.upstream, "the line's upstream"),
    }
}

/// Counts a connection for as long as it lives.
struct OpenConnection(Arc<Shared>);

impl OpenConnection {
    fn count(shared: Arc<Shared>) -> Self {
        let counters = &shared.counters;
        counters.connections.fetch_add(1, Ordering::Relaxed);
        let open = counters.open.fetch_add(1, Ordering::Relaxed) + 1;
        counters.peak.fetch_max(open, Ordering::Relaxed);
        Self(shared)
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.counters.open.fetch_sub(1, Ordering::Relaxed);
    }
}
