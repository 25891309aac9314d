//! Reading an immutable object: memory, then disk, then the origin, each byte over the line once.
//!
//! ```text
//! read(range) ── memory ── disk ──┬─ whole? hand out
//!                                 └─ missing blocks ── join flights under way
//!                                                   └─ new flights: one process at a time ── origin
//!                                                         └─ verified ── memory, disk ── hand out
//! ```

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::FutureExt;
use tracing::Instrument;

use crate::blocks::{
    BLOCK_BYTES, BlockMask, SEGMENT_BYTES, align, coalesce, plan_requests, segments_of, subtract,
};
use crate::disk::{DiskCache, Facts, FlightLock, Held, Insert, Ticket};
use crate::error::{Error, ErrorKind, Result};
use crate::location::Location;
use crate::object::{Flown, Landing, Object};
use crate::origin::{Bucket, out_of_range};
use crate::segment::Segment;
use crate::store::Shared;

/// Rounds of looking and fetching for one read: the first may teach the length, the second completes.
const ROUNDS: usize = 4;
/// How often a process looks whether another's fetch is over.
const LOOK_AGAIN: Duration = Duration::from_millis(10);
/// How long it waits for it before it fetches by itself.
const PATIENCE: Duration = Duration::from_secs(20);

/// Bytes read from the page cache between two awaits at most; copying them takes some 50 us.
const INLINE_BYTES: u64 = 1024 * 1024;

/// An immutable object opened for reading. Opening it asks nobody anything.
#[derive(Clone, Debug)]
pub(crate) struct CachedFile {
    pub(crate) store: Arc<Shared>,
    pub(crate) object: Arc<Object>,
    pub(crate) bucket: Bucket,
    pub(crate) location: Location,
}

/// What the disk tier gave: a segment's number, its blocks, and the object's length.
type OnDisk = (u64, Segment, u64);

/// Pieces of an object that were found, in no order; they may overlap.
type Pieces = Vec<(u64, Bytes)>;

impl CachedFile {
    /// The bytes of a range.
    pub(crate) async fn read(&self, range: Range<u64>) -> Result<Bytes> {
        if let Some(bytes) = self.in_memory(&range) {
            self.store.counters.memory_hit(bytes.len() as u64);
            return Ok(bytes);
        }
        self.check(&range)?;
        if range.is_empty() {
            return Ok(Bytes::new());
        }
        let pieces = self.gather(std::slice::from_ref(&range)).await?;
        self.assemble(&pieces, &range)
    }

    /// The bytes of several ranges, fetched together: neighbours share a request.
    pub(crate) async fn read_ranges(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        ranges.iter().try_for_each(|range| self.check(range))?;
        let wanted: Vec<_> = ranges
            .iter()
            .filter(|range| !range.is_empty())
            .cloned()
            .collect();
        let pieces = if wanted.is_empty() {
            Vec::new()
        } else {
            self.gather(&wanted).await?
        };
        ranges
            .iter()
            .map(|range| {
                if range.is_empty() {
                    Ok(Bytes::new())
                } else {
                    self.assemble(&pieces, range)
                }
            })
            .collect()
    }

    /// The whole object.
    pub(crate) async fn read_all(&self) -> Result<Bytes> {
        if self.object.length().is_none()
            && let Some(disk) = self.store.disk.clone()
        {
            // Any segment tells the length.
            self.look_on_disk(disk, vec![(0, BlockMask::of(0..1))])
                .await?;
        }
        match self.object.length() {
            Some(length) => self.read(0..length).await,
            None => self.read_all_of_unknown_length().await,
        }
    }

    /// One request without a range; its answer tells the length.
    async fn read_all_of_unknown_length(&self) -> Result<Bytes> {
        if self.store.offline {
            return Err(offline(&self.location));
        }
        let everything = 0..u64::MAX;
        let alone = |under_way: &[Range<u64>]| {
            if under_way.is_empty() {
                vec![everything.clone()]
            } else {
                Vec::new()
            }
        };
        let flights =
            self.object
                .join_flights(std::slice::from_ref(&everything), alone, |number, range| {
                    self.launch(number, range)
                });
        self.store.counters.miss();
        let mut pieces = Pieces::new();
        for flight in flights {
            let flown = flight.landing.await?;
            pieces.push((flown.start, flown.bytes));
        }
        let whole = 0..self.object.length().unwrap_or_default();
        match missing(std::slice::from_ref(&whole), &pieces).is_empty() {
            true => self.assemble(&pieces, &whole),
            // Flights that others began brought a part, and the length.
            false => self.read(whole).await,
        }
    }

    /// Whether any of it is cached, which proves that it exists and tells its length.
    pub(crate) async fn is_cached(&self) -> Result<bool> {
        if self.object.facts().is_some() {
            return Ok(true);
        }
        match self.store.disk.clone() {
            Some(disk) => Ok(!self
                .look_on_disk(disk, vec![(0, BlockMask::of(0..1))])
                .await?
                .is_empty()),
            None => Ok(false),
        }
    }

    /// A hit in memory: one segment holds the range.
    fn in_memory(&self, range: &Range<u64>) -> Option<Bytes> {
        if range.is_empty() {
            return None;
        }
        self.store
            .memory
            .with((self.object.id, range.start / SEGMENT_BYTES), |segment| {
                segment.slice(range)
            })
    }

    fn check(&self, range: &Range<u64>) -> Result<()> {
        let Range { start, end } = *range;
        if start > end {
            return Err(Error::new(
                ErrorKind::Invalid,
                format!(
                    "can't read bytes {start}..{end} of {}: the end lies before the start",
                    self.location
                ),
            ));
        }
        match self.object.length() {
            Some(length) if end > length => Err(out_of_range(&self.location, range, length)),
            _ => Ok(()),
        }
    }

    /// Pieces that hold all of `ranges`.
    async fn gather(&self, ranges: &[Range<u64>]) -> Result<Pieces> {
        let mut pieces = Pieces::new();
        let mut missed = false;
        for _ in 0..ROUNDS {
            ranges.iter().try_for_each(|range| self.check(range))?;
            let mut wanted = self.wanted(ranges, false);
            self.look(&wanted, &mut pieces).await?;
            if missing(&wanted, &pieces).is_empty() {
                if missed {
                    self.store.counters.miss();
                }
                return Ok(pieces);
            }
            let whole = self.wanted(ranges, true);
            if whole != wanted {
                wanted = whole;
                self.look(&wanted, &mut pieces).await?;
            }
            if self.store.offline {
                return Err(offline(&self.location));
            }
            missed = true;
            if let Err(error) = self.fetch(&missing(&wanted, &pieces), &mut pieces).await {
                // In the caller's own numbers, where it is the caller's range that is wrong.
                ranges.iter().try_for_each(|range| self.check(range))?;
                return Err(error);
            }
        }
        Err(Error::new(
            ErrorKind::Unexpected,
            format!(
                "can't read {}: it changes its length with each answer",
                self.location
            ),
        ))
    }

    /// The whole blocks that hold the ranges; to fetch, a small file is wanted whole.
    fn wanted(&self, ranges: &[Range<u64>], to_fetch: bool) -> Vec<Range<u64>> {
        let small = self.store.origin_config.whole_file_bytes;
        match self.object.length() {
            Some(length) if to_fetch && length <= small => {
                let whole = 0..length;
                vec![whole]
            }
            Some(length) => coalesce(ranges.iter().map(|range| align(range, length)).collect(), 0),
            None => {
                // To the byte at the end: what lies behind it may not exist.
                let start = |range: &Range<u64>| range.start / BLOCK_BYTES * BLOCK_BYTES;
                let mut unrounded: Vec<_> =
                    ranges.iter().map(|range| start(range)..range.end).collect();
                // The last bytes of a small file, its footer: take the file from its start along.
                let end = ranges
                    .iter()
                    .map(|range| range.end)
                    .max()
                    .unwrap_or_default();
                if to_fetch && end <= small {
                    let from_the_start = 0..end;
                    unrounded = vec![from_the_start];
                }
                coalesce(unrounded, 0)
            }
        }
    }

    /// Add to `pieces` what memory and disk hold of `wanted`.
    async fn look(&self, wanted: &[Range<u64>], pieces: &mut Pieces) -> Result<()> {
        let mut on_disk = Vec::new();
        for (segment, _, mask) in wanted.iter().flat_map(|range| segments_of(range.clone())) {
            match self.store.memory.get((self.object.id, segment)) {
                Some(held) => {
                    self.store
                        .counters
                        .memory_hit(held.bytes().min(mask.count() * BLOCK_BYTES));
                    pieces.extend(held.runs().iter().cloned());
                    if !held.mask().contains(mask) {
                        on_disk.push((segment, mask.without(held.mask())));
                    }
                }
                None => on_disk.push((segment, mask)),
            }
        }
        if let Some(disk) = self.store.disk.clone()
            && !on_disk.is_empty()
        {
            pieces.extend(self.look_on_disk(disk, on_disk).await?);
        }
        Ok(())
    }

    /// What the disk holds of these segments' blocks; it is kept in memory from now on.
    async fn look_on_disk(&self, disk: DiskCache, wanted: Vec<(u64, BlockMask)>) -> Result<Pieces> {
        let purges = self.object.purges();
        let (mut found, waiting) = self.read_again(&disk, wanted);
        if !waiting.is_empty() {
            let this = self.clone();
            found.extend(blocking(move || this.read_and_verify(&disk, waiting)).await?);
        }
        let mut pieces = Pieces::new();
        for (index, segment, length) in found {
            self.store.counters.disk_hit(segment.bytes());
            pieces.extend(segment.runs().iter().cloned());
            self.object.unless_purged(purges, || {
                self.store
                    .memory
                    .merge((self.object.id, index), segment, length)
            });
        }
        Ok(pieces)
    }

    /// What needs neither checks nor waiting is read here and now; the rest is left.
    fn read_again(
        &self,
        disk: &DiskCache,
        wanted: Vec<(u64, BlockMask)>,
    ) -> (Vec<OnDisk>, Vec<(u64, BlockMask)>) {
        let mut found = Vec::new();
        let mut left = INLINE_BYTES;
        let waiting = wanted.into_iter().filter(|(index, mask)| {
            let (Some(known), Some(length)) = (self.object.verified(*index), self.object.length())
            else {
                return true;
            };
            if left == 0 {
                return true;
            }
            let Some(segment) = disk.read_again(&self.object.key, *index, *mask, &known) else {
                return true;
            };
            left = left.saturating_sub(segment.bytes());
            found.push((*index, segment, length));
            false
        });
        let waiting = waiting.collect();
        (found, waiting)
    }

    /// The same where it may wait, verifying what is read.
    fn read_and_verify(&self, disk: &DiskCache, wanted: Vec<(u64, BlockMask)>) -> Vec<OnDisk> {
        let mut found = Vec::new();
        for (index, mask) in wanted {
            let Some(there) = disk.read(&self.object.key, index, mask) else {
                continue;
            };
            if self.object.agrees(&there.facts) {
                self.object.verify(index, there.verified);
                found.push((index, there.segment, there.facts.length));
            } else {
                disk.forget(&self.object.key, index);
            }
        }
        found
    }

    /// Fetch what is missing, together with everyone who wants the same.
    async fn fetch(&self, missing: &[Range<u64>], pieces: &mut Pieces) -> Result<()> {
        let config = &self.store.origin_config;
        let here = coalesce(
            pieces
                .iter()
                .map(|(start, bytes)| *start..*start + bytes.len() as u64)
                .collect(),
            0,
        );
        let flights = self.object.join_flights(
            missing,
            |under_way| {
                let mut present = here.clone();
                present.extend_from_slice(under_way);
                let present = coalesce(present, 0);
                plan_requests(
                    subtract(missing, &present),
                    &present,
                    config.gap_bytes,
                    config.request_bytes,
                )
            },
            |number, range| self.launch(number, range),
        );
        for flight in flights {
            let flown = flight.landing.await?;
            pieces.push((flown.start, flown.bytes));
        }
        Ok(())
    }

    /// Begin a flight. It goes on when those who wait for it go away: what was begun is kept.
    fn launch(&self, number: u64, range: Range<u64>) -> Landing {
        let flying = self.clone();
        let span = tracing::debug_span!("fetch", location = %self.location, start = range.start, end = range.end);
        let flight = async move {
            let flown = flying.fly(range).await;
            flying.object.land(number);
            flown
        };
        let task = tokio::spawn(flight.instrument(span));
        async move {
            task.await.unwrap_or_else(|e| {
                Err(Error::new(ErrorKind::Unexpected, "a fetch died").with_source(e))
            })
        }
        .boxed()
        .shared()
    }

    async fn fly(&self, range: Range<u64>) -> Result<Flown> {
        let purges = self.object.purges();
        let turn = self.wait_for_turn(range.start).await?;
        if turn.waited
            && let Some(flown) = self.found_meanwhile(&range).await?
        {
            return Ok(flown);
        }
        let asked = (range.end != u64::MAX).then(|| range.clone());
        let asked = self
            .bucket
            .get(&self.location, asked, self.object.version(), |facts| {
                self.object.learn(facts)
            });
        let got = match asked.await {
            Err(error) if error.kind() == ErrorKind::OutOfRange => {
                return Err(self.explain(error).await);
            }
            other => other?,
        };
        let facts = got.facts.unwrap_or_else(|| Facts {
            length: range.start + got.bytes.len() as u64,
            version: None,
        });
        self.keep(range.start, &got.bytes, &facts, purges, turn.ticket.clone())
            .await?;
        Ok(Flown {
            start: range.start,
            bytes: got.bytes,
        })
    }

    /// A manifest told a length, and the origin has less: the only question that costs a HEAD.
    async fn explain(&self, error: Error) -> Error {
        match self.bucket.stat(&self.location).await {
            Ok(Some(facts)) => self.object.learn(&facts).err().unwrap_or(error),
            _ => error,
        }
    }

    /// Wait while another process fetches the same, as long as that seems to help.
    async fn wait_for_turn(&self, start: u64) -> Result<Turn> {
        let Some(disk) = self.store.disk.clone() else {
            return Ok(Turn::default());
        };
        let began = tokio::time::Instant::now();
        let mut waited = false;
        loop {
            let (disk, key) = (disk.clone(), self.object.key.clone());
            let asked =
                blocking(move || (disk.ticket(key.path_hash()), disk.lock_flight(&key, start)))
                    .await?;
            let (ticket, held) = match asked {
                (_, FlightLock::Theirs) if began.elapsed() < PATIENCE => {
                    waited = true;
                    tokio::time::sleep(LOOK_AGAIN).await;
                    continue;
                }
                (ticket, FlightLock::Ours(held)) => (ticket, Some(held)),
                (ticket, FlightLock::Theirs | FlightLock::Unknown) => (ticket, None),
            };
            return Ok(Turn {
                ticket: Some(ticket),
                waited,
                _held: held,
            });
        }
    }

    /// What another process fetched while this one waited.
    async fn found_meanwhile(&self, range: &Range<u64>) -> Result<Option<Flown>> {
        if self.object.length().is_none()
            && let Some(disk) = self.store.disk.clone()
        {
            // What the other process kept tells the length too.
            self.look_on_disk(disk, vec![(0, BlockMask::of(0..1))])
                .await?;
        }
        let Some(length) = self.object.length() else {
            return Ok(None);
        };
        let range = range.start..range.end.min(length);
        let mut pieces = Pieces::new();
        self.look(std::slice::from_ref(&range), &mut pieces).await?;
        if !missing(std::slice::from_ref(&range), &pieces).is_empty() {
            return Ok(None);
        }
        let bytes = self.assemble(&pieces, &range)?;
        Ok(Some(Flown {
            start: range.start,
            bytes,
        }))
    }

    /// Keep what came, in memory and on disk, cut into segments.
    async fn keep(
        &self,
        start: u64,
        bytes: &Bytes,
        facts: &Facts,
        purges: u64,
        ticket: Option<Ticket>,
    ) -> Result<()> {
        // Either end may lie within a block, of which a part can't be kept.
        let begin = start.div_ceil(BLOCK_BYTES) * BLOCK_BYTES;
        let end = match start + bytes.len() as u64 {
            end if end == facts.length => end,
            end => end / BLOCK_BYTES * BLOCK_BYTES,
        };
        let cut = move |part: &Range<u64>, bytes: &Bytes| {
            bytes.slice((part.start - start) as usize..(part.end - start) as usize)
        };
        let segments: Vec<(u64, Segment)> = segments_of(begin..end.max(begin))
            .map(|(index, part, _)| {
                (
                    index,
                    Segment::new(index, vec![(part.start, cut(&part, bytes))]),
                )
            })
            .collect();
        self.object.unless_purged(purges, || {
            for (index, segment) in &segments {
                self.store
                    .memory
                    .merge((self.object.id, *index), segment.clone(), facts.length);
            }
        });
        let (Some(disk), Some(ticket)) = (self.store.disk.clone(), ticket) else {
            return Ok(());
        };
        let (object, facts) = (self.object.clone(), facts.clone());
        let write = move || {
            for (index, segment) in segments {
                disk.insert(&Insert {
                    key: &object.key,
                    facts: &facts,
                    index,
                    segment,
                    ticket: &ticket,
                });
            }
        };
        blocking(write).await
    }

    /// Keep an object that this process wrote, as if it had been fetched.
    pub(crate) async fn keep_written(&self, bytes: &Bytes, version: Option<String>) -> Result<()> {
        let facts = Facts {
            length: bytes.len() as u64,
            version,
        };
        let Some(disk) = self.store.disk.clone() else {
            return Ok(());
        };
        let (key, purges) = (self.object.key.clone(), self.object.purges());
        let ticket = blocking(move || disk.ticket(key.path_hash())).await?;
        self.object.learn(&facts)?;
        self.keep(0, bytes, &facts, purges, Some(ticket)).await
    }

    /// One buffer for a range: a slice if one piece holds it, else a copy of several.
    fn assemble(&self, pieces: &Pieces, range: &Range<u64>) -> Result<Bytes> {
        let holds = |(start, bytes): &&(u64, Bytes)| {
            *start <= range.start && range.end <= start + bytes.len() as u64
        };
        if let Some((start, bytes)) = pieces.iter().find(holds) {
            return Ok(bytes.slice((range.start - start) as usize..(range.end - start) as usize));
        }
        let mut joined = BytesMut::with_capacity((range.end - range.start) as usize);
        let mut at = range.start;
        while at < range.end {
            let next = pieces
                .iter()
                .find(|(start, bytes)| *start <= at && at < start + bytes.len() as u64);
            let Some((start, bytes)) = next else {
                return Err(match self.object.length() {
                    Some(length) if range.end > length => {
                        out_of_range(&self.location, range, length)
                    }
                    _ => Error::new(
                        ErrorKind::Unexpected,
                        format!(
                            "can't read {}: byte {at} is in no piece that was fetched",
                            self.location
                        ),
                    ),
                });
            };
            let end = range.end.min(start + bytes.len() as u64);
            joined.extend_from_slice(&bytes[(at - start) as usize..(end - start) as usize]);
            at = end;
        }
        Ok(joined.freeze())
    }
}

/// The turn of this process to fetch something; others wait until it is dropped.
#[derive(Default)]
struct Turn {
    /// What the path's tombstone was when the turn began.
    ticket: Option<Ticket>,
    /// Whether another process fetched it before.
    waited: bool,
    _held: Option<Held>,
}

/// Run what blocks on a thread that may.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| {
        Error::new(ErrorKind::Unexpected, "the cache's worker died").with_source(error)
    })
}

fn missing(wanted: &[Range<u64>], pieces: &Pieces) -> Vec<Range<u64>> {
    subtract(
        wanted,
        &coalesce(
            pieces
                .iter()
                .map(|(start, bytes)| *start..*start + bytes.len() as u64)
                .collect(),
            0,
        ),
    )
}

pub(crate) fn offline(location: &Location) -> Error {
    Error::new(
        ErrorKind::Offline,
        format!("can't read {location} offline: it is not in the cache"),
    )
    .with_hint("read it once online, or warm the table with `floe cache warm`")
}
