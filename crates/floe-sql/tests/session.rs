//! A DataFusion session over one table.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::execution::SessionStateBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};
use floe_scan::At;
use floe_sql::{FloeCatalogList, FloeTable, SourceError, TableSource};
use iceberg::{NamespaceIdent, TableIdent};

use crate::support::Fixture;

/// One table under two names; counts how often it was loaded.
#[derive(Debug)]
struct Source {
    table: FloeTable,
    loaded: Arc<AtomicUsize>,
}

#[async_trait]
impl TableSource for Source {
    fn name(&self) -> &str {
        "lake"
    }

    async fn namespaces(&self) -> Result<Vec<NamespaceIdent>, SourceError> {
        Ok(vec![
            NamespaceIdent::new("ns".into()),
            NamespaceIdent::from_strs(["deep", "er"])?,
        ])
    }

    async fn tables(&self, _namespace: &NamespaceIdent) -> Result<Vec<String>, SourceError> {
        Ok(vec!["t".into()])
    }

    async fn table(&self, ident: &TableIdent) -> Result<Option<FloeTable>, SourceError> {
        self.loaded.fetch_add(1, Ordering::Relaxed);
        Ok((ident.name() == "t").then(|| self.table.clone()))
    }
}

pub(crate) async fn session(
    fixture: &Fixture,
    partitions: usize,
) -> (SessionContext, Arc<AtomicUsize>) {
    let table = FloeTable::new(&fixture.store, &fixture.opened(), &At::Main).unwrap();
    let loaded = Arc::new(AtomicUsize::new(0));
    let catalogs = FloeCatalogList::new(Arc::new(Source {
        table,
        loaded: loaded.clone(),
    }));
    catalogs.list().await.unwrap();
    let config = SessionConfig::new()
        .with_target_partitions(partitions)
        .with_default_catalog_and_schema("lake", "ns")
        .with_create_default_catalog_and_schema(false)
        .with_information_schema(true);
    let state = SessionStateBuilder::new()
        .with_default_features()
        .with_config(config)
        .with_catalog_list(Arc::new(catalogs));
    (SessionContext::new_with_state(state.build()), loaded)
}

pub(crate) async fn text(session: &SessionContext, sql: &str) -> String {
    let rows = session.sql(sql).await.unwrap().collect().await.unwrap();
    pretty_format_batches(&rows).unwrap().to_string()
}
