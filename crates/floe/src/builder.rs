//! How a [`Floe`] is put together: configuration, or explicit properties, or both.

use std::collections::HashMap;
use std::path::PathBuf;

use floe_store::{Store, StoreConfig};

use crate::config::{CatalogConfig, Config};
use crate::error::{Error, ErrorKind, Result};
use crate::floe::Floe;

/// Builds a [`Floe`]. What is said here goes before what the configuration says.
#[derive(Clone, Debug, Default)]
pub struct FloeBuilder {
    config: Option<Config>,
    catalog: Option<String>,
    properties: HashMap<String, String>,
    store: Option<StoreConfig>,
    cache_dir: Option<PathBuf>,
    offline: bool,
}

impl FloeBuilder {
    /// Take catalogs and settings from this configuration.
    #[must_use]
    pub fn config(mut self, config: Config) -> Self {
        self.config = Some(config);
        self
    }

    /// The catalog to read; without it the configuration's default.
    #[must_use]
    pub fn catalog(mut self, name: impl Into<String>) -> Self {
        self.catalog = Some(name.into());
        self
    }

    /// A property of the catalog by its Iceberg name (`type`, `uri`, `s3.endpoint`, ...).
    #[must_use]
    pub fn property(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.properties.insert(key.into(), value.into());
        self
    }

    /// Several properties of the catalog.
    #[must_use]
    pub fn properties(mut self, properties: impl IntoIterator<Item = (String, String)>) -> Self {
        self.properties.extend(properties);
        self
    }

    /// The store's settings, in place of the configuration's.
    #[must_use]
    pub fn store(mut self, config: StoreConfig) -> Self {
        self.store = Some(config);
        self
    }

    /// Directory of the cache on disk.
    #[must_use]
    pub fn cache_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.cache_dir = Some(dir.into());
        self
    }

    /// Never ask anybody: tables are read as they were seen last, files from the cache alone. Default: false.
    #[must_use]
    pub fn offline(mut self, offline: bool) -> Self {
        self.offline = offline;
        self
    }

    /// Opens the store. The catalog is asked for nothing until a table is.
    ///
    /// # Errors
    /// A catalog that is not configured, a cache directory that must not be trusted. Without any catalog, tables can
    /// still be read by the location of their metadata.
    pub fn build(self) -> Result<Floe> {
        let catalog = self.catalog_config()?;
        let mut store = match (self.store, &self.config) {
            (Some(store), _) => store,
            (None, Some(config)) => config.store_config()?,
            (None, None) => StoreConfig::default(),
        };
        if self.cache_dir.is_some() {
            store.cache.dir = self.cache_dir;
        }
        store.offline |= self.offline;
        Ok(Floe::new(catalog, Store::open(store)?))
    }

    /// The catalog's name and properties, or why there is none.
    fn catalog_config(&self) -> Result<std::result::Result<CatalogConfig, String>> {
        let configured = match (&self.config, &self.catalog) {
            (Some(config), Some(name)) if self.properties.is_empty() => config.catalog(name)?,
            (Some(config), Some(name))
                if config
                    .catalog_names()
                    .any(|known| known.eq_ignore_ascii_case(name)) =>
            {
                config.catalog(name)?
            }
            (Some(config), None) => match config.default_catalog() {
                Ok(name) => config.catalog(name)?,
                // Only a call that needs a catalog fails, with what the configuration said.
                Err(none) if self.properties.is_empty() => {
                    return Ok(Err(match none.hint() {
                        Some(hint) => format!("{none}: {hint}"),
                        None => none.to_string(),
                    }));
                }
                Err(_) => return Err(unnamed()),
            },
            (_, Some(name)) => CatalogConfig {
                name: name.clone(),
                properties: HashMap::new(),
            },
            (None, None) if self.properties.is_empty() => {
                return Ok(Err("no catalog was named".to_string()));
            }
            (None, None) => return Err(unnamed()),
        };
        let CatalogConfig {
            name,
            mut properties,
        } = configured;
        properties.extend(self.properties.clone());
        Ok(Ok(CatalogConfig { name, properties }))
    }
}

fn unnamed() -> Error {
    Error::new(
        ErrorKind::Invalid,
        "properties of a catalog were given, but not its name",
    )
    .with_hint("name it with FloeBuilder::catalog")
}
