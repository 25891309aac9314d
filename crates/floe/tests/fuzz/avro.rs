//! Avro files whose blocks are stored as they are: what is changed in a compressed block is mostly found by its codec.

use std::io::Read;

/// Those of the files that can be unpacked, unpacked.
pub(super) fn plain(files: &[Vec<u8>]) -> Vec<Vec<u8>> {
    files.iter().filter_map(|file| unpacked(file)).collect()
}

/// Magic, a map of properties, a sync marker, then blocks: a count, bytes, the marker again.
fn unpacked(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut rest = bytes.get(4..)?;
    let mut properties: Vec<(&[u8], &[u8])> = Vec::new();
    loop {
        let count = number(&mut rest)?;
        if count < 0 {
            number(&mut rest)?;
        }
        for _ in 0..count.unsigned_abs() {
            properties.push((blob(&mut rest)?, blob(&mut rest)?));
        }
        if count == 0 {
            break;
        }
    }
    let codec = properties.iter().find(|(name, _)| *name == b"avro.codec");
    let deflated = match codec.map(|(_, codec)| *codec) {
        None | Some(b"null") => false,
        Some(b"deflate") => true,
        Some(_) => return None,
    };
    properties.retain(|(name, _)| *name != b"avro.codec");
    let mut plain = bytes[..4].to_vec();
    write_number(&mut plain, properties.len());
    for (name, value) in properties {
        write_blob(&mut plain, name);
        write_blob(&mut plain, value);
    }
    write_number(&mut plain, 0);
    let sync = take(&mut rest, 16)?;
    plain.extend(sync);
    while !rest.is_empty() {
        write_number(&mut plain, usize::try_from(number(&mut rest)?).ok()?);
        let block = blob(&mut rest)?;
        if deflated {
            let mut unpacked = Vec::new();
            let mut reader = flate2::read::DeflateDecoder::new(block);
            reader.read_to_end(&mut unpacked).ok()?;
            write_blob(&mut plain, &unpacked);
        } else {
            write_blob(&mut plain, block);
        }
        plain.extend(take(&mut rest, 16)?);
    }
    Some(plain)
}

fn take<'a>(rest: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, left) = rest.split_at_checked(count)?;
    *rest = left;
    Some(taken)
}

fn number(rest: &mut &[u8]) -> Option<i64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let byte = take(rest, 1)?[0];
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some((value >> 1).cast_signed() ^ -(value & 1).cast_signed());
        }
    }
    None
}

fn blob<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(number(rest)?).ok()?;
    take(rest, length)
}

fn write_number(bytes: &mut Vec<u8>, value: usize) {
    let mut value = value * 2;
    while value >= 0x80 {
        bytes.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

fn write_blob(bytes: &mut Vec<u8>, blob: &[u8]) {
    write_number(bytes, blob.len());
    bytes.extend_from_slice(blob);
}
