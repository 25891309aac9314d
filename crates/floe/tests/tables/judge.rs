//! Asks floe what a table's writer was asked, and says where the answers differ.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef};
use floe::{Floe, Table};
use futures::TryStreamExt;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::dialect;
use super::fixtures::{FixtureRef, FixtureSet, FixtureTable};
use super::rows::{self, Rows};

/// Longer than any of these small tables takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// Questions shown of those that got one answer.
const SHOWN: usize = 4;

/// Tables that a reader may refuse, if it names what it refuses: the ending of a file's name, and another word.
const MAY_REFUSE: [(&str, &str, &str); 5] = [
    ("t.fmt_avro", ".avro", "avro"),
    ("t.fmt_orc", ".orc", "orc"),
    ("t.eq_avro", ".avro", "avro"),
    ("py.p_unknown", ".json", "mystery4"),
    // iceberg-rust 0.10.1 loses initial defaults of this type when it reads the metadata.
    ("java.defaults", ".json", "timestamp_ns"),
];

/// What came of one table.
pub(super) struct Verdict {
    table: String,
    pub(super) questions: usize,
    /// What was answered wrongly, and to which questions.
    wrong: BTreeMap<String, Vec<String>>,
}

impl Verdict {
    pub(super) fn is_agreed(&self) -> bool {
        self.wrong.is_empty()
    }

    fn note(&mut self, question: String, answer: Answer) {
        self.questions += 1;
        if let Err(wrong) = answer {
            self.wrong.entry(wrong).or_default().push(question);
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.table)?;
        for (answer, questions) in &self.wrong {
            writeln!(f, "    {answer}")?;
            for question in questions.iter().take(SHOWN) {
                writeln!(f, "        {question}")?;
            }
            if let Some(more @ 1..) = questions.len().checked_sub(SHOWN) {
                writeln!(f, "        and {more} more")?;
            }
        }
        Ok(())
    }
}

/// `Err`: how it differs.
type Answer = Result<(), String>;

/// Judges every state of one table.
pub(super) async fn table(set: &FixtureSet, floe: &Floe, fixture: &FixtureTable) -> Verdict {
    let mut verdict = Verdict {
        table: fixture.table.clone(),
        questions: 0,
        wrong: BTreeMap::new(),
    };
    let table = match floe.table(&fixture.metadata_location()).await {
        Ok(table) => table,
        Err(error) => {
            let answer = forgive(&fixture.table, told(error));
            verdict.note("open".to_owned(), answer);
            return verdict;
        }
    };
    for state in &fixture.refs {
        let case = Arc::new(Case::new(set, floe, &table, fixture, state));
        for question in case.questions() {
            let case = case.clone();
            let label = format!("{}: {question}", state.name);
            let task = tokio::spawn(async move {
                let answer = case.ask(&question).await;
                answer.or_else(|wrong| forgive(&case.fixture.table, wrong))
            });
            let answer = match tokio::time::timeout(PATIENCE, task).await {
                Ok(Ok(answer)) => answer,
                Ok(Err(panic)) => Err(panic.to_string()),
                Err(_) => Err(format!("no answer within {PATIENCE:?}")),
            };
            verdict.note(label, answer);
        }
    }
    verdict
}

enum Question {
    /// All rows and columns.
    Rows,
    /// The number of rows, which manifests may tell.
    Count,
    /// Two columns, in another order.
    Projection,
    /// A few rows.
    Limit,
    /// All rows, with the columns that no table has but every one of format version 3 answers.
    Lineage,
    /// All rows, by SQL.
    SqlRows,
    /// The rows that a predicate keeps.
    Filter { predicate: String, rows: usize },
    /// The number of them.
    FilterCount { predicate: String, rows: usize },
    /// The number of them by SQL.
    SqlCount { predicate: String, rows: usize },
}

impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rows => f.write_str("rows"),
            Self::Count => f.write_str("count"),
            Self::Projection => f.write_str("projection"),
            Self::Limit => f.write_str("limit"),
            Self::Lineage => f.write_str("lineage"),
            Self::SqlRows => f.write_str("SELECT *"),
            Self::Filter { predicate, .. } => write!(f, "rows where {predicate}"),
            Self::FilterCount { predicate, .. } => write!(f, "count where {predicate}"),
            Self::SqlCount { predicate, .. } => write!(f, "SELECT count(*) WHERE {predicate}"),
        }
    }
}

/// One state of a table, and what its writer reads there.
struct Case {
    floe: Floe,
    table: Table,
    fixture: FixtureTable,
    state: FixtureRef,
    /// The table's own columns.
    schema: SchemaRef,
    expected: Vec<RecordBatch>,
    rows: Rows,
    /// With the columns of row lineage, if the writer was asked for them.
    lineage: Option<(SchemaRef, Rows)>,
}

impl Case {
    fn new(
        set: &FixtureSet,
        floe: &Floe,
        table: &Table,
        fixture: &FixtureTable,
        state: &FixtureRef,
    ) -> Self {
        let (full_schema, full) = read_parquet(set, &state.expected);
        let extra = fixture.metadata_columns().len();
        let own: Vec<usize> = (0..full_schema.fields().len() - extra).collect();
        let schema = Arc::new(full_schema.project(&own).unwrap());
        let expected: Vec<_> = full
            .iter()
            .map(|batch| batch.project(&own).unwrap())
            .collect();
        let rows = Rows::of(&expected, &schema);
        assert_eq!(rows.len(), state.rows, "{}", state.expected);
        let lineage = (extra > 0).then(|| (full_schema.clone(), Rows::of(&full, &full_schema)));
        Self {
            floe: floe.clone(),
            table: table.clone(),
            fixture: fixture.clone(),
            state: state.clone(),
            schema,
            expected,
            rows,
            lineage,
        }
    }

    fn questions(&self) -> Vec<Question> {
        let mut questions = vec![
            Question::Rows,
            Question::Count,
            Question::Projection,
            Question::Limit,
        ];
        if self.lineage.is_some() {
            questions.push(Question::Lineage);
        }
        if self.state.is_main() {
            questions.push(Question::SqlRows);
        }
        for filter in &self.state.filters {
            let Some(rows) = filter.rows() else { continue };
            let translations = dialect::translations(&filter.predicate, &self.found_schema());
            let predicate = translations[0].clone();
            if self.state.is_main() && !self.concerns_lineage(&predicate) {
                let predicate = predicate.clone();
                questions.push(Question::SqlCount { predicate, rows });
            }
            questions.push(Question::FilterCount { predicate, rows });
            let filters = translations.into_iter();
            questions.extend(filters.map(|predicate| Question::Filter { predicate, rows }));
        }
        questions
    }

    async fn ask(&self, question: &Question) -> Answer {
        match question {
            Question::Rows => {
                let (schema, batches) = self.read(self.table.scan()).await?;
                no_difference(&schema, &self.schema)?;
                same(&Rows::of(&batches, &self.schema), &self.rows)
            }
            Question::Count => {
                let scan = self.table.scan().at(self.state.at());
                same_count(scan.count().await.map_err(told)?, self.rows.len())
            }
            Question::Projection => self.ask_for_two_columns().await,
            Question::Limit => {
                let limit = self.rows.len() / 2 + 1;
                let (_, batches) = self.read(self.table.scan().limit(limit)).await?;
                let found = Rows::of(&batches, &self.schema);
                same_count(found.len() as u64, limit.min(self.rows.len()))?;
                self.only_expected(&found)
            }
            Question::Lineage => self.ask_for_lineage().await,
            Question::SqlRows => {
                let query = format!("SELECT * FROM {}", self.fixture.sql_name());
                let (schema, batches) = self.query(&query).await?;
                no_difference(&schema, &self.schema)?;
                same(&Rows::of(&batches, &self.schema), &self.rows)
            }
            Question::Filter { predicate, rows } => {
                let scan = self.table.scan().filter(predicate);
                let (_, batches) = self.read(scan).await?;
                let found = Rows::of(&batches, &self.schema);
                same_count(found.len() as u64, *rows)?;
                self.only_expected(&found)
            }
            Question::FilterCount { predicate, rows } => {
                let scan = self.table.scan().at(self.state.at()).filter(predicate);
                same_count(scan.count().await.map_err(told)?, *rows)
            }
            Question::SqlCount { predicate, rows } => {
                let table = self.fixture.sql_name();
                let query = format!("SELECT 1 AS one FROM {table} WHERE {predicate}");
                let (_, batches) = self.query(&query).await?;
                let found: usize = batches.iter().map(RecordBatch::num_rows).sum();
                same_count(found as u64, *rows)
            }
        }
    }

    async fn ask_for_two_columns(&self) -> Answer {
        let last = self.schema.fields().len() - 1;
        let order = [last, last / 2];
        let columns = order.map(|index| self.schema.field(index).name().clone());
        let (_, batches) = self.read(self.table.scan().select(columns)).await?;
        let schema = self.schema.project(&order).unwrap();
        let expected: Vec<_> = self
            .expected
            .iter()
            .map(|batch| batch.project(&order).unwrap())
            .collect();
        same(&Rows::of(&batches, &schema), &Rows::of(&expected, &schema))
    }

    async fn ask_for_lineage(&self) -> Answer {
        let Some((schema, rows)) = &self.lineage else {
            return Ok(());
        };
        let columns = schema.fields().iter().map(|field| field.name().clone());
        let (found, batches) = self.read(self.table.scan().select(columns)).await?;
        no_difference(&found, schema)?;
        same(&Rows::of(&batches, schema), rows)
    }

    async fn read(&self, scan: floe::ScanBuilder) -> Result<(SchemaRef, Vec<RecordBatch>), String> {
        let (schema, stream) = scan.at(self.state.at()).stream().await.map_err(told)?;
        let batches: Vec<RecordBatch> = stream.try_collect().await.map_err(told)?;
        Ok((schema, batches))
    }

    async fn query(&self, query: &str) -> Result<(SchemaRef, Vec<RecordBatch>), String> {
        let frame = self.floe.sql(query).await.map_err(told)?;
        let schema = Arc::new(frame.schema().as_arrow().clone());
        let batches = frame.collect().await.map_err(|error| told(error.into()))?;
        Ok((schema, batches))
    }

    /// The schema that floe gives the table here; it has UUIDs where an engine shows text.
    fn found_schema(&self) -> SchemaRef {
        let scan = self.table.scan().at(self.state.at()).build();
        scan.map_or_else(|_| self.schema.clone(), |scan| scan.schema().clone())
    }

    fn concerns_lineage(&self, predicate: &str) -> bool {
        let mut columns = self.fixture.metadata_columns().into_iter();
        columns.any(|column| predicate.contains(column))
    }

    fn only_expected(&self, found: &Rows) -> Answer {
        match found.beyond(&self.rows)[..] {
            [] => Ok(()),
            [ref row, ..] => Err(format!("a row that is not there: {row}")),
        }
    }
}

/// A refusal that says what it refuses is no disagreement where a reader may refuse.
fn forgive(table: &str, wrong: String) -> Answer {
    let told = wrong.to_lowercase();
    let words = || told.split(|c: char| c.is_whitespace() || "():,;'\"`".contains(c));
    let refused = MAY_REFUSE.iter().any(|(refused, ending, word)| {
        *refused == table && words().any(|it| it.ends_with(ending)) && words().any(|it| it == *word)
    });
    if refused { Ok(()) } else { Err(wrong) }
}

fn read_parquet(set: &FixtureSet, path: &str) -> (SchemaRef, Vec<RecordBatch>) {
    let file = File::open(set.path(path)).unwrap();
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
    let schema = reader.schema().clone();
    let batches = reader.build().unwrap().collect::<Result<_, _>>().unwrap();
    (schema, batches)
}

/// An error with what caused it.
fn told(error: floe::Error) -> String {
    let mut text = format!("{:?}: {error}", error.kind());
    let mut source = std::error::Error::source(&error);
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text.replace('\n', " ")
}

fn no_difference(found: &Schema, expected: &Schema) -> Answer {
    rows::difference(found, expected).map_or(Ok(()), Err)
}

fn same_count(found: u64, expected: usize) -> Answer {
    if found == expected as u64 {
        return Ok(());
    }
    Err(format!("expected {expected} rows, found {found}"))
}

fn same(found: &Rows, expected: &Rows) -> Answer {
    let (missing, extra) = (expected.beyond(found), found.beyond(expected));
    if missing.is_empty() && extra.is_empty() {
        return Ok(());
    }
    let told = |what: &str, rows: &[&str]| match rows {
        [] => String::new(),
        [first, ..] => format!("; {} {what}, such as {first}", rows.len()),
    };
    Err(format!(
        "expected {} rows, found {}{}{}",
        expected.len(),
        found.len(),
        told("missing", &missing),
        told("too many", &extra),
    ))
}
