//! Avro object container files: header, blocks, sync markers. Values are read where they lie; no tree of them is built.
//!
//! Files may be damaged or hostile: every length is checked against the bytes that are there, and a block that
//! decompresses beyond any proportion is refused.

mod codec;
mod cursor;
mod damage;
mod schema;

use std::collections::HashMap;

use codec::Codec;
pub(super) use cursor::Cursor;
pub(super) use damage::Damage;
pub(super) use schema::{Field, Kind, Logical, Node, boolean, int};

const MAGIC: &[u8; 4] = b"Obj\x01";
const SYNC_BYTES: usize = 16;

/// Bytes that a block, or a whole file, may decompress to whatever its length.
const ALLOWANCE: usize = 64 << 20;
/// Bytes beyond the allowance that it may decompress to, for each of its own.
const MOST_RATIO: usize = 64;

/// How much `compressed` bytes may decompress to.
fn most_decoded(compressed: usize) -> usize {
    compressed
        .saturating_mul(MOST_RATIO)
        .saturating_add(ALLOWANCE)
}

/// An Avro file in memory.
pub(super) struct Container<'a> {
    properties: HashMap<&'a str, &'a [u8]>,
    schema: Node,
    codec: Codec,
    sync: &'a [u8],
    blocks: Cursor<'a>,
    length: usize,
}

impl<'a> Container<'a> {
    /// Reads the header of a file.
    pub(super) fn open(bytes: &'a [u8]) -> Result<Self, Damage> {
        let mut cursor = Cursor::new(bytes);
        if cursor.take(MAGIC.len())? != MAGIC {
            return Err(Damage::new("it is no Avro file"));
        }
        let properties = read_properties(&mut cursor)?;
        let sync = cursor.take(SYNC_BYTES)?;
        let schema = properties
            .get("avro.schema")
            .ok_or_else(|| Damage::new("its header has no schema").of("avro.schema"))?;
        let schema = Node::parse(schema).map_err(|damage| damage.of("avro.schema"))?;
        let codec = Codec::named(properties.get("avro.codec").copied())?;
        Ok(Self {
            properties,
            schema,
            codec,
            sync,
            blocks: cursor,
            length: bytes.len(),
        })
    }

    /// What the header says under this name.
    pub(super) fn property(&self, name: &str) -> Option<&'a [u8]> {
        self.properties.get(name).copied()
    }

    /// The fields of each record.
    pub(super) fn fields(&self) -> Result<&[Field], Damage> {
        match &self.schema.kind {
            Kind::Record(fields) if self.schema.least_bytes() > 0 => Ok(fields),
            _ => Err(Damage::new("its schema is no record with fields").of("avro.schema")),
        }
    }

    /// Hands the bytes of each record in turn to `read`, which must take exactly one record.
    pub(super) fn each(
        mut self,
        mut read: impl FnMut(&mut Cursor<'_>) -> Result<(), Damage>,
    ) -> Result<(), Damage> {
        let mut buffer = Vec::new();
        let mut left = most_decoded(self.length);
        while !self.blocks.is_empty() {
            let count = self.blocks.length()?;
            let stored = self.blocks.bytes()?;
            if self.blocks.take(SYNC_BYTES)? != self.sync {
                return Err(Damage::new("a block does not end with the sync marker"));
            }
            let most = left.min(most_decoded(stored.len()));
            let block = self.codec.decode(stored, &mut buffer, most)?;
            left -= block.len();
            // A record is a byte long at the least.
            if count > block.len() {
                return Err(Damage::new(format!(
                    "a block of {} bytes claims {count} records",
                    block.len()
                )));
            }
            let mut records = Cursor::new(block);
            for _ in 0..count {
                read(&mut records)?;
            }
            if !records.is_empty() {
                return Err(Damage::new("a block is longer than its records"));
            }
        }
        Ok(())
    }
}

fn read_properties<'a>(cursor: &mut Cursor<'a>) -> Result<HashMap<&'a str, &'a [u8]>, Damage> {
    let mut properties = HashMap::new();
    loop {
        // A property takes two bytes at the least.
        let count = cursor.block_count(2)?;
        if count == 0 {
            return Ok(properties);
        }
        for _ in 0..count {
            let name = cursor.text()?;
            properties.insert(name, cursor.bytes()?);
        }
    }
}
