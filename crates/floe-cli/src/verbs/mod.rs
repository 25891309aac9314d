//! A file for each verb.

pub(crate) mod cache;
pub(crate) mod config;
pub(crate) mod demo;
pub(crate) mod scan;
pub(crate) mod sql;
pub(crate) mod table;

use anyhow::Result;

use crate::args::Verb;
use crate::context::Context;

/// Does what the verb says.
pub(crate) async fn run(context: &Context, verb: Verb) -> Result<()> {
    match verb {
        Verb::Demo(args) => demo::run(context, args).await,
        Verb::Sql(args) => sql::run(context, args).await,
        Verb::Scan(args) => scan::run(context, args).await,
        Verb::Table(verb) => table::run(context, verb).await,
        Verb::Cache(verb) => cache::run(context, verb).await,
        Verb::Config(args) => config::run(context, &args),
        Verb::DemoReader(args) => demo::reader::run(args).await,
    }
}
