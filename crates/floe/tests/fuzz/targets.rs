//! What is done with hostile bytes: for each kind of them a function that says whether they were understood.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use floe_scan::predicate::Predicate;
use floe_scan::reading::{Bytewise, Identity, ReadSpec, RowReader, Source};
use floe_scan::task::{DeleteFile, DeleteKind, FileTask};
use floe_scan::{Error, ErrorKind, Result, Scan, ScanRequest, fuzzing};
use futures::{TryStreamExt, stream};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use super::corpus::{Fixture, Read};
use super::rounds::READER;

pub(super) static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .thread_name(READER)
        .enable_all()
        .build()
        .unwrap()
});

/// Where metadata of a round is written; each under a name of its own, since a store takes files for immutable.
static SCRATCH: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().unwrap());
static WRITTEN: AtomicU64 = AtomicU64::new(0);

const VECTOR_MAGIC: [u8; 4] = [0xD1, 0xD3, 0x39, 0x64];

pub(super) fn manifest_list(bytes: &[u8]) -> bool {
    fuzzing::manifest_list(bytes).is_ok()
}

pub(super) fn manifest(bytes: &[u8]) -> bool {
    fuzzing::manifest(bytes).is_ok()
}

/// Reads a data file whose rows these bytes delete: of Parquet, or of Puffin.
pub(super) fn delete_file(read: &Read, bytes: &[u8]) -> bool {
    let delete = DeleteFile {
        bytes: bytes.len() as u64,
        ..DeleteFile::clone(&read.task.deletes[0])
    };
    deleting(read, delete, Bytes::copy_from_slice(bytes))
}

/// The bitmap of a deletion vector, which its blob holds between length and magic and a checksum.
pub(super) fn bitmap(read: &Read) -> Vec<u8> {
    let DeleteKind::Vector { offset, length } = read.task.deletes[0].kind else {
        panic!("{:?} is no deletion vector", read.task.deletes);
    };
    let (from, to) = (offset as usize + 8, (offset + length) as usize - 4);
    read.delete_bytes[from..to].to_vec()
}

/// Reads a data file under a deletion vector of this bitmap, whatever it is.
pub(super) fn sealed_bitmap(read: &Read, bitmap: &[u8]) -> bool {
    let body = [&VECTOR_MAGIC, bitmap].concat();
    let mut crc = flate2::Crc::new();
    crc.update(&body);
    let length = u32::try_from(body.len()).unwrap().to_be_bytes();
    let blob = [&length[..], &body, &crc.sum().to_be_bytes()].concat();
    let length = blob.len() as u64;
    let delete = DeleteFile {
        bytes: length,
        kind: DeleteKind::Vector { offset: 0, length },
        ..DeleteFile::clone(&read.task.deletes[0])
    };
    deleting(read, delete, blob.into())
}

fn deleting(read: &Read, delete: DeleteFile, bytes: Bytes) -> bool {
    let path = delete.path.clone();
    let mut task = read.task.clone();
    task.deletes = vec![Arc::new(delete)];
    let files = [
        (task.file.path.clone(), read.data_bytes.clone()),
        (path, bytes),
    ];
    rows(read, task, files.into(), &[])
}

/// Reads every column of a data file.
pub(super) fn data_file(read: &Read, bytes: &[u8]) -> bool {
    let mut task = read.task.clone();
    Arc::make_mut(&mut task.file).bytes = bytes.len() as u64;
    let files = [(task.file.path.clone(), Bytes::copy_from_slice(bytes))];
    let columns = read.schema.as_struct().fields().iter();
    let columns: Vec<i32> = columns.map(|field| field.id).collect();
    rows(read, task, files.into(), &columns)
}

fn rows(read: &Read, task: FileTask, files: HashMap<String, Bytes>, columns: &[i32]) -> bool {
    let Ok(spec) = ReadSpec::new(read.schema.clone(), columns) else {
        return false;
    };
    let spec = spec.with_schemas(read.schemas.iter().cloned());
    let source = Files {
        identity: Identity::apart(),
        files,
    };
    let batches = RowReader::new(Arc::new(source), spec);
    let batches = batches.read(stream::iter([Ok(task)]));
    RUNTIME
        .block_on(batches.try_for_each(|batch| async {
            drop(batch);
            Ok(())
        }))
        .is_ok()
}

/// Plans a scan of the table that this metadata describes, for one of the table's conditions.
pub(super) fn metadata(fixture: &Fixture, bytes: &[u8]) -> bool {
    let number = WRITTEN.fetch_add(1, Ordering::Relaxed);
    let path = SCRATCH.path().join(format!("{number}.metadata.json"));
    std::fs::write(&path, bytes).unwrap();
    let location = path.to_str().unwrap().to_owned();
    let none = HashMap::new();
    let loading = floe_catalog::load_metadata(&location, &none, &fixture.store);
    let table = RUNTIME.block_on(loading);
    std::fs::remove_file(&path).unwrap();
    let Ok(table) = table else { return false };
    let schema = table.metadata().current_schema();
    let chosen = bytes.len() % fixture.conditions.len().max(1);
    let condition = fixture.conditions.get(chosen);
    let condition = condition.and_then(|text| floe_sql::parse_filter(text, schema).ok());
    planned(fixture, &table, condition)
}

/// Plans a scan of a table for the condition that this text may be.
pub(super) fn condition(fixture: &Fixture, text: &[u8]) -> bool {
    let text = String::from_utf8_lossy(text);
    let schema = fixture.table.metadata().current_schema();
    match floe_sql::parse_filter(&text, schema) {
        Ok(condition) => planned(fixture, &fixture.table, Some(condition)),
        Err(_) => false,
    }
}

fn planned(fixture: &Fixture, table: &iceberg::table::Table, filter: Option<Predicate>) -> bool {
    let request = ScanRequest {
        filter,
        ..ScanRequest::default()
    };
    match Scan::new(&fixture.store, table, request) {
        Ok(scan) => RUNTIME.block_on(scan.plan_files()).is_ok(),
        Err(_) => false,
    }
}

/// Files in memory.
struct Files {
    identity: Identity,
    files: HashMap<String, Bytes>,
}

impl fmt::Debug for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.files.keys()).finish()
    }
}

impl Source for Files {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn open(&self, location: &str, _: u64) -> Result<Arc<dyn Bytewise>> {
        let bytes = self.files.get(location).cloned();
        Ok(Arc::new(File(bytes.unwrap_or_default())))
    }

    fn whole_file_bytes(&self) -> u64 {
        1 << 20
    }
}

#[derive(Debug)]
struct File(Bytes);

#[async_trait::async_trait]
impl Bytewise for File {
    async fn read_ranges(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let length = self.0.len() as u64;
        let cut = |range: &Range<u64>| match range.start <= range.end && range.end <= length {
            true => Ok(self.0.slice(range.start as usize..range.end as usize)),
            false => Err(Error::new(ErrorKind::Read, format!("no bytes {range:?}"))),
        };
        ranges.iter().map(cut).collect()
    }
}
