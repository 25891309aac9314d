//! Opening a file: its footer, its deletes, how it is read, and which of its row groups.

use std::sync::{Arc, Mutex, PoisonError};

use arrow_schema::DataType;
use iceberg::spec::{DataFileFormat, Type};
use parquet::schema::types::SchemaDescPtr;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::deletes::{self, Held};
use super::footer::{self, Approach};
use super::group::{Group, OpenFile};
use super::guess;
use super::indexes::Narrowing;
use super::layout::{FileSchema, Wanted};
use super::needs::{Asked, Needs, Paths, Reading};
use super::offsets::Offsets;
use super::pieces::Pieces;
use super::prune::{self, Survivor};
use super::source::Source;
use super::spec::ReadSpec;
use crate::decoded::FileKey;
use crate::error::{Error, ErrorKind, Result};
use crate::task::FileTask;

/// Schemas of files, and ways to read them, that a scan remembers; files of a table are mostly of one or two.
const REMEMBERED: usize = 16;

/// What all files of a scan share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) source: Arc<dyn Source>,
    pub(super) spec: ReadSpec,
    pub(super) paths: Paths,
    /// One permit for each batch that may be decoded at once.
    pub(super) decoders: Arc<Semaphore>,
    pub(super) held: Held,
    schemas: Mutex<Vec<Arc<FileSchema>>>,
    needs: Mutex<Vec<(Asked, Arc<Needs>)>>,
    readings: Mutex<Vec<Remembered>>,
}

#[derive(Debug)]
struct Remembered {
    file: Option<Arc<FileSchema>>,
    asked: Asked,
    reading: Arc<Reading>,
}

impl Shared {
    pub(super) fn new(source: Arc<dyn Source>, spec: ReadSpec) -> Self {
        Self {
            source,
            paths: Paths::new(&spec.schema),
            decoders: Arc::new(Semaphore::new(spec.limits.decoders.max(1))),
            spec,
            held: Held::default(),
            schemas: Mutex::default(),
            needs: Mutex::default(),
            readings: Mutex::default(),
        }
    }

    /// The schema of a file, taken apart once for all files that share it.
    pub(super) fn file_schema(
        &self,
        location: &str,
        parquet: &SchemaDescPtr,
    ) -> Result<Arc<FileSchema>> {
        let mut schemas = self.schemas.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = schemas.iter().find(|known| known.is_of(parquet)) {
            return Ok(known.clone());
        }
        let schema = Arc::new(FileSchema::new(location, parquet.clone(), &self.spec)?);
        remember(&mut schemas, schema.clone());
        Ok(schema)
    }

    fn needs(&self, asked: &Asked) -> Result<Arc<Needs>> {
        let mut known = self.needs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, needs)) = known.iter().find(|(same, _)| same == asked) {
            return Ok(needs.clone());
        }
        let needs = Arc::new(Needs::new(&self.spec, &self.paths, asked)?);
        remember(&mut known, (asked.clone(), needs.clone()));
        Ok(needs)
    }

    fn reading(
        &self,
        location: &str,
        file: Option<&Arc<FileSchema>>,
        asked: Asked,
    ) -> Result<Arc<Reading>> {
        let mut readings = self.readings.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |known: &&Remembered| {
            known.asked == asked && known.file.as_ref().map(Arc::as_ptr) == file.map(Arc::as_ptr)
        };
        if let Some(known) = readings.iter().find(same) {
            return Ok(known.reading.clone());
        }
        let needs = self.needs(&asked)?;
        let reading = Arc::new(Reading::new(location, file.map(Arc::as_ref), needs)?);
        let remembered = Remembered {
            file: file.cloned(),
            asked,
            reading: reading.clone(),
        };
        remember(&mut readings, remembered);
        Ok(reading)
    }
}

/// Adds to what is remembered, in place of the oldest if it is too much.
fn remember<T>(known: &mut Vec<T>, one: T) {
    if known.len() == REMEMBERED {
        known.remove(0);
    }
    known.push(one);
}

/// Opens a file: its row groups that may hold rows, in order.
pub(super) async fn open(
    shared: Arc<Shared>,
    task: FileTask,
    reserved: Option<OwnedSemaphorePermit>,
) -> Result<Vec<Group>> {
    readable(&task)?;
    let file = task.file.clone();
    let asked = Asked {
        residual: task
            .residual
            .as_ref()
            .map(|residual| residual.columns())
            .unwrap_or_default(),
        equality: deletes::equality_ids(&task),
    };
    let needs = shared.needs(&asked)?;
    let bytes = shared.source.open(&file.path, file.bytes)?;
    if needs.wanted.is_empty() && task.residual.is_none() {
        let deletes = deletes::load(&shared, &task).await?;
        let reading = shared.reading(&file.path, None, asked)?;
        return Ok(counted(OpenFile {
            batch_rows: batch_rows(&shared.spec, &needs),
            shared,
            task,
            footer: None,
            bytes,
            reading,
            deletes,
            _reserved: None,
        }));
    }

    let key = FileKey::new(shared.source.identity(), &file.path, Some(file.bytes));
    let approach = approach(&shared, &task, &needs);
    let (opened, deletes) = futures::try_join!(
        footer::open(&key, file.bytes, bytes.as_ref(), approach),
        deletes::load(&shared, &task),
    )?;
    let footer = opened.footer;
    let held = u64::try_from(footer.file_metadata().num_rows()).unwrap_or_default();
    if held != file.rows {
        return Err(Error::new(
            ErrorKind::Corrupt,
            format!(
                "{} holds {held} rows, but its manifest says {}",
                file.path, file.rows
            ),
        ));
    }
    let schema = shared.file_schema(&file.path, &footer.file_metadata().schema_descr_ptr())?;
    let survivors = prune::groups(&shared.spec, &task, &footer, &schema)?;
    // Where statistics settle a condition, its columns need not be read for it.
    let residuals = survivors.iter().filter_map(|group| group.residual.as_ref());
    let mut residual: Vec<i32> = residuals.flat_map(|residual| residual.columns()).collect();
    residual.sort_unstable();
    residual.dedup();
    let equality = asked.equality;
    let reading = shared.reading(&file.path, Some(&schema), Asked { residual, equality })?;
    let narrowing = Narrowing {
        spec: &shared.spec,
        task: &task,
        footer: &footer,
        schema: &schema,
        leaves: &reading.leaves(),
    };
    let survivors = narrowing
        .narrow(survivors, bytes.as_ref(), opened.pieces.clone())
        .await?;
    let open = Arc::new(OpenFile {
        batch_rows: batch_rows(&shared.spec, &reading.needs),
        shared,
        task,
        footer: Some(footer),
        bytes,
        reading,
        deletes,
        _reserved: reserved,
    });
    let group = |survivor: Survivor| Group {
        file: open.clone(),
        index: survivor.index,
        first: survivor.first,
        rows: survivor.rows,
        residual: survivor.residual,
        selected: survivor.selected,
        offsets: survivor.offsets,
        pieces: opened.pieces.clone(),
    };
    Ok(survivors.into_iter().map(group).collect())
}

/// What a task needs that this reader can't do.
fn readable(task: &FileTask) -> Result<()> {
    let unsupported = |location: &str, what: &str| {
        Err(Error::new(
            ErrorKind::Unsupported,
            format!("can't read {location}: {what}"),
        ))
    };
    let file = &task.file;
    if file.encrypted {
        return unsupported(&file.path, "it is encrypted");
    }
    if file.format != DataFileFormat::Parquet {
        let what = format!("data files of format {} are not supported", file.format);
        return unsupported(&file.path, &what);
    }
    for delete in &task.deletes {
        if delete.encrypted {
            return unsupported(&delete.path, "it is encrypted");
        }
        if let Err(what) = deletes::readable(delete) {
            return unsupported(&delete.path, &what);
        }
    }
    Ok(())
}

fn approach(shared: &Shared, task: &FileTask, needs: &Needs) -> Approach {
    let leaves = |field: &Wanted| leaf_ids(field.field.id, &field.field.field_type);
    let wanted: Vec<i32> = needs.wanted.iter().flat_map(leaves).collect();
    let columns = shared.spec.schema.as_struct().fields();
    let order: Vec<i32> = columns
        .iter()
        .flat_map(|field| leaf_ids(field.id, &field.field_type))
        .collect();
    let whole = shared.source.whole_file_bytes();
    guess::approach(&task.file, whole, &order, &wanted)
}

/// Ids of the primitive fields of a field, in the order of a file's columns.
fn leaf_ids(id: i32, kind: &Type) -> Vec<i32> {
    match kind {
        Type::Primitive(_) => vec![id],
        Type::Struct(fields) => {
            let fields = fields.fields().iter();
            fields.flat_map(|f| leaf_ids(f.id, &f.field_type)).collect()
        }
        Type::List(list) => leaf_ids(list.element_field.id, &list.element_field.field_type),
        Type::Map(map) => [&map.key_field, &map.value_field]
            .into_iter()
            .flat_map(|f| leaf_ids(f.id, &f.field_type))
            .collect(),
    }
}

/// A file that nothing is read of: its rows are counted, and numbered if that is asked for.
fn counted(file: OpenFile) -> Vec<Group> {
    let rows = usize::try_from(file.task.file.rows).unwrap_or(usize::MAX);
    let group = Group {
        file: Arc::new(file),
        index: 0,
        first: 0,
        rows,
        residual: None,
        selected: None,
        offsets: Offsets::default(),
        pieces: Pieces::default(),
    };
    vec![group]
}

/// Rows that make a batch of the wanted size, by the width of their columns.
fn batch_rows(spec: &ReadSpec, needs: &Needs) -> usize {
    let limits = &spec.limits;
    if needs.wanted.is_empty() && spec.metadata.is_empty() {
        return usize::MAX;
    }
    let width: u64 = needs.wanted.iter().map(|want| width(&want.arrow)).sum();
    let fitting = limits.batch_bytes / width.max(1);
    let fewest = 1024.min(limits.batch_rows.max(1));
    usize::try_from(fitting)
        .unwrap_or(usize::MAX)
        .clamp(fewest, limits.batch_rows.max(1))
}

/// Bytes of a value, roughly.
fn width(arrow: &DataType) -> u64 {
    match arrow {
        DataType::Struct(fields) => fields.iter().map(|field| width(field.data_type())).sum(),
        DataType::List(field) | DataType::Map(field, _) => 4 * width(field.data_type()) + 4,
        DataType::FixedSizeBinary(bytes) => u64::try_from(*bytes).unwrap_or(1),
        other => other.primitive_width().map_or(24, |width| width as u64),
    }
}

/// Bytes to reserve before a file is opened: all of a small one, since it may be read whole.
pub(super) fn small_file_bytes(shared: &Shared, task: &FileTask) -> u64 {
    let bytes = task.file.bytes;
    match bytes <= shared.source.whole_file_bytes() {
        true => bytes,
        false => 0,
    }
}
