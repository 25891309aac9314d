//! The SQL catalog: the JDBC / PyIceberg schema in SQLite or PostgreSQL, read only.
//!
//! Both databases answer the same queries (`queries`); `uri` reads the many spellings of where they are, `database` opens
//! them, `fault` names what went wrong.

mod database;
mod fault;
mod queries;
mod uri;

#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use floe_store::Store;
use iceberg::table::Table;
use iceberg::{NamespaceIdent, TableIdent};

use self::database::Database;
use crate::catalog::Catalog;
use crate::error::{Error, ErrorKind, Result};
use crate::metadata::{read_table, show};

/// How long a writer may keep a SQLite file locked before a read gives up.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Tables and namespaces of one catalog name in a SQL database.
pub(crate) struct SqlCatalog {
    name: String,
    database: Database,
    properties: HashMap<String, String>,
    store: Store,
}

impl SqlCatalog {
    /// A catalog at `uri`; nothing is asked of a server yet.
    pub(crate) fn open(
        name: &str,
        uri: &str,
        properties: &HashMap<String, String>,
        store: &Store,
    ) -> Result<Self> {
        let database = Database::open(uri::parse(uri, properties)?, BUSY_TIMEOUT)
            .map_err(|error| error.with_context("catalog", name))?;
        Ok(Self {
            name: name.to_string(),
            database,
            properties: properties.clone(),
            store: store.clone(),
        })
    }

    /// Every namespace the catalog knows, as its dotted string.
    async fn namespaces(&self) -> Result<BTreeSet<String>> {
        let rows = self
            .ask(queries::NAMESPACES, &[&self.name], ["namespace"])
            .await?;
        Ok(rows.into_iter().flat_map(|[namespace]| namespace).collect())
    }

    /// The error for a namespace that no row mentions, with the likeliest reason as hint.
    async fn no_namespace(&self, namespace: &NamespaceIdent) -> Result<Error> {
        let error = Error::new(
            ErrorKind::NamespaceNotFound,
            format!("there is no namespace {:?}", dotted(namespace)),
        )
        .with_context("catalog", &self.name)
        .with_context("database", self.database.shown());
        Ok(match self.other_catalogs().await? {
            Some(others) => error.with_hint(format!(
                "the database holds nothing under the catalog name {:?}, but under {others}: use one of these names",
                self.name
            )),
            None => error,
        })
    }

    /// The catalog names in use, if this catalog's is not among them.
    async fn other_catalogs(&self) -> Result<Option<String>> {
        const SHOWN: usize = 10;
        let rows = self.ask(queries::CATALOGS, &[], ["catalog_name"]).await?;
        let names: BTreeSet<String> = rows.into_iter().flat_map(|[name]| name).collect();
        if names.is_empty() || names.contains(&self.name) {
            return Ok(None);
        }
        let more = if names.len() > SHOWN { ", ..." } else { "" };
        let list: Vec<_> = names
            .iter()
            .take(SHOWN)
            .map(|name| format!("{name:?}"))
            .collect();
        Ok(Some(list.join(", ") + more))
    }

    async fn ask<const N: usize>(
        &self,
        sql: &'static str,
        values: &[&str],
        columns: [&str; N],
    ) -> Result<Vec<[Option<String>; N]>> {
        self.database
            .ask(sql, values, columns)
            .await
            .map_err(|error| error.with_context("catalog", &self.name))
    }
}

#[async_trait]
impl Catalog for SqlCatalog {
    fn name(&self) -> &str {
        &self.name
    }

    async fn list_namespaces(
        &self,
        parent: Option<&NamespaceIdent>,
    ) -> Result<Vec<NamespaceIdent>> {
        let all = self.namespaces().await?;
        if let Some(parent) = parent
            && !exists(&all, parent)
        {
            return Err(self.no_namespace(parent).await?);
        }
        if all.is_empty()
            && let Some(others) = self.other_catalogs().await?
        {
            tracing::warn!(catalog = self.name, %others, "the database holds nothing under this catalog's name");
        }
        Ok(children(&all, parent))
    }

    async fn list_tables(&self, namespace: &NamespaceIdent) -> Result<Vec<TableIdent>> {
        let rows = self
            .ask(
                queries::TABLES,
                &[&self.name, &dotted(namespace)],
                ["table_name", "iceberg_type"],
            )
            .await?;
        let is_empty = rows.is_empty();
        let names: BTreeSet<String> = rows
            .into_iter()
            .filter(|[_, kind]| is_table(kind))
            .flat_map(|[name, _]| name)
            .collect();
        if is_empty && !exists(&self.namespaces().await?, namespace) {
            return Err(self.no_namespace(namespace).await?);
        }
        Ok(names
            .into_iter()
            .map(|name| TableIdent::new(namespace.clone(), name))
            .collect())
    }

    async fn load_table(&self, ident: &TableIdent) -> Result<Table> {
        let values = [self.name.as_str(), &dotted(ident.namespace()), ident.name()];
        let rows = self
            .ask(
                queries::POINTER,
                &values,
                ["metadata_location", "iceberg_type"],
            )
            .await?;
        let missing = || {
            Error::new(
                ErrorKind::TableNotFound,
                format!("there is no table {:?}", show(ident)),
            )
            .with_context("catalog", &self.name)
        };
        let Some([location, kind]) = rows.into_iter().next() else {
            return Err(match exists(&self.namespaces().await?, ident.namespace()) {
                true => missing(),
                false => self.no_namespace(ident.namespace()).await?,
            });
        };
        if !is_table(&kind) {
            return Err(missing().with_hint("there is a view of this name; floe reads tables"));
        }
        let Some(location) = location.filter(|location| !location.is_empty()) else {
            return Err(Error::new(
                ErrorKind::Corrupt,
                format!("the catalog has no pointer for {:?}", show(ident)),
            )
            .with_context("catalog", &self.name)
            .with_hint(
                "its row in iceberg_tables has no metadata_location: register the table again",
            ));
        };
        read_table(ident, &location, &self.properties, &self.store).await
    }
}

impl fmt::Debug for SqlCatalog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqlCatalog")
            .field("name", &self.name)
            .field("database", &self.database.shown())
            .finish()
    }
}

/// Rows of other types are views. Catalogs of the first schema have no type, PyIceberg leaves it empty.
fn is_table(kind: &Option<String>) -> bool {
    kind.as_deref()
        .is_none_or(|kind| kind.trim().is_empty() || kind.trim().eq_ignore_ascii_case("TABLE"))
}

/// A namespace as the schema stores it.
fn dotted(namespace: &NamespaceIdent) -> String {
    namespace.join(".")
}

/// Whether a namespace was created or something lies below it.
fn exists(all: &BTreeSet<String>, namespace: &NamespaceIdent) -> bool {
    let name = dotted(namespace);
    let below = format!("{name}.");
    all.contains(&name)
        || all
            .range(below.clone()..)
            .next()
            .is_some_and(|next| next.starts_with(&below))
}

/// The namespaces one level below `parent`.
fn children(all: &BTreeSet<String>, parent: Option<&NamespaceIdent>) -> Vec<NamespaceIdent> {
    let prefix = parent
        .map(|parent| dotted(parent) + ".")
        .unwrap_or_default();
    let levels: BTreeSet<&str> = all
        .iter()
        .filter_map(|name| name.strip_prefix(&prefix))
        .filter_map(|below| below.split('.').next())
        .collect();
    let above = parent
        .map(|parent| dotted(parent).split('.').map(str::to_string).collect())
        .unwrap_or_default();
    let ident = |level: &str| {
        let above: &Vec<String> = &above;
        NamespaceIdent::from_vec(above.iter().cloned().chain([level.to_string()]).collect())
    };
    levels
        .into_iter()
        .filter_map(|level| ident(level).ok())
        .collect()
}
