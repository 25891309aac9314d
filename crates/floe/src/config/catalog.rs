//! The properties of catalogs: collected with their sources, handed out as Iceberg's plain map.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use super::Entry;
use super::error::{Error, Result};
use super::secret;
use super::source::{Found, Source};

/// A catalog's name and properties, as `floe_catalog::connect` takes them. `Debug` hides secrets.
#[derive(Clone, PartialEq, Eq)]
pub struct CatalogConfig {
    /// The name it was asked for by; SQL catalogs look their rows up by it.
    pub name: String,
    /// Iceberg's properties, keys in lower case.
    pub properties: HashMap<String, String>,
}

impl fmt::Debug for CatalogConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown: BTreeMap<_, _> = self
            .properties
            .iter()
            .map(|(key, value)| (key, secret::show(key, value)))
            .collect();
        f.debug_struct("CatalogConfig")
            .field("name", &self.name)
            .field("properties", &shown)
            .finish()
    }
}

/// What was found of one catalog. No `Debug`: it holds secrets.
#[derive(Clone)]
pub(super) struct CatalogValues {
    /// As the file spells it.
    pub(super) name: String,
    pub(super) properties: BTreeMap<String, Found<String>>,
}

impl CatalogValues {
    pub(super) fn config(&self, name: &str) -> CatalogConfig {
        let properties = self
            .properties
            .iter()
            .map(|(key, found)| (key.clone(), found.value.clone()))
            .collect();
        CatalogConfig {
            name: name.to_string(),
            properties,
        }
    }

    pub(super) fn entries(&self) -> Vec<Entry> {
        let entry = |(key, found): (&String, &Found<String>)| Entry {
            key: format!("catalog.{}.{key}", self.name),
            value: secret::show(key, &found.value),
            source: found.source.to_string(),
        };
        self.properties.iter().map(entry).collect()
    }
}

/// All catalogs, by their names in lower case.
pub(super) type Catalogs = BTreeMap<String, CatalogValues>;

/// Add what one source says of a catalog; it replaces what was said before. Keys fold to lower case, as in PyIceberg, so
/// that variables and files meet.
pub(super) fn merge(
    catalogs: &mut Catalogs,
    name: &str,
    properties: impl IntoIterator<Item = (String, String)>,
    source: &Source,
) -> Result<()> {
    let catalog = catalogs
        .entry(name.to_lowercase())
        .or_insert_with(|| CatalogValues {
            name: name.to_string(),
            properties: BTreeMap::new(),
        });
    // A variable can't tell upper from lower case, a file can.
    if matches!(source, Source::File { .. }) {
        catalog.name = name.to_string();
    }
    let mut seen = BTreeMap::new();
    for (key, value) in properties {
        let folded = key.to_lowercase();
        if let Some(first) = seen.insert(folded.clone(), key.clone()) {
            return Err(Error::new(format!(
                "{source}: catalog {name:?} has {first:?} twice"
            )));
        }
        // Nothing said is no reason to forget what was said elsewhere.
        let known = catalog.properties.contains_key(&folded);
        if !(value.is_empty() && known) {
            catalog
                .properties
                .insert(folded, Found::new(value, source.clone()));
        }
    }
    Ok(())
}
