//! Leaving rows out of columns. Where few rows go, scattered among many that stay, the rows between are moved together within
//! the column's own memory: that costs a fraction of a copy of nearly all of it.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{BinaryType, ByteArrayType, LargeBinaryType, LargeUtf8Type, Utf8Type};
use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, BooleanArray, FixedSizeBinaryArray, GenericByteArray,
    PrimitiveArray, downcast_primitive,
};
use arrow_buffer::{
    ArrowNativeType, BooleanBuffer, Buffer, MutableBuffer, NullBuffer, OffsetBuffer, ScalarBuffer,
};
use arrow_schema::{ArrowError, DataType};
use arrow_select::filter::{FilterBuilder, FilterPredicate};

/// Rows of a run that stays, on average, from which runs are moved.
const WORTH_MOVING: usize = 8;

/// The rows of a batch that stay.
pub(super) struct Sieve {
    runs: Option<Runs>,
    filter: FilterPredicate,
}

impl Sieve {
    /// Lets the rows through whose bit is set.
    pub(super) fn new(keep: BooleanBuffer) -> Self {
        let rows = keep.count_set_bits();
        let runs: Vec<_> = keep.set_slices().collect();
        let worth_moving = runs.len() * WORTH_MOVING <= rows;
        Self {
            runs: worth_moving.then_some(Runs { runs, rows }),
            filter: predicate(keep),
        }
    }

    /// How many rows stay.
    pub(super) fn rows(&self) -> usize {
        self.filter.count()
    }

    /// What stays of a column. It is done in place if nobody else holds the column's memory.
    pub(super) fn apply(&self, column: ArrayRef) -> Result<ArrayRef, ArrowError> {
        match &self.runs {
            Some(runs) => match runs.apply(column) {
                Ok(moved) => moved,
                Err(column) => self.filter.filter(&column),
            },
            None => self.filter.filter(&column),
        }
    }
}

/// Arrow's own, which copies.
pub(super) fn predicate(keep: BooleanBuffer) -> FilterPredicate {
    FilterBuilder::new(&BooleanArray::new(keep, None))
        .optimize()
        .build()
}

/// Runs of rows that stay: each from one row to before another, in order.
struct Runs {
    runs: Vec<(usize, usize)>,
    /// How many rows that is.
    rows: usize,
}

impl Runs {
    /// What stays of a column; the column itself if it is of a kind that is not moved.
    fn apply(&self, column: ArrayRef) -> Result<Result<ArrayRef, ArrowError>, ArrayRef> {
        macro_rules! primitive {
            ($type:ty) => {
                self.primitive(own(column, AsArray::as_primitive::<$type>))
            };
        }
        let moved = downcast_primitive! {
            column.data_type() => (primitive),
            DataType::Boolean => self.boolean(own(column, AsArray::as_boolean)),
            DataType::Utf8 => self.bytes(own(column, AsArray::as_bytes::<Utf8Type>)),
            DataType::LargeUtf8 => self.bytes(own(column, AsArray::as_bytes::<LargeUtf8Type>)),
            DataType::Binary => self.bytes(own(column, AsArray::as_bytes::<BinaryType>)),
            DataType::LargeBinary => self.bytes(own(column, AsArray::as_bytes::<LargeBinaryType>)),
            DataType::FixedSizeBinary(1..) => {
                self.fixed_size(own(column, AsArray::as_fixed_size_binary))
            }
            _ => return Err(column),
        };
        Ok(moved)
    }

    fn primitive<T: ArrowPrimitiveType>(
        &self,
        column: PrimitiveArray<T>,
    ) -> Result<ArrayRef, ArrowError> {
        let (kind, values, nulls) = column.into_parts();
        let values = self.fixed(values.into_inner(), size_of::<T::Native>());
        let nulls = self.nulls(nulls);
        let moved = PrimitiveArray::<T>::try_new(ScalarBuffer::from(values), nulls)?;
        Ok(Arc::new(moved.with_data_type(kind)))
    }

    fn boolean(&self, column: BooleanArray) -> Result<ArrayRef, ArrowError> {
        let (values, nulls) = column.into_parts();
        Ok(Arc::new(BooleanArray::new(
            self.bits(&values),
            self.nulls(nulls),
        )))
    }

    fn fixed_size(&self, column: FixedSizeBinaryArray) -> Result<ArrayRef, ArrowError> {
        let (size, values, nulls) = column.into_parts();
        let values = self.fixed(values, size.as_usize());
        let moved = FixedSizeBinaryArray::try_new(size, values, self.nulls(nulls))?;
        Ok(Arc::new(moved))
    }

    fn bytes<T: ByteArrayType>(&self, column: GenericByteArray<T>) -> Result<ArrayRef, ArrowError> {
        let (offsets, values, nulls) = column.into_parts();
        let mut kept = Vec::with_capacity(self.rows + 1);
        let mut end = T::Offset::default();
        kept.push(end);
        for (from, to) in &self.runs {
            let start = offsets[*from];
            let ends = offsets[from + 1..=*to].iter();
            kept.extend(ends.map(|offset| *offset - start + end));
            end = kept[kept.len() - 1];
        }
        let ranges = self.runs.iter();
        let ranges = ranges.map(|(from, to)| (offsets[*from].as_usize(), offsets[*to].as_usize()));
        let values = moved(values, ranges, end.as_usize());
        let (offsets, nulls) = (ScalarBuffer::from(kept), self.nulls(nulls));
        // SAFETY: offsets ascend from 0 as those that they were made of do, up to the length of the values; each value has
        // the bytes that it had, which were valid for the type.
        #[expect(
            unsafe_code,
            reason = "checking all text again costs more than moving it"
        )]
        let moved = unsafe {
            GenericByteArray::<T>::new_unchecked(
                OffsetBuffer::new_unchecked(offsets),
                values,
                nulls,
            )
        };
        Ok(Arc::new(moved))
    }

    /// Values of one width.
    fn fixed(&self, values: Buffer, width: usize) -> Buffer {
        let ranges = self.runs.iter();
        let ranges = ranges.map(|(from, to)| (from * width, to * width));
        moved(values, ranges, self.rows * width)
    }

    fn nulls(&self, nulls: Option<NullBuffer>) -> Option<NullBuffer> {
        let nulls = nulls.filter(|nulls| nulls.null_count() > 0)?;
        let nulls = NullBuffer::new(self.bits(nulls.inner()));
        (nulls.null_count() > 0).then_some(nulls)
    }

    fn bits(&self, bits: &BooleanBuffer) -> BooleanBuffer {
        let mut kept = Bits::with_capacity(self.rows);
        for (from, to) in &self.runs {
            kept.extend(bits.values(), bits.offset() + from, to - from);
        }
        kept.finish()
    }
}

/// The column as its own type: it alone, if nobody else holds it.
fn own<T: Clone>(column: ArrayRef, cast: impl FnOnce(&ArrayRef) -> &T) -> T {
    cast(&column).clone()
}

/// Bytes of these ranges, which are in order, one behind the other; `length` in all.
fn moved(bytes: Buffer, ranges: impl Iterator<Item = (usize, usize)>, length: usize) -> Buffer {
    match bytes.into_mutable() {
        Ok(mut own) => {
            let mut end = 0;
            for (from, to) in ranges {
                if from != end {
                    own.as_slice_mut().copy_within(from..to, end);
                }
                end += to - from;
            }
            own.truncate(length);
            own.into()
        }
        Err(shared) => {
            let mut copy = MutableBuffer::with_capacity(length);
            ranges.for_each(|(from, to)| copy.extend_from_slice(&shared[from..to]));
            copy.into()
        }
    }
}

/// Bits under way, a word at a time.
struct Bits {
    words: Vec<u64>,
    /// Bits that don't fill a word yet, and how many.
    word: u64,
    filled: usize,
}

impl Bits {
    fn with_capacity(bits: usize) -> Self {
        Self {
            words: Vec::with_capacity(bits.div_ceil(64)),
            word: 0,
            filled: 0,
        }
    }

    fn extend(&mut self, bytes: &[u8], from: usize, count: usize) {
        let mut at = from;
        let end = from + count;
        while at < end {
            let count = (end - at).min(64);
            self.push(word_at(bytes, at), count);
            at += count;
        }
    }

    /// The lowest `count` bits of a word.
    fn push(&mut self, word: u64, count: usize) {
        let word = word & (u64::MAX >> (64 - count));
        self.word |= word << self.filled;
        let filled = self.filled + count;
        self.filled = filled % 64;
        if filled >= 64 {
            self.words.push(self.word);
            // What did not fit; a shift by all 64 bits is no shift.
            self.word = word.checked_shr((count - self.filled) as u32).unwrap_or(0);
        }
    }

    fn finish(mut self) -> BooleanBuffer {
        let bits = self.words.len() * 64 + self.filled;
        if self.filled > 0 {
            self.words.push(self.word);
        }
        BooleanBuffer::new(Buffer::from_vec(self.words), 0, bits)
    }
}

/// The 64 bits from a bit on; those beyond the end are unset.
fn word_at(bytes: &[u8], bit: usize) -> u64 {
    let (byte, shift) = (bit / 8, bit % 8);
    let rest = &bytes[byte..];
    let low = match rest.first_chunk() {
        Some(word) => u64::from_le_bytes(*word),
        None => {
            let mut word = [0; 8];
            word[..rest.len()].copy_from_slice(rest);
            u64::from_le_bytes(word)
        }
    };
    let high = rest.get(8).map_or(0, |byte| u64::from(*byte));
    match shift {
        0 => low,
        shift => low >> shift | high << (64 - shift),
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::types::Int32Type;
    use arrow_array::{
        BinaryArray, Decimal128Array, Float64Array, Int64Array, LargeStringArray, ListArray,
        StringArray, TimestampMicrosecondArray,
    };
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    use super::*;

    fn columns(random: &mut StdRng, rows: usize) -> Vec<ArrayRef> {
        let nulls = [0.0, 0.02, 0.5, 1.0][random.random_range(0..4)];
        let mut some = |value: i64| (!random.random_bool(nulls)).then_some(value);
        let numbers: Vec<Option<i64>> = (0..rows as i64).map(|value| some(value * 31)).collect();
        let texts = numbers.iter();
        let texts = texts.map(|number| number.map(|n| "é".repeat((n % 4) as usize)));
        let texts: Vec<Option<String>> = texts.collect();
        let blobs = texts.iter().map(|t| t.as_ref().map(String::as_bytes));
        let sixteen = numbers
            .iter()
            .map(|n| n.map(|n| i128::from(n).to_le_bytes()));
        let doubles = numbers.iter().map(|n| n.map(|n| n as f64 / 3.0));
        let decimals = numbers.iter().map(|n| n.map(i128::from));
        let decimals: Decimal128Array = decimals.collect();
        let lists = numbers
            .iter()
            .map(|n| n.map(|n| vec![Some(n as i32); (n % 3) as usize]));
        vec![
            Arc::new(Int64Array::from(numbers.clone())),
            Arc::new(doubles.collect::<Float64Array>()),
            Arc::new(decimals.with_precision_and_scale(20, 3).unwrap()),
            Arc::new(TimestampMicrosecondArray::from(numbers.clone()).with_timezone("+00:00")),
            Arc::new(
                numbers
                    .iter()
                    .map(|n| n.map(|n| n % 3 == 0))
                    .collect::<BooleanArray>(),
            ),
            Arc::new(texts.iter().collect::<StringArray>()),
            Arc::new(texts.iter().collect::<LargeStringArray>()),
            Arc::new(blobs.collect::<BinaryArray>()),
            Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(sixteen, 16).unwrap()),
            Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(lists)),
        ]
    }

    #[test]
    fn what_stays_is_what_arrow_keeps() {
        let seed = std::env::var("FLOE_SEED").ok();
        let seed: u64 = seed
            .and_then(|seed| seed.parse().ok())
            .unwrap_or_else(rand::random);
        println!("FLOE_SEED={seed}");
        let mut random = StdRng::seed_from_u64(seed);
        let mut moved = 0;
        for round in 0..200 {
            let rows = random.random_range(1..500);
            let gone = [0.0, 0.02, 0.1, 0.9, 1.0][random.random_range(0..5)];
            let keep = BooleanBuffer::collect_bool(rows, |_| !random.random_bool(gone));
            let plain = predicate(keep.clone());
            let sieve = Sieve::new(keep);
            moved += usize::from(sieve.runs.is_some());
            let before = random.random_range(0..9);
            for column in columns(&mut random, rows + before) {
                // Alone, or held by another, who sees part of it and must not see it change.
                let whole = column.to_data();
                let slice = column.slice(before, rows);
                let wanted = plain.filter(&slice).unwrap();
                let shared = sieve.apply(slice).unwrap();
                assert_eq!(&shared, &wanted, "FLOE_SEED={seed} round {round}");
                assert_eq!(column.to_data(), whole);
                assert_eq!(sieve.rows(), wanted.len());
            }
            for (alone, other) in alone(seed + round, rows)
                .into_iter()
                .zip(alone(seed + round, rows))
            {
                let wanted = plain.filter(&other).unwrap();
                let found = sieve.apply(alone).unwrap();
                found.to_data().validate_full().unwrap();
                assert_eq!(&found, &wanted, "FLOE_SEED={seed} round {round}");
            }
        }
        assert!(moved > 50, "only {moved} were moved");
    }

    fn alone(seed: u64, rows: usize) -> Vec<ArrayRef> {
        columns(&mut StdRng::seed_from_u64(seed), rows)
    }

    #[test]
    fn memory_that_nobody_else_holds_is_kept() {
        let values = Int64Array::from_iter_values(0..100);
        let place = values.values().inner().as_ptr();
        let sieve = Sieve::new(BooleanBuffer::collect_bool(100, |row| row != 50));
        let moved = sieve.apply(Arc::new(values)).unwrap();
        let moved = moved.as_primitive::<arrow_array::types::Int64Type>();
        assert_eq!(moved.values().inner().as_ptr(), place);
        assert_eq!(moved.len(), 99);
    }
}
