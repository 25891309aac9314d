//! Which buckets of the transform `bucket[N]` may hold a value (Iceberg's spec, appendix B).

use std::ops::RangeInclusive;

use iceberg::spec::{Datum, PrimitiveLiteral, PrimitiveType};

/// Whether rows of this value may be in one of these buckets. `true` wherever writers are known to differ.
pub(super) fn may_be_in(datum: &Datum, buckets: u32, range: &RangeInclusive<i32>) -> bool {
    let Some(buckets) = i32::try_from(buckets).ok().filter(|n| *n > 0) else {
        return true;
    };
    match hashes(datum) {
        Some(hashes) => hashes
            .iter()
            .any(|hash| range.contains(&((hash & i32::MAX) % buckets))),
        None => true,
    }
}

/// The hashes that writers give to a value; `None` if that can't be told.
fn hashes(datum: &Datum) -> Option<Vec<i32>> {
    use PrimitiveLiteral as Is;
    use PrimitiveType as Of;
    let one = |bytes: &[u8]| Some(vec![murmur3(bytes)]);
    match (datum.data_type(), datum.literal()) {
        (Of::Int | Of::Date, Is::Int(v)) => one(&i64::from(*v).to_le_bytes()),
        (Of::Long | Of::Time | Of::Timestamp | Of::Timestamptz, Is::Long(v)) => {
            one(&v.to_le_bytes())
        }
        // As microseconds: Java rounds times before 1970 down, iceberg-rust up.
        (Of::TimestampNs | Of::TimestamptzNs, Is::Long(v)) => Some(vec![
            murmur3(&v.div_euclid(1_000).to_le_bytes()),
            murmur3(&(v / 1_000).to_le_bytes()),
        ]),
        (Of::Decimal { .. }, Is::Int128(v)) => one(shortest(&v.to_be_bytes())),
        // Old versions of Guava, and so of Iceberg's Java library, hash characters beyond U+FFFF in their own way.
        (Of::String, Is::String(v)) if v.chars().any(|c| c > '\u{ffff}') => None,
        (Of::String, Is::String(v)) => one(v.as_bytes()),
        (Of::Uuid, Is::UInt128(v)) => one(&v.to_be_bytes()),
        (Of::Fixed(_) | Of::Binary, Is::Binary(v)) => one(v),
        _ => None,
    }
}

/// A two's complement number in as few big-endian bytes as hold it.
fn shortest(bytes: &[u8]) -> &[u8] {
    let superfluous = |pair: &&[u8]| matches!((pair[0], pair[1] >> 7), (0x00, 0) | (0xff, 1));
    let skipped = bytes.windows(2).take_while(superfluous).count();
    &bytes[skipped..]
}

/// Murmur3, 32 bits, x86 variant, seed 0.
fn murmur3(bytes: &[u8]) -> i32 {
    let mix = |block: u32| {
        block
            .wrapping_mul(0xcc9e_2d51)
            .rotate_left(15)
            .wrapping_mul(0x1b87_3593)
    };
    let mut blocks = bytes.chunks_exact(4);
    let mut hash = 0_u32;
    for block in &mut blocks {
        let block = little_endian(block);
        hash = (hash ^ mix(block))
            .rotate_left(13)
            .wrapping_mul(5)
            .wrapping_add(0xe654_6b64);
    }
    hash ^= mix(little_endian(blocks.remainder()));
    hash ^= bytes.len() as u32;
    hash = (hash ^ (hash >> 16)).wrapping_mul(0x85eb_ca6b);
    hash = (hash ^ (hash >> 13)).wrapping_mul(0xc2b2_ae35);
    (hash ^ (hash >> 16)) as i32
}

/// Up to four bytes as a number.
fn little_endian(bytes: &[u8]) -> u32 {
    bytes
        .iter()
        .rev()
        .fold(0, |number, byte| number << 8 | u32::from(*byte))
}
