//! What planning does not need of an entry, and who looks at metadata does: decoded on request, and never kept.

/// Beside an entry, under its number.
#[derive(Debug, Default)]
pub(crate) struct Details {
    pub(crate) key_metadata: Option<Vec<u8>>,
    pub(crate) split_offsets: Option<Vec<i64>>,
    pub(crate) sort_order_id: Option<i32>,
    counts: [bool; 4],
    bounds: [bool; 2],
}

/// A number that a file may tell of each column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Count {
    Sizes,
    Values,
    Nulls,
    Nans,
}

/// An end of the values that a file may tell of each column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Lower,
    Upper,
}

impl Details {
    pub(super) fn add_counts(&mut self, count: Count) {
        self.counts[count as usize] = true;
    }

    pub(super) fn add_bounds(&mut self, end: End) {
        self.bounds[end as usize] = true;
    }

    /// Whether the file has these counts, if only of no column.
    pub(crate) fn has_counts(&self, count: Count) -> bool {
        self.counts[count as usize]
    }

    /// Whether the file has these bounds, if only of no column.
    pub(crate) fn has_bounds(&self, end: End) -> bool {
        self.bounds[end as usize]
    }
}
