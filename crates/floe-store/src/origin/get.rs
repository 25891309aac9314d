//! Bytes of one version of an object: retried, resumed where they broke off, never mixed.

use std::ops::Range;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use opendal::raw::oio::ReadDyn;
use opendal::raw::{Access, BytesRange, OpRead};

use super::Bucket;
use super::failure::Failure;
use crate::disk::Facts;
use crate::error::{Error, ErrorKind, Result};
use crate::location::Location;

/// The longest pause before another try.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// Memory taken on the word of an answer's head.
const MOST_AT_ONCE: u64 = 64 * 1024 * 1024;

/// What came.
#[derive(Clone, Debug)]
pub(crate) struct Got {
    pub(crate) bytes: Bytes,
    /// The object's whole length and version; `None` if the origin tells neither (local files).
    pub(crate) facts: Option<Facts>,
}

/// One GET in progress, over all its tries.
struct Attempt<'a> {
    location: &'a Location,
    range: Option<Range<u64>>,
    version: Option<String>,
    facts: Option<Facts>,
    buffer: BytesMut,
}

impl Bucket {
    /// Get a range of an object, or all of it, of the given version if one is given.
    ///
    /// `on_head` hears of the object's length and version as soon as the answer begins, and may refuse it.
    pub(crate) async fn get(
        &self,
        location: &Location,
        range: Option<Range<u64>>,
        version: Option<String>,
        mut on_head: impl FnMut(&Facts) -> Result<()> + Send,
    ) -> Result<Got> {
        let mut attempt = Attempt {
            location,
            range,
            version,
            facts: None,
            buffer: BytesMut::new(),
        };
        for tries in 1.. {
            // Held for one try, not over the pauses.
            let permit = self
                .permits
                .acquire()
                .await
                .expect("the semaphore is never closed");
            let failure = match self.try_get(&mut attempt, &mut on_head).await {
                Ok(Ok(())) => break,
                Ok(Err(refused)) => return Err(refused),
                Err(failure) => failure,
            };
            drop(permit);
            if let Some(error) = attempt.past_the_end() {
                return Err(error);
            }
            if !failure.passing || tries > self.config.retries {
                return Err(failure.give_up("read", location, tries));
            }
            self.counters.retry();
            tracing::debug!(%location, tries, why = failure.message, "trying again");
            tokio::time::sleep(self.pause(tries)).await;
        }
        self.counters.origin_read(attempt.buffer.len() as u64);
        tracing::trace!(bytes = attempt.buffer.len(), "came");
        attempt.finish()
    }

    /// Pauses double, up to a cap; each is drawn between half and all of it, so that many do not come back at once.
    pub(super) fn pause(&self, tries: u32) -> Duration {
        let full = self
            .config
            .retry_delay
            .saturating_mul(1 << (tries - 1).min(20))
            .min(LONGEST_PAUSE);
        full.mul_f64(rand::random_range(0.5..=1.0))
    }

    /// One try; the outer error may be tried again, the inner one is `on_head`'s refusal.
    async fn try_get(
        &self,
        attempt: &mut Attempt<'_>,
        on_head: &mut (impl FnMut(&Facts) -> Result<()> + Send),
    ) -> std::result::Result<Result<()>, Failure> {
        attempt.restart_unless_versioned();
        let timeout = self.config.timeout;
        let open = self
            .operator
            .inner()
            .read(&attempt.location.key, attempt.request());
        let (reply, mut reader) = tokio::time::timeout(timeout, open)
            .await
            .map_err(|_| Failure::stalled(timeout))??;
        if let Some(metadata) = reply.into_metadata() {
            let version = metadata.version().or(metadata.etag()).map(str::to_string);
            let facts = Facts {
                length: metadata.content_length(),
                version,
            };
            if let Err(refused) = on_head(&facts) {
                return Ok(Err(refused));
            }
            attempt.accept(facts)?;
            attempt.make_room();
        }
        loop {
            let read = tokio::time::timeout(timeout, reader.read_dyn())
                .await
                .map_err(|_| Failure::stalled(timeout))??;
            if read.is_empty() {
                break;
            }
            for part in read {
                attempt.buffer.extend_from_slice(&part);
            }
            attempt.check_not_longer()?;
        }
        attempt.check_complete().map(Ok)
    }
}

impl Attempt<'_> {
    /// Without a version what came so far can't be continued safely.
    fn restart_unless_versioned(&mut self) {
        if self.version.is_none() {
            self.buffer.clear();
        }
    }

    fn request(&self) -> OpRead {
        let have = self.buffer.len() as u64;
        let mut request = OpRead::new();
        match &self.range {
            Some(range) => {
                request = request.with_range(BytesRange::new(
                    range.start + have,
                    Some(range.end - range.start - have),
                ))
            }
            None if have > 0 => request = request.with_range(BytesRange::new(have, None)),
            None => {}
        }
        match &self.version {
            Some(version) => request.with_if_match(version),
            None => request,
        }
    }

    /// Later tries, and requests with a version, must meet the same object: some servers ignore If-Match.
    fn accept(&mut self, facts: Facts) -> std::result::Result<(), Failure> {
        let other = |found: &str, known: &str| {
            Failure::new(
                ErrorKind::Overwritten,
                false,
                format!("it was overwritten: version {found} instead of {known}"),
            )
        };
        if let (Some(known), Some(found)) = (&self.version, &facts.version)
            && known != found
        {
            return Err(other(found, known));
        }
        if let Some(known) = &self.facts
            && known.length != facts.length
        {
            return Err(other(
                &format!("of {} bytes", facts.length),
                &format!("of {}", known.length),
            ));
        }
        self.version = self.version.take().or_else(|| facts.version.clone());
        self.facts = Some(facts);
        Ok(())
    }

    /// How many bytes must come, as far as that is known.
    fn expected(&self) -> Option<u64> {
        let length = self.facts.as_ref().map(|facts| facts.length);
        match (&self.range, length) {
            (Some(range), Some(length)) => Some(range.end.min(length).saturating_sub(range.start)),
            (Some(range), None) => Some(range.end - range.start),
            (None, length) => length,
        }
    }

    /// Take the memory for all that must come at once, unless an answer claims more than anyone asks for at once.
    fn make_room(&mut self) {
        if let Some(expected) = self.expected().filter(|bytes| *bytes <= MOST_AT_ONCE) {
            let missing = (expected as usize).saturating_sub(self.buffer.len());
            self.buffer.reserve(missing);
        }
    }

    fn check_not_longer(&self) -> std::result::Result<(), Failure> {
        match self.expected() {
            Some(expected) if self.buffer.len() as u64 > expected => Err(Failure::new(
                ErrorKind::WrongLength,
                false,
                format!(
                    "{} bytes came where {expected} were asked for",
                    self.buffer.len()
                ),
            )),
            _ => Ok(()),
        }
    }

    fn check_complete(&self) -> std::result::Result<(), Failure> {
        match self.expected() {
            // Without facts (local files) the end may simply lie before the range's.
            Some(expected) if (self.buffer.len() as u64) < expected && self.facts.is_some() => {
                Err(Failure::new(
                    ErrorKind::Unavailable,
                    true,
                    format!(
                        "{} bytes came where {expected} were asked for",
                        self.buffer.len()
                    ),
                ))
            }
            _ => Ok(()),
        }
    }

    /// The range can't be had: the object is shorter.
    fn past_the_end(&self) -> Option<Error> {
        let (range, facts) = (self.range.as_ref()?, self.facts.as_ref()?);
        (range.end > facts.length).then(|| out_of_range(self.location, range, facts.length))
    }

    fn finish(self) -> Result<Got> {
        match self.past_the_end() {
            Some(error) => Err(error),
            None => Ok(Got {
                bytes: self.buffer.freeze(),
                facts: self.facts,
            }),
        }
    }
}

/// The error of a range that does not lie within its object.
pub(crate) fn out_of_range(location: &Location, range: &Range<u64>, length: u64) -> Error {
    let Range { start, end } = range;
    Error::new(
        ErrorKind::OutOfRange,
        format!("can't read bytes {start}..{end} of {location}: it has {length}"),
    )
}
