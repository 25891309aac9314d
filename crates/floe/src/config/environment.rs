//! The environment: variables, working directory, home. Taken as a value, so that tests never touch the process's own.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use super::catalog::{Catalogs, merge};
use super::error::{Error, Result};
use super::settings::Settings;
use super::source::{Found, Source};
use super::{paths, units};

/// What PyIceberg's variables begin with.
const PYICEBERG: &str = "pyiceberg_";

/// What discovery may know of the process. `Debug` shows names of variables, not values.
#[derive(Clone, Default)]
pub struct Environment {
    /// The variables.
    pub vars: BTreeMap<String, String>,
    /// The working directory, absolute.
    pub cwd: PathBuf,
    /// The user's home directory, if there is one.
    pub home: Option<PathBuf>,
}

impl Environment {
    /// The process's own. Variables that are not unicode are left out.
    ///
    /// # Errors
    /// If the working directory is gone.
    pub fn of_process() -> Result<Self> {
        let cwd = std::env::current_dir().map_err(|e| {
            Error::new("can't tell the working directory: it may have been removed").with_source(e)
        })?;
        let vars = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        Ok(Self {
            vars,
            cwd,
            home: std::env::home_dir().filter(|home| home.is_absolute()),
        })
    }

    /// A variable that is set and not empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.vars
            .get(name)
            .map(String::as_str)
            .filter(|value| !value.is_empty())
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.vars.keys().collect();
        f.debug_struct("Environment")
            .field("vars", &names)
            .field("cwd", &self.cwd)
            .field("home", &self.home)
            .finish()
    }
}

/// Take over what the variables say.
pub(super) fn apply(
    environment: &Environment,
    settings: &mut Settings,
    catalogs: &mut Catalogs,
) -> Result<()> {
    apply_own(environment, settings)?;
    for (name, value) in &environment.vars {
        if !value.is_empty() && name.to_lowercase().starts_with(PYICEBERG) {
            apply_pyiceberg(environment, name, value, settings, catalogs)?;
        }
    }
    Ok(())
}

fn apply_own(environment: &Environment, settings: &mut Settings) -> Result<()> {
    let source = |name: &str| Source::Variable(name.to_string());
    if let Some(dir) = environment.get("FLOE_CACHE_DIR") {
        let dir = paths::resolve(dir, &environment.cwd, environment.home.as_deref());
        settings.cache.dir = Found::new(Some(dir), source("FLOE_CACHE_DIR"));
    }
    if let Some(text) = environment.get("FLOE_CACHE_MAX_BYTES") {
        let bytes = units::bytes(text).map_err(|why| {
            Error::new(format!(
                "the variable FLOE_CACHE_MAX_BYTES is {text:?}: {why}"
            ))
        })?;
        settings.cache.max_bytes = Found::new(bytes, source("FLOE_CACHE_MAX_BYTES"));
    }
    Ok(())
}

/// As PyIceberg reads it: without regard to case, `__` parts levels (the first two) and stands for `.` further on, `_` for
/// `-`. Variables of other settings are PyIceberg's own.
fn apply_pyiceberg(
    environment: &Environment,
    name: &str,
    value: &str,
    settings: &mut Settings,
    catalogs: &mut Catalogs,
) -> Result<()> {
    let source = Source::Variable(name.to_string());
    let key = name.to_lowercase().split_off(PYICEBERG.len());
    let parts: Vec<String> = key
        .splitn(3, "__")
        .map(|part| part.replace("__", ".").replace('_', "-"))
        .collect();
    match parts
        .iter()
        .map(String::as_str)
        .collect::<Vec<_>>()
        .as_slice()
    {
        ["default-catalog"] => {
            settings.default_catalog = Some(Found::new(value.to_string(), source))
        }
        ["catalog", catalog, key] if !catalog.is_empty() && !key.is_empty() => {
            let value = paths::resolve_property(key, value, &environment.cwd);
            merge(catalogs, catalog, [(key.to_string(), value)], &source)?;
        }
        ["catalog", ..] => {
            return Err(Error::new(format!("the variable {name} names no property of a catalog"))
                .with_hint("the form is PYICEBERG_CATALOG__<NAME>__<KEY>, such as PYICEBERG_CATALOG__PROD__S3__ENDPOINT"));
        }
        _ => {}
    }
    Ok(())
}
