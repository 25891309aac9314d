//! The REST catalog: iceberg-rust's client behind our contract, its files read through our store.
//!
//! The client is given a storage that is never used: of the tables it loads, metadata and properties (the server's, the
//! user's and the credentials vended for the table, merged) are taken, and the table is built anew over the store.

use std::collections::HashMap;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use floe_store::Store;
use iceberg::io::MemoryStorageFactory;
use iceberg::table::Table;
use iceberg::{Catalog as _, CatalogBuilder, NamespaceIdent, TableIdent};
use iceberg_catalog_rest::{RestCatalog, RestCatalogBuilder};

use self::fault::Fault;
use crate::catalog::Catalog;
use crate::error::{Error, ErrorKind, Result};
use crate::metadata::{build_table, show};
use crate::redact::redact_uri;

mod fault;

#[cfg(test)]
mod tests;

/// How long connecting to the server may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// How long the server may send nothing.
const READ_TIMEOUT: Duration = Duration::from_secs(60);
/// Asks the server for credentials of its own for each table; PyIceberg asks for the same.
const DELEGATION: &str = "header.x-iceberg-access-delegation";

/// An Iceberg REST catalog.
pub(crate) struct RestBackend {
    name: String,
    uri: String,
    client: RestCatalog,
    properties: HashMap<String, String>,
    store: Store,
}

impl RestBackend {
    /// A catalog at `uri`; nothing is asked of the server yet.
    pub(crate) async fn open(
        name: &str,
        uri: &str,
        properties: &HashMap<String, String>,
        store: &Store,
    ) -> Result<Self> {
        let uri = uri.trim_end_matches('/').to_string();
        let invalid = |why: &str| {
            Error::new(
                ErrorKind::Invalid,
                format!("can't use the REST catalog {name:?}: {why}"),
            )
            .with_context("uri", redact_uri(&uri))
        };
        if !url::Url::parse(&uri)
            .is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
        {
            return Err(invalid("its uri is no http(s) URL"));
        }
        let http = reqwest::Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .read_timeout(READ_TIMEOUT)
            .build()
            .map_err(|e| invalid("no HTTP client could be made").with_source(e))?;
        let mut asked = properties.clone();
        asked.insert("uri".into(), uri.clone());
        if !asked.keys().any(|key| key.eq_ignore_ascii_case(DELEGATION)) {
            asked.insert(DELEGATION.into(), "vended-credentials".into());
        }
        let client = RestCatalogBuilder::default()
            .with_client(http)
            .with_storage_factory(Arc::new(MemoryStorageFactory))
            .load(name, asked)
            .await
            .map_err(|e| invalid(e.message()))?;
        Ok(Self {
            name: name.to_string(),
            uri,
            client,
            properties: properties.clone(),
            store: store.clone(),
        })
    }

    /// Whether the server refused an expired token and gave a new one. The client itself never renews.
    async fn renewed<T>(&self, answer: &iceberg::Result<T>) -> bool {
        let Err(error) = answer else { return false };
        self.properties.contains_key("credential")
            && Fault::of(error).status == Some(401)
            && self.client.regenerate_token().await.is_ok()
    }

    /// Our error for one of the client's.
    fn explain(&self, attempted: &str, error: &iceberg::Error) -> Error {
        let secrets: Vec<&str> = self
            .properties
            .iter()
            .filter(|(key, _)| {
                matches!(key.as_str(), "token" | "credential") || key.starts_with("header.")
            })
            .flat_map(|(_, value)| [value.as_str(), value.rsplit(':').next().unwrap_or_default()])
            .collect();
        Fault::of(error)
            .explain(attempted, error, &secrets)
            .with_context("catalog", &self.name)
            .with_context("uri", redact_uri(&self.uri))
    }

    /// A table the server does not know: is it the table or its namespace that is missing?
    async fn missing(&self, ident: &TableIdent, asked: &NamespaceIdent) -> Error {
        let (kind, what) = match self.client.get_namespace(asked).await {
            Err(e) if e.kind() == iceberg::ErrorKind::NamespaceNotFound => (
                ErrorKind::NamespaceNotFound,
                format!("there is no namespace {:?}", ident.namespace().join(".")),
            ),
            _ => (
                ErrorKind::TableNotFound,
                format!("there is no table {:?}", show(ident)),
            ),
        };
        Error::new(kind, what)
            .with_context("catalog", &self.name)
            .with_context("uri", redact_uri(&self.uri))
    }
}

#[async_trait]
impl Catalog for RestBackend {
    fn name(&self) -> &str {
        &self.name
    }

    async fn list_namespaces(
        &self,
        parent: Option<&NamespaceIdent>,
    ) -> Result<Vec<NamespaceIdent>> {
        let mut answer = self.client.list_namespaces(parent).await;
        if self.renewed(&answer).await {
            answer = self.client.list_namespaces(parent).await;
        }
        let mut namespaces = answer.map_err(|e| self.explain("list namespaces", &e))?;
        namespaces.sort_by(|a, b| a.as_ref().cmp(b.as_ref()));
        namespaces.dedup();
        Ok(namespaces)
    }

    async fn list_tables(&self, namespace: &NamespaceIdent) -> Result<Vec<TableIdent>> {
        let asked = escape_namespace(namespace)?;
        let mut answer = self.client.list_tables(&asked).await;
        if self.renewed(&answer).await {
            answer = self.client.list_tables(&asked).await;
        }
        let mut tables = answer.map_err(|e| {
            self.explain("list tables", &e)
                .with_context("namespace", namespace.join("."))
        })?;
        tables.sort_by(|a, b| a.name().cmp(b.name()));
        tables.dedup();
        Ok(tables)
    }

    async fn load_table(&self, ident: &TableIdent) -> Result<Table> {
        let asked = TableIdent::new(escape_namespace(ident.namespace())?, escape(ident.name())?);
        let mut answer = self.client.load_table(&asked).await;
        if self.renewed(&answer).await {
            answer = self.client.load_table(&asked).await;
        }
        let loaded = match answer {
            Ok(loaded) => loaded,
            Err(e) if e.kind() == iceberg::ErrorKind::TableNotFound => {
                return Err(self.missing(ident, asked.namespace()).await);
            }
            Err(e) => {
                return Err(self
                    .explain("load a table", &e)
                    .with_context("table", show(ident)));
            }
        };
        let mut properties = file_properties(&self.properties, loaded.file_io().config().props());
        if let Some(principal) = principal(&self.uri, &self.properties) {
            properties
                .entry(floe_store::PRINCIPAL.to_string())
                .or_insert(principal);
        }
        let location = loaded.metadata_location().map(str::to_string);
        build_table(
            ident.clone(),
            location,
            loaded.metadata_ref(),
            &properties,
            &self.store,
        )
    }
}

impl fmt::Debug for RestBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RestBackend")
            .field("name", &self.name)
            .field("uri", &redact_uri(&self.uri))
            .finish()
    }
}

/// The properties for a table's files: the client's merge of the server's, the table's and the user's, in which the
/// user's win. A session token that was vended with other keys than the user's must not be mixed with them.
fn file_properties(
    user: &HashMap<String, String>,
    merged: &HashMap<String, String>,
) -> HashMap<String, String> {
    let mut properties = merged.clone();
    if user.contains_key("s3.access-key-id") && !user.contains_key("s3.session-token") {
        properties.remove("s3.session-token");
    }
    properties
}

/// Who asks the server, for a cache kept by principal: vended credentials change all the time, the one they are vended to
/// does not. A secret enters as a hash only.
fn principal(uri: &str, user: &HashMap<String, String>) -> Option<String> {
    let secret = |text: &str| {
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        format!("{:016x}", hasher.finish())
    };
    let who = match (user.get("token"), user.get("credential")) {
        (Some(token), _) => secret(token),
        (None, Some(credential)) => match credential.split_once(':') {
            Some((client, _)) => client.to_string(),
            None => secret(credential),
        },
        (None, None) => return None,
    };
    Some(format!("{who} at {}", redact_uri(uri)))
}

fn escape_namespace(namespace: &NamespaceIdent) -> Result<NamespaceIdent> {
    let levels = namespace
        .iter()
        .map(|level| escape(level))
        .collect::<Result<Vec<_>>>()?;
    NamespaceIdent::from_vec(levels).map_err(|e| Error::new(ErrorKind::Invalid, e.message()))
}

/// A name as a part of a URL's path. The client puts names into paths unescaped, where `/`, `?`, `#` and `%` would ask
/// for another table than was meant.
fn escape(name: &str) -> Result<String> {
    if name.is_empty() || name == "." || name == ".." {
        return Err(Error::new(
            ErrorKind::Invalid,
            format!("a REST catalog can't be asked for the name {name:?}"),
        ));
    }
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    let mut escaped = String::with_capacity(name.len());
    for byte in name.bytes() {
        match is_plain(byte) {
            true => escaped.push(char::from(byte)),
            false => escaped.push_str(&format!("%{byte:02X}")),
        }
    }
    Ok(escaped)
}
