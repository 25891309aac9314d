//! Record batches in the formats that floe writes.

use std::io::Write;

use anyhow::{Context as _, Result, anyhow};
use arrow_array::RecordBatch;
use arrow_ipc::writer::{FileWriter, StreamWriter};
use arrow_json::writer::{JsonArray, Writer as JsonWriter, WriterBuilder as JsonWriterBuilder};
use arrow_schema::SchemaRef;
use clap::ValueEnum;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;

use super::keys;
use super::table::TableWriter;

/// A form of rows on stdout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Columns for people, fitted to the terminal
    Table,
    /// An array of row objects
    Json,
    /// Comma-separated values with a header
    Csv,
    /// A Parquet file
    Parquet,
    /// An Arrow IPC stream
    Arrow,
}

impl Format {
    /// Whether a terminal can't show it.
    pub(crate) fn is_binary(self) -> bool {
        matches!(self, Self::Parquet | Self::Arrow)
    }
}

/// Takes batches of one schema and writes them.
pub(crate) trait RowWriter {
    /// Writes a batch, or keeps it until more are there.
    fn write(&mut self, batch: &RecordBatch) -> Result<()>;

    /// Writes what is left; without it the output is not whole.
    fn finish(self: Box<Self>) -> Result<()>;
}

/// A writer of this format. `width` is that of the terminal, which only tables look at.
pub(crate) fn writer<'a>(
    format: Format,
    schema: &SchemaRef,
    out: impl Write + Send + 'a,
    width: Option<usize>,
) -> Result<Box<dyn RowWriter + 'a>> {
    Ok(match format {
        Format::Table => Box::new(TableWriter::new(schema.clone(), out, width)),
        Format::Json => Box::new(Json(
            JsonWriterBuilder::new()
                .with_explicit_nulls(true)
                .build(out),
        )),
        Format::Csv => csv(out),
        Format::Parquet => parquet(schema, out)?,
        Format::Arrow => Box::new(ArrowStream(StreamWriter::try_new(out, schema)?)),
    })
}

/// A writer of Arrow's file form, which can be read from its end.
pub(crate) fn arrow_file<'a>(
    schema: &SchemaRef,
    out: impl Write + Send + 'a,
) -> Result<Box<dyn RowWriter + 'a>> {
    Ok(Box::new(ArrowFile(FileWriter::try_new(out, schema)?)))
}

/// Comma-separated values with a header.
pub(crate) fn csv<'a>(out: impl Write + Send + 'a) -> Box<dyn RowWriter + 'a> {
    Box::new(Csv {
        out: Some(out),
        writer: None,
    })
}

/// Parquet compressed with zstd.
pub(crate) fn parquet<'a>(
    schema: &SchemaRef,
    out: impl Write + Send + 'a,
) -> Result<Box<dyn RowWriter + 'a>> {
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .build();
    Ok(Box::new(Parquet(ArrowWriter::try_new(
        out,
        schema.clone(),
        Some(properties),
    )?)))
}

struct Json<W: Write>(JsonWriter<W, JsonArray>);

impl<W: Write> RowWriter for Json<W> {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.0
            .write(&keys::as_text(batch)?)
            .map_err(unwrap_io)
            .context("can't write rows as JSON")
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        self.0.finish().map_err(unwrap_io)?;
        let mut out = self.0.into_inner();
        out.write_all(b"\n")?;
        Ok(out.flush()?)
    }
}

struct Csv<W: Write> {
    out: Option<W>,
    writer: Option<arrow_csv::Writer<W>>,
}

impl<W: Write> RowWriter for Csv<W> {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        if let Some(out) = self.out.take() {
            self.writer = Some(arrow_csv::WriterBuilder::new().with_header(true).build(out));
        }
        let writer = self
            .writer
            .as_mut()
            .ok_or_else(|| anyhow!("the output was finished before"))?;
        writer
            .write(batch)
            .map_err(unwrap_io)
            .context("can't write rows as CSV")
    }

    fn finish(self: Box<Self>) -> Result<()> {
        match (self.writer, self.out) {
            (Some(writer), _) => Ok(writer.into_inner().flush()?),
            (None, Some(mut out)) => Ok(out.flush()?),
            (None, None) => Ok(()),
        }
    }
}

struct Parquet<W: Write + Send>(ArrowWriter<W>);

impl<W: Write + Send> RowWriter for Parquet<W> {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.0.write(batch).context("can't write rows as Parquet")
    }

    fn finish(self: Box<Self>) -> Result<()> {
        Ok(self
            .0
            .into_inner()
            .context("can't write rows as Parquet")?
            .flush()?)
    }
}

struct ArrowStream<W: Write>(StreamWriter<W>);

impl<W: Write> RowWriter for ArrowStream<W> {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.0
            .write(batch)
            .map_err(unwrap_io)
            .context("can't write rows as Arrow")
    }

    fn finish(self: Box<Self>) -> Result<()> {
        Ok(self.0.into_inner().map_err(unwrap_io)?.flush()?)
    }
}

struct ArrowFile<W: Write>(FileWriter<W>);

impl<W: Write> RowWriter for ArrowFile<W> {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.0
            .write(batch)
            .map_err(unwrap_io)
            .context("can't write rows as Arrow")
    }

    fn finish(self: Box<Self>) -> Result<()> {
        Ok(self.0.into_inner().map_err(unwrap_io)?.flush()?)
    }
}

/// Arrow wraps I/O errors; a broken pipe must stay one.
fn unwrap_io(error: arrow_schema::ArrowError) -> anyhow::Error {
    match error {
        arrow_schema::ArrowError::IoError(_, io) => io.into(),
        other => other.into(),
    }
}
