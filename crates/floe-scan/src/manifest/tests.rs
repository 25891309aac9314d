//! Manifests of Spark against iceberg-rust's reading of them, hostile bytes, hand-written ones, and speed.

use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use iceberg::io::FileIO;
use iceberg::spec::{
    self, DataContentType, DataFileBuilder, DataFileFormat, Datum, FormatVersion, Literal,
    ManifestContentType, ManifestFile, ManifestStatus, ManifestWriterBuilder, NestedField,
    PartitionSpec, PrimitiveType, Schema, Struct, Transform, Type,
};
use rand::{Rng, SeedableRng};

use super::avro::Cursor;
use super::entries::Manifest;
use super::list::ManifestFiles;

/// Every Avro file in the metadata folders of Spark's tables: manifest lists, and manifests.
fn spark_files() -> (Vec<PathBuf>, Vec<PathBuf>) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/tables/spark/lake");
    let mut folders = vec![root];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "avro")
                && path
                    .parent()
                    .is_some_and(|folder| folder.ends_with("metadata"))
            {
                files.push(path);
            }
        }
    }
    files.sort();
    files.into_iter().partition(|path| {
        let name = path.file_name().unwrap().to_str().unwrap();
        name.starts_with("snap-")
    })
}

fn version(bytes: &[u8]) -> FormatVersion {
    let container = super::avro::Container::open(bytes).unwrap();
    match container.property("format-version") {
        Some(b"3") => FormatVersion::V3,
        Some(b"2") => FormatVersion::V2,
        _ => FormatVersion::V1,
    }
}

#[test]
fn lists_of_spark_read_as_iceberg_reads_them() {
    let (lists, _) = spark_files();
    assert!(lists.len() > 100);
    for path in lists {
        let bytes = std::fs::read(&path).unwrap();
        let ours = ManifestFiles::decode(&bytes).unwrap();
        let theirs = spec::ManifestList::parse_with_version(&bytes, version(&bytes)).unwrap();
        assert_eq!(
            ours.entries.len(),
            theirs.entries().len(),
            "{}",
            path.display()
        );
        for (own, other) in ours.entries.iter().zip(theirs.entries()) {
            let mut own = own.clone();
            if version(&bytes) == FormatVersion::V1 {
                // iceberg-rust looks for these under names that Spark does not give them any more.
                own.added_files_count = other.added_files_count;
                own.existing_files_count = other.existing_files_count;
                own.deleted_files_count = other.deleted_files_count;
            }
            assert_eq!(own, *other, "{}", path.display());
        }
    }
}

#[test]
fn manifests_of_spark_read_as_iceberg_reads_them() {
    let (_, manifests) = spark_files();
    assert!(manifests.len() > 100);
    let mut entries = 0;
    for path in manifests {
        let bytes = std::fs::read(&path).unwrap();
        let ours = Manifest::decode(&bytes).unwrap();
        let Ok(theirs) = spec::Manifest::parse_avro(&bytes) else {
            // A void field of the name of a column, which iceberg-rust takes for an error.
            assert!(
                path.to_str().unwrap().contains("/p_void/"),
                "{}",
                path.display()
            );
            continue;
        };
        entries += ours.entries().len();
        assert_same(&ours, &theirs, &path.display().to_string());
    }
    assert!(entries > 300, "{entries}");
}

/// Every entry, with all that both readers tell of it.
fn assert_same(ours: &Manifest, theirs: &spec::Manifest, what: &str) {
    let v1 = *theirs.metadata().format_version() == FormatVersion::V1;
    assert_eq!(ours.entries().len(), theirs.entries().len(), "{what}");
    for (row, (own, other)) in (0u32..).zip(ours.entries().iter().zip(theirs.entries())) {
        let file = other.data_file();
        assert_eq!(own.status, other.status(), "{what}");
        assert_eq!(own.snapshot_id, other.snapshot_id(), "{what}");
        if !v1 {
            assert_eq!(own.sequence_number, other.sequence_number(), "{what}");
            assert_eq!(
                own.file_sequence_number, other.file_sequence_number,
                "{what}"
            );
        }
        assert_eq!(own.content, file.content_type(), "{what}");
        assert_eq!(ours.path(own), file.file_path(), "{what}");
        assert_eq!(own.format, file.file_format(), "{what}");
        assert_eq!(own.rows, file.record_count(), "{what}");
        assert_eq!(own.bytes, file.file_size_in_bytes(), "{what}");
        assert_eq!(own.encrypted, file.key_metadata().is_some(), "{what}");
        assert_eq!(own.first_row_id, file.first_row_id(), "{what}");
        assert_eq!(
            &*ours.partitions()[own.partition as usize],
            file.partition(),
            "{what}"
        );
        let details = ours.delete_details(own).cloned().unwrap_or_default();
        assert_eq!(details.equality_ids, file.equality_ids(), "{what}");
        assert_eq!(
            details.referenced_data_file,
            file.referenced_data_file(),
            "{what}"
        );
        assert_eq!(details.content_offset, file.content_offset(), "{what}");
        assert_eq!(details.content_size, file.content_size_in_bytes(), "{what}");
        assert_same_metrics(ours, row, file, what);
    }
}

fn assert_same_metrics(ours: &Manifest, row: u32, file: &spec::DataFile, what: &str) {
    let mut sizes: Vec<(i32, u64)> = file.column_sizes().iter().map(|(k, v)| (*k, *v)).collect();
    sizes.sort_unstable();
    assert_eq!(ours.metrics().column_sizes(row), sizes, "{what}");
    let any = Type::Primitive(PrimitiveType::Long);
    let any = any.as_primitive_type().unwrap();
    for id in (0..120).chain(i32::MAX - 110..i32::MAX) {
        let bounds = [file.lower_bounds().get(&id), file.upper_bounds().get(&id)];
        let kind = bounds
            .into_iter()
            .flatten()
            .next()
            .map_or(any, Datum::data_type);
        let own = ours.metrics().of(row, id, kind).unwrap_or_default();
        assert_eq!(
            own.values,
            file.value_counts().get(&id).copied(),
            "{what} {id}"
        );
        assert_eq!(
            own.nulls,
            file.null_value_counts().get(&id).copied(),
            "{what} {id}"
        );
        assert_eq!(
            own.nans,
            file.nan_value_counts().get(&id).copied(),
            "{what} {id}"
        );
        // Bounds of columns that the manifest's schema lacks are read by us alone.
        if bounds[0].is_some() || bounds[1].is_some() {
            assert_eq!(own.lower.as_ref(), bounds[0], "{what} {id}");
            assert_eq!(own.upper.as_ref(), bounds[1], "{what} {id}");
        }
    }
}

/// The parts of a container of which each block is stored as it is.
struct Parts {
    properties: Vec<(String, Vec<u8>)>,
    blocks: Vec<(i64, Vec<u8>)>,
}

impl Parts {
    /// Takes a container of the codec null or deflate apart.
    fn of(bytes: &[u8]) -> Self {
        let mut cursor = Cursor::new(bytes);
        cursor.take(4).unwrap();
        let mut properties = Vec::new();
        loop {
            let count = cursor.block_count(2).unwrap();
            for _ in 0..count {
                let name = cursor.text().unwrap().to_string();
                properties.push((name, cursor.bytes().unwrap().to_vec()));
            }
            if count == 0 {
                break;
            }
        }
        let deflated = properties
            .iter()
            .any(|(name, value)| name == "avro.codec" && value == b"deflate");
        cursor.take(16).unwrap();
        let mut blocks = Vec::new();
        while !cursor.is_empty() {
            let count = cursor.long().unwrap();
            let stored = cursor.bytes().unwrap();
            let mut plain = Vec::new();
            if deflated {
                let mut reader = flate2::read::DeflateDecoder::new(stored);
                std::io::Read::read_to_end(&mut reader, &mut plain).unwrap();
            } else {
                plain.extend_from_slice(stored);
            }
            blocks.push((count, plain));
            cursor.take(16).unwrap();
        }
        Self { properties, blocks }
    }

    /// Bytes after the header and its sync marker, which ends the last block too.
    fn blocks_bytes(bytes: &[u8]) -> usize {
        let sync = &bytes[bytes.len() - 16..];
        let header = bytes.windows(16).position(|window| window == sync).unwrap();
        bytes.len() - header - 16
    }

    /// Puts it together with another codec.
    fn with_codec(&self, codec: &str) -> Vec<u8> {
        let mut bytes = b"Obj\x01".to_vec();
        let kept = self
            .properties
            .iter()
            .filter(|(name, _)| name != "avro.codec");
        let kept: Vec<_> = kept.collect();
        long(&mut bytes, i64::try_from(kept.len()).unwrap() + 1);
        for (name, value) in kept {
            blob(&mut bytes, name.as_bytes());
            blob(&mut bytes, value);
        }
        blob(&mut bytes, b"avro.codec");
        blob(&mut bytes, codec.as_bytes());
        long(&mut bytes, 0);
        bytes.extend([7; 16]);
        for (count, plain) in &self.blocks {
            long(&mut bytes, *count);
            blob(&mut bytes, &stored(codec, plain));
            bytes.extend([7; 16]);
        }
        bytes
    }
}

fn stored(codec: &str, plain: &[u8]) -> Vec<u8> {
    match codec {
        "deflate" => {
            let level = flate2::Compression::default();
            let mut writer = flate2::write::DeflateEncoder::new(Vec::new(), level);
            writer.write_all(plain).unwrap();
            writer.finish().unwrap()
        }
        "snappy" => {
            let mut stored = snap::raw::Encoder::new().compress_vec(plain).unwrap();
            let mut crc = flate2::Crc::new();
            crc.update(plain);
            stored.extend(crc.sum().to_be_bytes());
            stored
        }
        "zstandard" => zstd::stream::encode_all(plain, 3).unwrap(),
        _ => plain.to_vec(),
    }
}

fn long(bytes: &mut Vec<u8>, value: i64) {
    let mut rest = ((value << 1) ^ (value >> 63)).cast_unsigned();
    while rest >= 0x80 {
        bytes.push(u8::try_from(rest & 0x7f).unwrap() | 0x80);
        rest >>= 7;
    }
    bytes.push(u8::try_from(rest).unwrap());
}

fn blob(bytes: &mut Vec<u8>, value: &[u8]) {
    long(bytes, i64::try_from(value.len()).unwrap());
    bytes.extend_from_slice(value);
}

/// A manifest of Spark with several entries and metrics.
fn a_manifest() -> Vec<u8> {
    let (_, manifests) = spark_files();
    let of_table = |path: &&PathBuf| path.to_str().unwrap().contains("/p_ident_odd/");
    let path = manifests.iter().find(of_table).unwrap();
    std::fs::read(path).unwrap()
}

#[test]
fn every_codec_gives_the_same_manifest() {
    let bytes = a_manifest();
    let theirs = spec::Manifest::parse_avro(&bytes).unwrap();
    for codec in ["null", "deflate", "snappy", "zstandard"] {
        let ours = Manifest::decode(&Parts::of(&bytes).with_codec(codec)).unwrap();
        assert_same(&ours, &theirs, codec);
    }
    let unknown = Parts::of(&bytes).with_codec("xz");
    let error = Manifest::decode(&unknown)
        .unwrap_err()
        .error("it")
        .to_string();
    assert!(
        error.contains("avro.codec") && error.contains("'xz'"),
        "{error}"
    );
}

#[test]
fn a_truncated_manifest_never_gives_entries_that_are_not_there() {
    let parts = Parts::of(&a_manifest());
    for codec in ["null", "deflate", "snappy", "zstandard"] {
        let bytes = parts.with_codec(codec);
        let whole = Manifest::decode(&bytes).unwrap().entries().len();
        for cut in 0..bytes.len() {
            if let Ok(manifest) = Manifest::decode(&bytes[..cut]) {
                // Cut between blocks: the length in the manifest list tells.
                assert!(manifest.entries().len() < whole, "{codec} {cut}");
            }
        }
    }
}

#[test]
fn flipped_bits_never_panic() {
    let parts = Parts::of(&a_manifest());
    let (lists, _) = spark_files();
    let list = std::fs::read(&lists[0]).unwrap();
    for codec in ["null", "deflate", "snappy", "zstandard"] {
        let bytes = parts.with_codec(codec);
        // The header is the same for each.
        let header = bytes.len() - Parts::blocks_bytes(&bytes);
        let first = if codec == "null" { 0 } else { header };
        for at in first..bytes.len() {
            for flip in [0x01, 0xff] {
                let mut bytes = bytes.clone();
                bytes[at] ^= flip;
                drop(Manifest::decode(&bytes));
            }
        }
    }
    for at in 0..list.len() {
        for flip in [0x01, 0xff] {
            let mut list = list.clone();
            list[at] ^= flip;
            drop(ManifestFiles::decode(&list));
        }
    }
}

#[test]
fn bytes_at_random_never_panic() {
    let seed =
        std::env::var("FLOE_SEED").map_or_else(|_| rand::random(), |seed| seed.parse().unwrap());
    println!("FLOE_SEED={seed}");
    let mut random = rand::rngs::StdRng::seed_from_u64(seed);
    let mut parts = Parts::of(&a_manifest());
    for _ in 0..3000 {
        let length = random.random_range(0..200);
        let block: Vec<u8> = (0..length)
            .map(|_| random.random::<u8>() >> random.random_range(0..7))
            .collect();
        parts.blocks = vec![(random.random_range(-1..4), block)];
        drop(Manifest::decode(&parts.with_codec("null")));
    }
}

#[test]
fn a_bomb_is_refused() {
    let mut parts = Parts::of(&a_manifest());
    parts.blocks = vec![(1, vec![0; 80 << 20])];
    for codec in ["deflate", "zstandard"] {
        let bomb = parts.with_codec(codec);
        assert!(bomb.len() < 1 << 20);
        let error = Manifest::decode(&bomb).unwrap_err().error("it").to_string();
        assert!(error.contains("decompresses to more than"), "{error}");
    }
}

/// A container of one block with this schema.
fn container(schema: &str, records: &[Vec<u8>]) -> Vec<u8> {
    let parts = Parts {
        properties: vec![("avro.schema".to_string(), schema.as_bytes().to_vec())],
        blocks: vec![(i64::try_from(records.len()).unwrap(), records.concat())],
    };
    parts.with_codec("null")
}

/// Schema without ids, unions the other way round, ints for longs, the value of a map after other fields.
const ODD_SCHEMA: &str = r#"{"type":"record","name":"manifest_entry","fields":[
    {"name":"extra","type":{"type":"map","values":["null","double"]}},
    {"name":"data_file","type":{"type":"record","name":"f","fields":[
        {"name":"file_path","type":["string","null"]},
        {"name":"file_format","type":"string"},
        {"name":"record_count","type":"int"},
        {"name":"file_size_in_bytes","type":["int","null"]},
        {"name":"partition","type":{"type":"record","name":"p","fields":[{"name":"d","type":["int","null"]},{"name":"x","type":["null",{"type":"bytes","logicalType":"decimal","precision":9,"scale":2}]}]}},
        {"name":"value_counts","type":["null",{"type":"array","logicalType":"map","items":{"type":"record","name":"kv","fields":[{"name":"k","type":"int"},{"name":"v","type":"int"}]}}]}
    ]}},
    {"name":"snapshot_id","type":"int"},
    {"name":"status","type":"int"}]}"#;

fn odd_entry(status: i64, rows: i64) -> Vec<u8> {
    let mut bytes = Vec::new();
    // extra: one block with its length, one pair.
    long(&mut bytes, -1);
    long(&mut bytes, 3);
    blob(&mut bytes, b"x");
    long(&mut bytes, 0);
    long(&mut bytes, 0);
    long(&mut bytes, 0);
    blob(&mut bytes, b"s3://b/f.parquet");
    blob(&mut bytes, b"PARQUET");
    long(&mut bytes, rows);
    long(&mut bytes, 0);
    long(&mut bytes, 1234);
    long(&mut bytes, 1);
    long(&mut bytes, 1);
    blob(&mut bytes, &[0xff, 0x38]);
    long(&mut bytes, 1);
    for (id, count) in [(4, 10), (2, 7)] {
        long(&mut bytes, 1);
        long(&mut bytes, id);
        long(&mut bytes, count);
    }
    long(&mut bytes, 0);
    long(&mut bytes, 99);
    long(&mut bytes, status);
    bytes
}

#[test]
fn a_manifest_of_an_odd_writer_is_read() {
    let manifest = Manifest::decode(&container(
        ODD_SCHEMA,
        &[odd_entry(1, 10), odd_entry(0, 10)],
    ))
    .unwrap();
    let entry = &manifest.entries()[1];
    assert_eq!(manifest.path(entry), "s3://b/f.parquet");
    assert_eq!(
        (entry.rows, entry.bytes, entry.snapshot_id),
        (10, 1234, Some(99))
    );
    assert_eq!(entry.status, ManifestStatus::Existing);
    assert_eq!(entry.content, DataContentType::Data);
    let expected = Struct::from_iter([None, Some(Literal::decimal(-200))]);
    assert_eq!(*manifest.partitions()[0], expected);
    assert_eq!(manifest.partitions().len(), 1);
    let metrics = manifest.metrics().of(1, 2, &PrimitiveType::Long).unwrap();
    assert_eq!(metrics.values, Some(7));
}

#[test]
fn what_is_missing_or_unknown_is_named() {
    let error = |bytes: &[u8]| {
        Manifest::decode(bytes)
            .unwrap_err()
            .error("the manifest m")
            .to_string()
    };
    let status = error(&container(ODD_SCHEMA, &[odd_entry(3, 10)]));
    assert_eq!(
        status,
        "can't read the manifest m: status: its value 3 has no meaning"
    );
    let rows = error(&container(ODD_SCHEMA, &[odd_entry(1, -1)]));
    assert_eq!(rows, "can't read the manifest m: record_count: it is -1");
    let lacking = ODD_SCHEMA.replace("\"file_path\"", "\"path_of_file\"");
    let path = error(&container(&lacking, &[odd_entry(1, 10)]));
    assert_eq!(
        path,
        "can't read the manifest m: file_path: it is required, but missing"
    );
    let no_int = ODD_SCHEMA.replace(
        r#"{"name":"status","type":"int"}"#,
        r#"{"name":"status","type":"string"}"#,
    );
    let status = error(&container(&no_int, &[odd_entry(1, 10)]));
    assert_eq!(
        status,
        "can't read the manifest m: status: it is no whole number"
    );
}

#[test]
fn entries_that_claim_too_much_are_refused() {
    let mut parts = Parts {
        properties: vec![("avro.schema".to_string(), ODD_SCHEMA.as_bytes().to_vec())],
        blocks: vec![(i64::MAX, odd_entry(1, 10))],
    };
    assert!(Manifest::decode(&parts.with_codec("null")).is_err());
    parts.blocks = vec![(1, [odd_entry(1, 10), vec![0]].concat())];
    assert!(Manifest::decode(&parts.with_codec("null")).is_err());
}

fn listed(sequence_number: i64, first_row_id: Option<u64>) -> ManifestFile {
    ManifestFile {
        manifest_path: "memory:/m.avro".to_string(),
        manifest_length: 0,
        partition_spec_id: 0,
        content: ManifestContentType::Data,
        sequence_number,
        min_sequence_number: 0,
        added_snapshot_id: 77,
        added_files_count: None,
        existing_files_count: None,
        deleted_files_count: None,
        added_rows_count: None,
        existing_rows_count: None,
        deleted_rows_count: None,
        partitions: None,
        key_metadata: None,
        first_row_id,
    }
}

const PLAIN_SCHEMA: &str = r#"{"type":"record","name":"manifest_entry","fields":[
    {"name":"status","type":"int","field-id":0},
    {"name":"snapshot_id","type":["null","long"],"field-id":1},
    {"name":"sequence_number","type":["null","long"],"field-id":3},
    {"name":"data_file","field-id":2,"type":{"type":"record","name":"f","fields":[
        {"name":"file_path","type":"string","field-id":100},
        {"name":"file_format","type":"string","field-id":101},
        {"name":"partition","type":{"type":"record","name":"p","fields":[]},"field-id":102},
        {"name":"record_count","type":"long","field-id":103},
        {"name":"file_size_in_bytes","type":"long","field-id":104},
        {"name":"first_row_id","type":["null","long"],"field-id":142}]}}]}"#;

fn plain_entry(status: i64, sequence: Option<i64>, rows: i64, first_row: Option<i64>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let optional = |bytes: &mut Vec<u8>, value: Option<i64>| match value {
        Some(value) => {
            long(bytes, 1);
            long(bytes, value);
        }
        None => long(bytes, 0),
    };
    long(&mut bytes, status);
    optional(&mut bytes, None);
    optional(&mut bytes, sequence);
    blob(&mut bytes, b"f");
    blob(&mut bytes, b"parquet");
    long(&mut bytes, rows);
    long(&mut bytes, 1);
    optional(&mut bytes, first_row);
    bytes
}

#[test]
fn added_entries_inherit_what_the_list_tells() {
    let entries = [
        plain_entry(1, None, 10, None),
        plain_entry(0, Some(3), 20, None),
        plain_entry(2, None, 30, None),
        plain_entry(1, Some(2), 40, Some(5)),
        plain_entry(1, None, 50, None),
    ];
    let manifest = Manifest::decode(&container(PLAIN_SCHEMA, &entries)).unwrap();
    let list = listed(9, Some(1000));
    let live: Vec<_> = manifest.live(&list).map(Result::unwrap).collect();
    let sequences: Vec<_> = live.iter().map(|live| live.data_sequence_number).collect();
    assert_eq!(sequences, [9, 3, 2, 9]);
    let rows: Vec<_> = live
        .iter()
        .map(|live| (live.row, live.first_row_id))
        .collect();
    assert_eq!(
        rows,
        [
            (0, Some(1000)),
            (1, Some(1010)),
            (3, Some(5)),
            (4, Some(1030))
        ]
    );
    assert!(
        live.iter()
            .all(|live| live.entry.snapshot_id.is_none_or(|id| id == 77))
    );
    // A list that gives the manifest no row ids: its table is not of version 3 yet.
    let list = listed(9, None);
    assert!(
        manifest
            .live(&list)
            .all(|live| live.unwrap().first_row_id.is_none())
    );
    let list = listed(9, Some(u64::MAX));
    assert!(manifest.live(&list).any(|live| live.is_err()));
}

#[test]
fn an_existing_entry_inherits_only_the_zero_of_old_manifests() {
    let manifest =
        Manifest::decode(&container(PLAIN_SCHEMA, &[plain_entry(0, None, 1, None)])).unwrap();
    let of_v1 = listed(0, None);
    assert_eq!(
        manifest
            .live(&of_v1)
            .next()
            .unwrap()
            .unwrap()
            .data_sequence_number,
        0
    );
    let of_v2 = listed(4, None);
    let error = manifest
        .live(&of_v2)
        .next()
        .unwrap()
        .unwrap_err()
        .error("m")
        .to_string();
    assert!(error.contains("sequence_number"), "{error}");
}

/// Forty thousand files in twenty manifests, of ten columns with all their metrics.
#[tokio::test]
async fn many_files_are_decoded_soon() {
    let (manifests, files) = (20, 2000);
    let mut encoded = Vec::new();
    for manifest in 0..manifests {
        encoded.push(a_large_manifest(manifest, files).await);
    }
    let bytes: usize = encoded.iter().map(Vec::len).sum();
    let mut weight = 0;
    let times = (0..5).map(|_| {
        let started = processor_time();
        let decoded: Vec<_> = encoded
            .iter()
            .map(|bytes| Manifest::decode(bytes).unwrap())
            .collect();
        let time = processor_time().saturating_sub(started);
        assert!(
            decoded
                .iter()
                .all(|manifest| manifest.entries().len() == files)
        );
        weight = decoded.iter().map(Manifest::weight).sum();
        time
    });
    let time = times.min().unwrap();
    println!(
        "decoded {} files of {manifests} manifests, {bytes} bytes, in {time:?} of one core: {weight} bytes in memory",
        manifests * files,
    );
}

/// Time that this thread had a processor; zero where the system does not tell.
fn processor_time() -> std::time::Duration {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = told.split(' ').next().and_then(|nanos| nanos.parse().ok());
    std::time::Duration::from_nanos(nanos.unwrap_or(0))
}

async fn a_large_manifest(number: usize, files: usize) -> Vec<u8> {
    let fields = (1..=10).map(|id| {
        let kind = if id % 2 == 0 {
            PrimitiveType::Long
        } else {
            PrimitiveType::String
        };
        Arc::new(NestedField::optional(
            id,
            format!("c{id}"),
            Type::Primitive(kind),
        ))
    });
    let schema = Arc::new(Schema::builder().with_fields(fields).build().unwrap());
    let spec = PartitionSpec::builder(schema.clone())
        .add_partition_field("c2", "c2", Transform::Identity)
        .unwrap()
        .build()
        .unwrap();
    let io = FileIO::new_with_memory();
    let path = format!("memory:///m{number}.avro");
    let output = io.new_output(&path).unwrap();
    let mut writer = ManifestWriterBuilder::new(output, Some(1), schema, spec).build_v2_data();
    for file in 0..files {
        writer.add_file(a_file(number * files + file), 1).unwrap();
    }
    writer.write_manifest_file().await.unwrap();
    let bytes = io.new_input(&path).unwrap().read().await.unwrap();
    Parts::of(&bytes).with_codec("deflate")
}

fn a_file(number: usize) -> spec::DataFile {
    let counts = |count: u64| (1..=10).map(|id| (id, count)).collect::<HashMap<_, _>>();
    let bound = |id: i32, number: usize| match id % 2 {
        0 => Datum::long(i64::try_from(number).unwrap() * 1000),
        _ => Datum::string(format!("value {number:012}")),
    };
    let bounds = |plus: usize| {
        (1..=10)
            .map(|id| (id, bound(id, number + plus)))
            .collect::<HashMap<_, _>>()
    };
    DataFileBuilder::default()
        .content(DataContentType::Data)
        .file_path(format!(
            "s3://bucket/warehouse/ns/table/data/c2={}/{}.parquet",
            number % 100,
            uuid::Uuid::new_v4()
        ))
        .file_format(DataFileFormat::Parquet)
        .partition(Struct::from_iter([Some(Literal::long(
            i64::try_from(number % 100).unwrap(),
        ))]))
        .record_count(1000 + number as u64)
        .file_size_in_bytes(1 << 20)
        .column_sizes(counts(100_000 + number as u64))
        .value_counts(counts(1000 + number as u64))
        .null_value_counts(counts(number as u64 % 7))
        .nan_value_counts(HashMap::new())
        .lower_bounds(bounds(0))
        .upper_bounds(bounds(1))
        .split_offsets(Some(vec![4]))
        .build()
        .unwrap()
}
