//! How the blocks of an Avro file are compressed.

use std::io::Read;

use super::Damage;

/// A codec of Avro's specification that Iceberg's writers use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Codec {
    Null,
    Deflate,
    Snappy,
    Zstandard,
}

/// Bytes of the checksum after a snappy block.
const CHECKSUM_BYTES: usize = 4;

/// Bytes that a buffer grows by at the least.
const PIECE: usize = 64 << 10;

impl Codec {
    /// The codec of this name in a header; none is `null`.
    pub(super) fn named(name: Option<&[u8]>) -> Result<Self, Damage> {
        match name {
            None | Some(b"null") => Ok(Self::Null),
            Some(b"deflate") => Ok(Self::Deflate),
            Some(b"snappy") => Ok(Self::Snappy),
            Some(b"zstandard") => Ok(Self::Zstandard),
            Some(other) => Err(Damage::unsupported(format!(
                "floe can't read the codec '{}'",
                String::from_utf8_lossy(other).escape_default()
            ))
            .of("avro.codec")),
        }
    }

    /// The bytes of a block, which may be `most` at the most. The buffer is used again for the next one.
    pub(super) fn decode<'a>(
        self,
        stored: &'a [u8],
        buffer: &'a mut Vec<u8>,
        most: usize,
    ) -> Result<&'a [u8], Damage> {
        buffer.clear();
        match self {
            Self::Null if stored.len() > most => return Err(too_long(most)),
            Self::Null => return Ok(stored),
            Self::Deflate => inflate(stored, buffer, most)?,
            Self::Snappy => unsnap(stored, buffer, most)?,
            Self::Zstandard => unzstd(stored, buffer, most)?,
        }
        Ok(buffer)
    }
}

fn too_long(most: usize) -> Damage {
    Damage::new(format!("a block decompresses to more than {most} bytes"))
}

fn inflate(stored: &[u8], buffer: &mut Vec<u8>, most: usize) -> Result<(), Damage> {
    let mut inflater = flate2::Decompress::new(false);
    buffer.reserve(stored.len().saturating_mul(4).clamp(PIECE, most.max(PIECE)));
    loop {
        let consumed = usize::try_from(inflater.total_in()).unwrap_or(usize::MAX);
        let rest = stored.get(consumed..).unwrap_or_default();
        let before = (inflater.total_in(), buffer.len());
        let status = inflater
            .decompress_vec(rest, buffer, flate2::FlushDecompress::None)
            .map_err(|source| Damage::new(format!("a deflated block is damaged: {source}")))?;
        if buffer.len() > most {
            return Err(too_long(most));
        }
        if status == flate2::Status::StreamEnd {
            return Ok(());
        }
        if buffer.len() < buffer.capacity() && before == (inflater.total_in(), buffer.len()) {
            return Err(Damage::new("a deflated block ends early"));
        }
        buffer.reserve(buffer.len().clamp(PIECE, most.max(PIECE)));
    }
}

fn unsnap(stored: &[u8], buffer: &mut Vec<u8>, most: usize) -> Result<(), Damage> {
    let damaged = |source| Damage::new(format!("a snappy block is damaged: {source}"));
    let Some((stored, checksum)) = stored.split_last_chunk::<CHECKSUM_BYTES>() else {
        return Err(Damage::new("a snappy block is shorter than its checksum"));
    };
    let length = snap::raw::decompress_len(stored).map_err(damaged)?;
    if length > most {
        return Err(too_long(most));
    }
    buffer.resize(length, 0);
    snap::raw::Decoder::new()
        .decompress(stored, buffer)
        .map_err(damaged)?;
    let mut crc = flate2::Crc::new();
    crc.update(buffer);
    match crc.sum() == u32::from_be_bytes(*checksum) {
        true => Ok(()),
        false => Err(Damage::new("a snappy block does not match its checksum")),
    }
}

fn unzstd(stored: &[u8], buffer: &mut Vec<u8>, most: usize) -> Result<(), Damage> {
    let damaged = |source| Damage::new(format!("a zstandard block is damaged: {source}"));
    let reader = zstd::stream::read::Decoder::with_buffer(stored).map_err(damaged)?;
    let limit = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
    reader.take(limit).read_to_end(buffer).map_err(damaged)?;
    match buffer.len() > most {
        true => Err(too_long(most)),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn deflated(bytes: &[u8]) -> Vec<u8> {
        let mut writer =
            flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::best());
        writer.write_all(bytes).unwrap();
        writer.finish().unwrap()
    }

    fn snapped(bytes: &[u8]) -> Vec<u8> {
        let mut stored = snap::raw::Encoder::new().compress_vec(bytes).unwrap();
        let mut crc = flate2::Crc::new();
        crc.update(bytes);
        stored.extend(crc.sum().to_be_bytes());
        stored
    }

    fn forms(bytes: &[u8]) -> [(Codec, Vec<u8>); 4] {
        [
            (Codec::Null, bytes.to_vec()),
            (Codec::Deflate, deflated(bytes)),
            (Codec::Snappy, snapped(bytes)),
            (
                Codec::Zstandard,
                zstd::stream::encode_all(bytes, 3).unwrap(),
            ),
        ]
    }

    #[test]
    fn every_codec_gives_back_what_was_stored() {
        let long: Vec<u8> = (0..200_000u32)
            .flat_map(|i| (i % 1000).to_le_bytes())
            .collect();
        for bytes in [&b""[..], b"floe", &long] {
            for (codec, stored) in forms(bytes) {
                let mut buffer = vec![7; 3];
                let decoded = codec.decode(&stored, &mut buffer, bytes.len()).unwrap();
                assert_eq!(decoded, bytes, "{codec:?}");
            }
        }
    }

    #[test]
    fn a_block_beyond_its_bound_is_refused() {
        let long = vec![0; 3 << 20];
        for (codec, stored) in forms(&long) {
            let mut buffer = Vec::new();
            assert!(
                codec.decode(&stored, &mut buffer, 1 << 20).is_err(),
                "{codec:?}"
            );
            assert!(buffer.capacity() < 5 << 20, "{codec:?}");
        }
    }

    #[test]
    fn a_truncated_block_is_damage() {
        let bytes: Vec<u8> = (0..5000u32).flat_map(u32::to_le_bytes).collect();
        for (codec, stored) in forms(&bytes).into_iter().skip(1) {
            for cut in (0..stored.len()).step_by(97) {
                let mut buffer = Vec::new();
                assert!(
                    codec.decode(&stored[..cut], &mut buffer, 1 << 20).is_err(),
                    "{codec:?} {cut}"
                );
            }
        }
    }

    #[test]
    fn a_wrong_checksum_is_damage() {
        let mut stored = snapped(b"some rows");
        *stored.last_mut().unwrap() ^= 1;
        assert!(Codec::Snappy.decode(&stored, &mut Vec::new(), 100).is_err());
    }
}
