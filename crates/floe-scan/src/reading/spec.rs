//! What a scan wants of its files: columns, shape of the batches, bounds.

use std::sync::Arc;

use arrow_schema::{Schema as ArrowSchema, SchemaRef as ArrowSchemaRef};
use iceberg::arrow::schema_to_arrow_schema;
use iceberg::spec::{NameMapping, SchemaRef};

use super::metadata::MetadataColumn;
use crate::error::{Error, ErrorKind, Result};
use crate::timings::Meter;

/// One mebibyte.
const MIB: u64 = 1 << 20;

/// What to read of each file.
#[derive(Clone, Debug)]
pub struct ReadSpec {
    /// The schema that rows are read with.
    pub(super) schema: SchemaRef,
    /// Every schema that the table had: equality deletes may name columns that are gone.
    pub(super) schemas: Vec<SchemaRef>,
    /// Field ids of the top-level columns that go out, in this order.
    pub(super) columns: Vec<i32>,
    /// Metadata columns that go out after them.
    pub(super) metadata: Vec<MetadataColumn>,
    /// The declared schema of the batches.
    pub(super) arrow: ArrowSchemaRef,
    /// Names of fields for files that carry no field ids.
    pub(super) name_mapping: Option<Arc<NameMapping>>,
    /// Whether batches come in the files' order.
    pub(super) ordered: bool,
    pub(super) limits: Limits,
    pub(super) meter: Arc<Meter>,
}

/// Bounds on what a reader does at once.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Rows of a batch, at most. Default: 32,768.
    pub batch_rows: usize,
    /// Bytes of a batch that its rows should not exceed, by the width of their columns. Default: 8 MiB.
    pub batch_bytes: u64,
    /// Files opened ahead of decoding. Default: 8.
    pub files: usize,
    /// Batches decoded at once. Default: two more than there are cores: with fewer, cores wait while a batch is handed over.
    pub decoders: usize,
    /// Compressed bytes in flight. Default: 64 MiB; one row group may take more.
    pub fetched_bytes: u64,
    /// Decoded bytes in flight. Default: 64 MiB.
    pub decoded_bytes: u64,
    /// Bytes that cost about as much as another round trip: fewer are fetched at once, though an index or a filter might spare
    /// some of them. Default: 128 KiB, which a line of 20 Mbit/s brings in 50 ms.
    pub round_trip_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            batch_rows: 32 * 1024,
            batch_bytes: 8 * MIB,
            files: 8,
            decoders: std::thread::available_parallelism().map_or(2, usize::from) + 2,
            fetched_bytes: 64 * MIB,
            decoded_bytes: 64 * MIB,
            round_trip_bytes: MIB / 8,
        }
    }
}

impl ReadSpec {
    /// Reads these top-level columns of a schema, by field id, in this order. No column at all counts rows.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] for an id that the schema doesn't have at its top; [`ErrorKind::Unsupported`] for a type without an Arrow counterpart.
    pub fn new(schema: SchemaRef, columns: &[i32]) -> Result<Self> {
        let table = schema_to_arrow_schema(&schema)
            .map_err(|source| Error::read("can't express the table's schema in Arrow", source))?;
        let fields = columns
            .iter()
            .map(|id| {
                let position = schema.as_struct().fields().iter().position(|f| f.id == *id);
                position
                    .map(|at| table.fields()[at].clone())
                    .ok_or_else(|| {
                        Error::new(
                            ErrorKind::NotFound,
                            format!("the schema has no top-level column of field id {id}"),
                        )
                    })
            })
            .collect::<Result<Vec<_>>>()?;
        Ok(Self {
            schemas: vec![schema.clone()],
            schema,
            columns: columns.to_vec(),
            metadata: Vec::new(),
            arrow: Arc::new(ArrowSchema::new(fields)),
            name_mapping: None,
            ordered: false,
            limits: Limits::default(),
            meter: Arc::default(),
        })
    }

    /// Adds metadata columns behind the others.
    #[must_use]
    pub fn with_metadata(mut self, columns: impl IntoIterator<Item = MetadataColumn>) -> Self {
        for column in columns {
            let mut fields = self.arrow.fields().to_vec();
            fields.push(column.field());
            self.arrow = Arc::new(ArrowSchema::new(fields));
            self.metadata.push(column);
        }
        self
    }

    /// The table's other schemas, for equality deletes by columns that are gone.
    #[must_use]
    pub fn with_schemas(mut self, schemas: impl IntoIterator<Item = SchemaRef>) -> Self {
        self.schemas.extend(schemas);
        self
    }

    /// The table's `schema.name-mapping.default`.
    #[must_use]
    pub fn with_name_mapping(mut self, mapping: Option<Arc<NameMapping>>) -> Self {
        self.name_mapping = mapping;
        self
    }

    /// Whether batches come in the files' order. They don't unless told.
    #[must_use]
    pub fn ordered(mut self, ordered: bool) -> Self {
        self.ordered = ordered;
        self
    }

    /// Other bounds than the default ones.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Totals to add to.
    #[must_use]
    pub(crate) fn metered(mut self, meter: Arc<Meter>) -> Self {
        self.meter = meter;
        self
    }

    /// Its bounds.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The schema of the batches: exactly this one, whatever a file says.
    pub fn arrow_schema(&self) -> &ArrowSchemaRef {
        &self.arrow
    }
}
