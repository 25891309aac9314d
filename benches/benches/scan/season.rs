//! The tables that parts of the reader are benched with, all read through one store, and the ways to get at their rows.
//!
//! "again": what was decoded of footers, manifests and delete files is still there. "anew": the bytes are at hand, but
//! nothing of them is decoded yet, as in a process that has just begun.

use std::hint::black_box;
use std::sync::Arc;

use floe_benches::bare::Bare;
use floe_benches::tables::{self, Crowd, Made, Variant};
use floe_scan::predicate::Predicate;
use floe_scan::reading::{ReadSpec, RowReader, StoreSource};
use floe_scan::{Scan, ScanRequest};
use floe_store::{Store, StoreConfig};
use floe_testing::lake::{DEFAULT_ROWS, Lake};
use futures::stream::BoxStream;
use futures::{TryStreamExt, stream};
use iceberg::expr::Predicate as Expression;
use iceberg::table::Table;

/// How large the tables are.
pub(crate) struct Sizes {
    pub(crate) rows: u64,
    keys: usize,
    crowd: Crowd,
}

impl Sizes {
    pub(crate) const FULL: Self = Self {
        rows: DEFAULT_ROWS,
        keys: 1_000_000,
        crowd: Crowd {
            files: 40_000,
            manifests: 20,
        },
    };
    pub(crate) const SMOKE: Self = Self {
        rows: 10_000,
        keys: 5_000,
        crowd: Crowd {
            files: 200,
            manifests: 2,
        },
    };
}

/// Every table that parts are benched with.
pub(crate) struct Season {
    pub(crate) store: Store,
    pub(crate) bare: Bare,
    pub(crate) plain: Reading,
    pub(crate) evolved: Reading,
    pub(crate) positions: Reading,
    pub(crate) vectors: Reading,
    pub(crate) equality: Reading,
    pub(crate) crowd_files: usize,
    crowd: Table,
}

/// A table of events and the store that it is read through.
pub(crate) struct Reading {
    pub(crate) table: Table,
    store: Store,
}

impl Season {
    pub(crate) async fn build(lake: &Lake, sizes: &Sizes) -> Self {
        let store = new_store();
        let plain = lake.table("football", "events").await;
        let plain = tables::plain(plain.expect("the lake has it")).await;
        let plain = plain.expect("manifests of our own");
        let files = tables::data_files(&plain.table).await.expect("manifests");
        let paths = files.iter().map(|file| file.file_path());
        let paths = paths.map(|path| tables::local_path(path).to_owned());
        let bare = Bare::of(paths.collect()).expect("a season has matches");
        let variant = async |variant| {
            let made = tables::variant(&plain.table, variant).await;
            Reading::checked(&store, &made.expect("room beside the table")).await
        };
        let crowd = tables::crowd(lake.dir(), sizes.crowd).await;
        let crowd = tables::opened(&crowd.expect("a directory of our own"), &store);
        Self {
            evolved: variant(Variant::Evolved).await,
            positions: variant(Variant::Positions).await,
            vectors: variant(Variant::Vectors).await,
            equality: variant(Variant::Equality { keys: sizes.keys }).await,
            plain: Reading::checked(&store, &plain).await,
            crowd: crowd.expect("a table of our own"),
            crowd_files: sizes.crowd.files,
            bare,
            store,
        }
    }

    /// A scan of the table of very many files; what this store decoded of it is still there.
    pub(crate) fn crowd_scan(&self, store: &Store, filter: Option<Expression>) -> Scan {
        scan(store, &self.crowd, filter)
    }

    /// The tables some of whose rows are deleted.
    pub(crate) fn with_deletes(&self) -> [(&'static str, &Reading); 3] {
        [
            ("positions", &self.positions),
            ("vectors", &self.vectors),
            ("equality", &self.equality),
        ]
    }
}

impl Reading {
    /// A fast wrong answer is no result: every way to get at the rows must give all of them.
    async fn checked(store: &Store, made: &Made) -> Self {
        let reading = Self {
            table: tables::opened(&made.table, store).expect("a table of our own"),
            store: store.clone(),
        };
        assert_eq!(drain(&reading.scan()).await, made.rows);
        assert_eq!(reading.drain_anew().await, made.rows);
        let count = reading.scan().count().await;
        assert_eq!(count.expect("a count"), made.rows);
        reading
    }

    pub(crate) fn scan(&self) -> Scan {
        scan(&self.store, &self.table, None)
    }

    pub(crate) fn matching(&self, expression: Expression) -> Scan {
        scan(&self.store, &self.table, Some(expression))
    }

    pub(crate) fn selecting(&self, columns: &[&str]) -> Scan {
        let request = ScanRequest {
            select: Some(columns.iter().map(ToString::to_string).collect()),
            ..ScanRequest::default()
        };
        Scan::new(&self.store, &self.table, request).expect("columns of the season")
    }

    /// Reads every column with footers and delete files decoded anew; gives the rows.
    pub(crate) async fn drain_anew(&self) -> u64 {
        let columns = self.scan().field_ids();
        self.drain_columns_anew(&columns).await
    }

    /// The same of some columns.
    pub(crate) async fn drain_columns_anew(&self, columns: &[i32]) -> u64 {
        // A plan keeps the metrics of what is selected: one column's are few.
        let planned = self.selecting(&["match_id"]).plan_files().await;
        let (files, _) = planned.expect("a plan");
        // What is decoded of files without an identity is shared with nobody.
        let source = StoreSource::new(self.store.clone(), Arc::default(), None);
        let schema = self.table.metadata().current_schema().clone();
        let spec = ReadSpec::new(schema, columns).expect("columns of the season");
        let reader = RowReader::new(Arc::new(source), spec);
        count(reader.read(stream::iter(files.into_iter().map(Ok)))).await
    }
}

/// A store whose process keeps nothing on disk; nothing of its manifests is decoded yet.
pub(crate) fn new_store() -> Store {
    Store::open(StoreConfig::default()).expect("a store without a directory")
}

pub(crate) fn scan(store: &Store, table: &Table, filter: Option<Expression>) -> Scan {
    let schema = table.metadata().current_schema();
    let filter = filter.map(|expression| {
        Predicate::from_iceberg(&expression, schema, true).expect("columns of the table")
    });
    let request = ScanRequest {
        filter,
        ..ScanRequest::default()
    };
    Scan::new(store, table, request).expect("columns of the table")
}

/// Takes every batch and drops it; gives the rows.
pub(crate) async fn drain(scan: &Scan) -> u64 {
    count(scan.stream().await.expect("a plan")).await
}

async fn count(
    mut batches: BoxStream<'static, floe_scan::Result<arrow_array::RecordBatch>>,
) -> u64 {
    let mut rows = 0;
    while let Some(batch) = batches.try_next().await.expect("a batch") {
        rows += black_box(batch).num_rows() as u64;
    }
    rows
}

/// Plans every file; gives how many.
pub(crate) async fn plan(scan: Scan) -> usize {
    black_box(scan.files().await.expect("a plan")).len()
}
