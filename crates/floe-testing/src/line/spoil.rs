//! What a fault does to the pieces of one answer: pure, no I/O and no clock. The pump carries out the steps.

use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};

use super::fault::FaultKind;
use super::http::{Piece, header, lines};

/// What the line does next towards the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Send(Bytes),
    /// Nothing is sent for this long.
    Wait(Duration),
    /// Closes the connection once all before it has arrived.
    Close,
    /// Resets the connection once all before it has arrived.
    Reset,
    /// Sends nothing more; waits for the client to leave.
    Stall,
}

/// The answer to one request on its way, with the fault that struck it.
#[derive(Debug)]
pub(super) struct Answer {
    fault: Option<FaultKind>,
    /// Bytes of the body that the server has sent.
    seen: u64,
    /// The answer so far, kept for `Twice`.
    copy: BytesMut,
}

impl Answer {
    pub(super) fn new(fault: Option<FaultKind>) -> Self {
        Self {
            fault,
            seen: 0,
            copy: BytesMut::new(),
        }
    }

    /// What becomes of the next piece.
    pub(super) fn steps(&mut self, piece: Piece) -> Vec<Step> {
        let Some(fault) = self.fault.clone() else {
            return match piece {
                Piece::Head(bytes) | Piece::Body(bytes) => vec![Step::Send(bytes)],
                Piece::End => Vec::new(),
            };
        };
        match piece {
            Piece::Head(head) => self.head(&fault, head),
            Piece::Body(body) => {
                let at = self.seen;
                self.seen += body.len() as u64;
                self.body(&fault, at, body)
            }
            Piece::End => self.end(&fault),
        }
    }

    fn head(&mut self, fault: &FaultKind, head: Bytes) -> Vec<Step> {
        match fault {
            FaultKind::LoseAnswer => vec![Step::Close],
            FaultKind::Stall => vec![Step::Stall],
            FaultKind::Reset => vec![Step::Reset],
            FaultKind::CutAfter(0) => vec![Step::Send(head), Step::Close],
            FaultKind::StallAfter(0) => vec![Step::Send(head), Step::Stall],
            FaultKind::ResetAfter(0) => vec![Step::Send(head), Step::Reset],
            FaultKind::WrongLength(delta) => vec![Step::Send(with_length(
                &head,
                |n| n.saturating_add_signed(*delta),
                *delta,
                *delta,
            ))],
            FaultKind::WrongTotal(delta) => {
                vec![Step::Send(with_length(&head, |n| n, 0, *delta))]
            }
            FaultKind::TruncateBody(bytes) => {
                vec![Step::Send(with_length(&head, |n| n.min(*bytes), 0, 0))]
            }
            FaultKind::ExtendBody(bytes) => {
                vec![Step::Send(with_length(&head, |n| n + bytes, 0, 0))]
            }
            FaultKind::Delay(time) => vec![Step::Wait(*time), Step::Send(head)],
            FaultKind::Twice => {
                self.copy.put_slice(&head);
                vec![Step::Send(head)]
            }
            FaultKind::CutAfter(_)
            | FaultKind::StallAfter(_)
            | FaultKind::ResetAfter(_)
            | FaultKind::FlipByte(_)
            | FaultKind::Trickle(_)
            | FaultKind::Status(_) => vec![Step::Send(head)],
        }
    }

    fn body(&mut self, fault: &FaultKind, at: u64, body: Bytes) -> Vec<Step> {
        let until = |limit: u64, last: Step| {
            if at >= limit {
                return Vec::new();
            }
            let left = (limit - at) as usize;
            if body.len() < left {
                return vec![Step::Send(body.clone())];
            }
            vec![Step::Send(body.slice(..left)), last]
        };
        match fault {
            FaultKind::CutAfter(limit) => until(*limit, Step::Close),
            FaultKind::StallAfter(limit) => until(*limit, Step::Stall),
            FaultKind::ResetAfter(limit) => until(*limit, Step::Reset),
            FaultKind::TruncateBody(limit) => {
                let left = limit.saturating_sub(at).min(body.len() as u64);
                if left == 0 {
                    return Vec::new();
                }
                vec![Step::Send(body.slice(..left as usize))]
            }
            FaultKind::FlipByte(offset) => {
                let mut bytes = BytesMut::from(body.as_ref());
                if let Some(byte) = offset
                    .checked_sub(at)
                    .and_then(|i| bytes.get_mut(i as usize))
                {
                    *byte ^= 1;
                }
                vec![Step::Send(bytes.freeze())]
            }
            FaultKind::Trickle(bytes_per_second) => {
                let rate = (*bytes_per_second).max(1);
                // About ten steps a second.
                let step = (rate / 10).max(1) as usize;
                let mut steps = Vec::new();
                let mut body = body;
                while !body.is_empty() {
                    let part = body.split_to(step.min(body.len()));
                    steps.push(Step::Wait(Duration::from_secs_f64(
                        part.len() as f64 / rate as f64,
                    )));
                    steps.push(Step::Send(part));
                }
                steps
            }
            FaultKind::Twice => {
                self.copy.put_slice(&body);
                vec![Step::Send(body)]
            }
            FaultKind::LoseAnswer
            | FaultKind::Stall
            | FaultKind::Reset
            | FaultKind::Status(_)
            | FaultKind::WrongLength(_)
            | FaultKind::WrongTotal(_)
            | FaultKind::ExtendBody(_)
            | FaultKind::Delay(_) => vec![Step::Send(body)],
        }
    }

    fn end(&mut self, fault: &FaultKind) -> Vec<Step> {
        match fault {
            FaultKind::ExtendBody(bytes) => vec![Step::Send(vec![0; *bytes as usize].into())],
            // The head lies about what follows: the connection is of no further use.
            FaultKind::WrongLength(_) => vec![Step::Close],
            FaultKind::Twice => vec![Step::Send(self.copy.split().freeze())],
            // The body was shorter than the limit: the fault strikes at its end.
            FaultKind::CutAfter(limit) if self.seen < *limit => vec![Step::Close],
            FaultKind::StallAfter(limit) if self.seen < *limit => vec![Step::Stall],
            FaultKind::ResetAfter(limit) if self.seen < *limit => vec![Step::Reset],
            _ => Vec::new(),
        }
    }
}

/// The answer that a line gives itself.
pub(super) fn own_answer(status: u16, head_only: bool) -> Bytes {
    let reason = http::StatusCode::from_u16(status)
        .ok()
        .and_then(|s| s.canonical_reason())
        .unwrap_or("Injected");
    let code = match status {
        503 => "SlowDown",
        500 => "InternalError",
        403 => "AccessDenied",
        404 => "NoSuchKey",
        412 => "PreconditionFailed",
        409 => "ConditionalRequestConflict",
        _ => "Injected",
    };
    let body = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>{code}</Code><Message>injected fault</Message></Error>"
    );
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status} {reason}\r\ncontent-type: application/xml\r\ncontent-length: {length}\r\n\r\n"
    );
    if head_only { head } else { head + &body }.into()
}

/// A head with another `Content-Length`, and a `Content-Range` whose end and total are moved.
fn with_length(head: &[u8], length: impl Fn(u64) -> u64, end: i64, total: i64) -> Bytes {
    let old = header(head, "content-length").and_then(|v| v.parse().ok());
    let range = header(head, "content-range");
    let mut out = String::new();
    for line in lines(head) {
        let name = line
            .split(':')
            .next()
            .unwrap_or_default()
            .to_ascii_lowercase();
        match (name.as_str(), old, &range) {
            ("content-length", Some(old), _) => {
                out.push_str(&format!("content-length: {}", length(old)));
            }
            ("content-range", _, Some(range)) => {
                out.push_str(&format!("content-range: {}", moved(range, end, total)));
            }
            _ => out.push_str(&line),
        }
        out.push_str("\r\n");
    }
    out.push_str("\r\n");
    out.into()
}

/// `bytes 0-9/100` with its end and its total moved.
fn moved(range: &str, end: i64, total: i64) -> String {
    let parse = || {
        let (unit, rest) = range.split_once(' ')?;
        let (span, size) = rest.split_once('/')?;
        let (first, last) = span.split_once('-')?;
        let last: u64 = last.parse().ok()?;
        let size: u64 = size.parse().ok()?;
        Some(format!(
            "{unit} {first}-{}/{}",
            last.saturating_add_signed(end),
            size.saturating_add_signed(total)
        ))
    };
    parse().unwrap_or_else(|| range.to_owned())
}
