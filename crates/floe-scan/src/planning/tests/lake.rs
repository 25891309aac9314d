//! Tables in memory that consist of metadata only: `id long, part string, v double, name string`.
//! Spec 0 is partitioned by `part`, spec 1 is not partitioned.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use floe_store::{Store, StoreConfig};
use iceberg::io::FileIO;
use iceberg::spec::{
    DataContentType, DataFile, DataFileBuilder, DataFileFormat, Datum, Literal,
    ManifestContentType, ManifestFile, ManifestListWriter, ManifestWriterBuilder, PartitionSpec,
    Schema, Struct, TableMetadata,
};
use iceberg::table::Table;
use iceberg::{Runtime, TableIdent};
use serde_json::json;

use crate::error::Result;
use crate::planning::{Plan, PlanSummary, Planner};
use crate::predicate::Predicate;
use crate::request::At;
use crate::snapshot::Position;
use crate::task::FileTask;

const SNAPSHOT: i64 = 1;

pub(super) struct Lake {
    io: FileIO,
    pub(super) manifests: Vec<ManifestFile>,
    sequence_number: i64,
    version: u8,
}

/// A file, to be finished with what the test is about.
pub(super) fn file(content: DataContentType, path: &str) -> DataFileBuilder {
    let mut builder = DataFileBuilder::default();
    builder
        .content(content)
        .file_path(path.to_string())
        .file_format(DataFileFormat::Parquet)
        .record_count(10)
        .file_size_in_bytes(100);
    builder
}

pub(super) fn data(path: &str) -> DataFileBuilder {
    file(DataContentType::Data, path)
}

/// A partition of spec 0.
pub(super) fn part(value: &str) -> Struct {
    Struct::from_iter([Some(Literal::string(value))])
}

/// Metrics of one column of which every row has a value.
pub(super) fn between(builder: &mut DataFileBuilder, id: i32, low: Datum, high: Datum) {
    builder
        .value_counts(HashMap::from([(id, 10)]))
        .null_value_counts(HashMap::from([(id, 0)]))
        .nan_value_counts(HashMap::from([(id, 0)]))
        .lower_bounds(HashMap::from([(id, low)]))
        .upper_bounds(HashMap::from([(id, high)]));
}

impl Lake {
    pub(super) fn new(version: u8) -> Self {
        Self {
            io: FileIO::new_with_memory(),
            manifests: Vec::new(),
            sequence_number: 100,
            version,
        }
    }

    /// Adds a manifest of files with their data sequence numbers.
    pub(super) async fn add(
        &mut self,
        spec_id: i32,
        content: ManifestContentType,
        files: impl IntoIterator<Item = (i64, DataFileBuilder)>,
    ) {
        let path = format!("memory:///t/metadata/m{}.avro", self.manifests.len());
        let metadata = self.metadata();
        let spec: PartitionSpec = metadata
            .partition_spec_by_id(spec_id)
            .unwrap()
            .as_ref()
            .clone();
        let schema: Arc<Schema> = metadata.current_schema().clone();
        let output = self.io.new_output(&path).unwrap();
        let builder = ManifestWriterBuilder::new(output, Some(SNAPSHOT), schema, spec);
        let mut writer = match (content, self.version) {
            (ManifestContentType::Data, 3) => builder.build_v3_data(),
            (ManifestContentType::Data, _) => builder.build_v2_data(),
            (ManifestContentType::Deletes, 3) => builder.build_v3_deletes(),
            (ManifestContentType::Deletes, _) => builder.build_v2_deletes(),
        };
        for (sequence_number, mut file) in files {
            let file: DataFile = file.partition_spec_id(spec_id).build().unwrap();
            writer.add_file(file, sequence_number).unwrap();
        }
        let mut manifest = writer.write_manifest_file().await.unwrap();
        manifest.sequence_number = self.sequence_number;
        self.manifests.push(manifest);
    }

    pub(super) async fn data(
        &mut self,
        spec_id: i32,
        files: impl IntoIterator<Item = (i64, DataFileBuilder)>,
    ) {
        self.add(spec_id, ManifestContentType::Data, files).await;
    }

    pub(super) async fn deletes(
        &mut self,
        spec_id: i32,
        files: impl IntoIterator<Item = (i64, DataFileBuilder)>,
    ) {
        self.add(spec_id, ManifestContentType::Deletes, files).await;
    }

    pub(super) fn metadata(&self) -> TableMetadata {
        let mut json = json!({
            "format-version": self.version,
            "table-uuid": uuid::Uuid::new_v4().to_string(),
            "location": "memory:///t",
            "last-sequence-number": self.sequence_number,
            "last-updated-ms": 1_700_000_000_000i64,
            "last-column-id": 4,
            "current-schema-id": 0,
            "schemas": [{"type": "struct", "schema-id": 0, "fields": [
                {"id": 1, "name": "id", "required": false, "type": "long"},
                {"id": 2, "name": "part", "required": false, "type": "string"},
                {"id": 3, "name": "v", "required": false, "type": "double"},
                {"id": 4, "name": "name", "required": false, "type": "string"},
            ]}],
            "default-spec-id": 0,
            "partition-specs": [
                {"spec-id": 0, "fields": [{"name": "part", "transform": "identity", "source-id": 2, "field-id": 1000}]},
                {"spec-id": 1, "fields": []},
            ],
            "last-partition-id": 1000,
            "default-sort-order-id": 0,
            "sort-orders": [{"order-id": 0, "fields": []}],
            "properties": {},
            "current-snapshot-id": SNAPSHOT,
            "snapshots": [{
                "snapshot-id": SNAPSHOT,
                "sequence-number": self.sequence_number,
                "timestamp-ms": 1_700_000_000_000i64,
                "manifest-list": "memory:///t/metadata/list.avro",
                "summary": {"operation": "append"},
                "schema-id": 0,
            }],
            "refs": {"main": {"snapshot-id": SNAPSHOT, "type": "branch"}},
        });
        if self.version == 3 {
            json["next-row-id"] = 1_000_000.into();
            json["snapshots"][0]["first-row-id"] = 0.into();
            json["snapshots"][0]["added-rows"] = 1_000_000.into();
        }
        serde_json::from_value(json).unwrap()
    }

    pub(super) async fn table(&self) -> Table {
        let list = "memory:///t/metadata/list.avro";
        let writer = self.io.new_output(list).unwrap().writer().await.unwrap();
        let number = self.sequence_number;
        let mut writer = match self.version {
            3 => ManifestListWriter::v3(writer, SNAPSHOT, None, number, Some(0)),
            _ => ManifestListWriter::v2(writer, SNAPSHOT, None, number),
        };
        writer
            .add_manifests(self.manifests.iter().cloned())
            .unwrap();
        writer.close().await.unwrap();
        Table::builder()
            .file_io(self.io.clone())
            .metadata(self.metadata())
            .identifier(TableIdent::from_strs(["ns", "t"]).unwrap())
            .runtime(Runtime::current())
            .build()
            .unwrap()
    }

    /// Where the bytes of a manifest are.
    pub(super) async fn damage(&self, manifest: usize) {
        let path = &self.manifests[manifest].manifest_path;
        let output = self.io.new_output(path).unwrap();
        output.write("no manifest".into()).await.unwrap();
    }

    pub(super) async fn planner(&self) -> Planner {
        let store = Store::open(StoreConfig::default()).unwrap();
        let position = Position::resolve(&self.table().await, &At::Main).unwrap();
        Planner::new(&store, &position)
    }

    pub(super) async fn start(&self, predicate: Option<Predicate>) -> Result<Plan> {
        self.planner()
            .await
            .matching(predicate.map(Arc::new))
            .start()
            .await
    }

    /// The plan's files by location.
    pub(super) async fn plan(
        &self,
        predicate: Option<Predicate>,
    ) -> Result<(Vec<FileTask>, PlanSummary)> {
        let (mut tasks, summary) = self.start(predicate).await?.collect().await?;
        tasks.sort_by(|a, b| a.file.path.cmp(&b.file.path));
        Ok((tasks, summary))
    }

    /// Which deletes each data file has, sorted.
    pub(super) async fn matched(&self) -> BTreeMap<String, Vec<String>> {
        let (tasks, _) = self.plan(None).await.unwrap();
        let names = |task: FileTask| {
            let mut deletes: Vec<_> = task.deletes.iter().map(|file| file.path.clone()).collect();
            deletes.sort();
            (task.file.path.clone(), deletes)
        };
        tasks.into_iter().map(names).collect()
    }
}

/// What [`Lake::matched`] should give.
pub(super) fn expected(files: &[(&str, &[&str])]) -> BTreeMap<String, Vec<String>> {
    let owned = |(path, deletes): &(&str, &[&str])| {
        let deletes = deletes.iter().map(ToString::to_string).collect();
        (path.to_string(), deletes)
    };
    files.iter().map(owned).collect()
}
