//! A file of the disk tier: one segment of one object, with the object's whole key, its length and
//! version, and a checksum for each block. Written once, never changed; more blocks make a new file
//! that takes its name. Whatever a crash, a full disk or a flipped bit leaves is told apart here.
//!
//! ```text
//! magic 8 | format 4 | data offset 4 | object length 8 | segment 8 | block mask 8
//! | path bytes 4 | scope bytes 4 | version bytes 4 | zero 4 | path, scope, version
//! | xxh3 of each block there, 8 each, seeded with the block's number | xxh3 of all before, 8
//! | the blocks, one after the other
//! ```
//! Integers are little-endian.

use std::fs::File;
use std::io::{self, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;

use bytes::Bytes;
use rustix::buffer::spare_capacity;
use twox_hash::XxHash3_64;

use crate::blocks::{BLOCK_BYTES, BlockMask, SEGMENT_BLOCKS, SEGMENT_BYTES, run_range};
use crate::key::ObjectKey;
use crate::segment::Segment;

const MAGIC: [u8; 8] = *b"floe\0seg";
const FORMAT: u32 = 1;
/// Bytes before the texts.
const FIXED: usize = 56;
/// One read brings the header of all but the longest keys.
const FIRST_READ: usize = 4096;
/// No honest header is larger: keys are at most some kilobytes.
const MAX_HEADER: usize = 64 * 1024;
/// A file of at most this many bytes of content is read whole at its first use.
const READ_WHOLE: u64 = 1024 * 1024;

/// What is known of an object: its whole length, and the version that the origin gave it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) length: u64,
    /// The entity tag, quoted as it came; `None` if the origin gives none.
    pub(crate) version: Option<String>,
}

/// Why a file of the cache can't be used.
#[derive(Debug)]
pub(crate) enum Unusable {
    /// It is not what was written: cut, flipped, or another format.
    Corrupt(String),
    /// The disk failed.
    Io(io::Error),
}

impl From<io::Error> for Unusable {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

fn corrupt<T>(why: impl Into<String>) -> Result<T, Unusable> {
    Err(Unusable::Corrupt(why.into()))
}

/// A parsed and verified header.
#[derive(Debug)]
pub(crate) struct Header {
    pub(crate) key: ObjectKey,
    pub(crate) facts: Facts,
    pub(crate) segment: u64,
    pub(crate) mask: BlockMask,
    checksums: Vec<u64>,
    data: DataPart,
}

/// Where a file keeps which blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DataPart {
    offset: u64,
    segment: u64,
    mask: BlockMask,
    /// Of the object, which tells how long its last block is.
    object_length: u64,
}

/// The bytes of the file that holds a segment, in the parts to be written one after the other.
pub(crate) fn encode(key: &ObjectKey, facts: &Facts, index: u64, segment: &Segment) -> Vec<Bytes> {
    let version = facts.version.as_deref().unwrap_or_default();
    let blocks = segment.mask().count() as usize;
    let offset = FIXED + key.path().len() + key.scope().len() + version.len() + 8 * blocks + 8;
    let mut header = Vec::with_capacity(offset);
    header.extend_from_slice(&MAGIC);
    header.extend_from_slice(&FORMAT.to_le_bytes());
    header.extend_from_slice(&(offset as u32).to_le_bytes());
    header.extend_from_slice(&facts.length.to_le_bytes());
    header.extend_from_slice(&index.to_le_bytes());
    header.extend_from_slice(&segment.mask().0.to_le_bytes());
    for text in [key.path(), key.scope(), version] {
        header.extend_from_slice(&(text.len() as u32).to_le_bytes());
    }
    header.extend_from_slice(&[0; 4]);
    for text in [key.path(), key.scope(), version] {
        header.extend_from_slice(text.as_bytes());
    }
    for (start, bytes) in segment.runs() {
        for (at, block) in bytes.chunks(BLOCK_BYTES as usize).enumerate() {
            header
                .extend_from_slice(&checksum(block, start / BLOCK_BYTES + at as u64).to_le_bytes());
        }
    }
    header.extend_from_slice(&XxHash3_64::oneshot(&header).to_le_bytes());
    let mut parts = vec![Bytes::from(header)];
    parts.extend(segment.runs().iter().map(|(_, bytes)| bytes.clone()));
    parts
}

/// Write the parts of a file.
pub(crate) fn write(file: &mut File, parts: &[Bytes]) -> io::Result<()> {
    parts.iter().try_for_each(|part| file.write_all(part))
}

fn checksum(block: &[u8], number: u64) -> u64 {
    XxHash3_64::oneshot_with_seed(number, block)
}

/// Read and verify a file's header, and that the file is as long as it must be.
pub(crate) fn read_header(file: &File) -> Result<Header, Unusable> {
    let length = file.metadata()?.len();
    let mut buffer = vec![0; FIRST_READ.min(length as usize)];
    file.read_exact_at(&mut buffer, 0)?;
    if buffer.len() < FIXED || buffer[..8] != MAGIC {
        return corrupt("it does not begin as a file of the cache does");
    }
    let u32_at = |at: usize, from: &[u8]| {
        u32::from_le_bytes(from[at..at + 4].try_into().expect("four bytes"))
    };
    let u64_at = |at: usize, from: &[u8]| {
        u64::from_le_bytes(from[at..at + 8].try_into().expect("eight bytes"))
    };
    let format = u32_at(8, &buffer);
    if format != FORMAT {
        return corrupt(format!("its format is {format}, not {FORMAT}"));
    }
    let offset = u32_at(12, &buffer) as usize;
    let mask = BlockMask(u64_at(32, &buffer));
    let texts = [40, 44, 48].map(|at| u32_at(at, &buffer) as usize);
    let expected = texts
        .iter()
        .try_fold(FIXED + 8 * mask.count() as usize + 8, |sum, text| {
            sum.checked_add(*text)
        });
    if offset > MAX_HEADER || offset as u64 > length || expected != Some(offset) {
        return corrupt(format!("its header of {offset} bytes does not fit"));
    }
    if offset > buffer.len() {
        buffer.resize(offset, 0);
        file.read_exact_at(&mut buffer, 0)?;
    }
    let (body, sum) = buffer[..offset].split_at(offset - 8);
    if XxHash3_64::oneshot(body) != u64_at(0, sum) {
        return corrupt("its header's checksum is wrong");
    }
    let mut at = FIXED;
    let mut text = |bytes: usize| {
        at += bytes;
        String::from_utf8(body[at - bytes..at].to_vec()).or_else(|_| corrupt("its key is no text"))
    };
    let (path, scope, version) = (text(texts[0])?, text(texts[1])?, text(texts[2])?);
    let header = Header {
        key: ObjectKey::from_parts(path, scope),
        facts: Facts {
            length: u64_at(16, body),
            version: Some(version).filter(|v| !v.is_empty()),
        },
        segment: u64_at(24, body),
        mask,
        checksums: body[at..]
            .chunks_exact(8)
            .map(|sum| u64_at(0, sum))
            .collect(),
        data: DataPart {
            offset: offset as u64,
            segment: u64_at(24, body),
            mask,
            object_length: u64_at(16, body),
        },
    };
    if !BlockMask::of(0..blocks_within(header.segment, header.facts.length)).contains(header.mask) {
        return corrupt("it claims blocks past the object's end");
    }
    let expected = header.data.offset + header.data.content_bytes();
    if length != expected {
        return corrupt(format!("it holds {length} bytes instead of {expected}"));
    }
    Ok(header)
}

/// How many blocks of a segment an object of this length has.
fn blocks_within(segment: u64, length: u64) -> u64 {
    segment.checked_mul(SEGMENT_BYTES).map_or(0, |base| {
        length
            .saturating_sub(base)
            .div_ceil(BLOCK_BYTES)
            .min(SEGMENT_BLOCKS)
    })
}

impl Header {
    pub(crate) fn data(&self) -> DataPart {
        self.data
    }

    /// Read the wanted blocks and verify each; a small file is read whole, whatever is wanted.
    pub(crate) fn read(&self, file: &File, wanted: BlockMask) -> Result<Segment, Unusable> {
        let segment = self.data.read(file, wanted)?;
        for (start, bytes) in segment.runs() {
            let first = start / BLOCK_BYTES - self.segment * SEGMENT_BLOCKS;
            let before = self.data.before(first).count() as usize;
            for (at, block) in bytes.chunks(BLOCK_BYTES as usize).enumerate() {
                let number = self.segment * SEGMENT_BLOCKS + first + at as u64;
                if checksum(block, number) != self.checksums[before + at] {
                    return corrupt(format!("the checksum of block {number} is wrong"));
                }
            }
        }
        Ok(segment)
    }
}

impl DataPart {
    /// Bytes of content behind the header.
    pub(crate) fn content_bytes(&self) -> u64 {
        self.mask.runs().iter().map(|run| self.run_bytes(run)).sum()
    }

    /// The blocks that [`read`](Self::read) gives when these are wanted.
    pub(crate) fn read_for(&self, wanted: BlockMask) -> BlockMask {
        if self.content_bytes() <= READ_WHOLE {
            self.mask
        } else {
            BlockMask(wanted.0 & self.mask.0)
        }
    }

    /// Read blocks as they stand, not verified; a small file is read whole, whatever is wanted.
    pub(crate) fn read(&self, file: &File, wanted: BlockMask) -> io::Result<Segment> {
        let mut runs = Vec::new();
        for run in self.read_for(wanted).runs() {
            let start = run_range(self.segment, &run, self.object_length).start;
            let bytes = read_at(file, self.run_bytes(&run), self.run_offset(&run))?;
            runs.push((start, Bytes::from(bytes)));
        }
        Ok(Segment::new(self.segment, runs))
    }

    /// Whether reading these blocks would wait for the disk, as far as their first and last bytes tell.
    #[cfg(target_os = "linux")]
    pub(crate) fn would_wait(&self, file: &File, wanted: BlockMask) -> bool {
        use rustix::io::{ReadWriteFlags, preadv2};
        let waits = |offset: u64| {
            let byte = &mut [0][..];
            let read = preadv2(
                file,
                &mut [io::IoSliceMut::new(byte)],
                offset,
                ReadWriteFlags::NOWAIT,
            );
            !matches!(read, Ok(1))
        };
        self.read_for(wanted).runs().iter().any(|run| {
            let offset = self.run_offset(run);
            waits(offset) || waits(offset + self.run_bytes(run) - 1)
        })
    }

    /// It can't be told elsewhere.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn would_wait(&self, _file: &File, _wanted: BlockMask) -> bool {
        true
    }

    /// The blocks held before one.
    fn before(&self, block: u64) -> BlockMask {
        BlockMask(self.mask.0 & BlockMask::of(0..block).0)
    }

    fn run_offset(&self, run: &Range<u64>) -> u64 {
        self.offset + self.before(run.start).count() * BLOCK_BYTES
    }

    fn run_bytes(&self, run: &Range<u64>) -> u64 {
        let range = run_range(self.segment, run, self.object_length);
        range.end.saturating_sub(range.start)
    }
}

/// Read exactly `length` bytes, into memory that nobody zeroed before.
fn read_at(file: &File, length: u64, offset: u64) -> io::Result<Vec<u8>> {
    let length = length as usize;
    let mut bytes = Vec::with_capacity(length);
    while bytes.len() < length {
        let at = offset + bytes.len() as u64;
        match rustix::io::pread(file, spare_capacity(&mut bytes), at) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    // The allocator may have given more room than was asked for, and the read filled it.
    bytes.truncate(length);
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::config::CacheScope;
    use crate::location::Location;

    fn sample(length: u64, blocks: BlockMask) -> (ObjectKey, Facts, Segment) {
        let location = Location::parse(&format!("s3://b/{}", "k#?%ü".repeat(200))).unwrap();
        let key = ObjectKey::new(&location, &HashMap::new(), None, CacheScope::User);
        let whole: Bytes = (0..length)
            .map(|i| (i % 251) as u8)
            .collect::<Vec<_>>()
            .into();
        let runs = blocks
            .runs()
            .into_iter()
            .map(|run| run_range(0, &run, length))
            .map(|r| (r.start, whole.slice(r.start as usize..r.end as usize)));
        (
            key,
            Facts {
                length,
                version: Some("\"v1\"".into()),
            },
            Segment::new(0, runs.collect()),
        )
    }

    fn written(parts: &[Bytes]) -> File {
        let mut file = tempfile::tempfile().unwrap();
        write(&mut file, parts).unwrap();
        file
    }

    #[test]
    fn a_file_gives_back_what_it_was_made_from() {
        for (length, blocks) in [
            (1, BlockMask(1)),
            (400_000, BlockMask(0x7f)),
            (SEGMENT_BYTES, BlockMask(u64::MAX)),
            (SEGMENT_BYTES + 5, BlockMask(1 << 63 | 0b1011)),
        ] {
            let (key, facts, segment) = sample(length, blocks);
            let file = written(&encode(&key, &facts, 0, &segment));
            let header = read_header(&file).unwrap();
            assert_eq!(
                (&header.key, &header.facts, header.mask),
                (&key, &facts, blocks)
            );
            assert_eq!(header.read(&file, blocks).unwrap(), segment);
        }
    }

    #[test]
    fn every_flipped_byte_and_every_cut_is_noticed() {
        let (key, facts, segment) = sample(100, BlockMask(1));
        let good: Vec<u8> = encode(&key, &facts, 0, &segment).concat();
        let usable = |bytes: Vec<u8>| {
            let file = written(&[bytes.into()]);
            read_header(&file).is_ok_and(|header| {
                header
                    .read(&file, header.mask)
                    .is_ok_and(|got| got == segment && header.key == key && header.facts == facts)
            })
        };
        assert!(usable(good.clone()));
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 0x40;
            assert!(!usable(bad), "byte {at} flipped");
            assert!(!usable(good[..at].to_vec()), "cut at {at}");
        }
        let mut longer = good.clone();
        longer.push(0);
        assert!(!usable(longer));
    }
}
