//! Bytes made wrong: flipped, set, cut, spliced, with lengths put in that claim too much.

use rand::Rng;
use rand::rngs::StdRng;

/// Bytes that a round does not grow beyond.
const LONGEST: usize = 64 << 10;

/// The bytes, changed in one to four places; parts of others may be put in.
pub(super) fn mutate(random: &mut StdRng, bytes: &[u8], others: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..random.random_range(1..=4) {
        match random.random_range(0..6) {
            0 => flip(random, &mut bytes),
            1 => set(random, &mut bytes),
            2 => cut(random, &mut bytes),
            3 => splice(random, &mut bytes, others),
            4 => insert_length(random, &mut bytes),
            _ => overwrite_length(random, &mut bytes),
        }
    }
    bytes.truncate(LONGEST);
    bytes
}

fn place(random: &mut StdRng, bytes: &[u8]) -> usize {
    random.random_range(0..bytes.len().max(1))
}

fn flip(random: &mut StdRng, bytes: &mut [u8]) {
    let at = place(random, bytes);
    let bit = random.random_range(0..8);
    if let Some(byte) = bytes.get_mut(at) {
        *byte ^= 1 << bit;
    }
}

fn set(random: &mut StdRng, bytes: &mut [u8]) {
    let at = place(random, bytes);
    let value = match random.random_range(0..6) {
        0 => 0,
        1 => 1,
        2 => 0x7f,
        3 => 0x80,
        4 => 0xff,
        _ => random.random(),
    };
    if let Some(byte) = bytes.get_mut(at) {
        *byte = value;
    }
}

fn cut(random: &mut StdRng, bytes: &mut Vec<u8>) {
    let from = place(random, bytes);
    let left = bytes.len() - from;
    let count = match random.random_range(0..4) {
        0 => left,
        _ => random.random_range(0..=left.min(32)),
    };
    bytes.drain(from..from + count);
}

/// A part of this or another input, put in or written over what is there.
fn splice(random: &mut StdRng, bytes: &mut Vec<u8>, others: &[Vec<u8>]) {
    let other = match random.random_range(0..2) {
        0 => bytes.clone(),
        _ => others[random.random_range(0..others.len())].clone(),
    };
    let from = place(random, &other);
    let count = random.random_range(0..=(other.len() - from).min(256));
    let part = other[from..from + count].to_vec();
    let at = place(random, bytes);
    match random.random() {
        true => put(bytes, at, 0, &part),
        false => put(bytes, at, count, &part),
    }
}

fn insert_length(random: &mut StdRng, bytes: &mut Vec<u8>) {
    let (at, length) = (place(random, bytes), length(random, bytes.len()));
    put(bytes, at, 0, &length);
}

fn overwrite_length(random: &mut StdRng, bytes: &mut Vec<u8>) {
    let (at, length) = (place(random, bytes), length(random, bytes.len()));
    // A variable length over a short one, or a fixed one over as many bytes.
    let over = match random.random() {
        true => 1,
        false => length.len(),
    };
    put(bytes, at, over, &length);
}

fn put(bytes: &mut Vec<u8>, at: usize, over: usize, part: &[u8]) {
    let at = at.min(bytes.len());
    let end = (at + over).min(bytes.len());
    bytes.splice(at..end, part.iter().copied());
}

/// A number that counts too much, as Avro, Thrift, Parquet or Puffin write one.
fn length(random: &mut StdRng, bytes: usize) -> Vec<u8> {
    let value: u64 = match random.random_range(0..9) {
        0 => u64::MAX,
        1 => i64::MAX as u64,
        2 => i64::MIN as u64,
        3 => u64::from(u32::MAX),
        4 => i32::MAX as u64,
        5 => bytes as u64,
        6 => random.random_range(0..1 << 10),
        7 => random.random_range(0..1 << 24),
        _ => random.random_range(0..1 << 48),
    };
    match random.random_range(0..6) {
        0 => value.to_le_bytes().to_vec(),
        1 => (value as u32).to_le_bytes().to_vec(),
        2 => (value as u32).to_be_bytes().to_vec(),
        3 => (value as u16).to_le_bytes().to_vec(),
        4 => variable(value),
        // Zigzag: even numbers are positive ones.
        _ => variable(value.wrapping_mul(2)),
    }
}

fn variable(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}
