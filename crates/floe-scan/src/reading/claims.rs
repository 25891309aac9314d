//! What Parquet's Thrift claims of itself, checked before its decoder believes it: the decoder makes room for as many
//! elements as a list says that it has, and for as many bytes as a page says that it unpacks to, before it looks
//! whether they are there. Hostile bytes must not cost more memory than their length allows, nor end the process.
//!
//! The decoder goes by the ids of fields and trusts that they are of their types, so these are checked too: what is read here as
//! one thing must not be read there as another. Only the compact protocol as footers, indexes and page headers use it: no maps, no sets.

/// Levels of structs and lists, and of groups in a schema. Deeper ones would exhaust the stack of those who walk them.
const MOST_DEPTH: usize = 128;
/// Bytes that a page may unpack to whatever its length.
const PAGE_ALLOWANCE: u64 = 16 << 20;
/// Bytes beyond the allowance for each of its own: more than deflate, snappy and LZ4 can reach.
const PAGE_RATIO: u64 = 1100;

/// Types of the compact protocol.
const STOP: u8 = 0;
const TRUE: u8 = 1;
const FALSE: u8 = 2;
const BYTE: u8 = 3;
const I16: u8 = 4;
const I64: u8 = 6;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

/// Fields of a footer, of an element of its schema, and of a page's header (parquet.thrift).
const SCHEMA: i64 = 2;
const NUM_CHILDREN: i64 = 5;
const UNCOMPRESSED_SIZE: i64 = 2;
const COMPRESSED_SIZE: i64 = 3;

/// The type that a field should have.
#[derive(Clone, Copy)]
enum Kind {
    Bool,
    Byte,
    /// Of 16, 32 or 64 bits: all are written alike.
    Number,
    Double,
    Binary,
    Struct(&'static [Field]),
    List(&'static Kind),
}

/// A field by its id; those that are not named are skipped here as there.
type Field = (i64, Kind);

use Kind::{Binary, Bool, Byte, Double, List, Number, Struct};

const EMPTY: Kind = Struct(&[]);
const KEY_VALUE: Kind = Struct(&[(1, Binary), (2, Binary)]);

const FOOTER: &[Field] = &[
    (1, Number),
    (3, Number),
    (4, List(&ROW_GROUP)),
    (5, List(&KEY_VALUE)),
    (6, Binary),
    // The order of columns.
    (7, List(&Struct(&[(1, EMPTY)]))),
];
const ELEMENT: &[Field] = &[
    (1, Number),
    (2, Number),
    (3, Number),
    (4, Binary),
    (NUM_CHILDREN, Number),
    (6, Number),
    (7, Number),
    (8, Number),
    (9, Number),
    (10, LOGICAL),
];
const LOGICAL: Kind = Struct(&[
    (1, EMPTY),
    (2, EMPTY),
    (3, EMPTY),
    (4, EMPTY),
    // Decimals, dates, times, timestamps.
    (5, Struct(&[(1, Number), (2, Number)])),
    (6, EMPTY),
    (7, Struct(&[(1, Bool), (2, TIME_UNIT)])),
    (8, Struct(&[(1, Bool), (2, TIME_UNIT)])),
    // Integers.
    (10, Struct(&[(1, Byte), (2, Bool)])),
    (11, EMPTY),
    (12, EMPTY),
    (13, EMPTY),
    (14, EMPTY),
    (15, EMPTY),
    // Variants, geometries, geographies.
    (16, Struct(&[(1, Byte)])),
    (17, Struct(&[(1, Binary)])),
    (18, Struct(&[(1, Binary), (2, Number)])),
]);
const TIME_UNIT: Kind = Struct(&[(1, EMPTY), (2, EMPTY), (3, EMPTY)]);
const ROW_GROUP: Kind = Struct(&[
    (1, List(&COLUMN_CHUNK)),
    (2, Number),
    (3, Number),
    // The columns that it is sorted by.
    (4, List(&Struct(&[(1, Number), (2, Bool), (3, Bool)]))),
    (5, Number),
    (6, Number),
    (7, Number),
]);
const COLUMN_CHUNK: Kind = Struct(&[
    (1, Binary),
    (2, Number),
    (3, COLUMN),
    (4, Number),
    (5, Number),
    (6, Number),
    (7, Number),
]);
const COLUMN: Kind = Struct(&[
    (1, Number),
    (2, List(&Number)),
    (3, List(&Binary)),
    (4, Number),
    (5, Number),
    (6, Number),
    (7, Number),
    (8, List(&KEY_VALUE)),
    (9, Number),
    (10, Number),
    (11, Number),
    (12, STATISTICS),
    // How many pages there are of each encoding.
    (13, List(&Struct(&[(1, Number), (2, Number), (3, Number)]))),
    (14, Number),
    (15, Number),
    // Histograms of levels.
    (
        16,
        Struct(&[(1, Number), (2, List(&Number)), (3, List(&Number))]),
    ),
    // Of geometries.
    (17, Struct(&[(1, BOX), (2, List(&Number))])),
]);
const BOX: Kind = Struct(&[
    (1, Double),
    (2, Double),
    (3, Double),
    (4, Double),
    (5, Double),
    (6, Double),
    (7, Double),
    (8, Double),
]);
const STATISTICS: Kind = Struct(&[
    (1, Binary),
    (2, Binary),
    (3, Number),
    (4, Number),
    (5, Binary),
    (6, Binary),
    (7, Bool),
    (8, Bool),
]);
const PAGE: &[Field] = &[
    (1, Number),
    (UNCOMPRESSED_SIZE, Number),
    (COMPRESSED_SIZE, Number),
    (4, Number),
    // A data page, an index page, a dictionary, a data page of version 2.
    (
        5,
        Struct(&[
            (1, Number),
            (2, Number),
            (3, Number),
            (4, Number),
            (5, STATISTICS),
        ]),
    ),
    (6, EMPTY),
    (7, Struct(&[(1, Number), (2, Number), (3, Bool)])),
    (
        8,
        Struct(&[
            (1, Number),
            (2, Number),
            (3, Number),
            (4, Number),
            (5, Number),
            (6, Number),
            (7, Bool),
            (8, STATISTICS),
        ]),
    ),
];

const COLUMN_INDEX: &[Field] = &[
    // Whether pages are all NULL, their bounds, the bounds' order, their numbers of NULLs, histograms of levels.
    (1, List(&Bool)),
    (2, List(&Binary)),
    (3, List(&Binary)),
    (4, Number),
    (5, List(&Number)),
    (6, List(&Number)),
    (7, List(&Number)),
];
const OFFSET_INDEX: &[Field] = &[
    (1, List(&Struct(&[(1, Number), (2, Number), (3, Number)]))),
    (2, List(&Number)),
];

const ANOTHER_TYPE: &str = "a field of it is of another type than it should be";

type Result<T> = std::result::Result<T, &'static str>;

/// Whether a footer claims no more than its bytes can hold.
pub(super) fn footer(bytes: &[u8]) -> Result<()> {
    let mut thrift = Thrift { rest: bytes };
    thrift.fields(&mut |thrift, id, wire| match (id, wire) {
        (SCHEMA, LIST) => schema(thrift),
        (SCHEMA, _) => Err(ANOTHER_TYPE),
        _ => thrift.field(FOOTER, id, wire),
    })
}

/// Whether the index of a column's pages claims no more than its bytes can hold.
pub(super) fn column_index(bytes: &[u8]) -> Result<()> {
    let mut thrift = Thrift { rest: bytes };
    thrift.fields(&mut |thrift, id, wire| thrift.field(COLUMN_INDEX, id, wire))
}

/// The same of the index that tells where they lie.
pub(super) fn offset_index(bytes: &[u8]) -> Result<()> {
    let mut thrift = Thrift { rest: bytes };
    thrift.fields(&mut |thrift, id, wire| thrift.field(OFFSET_INDEX, id, wire))
}

/// Whether the page whose header begins here claims a size that it can unpack to.
pub(super) fn page(bytes: &[u8]) -> Result<()> {
    let (mut stored, mut unpacked) = (u64::MAX, 0);
    let mut thrift = Thrift { rest: bytes };
    thrift.fields(&mut |thrift, id, wire| {
        match (id, wire) {
            // Of fields that come twice, the worse counts.
            (COMPRESSED_SIZE, I16..=I64) => stored = stored.min(thrift.size()?),
            (UNCOMPRESSED_SIZE, I16..=I64) => unpacked = unpacked.max(thrift.size()?),
            _ => thrift.field(PAGE, id, wire)?,
        }
        Ok(())
    })?;
    match may_unpack_to(stored, unpacked) {
        true => Ok(()),
        false => Err("a page claims to unpack to more than it can"),
    }
}

/// Whether so many bytes are believed to unpack to so many.
pub(super) fn may_unpack_to(stored: u64, unpacked: u64) -> bool {
    unpacked
        <= stored
            .saturating_mul(PAGE_RATIO)
            .saturating_add(PAGE_ALLOWANCE)
}

/// A schema is a list of elements, depth first; each tells how many children follow it.
fn schema(thrift: &mut Thrift<'_>) -> Result<()> {
    let (wire, count) = thrift.list()?;
    if wire != STRUCT && count > 0 {
        return Err(ANOTHER_TYPE);
    }
    // Of each group around the next element, the children that are still to come.
    let mut open: Vec<u64> = Vec::new();
    let mut awaited = 0u64;
    for after in (0..count).rev() {
        let mut children = 0;
        thrift.fields(&mut |thrift, id, wire| {
            match (id, wire) {
                (NUM_CHILDREN, I16..=I64) => children = thrift.size()?,
                _ => thrift.field(ELEMENT, id, wire)?,
            }
            Ok(())
        })?;
        if let Some(siblings) = open.last_mut() {
            *siblings -= 1;
            awaited -= 1;
        }
        awaited = awaited.saturating_add(children);
        if awaited > after {
            return Err("a group of its schema claims more children than there are");
        }
        open.push(children);
        while open.last() == Some(&0) {
            open.pop();
        }
        if open.len() > MOST_DEPTH {
            return Err("its schema is too deep");
        }
    }
    Ok(())
}

/// Reads the compact protocol without keeping anything.
struct Thrift<'a> {
    rest: &'a [u8],
}

impl Thrift<'_> {
    fn byte(&mut self) -> Result<u8> {
        let (first, rest) = self.rest.split_first().ok_or("it ends early")?;
        self.rest = rest;
        Ok(*first)
    }

    fn pass(&mut self, bytes: u64) -> Result<()> {
        let bytes = usize::try_from(bytes).map_err(|_| "a length reaches beyond it")?;
        self.rest = self.rest.get(bytes..).ok_or("a length reaches beyond it")?;
        Ok(())
    }

    fn number(&mut self) -> Result<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err("a number is longer than 64 bits")
    }

    fn signed(&mut self) -> Result<i64> {
        let value = self.number()?;
        Ok((value >> 1).cast_signed() ^ -(value & 1).cast_signed())
    }

    /// A number of bytes or things; negative ones are refused by the decoder, and claim nothing.
    fn size(&mut self) -> Result<u64> {
        Ok(u64::try_from(self.signed()?).unwrap_or(0))
    }

    /// The type and number of a list's elements, each of which takes a byte at the least.
    fn list(&mut self) -> Result<(u8, u64)> {
        let header = self.byte()?;
        let count = match header >> 4 {
            15 => self.number()?,
            few => u64::from(few),
        };
        match count <= self.rest.len() as u64 {
            true => Ok((header & 0x0f, count)),
            false => Err("a list claims more elements than there are bytes"),
        }
    }

    /// Hands each field of a struct (its id and type) to `read`, which must get past its value.
    fn fields(&mut self, read: &mut impl FnMut(&mut Self, i64, u8) -> Result<()>) -> Result<()> {
        let mut id = 0i64;
        loop {
            let header = self.byte()?;
            let kind = header & 0x0f;
            if kind == STOP {
                return Ok(());
            }
            id = match header >> 4 {
                0 => self.signed()?,
                step => id.wrapping_add(i64::from(step)),
            };
            read(self, id, kind)?;
        }
    }

    /// Gets past the value of a field of a struct that may have these.
    fn field(&mut self, known: &'static [Field], id: i64, wire: u8) -> Result<()> {
        match known.iter().find(|(own, _)| *own == id) {
            Some((_, kind)) => self.known(*kind, wire),
            None => self.skip(wire, MOST_DEPTH),
        }
    }

    /// Gets past a value that should be of this type.
    fn known(&mut self, kind: Kind, wire: u8) -> Result<()> {
        match (kind, wire) {
            (Bool, TRUE | FALSE)
            | (Byte, BYTE)
            | (Number, I16..=I64)
            | (Double, DOUBLE)
            | (Binary, BINARY) => self.skip(wire, 1),
            (Struct(known), STRUCT) => {
                self.fields(&mut |thrift, id, wire| thrift.field(known, id, wire))
            }
            (List(element), LIST) => {
                let (wire, count) = self.list()?;
                match (element, wire) {
                    // In a list, each takes a byte.
                    (Bool, TRUE | FALSE) => self.pass(count),
                    _ => (0..count).try_for_each(|_| self.known(*element, wire)),
                }
            }
            _ => Err(ANOTHER_TYPE),
        }
    }

    /// Gets past a value of any type.
    fn skip(&mut self, kind: u8, depth: usize) -> Result<()> {
        let Some(depth) = depth.checked_sub(1) else {
            return Err("it is too deep");
        };
        match kind {
            TRUE | FALSE => Ok(()),
            BYTE => self.pass(1),
            I16..=I64 => self.number().map(drop),
            DOUBLE => self.pass(8),
            BINARY => {
                let length = self.number()?;
                self.pass(length)
            }
            LIST => match self.list()? {
                (_, 0) => Ok(()),
                (TRUE | FALSE, _) => Err("it holds a list of booleans"),
                (kind, count) => (0..count).try_for_each(|_| self.skip(kind, depth)),
            },
            STRUCT => self.fields(&mut |thrift, _, kind| thrift.skip(kind, depth)),
            _ => Err("it holds a type that no footer and no page has"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_hold_as_much_as_they_claim() {
        // Two pages: neither is NULL, bounds of one byte each, ascending, no NULL.
        let column = [
            0x19, 0x22, 2, 2, 0x19, 0x28, 1, 7, 1, 8, 0x19, 0x28, 1, 9, 1, 10, 0x15, 2, 0x19, 0x26,
            0, 0, 0,
        ];
        assert!(column_index(&column).is_ok());
        let offset = [0x19, 0x1c, 0x16, 8, 0x15, 20, 0x16, 0, 0, 0];
        assert!(offset_index(&offset).is_ok());
        // Lists of a billion.
        for element in [0x02, 0x08, 0x06, 0x0c] {
            let claim = [0x19, 0xf0 | element, 0xff, 0xff, 0xff, 0xff, 0x03, 0];
            assert!(column_index(&claim).is_err(), "{element}");
            assert!(offset_index(&claim).is_err(), "{element}");
        }
        for cut in 0..column.len() {
            assert!(column_index(&column[..cut]).is_err());
        }
    }

    /// A footer with a schema of these elements, by their number of children, and this behind it.
    fn with_schema(children: &[u8], behind: &[u8]) -> Vec<u8> {
        // Field 2, a list of structs, its length in two bytes of their own.
        let count = u8::try_from(children.len()).unwrap();
        let mut bytes = vec![0x29, 0xfc, count | 0x80, count >> 7];
        for children in children {
            // Field 5, an i32.
            bytes.extend([0x55, children * 2, STOP]);
        }
        bytes.extend(behind);
        bytes.push(STOP);
        bytes
    }

    #[test]
    fn a_list_claims_no_more_than_there_are_bytes() {
        // Field 4, the row groups, as a list of structs.
        let of = |count: &[u8]| [&[0x49, 0xfc], count, &[STOP; 4]].concat();
        assert_eq!(footer(&of(&[3])), Ok(()));
        for count in [&[5][..], &[0xff, 0x7f], &[0xff, 0xff, 0xff, 0xff, 0x07]] {
            assert!(footer(&of(count)).unwrap_err().contains("list"));
        }
    }

    #[test]
    fn a_field_of_another_type_is_refused() {
        // The schema as a number, a row group's rows as text, an integer's width in more than a byte.
        for hostile in [
            &[0x25, 0x02, STOP][..],
            &[0x49, 0x1c, 0x38, 1, b'x', STOP, STOP],
            &[0x29, 0x1c, 0xac, 0xac, 0x15, 16, STOP, STOP, STOP, STOP],
        ] {
            assert_eq!(footer(hostile), Err(ANOTHER_TYPE), "{hostile:?}");
        }
    }

    #[test]
    fn a_schema_has_the_children_that_it_claims() {
        assert_eq!(footer(&with_schema(&[2, 1, 0, 0], &[])), Ok(()));
        for hostile in [&[4, 1, 0, 0][..], &[2, 2, 0, 0], &[63, 63, 0, 0]] {
            assert!(footer(&with_schema(hostile, &[])).is_err(), "{hostile:?}");
        }
        let deep = |levels: usize| [vec![1; levels], vec![0]].concat();
        assert_eq!(footer(&with_schema(&deep(MOST_DEPTH - 1), &[])), Ok(()));
        assert!(footer(&with_schema(&deep(MOST_DEPTH + 1), &[])).is_err());
    }

    #[test]
    fn what_is_nested_too_deep_is_refused() {
        // Field 8, a struct whose field 1 is a struct, and so on.
        let nested =
            |levels: usize| [vec![0x6c], vec![0x1c; levels], vec![STOP; levels + 1]].concat();
        assert_eq!(footer(&with_schema(&[0], &nested(20))), Ok(()));
        assert!(footer(&with_schema(&[0], &nested(100_000))).is_err());
    }

    #[test]
    fn a_page_unpacks_to_what_it_can() {
        // Fields 1 to 3: type, unpacked, stored.
        let of = |unpacked: &[u8], stored: u8| {
            [&[0x15, 0, 0x15], unpacked, &[0x15, stored * 2, STOP]].concat()
        };
        assert_eq!(page(&of(&[0x80, 0x80, 0x40], 10)), Ok(()));
        assert!(page(&of(&[0xfe, 0xff, 0xff, 0xff, 0x0f], 10)).is_err());
        assert!(page(&of(&[0x80], 10)).is_err());
    }
}
