//! Whose file it is, so that one decoded for one reader is not handed to another.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use floe_store::{CacheScope, PRINCIPAL, Store};
use uuid::Uuid;

/// Properties that tell one origin from another.
const ORIGINS: [&str; 3] = ["s3.endpoint", "gcs.service.path", PRINCIPAL];

/// What tells apart files of one location. Cheap to clone.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Identity(Arc<Parts>);

#[derive(PartialEq, Eq, Hash)]
struct Parts {
    /// The store that reads it: another one should see, and cache, the bytes itself.
    store: u64,
    /// As the store does: a dropped table's files are not those of one that was created at the same place.
    table: Uuid,
    /// Endpoint and reader, as far as they make a difference to the store.
    origin: Vec<(String, String)>,
}

impl Identity {
    /// Of the files of a table that these properties give access to.
    pub fn new(store: &Store, properties: &HashMap<String, String>, table: Option<Uuid>) -> Self {
        let each_reader = store.config().cache.scope == CacheScope::Principal;
        let mut origin: Vec<_> = properties
            .iter()
            .filter(|(name, _)| each_reader || ORIGINS.contains(&name.as_str()))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        origin.sort();
        Self(Arc::new(Parts {
            store: store.id(),
            // What can't be told apart is not shared: version 1 tables may have no uuid.
            table: table
                .filter(|table| !table.is_nil())
                .unwrap_or_else(Uuid::new_v4),
            origin,
        }))
    }

    /// Of files that are nobody else's.
    pub fn apart() -> Self {
        Self(Arc::new(Parts {
            store: 0,
            table: Uuid::new_v4(),
            origin: Vec::new(),
        }))
    }
}

/// Without the origin: it may hold secrets.
impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Identity({}, {})", self.0.store, self.0.table)
    }
}
