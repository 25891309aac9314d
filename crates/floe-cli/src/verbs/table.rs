//! `floe table`: what tables there are, and what is in their metadata.

use anyhow::Result;
use chrono::{DateTime, SecondsFormat};
use clap::{Args, Subcommand};
use floe::Table;
use iceberg::spec::{SnapshotRetention, TableMetadata};
use iceberg::{NamespaceIdent, TableIdent};
use serde::Serialize;
use serde_json::{Value, json};

use crate::args::AtArgs;
use crate::context::Context;
use crate::output::listing::{Listing, facts};
use crate::ui::{bytes, count};

/// What tables there are, and what is in their metadata.
#[derive(Debug, Subcommand)]
pub(crate) enum TableVerb {
    /// The tables of a namespace, or of all
    List(ListArgs),
    /// A table's place, schema, partitions and properties
    Show(TableArg),
    /// A table's branches and tags
    Refs(TableArg),
    /// A table's snapshots, oldest first
    Snapshots(TableArg),
    /// The data files of a table
    Files(FilesArgs),
}

/// The tables of a namespace, or of all.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Only this namespace
    namespace: Option<String>,
}

/// One table.
#[derive(Debug, Args)]
pub(crate) struct TableArg {
    /// NAMESPACE.TABLE, or the path or URL of a metadata JSON
    table: String,
}

/// The data files of a table.
#[derive(Debug, Args)]
pub(crate) struct FilesArgs {
    /// NAMESPACE.TABLE, or the path or URL of a metadata JSON
    table: String,
    #[command(flatten)]
    at: AtArgs,
}

pub(crate) async fn run(context: &Context, verb: TableVerb) -> Result<()> {
    match verb {
        TableVerb::List(args) => list(context, args).await,
        TableVerb::Show(args) => show(context, &load(context, &args.table).await?),
        TableVerb::Refs(args) => refs(context, &load(context, &args.table).await?),
        TableVerb::Snapshots(args) => snapshots(context, &load(context, &args.table).await?),
        TableVerb::Files(args) => files(context, args).await,
    }
}

async fn load(context: &Context, name: &str) -> Result<Table> {
    Ok(context.floe(false)?.table(name).await?)
}

async fn list(context: &Context, args: ListArgs) -> Result<()> {
    let floe = context.floe(false)?;
    let namespaces = match &args.namespace {
        Some(name) => vec![namespace(name)?],
        None => floe.namespaces().await?,
    };
    let mut tables: Vec<TableIdent> = Vec::new();
    for namespace in &namespaces {
        tables.extend(floe.tables(namespace).await?);
    }
    if context.ui.json {
        let tables: Vec<Value> = tables
            .iter()
            .map(|table| json!({"identifier": table.to_string(), "namespace": table.namespace(), "name": table.name()}))
            .collect();
        return context.ui.document(&json!({"tables": tables}));
    }
    let mut listing = Listing::new(&["namespace", "table"]);
    for table in tables {
        listing.row([
            table.namespace().as_ref().join("."),
            table.name().to_string(),
        ]);
    }
    listing.print(&context.ui, "no tables")
}

fn namespace(name: &str) -> Result<NamespaceIdent> {
    let parts = name.split('.').map(str::to_string).collect();
    let ident = NamespaceIdent::from_vec(parts);
    Ok(ident.map_err(|error| {
        floe::Error::new(
            floe::ErrorKind::Invalid,
            format!("'{name}' is no namespace: {error}"),
        )
    })?)
}

#[derive(Serialize)]
struct Column {
    id: i32,
    name: String,
    r#type: String,
    required: bool,
    doc: Option<String>,
}

fn show(context: &Context, table: &Table) -> Result<()> {
    let table = table.iceberg();
    let metadata = table.metadata();
    let columns: Vec<Column> = metadata
        .current_schema()
        .as_struct()
        .fields()
        .iter()
        .map(|field| Column {
            id: field.id,
            name: field.name.clone(),
            r#type: field.field_type.to_string(),
            required: field.required,
            doc: field.doc.clone(),
        })
        .collect();
    let partitions: Vec<(String, String)> = metadata
        .default_partition_spec()
        .fields()
        .iter()
        .map(|field| (field.name.clone(), field.transform.to_string()))
        .collect();
    let properties: std::collections::BTreeMap<_, _> = metadata.properties().iter().collect();
    let totals = |key: &str| -> Option<u64> {
        metadata
            .current_snapshot()?
            .summary()
            .additional_properties
            .get(key)?
            .parse()
            .ok()
    };
    let (rows, files, size) = (
        totals("total-records"),
        totals("total-data-files"),
        totals("total-files-size"),
    );
    if context.ui.json {
        return context.ui.document(&json!({
            "identifier": table.identifier().to_string(),
            "uuid": metadata.uuid(),
            "location": metadata.location(),
            "metadata_location": table.metadata_location(),
            "format_version": metadata.format_version() as u8,
            "last_updated": time(metadata.last_updated_ms()),
            "current_snapshot_id": metadata.current_snapshot_id(),
            "snapshots": metadata.snapshots().len(),
            "rows": rows,
            "files": files,
            "bytes": size,
            "schema": columns,
            "partition_spec": partitions.iter().map(|(name, transform)| json!({"name": name, "transform": transform})).collect::<Vec<_>>(),
            "properties": properties,
        }));
    }
    let known =
        |value: Option<u64>, show: fn(u64) -> String| value.map_or("unknown".to_string(), show);
    let partitioned = partitions
        .iter()
        .map(|(name, transform)| format!("{name} ({transform})"))
        .collect::<Vec<_>>();
    let mut text = facts(&[
        ("table", table.identifier().to_string()),
        ("uuid", metadata.uuid().to_string()),
        ("location", metadata.location().to_string()),
        (
            "metadata",
            table.metadata_location().unwrap_or("unknown").to_string(),
        ),
        (
            "format version",
            (metadata.format_version() as u8).to_string(),
        ),
        ("last updated", time(metadata.last_updated_ms())),
        (
            "snapshot",
            metadata
                .current_snapshot_id()
                .map_or("none".to_string(), |id| id.to_string()),
        ),
        ("rows", known(rows, count)),
        ("data files", known(files, count)),
        ("bytes", known(size, bytes)),
        (
            "partitioned by",
            if partitioned.is_empty() {
                "nothing".to_string()
            } else {
                partitioned.join(", ")
            },
        ),
    ]);
    for (key, value) in properties {
        text.push_str(&format!("property {key} = {value}\n"));
    }
    context.ui.print(&(text + "\n"))?;
    let mut listing = Listing::new(&["id#", "column", "type", "required", "doc"]);
    for column in columns {
        let required = if column.required { "yes" } else { "no" };
        listing.row([
            column.id.to_string(),
            column.name,
            column.r#type,
            required.to_string(),
            column.doc.unwrap_or_default(),
        ]);
    }
    listing.print(&context.ui, "no columns")
}

fn refs(context: &Context, table: &Table) -> Result<()> {
    let refs = table.refs()?;
    let kind = |retention: &SnapshotRetention| match retention {
        SnapshotRetention::Branch { .. } => "branch",
        SnapshotRetention::Tag { .. } => "tag",
    };
    if context.ui.json {
        let refs: Vec<Value> = refs
            .iter()
            .map(|(name, reference)| {
                json!({"name": name, "type": kind(&reference.retention), "snapshot_id": reference.snapshot_id})
            })
            .collect();
        return context.ui.document(&json!({"refs": refs}));
    }
    let mut listing = Listing::new(&["name", "type", "snapshot#"]);
    for (name, reference) in refs {
        listing.row([
            name,
            kind(&reference.retention).to_string(),
            reference.snapshot_id.to_string(),
        ]);
    }
    listing.print(&context.ui, "no branches and no tags")
}

fn snapshots(context: &Context, table: &Table) -> Result<()> {
    let metadata = table.iceberg().metadata();
    let mut snapshots: Vec<_> = metadata.snapshots().collect();
    snapshots.sort_by_key(|snapshot| (snapshot.sequence_number(), snapshot.timestamp_ms()));
    if context.ui.json {
        let snapshots: Vec<Value> = snapshots
            .iter()
            .map(|snapshot| {
                let summary: std::collections::BTreeMap<_, _> =
                    snapshot.summary().additional_properties.iter().collect();
                json!({
                    "snapshot_id": snapshot.snapshot_id(),
                    "parent_id": snapshot.parent_snapshot_id(),
                    "sequence_number": snapshot.sequence_number(),
                    "timestamp": time(snapshot.timestamp_ms()),
                    "operation": snapshot.summary().operation.as_str(),
                    "schema_id": snapshot.schema_id(),
                    "manifest_list": snapshot.manifest_list(),
                    "current": is_current(metadata, snapshot.snapshot_id()),
                    "summary": summary,
                })
            })
            .collect();
        return context.ui.document(&json!({"snapshots": snapshots}));
    }
    let mut listing = Listing::new(&[
        "snapshot#",
        "time",
        "operation",
        "added rows#",
        "rows#",
        "current",
    ]);
    for snapshot in snapshots {
        let summary = &snapshot.summary().additional_properties;
        let total = |key: &str| summary.get(key).cloned().unwrap_or_default();
        let current = if is_current(metadata, snapshot.snapshot_id()) {
            "main"
        } else {
            ""
        };
        listing.row([
            snapshot.snapshot_id().to_string(),
            time(snapshot.timestamp_ms()),
            snapshot.summary().operation.as_str().to_string(),
            total("added-records"),
            total("total-records"),
            current.to_string(),
        ]);
    }
    listing.print(&context.ui, "no snapshots")
}

fn is_current(metadata: &TableMetadata, id: i64) -> bool {
    metadata.current_snapshot_id() == Some(id)
}

async fn files(context: &Context, args: FilesArgs) -> Result<()> {
    let files = load(context, &args.table)
        .await?
        .files(args.at.at())
        .await?;
    if context.ui.json {
        return context.ui.document(&json!({"files": files}));
    }
    let mut listing = Listing::new(&["rows#", "bytes#", "delete files#", "location"]);
    for file in files {
        listing.row([
            file.rows.to_string(),
            file.bytes.to_string(),
            file.delete_files.to_string(),
            file.location,
        ]);
    }
    listing.print(&context.ui, "no data files")
}

fn time(millis: i64) -> String {
    DateTime::from_timestamp_millis(millis).map_or_else(
        || format!("{millis} ms"),
        |time| time.to_rfc3339_opts(SecondsFormat::Millis, true),
    )
}
