//! Configuration from temporary directories and invented environments; the process's own is never touched.

mod files;
mod guard;
mod precedence;
mod secrets;

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::{Config, Discover, Environment, Error};

/// A home, a working directory and a place elsewhere, with variables and files.
pub(super) struct World {
    dir: TempDir,
    pub(super) options: Discover,
}

impl World {
    pub(super) fn new() -> Self {
        let dir = TempDir::new().unwrap();
        for name in ["home", "cwd", "elsewhere"] {
            std::fs::create_dir(dir.path().join(name)).unwrap();
        }
        let environment = Environment {
            cwd: dir.path().join("cwd"),
            home: Some(dir.path().join("home")),
            ..Environment::default()
        };
        Self {
            dir,
            options: Discover {
                environment,
                ..Discover::default()
            },
        }
    }

    pub(super) fn path(&self, file: &str) -> PathBuf {
        self.dir.path().join(file)
    }

    /// A path as text, for expectations.
    pub(super) fn text(&self, file: &str) -> String {
        self.path(file).display().to_string()
    }

    pub(super) fn file(self, file: &str, text: &str) -> Self {
        std::fs::create_dir_all(self.path(file).parent().unwrap()).unwrap();
        std::fs::write(self.path(file), text).unwrap();
        self
    }

    pub(super) fn var(mut self, name: &str, value: &str) -> Self {
        self.options
            .environment
            .vars
            .insert(name.to_string(), value.to_string());
        self
    }

    pub(super) fn named(mut self, file: impl AsRef<Path>) -> Self {
        self.options.config = Some(file.as_ref().to_path_buf());
        self
    }

    pub(super) fn discover(&self) -> Result<Config, Error> {
        Config::discover(&self.options)
    }

    pub(super) fn config(&self) -> Config {
        self.discover().unwrap()
    }

    /// A property of a catalog.
    pub(super) fn property(&self, catalog: &str, key: &str) -> Option<String> {
        self.config()
            .catalog(catalog)
            .unwrap()
            .properties
            .get(key)
            .cloned()
    }
}

/// Where `floe config` says a value was found.
pub(super) fn source(config: &Config, key: &str) -> String {
    let entries = config.entries();
    let found = entries.iter().find(|entry| entry.key == key);
    found
        .unwrap_or_else(|| panic!("no {key} in {entries:#?}"))
        .source
        .clone()
}

/// What `floe config` shows of a value.
pub(super) fn shown(config: &Config, key: &str) -> String {
    let entries = config.entries();
    let found = entries.iter().find(|entry| entry.key == key);
    found
        .unwrap_or_else(|| panic!("no {key} in {entries:#?}"))
        .value
        .clone()
}
