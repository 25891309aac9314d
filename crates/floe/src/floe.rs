//! One catalog read through one store.

use std::sync::{Arc, Mutex, PoisonError};

use datafusion::dataframe::DataFrame;
use floe_catalog::Catalog;
use floe_store::Store;
use iceberg::{NamespaceIdent, TableIdent};
use tokio::sync::OnceCell;
use tracing::Instrument;

use crate::builder::FloeBuilder;
use crate::config::CatalogConfig;
use crate::error::{Error, ErrorKind, Result};
use crate::pointers::{LastSeen, Pointers};
use crate::sql;
use crate::table::Table;

/// A catalog and the store that its tables are read through. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Floe(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    store: Store,
    /// The catalog's properties, or why there is none.
    config: std::result::Result<CatalogConfig, String>,
    catalog: OnceCell<Arc<dyn Catalog>>,
    pointers: Option<Pointers>,
    used: Mutex<Vec<LastSeen>>,
}

impl Floe {
    /// Where to begin.
    pub fn builder() -> FloeBuilder {
        FloeBuilder::default()
    }

    pub(crate) fn new(config: std::result::Result<CatalogConfig, String>, store: Store) -> Self {
        let pointers = match (&config, &store.config().cache.dir) {
            (Ok(config), Some(dir)) if store.cache().is_some() => Some(Pointers::of(dir, config)),
            _ => None,
        };
        Self(Arc::new(Inner {
            store,
            config,
            catalog: OnceCell::new(),
            pointers,
            used: Mutex::default(),
        }))
    }

    /// The store that files are read through.
    pub fn store(&self) -> &Store {
        &self.0.store
    }

    /// The catalog's name.
    ///
    /// # Errors
    /// If no catalog is configured.
    pub fn catalog_name(&self) -> Result<&str> {
        self.config().map(|config| config.name.as_str())
    }

    /// The catalog; connected to by the first call.
    ///
    /// # Errors
    /// If none is configured, it can't be opened, or nobody may be asked (offline).
    pub async fn catalog(&self) -> Result<&Arc<dyn Catalog>> {
        let config = self.config()?;
        if self.is_offline() {
            return Err(Error::new(
                ErrorKind::Offline,
                format!("can't ask the catalog {:?} offline", config.name),
            ));
        }
        let connect = || floe_catalog::connect(&config.name, &config.properties, &self.0.store);
        Ok(self.0.catalog.get_or_try_init(connect).await?)
    }

    /// Whether tables are read as they were seen last, and files from the cache alone.
    pub fn is_offline(&self) -> bool {
        self.0.store.config().offline
    }

    /// A table by its name `NAMESPACE.TABLE`, or by the path or URL of its metadata JSON.
    ///
    /// The last `.` parts the table's name from the namespace's levels.
    ///
    /// # Errors
    /// What the catalog or the store says.
    pub async fn table(&self, name: &str) -> Result<Table> {
        if is_location(name) {
            return self.table_at(name).await;
        }
        self.table_of(&parse_ident(name)?).await
    }

    /// A table of the catalog, for names that hold a `.` themselves. Offline: as it was seen last.
    ///
    /// # Errors
    /// What the catalog or the store says.
    pub async fn table_of(&self, ident: &TableIdent) -> Result<Table> {
        if self.is_offline() {
            return self.table_offline(ident).await;
        }
        let table = self.load(ident).await?;
        self.note_seen(&table);
        Ok(table)
    }

    /// A table as its catalog points to it now, by its name, without taking note of the pointer: whoever acts on what
    /// changed since notes it with [`Floe::note_seen`] when that is done.
    ///
    /// # Errors
    /// What the catalog or the store says.
    pub async fn table_unnoted(&self, name: &str) -> Result<Table> {
        self.load(&parse_ident(name)?).await
    }

    /// The table as it was seen last, by any run of floe with this cache; `None` if it never was.
    ///
    /// # Errors
    /// If its metadata of then can't be read any more.
    pub async fn table_seen_last(&self, name: &str) -> Result<Option<Table>> {
        self.load_seen(&parse_ident(name)?).await
    }

    /// Takes note of where a table's pointer stood, for reading it offline later.
    pub fn note_seen(&self, table: &Table) {
        let table = table.iceberg();
        if let (Some(pointers), Some(location)) = (&self.0.pointers, table.metadata_location()) {
            // Not being able to note it costs an offline read later, not this one.
            if let Err(error) = pointers.note(table.identifier(), location) {
                tracing::debug!(%error, table = %table.identifier(), "can't note the table's pointer");
            }
        }
    }

    async fn load(&self, ident: &TableIdent) -> Result<Table> {
        let span = tracing::debug_span!("load", table = %ident);
        let catalog = self.catalog().await?;
        let table = catalog.load_table(ident).instrument(span).await?;
        Ok(Table::new(self.clone(), table, None))
    }

    /// A table by the path or URL of its metadata JSON.
    ///
    /// # Errors
    /// What the store says, or that it is no table metadata.
    pub async fn table_at(&self, metadata_location: &str) -> Result<Table> {
        let none = Default::default();
        let properties = self
            .0
            .config
            .as_ref()
            .map_or(&none, |config| &config.properties);
        let table =
            floe_catalog::load_metadata(metadata_location, properties, &self.0.store).await?;
        Ok(Table::new(self.clone(), table, None))
    }

    async fn table_offline(&self, ident: &TableIdent) -> Result<Table> {
        let Some(table) = self.load_seen(ident).await? else {
            let message = format!(
                "can't read {ident} offline: the catalog {:?} was never asked for it",
                self.config()?.name
            );
            return Err(Error::new(ErrorKind::Offline, message)
                .with_hint("read it once with network, or warm it: floe cache warm"));
        };
        if let Some(seen) = table.last_seen() {
            self.0
                .used
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(seen.clone());
        }
        Ok(table)
    }

    async fn load_seen(&self, ident: &TableIdent) -> Result<Option<Table>> {
        let config = self.config()?;
        let Some(seen) = self
            .0
            .pointers
            .as_ref()
            .and_then(|pointers| pointers.get(ident))
        else {
            return Ok(None);
        };
        let found =
            floe_catalog::load_metadata(&seen.metadata_location, &config.properties, &self.0.store)
                .await?;
        // The same table under the name that the catalog has for it.
        let table = iceberg::table::Table::builder()
            .identifier(ident.clone())
            .file_io(found.file_io().clone())
            .metadata(found.metadata_ref())
            .metadata_location(seen.metadata_location.clone())
            .readonly(true)
            .runtime(runtime()?)
            .build()
            .map_err(|source| {
                Error::new(
                    ErrorKind::Unexpected,
                    format!("can't open {ident} as it was seen last: {source}"),
                )
            })?;
        Ok(Some(Table::new(self.clone(), table, Some(seen))))
    }

    /// Which pointers were used without asking the catalog, in the order of use: say so to the user.
    pub fn used_last_seen(&self) -> Vec<LastSeen> {
        self.0
            .used
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Every namespace of the catalog, nested ones included, sorted. Offline: those of tables seen.
    ///
    /// # Errors
    /// What the catalog says.
    pub async fn namespaces(&self) -> Result<Vec<NamespaceIdent>> {
        if self.is_offline() {
            let mut namespaces: Vec<_> = self
                .seen()?
                .iter()
                .map(|ident| ident.namespace().clone())
                .collect();
            namespaces.sort();
            namespaces.dedup();
            return Ok(namespaces);
        }
        let catalog = self.catalog().await?;
        let mut found = Vec::new();
        let mut left = catalog.list_namespaces(None).await?;
        while let Some(namespace) = left.pop() {
            left.extend(catalog.list_namespaces(Some(&namespace)).await?);
            found.push(namespace);
        }
        found.sort();
        Ok(found)
    }

    /// The tables of a namespace, sorted. Offline: those seen.
    ///
    /// # Errors
    /// What the catalog says.
    pub async fn tables(&self, namespace: &NamespaceIdent) -> Result<Vec<TableIdent>> {
        if self.is_offline() {
            let mut tables = self.seen()?;
            tables.retain(|ident| ident.namespace() == namespace);
            tables.sort_by(|a, b| a.name().cmp(b.name()));
            return Ok(tables);
        }
        Ok(self.catalog().await?.list_tables(namespace).await?)
    }

    /// Plans a query over the catalog's tables: `NAMESPACE.TABLE`, or `CATALOG.NAMESPACE.TABLE`. It only reads.
    ///
    /// A table is loaded when the query is planned, once for each query however often it is named.
    ///
    /// # Errors
    /// What DataFusion, the catalog or the store says.
    pub async fn sql(&self, query: &str) -> Result<DataFrame> {
        sql::plan(self, query).await
    }

    fn config(&self) -> Result<&CatalogConfig> {
        self.0.config.as_ref().map_err(|why| {
            Error::new(ErrorKind::Invalid, why.clone()).with_hint(
                "name a configuration with --config FILE and a catalog with --catalog NAME",
            )
        })
    }

    fn seen(&self) -> Result<Vec<TableIdent>> {
        self.config()?;
        let all = self
            .0
            .pointers
            .as_ref()
            .map(Pointers::all)
            .unwrap_or_default();
        Ok(all.iter().filter_map(LastSeen::ident).collect())
    }
}

/// Whether a name is rather the location of a metadata file.
fn is_location(name: &str) -> bool {
    name.contains("://")
        || name.ends_with(".json")
        || name.ends_with(".json.gz")
        || name.starts_with("file:/")
}

/// `a.b.t` is table `t` of namespace `a.b`.
fn parse_ident(name: &str) -> Result<TableIdent> {
    let parts: Vec<&str> = name.split('.').collect();
    if parts.len() < 2 || parts.iter().any(|part| part.is_empty()) {
        return Err(Error::new(
            ErrorKind::Invalid,
            format!("'{name}' is not the name of a table"),
        )
        .with_hint("write NAMESPACE.TABLE, or the path or URL of a metadata JSON"));
    }
    TableIdent::from_strs(parts).map_err(|source| {
        Error::new(
            ErrorKind::Invalid,
            format!("'{name}' is not the name of a table: {source}"),
        )
    })
}

fn runtime() -> Result<iceberg::Runtime> {
    iceberg::Runtime::try_current().map_err(|_| {
        Error::new(
            ErrorKind::Invalid,
            "tables are loaded within a tokio runtime, and there is none",
        )
    })
}
