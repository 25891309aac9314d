//! Where a SQL catalog is, in the spellings of SQLAlchemy (PyIceberg), JDBC (Java) and sqlx.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use sqlx::ConnectOptions;
use sqlx::postgres::PgConnectOptions;
use url::Url;

use crate::error::{Error, ErrorKind, Result};
use crate::redact::redact_uri;

/// A database's place.
pub(super) enum Address {
    /// A file, absolute.
    Sqlite(PathBuf),
    /// A server; `shown` is its URI without secrets.
    Postgres {
        options: Box<PgConnectOptions>,
        shown: String,
    },
}

/// Read a catalog's `uri`; `jdbc.user` and `jdbc.password` complete a JDBC one.
pub(super) fn parse(uri: &str, properties: &HashMap<String, String>) -> Result<Address> {
    let invalid = |why: &str| {
        Error::new(
            ErrorKind::Invalid,
            format!("can't read the catalog's uri: {why}"),
        )
        .with_context("uri", redact_uri(uri))
        .with_hint("use sqlite:////dir/catalog.db or postgresql://user@host/database")
    };
    let plain = uri.strip_prefix("jdbc:").unwrap_or(uri);
    let (scheme, rest) = plain
        .split_once(':')
        .ok_or_else(|| invalid("it has no scheme"))?;
    // `postgresql+psycopg2`: SQLAlchemy's choice of a driver.
    match scheme
        .split('+')
        .next()
        .unwrap_or_default()
        .to_ascii_lowercase()
        .as_str()
    {
        "sqlite" => sqlite_path(rest)
            .map(Address::Sqlite)
            .map_err(|why| invalid(&why)),
        "postgres" | "postgresql" => {
            let options = postgres(rest, properties).map_err(|why| invalid(&why))?;
            Ok(Address::Postgres {
                options: Box::new(options),
                shown: redact_uri(uri).into_owned(),
            })
        }
        _ => Err(invalid("its scheme is neither sqlite nor postgresql")),
    }
}

/// What follows `sqlite:`, made an absolute path.
///
/// Nothing is decoded: SQLAlchemy and JDBC take `%` to the letter too. `///x` is the absolute `/x` to a URI's reader and
/// the relative `x` to SQLAlchemy: the one that exists is meant, and if both do, the user has to say.
fn sqlite_path(rest: &str) -> Result<PathBuf, String> {
    let rest = without_query(rest.strip_prefix("file:").unwrap_or(rest));
    if rest.contains('\0') {
        return Err("a path holds no NUL".into());
    }
    if rest.trim_start_matches('/').is_empty()
        || rest.starts_with(":memory:")
        || rest.ends_with("/:memory:")
    {
        return Err("a catalog lives in a file, not in memory".into());
    }
    let absolute =
        |path: &str| std::path::absolute(path).map_err(|e| format!("{path:?} is no path: {e}"));
    let slashes = rest.len() - rest.trim_start_matches('/').len();
    match slashes {
        2 => absolute(&rest[2..]),
        3 => {
            let (as_uri, as_sqlalchemy) = (absolute(&rest[2..])?, absolute(&rest[3..])?);
            match (as_uri.exists(), as_sqlalchemy.exists()) {
                (true, true) if as_uri != as_sqlalchemy => Err(format!(
                    "it may mean {} or {}, and both exist: write four slashes for the first, `sqlite:{}` for the second",
                    as_uri.display(),
                    as_sqlalchemy.display(),
                    &rest[3..]
                )),
                (false, true) => Ok(as_sqlalchemy),
                _ => Ok(as_uri),
            }
        }
        4.. => absolute(&rest[slashes - 1..]),
        _ => absolute(rest),
    }
}

/// A path without the parameters that may follow it, unless a file's name has the `?`.
fn without_query(rest: &str) -> &str {
    let is_file = |path: &str| {
        Path::new(path).is_file()
            || Path::new(&format!("/{}", path.trim_start_matches('/'))).is_file()
    };
    match rest.split_once('?') {
        Some((path, _)) if !is_file(rest) => path,
        _ => rest,
    }
}

/// What follows `postgresql:`. Neither PostgreSQL's variables nor `~/.pgpass` are bypassed: sqlx reads them.
fn postgres(rest: &str, properties: &HashMap<String, String>) -> Result<PgConnectOptions, String> {
    // JDBC knows `postgresql:database` and `postgresql:/database`, on this machine.
    let rest = match rest.strip_prefix("//") {
        Some(rest) => rest.to_string(),
        None => format!("localhost/{}", rest.trim_start_matches('/')),
    };
    let mut url =
        Url::parse(&format!("postgres://{rest}")).map_err(|e| match rest.split('/').next() {
            Some(hosts) if hosts.contains(',') => "it names several hosts; give one".to_string(),
            _ => e.to_string(),
        })?;
    translate_jdbc(&mut url);
    let mut options =
        PgConnectOptions::from_url(&url).map_err(|_| "a parameter is not valid".to_string())?;
    if let Some(user) = properties.get("jdbc.user") {
        options = options.username(user);
    }
    if let Some(password) = properties.get("jdbc.password") {
        options = options.password(password);
    }
    Ok(options)
}

/// JDBC's names of parameters in libpq's words; the ones without a counterpart are dropped.
fn translate_jdbc(url: &mut Url) {
    let known = [
        "sslmode",
        "sslrootcert",
        "sslcert",
        "sslkey",
        "host",
        "hostaddr",
        "port",
        "dbname",
        "user",
        "password",
    ];
    let pairs: Vec<(String, String)> = url
        .query_pairs()
        .filter_map(|(key, value)| {
            let key = match key.as_ref() {
                "currentSchema" => "options[search_path]".to_string(),
                "ApplicationName" => "application_name".to_string(),
                // JDBC's `ssl=true` verifies the server's certificate and name.
                "ssl" if value == "true" => {
                    return Some(("sslmode".to_string(), "verify-full".to_string()));
                }
                key if known.contains(&key)
                    || key == "application_name"
                    || key.starts_with("options") =>
                {
                    key.to_string()
                }
                _ => return None,
            };
            Some((key, value.into_owned()))
        })
        .collect();
    url.set_query(None);
    if !pairs.is_empty() {
        url.query_pairs_mut().extend_pairs(pairs);
    }
}
