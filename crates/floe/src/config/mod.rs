//! Configuration: what floe is told by flags, the environment, `floe.toml` and `.pyiceberg.yaml`, and where it was told.
//!
//! ```text
//!  flag  >  environment  >  --config FILE, else ./floe.toml  >  .pyiceberg.yaml  >  defaults
//!                \________________ Discover _________________/
//!                                     |  every value with its Source
//!                                     v
//!                  Config --catalog(name)--> CatalogConfig   (refused if it would redirect credentials: `guard`)
//!                         --store_config()--> floe_store::StoreConfig
//!                         --entries()-------> what `floe config` shows, secrets hidden
//! ```
//!
//! `environment` reads the variables, `toml_file` and `yaml_file` the files, `paths` resolves what is relative, `secret`
//! knows what must not be shown. Opening catalogs and stores is not done here.

mod catalog;
mod environment;
mod error;
mod guard;
mod paths;
mod secret;
mod settings;
mod source;
mod toml_file;
mod units;
mod yaml_file;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use floe_store::{CacheConfig, LocationMap, OriginConfig, StoreConfig};
use serde::Serialize;

pub use self::catalog::CatalogConfig;
use self::catalog::CatalogValues;
pub use self::environment::Environment;
pub use self::error::{Error, Result};
use self::settings::Settings;
use self::source::{Found, Place, Source};

/// The catalog taken when none is named, as in PyIceberg.
const DEFAULT_CATALOG: &str = "default";

/// Where to look for configuration, and what flags say already.
#[derive(Clone, Debug, Default)]
pub struct Discover {
    /// Variables and directories; nothing else of the process is looked at.
    pub environment: Environment,
    /// `--config`: a `floe.toml` (or a `.yaml` in PyIceberg's form) to read instead of `./floe.toml`.
    pub config: Option<PathBuf>,
    /// `--catalog`: the catalog to use when a call names none.
    pub catalog: Option<String>,
    /// `--offline`: never ask an origin for a file.
    pub offline: bool,
}

/// Everything that was configured, each value with its source.
///
/// `Debug` hides secrets.
#[derive(Clone)]
pub struct Config {
    environment: Environment,
    offline: bool,
    files: Vec<PathBuf>,
    settings: Settings,
    catalogs: BTreeMap<String, CatalogValues>,
}

/// One configured value as it may be shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// Its full name, `catalog.NAME.s3.endpoint`.
    pub key: String,
    /// Its value, hidden if it is a secret.
    pub value: String,
    /// Where it was found.
    pub source: String,
}

impl Config {
    /// Read everything there is to read.
    ///
    /// # Errors
    /// A file that was named but is missing, a file or variable that can't be understood; the error says which.
    pub fn discover(options: &Discover) -> Result<Self> {
        let environment = &options.environment;
        let named = options
            .config
            .clone()
            .or_else(|| environment.get("FLOE_CONFIG").map(PathBuf::from));
        let named = named.map(|path| paths::plain(&environment.cwd.join(path)));
        let mut config = Self {
            environment: environment.clone(),
            offline: options.offline,
            files: Vec::new(),
            settings: Settings::defaults(environment),
            catalogs: BTreeMap::new(),
        };
        // Lowest precedence first: what is read later replaces.
        if let Some(path) = yaml_file::find(environment, named.as_deref())? {
            config.read_yaml(path)?;
        }
        match named {
            Some(path) => config.read_named(path)?,
            None => config.read_own_toml()?,
        }
        environment::apply(environment, &mut config.settings, &mut config.catalogs)?;
        if let Some(name) = &options.catalog {
            config.settings.default_catalog =
                Some(Found::new(name.clone(), Source::Flag("--catalog")));
        }
        Ok(config)
    }

    /// The name of the catalog to use when none is named: `--catalog`, `default-catalog`, the catalog called `default`, or
    /// the only one there is.
    ///
    /// # Errors
    /// If none of these tells; the error lists the catalogs.
    pub fn default_catalog(&self) -> Result<&str> {
        if let Some(name) = &self.settings.default_catalog {
            return Ok(&name.value);
        }
        if let Some(catalog) = self.catalogs.get(DEFAULT_CATALOG) {
            return Ok(&catalog.name);
        }
        let mut all = self.catalogs.values();
        match (all.next(), all.next()) {
            (Some(only), None) => Ok(&only.name),
            (None, _) => Err(Error::new("no catalog is configured").with_hint(
                "write a [catalog.NAME] table into floe.toml, or name a configuration with --config FILE",
            )),
            _ => Err(Error::new(format!("several catalogs are configured ({}), and none is the default", self.names()))
                .with_hint("choose one with --catalog NAME, or set `default-catalog`")),
        }
    }

    /// The names of all catalogs, sorted.
    pub fn catalog_names(&self) -> impl Iterator<Item = &str> {
        self.catalogs.values().map(|catalog| catalog.name.as_str())
    }

    /// The properties of a catalog. Its name is matched without regard to case, as in PyIceberg, and kept as given.
    ///
    /// # Errors
    /// If there is no such catalog, or if a file found in the working directory would send credentials that came from
    /// elsewhere to a place of its own choice.
    pub fn catalog(&self, name: &str) -> Result<CatalogConfig> {
        let values = self.catalogs.get(&name.to_lowercase()).ok_or_else(|| match self.catalogs.is_empty() {
            true => Error::new(format!("there is no catalog {name:?}: none is configured"))
                .with_hint(format!("write a [catalog.{name}] table into floe.toml, or name one with --config FILE")),
            false => Error::new(format!("there is no catalog {name:?}")).with_hint(format!("configured: {}", self.names())),
        })?;
        guard::check(values, &self.settings.location_map, &self.environment)?;
        Ok(values.config(name))
    }

    /// The settings of the store of files.
    ///
    /// # Errors
    /// If the location map can't be used.
    pub fn store_config(&self) -> Result<StoreConfig> {
        let cache = &self.settings.cache;
        let origin = &self.settings.origin;
        let mut location_map = LocationMap::new();
        for (from, to) in &self.settings.location_map {
            location_map.insert(from, &to.value).map_err(|e| {
                Error::new(format!(
                    "can't use the entry {from:?} of [location-map], {}",
                    to.source
                ))
                .with_source(e)
            })?;
        }
        Ok(StoreConfig {
            cache: CacheConfig {
                // No room on disk is no disk tier.
                dir: cache
                    .dir
                    .value
                    .clone()
                    .filter(|_| cache.max_bytes.value > 0),
                max_bytes: cache.max_bytes.value,
                keep_free_bytes: cache.keep_free_bytes.value,
                memory_bytes: cache.memory_bytes.value,
                scope: cache.scope.value,
            },
            origin: OriginConfig {
                concurrency: origin.concurrency.value,
                retries: origin.retries.value,
                timeout: origin.timeout.value,
                ..OriginConfig::default()
            },
            location_map,
            offline: self.offline,
        })
    }

    /// Where the audit trail is written, if it was said.
    pub fn audit_path(&self) -> Option<&Path> {
        self.settings
            .audit_path
            .as_ref()
            .map(|path| path.value.as_path())
    }

    /// The files that were read, lowest precedence first.
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// Every value with its source, secrets hidden: what `floe config` shows.
    pub fn entries(&self) -> Vec<Entry> {
        let mut entries = self.settings.entries();
        entries.extend(self.catalogs.values().flat_map(CatalogValues::entries));
        entries
    }

    fn names(&self) -> String {
        self.catalog_names().collect::<Vec<_>>().join(", ")
    }

    fn read_named(&mut self, path: PathBuf) -> Result<()> {
        if yaml_file::is_yaml(&path) {
            let source = Source::File {
                path: path.clone(),
                found: Place::Named,
            };
            return self.apply_yaml(path, source);
        }
        let text = toml_file::read(&path)?.ok_or_else(|| {
            Error::new(format!("there is no configuration file {}", path.display()))
                .with_hint("it was named by --config or FLOE_CONFIG")
        })?;
        self.apply_toml(path, &text, Place::Named)
    }

    fn read_own_toml(&mut self) -> Result<()> {
        let path = self.environment.cwd.join("floe.toml");
        match toml_file::read(&path)? {
            Some(text) => self.apply_toml(path, &text, Place::WorkingDirectory),
            None => Ok(()),
        }
    }

    fn apply_toml(&mut self, path: PathBuf, text: &str, found: Place) -> Result<()> {
        let source = Source::File {
            path: path.clone(),
            found,
        };
        let file = toml_file::File {
            path: &path,
            source: &source,
            home: self.environment.home.as_deref(),
        };
        file.apply(text, &mut self.settings, &mut self.catalogs)?;
        self.files.push(path);
        Ok(())
    }

    fn read_yaml(&mut self, found: yaml_file::Candidate) -> Result<()> {
        let source = Source::File {
            path: found.path.clone(),
            found: found.place,
        };
        self.apply_yaml(found.path, source)
    }

    fn apply_yaml(&mut self, path: PathBuf, source: Source) -> Result<()> {
        yaml_file::apply(&path, &source, &mut self.settings, &mut self.catalogs)?;
        self.files.push(path);
        Ok(())
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("files", &self.files)
            .field("entries", &self.entries())
            .finish_non_exhaustive()
    }
}
