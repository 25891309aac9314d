//! The command line's shape: global flags, verbs, and arguments that several verbs share.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use floe::At;

use crate::verbs::{cache, config, demo, scan, sql, table};

/// Reads Apache Iceberg tables over slow lines: an immutable file crosses the line once.
#[derive(Debug, Parser)]
#[command(
    name = "floe",
    version,
    propagate_version = true,
    arg_required_else_help = true
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) globals: Globals,
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

/// Flags that every verb takes.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Globals {
    /// The catalog to read, by its name in floe.toml, .pyiceberg.yaml or the environment
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) catalog: Option<String>,
    /// A floe.toml to read instead of ./floe.toml
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// One JSON document on stdout
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// No status and no progress on stderr
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Build a demo lake and read it cold and warm over an emulated slow line
    Demo(demo::DemoArgs),
    /// Query tables with SQL
    Sql(sql::SqlArgs),
    /// Read one table
    Scan(scan::ScanArgs),
    /// What tables there are, and what is in their metadata
    #[command(subcommand)]
    Table(table::TableVerb),
    /// What is cached, and keep it so
    #[command(subcommand)]
    Cache(cache::CacheVerb),
    /// What configuration was found, and where
    Config(config::ConfigArgs),
    /// A part of the demo that runs in a process of its own
    #[command(hide = true)]
    DemoReader(demo::reader::ReaderArgs),
}

/// Which state of a table.
#[derive(Clone, Debug, Default, Args)]
#[group(multiple = false)]
pub(crate) struct AtArgs {
    /// A branch or tag
    #[arg(long = "ref", value_name = "BRANCH|TAG")]
    pub(crate) reference: Option<String>,
    /// A snapshot by its id
    #[arg(long, value_name = "ID", allow_negative_numbers = true)]
    pub(crate) snapshot: Option<i64>,
    /// The state of main at a time, as RFC 3339 writes it: 2026-03-01T12:00:00Z
    #[arg(long, value_name = "TIME", value_parser = at_time)]
    pub(crate) as_of: Option<At>,
}

impl AtArgs {
    /// The state asked for; without any, the tip of main.
    pub(crate) fn at(&self) -> At {
        match (&self.reference, self.snapshot, &self.as_of) {
            (Some(name), _, _) => At::Ref(name.clone()),
            (_, Some(id), _) => At::Snapshot(id),
            (_, _, Some(at)) => at.clone(),
            _ => At::Main,
        }
    }
}

fn at_time(text: &str) -> Result<At, String> {
    At::as_of(text).map_err(|error| match error.hint() {
        Some(hint) => format!("{error}; {hint}"),
        None => error.to_string(),
    })
}

/// Which columns and rows of a table.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct RowArgs {
    /// Columns by their exact names, in this order
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    pub(crate) select: Option<Vec<String>>,
    /// Keep the rows for which this SQL expression is true
    #[arg(long = "where", value_name = "EXPR")]
    pub(crate) filter: Option<String>,
}
