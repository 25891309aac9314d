//! Faults of a line as values: which answer to spoil, how, how often. What they do to the bytes is in `spoil`.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What goes wrong with one answer. Offsets count bytes of its body.
#[derive(Clone, Debug, PartialEq)]
pub enum FaultKind {
    /// The head and this many bytes of the body arrive, then the connection is closed in good order.
    CutAfter(u64),
    /// The request reaches the server, its answer is lost: the connection is closed before the head.
    LoseAnswer,
    /// Nothing is answered; the connection stays open until the client gives up.
    Stall,
    /// The head and this many bytes arrive, then nothing more; the connection stays open.
    StallAfter(u64),
    /// The connection is reset (RST) instead of an answer.
    Reset,
    /// The head and this many bytes arrive, then the connection is reset.
    ResetAfter(u64),
    /// The line answers with this status itself; the request does not reach the server.
    Status(u16),
    /// `Content-Length`, and the end and total of `Content-Range`, are this much off; the body is unchanged, and the
    /// connection is closed after it.
    WrongLength(i64),
    /// Only the total in `Content-Range` is this much off: the object seems to have another length.
    WrongTotal(i64),
    /// A bit of the byte at this offset is flipped.
    FlipByte(u64),
    /// The body ends after this many bytes and `Content-Length` says so: short, and complete by HTTP's rules.
    TruncateBody(u64),
    /// This many bytes of zero follow the body and `Content-Length` says so.
    ExtendBody(u64),
    /// The answer starts this much later.
    Delay(Duration),
    /// The body arrives at this many bytes a second.
    Trickle(u64),
    /// The whole answer is sent twice, one after the other.
    Twice,
}

/// Which requests a fault strikes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FaultMatcher {
    /// Only this method, such as `GET`; `None`: any.
    pub method: Option<String>,
    /// Only requests whose path (as sent, with its query) contains this; `None`: any.
    pub path_contains: Option<String>,
    /// Lets this many matching requests pass first.
    pub skip: u64,
}

impl FaultMatcher {
    /// Strikes requests of this method whose path contains this text.
    pub fn new(method: &str, path_contains: &str) -> Self {
        Self {
            method: Some(method.to_owned()),
            path_contains: Some(path_contains.to_owned()),
            skip: 0,
        }
    }

    /// Lets `requests` matching ones pass first.
    pub fn after(mut self, requests: u64) -> Self {
        self.skip = requests;
        self
    }

    fn matches(&self, method: &str, path: &str) -> bool {
        self.method.as_deref().is_none_or(|m| m == method)
            && self
                .path_contains
                .as_deref()
                .is_none_or(|p| path.contains(p))
    }
}

/// A fault to inject.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// The requests it strikes.
    pub matcher: FaultMatcher,
    /// What happens to their answers.
    pub kind: FaultKind,
    /// How many of them it strikes.
    pub times: u64,
}

impl Fault {
    /// Strikes once.
    pub fn once(matcher: FaultMatcher, kind: FaultKind) -> Self {
        Self {
            matcher,
            kind,
            times: 1,
        }
    }

    /// Strikes every matching request.
    pub fn always(matcher: FaultMatcher, kind: FaultKind) -> Self {
        Self {
            matcher,
            kind,
            times: u64::MAX,
        }
    }
}

/// Names an injected fault, to ask whether it struck.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultId(usize);

/// The faults of one line. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct FaultPlan {
    planned: Arc<Mutex<Vec<Planned>>>,
}

#[derive(Debug)]
struct Planned {
    fault: Fault,
    seen: u64,
    struck: u64,
    withdrawn: bool,
}

impl FaultPlan {
    /// Adds a fault; of several that match one request the first added strikes.
    pub fn inject(&self, fault: Fault) -> FaultId {
        let mut planned = self.lock();
        planned.push(Planned {
            fault,
            seen: 0,
            struck: 0,
            withdrawn: false,
        });
        FaultId(planned.len() - 1)
    }

    /// How many requests a fault has struck. A test that expects a fault should assert that it did strike.
    pub fn struck(&self, id: FaultId) -> u64 {
        self.lock().get(id.0).map_or(0, |planned| planned.struck)
    }

    /// Withdraws all faults; [`struck`](Self::struck) still answers.
    pub fn clear(&self) {
        for planned in self.lock().iter_mut() {
            planned.withdrawn = true;
        }
    }

    /// The fault that strikes this request, which is thereby spent.
    pub(super) fn take(&self, method: &str, path: &str) -> Option<FaultKind> {
        let mut chosen = None;
        for planned in self.lock().iter_mut() {
            if planned.withdrawn || !planned.fault.matcher.matches(method, path) {
                continue;
            }
            planned.seen += 1;
            let due =
                planned.seen > planned.fault.matcher.skip && planned.struck < planned.fault.times;
            if due && chosen.is_none() {
                planned.struck += 1;
                chosen = Some(planned.fault.kind.clone());
            }
        }
        chosen
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Planned>> {
        self.planned.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
