//! Choosing a catalog by its properties. What each backend makes of them is the backend's.

use std::collections::HashMap;
use std::sync::Arc;

use floe_store::Store;

use crate::catalog::Catalog;
use crate::error::{Error, ErrorKind, Result};
use crate::redact::redact_uri;
use crate::rest::RestBackend;
use crate::sql::SqlCatalog;

/// The kinds of catalog there are.
#[derive(Debug, PartialEq, Eq)]
enum Backend {
    Sql,
    Rest,
}

/// A catalog by its name and Iceberg's properties: `type` (`sql` or `jdbc`, `rest`) and `uri`; without `type` the
/// scheme of `uri` decides, as in PyIceberg. All properties are handed on to the store for reading files.
///
/// Only what can be checked on this machine is checked here (a SQLite file that is missing, a URI that can't be read):
/// a server that can't be reached says so at the first call.
///
/// # Errors
/// [`ErrorKind::Invalid`] if the properties name no catalog, [`ErrorKind::Unsupported`] for a type floe does not have.
pub async fn connect(
    name: &str,
    properties: &HashMap<String, String>,
    store: &Store,
) -> Result<Arc<dyn Catalog>> {
    let uri = properties.get("uri").map(String::as_str).filter(|uri| !uri.is_empty()).ok_or_else(|| {
        Error::new(ErrorKind::Invalid, format!("catalog {name:?} has no `uri`"))
            .with_hint(format!("set `uri` under [catalog.{name}] in floe.toml, or PYICEBERG_CATALOG__<NAME>__URI"))
    })?;
    Ok(
        match choose(name, properties.get("type").map(String::as_str), uri)? {
            Backend::Sql => Arc::new(SqlCatalog::open(name, uri, properties, store)?),
            Backend::Rest => Arc::new(RestBackend::open(name, uri, properties, store).await?),
        },
    )
}

fn choose(name: &str, kind: Option<&str>, uri: &str) -> Result<Backend> {
    if let Some(kind) = kind {
        return match kind.to_ascii_lowercase().as_str() {
            "sql" | "jdbc" => Ok(Backend::Sql),
            "rest" => Ok(Backend::Rest),
            _ => Err(Error::new(
                ErrorKind::Unsupported,
                format!("catalog {name:?} is of type {kind:?}"),
            )
            .with_hint("floe reads catalogs of the types sql (or jdbc) and rest")),
        };
    }
    let scheme = uri
        .split(':')
        .next()
        .unwrap_or_default()
        .to_ascii_lowercase();
    match scheme.split('+').next().unwrap_or_default() {
        "http" | "https" => Ok(Backend::Rest),
        "sqlite" | "postgresql" | "postgres" | "jdbc" => Ok(Backend::Sql),
        _ => Err(Error::new(
            ErrorKind::Invalid,
            format!("catalog {name:?} has no `type`, and its uri does not tell"),
        )
        .with_context("uri", redact_uri(uri))
        .with_hint("set `type` to sql or rest")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_type_decides_and_without_it_the_scheme() {
        for (kind, uri, backend) in [
            (Some("rest"), "sqlite:x", Backend::Rest),
            (Some("SQL"), "http://h", Backend::Sql),
            (Some("jdbc"), "jdbc:sqlite:x", Backend::Sql),
            (None, "https://h", Backend::Rest),
            (None, "sqlite:///x", Backend::Sql),
            (None, "postgresql+psycopg2://h/db", Backend::Sql),
            (None, "jdbc:postgresql://h/db", Backend::Sql),
        ] {
            assert_eq!(choose("c", kind, uri).unwrap(), backend, "{kind:?} {uri}");
        }
    }

    #[test]
    fn a_catalog_that_floe_does_not_have_is_said_by_name() {
        let error = choose("c", Some("glue"), "x").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains("glue"), "{error}");
        let error = choose("c", None, "thrift://u:secret@h").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(!format!("{error} {error:?}").contains("secret"), "{error}");
    }
}
