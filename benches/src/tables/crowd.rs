//! A table of very many files in few manifests. The data files themselves don't exist: it can be planned, not read.

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Result, anyhow};
use floe_testing::table::{TableSpec, TestTable};
use iceberg::io::FileIO;
use iceberg::spec::{
    DataContentType, DataFile, DataFileBuilder, DataFileFormat, Datum, Literal,
    ManifestContentType, NestedField, PrimitiveType, Schema, Struct, Type,
};

use super::commit::{Added, commit};
use super::version_of;

/// Columns, each with bounds in every file.
const COLUMNS: i32 = 12;
const ROWS: u64 = 3_653;
const COLUMN_BYTES: u64 = 33_000;

/// How many files there are, and in how many manifests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crowd {
    /// Data files; each is a partition of its own.
    pub files: usize,
    /// Manifests that share them.
    pub manifests: usize,
}

/// A table of long columns `c_1` to `c_12`. It is partitioned by `c_1`, which numbers the files from 0; file `n` holds values from
/// `n * 100` to `n * 100 + 99` in each other column.
///
/// # Errors
/// If it can't be written there.
pub async fn crowd(dir: &Path, crowd: Crowd) -> Result<TestTable> {
    let fields = (1..=COLUMNS).map(|id| {
        let kind = Type::Primitive(PrimitiveType::Long);
        NestedField::optional(id, format!("c_{id}"), kind).into()
    });
    let schema = Schema::builder().with_fields(fields).build()?;
    let location = format!("file://{}/crowd", dir.display());
    let spec = TableSpec::new(location, schema).partitioned_by("c_1")?;
    let mut table = TestTable::create(FileIO::new_with_fs(), spec).await?;
    let location = table.metadata().location().to_owned();
    let spec_id = table.metadata().default_partition_spec().spec_id();
    let files = (0..crowd.files).map(|number| data_file(&location, spec_id, number));
    let files = files.collect::<Result<Vec<_>>>()?;
    let each = crowd.files.div_ceil(crowd.manifests.max(1)).max(1);
    let manifests: Vec<Added> = files
        .chunks(each)
        .map(|files| Added {
            content: ManifestContentType::Data,
            spec_id,
            files: files.to_vec(),
        })
        .collect();
    let version = version_of(&table);
    commit(&mut table, version, manifests).await?;
    Ok(table)
}

fn data_file(location: &str, spec_id: i32, number: usize) -> Result<DataFile> {
    let number = i64::try_from(number)?;
    let each = |value: u64| {
        (1..=COLUMNS)
            .map(|id| (id, value))
            .collect::<HashMap<_, _>>()
    };
    let bounds = |offset: i64| {
        let others = (2..=COLUMNS).map(|id| (id, Datum::long(number * 100 + offset)));
        let others = others.chain([(1, Datum::long(number))]);
        others.collect::<HashMap<_, _>>()
    };
    DataFileBuilder::default()
        .content(DataContentType::Data)
        .file_path(format!(
            "{location}/data/c_1={number}/00000-{number}-0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9-00001.parquet"
        ))
        .file_format(DataFileFormat::Parquet)
        .partition(Struct::from_iter([Some(Literal::long(number))]))
        .partition_spec_id(spec_id)
        .record_count(ROWS)
        .file_size_in_bytes(4 + COLUMN_BYTES * COLUMNS as u64 + 5_000)
        .column_sizes(each(COLUMN_BYTES))
        .value_counts(each(ROWS))
        .null_value_counts(each(0))
        .lower_bounds(bounds(0))
        .upper_bounds(bounds(99))
        .split_offsets(Some(vec![4]))
        .build()
        .map_err(|e| anyhow!("describing a data file: {e}"))
}
