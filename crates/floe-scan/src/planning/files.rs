//! The data files of one manifest: pruned by partition, then by metrics, and matched with their deletes.

use std::cell::OnceCell;
use std::sync::Arc;

use iceberg::spec::{DataContentType, ManifestFile, Struct};

use super::context::{Context, Fields, fields};
use super::deletes::{DataSide, DeleteIndex, Found, Gathering};
use super::equality::Metered;
use super::specs::{Constants, PartitionKey, Spec};
use crate::error::{Error, ErrorKind, Result};
use crate::manifest::{Live, Manifest};
use crate::predicate::{Both, MetricsKnowledge, PartitionKnowledge, Predicate};
use crate::task::{DataFile, DeleteFile, FileTask};

/// What a manifest gives to a plan.
#[derive(Debug, Default)]
pub(super) struct Planned {
    pub(super) tasks: Vec<FileTask>,
    /// Files that are not deleted.
    pub(super) files: u64,
    pub(super) pruned: u64,
    pub(super) bytes_pruned: u64,
}

/// What all files of one partition share.
struct Partition {
    values: Arc<Struct>,
    /// Only deletes are looked up by it.
    key: OnceCell<PartitionKey>,
    /// Whether the values are those of the spec's fields, each in its place.
    known: bool,
    rest: Rest,
    constants: Constants,
}

/// What is left of a predicate where something is known of the rows.
enum Rest {
    /// No row matches.
    Never,
    /// Every row does.
    Always,
    /// It depends on the row: on these fields too.
    Depends(Arc<Predicate>, Fields),
}

impl Rest {
    fn of(predicate: Predicate, context: &Context) -> Self {
        match predicate {
            Predicate::Constant(false) => Self::Never,
            Predicate::Constant(true) => Self::Always,
            other => {
                let fields = fields(&context.schema, &other.columns());
                Self::Depends(Arc::new(other), fields)
            }
        }
    }
}

/// Plans the data files of a manifest.
pub(super) fn plan(
    context: &Context,
    listed: &ManifestFile,
    manifest: &Manifest,
    deletes: &DeleteIndex,
) -> Result<Planned> {
    let spec = spec_of(context, listed)?;
    let mut partitions = Partitions::new(context, spec, manifest);
    let mut planned = Planned::default();
    for live in manifest.live(listed) {
        let live = live.map_err(|damage| damage.error(&what(context, listed)))?;
        if live.entry.content != DataContentType::Data {
            let found = "is listed as a delete file among data files";
            return Err(corrupt(
                context,
                &format!(
                    "{} {found} in the manifest {}",
                    live.path(),
                    listed.manifest_path
                ),
            ));
        }
        planned.files += 1;
        let partition = partitions.get(live)?;
        let Some(residual) = residual(context, spec, partition, live) else {
            planned.pruned += 1;
            planned.bytes_pruned += live.entry.bytes;
            continue;
        };
        let deletes = match deletes.is_live() {
            true => deletes_of(spec, partition, live, deletes)
                .map_err(|found| corrupt(context, &found))?,
            false => Vec::new(),
        };
        planned.tasks.push(FileTask {
            file: Arc::new(data_file(context, spec, partition, live)),
            deletes,
            residual,
            constants: partition.constants.clone(),
        });
    }
    Ok(planned)
}

/// Adds the delete files of a manifest to those gathered.
pub(super) fn gather(
    context: &Context,
    listed: &ManifestFile,
    manifest: &Manifest,
    gathering: &mut Gathering<'_>,
) -> Result<()> {
    let spec = spec_of(context, listed)?;
    let places = spec.places(manifest.partition_columns());
    let mut keys: Vec<Option<PartitionKey>> = vec![None; manifest.partitions().len()];
    for live in manifest.live(listed) {
        let live = live.map_err(|damage| damage.error(&what(context, listed)))?;
        let number = live.entry.partition as usize;
        let key = keys[number].get_or_insert_with(|| {
            let values = aligned(&manifest.partitions()[number], places.as_deref());
            spec.key(&values)
        });
        gathering.add(live, &listed.manifest_path, spec, key)?;
    }
    Ok(())
}

fn spec_of<'a>(context: &'a Context, listed: &ManifestFile) -> Result<&'a Spec> {
    context.specs.get(listed.partition_spec_id).ok_or_else(|| {
        let id = listed.partition_spec_id;
        corrupt(
            context,
            &format!(
                "the manifest {} has the unknown partition spec {id}",
                listed.manifest_path
            ),
        )
    })
}

fn what(context: &Context, listed: &ManifestFile) -> String {
    format!(
        "the manifest {} of {}",
        listed.manifest_path,
        context.table.identifier()
    )
}

fn corrupt(context: &Context, found: &str) -> Error {
    let table = context.table.identifier();
    Error::new(
        ErrorKind::Corrupt,
        format!("can't plan the scan of {table}: {found}"),
    )
}

/// Partition values in the order of the spec's fields, or as the manifest has them if it lacks one.
fn aligned(values: &Arc<Struct>, places: Option<&[usize]>) -> Arc<Struct> {
    match places {
        Some(places) if !places.iter().copied().eq(0..values.fields().len()) => {
            let value = |place: &usize| values.fields().get(*place).cloned().flatten();
            Arc::new(Struct::from_iter(places.iter().map(value)))
        }
        _ => values.clone(),
    }
}

/// Partitions of a manifest by number, looked into when the first file of each comes.
struct Partitions<'a> {
    context: &'a Context,
    spec: &'a Spec,
    manifest: &'a Manifest,
    places: Option<Vec<usize>>,
    known: Vec<Option<Partition>>,
}

impl<'a> Partitions<'a> {
    fn new(context: &'a Context, spec: &'a Spec, manifest: &'a Manifest) -> Self {
        Self {
            context,
            spec,
            manifest,
            places: spec.places(manifest.partition_columns()),
            known: manifest.partitions().iter().map(|_| None).collect(),
        }
    }

    fn get(&mut self, live: Live<'_>) -> Result<&Partition> {
        let number = live.entry.partition as usize;
        let partition = match self.known[number].take() {
            Some(known) => known,
            None => self.look(number, live)?,
        };
        Ok(self.known[number].insert(partition))
    }

    fn look(&self, number: usize, live: Live<'_>) -> Result<Partition> {
        let (context, spec) = (self.context, self.spec);
        let values = aligned(&self.manifest.partitions()[number], self.places.as_deref());
        let known = self.places.is_some();
        let rest = match &context.predicate {
            None => Rest::Always,
            Some(predicate) if known => {
                let knowledge = PartitionKnowledge::new(&context.schema, &spec.spec, &values);
                Rest::of(predicate.residual(&knowledge), context)
            }
            Some(predicate) => Rest::of(Predicate::clone(predicate), context),
        };
        let constants = match known {
            true => spec.constants(&values).ok_or_else(|| {
                let found = "has a partition value that is not of its column's type";
                corrupt(context, &format!("the data file {} {found}", live.path()))
            })?,
            false => Constants::default(),
        };
        Ok(Partition {
            key: OnceCell::new(),
            values,
            known,
            rest,
            constants,
        })
    }
}

/// What is left to check on the rows of a file, which may be nothing; `None` if none can match.
#[expect(clippy::option_option, reason = "pruned, and nothing left to check")]
fn residual(
    context: &Context,
    spec: &Spec,
    partition: &Partition,
    live: Live<'_>,
) -> Option<Option<Arc<Predicate>>> {
    let (predicate, fields) = match &partition.rest {
        Rest::Never => return None,
        Rest::Always => return Some(None),
        Rest::Depends(predicate, fields) => (predicate, fields),
    };
    let Metered { rows, metrics } = Metered::of(live, fields);
    if metrics.is_empty() {
        return Some(Some(predicate.clone()));
    }
    let by_metrics = MetricsKnowledge::of(rows, &metrics);
    let reduced = match partition.known {
        true => {
            let by_partition =
                PartitionKnowledge::new(&context.schema, &spec.spec, &partition.values);
            predicate.residual(&Both(&by_partition, &by_metrics))
        }
        false => predicate.residual(&by_metrics),
    };
    match reduced {
        Predicate::Constant(false) => None,
        Predicate::Constant(true) => Some(None),
        reduced => Some(Some(Arc::new(reduced))),
    }
}

fn deletes_of(
    spec: &Spec,
    partition: &Partition,
    live: Live<'_>,
    deletes: &DeleteIndex,
) -> Found<Vec<Arc<DeleteFile>>> {
    deletes.of(&DataSide {
        path: live.path(),
        sequence_number: live.data_sequence_number,
        partition: partition.key.get_or_init(|| spec.key(&partition.values)),
        metrics: &|fields| Metered::of(live, fields),
    })
}

fn data_file(context: &Context, spec: &Spec, partition: &Partition, live: Live<'_>) -> DataFile {
    DataFile {
        path: live.path().to_string(),
        format: live.entry.format,
        bytes: live.entry.bytes,
        rows: live.entry.rows,
        spec_id: spec.spec.spec_id(),
        partition: partition.values.clone(),
        data_sequence_number: live.data_sequence_number,
        file_sequence_number: live.file_sequence_number,
        first_row_id: live.first_row_id,
        column_sizes: live.manifest.metrics().column_sizes(live.row),
        encrypted: live.entry.encrypted,
        metrics: Metered::of(live, &context.wanted).metrics,
    }
}
