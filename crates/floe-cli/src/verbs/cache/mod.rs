//! `floe cache`: what is cached, and keep it so.

mod contents;
mod follow;
mod warm;

use anyhow::Result;
use clap::Subcommand;
use floe::Floe;
use floe_store::DiskCache;

use crate::context::Context;

/// What is cached, and keep it so.
#[derive(Debug, Subcommand)]
pub(crate) enum CacheVerb {
    /// How much is cached, and how much may be
    Stat,
    /// Every file of which something is cached
    List,
    /// Fetch what a read would fetch; a warm-up broken off goes on where it was
    Warm(warm::WarmArgs),
    /// Fetch a table's files and never evict them
    Pin(warm::WarmArgs),
    /// Let pinned files be evicted again
    Unpin(warm::UnpinArgs),
    /// Remove files from the cache, now and in every process
    Purge(contents::PurgeArgs),
    /// Read every cached byte and compare its checksum; corrupt files are removed
    Verify,
    /// Remove everything from the cache
    Clear,
    /// Ask for tables' pointers again and again, and fetch what new snapshots added
    Follow(follow::FollowArgs),
}

pub(crate) async fn run(context: &Context, verb: CacheVerb) -> Result<()> {
    match verb {
        CacheVerb::Stat => contents::stat(context),
        CacheVerb::List => contents::list(context),
        CacheVerb::Warm(args) => warm::warm(context, args).await,
        CacheVerb::Pin(args) => warm::pin(context, args).await,
        CacheVerb::Unpin(args) => warm::unpin(context, &args),
        CacheVerb::Purge(args) => contents::purge(context, args).await,
        CacheVerb::Verify => contents::verify(context),
        CacheVerb::Clear => contents::clear(context),
        CacheVerb::Follow(args) => follow::run(context, args).await,
    }
}

/// The cache on disk, which these verbs are about.
fn disk(floe: &Floe) -> Result<&DiskCache> {
    let none = || match &floe.store().config().cache.dir {
        Some(dir) => floe::Error::new(
            floe::ErrorKind::Invalid,
            format!("the cache directory {} could not be used", dir.display()),
        )
        .with_hint("the warning says why; reads go on without it"),
        None => floe::Error::new(floe::ErrorKind::Invalid, "there is no cache on disk").with_hint(
            "set `dir` and `max-bytes` under [cache] in floe.toml; `floe config` shows what holds",
        ),
    };
    Ok(floe.store().cache().ok_or_else(none)?)
}
