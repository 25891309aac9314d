//! `floe.toml`. Every key is known or an error: a setting that is silently not applied is worse than none.

use std::io;
use std::path::Path;

use floe_store::CacheScope;
use toml::{Table, Value};

use super::catalog::{Catalogs, merge};
use super::error::{Error, Result};
use super::settings::Settings;
use super::source::{Found, Source};
use super::{paths, units};

const SECTIONS: [&str; 6] = [
    "default-catalog",
    "catalog",
    "cache",
    "origin",
    "audit",
    "location-map",
];
const CACHE: [&str; 5] = [
    "dir",
    "max-bytes",
    "keep-free-bytes",
    "memory-bytes",
    "scope",
];
const ORIGIN: [&str; 3] = ["concurrency", "retries", "timeout"];
const AUDIT: [&str; 1] = ["path"];

/// The text of a configuration file; `None` if there is none.
pub(super) fn read(path: &Path) -> Result<Option<String>> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(Error::new(format!(
            "can't read the configuration file {}",
            path.display()
        ))
        .with_source(e)),
    }
}

/// A `floe.toml` being read.
pub(super) struct File<'a> {
    pub(super) path: &'a Path,
    pub(super) source: &'a Source,
    pub(super) home: Option<&'a Path>,
}

impl File<'_> {
    /// Take over what the file says.
    pub(super) fn apply(
        &self,
        text: &str,
        settings: &mut Settings,
        catalogs: &mut Catalogs,
    ) -> Result<()> {
        // toml's own text quotes the line, which may hold a secret.
        let table: Table = text.parse().map_err(|e: toml::de::Error| {
            let line = e.span().map_or(1, |span| {
                text[..span.start.min(text.len())].matches('\n').count() + 1
            });
            Error::new(format!(
                "{} is not valid TOML, line {line}: {}",
                self.path.display(),
                e.message()
            ))
        })?;
        for (key, value) in &table {
            match key.as_str() {
                "default-catalog" => {
                    settings.default_catalog = Some(self.found(self.string(key, value)?))
                }
                "catalog" => self.catalogs(self.table(key, value)?, catalogs)?,
                "cache" => self.cache(self.table(key, value)?, settings)?,
                "origin" => self.origin(self.table(key, value)?, settings)?,
                "audit" => self.audit(self.table(key, value)?, settings)?,
                "location-map" => self.location_map(self.table(key, value)?, settings)?,
                _ => return Err(self.unknown("", key, &SECTIONS)),
            }
        }
        Ok(())
    }

    fn catalogs(&self, tables: &Table, catalogs: &mut Catalogs) -> Result<()> {
        for (i, (name, value)) in tables.iter().enumerate() {
            if let Some(twin) = tables
                .keys()
                .take(i)
                .find(|twin| twin.to_lowercase() == name.to_lowercase())
            {
                return Err(self.wrong(
                    &format!("catalog.{name}"),
                    &format!("differs from catalog.{twin} by case only"),
                ));
            }
            let mut properties = Vec::new();
            self.flatten(
                "",
                self.table(&format!("catalog.{name}"), value)?,
                &mut properties,
            )?;
            for (key, value) in &mut properties {
                *value = paths::resolve_property(&key.to_lowercase(), value, self.base());
            }
            merge(catalogs, name, properties, self.source)?;
        }
        Ok(())
    }

    /// `s3 = { endpoint = ... }` is `"s3.endpoint" = ...`; numbers and switches become Iceberg's strings.
    fn flatten(&self, prefix: &str, table: &Table, into: &mut Vec<(String, String)>) -> Result<()> {
        for (key, value) in table {
            let key = format!("{prefix}{key}");
            match value {
                Value::Table(below) => self.flatten(&format!("{key}."), below, into)?,
                Value::Array(_) => {
                    return Err(self.wrong(&key, "is a list; a property of a catalog is one value"));
                }
                Value::String(text) => into.push((key, text.clone())),
                other => into.push((key, other.to_string())),
            }
        }
        Ok(())
    }

    fn cache(&self, table: &Table, settings: &mut Settings) -> Result<()> {
        let cache = &mut settings.cache;
        for (key, value) in table {
            let name = format!("cache.{key}");
            match key.as_str() {
                "dir" => {
                    let dir = paths::resolve(&self.string(&name, value)?, self.base(), self.home);
                    cache.dir = self.found(Some(dir));
                }
                "max-bytes" => cache.max_bytes = self.found(self.bytes(&name, value)?),
                "keep-free-bytes" => cache.keep_free_bytes = self.found(self.bytes(&name, value)?),
                "memory-bytes" => cache.memory_bytes = self.found(self.bytes(&name, value)?),
                "scope" => {
                    cache.scope = self.found(match self.string(&name, value)?.as_str() {
                        "user" => CacheScope::User,
                        "principal" => CacheScope::Principal,
                        other => {
                            return Err(self.wrong(
                                &name,
                                &format!("is {other:?}; it is \"user\" or \"principal\""),
                            ));
                        }
                    });
                }
                _ => return Err(self.unknown("cache.", key, &CACHE)),
            }
        }
        Ok(())
    }

    fn origin(&self, table: &Table, settings: &mut Settings) -> Result<()> {
        let origin = &mut settings.origin;
        for (key, value) in table {
            let name = format!("origin.{key}");
            match key.as_str() {
                "concurrency" => {
                    let count = self.count(&name, value)?;
                    if count == 0 {
                        return Err(self.wrong(&name, "is 0; at least one connection is needed"));
                    }
                    origin.concurrency = self.found(count as usize);
                }
                "retries" => origin.retries = self.found(self.count(&name, value)?),
                "timeout" => {
                    let time = units::duration(&self.scalar(&name, value)?);
                    origin.timeout = self.found(
                        time.map_err(|why| self.wrong(&name, &format!("is {value}: {why}")))?,
                    );
                }
                _ => return Err(self.unknown("origin.", key, &ORIGIN)),
            }
        }
        Ok(())
    }

    fn audit(&self, table: &Table, settings: &mut Settings) -> Result<()> {
        for (key, value) in table {
            match key.as_str() {
                "path" => {
                    let path =
                        paths::resolve(&self.string("audit.path", value)?, self.base(), self.home);
                    settings.audit_path = Some(self.found(path));
                }
                _ => return Err(self.unknown("audit.", key, &AUDIT)),
            }
        }
        Ok(())
    }

    fn location_map(&self, table: &Table, settings: &mut Settings) -> Result<()> {
        for (from, to) in table {
            let target = self.string(&format!("location-map.{from:?}"), to)?;
            let target = paths::resolve_location(&target, self.base(), self.home);
            settings
                .location_map
                .insert(from.clone(), self.found(target));
        }
        Ok(())
    }

    fn found<T>(&self, value: T) -> Found<T> {
        Found::new(value, self.source.clone())
    }

    fn base(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("/"))
    }

    fn table<'v>(&self, key: &str, value: &'v Value) -> Result<&'v Table> {
        value.as_table().ok_or_else(|| {
            self.wrong(
                key,
                &format!("is of type {}; it must be a table", value.type_str()),
            )
        })
    }

    fn string(&self, key: &str, value: &Value) -> Result<String> {
        match value.as_str() {
            Some("") => Err(self.wrong(key, "is empty")),
            Some(text) => Ok(text.to_string()),
            None => Err(self.wrong(
                key,
                &format!("is of type {}; it must be a string", value.type_str()),
            )),
        }
    }

    fn scalar(&self, key: &str, value: &Value) -> Result<String> {
        match value {
            Value::Integer(_) | Value::Float(_) => Ok(value.to_string()),
            value => self.string(key, value),
        }
    }

    fn bytes(&self, key: &str, value: &Value) -> Result<u64> {
        units::bytes(&self.scalar(key, value)?)
            .map_err(|why| self.wrong(key, &format!("is {value}: {why}")))
    }

    fn count(&self, key: &str, value: &Value) -> Result<u32> {
        let count = value
            .as_integer()
            .and_then(|count| u32::try_from(count).ok());
        count.ok_or_else(|| {
            self.wrong(
                key,
                &format!("is {value}; it must be a whole number, 0 or more"),
            )
        })
    }

    fn wrong(&self, key: &str, what: &str) -> Error {
        Error::new(format!("{}: `{key}` {what}", self.path.display()))
    }

    fn unknown(&self, section: &str, key: &str, known: &[&str]) -> Error {
        let error = Error::new(format!(
            "{}: unknown key `{section}{key}`",
            self.path.display()
        ));
        match nearest(key, known) {
            Some(near) => error.with_hint(format!("did you mean `{section}{near}`?")),
            None => error.with_hint(format!("known here: {}", known.join(", "))),
        }
    }
}

/// The known key that takes the fewest edits, if they are few.
fn nearest<'a>(key: &str, known: &[&'a str]) -> Option<&'a str> {
    let key = key.to_lowercase().replace('_', "-");
    known
        .iter()
        .map(|near| (edits(&key, near), *near))
        .min()
        .filter(|(edits, near)| *edits <= near.len().max(key.len()) / 2)
        .map(|(_, near)| near)
}

/// Levenshtein's distance.
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}
