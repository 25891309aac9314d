//! Random rows, conditions and deletes: what is pruned, skipped and decoded late must be what a plain filter over all rows leaves.

use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray,
};
use arrow_select::filter::filter_record_batch;
use iceberg::spec::{Datum, PrimitiveType, SchemaRef};
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use roaring::RoaringTreemap;

use super::super::deletes::vector;
use super::super::needs::Paths;
use super::super::rows::BatchRows;
use super::super::{Limits, MetadataColumn};
use super::deletes::{position_deletes, vector_delete};
use super::kit::*;
use crate::predicate::{Column, Comparison, Predicate};

fn table() -> SchemaRef {
    schema([
        optional(1, "a", primitive(PrimitiveType::Long)),
        optional(2, "x", primitive(PrimitiveType::Double)),
        optional(3, "s", primitive(PrimitiveType::String)),
        optional(4, "rest", primitive(PrimitiveType::Long)),
    ])
}

fn double(random: &mut StdRng) -> f64 {
    match random.random_range(0..8) {
        0 => f64::NAN,
        1 => -0.0,
        2 => 0.0,
        3 => f64::INFINITY,
        4 => f64::NEG_INFINITY,
        _ => f64::from(random.random_range(-3..4)) / 2.0,
    }
}

/// Rows whose values lie near each other, so that groups differ and pruning has something to do.
fn data(random: &mut StdRng, rows: usize) -> RecordBatch {
    let nulls = random.random_range(0..4);
    let mut null = {
        let mut random = StdRng::seed_from_u64(random.random());
        move || nulls > 0 && random.random_range(0..8) < nulls
    };
    let mut base = 0;
    let mut a: Vec<Option<i64>> = Vec::new();
    let mut x = Vec::new();
    let mut s = Vec::new();
    for _ in 0..rows {
        if random.random_range(0..20) == 0 {
            base = random.random_range(-20..20);
        }
        a.push((!null()).then(|| base + random.random_range(0..4)));
        x.push((!null()).then(|| double(random)));
        s.push((!null()).then(|| format!("{}{}", base, "é".repeat(random.random_range(0..3)))));
    }
    let columns: [(i32, &str, ArrayRef); 4] = [
        (1, "a", Arc::new(Int64Array::from(a))),
        (2, "x", Arc::new(Float64Array::from(x))),
        (3, "s", Arc::new(StringArray::from(s))),
        (
            4,
            "rest",
            Arc::new(Int64Array::from_iter_values(0..rows as i64)),
        ),
    ];
    batch(columns)
}

fn condition(random: &mut StdRng, depth: usize) -> Predicate {
    let column = |name| Column::find(&table(), name).unwrap();
    let comparison = |random: &mut StdRng| {
        use Comparison::*;
        [Equal, NotEqual, Less, LessOrEqual, Greater, GreaterOrEqual][random.random_range(0..6)]
    };
    let several = |random: &mut StdRng| -> Vec<Predicate> {
        let many = random.random_range(1..4);
        (0..many).map(|_| condition(random, depth - 1)).collect()
    };
    match random.random_range(0..if depth == 0 { 6 } else { 11 }) {
        0 => Predicate::Compare(
            column("a"),
            comparison(random),
            Datum::long(random.random_range(-22..24)),
        ),
        1 => Predicate::Compare(
            column("x"),
            comparison(random),
            Datum::double(double(random)),
        ),
        2 => {
            let text = random.random_range(-20..20).to_string();
            Predicate::Compare(column("s"), comparison(random), Datum::string(text))
        }
        3 => Predicate::IsNull(column(["a", "x", "s"][random.random_range(0..3)])),
        4 => match random.random() {
            true => Predicate::IsNan(column("x")),
            false => Predicate::StartsWith(column("s"), random.random_range(-2..20).to_string()),
        },
        5 => {
            let many = random.random_range(1..4);
            let values = (0..many).map(|_| Datum::long(random.random_range(-20..24)));
            Predicate::In(column("a"), values.collect())
        }
        6 | 7 => Predicate::And(several(random)),
        8 => Predicate::Or(several(random)),
        9 => Predicate::Not(Box::new(condition(random, depth - 1))),
        _ => match random.random() {
            true => Predicate::IsTrue(Box::new(condition(random, depth - 1))),
            false => Predicate::IsUnknown(Box::new(condition(random, depth - 1))),
        },
    }
}

/// A writer of small groups and smaller pages, with what indexes it may write.
fn properties(random: &mut StdRng) -> WriterProperties {
    let versions = [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0];
    let statistics = [EnabledStatistics::Chunk, EnabledStatistics::Page];
    let compressions = [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::ZSTD(ZstdLevel::default()),
    ];
    WriterProperties::builder()
        .set_writer_version(versions[random.random_range(0..2)])
        .set_statistics_enabled(statistics[random.random_range(0..2)])
        .set_compression(compressions[random.random_range(0..3)])
        .set_dictionary_enabled(random.random())
        .set_bloom_filter_enabled(random.random())
        .set_max_row_group_row_count(Some(random.random_range(1..200)))
        .set_data_page_row_count_limit(random.random_range(1..60))
        .set_write_batch_size(random.random_range(1..20))
        .build()
}

/// What a filter over all rows leaves of them.
fn plainly(all: &RecordBatch, condition: &Predicate, deleted: &RoaringTreemap) -> Vec<String> {
    let paths = Paths::new(&table());
    let rows = BatchRows {
        rows: all.num_rows(),
        columns: (1..).zip(all.columns().iter().cloned()).collect(),
        paths: &paths,
    };
    let truths = condition.evaluate(&rows).unwrap();
    let keep = (0..all.num_rows())
        .map(|row| truths.is_valid(row) && truths.value(row) && !deleted.contains(row as u64));
    let keep: BooleanArray = keep.map(Some).collect();
    lines(&[filter_record_batch(all, &keep).unwrap()])
}

#[tokio::test]
async fn a_scan_gives_what_a_plain_filter_gives() {
    let seed = std::env::var("FLOE_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    let seed: u64 = seed.unwrap_or_else(rand::random);
    println!("FLOE_SEED={seed}");
    let mut random = StdRng::seed_from_u64(seed);
    for round in 0..300 {
        let rows_of_file = random.random_range(1..400);
        let all = data(&mut random, rows_of_file);
        let condition = condition(&mut random, 3);
        let chance = [0.0, 0.02, 0.5, 0.98][random.random_range(0..4)];
        let deleted: RoaringTreemap = (0..rows_of_file as u64)
            .filter(|_| random.random_bool(chance))
            .collect();
        let wanted = plainly(&all, &condition, &deleted);

        let files = Arc::new(Files::with_whole([0, 1 << 20][random.random_range(0..2)]));
        let task = files.data_with("f", &all, properties(&mut random));
        let task = with_residual(task, condition.clone());
        let task = match random.random() {
            _ if deleted.is_empty() => task,
            true => {
                let positions: Vec<_> = deleted.iter().map(|p| ("f", p as i64)).collect();
                with_deletes(task, [position_deletes(&files, "d", &positions)])
            }
            false => {
                let blob = vector::blob(&deleted);
                with_deletes(task, [vector_delete(&files, "v", &blob, deleted.len())])
            }
        };
        let limits = Limits {
            batch_rows: random.random_range(1..50),
            // Indexes and filters are asked whatever they cost, or never.
            round_trip_bytes: [0, u64::MAX][random.random_range(0..2)],
            ..Limits::default()
        };
        let context = || format!("FLOE_SEED={seed} round {round}: {condition}");
        let spec_of = |columns: &[i32]| spec(&table(), columns).with_limits(limits.clone());
        let found = rows(&files, spec_of(&[1, 2, 3, 4]), vec![task.clone()])
            .await
            .unwrap();
        assert_eq!(found, wanted, "{}", context());

        // Other columns than those of the condition; `rest` is the position.
        let positions = spec_of(&[4]).with_metadata([MetadataColumn::Position]);
        let found = rows(&files, positions, vec![task.clone()]).await.unwrap();
        let last = |line: &String| line.rsplit(' ').next().unwrap_or_default().to_owned();
        let numbers: Vec<_> = wanted
            .iter()
            .map(|line| format!("{0} {0}", last(line)))
            .collect();
        assert_eq!(found, numbers, "{}", context());

        let counted = batches(&files, spec_of(&[]), vec![task]).await.unwrap();
        let counted: usize = counted.iter().map(RecordBatch::num_rows).sum();
        assert_eq!(counted, wanted.len(), "{}", context());
    }
}
