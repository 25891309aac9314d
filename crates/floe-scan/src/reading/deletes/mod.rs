//! Deleted rows of a data file: by position, by deletion vector, by equal values. What a delete file holds is decoded once per process.

mod equality;
mod keys;
mod positions;
mod table;
pub(super) mod vector;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder};
use futures::future::try_join_all;
use iceberg::spec::DataFileFormat;
use roaring::RoaringTreemap;

pub(super) use equality::EqualitySet;
pub(super) use keys::KeyRows;
use positions::PositionDeletes;

use super::open::Shared;
use crate::decoded::{self, Decoded, FileKey, Form};
use crate::error::Result;
use crate::task::{DeleteFile, DeleteKind, FileTask};

impl Decoded for PositionDeletes {
    fn bytes(&self) -> usize {
        self.weight()
    }
}

impl Decoded for RoaringTreemap {
    fn bytes(&self) -> usize {
        self.serialized_size()
    }
}

impl Decoded for EqualitySet {
    fn bytes(&self) -> usize {
        self.weight()
    }
}

/// The deletes of one data file.
#[derive(Debug)]
pub(super) struct Deletes {
    location: String,
    positions: Vec<Arc<PositionDeletes>>,
    vectors: Vec<Arc<RoaringTreemap>>,
    /// In the order of [`equality_ids`].
    equality: Vec<Vec<Arc<EqualitySet>>>,
}

/// The sets of columns that equality deletes of a task go by, each once.
pub(super) fn equality_ids(task: &FileTask) -> Vec<Vec<i32>> {
    let mut sets = Vec::new();
    for delete in &task.deletes {
        if let DeleteKind::Equality(ids) = &delete.kind
            && !sets.contains(ids)
        {
            sets.push(ids.clone());
        }
    }
    sets
}

/// What can't be read of a delete file, if anything.
pub(super) fn readable(delete: &DeleteFile) -> std::result::Result<(), String> {
    let wanted = match delete.kind {
        DeleteKind::Vector { .. } => DataFileFormat::Puffin,
        _ => DataFileFormat::Parquet,
    };
    match delete.format == wanted {
        true => Ok(()),
        false => Err(format!(
            "delete files of format {} are not supported",
            delete.format
        )),
    }
}

/// Loads the deletes of a task.
pub(super) async fn load(shared: &Arc<Shared>, task: &FileTask) -> Result<Deletes> {
    let sets = equality_ids(task);
    let mut deletes = Deletes {
        location: task.file.path.clone(),
        positions: Vec::new(),
        vectors: Vec::new(),
        equality: vec![Vec::new(); sets.len()],
    };
    let loading = task.deletes.iter().map(|delete| load_one(shared, delete));
    for (loaded, delete) in try_join_all(loading).await?.into_iter().zip(&task.deletes) {
        match loaded {
            Loaded::Positions(loaded) => deletes.positions.push(loaded),
            Loaded::Vector(loaded) => deletes.vectors.push(loaded),
            Loaded::Equality(loaded) => {
                let set = sets.iter().position(|ids| match &delete.kind {
                    DeleteKind::Equality(own) => own == ids,
                    _ => false,
                });
                if let Some(set) = set {
                    deletes.equality[set].push(loaded);
                }
            }
        }
    }
    Ok(deletes)
}

enum Loaded {
    Positions(Arc<PositionDeletes>),
    Vector(Arc<RoaringTreemap>),
    Equality(Arc<EqualitySet>),
}

async fn load_one(shared: &Arc<Shared>, delete: &DeleteFile) -> Result<Loaded> {
    let key = FileKey::new(shared.source.identity(), &delete.path, Some(delete.bytes));
    Ok(match &delete.kind {
        DeleteKind::Positions => {
            let decode = async || positions::load(shared, &key, delete).await;
            let several = |loaded: &PositionDeletes| loaded.files() > 1;
            let held = &shared.held.positions;
            Loaded::Positions(
                held.get_or_decode(&key, Form::Positions, decode, several)
                    .await?,
            )
        }
        DeleteKind::Vector { offset, length } => {
            let decode = async || vector::load(shared, delete, *offset, *length).await;
            Loaded::Vector(decoded::get_or_decode(&key, Form::Vector(*offset), decode).await?)
        }
        DeleteKind::Equality(ids) => {
            let columns = equality::columns(shared, ids)?;
            let form = Form::Equality(columns.name());
            let decode = async || equality::load(shared, &key, delete, columns).await;
            let held = &shared.held.equality;
            Loaded::Equality(held.get_or_decode(&key, form, decode, |_| true).await?)
        }
    })
}

/// Decoded delete files of a scan that several of its data files need: what the process keeps may have no room for a
/// large one, and each data file would decode it anew.
#[derive(Debug, Default)]
pub(super) struct Held {
    positions: HeldFiles<PositionDeletes>,
    equality: HeldFiles<EqualitySet>,
}

#[derive(Debug)]
struct HeldFiles<V>(Mutex<HashMap<(FileKey, Form), Arc<V>>>);

impl<V> Default for HeldFiles<V> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<V: Decoded> HeldFiles<V> {
    async fn get_or_decode(
        &self,
        key: &FileKey,
        form: Form,
        decode: impl AsyncFnOnce() -> Result<V>,
        worth_holding: impl FnOnce(&V) -> bool,
    ) -> Result<Arc<V>> {
        let place = (key.clone(), form.clone());
        if let Some(held) = self.lock().get(&place) {
            return Ok(held.clone());
        }
        let decoded = decoded::get_or_decode(key, form, decode).await?;
        if worth_holding(&decoded) {
            self.lock().insert(place, decoded.clone());
        }
        Ok(decoded)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(FileKey, Form), Arc<V>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Deletes {
    /// The sets of values that delete rows, in the order of [`equality_ids`].
    pub(super) fn equality(&self) -> &[Vec<Arc<EqualitySet>>] {
        &self.equality
    }

    /// A bit for each deleted position of `first..first + rows`; `None` if none is.
    pub(super) fn positions_in(&self, first: u64, rows: usize) -> Option<BooleanBuffer> {
        let of_files = self.positions.iter();
        let of_files = of_files.filter_map(|file| file.of(&self.location));
        let vectors = self.vectors.iter().map(AsRef::as_ref);
        let mut bits: Option<BooleanBufferBuilder> = None;
        for positions in of_files.chain(vectors) {
            for position in within(positions, first, rows as u64) {
                let bits = bits.get_or_insert_with(|| {
                    let mut bits = BooleanBufferBuilder::new(rows);
                    bits.append_n(rows, false);
                    bits
                });
                bits.set_bit((position - first) as usize, true);
            }
        }
        bits.map(|mut bits| bits.finish())
    }
}

/// The bits of a position within its bitmap.
const LOW: u64 = u32::MAX as u64;

/// The positions of `first..first + rows`.
fn within(positions: &RoaringTreemap, first: u64, rows: u64) -> impl Iterator<Item = u64> + '_ {
    let end = first.saturating_add(rows);
    positions.bitmaps().flat_map(move |(high, bitmap)| {
        let base = u64::from(high) << 32;
        // Both ends inclusive: the last bitmap of all ends where the numbers do.
        let (from, last) = (first.max(base), end.saturating_sub(1).min(base | LOW));
        let low = |position: u64| (position & LOW) as u32;
        // Of bitmaps that lie outside, nothing is left.
        let range = (from <= last && from < end).then(|| low(from)..=low(last));
        range
            .into_iter()
            .flat_map(move |range| bitmap.range(range))
            .map(move |low| base | u64::from(low))
    })
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::decoded::Identity;

    /// More than the process keeps.
    struct Huge;

    impl Decoded for Huge {
        fn bytes(&self) -> usize {
            usize::MAX / 2
        }
    }

    #[tokio::test]
    async fn what_is_too_large_to_keep_is_decoded_once_for_a_scan_that_holds_it() {
        for (holds, expected) in [(true, 1), (false, 2)] {
            let key = FileKey::new(&Identity::apart(), "d", None);
            let scan = HeldFiles::default();
            let times = Cell::new(0);
            for _ in 0..2 {
                let decode = async || {
                    times.set(times.get() + 1);
                    Ok(Huge)
                };
                let loaded = scan.get_or_decode(&key, Form::Positions, decode, |_| holds);
                loaded.await.unwrap();
                decoded::settle();
            }
            assert_eq!(times.get(), expected);
        }
    }

    #[test]
    fn positions_within_a_range_across_bitmaps() {
        let edge = 1u64 << 32;
        let last = u64::MAX - 1;
        let all = [
            0,
            5,
            edge - 1,
            edge,
            edge + 7,
            3 * edge,
            u64::MAX - edge,
            last,
        ];
        let positions = RoaringTreemap::from_iter(all);
        let ranges = [
            (0, 6),
            (1, 4),
            (5, 1),
            (edge - 1, 2),
            (edge, 8),
            (edge + 8, 2 * edge),
            (6, 0),
            (0, 0),
            (0, u64::MAX),
            (edge, u64::MAX),
            (last - 5, 5),
            (last - 5, 6),
        ];
        for (first, rows) in ranges {
            let wanted: Vec<_> = all
                .into_iter()
                .filter(|p| *p >= first && *p < first.saturating_add(rows))
                .collect();
            let found: Vec<_> = within(&positions, first, rows).collect();
            assert_eq!(found, wanted, "{first} + {rows}");
        }
    }
}
