//! `floe config`: what configuration was found, and where. Secrets stay hidden.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use floe::config::Entry;
use serde::Serialize;

use crate::context::Context;
use crate::output::listing::Listing;

/// What configuration was found, and where.
#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {}

#[derive(Serialize)]
struct Document {
    /// Files that were read, lowest precedence first.
    files: Vec<PathBuf>,
    entries: Vec<Entry>,
}

pub(crate) fn run(context: &Context, _args: &ConfigArgs) -> Result<()> {
    let config = context.config(false)?;
    if context.ui.json {
        return context.ui.document(&Document {
            files: config.files().to_vec(),
            entries: config.entries(),
        });
    }
    let mut listing = Listing::new(&["key", "value", "found in"]);
    for Entry { key, value, source } in config.entries() {
        listing.row([key, value, source]);
    }
    listing.print(&context.ui, "nothing is configured")
}
