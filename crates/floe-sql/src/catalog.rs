//! A catalog to DataFusion: nothing is listed or loaded before a query names it.
//! `"t$branch_NAME"` and the like name another state of a table (part.rs), `"t$files"` and the like what its metadata holds.
//! One of these serves one query: a table named twice in it is loaded once, and both see one snapshot.

use std::any::Any;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use datafusion::catalog::{CatalogProvider, CatalogProviderList, SchemaProvider, TableProvider};
use datafusion::error::{DataFusionError, Result as DfResult};
use datafusion::logical_expr::TableType;
use floe_scan::inspect::MetadataTable;
use iceberg::{NamespaceIdent, TableIdent};
use tokio::sync::OnceCell;

use crate::metadata::MetadataProvider;
use crate::part;
use crate::provider::{FloeTable, external};

/// What a source fails with.
pub type SourceError = Box<dyn std::error::Error + Send + Sync>;

/// Where tables come from; `floe` implements it over its catalogs.
#[async_trait]
pub trait TableSource: fmt::Debug + Send + Sync {
    /// The catalog's name in SQL.
    fn name(&self) -> &str;

    /// Every namespace, nested ones included.
    async fn namespaces(&self) -> Result<Vec<NamespaceIdent>, SourceError>;

    /// Names of the tables in a namespace.
    async fn tables(&self, namespace: &NamespaceIdent) -> Result<Vec<String>, SourceError>;

    /// The table as its catalog points to it now, at the tip of main; `None` if there is no such table.
    async fn table(&self, ident: &TableIdent) -> Result<Option<FloeTable>, SourceError>;
}

/// The catalogs of a query: one that tables come from, under its name.
///
/// In `a.b.t`, `a` is that catalog's name or else the first part of a nested namespace `a.b`.
#[derive(Debug)]
pub struct FloeCatalogList {
    root: Arc<FloeCatalogProvider>,
}

impl FloeCatalogList {
    /// The catalogs of one query over this source.
    pub fn new(source: Arc<dyn TableSource>) -> Self {
        let shared = Arc::new(Shared {
            source,
            loaded: Mutex::default(),
            listed: OnceCell::new(),
        });
        Self {
            root: Arc::new(FloeCatalogProvider {
                shared,
                parent: None,
            }),
        }
    }

    /// Lists namespaces and tables, which only `information_schema` and `SHOW` need.
    pub async fn list(&self) -> Result<(), SourceError> {
        self.root.shared.list().await.map(|_| ())
    }
}

impl CatalogProviderList for FloeCatalogList {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn register_catalog(
        &self,
        _name: String,
        _catalog: Arc<dyn CatalogProvider>,
    ) -> Option<Arc<dyn CatalogProvider>> {
        // The session registers its own empty default catalog; ours takes the place.
        None
    }

    fn catalog_names(&self) -> Vec<String> {
        vec![self.root.shared.source.name().to_string()]
    }

    fn catalog(&self, name: &str) -> Option<Arc<dyn CatalogProvider>> {
        if name == self.root.shared.source.name() {
            return Some(self.root.clone());
        }
        Some(Arc::new(FloeCatalogProvider {
            shared: self.root.shared.clone(),
            parent: Some(name.to_string()),
        }))
    }
}

/// A table, or that there is none; filled by the first who asks.
type Loaded = Arc<OnceCell<Option<FloeTable>>>;

/// What the providers of one query share.
#[derive(Debug)]
struct Shared {
    source: Arc<dyn TableSource>,
    loaded: Mutex<HashMap<TableIdent, Loaded>>,
    listed: OnceCell<BTreeMap<String, Vec<String>>>,
}

impl Shared {
    /// The table, loaded at most once.
    async fn table(&self, ident: TableIdent) -> DfResult<Option<FloeTable>> {
        let cell = {
            let mut loaded = self
                .loaded
                .lock()
                .expect("no code panics while it holds this lock");
            loaded.entry(ident.clone()).or_default().clone()
        };
        let load = || self.source.table(&ident);
        cell.get_or_try_init(load)
            .await
            .cloned()
            .map_err(DataFusionError::External)
    }

    async fn list(&self) -> Result<&BTreeMap<String, Vec<String>>, SourceError> {
        self.listed
            .get_or_try_init(|| async {
                let mut listed = BTreeMap::new();
                for namespace in self.source.namespaces().await? {
                    let tables = self.source.tables(&namespace).await?;
                    listed.insert(dotted(&namespace), tables);
                }
                Ok(listed)
            })
            .await
    }
}

/// A namespace as SQL names it.
fn dotted(namespace: &NamespaceIdent) -> String {
    namespace.as_ref().join(".")
}

/// A catalog, or the namespaces below one part of a name.
#[derive(Debug)]
pub struct FloeCatalogProvider {
    shared: Arc<Shared>,
    parent: Option<String>,
}

impl CatalogProvider for FloeCatalogProvider {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn schema_names(&self) -> Vec<String> {
        self.shared
            .listed
            .get()
            .map(|listed| listed.keys().cloned().collect())
            .unwrap_or_default()
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        let path = match &self.parent {
            Some(parent) => format!("{parent}.{name}"),
            None => name.to_string(),
        };
        Some(Arc::new(FloeSchemaProvider {
            shared: self.shared.clone(),
            path,
        }))
    }
}

/// A namespace.
#[derive(Debug)]
struct FloeSchemaProvider {
    shared: Arc<Shared>,
    path: String,
}

impl FloeSchemaProvider {
    /// The table of this name at the tip of main, or else one at the state that the name's end means.
    async fn state(&self, namespace: &NamespaceIdent, name: &str) -> DfResult<Option<FloeTable>> {
        let load = |name: &str| {
            let ident = TableIdent::new(namespace.clone(), name.to_string());
            self.shared.table(ident)
        };
        // A table whose own name holds a dollar sign comes first.
        if let Some(table) = load(name).await? {
            return Ok(Some(table));
        }
        let named = name.rsplit_once('$');
        let Some((name, at)) = named.and_then(|(name, part)| Some((name, part::state(part)?)))
        else {
            return Ok(None);
        };
        match load(name).await? {
            Some(table) => table.at(&at).map(Some).map_err(external),
            None => Ok(None),
        }
    }
}

#[async_trait]
impl SchemaProvider for FloeSchemaProvider {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn table_names(&self) -> Vec<String> {
        self.shared
            .listed
            .get()
            .and_then(|listed| listed.get(&self.path))
            .cloned()
            .unwrap_or_default()
    }

    async fn table(&self, name: &str) -> DfResult<Option<Arc<dyn TableProvider>>> {
        let parts: Vec<String> = self.path.split('.').map(str::to_string).collect();
        let Ok(namespace) = NamespaceIdent::from_vec(parts) else {
            return Ok(None);
        };
        if let Some(table) = self.state(&namespace, name).await? {
            return Ok(Some(Arc::new(table)));
        }
        let Some((name, shown)) = name.rsplit_once('$') else {
            return Ok(None);
        };
        let Some(shown) = MetadataTable::named(shown) else {
            return Ok(None);
        };
        match self.state(&namespace, name).await? {
            Some(table) => {
                let inspection = table.inspect(shown).map_err(external)?;
                Ok(Some(Arc::new(MetadataProvider::new(inspection))))
            }
            None => Ok(None),
        }
    }

    async fn table_type(&self, _name: &str) -> DfResult<Option<TableType>> {
        // Listing tables must not load each of them.
        Ok(Some(TableType::Base))
    }

    fn table_exist(&self, name: &str) -> bool {
        self.table_names().iter().any(|table| table == name)
    }
}
