//! What this process knows of one immutable object: its facts, and the fetches of it under way.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use futures::future::{BoxFuture, Shared};

use crate::disk::{Facts, Verified};
use crate::error::{Error, ErrorKind, Result};
use crate::key::ObjectKey;

/// What a fetch brought: bytes of the object from `start` on.
#[derive(Clone, Debug)]
pub(crate) struct Flown {
    pub(crate) start: u64,
    pub(crate) bytes: Bytes,
}

/// The result of a fetch, for everyone who waits for it.
pub(crate) type Landing = Shared<BoxFuture<'static, Result<Flown>>>;

/// A fetch under way.
#[derive(Clone, Debug)]
pub(crate) struct Flight {
    number: u64,
    pub(crate) range: Range<u64>,
    pub(crate) landing: Landing,
}

/// One immutable object.
#[derive(Debug)]
pub(crate) struct Object {
    /// Its number in this process, the memory tier's key.
    pub(crate) id: u64,
    pub(crate) key: ObjectKey,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    facts: Option<Facts>,
    /// The length that a manifest told.
    told: Option<u64>,
    flights: Vec<Flight>,
    flown: u64,
    /// By segment, what this process verified of the disk tier's files.
    verified: HashMap<u64, Verified>,
    /// How often it was purged: what was fetched before a purge is not kept after it.
    purges: u64,
}

impl Object {
    pub(crate) fn new(key: ObjectKey) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            key,
            state: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its length, if anything told it.
    pub(crate) fn length(&self) -> Option<u64> {
        let state = self.state();
        state
            .facts
            .as_ref()
            .map(|facts| facts.length)
            .or(state.told)
    }

    pub(crate) fn facts(&self) -> Option<Facts> {
        self.state().facts.clone()
    }

    /// The version that every further request must meet.
    pub(crate) fn version(&self) -> Option<String> {
        self.state()
            .facts
            .as_ref()
            .and_then(|facts| facts.version.clone())
    }

    /// A manifest tells its length.
    pub(crate) fn tell_length(&self, length: u64) {
        self.state().told = Some(length);
    }

    /// The origin tells its facts: they must agree with what is known, and are known from now on.
    pub(crate) fn learn(&self, facts: &Facts) -> Result<()> {
        let mut state = self.state();
        let location = self.key.location();
        if let Some(told) = state.told
            && told != facts.length
        {
            let found = facts.length;
            return Err(Error::new(
                ErrorKind::WrongLength,
                format!(
                    "can't read {location}: the manifest says {told} bytes, the origin has {found}"
                ),
            )
            .with_hint("the file was cut, overwritten, or another one stands in its place"));
        }
        match &state.facts {
            Some(known) if known != facts => Err(Error::new(
                ErrorKind::Overwritten,
                format!(
                    "can't read {location}: it was overwritten in place ({} bytes, version {} before; {} bytes, version {} now)",
                    known.length,
                    known.version.as_deref().unwrap_or("unknown"),
                    facts.length,
                    facts.version.as_deref().unwrap_or("unknown"),
                ),
            )
            .with_hint("immutable files must not change; `floe cache purge` the location if the new content is meant")),
            Some(_) => Ok(()),
            None => {
                state.facts = Some(facts.clone());
                Ok(())
            }
        }
    }

    /// Whether cached bytes with these facts are of the object that is meant; if nothing was known
    /// but its length, they are known from now on.
    pub(crate) fn agrees(&self, cached: &Facts) -> bool {
        let mut state = self.state();
        if state.told.is_some_and(|told| told != cached.length) {
            return false;
        }
        match &state.facts {
            Some(known) => known == cached,
            None => {
                state.facts = Some(cached.clone());
                true
            }
        }
    }

    /// Under one lock: the flights under way that bring some of `missing`, and those that `start`
    /// makes for what no flight brings.
    pub(crate) fn join_flights(
        &self,
        missing: &[Range<u64>],
        plan: impl FnOnce(&[Range<u64>]) -> Vec<Range<u64>>,
        start: impl Fn(u64, Range<u64>) -> Landing,
    ) -> Vec<Flight> {
        let mut state = self.state();
        let overlaps = |flight: &Flight| {
            missing
                .iter()
                .any(|m| m.start < flight.range.end && flight.range.start < m.end)
        };
        let mut joined: Vec<Flight> = state
            .flights
            .iter()
            .filter(|flight| overlaps(flight))
            .cloned()
            .collect();
        let mut under_way: Vec<Range<u64>> = state
            .flights
            .iter()
            .map(|flight| flight.range.clone())
            .collect();
        under_way.sort_by_key(|range| range.start);
        for range in plan(&under_way) {
            let number = state.flown;
            state.flown += 1;
            let flight = Flight {
                number,
                range: range.clone(),
                landing: start(number, range),
            };
            state.flights.push(flight.clone());
            joined.push(flight);
        }
        joined
    }

    /// A flight is over.
    pub(crate) fn land(&self, number: u64) {
        self.state()
            .flights
            .retain(|flight| flight.number != number);
    }

    /// What was verified of a segment's file on disk.
    pub(crate) fn verified(&self, segment: u64) -> Option<Verified> {
        self.state().verified.get(&segment).copied()
    }

    /// A segment's file on disk was read and found right.
    pub(crate) fn verify(&self, segment: u64, verified: Verified) {
        self.state().verified.insert(segment, verified);
    }

    pub(crate) fn purges(&self) -> u64 {
        self.state().purges
    }

    /// Do `keep` unless it was purged since `purges` was read.
    pub(crate) fn unless_purged(&self, purges: u64, keep: impl FnOnce()) {
        let state = self.state();
        if state.purges == purges {
            keep();
        }
    }

    /// Forget everything known, and make sure that flights under way leave nothing behind.
    pub(crate) fn purge(&self, remove: impl FnOnce(Option<u64>)) {
        let mut state = self.state();
        let length = state
            .facts
            .take()
            .map(|facts| facts.length)
            .or(state.told.take());
        state.purges += 1;
        state.verified.clear();
        // Those who wait still get what they asked for before; nobody else joins.
        state.flights.clear();
        remove(length);
    }
}
