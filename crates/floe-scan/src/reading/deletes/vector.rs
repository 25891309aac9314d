//! Deletion vectors: a blob `deletion-vector-v1` of a Puffin file, which holds the deleted positions of one data file.
//! Length (big-endian), magic, 64-bit roaring bitmap (portable, little-endian), CRC-32 of magic and bitmap (big-endian).

use flate2::Crc;
use roaring::RoaringTreemap;

use super::super::open::Shared;
use crate::error::{Error, ErrorKind, Result};
use crate::task::DeleteFile;

const MAGIC: [u8; 4] = [0xD1, 0xD3, 0x39, 0x64];

pub(super) async fn load(
    shared: &Shared,
    delete: &DeleteFile,
    offset: u64,
    length: u64,
) -> Result<RoaringTreemap> {
    let corrupt = |what: String| {
        Error::new(
            ErrorKind::Corrupt,
            format!(
                "the deletion vector at {offset} of {} is damaged: {what}",
                delete.path
            ),
        )
    };
    let end = offset
        .checked_add(length)
        .filter(|end| *end <= delete.bytes)
        .ok_or_else(|| corrupt("it reaches beyond the file".to_owned()))?;
    let file = shared.source.open(&delete.path, delete.bytes)?;
    let range = offset..end;
    let bytes = file.read_ranges(std::slice::from_ref(&range)).await?;
    let blob = bytes.first().map(AsRef::as_ref).unwrap_or_default();
    let positions = parse(blob).map_err(corrupt)?;
    match positions.len() == delete.rows {
        true => Ok(positions),
        false => Err(corrupt(format!(
            "it holds {} positions, but its manifest says {}",
            positions.len(),
            delete.rows
        ))),
    }
}

/// The positions of a blob, or what is wrong with it.
pub(super) fn parse(blob: &[u8]) -> std::result::Result<RoaringTreemap, String> {
    let word = |at: usize| -> Option<[u8; 4]> { blob.get(at..at + 4)?.try_into().ok() };
    let (Some(length), Some(magic)) = (word(0), word(4)) else {
        return Err("it is too short".to_owned());
    };
    let length = u32::from_be_bytes(length) as usize;
    if Some(length) != blob.len().checked_sub(8) || length < MAGIC.len() {
        return Err(format!(
            "it says that it takes {length} bytes and 8 around them, but there are {}",
            blob.len()
        ));
    }
    if magic != MAGIC {
        return Err(format!(
            "it begins with {magic:02x?} instead of {MAGIC:02x?}"
        ));
    }
    let body = &blob[4..4 + length];
    let mut crc = Crc::new();
    crc.update(body);
    if word(4 + length).map(u32::from_be_bytes) != Some(crc.sum()) {
        return Err("its checksum is wrong".to_owned());
    }
    let mut bitmap = &body[MAGIC.len()..];
    let positions = RoaringTreemap::deserialize_from(&mut bitmap)
        .map_err(|source| format!("its bitmap can't be read: {source}"))?;
    match bitmap.is_empty() {
        true => Ok(positions),
        false => Err(format!("{} bytes are left behind its bitmap", bitmap.len())),
    }
}

/// A blob of these positions.
#[cfg(test)]
pub(in super::super) fn blob(positions: &RoaringTreemap) -> Vec<u8> {
    let mut body = MAGIC.to_vec();
    positions.serialize_into(&mut body).unwrap();
    let mut crc = Crc::new();
    crc.update(&body);
    let mut blob = u32::try_from(body.len()).unwrap().to_be_bytes().to_vec();
    blob.extend(&body);
    blob.extend(crc.sum().to_be_bytes());
    blob
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vector_survives_the_round_trip() {
        let positions = RoaringTreemap::from_iter([0, 1, 70_000, 5 << 32, u64::MAX >> 1]);
        assert_eq!(parse(&blob(&positions)), Ok(positions));
    }

    #[test]
    fn a_byte_cut_off_or_flipped_is_noticed() {
        let blob = blob(&RoaringTreemap::from_iter((0..3000).step_by(7)));
        for cut in 0..blob.len() {
            assert!(parse(&blob[..cut]).is_err(), "cut at {cut}");
        }
        for flipped in 0..blob.len() {
            let mut blob = blob.clone();
            blob[flipped] ^= 0x10;
            assert!(parse(&blob).is_err(), "flipped at {flipped}");
        }
    }
}
