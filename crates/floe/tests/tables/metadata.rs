//! Metadata tables of the tables that other engines wrote: each is read whole for each state, and what they tell agrees
//! with each other, with the plan of a scan, and with what the writer says of its snapshot.

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, RecordBatch};
use floe::{Floe, Table};
use futures::{StreamExt, TryStreamExt};

use super::fixtures::{FixtureRef, FixtureSet, FixtureTable};

const METADATA_TABLES: [&str; 9] = [
    "snapshots",
    "refs",
    "history",
    "manifests",
    "files",
    "data_files",
    "delete_files",
    "entries",
    "partitions",
];

/// Tables that iceberg-rust may fail to open.
const MAY_REFUSE: [&str; 2] = ["java.defaults", "py.p_unknown"];

async fn agree_with_each_other(writer: &str) {
    let set = FixtureSet::of(writer);
    let lake = set.open().await;
    let floe = &lake.floe;
    let judged: Vec<(usize, Vec<String>)> = futures::stream::iter(set.tables())
        .map(|table| judge(floe, table))
        .buffered(4)
        .collect()
        .await;
    let questions: usize = judged.iter().map(|(questions, _)| questions).sum();
    let wrong: Vec<String> = judged.into_iter().flat_map(|(_, wrong)| wrong).collect();
    assert!(
        wrong.is_empty(),
        "of {questions} numbers of tables by {writer} these differ:\n{}",
        wrong.join("\n")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn metadata_tables_of_spark_agree() {
    agree_with_each_other("spark").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn metadata_tables_of_pyiceberg_agree() {
    agree_with_each_other("pyiceberg").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn metadata_tables_of_duckdb_agree() {
    agree_with_each_other("duckdb").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn metadata_tables_of_java_agree() {
    agree_with_each_other("java").await;
}

/// How many numbers were compared, and what differs.
async fn judge(floe: &Floe, fixture: &FixtureTable) -> (usize, Vec<String>) {
    let table = match floe.table(&fixture.metadata_location()).await {
        Ok(table) => table,
        Err(_) if MAY_REFUSE.contains(&fixture.table.as_str()) => return (0, Vec::new()),
        Err(error) => panic!("{}: {error:?}", fixture.table),
    };
    let mut questions = 0;
    let mut wrong = Vec::new();
    for state in &fixture.refs {
        let asked = Asked {
            floe,
            table: &table,
            fixture,
            state,
        };
        for (what, found, expected) in asked.numbers().await {
            questions += 1;
            if found != expected {
                let (table, state) = (&fixture.table, &state.name);
                wrong.push(format!(
                    "{table} at {state}: {what}: {found}, not {expected}"
                ));
            }
        }
    }
    (questions, wrong)
}

struct Asked<'a> {
    floe: &'a Floe,
    table: &'a Table,
    fixture: &'a FixtureTable,
    state: &'a FixtureRef,
}

impl Asked<'_> {
    /// A metadata table of the state, as SQL names it.
    fn named(&self, metadata: &str) -> String {
        let name = self.fixture.sql_name();
        let name = name.trim_end_matches('"');
        match self.state.at() {
            floe::At::Main => format!("{name}${metadata}\""),
            floe::At::Ref(at) => format!("{name}$branch_{at}${metadata}\""),
            floe::At::Snapshot(id) => format!("{name}$snapshot_{id}${metadata}\""),
            floe::At::Time(_) => panic!("no state of a fixture is a time"),
        }
    }

    async fn rows(&self, sql: &str) -> Vec<RecordBatch> {
        let asked = async {
            let stream = self.floe.sql(sql).await?.execute_stream().await;
            let rows = async { stream?.try_collect::<Vec<_>>().await };
            rows.await.map_err(floe::Error::from)
        };
        let rows = asked.await;
        rows.unwrap_or_else(|error| panic!("{sql}: {error:?}"))
    }

    /// The columns of the one row that an aggregate of whole numbers gives; NULL is 0.
    async fn row(&self, select: &str, metadata: &str) -> Vec<i64> {
        let sql = format!("SELECT {select} FROM {}", self.named(metadata));
        let batches = self.rows(&sql).await;
        let batch = batches.iter().find(|batch| batch.num_rows() == 1).unwrap();
        let number = |column: &arrow_array::ArrayRef| {
            let numbers = column.as_primitive::<Int64Type>();
            if numbers.is_null(0) {
                0
            } else {
                numbers.value(0)
            }
        };
        batch.columns().iter().map(number).collect()
    }

    /// What is told twice: what it is, and both answers.
    async fn numbers(&self) -> Vec<(String, i64, i64)> {
        let mut numbers = Vec::new();
        for metadata in METADATA_TABLES {
            let rows = self
                .rows(&format!("SELECT * FROM {}", self.named(metadata)))
                .await;
            let rows: usize = rows.iter().map(RecordBatch::num_rows).sum();
            let counted = self.row("count(*)", metadata).await;
            let what = format!("rows of {metadata} and their count");
            numbers.push((what, rows as i64, counted[0]));
        }
        numbers.extend(self.of_the_table().await);
        numbers.extend(self.of_the_state().await);
        numbers.extend(self.of_the_plan().await);
        numbers
    }

    async fn of_the_table(&self) -> Vec<(String, i64, i64)> {
        let metadata = self.table.iceberg().metadata();
        let counted = |what: &str, found: i64, expected: usize| {
            (what.to_string(), found, i64::try_from(expected).unwrap())
        };
        let refs = self.table.refs().unwrap().len();
        vec![
            counted(
                "snapshots",
                self.row("count(*)", "snapshots").await[0],
                metadata.snapshots().len(),
            ),
            counted("refs", self.row("count(*)", "refs").await[0], refs),
            counted(
                "history",
                self.row("count(*)", "history").await[0],
                metadata.history().len(),
            ),
        ]
    }

    /// Manifests, entries, files and partitions against each other.
    async fn of_the_state(&self) -> Vec<(String, i64, i64)> {
        let manifests = "sum(added_data_files_count), sum(existing_data_files_count), sum(deleted_data_files_count), \
                         sum(added_delete_files_count), sum(existing_delete_files_count), sum(deleted_delete_files_count)";
        let status = |content: &str, status: i32| {
            format!(
                "sum(CASE WHEN data_file['content'] {content} AND status = {status} THEN 1 ELSE 0 END)"
            )
        };
        let entries: Vec<String> = ["= 0", "> 0"]
            .iter()
            .flat_map(|content| [1, 0, 2].map(|number| status(content, number)))
            .collect();
        let partitions = "sum(record_count), sum(file_count), sum(total_data_file_size_in_bytes), \
                          sum(position_delete_record_count), sum(position_delete_file_count), \
                          sum(equality_delete_record_count), sum(equality_delete_file_count)";
        let of = |content: i32, value: &str| {
            format!("sum(CASE WHEN content = {content} THEN {value} ELSE 0 END)")
        };
        let files = [
            of(0, "record_count"),
            of(0, "1"),
            of(0, "file_size_in_bytes"),
            of(1, "record_count"),
            of(1, "1"),
            of(2, "record_count"),
            of(2, "1"),
        ];
        let mut numbers = Vec::new();
        let manifests = self.row(manifests, "manifests").await;
        let entries = self.row(&entries.join(", "), "entries").await;
        for (place, (one, other)) in manifests.into_iter().zip(entries).enumerate() {
            numbers.push((
                format!("count {place} of manifests, and of entries"),
                one,
                other,
            ));
        }
        let partitions = self.row(partitions, "partitions").await;
        let files = self.row(&files.join(", "), "files").await;
        for (place, (one, other)) in partitions.into_iter().zip(files).enumerate() {
            numbers.push((
                format!("sum {place} of partitions, and of files"),
                one,
                other,
            ));
        }
        let all = self.row("count(*)", "files").await[0];
        let data = self.row("count(*)", "data_files").await[0];
        let deletes = self.row("count(*)", "delete_files").await[0];
        numbers.push(("files, and both kinds".to_string(), all, data + deletes));
        // No sequence number is unknown once it is inherited.
        let known = "count(sequence_number) - count(*), count(file_sequence_number) - count(*)";
        let unknown = self.row(known, "entries").await;
        numbers.push(("unknown sequence numbers".to_string(), unknown[0], 0));
        numbers.push(("unknown file sequence numbers".to_string(), unknown[1], 0));
        numbers
    }

    /// Data files against those that a scan reads, and against the snapshot's summary.
    async fn of_the_plan(&self) -> Vec<(String, i64, i64)> {
        let found = self.row(
            "count(*), sum(record_count), sum(file_size_in_bytes)",
            "data_files",
        );
        let found = found.await;
        let mut numbers = Vec::new();
        // A plan refuses formats that can't be read.
        if let Ok(planned) = self.table.files(self.state.at()).await {
            let rows: u64 = planned.iter().map(|file| file.rows).sum();
            let bytes: u64 = planned.iter().map(|file| file.bytes).sum();
            let planned = [planned.len() as u64, rows, bytes];
            for (place, (one, other)) in found.iter().zip(planned).enumerate() {
                let what = format!("sum {place} of data files, and of the plan");
                numbers.push((what, *one, i64::try_from(other).unwrap()));
            }
        }
        let scan = self.table.scan().at(self.state.at()).build().unwrap();
        let summary = scan.snapshot().map(|snapshot| snapshot.summary());
        let told = |name: &str| {
            summary?
                .additional_properties
                .get(name)?
                .parse::<i64>()
                .ok()
        };
        for (name, found) in [("total-data-files", found[0]), ("total-records", found[1])] {
            if let Some(told) = told(name) {
                numbers.push((format!("{name} of the summary"), found, told));
            }
        }
        numbers
    }
}
