//! What is in the cache on disk: how much, which files, are they whole; and taking files out.

use anyhow::Result;
use clap::Args;
use serde_json::json;

use super::disk;
use crate::context::Context;
use crate::failure::Usage;
use crate::output::listing::{Listing, facts};
use crate::ui::{bytes, count};

pub(super) fn stat(context: &Context) -> Result<()> {
    let floe = context.floe(false)?;
    let cache = disk(&floe)?;
    let usage = cache.usage().map_err(floe::Error::from)?;
    if context.ui.json {
        return context.ui.document(&json!({
            "dir": cache.dir(),
            "used_bytes": usage.used_bytes,
            "max_bytes": usage.max_bytes,
            "free_bytes": usage.free_bytes,
            "keep_free_bytes": usage.keep_free_bytes,
            "files": usage.files,
            "pins": usage.pins,
        }));
    }
    context.ui.print(&facts(&[
        ("directory", cache.dir().display().to_string()),
        (
            "used",
            format!(
                "{} of {} in {} files",
                bytes(usage.used_bytes),
                bytes(usage.max_bytes),
                count(usage.files)
            ),
        ),
        (
            "disk free",
            format!(
                "{}; {} are kept free",
                bytes(usage.free_bytes),
                bytes(usage.keep_free_bytes)
            ),
        ),
        (
            "pinned",
            if usage.pins.is_empty() {
                "nothing".to_string()
            } else {
                usage.pins.join(", ")
            },
        ),
    ]))
}

pub(super) fn list(context: &Context) -> Result<()> {
    let floe = context.floe(false)?;
    let objects = disk(&floe)?.list().map_err(floe::Error::from)?;
    if context.ui.json {
        return context.ui.document(&json!({"objects": objects}));
    }
    let mut listing = Listing::new(&["cached#", "length#", "pinned", "location"]);
    for object in objects {
        let pinned = if object.pinned { "yes" } else { "" };
        listing.row([
            object.cached_bytes.to_string(),
            object.length.to_string(),
            pinned.to_string(),
            object.location,
        ]);
    }
    listing.print(&context.ui, "nothing is cached")
}

pub(super) fn verify(context: &Context) -> Result<()> {
    let floe = context.floe(false)?;
    let report = disk(&floe)?.verify().map_err(floe::Error::from)?;
    if context.ui.json {
        return context.ui.document(&report);
    }
    let corrupt = match report.corrupt {
        0 => "all whole".to_string(),
        n => format!("{n} corrupt and removed; they will be fetched again"),
    };
    context.ui.print(&format!(
        "{} files, {}: {corrupt}\n",
        count(report.files),
        bytes(report.bytes)
    ))
}

pub(super) fn clear(context: &Context) -> Result<()> {
    let floe = context.floe(false)?;
    let cleared = disk(&floe)?.clear().map_err(floe::Error::from)?;
    if context.ui.json {
        return context.ui.document(&cleared);
    }
    context.ui.print(&format!(
        "removed {} files, {}\n",
        count(cleared.files),
        bytes(cleared.bytes)
    ))
}

/// Remove files from the cache, now and in every process.
#[derive(Debug, Args)]
pub(crate) struct PurgeArgs {
    /// Locations of files, as `floe cache list` or a table's metadata show them
    #[arg(required_unless_present = "table")]
    locations: Vec<String>,
    /// Every cached file of this table
    #[arg(long, value_name = "NS.TABLE")]
    table: Vec<String>,
}

pub(super) async fn purge(context: &Context, args: PurgeArgs) -> Result<()> {
    let floe = context.floe(false)?;
    let cache = disk(&floe)?;
    let mut locations = args.locations;
    if let Some(relative) = locations
        .iter()
        .find(|location| !location.contains(":/") && !location.starts_with('/'))
    {
        return Err(Usage::error(format!(
            "'{relative}' is no location; a table is named with --table NS.TABLE"
        )));
    }
    if !args.table.is_empty() {
        let cached = cache.list().map_err(floe::Error::from)?;
        for name in &args.table {
            let table = floe.table(name).await?;
            let uuid = table.iceberg().metadata().uuid().to_string();
            let files = cached
                .iter()
                .filter(|object| object.table.as_deref() == Some(&uuid));
            locations.extend(files.map(|object| object.location.clone()));
            locations.extend(table.iceberg().metadata_location().map(str::to_string));
            locations.extend(
                table
                    .iceberg()
                    .metadata()
                    .metadata_log()
                    .iter()
                    .map(|old| old.metadata_file.clone()),
            );
        }
    }
    let report = floe.store().purge(&locations).map_err(floe::Error::from)?;
    if context.ui.json {
        return context.ui.document(&report);
    }
    context.ui.print(&format!(
        "purged {} locations, {} cached files\n",
        count(report.locations),
        count(report.files)
    ))
}
