//! Avro's binary encoding, read from a slice.

use super::Damage;

/// A place in a slice.
#[derive(Clone, Debug)]
pub(crate) struct Cursor<'a> {
    whole: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(whole: &'a [u8]) -> Self {
        Self { whole, at: 0 }
    }

    /// Whether all is read.
    pub(crate) fn is_empty(&self) -> bool {
        self.at == self.whole.len()
    }

    /// Bytes not read yet.
    #[inline]
    pub(crate) fn left(&self) -> usize {
        self.whole.len() - self.at
    }

    /// Where it stands, for [`Cursor::since`].
    pub(crate) fn position(&self) -> usize {
        self.at
    }

    /// The bytes from an earlier position up to here.
    #[inline]
    pub(crate) fn since(&self, position: usize) -> &'a [u8] {
        &self.whole[position..self.at]
    }

    #[inline]
    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8], Damage> {
        match self.whole[self.at..].get(..count) {
            Some(taken) => {
                self.at += count;
                Ok(taken)
            }
            None => Err(self.ends_early(count)),
        }
    }

    #[cold]
    fn ends_early(&self, count: usize) -> Damage {
        Damage::new(format!("it ends {} bytes early", count - self.left()))
    }

    #[inline]
    pub(crate) fn byte(&mut self) -> Result<u8, Damage> {
        match self.whole.get(self.at) {
            Some(byte) => {
                self.at += 1;
                Ok(*byte)
            }
            None => Err(Damage::new("it ends early")),
        }
    }

    /// A zigzag number of up to ten bytes.
    #[inline]
    pub(crate) fn long(&mut self) -> Result<i64, Damage> {
        let first = self.byte()?;
        if first < 0x80 {
            return Ok(unzigzag(u64::from(first)));
        }
        let mut value = u64::from(first & 0x7f);
        for shift in (7..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Ok(unzigzag(value));
            }
        }
        Err(Damage::new("a number is longer than 64 bits"))
    }

    /// A number that counts bytes or things.
    #[inline]
    pub(crate) fn length(&mut self) -> Result<usize, Damage> {
        let length = self.long()?;
        usize::try_from(length).map_err(|_| Damage::new(format!("a length is {length}")))
    }

    /// Bytes after their length.
    #[inline]
    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], Damage> {
        let length = self.length()?;
        self.take(length)
    }

    /// Text after its length.
    pub(crate) fn text(&mut self) -> Result<&'a str, Damage> {
        text(self.bytes()?)
    }

    /// The count of the next block of an array or map whose items take so many bytes at the least; zero ends it.
    #[inline]
    pub(crate) fn block_count(&mut self, least_bytes: usize) -> Result<usize, Damage> {
        let count = self.long()?;
        if count < 0 {
            // The block's length in bytes, for those who skip it.
            self.length()?;
        }
        let count = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
        if count > self.left() / least_bytes.max(1) {
            return Err(Damage::new(format!(
                "an array claims {count} items in {} bytes",
                self.left()
            )));
        }
        Ok(count)
    }
}

pub(crate) fn text(bytes: &[u8]) -> Result<&str, Damage> {
    std::str::from_utf8(bytes).map_err(|_| Damage::new("a text is not UTF-8"))
}

#[inline]
fn unzigzag(value: u64) -> i64 {
    (value >> 1).cast_signed() ^ -(value & 1).cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_all_lengths_are_read() {
        for (bytes, value) in [
            (&[0u8][..], 0i64),
            (&[1], -1),
            (&[2], 1),
            (&[0x80, 0x01], 64),
            (
                &[0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
                i64::MAX,
            ),
            (
                &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
                i64::MIN,
            ),
        ] {
            assert_eq!(Cursor::new(bytes).long().unwrap(), value, "{bytes:?}");
        }
    }

    #[test]
    fn a_number_of_more_than_64_bits_is_damage() {
        let mut bytes = vec![0xff; 9];
        bytes.push(0x02);
        assert!(Cursor::new(&bytes).long().is_err());
        assert!(Cursor::new(&[0xff; 11]).long().is_err());
        assert!(Cursor::new(&[0x80]).long().is_err());
    }

    #[test]
    fn a_length_beyond_the_end_takes_nothing() {
        assert!(Cursor::new(&[0x10, 1, 2]).bytes().is_err());
        assert!(Cursor::new(&[0x01]).bytes().is_err());
        assert!(Cursor::new(&[0x20, 1, 2]).block_count(1).is_err());
    }
}
