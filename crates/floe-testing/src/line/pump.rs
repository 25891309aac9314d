//! Carries one connection: both directions in one task, each a reader that reserves the line and a deliverer that
//! hands bytes over when they have arrived.

use std::collections::VecDeque;
use std::future::pending;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::Instant;

use super::fault::FaultKind;
use super::http::{MessageParser, Piece, Side, header, is_interim, request_line};
use super::rate::Rate;
use super::spoil::{Answer, Step, own_answer};
use super::{RequestRecord, Shared};

/// Small enough that connections share the line fairly, large enough to cost little CPU.
const CHUNK: usize = 16 * 1024;

/// Something under way to one end of the connection.
enum Item {
    Data {
        arrives: Instant,
        bytes: Bytes,
        _room: OwnedSemaphorePermit,
    },
    /// The other end has closed.
    End,
    Reset,
}

/// How a connection ends towards the client.
enum Ending {
    Closed,
    Reset,
}

/// One direction of one connection.
struct Lane<'a> {
    rate: &'a Rate,
    one_way: Duration,
    counter: &'a AtomicU64,
    room: Arc<Semaphore>,
    capacity: usize,
    queue: mpsc::UnboundedSender<Item>,
}

impl<'a> Lane<'a> {
    fn new(
        rate: &'a Rate,
        counter: &'a AtomicU64,
        one_way: Duration,
    ) -> (Self, mpsc::UnboundedReceiver<Item>) {
        let capacity = rate.in_flight_bytes(one_way).max(CHUNK);
        let (queue, items) = mpsc::unbounded_channel();
        let lane = Self {
            rate,
            one_way,
            counter,
            room: Arc::new(Semaphore::new(capacity)),
            capacity,
            queue,
        };
        (lane, items)
    }

    /// Puts bytes on the line; returns when the next may follow.
    async fn send(&self, mut bytes: Bytes) {
        while !bytes.is_empty() {
            let part = bytes.split_to(CHUNK.min(bytes.len()));
            let permits = part.len().min(self.capacity) as u32;
            let Ok(room) = self.room.clone().acquire_many_owned(permits).await else {
                return;
            };
            self.counter.fetch_add(part.len() as u64, Ordering::Relaxed);
            let sent = self.rate.reserve(part.len());
            let item = Item::Data {
                arrives: sent + self.one_way,
                bytes: part,
                _room: room,
            };
            if self.queue.send(item).is_err() {
                return;
            }
            self.rate.pace(sent).await;
        }
    }

    /// Takes up the line for bytes that nobody gets; gives when they would have arrived.
    async fn spend(&self, bytes: usize) -> Instant {
        self.counter.fetch_add(bytes as u64, Ordering::Relaxed);
        let sent = self.rate.reserve(bytes);
        self.rate.pace(sent).await;
        sent + self.one_way
    }
}

/// A request that went to the server, for the answer that will come.
struct Asked {
    head_only: bool,
    fault: Option<FaultKind>,
}

/// The requests of a connection that are not answered yet, in order.
type Unanswered = Mutex<VecDeque<Asked>>;

/// Carries the connection until one side has closed it.
pub(super) async fn carry(mut client: TcpStream, mut server: TcpStream, shared: &Shared) {
    let _ = client.set_nodelay(true);
    let _ = server.set_nodelay(true);
    let one_way = shared.config.rtt / 2;
    let (up, up_items) = Lane::new(&shared.up, &shared.counters.up, one_way);
    let (down, down_items) = Lane::new(&shared.down, &shared.counters.down, one_way);
    let unanswered = Unanswered::default();
    let ending = {
        let (client_reads, client_writes) = client.split();
        let (server_reads, server_writes) = server.split();
        let upwards = async {
            tokio::select! {
                delivered = deliver(up_items, server_writes) => delivered,
                Err(error) = read_requests(client_reads, shared, &up, &down, &unanswered) => Err(error),
            }
        };
        let downwards = async {
            tokio::select! {
                delivered = deliver(down_items, client_writes) => delivered,
                Err(error) = read_answers(server_reads, &down, &unanswered) => Err(error),
            }
        };
        tokio::select! {
            ended = upwards => ended,
            ended = downwards => ended,
        }
    };
    match ending {
        Ok(Ending::Closed) => {}
        // Without lingering the kernel sends RST when the socket is dropped.
        Ok(Ending::Reset) => {
            let _ = client.set_zero_linger();
        }
        Err(error) => tracing::debug!(%error, "a connection of the slow line broke"),
    }
}

async fn deliver(
    mut items: mpsc::UnboundedReceiver<Item>,
    mut writes: impl AsyncWrite + Unpin,
) -> io::Result<Ending> {
    while let Some(item) = items.recv().await {
        match item {
            Item::Data { arrives, bytes, .. } => {
                if arrives > Instant::now() {
                    tokio::time::sleep_until(arrives).await;
                }
                writes.write_all(&bytes).await?;
            }
            Item::End => break,
            Item::Reset => return Ok(Ending::Reset),
        }
    }
    // The peer may be gone already: then there is nobody to tell.
    let _ = writes.shutdown().await;
    Ok(Ending::Closed)
}

async fn read_requests(
    mut reads: impl AsyncRead + Unpin,
    shared: &Shared,
    up: &Lane<'_>,
    down: &Lane<'_>,
    unanswered: &Unanswered,
) -> io::Result<()> {
    // The handshake: no byte of a new connection moves before.
    tokio::time::sleep(shared.config.rtt).await;
    let mut parser = MessageParser::new(Side::Request);
    // The answer that the line itself gives to the request under way.
    let mut own: Option<Bytes> = None;
    let mut buffer = BytesMut::new();
    loop {
        buffer.reserve(CHUNK);
        if (&mut reads)
            .take(CHUNK as u64)
            .read_buf(&mut buffer)
            .await?
            == 0
        {
            break;
        }
        for piece in parser.feed(buffer.split().freeze(), || false) {
            match piece {
                Piece::Head(head) => {
                    own = admit(&head, shared, unanswered);
                    match own {
                        None => up.send(head).await,
                        Some(_) => {
                            up.spend(head.len()).await;
                        }
                    }
                }
                Piece::Body(body) if own.is_some() => {
                    up.spend(body.len()).await;
                }
                Piece::Body(body) => up.send(body).await,
                Piece::End => {
                    if let Some(answer) = own.take() {
                        tokio::time::sleep_until(up.spend(0).await).await;
                        down.send(answer).await;
                    }
                }
            }
        }
    }
    let _ = up.queue.send(Item::End);
    Ok(())
}

/// Logs a request; gives the answer if the line answers it itself.
fn admit(head: &[u8], shared: &Shared, unanswered: &Unanswered) -> Option<Bytes> {
    let (method, path) = request_line(head);
    let fault = shared.faults.take(&method, &path);
    let head_only = method == "HEAD";
    shared.log.push(RequestRecord {
        method,
        path,
        range: header(head, "range"),
    });
    if let Some(FaultKind::Status(status)) = fault {
        return Some(own_answer(status, head_only));
    }
    lock(unanswered).push_back(Asked { head_only, fault });
    None
}

async fn read_answers(
    mut reads: impl AsyncRead + Unpin,
    down: &Lane<'_>,
    unanswered: &Unanswered,
) -> io::Result<()> {
    let mut parser = MessageParser::new(Side::Response);
    let mut answer = Answer::new(None);
    let mut buffer = BytesMut::new();
    loop {
        buffer.reserve(CHUNK);
        if (&mut reads)
            .take(CHUNK as u64)
            .read_buf(&mut buffer)
            .await?
            == 0
        {
            break;
        }
        let mut begun = VecDeque::new();
        let pieces = parser.feed(buffer.split().freeze(), || {
            let asked = lock(unanswered).pop_front();
            let head_only = asked.as_ref().is_some_and(|asked| asked.head_only);
            begun.push_back(asked.and_then(|asked| asked.fault));
            head_only
        });
        for piece in pieces {
            if let Piece::Head(head) = &piece {
                if is_interim(head) {
                    down.send(head.clone()).await;
                    continue;
                }
                answer = Answer::new(begun.pop_front().flatten());
            }
            for step in answer.steps(piece) {
                match step {
                    Step::Send(bytes) => down.send(bytes).await,
                    Step::Wait(time) => tokio::time::sleep(time).await,
                    Step::Close => return stop(down, Item::End).await,
                    Step::Reset => return stop(down, Item::Reset).await,
                    Step::Stall => return pending().await,
                }
            }
        }
    }
    let _ = down.queue.send(Item::End);
    Ok(())
}

/// Ends the connection once what is under way has arrived; nothing more is read.
async fn stop(down: &Lane<'_>, item: Item) -> io::Result<()> {
    let _ = down.queue.send(item);
    pending().await
}

fn lock(unanswered: &Unanswered) -> std::sync::MutexGuard<'_, VecDeque<Asked>> {
    unanswered.lock().unwrap_or_else(PoisonError::into_inner)
}
