//! `floe sql`: a query over the catalog's tables, its rows on stdout.

use std::io::{self, BufWriter};

use anyhow::Result;
use clap::Args;
use futures::TryStreamExt;

use crate::context::Context;
use crate::failure::Usage;
use crate::output::rows::{self, Format};

/// Query tables with SQL.
#[derive(Debug, Args)]
pub(crate) struct SqlArgs {
    /// The query; tables are NAMESPACE.TABLE, names with capitals need double quotes
    query: String,
    /// The form of the rows; `parquet` and `arrow` (an IPC stream) are binary
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Ask nobody: tables as they were seen last, files from the cache alone
    #[arg(long)]
    offline: bool,
}

pub(crate) async fn run(context: &Context, args: SqlArgs) -> Result<()> {
    let format = chosen(args.format, context.ui.json)?;
    if format.is_binary() && context.ui.shows_data() {
        return Err(Usage::error(
            "a terminal can't show binary rows: redirect them, as in `floe sql ... > rows.parquet`",
        ));
    }
    let floe = context.floe(args.offline)?;
    let spinner = context.ui.spinner("query");
    let query = floe.sql(&args.query).await?;
    context.tell_last_seen(&floe);
    let mut rows = query.execute_stream().await.map_err(floe::Error::from)?;
    let schema = rows.schema();
    let mut writer = rows::writer(
        format,
        &schema,
        BufWriter::new(io::stdout()),
        context.ui.width(),
    )?;
    while let Some(batch) = rows.try_next().await.map_err(floe::Error::from)? {
        // A bar that goes on beside the rows would run into them.
        spinner.finish_and_clear();
        writer.write(&batch)?;
    }
    spinner.finish_and_clear();
    writer.finish()
}

fn chosen(format: Option<Format>, json: bool) -> Result<Format> {
    match (format, json) {
        (None, true) | (Some(Format::Json), _) => Ok(Format::Json),
        (Some(_), true) => Err(Usage::error(
            "--json and --format ask for two forms of the rows",
        )),
        (None, false) => Ok(Format::Table),
        (Some(format), false) => Ok(format),
    }
}
