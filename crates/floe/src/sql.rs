//! Queries: a DataFusion session of its own for each, so that a query sees one state of every table.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::dataframe::DataFrame;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::context::{SQLOptions, SessionContext};
use datafusion::prelude::SessionConfig;
use floe_scan::At;
use floe_sql::{FloeCatalogList, FloeTable, SourceError, TableSource};
use futures::FutureExt;
use iceberg::{NamespaceIdent, TableIdent};

use crate::error::{Error, ErrorKind, Result};
use crate::floe::Floe;

/// The namespace of tables that a query names without one; there is no such namespace unless a catalog has it.
const NO_NAMESPACE: &str = "default";

/// Plans a query. Whatever would change something is refused.
pub(crate) async fn plan(floe: &Floe, query: &str) -> Result<DataFrame> {
    let source = Source {
        floe: floe.clone(),
        name: floe.catalog_name()?.to_string(),
    };
    let config = floe_sql::exact_numbers(SessionConfig::new())
        .with_default_catalog_and_schema(&source.name, NO_NAMESPACE)
        .with_create_default_catalog_and_schema(false)
        .with_information_schema(true);
    let catalogs = Arc::new(FloeCatalogList::new(Arc::new(source)));
    if lists_tables(query) {
        catalogs.list().await.map_err(unpack)?;
    }
    let state = SessionStateBuilder::new()
        .with_default_features()
        .with_config(config)
        .with_analyzer_rules(floe_sql::number_rules())
        .with_catalog_list(catalogs)
        .build();
    let reads = SQLOptions::new()
        .with_allow_ddl(false)
        .with_allow_dml(false)
        .with_allow_statements(false);
    let context = SessionContext::new_with_state(state);
    let planning = context.sql_with_options(query, reads);
    // DataFusion 53 panics on a type's name before a number, such as `date 5`.
    match AssertUnwindSafe(planning).catch_unwind().await {
        Ok(planned) => planned.map_err(explain),
        Err(_) => Err(Error::new(
            ErrorKind::Invalid,
            "DataFusion's planner panics on this query",
        )),
    }
}

/// Whether a query wants to know which tables there are; all others get by without listing the catalog.
fn lists_tables(query: &str) -> bool {
    let query = query.trim_start().to_lowercase();
    query.contains("information_schema") || query.starts_with("show")
}

fn explain(error: datafusion::error::DataFusionError) -> Error {
    let error = Error::from(error);
    let (kind, text) = (error.kind(), error.to_string());
    if kind == ErrorKind::NotFound && text.contains("table '") {
        return error
            .with_hint("floe table list shows the tables; names with capitals need double quotes");
    }
    if kind == ErrorKind::Invalid && text.contains("not supported") {
        return error.with_hint("floe sql only reads");
    }
    error
}

fn unpack(error: SourceError) -> Error {
    match error.downcast::<Error>() {
        Ok(ours) => *ours,
        Err(other) => Error::new(ErrorKind::Unexpected, other.to_string()),
    }
}

/// The tables of a [`Floe`] to DataFusion.
#[derive(Debug)]
struct Source {
    floe: Floe,
    name: String,
}

#[async_trait]
impl TableSource for Source {
    fn name(&self) -> &str {
        &self.name
    }

    async fn namespaces(&self) -> Result<Vec<NamespaceIdent>, SourceError> {
        Ok(self.floe.namespaces().await?)
    }

    async fn tables(&self, namespace: &NamespaceIdent) -> Result<Vec<String>, SourceError> {
        Ok(self
            .floe
            .tables(namespace)
            .await?
            .into_iter()
            .map(|ident| ident.name().to_string())
            .collect())
    }

    async fn table(&self, ident: &TableIdent) -> Result<Option<FloeTable>, SourceError> {
        let table = match self.floe.table_of(ident).await {
            Ok(table) => table,
            // DataFusion says it with the name as the query has it.
            Err(error) if error.is_missing_table() => return Ok(None),
            Err(error) => return Err(Box::new(error)),
        };
        Ok(Some(FloeTable::new(
            self.floe.store(),
            table.iceberg(),
            &At::Main,
        )?))
    }
}
