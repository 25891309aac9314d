//! Follows a byte stream of HTTP/1.1 messages: where heads end, where bodies end. Nothing is interpreted beyond that.

use bytes::{Bytes, BytesMut};

/// A part of a message; concatenated they are the stream again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// A whole head, its empty line included.
    Head(Bytes),
    /// Some of the body (of a chunked one with its framing).
    Body(Bytes),
    /// The message is complete.
    End,
}

/// Which side's messages are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Request,
    Response,
}

#[derive(Debug)]
enum State {
    /// Collecting a head.
    Head(BytesMut),
    /// This many bytes of the body are to come.
    Length(u64),
    Chunked(Chunk),
    /// All that comes is body.
    UntilClose,
}

/// Where in a chunked body we are (RFC 9112, section 7.1).
#[derive(Debug)]
enum Chunk {
    /// In a size line; so far.
    Size(Vec<u8>),
    /// In a chunk's data or its line end; this many bytes to come.
    Data(u64),
    /// After the last chunk: bytes of the current trailer line.
    Trailer(usize),
}

#[derive(Debug)]
pub(super) struct MessageParser {
    side: Side,
    state: State,
}

/// A head longer than this is taken for something other than HTTP.
const MAX_HEAD: usize = 256 * 1024;

impl MessageParser {
    pub(super) fn new(side: Side) -> Self {
        Self {
            side,
            state: State::Head(BytesMut::new()),
        }
    }

    /// Takes the next bytes of the stream. `bodyless` is asked at a response's head whether the request it answers
    /// forbids a body (HEAD).
    pub(super) fn feed(
        &mut self,
        mut input: Bytes,
        mut bodyless: impl FnMut() -> bool,
    ) -> Vec<Piece> {
        let mut pieces = Vec::new();
        while !input.is_empty() {
            match &mut self.state {
                State::Head(head) => {
                    let before = head.len();
                    head.extend_from_slice(&input);
                    // The terminator may straddle what was there and what came.
                    let from = before.saturating_sub(3);
                    let Some(at) = find(&head[from..], b"\r\n\r\n") else {
                        if head.len() > MAX_HEAD {
                            pieces.push(Piece::Body(head.split().freeze()));
                            self.state = State::UntilClose;
                        }
                        return pieces;
                    };
                    let head_len = from + at + 4;
                    let head = head.split_to(head_len).freeze();
                    let _ = input.split_to(head_len - before);
                    if self.side == Side::Response && is_interim(&head) {
                        // The final answer to the same request follows.
                        self.state = State::Head(BytesMut::new());
                        pieces.push(Piece::Head(head));
                        continue;
                    }
                    self.state = body_state(self.side, &head, &mut bodyless);
                    pieces.push(Piece::Head(head));
                    if matches!(self.state, State::Length(0)) {
                        self.end(&mut pieces);
                    }
                }
                State::Length(left) => {
                    let part = take(&mut input, left);
                    let done = *left == 0;
                    pieces.push(Piece::Body(part));
                    if done {
                        self.end(&mut pieces);
                    }
                }
                State::Chunked(chunk) => {
                    let used = chunk.advance(&input);
                    let done = used.is_some();
                    let part = input.split_to(used.unwrap_or(input.len()));
                    pieces.push(Piece::Body(part));
                    if done {
                        self.end(&mut pieces);
                    }
                }
                State::UntilClose => pieces.push(Piece::Body(input.split_off(0))),
            }
        }
        pieces
    }

    fn end(&mut self, pieces: &mut Vec<Piece>) {
        pieces.push(Piece::End);
        self.state = State::Head(BytesMut::new());
    }
}

impl Chunk {
    /// Gives how many bytes belong to this body if it ends in `input`.
    fn advance(&mut self, input: &[u8]) -> Option<usize> {
        let mut at = 0;
        while at < input.len() {
            match self {
                Chunk::Size(line) => {
                    let byte = input[at];
                    at += 1;
                    if byte != b'\n' {
                        line.push(byte);
                        continue;
                    }
                    let text = String::from_utf8_lossy(line);
                    let digits = text.split(';').next().unwrap_or_default().trim();
                    *self = match u64::from_str_radix(digits, 16).unwrap_or(0) {
                        0 => Chunk::Trailer(0),
                        size => Chunk::Data(size + 2),
                    };
                }
                Chunk::Data(left) => {
                    let step = (*left).min((input.len() - at) as u64);
                    *left -= step;
                    at += step as usize;
                    if *left == 0 {
                        *self = Chunk::Size(Vec::new());
                    }
                }
                Chunk::Trailer(line) => {
                    let byte = input[at];
                    at += 1;
                    match byte {
                        b'\n' if *line == 0 => return Some(at),
                        b'\n' => *line = 0,
                        b'\r' => {}
                        _ => *line += 1,
                    }
                }
            }
        }
        None
    }
}

fn body_state(side: Side, head: &[u8], bodyless: &mut impl FnMut() -> bool) -> State {
    if side == Side::Response {
        let status = status_of(head);
        if bodyless() || matches!(status, Some(204 | 304)) {
            return State::Length(0);
        }
    }
    if header(head, "transfer-encoding").is_some_and(|v| v.to_ascii_lowercase().contains("chunked"))
    {
        return State::Chunked(Chunk::Size(Vec::new()));
    }
    match header(head, "content-length").and_then(|v| v.parse().ok()) {
        Some(length) => State::Length(length),
        None if side == Side::Request => State::Length(0),
        None => State::UntilClose,
    }
}

fn take(input: &mut Bytes, left: &mut u64) -> Bytes {
    let step = (*left).min(input.len() as u64);
    *left -= step;
    input.split_to(step as usize)
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack
        .windows(needle.len())
        .position(|window| window == needle)
}

/// The value of a header in a head, trimmed.
pub(super) fn header(head: &[u8], name: &str) -> Option<String> {
    lines(head).skip(1).find_map(|line| {
        let (key, value) = line.split_once(':')?;
        key.trim()
            .eq_ignore_ascii_case(name)
            .then(|| value.trim().to_owned())
    })
}

/// The lines of a head, without the empty one.
pub(super) fn lines(head: &[u8]) -> impl Iterator<Item = String> {
    let text = String::from_utf8_lossy(head).into_owned();
    let lines: Vec<String> = text
        .split("\r\n")
        .filter(|line| !line.is_empty())
        .map(str::to_owned)
        .collect();
    lines.into_iter()
}

/// Method and target of a request's head.
pub(super) fn request_line(head: &[u8]) -> (String, String) {
    let line = lines(head).next().unwrap_or_default();
    let mut words = line.split(' ');
    let method = words.next().unwrap_or_default().to_owned();
    (method, words.next().unwrap_or_default().to_owned())
}

/// Whether this is `100 Continue` or its like, which has no body and answers nothing.
pub(super) fn is_interim(head: &[u8]) -> bool {
    matches!(status_of(head), Some(100..200))
}

/// The status of a response's head.
fn status_of(head: &[u8]) -> Option<u16> {
    lines(head).next()?.split(' ').nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces_of(side: Side, stream: &[u8], step: usize) -> Vec<Piece> {
        let mut parser = MessageParser::new(side);
        let mut pieces: Vec<Piece> = Vec::new();
        for chunk in stream.chunks(step) {
            for piece in parser.feed(Bytes::copy_from_slice(chunk), || false) {
                match (pieces.last_mut(), piece) {
                    (Some(Piece::Body(last)), Piece::Body(more)) => {
                        *last = [last.as_ref(), more.as_ref()].concat().into();
                    }
                    (_, piece) => pieces.push(piece),
                }
            }
        }
        pieces
    }

    #[test]
    fn pieces_do_not_depend_on_how_the_stream_is_cut() {
        let stream = b"PUT /b/k HTTP/1.1\r\nContent-Length: 5\r\n\r\nhelloGET /b/k HTTP/1.1\r\nHost: x\r\n\r\n\
            PUT /b/c HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\nHEAD / HTTP/1.1\r\n\r\n";
        let whole = pieces_of(Side::Request, stream, stream.len());
        assert_eq!(
            whole.iter().filter(|p| matches!(p, Piece::Head(_))).count(),
            4
        );
        assert_eq!(whole.iter().filter(|p| **p == Piece::End).count(), 4);
        assert!(whole.contains(&Piece::Body(Bytes::from_static(b"hello"))));
        assert!(whole.contains(&Piece::Body(Bytes::from_static(b"3\r\nabc\r\n0\r\n\r\n"))));
        for step in 1..stream.len() {
            assert_eq!(pieces_of(Side::Request, stream, step), whole, "step {step}");
        }
    }

    #[test]
    fn an_interim_answer_is_no_answer() {
        let stream = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
        let pieces = pieces_of(Side::Response, stream, stream.len());
        assert_eq!(pieces.iter().filter(|p| **p == Piece::End).count(), 1);
        assert_eq!(pieces.len(), 3);
    }

    #[test]
    fn a_response_without_a_length_lasts_until_the_connection_closes() {
        let pieces = pieces_of(Side::Response, b"HTTP/1.1 200 OK\r\n\r\nall of it", 4);
        assert_eq!(pieces[1], Piece::Body(Bytes::from_static(b"all of it")));
        assert!(!pieces.contains(&Piece::End));
    }
}
