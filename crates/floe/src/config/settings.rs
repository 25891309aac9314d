//! The settings that are not a catalog's, each with its source, and their defaults.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::PathBuf;
use std::time::Duration;

use floe_store::{CacheConfig, CacheScope, OriginConfig};

use super::environment::Environment;
use super::source::{Found, Source};
use super::{Entry, paths};

/// Everything but catalogs.
#[derive(Clone)]
pub(super) struct Settings {
    pub(super) default_catalog: Option<Found<String>>,
    pub(super) cache: Cache,
    pub(super) origin: Origin,
    pub(super) audit_path: Option<Found<PathBuf>>,
    pub(super) location_map: BTreeMap<String, Found<String>>,
}

/// `[cache]`.
#[derive(Clone)]
pub(super) struct Cache {
    pub(super) dir: Found<Option<PathBuf>>,
    pub(super) max_bytes: Found<u64>,
    pub(super) keep_free_bytes: Found<u64>,
    pub(super) memory_bytes: Found<u64>,
    pub(super) scope: Found<CacheScope>,
}

/// `[origin]`.
#[derive(Clone)]
pub(super) struct Origin {
    pub(super) concurrency: Found<usize>,
    pub(super) retries: Found<u32>,
    pub(super) timeout: Found<Duration>,
}

impl Settings {
    /// What holds when nothing is said: the store's own defaults, and a cache in the user's cache directory.
    pub(super) fn defaults(environment: &Environment) -> Self {
        let cache = CacheConfig::default();
        let origin = OriginConfig::default();
        Self {
            default_catalog: None,
            cache: Cache {
                dir: unsaid(paths::default_cache_dir(environment)),
                max_bytes: unsaid(cache.max_bytes),
                keep_free_bytes: unsaid(cache.keep_free_bytes),
                memory_bytes: unsaid(cache.memory_bytes),
                scope: unsaid(cache.scope),
            },
            origin: Origin {
                concurrency: unsaid(origin.concurrency),
                retries: unsaid(origin.retries),
                timeout: unsaid(origin.timeout),
            },
            audit_path: None,
            location_map: BTreeMap::new(),
        }
    }

    pub(super) fn entries(&self) -> Vec<Entry> {
        let mut entries = Vec::new();
        let mut add = |key: &str, value: String, source: &Source| {
            entries.push(Entry {
                key: key.to_string(),
                value,
                source: source.to_string(),
            });
        };
        if let Some(name) = &self.default_catalog {
            add("default-catalog", name.value.clone(), &name.source);
        }
        let Cache {
            dir,
            max_bytes,
            keep_free_bytes,
            memory_bytes,
            scope,
        } = &self.cache;
        let shown = dir
            .value
            .as_ref()
            .map_or("none".to_string(), |dir| dir.display().to_string());
        add("cache.dir", shown, &dir.source);
        for (key, found) in [
            ("max-bytes", max_bytes),
            ("keep-free-bytes", keep_free_bytes),
            ("memory-bytes", memory_bytes),
        ] {
            add(&format!("cache.{key}"), text(&found.value), &found.source);
        }
        let word = match scope.value {
            CacheScope::User => "user",
            CacheScope::Principal => "principal",
        };
        add("cache.scope", word.to_string(), &scope.source);
        let Origin {
            concurrency,
            retries,
            timeout,
        } = &self.origin;
        add(
            "origin.concurrency",
            text(&concurrency.value),
            &concurrency.source,
        );
        add("origin.retries", text(&retries.value), &retries.source);
        add(
            "origin.timeout",
            format!("{} s", timeout.value.as_secs_f64()),
            &timeout.source,
        );
        if let Some(path) = &self.audit_path {
            add("audit.path", path.value.display().to_string(), &path.source);
        }
        for (from, to) in &self.location_map {
            add(
                &format!("location-map.{from:?}"),
                floe_catalog::redact_uri(&to.value).into_owned(),
                &to.source,
            );
        }
        entries
    }
}

fn unsaid<T>(value: T) -> Found<T> {
    Found::new(value, Source::Default)
}

fn text(value: &impl Display) -> String {
    value.to_string()
}
