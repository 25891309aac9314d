//! Where the bytes come from: one operator for each bucket and set of credentials, requests bounded
//! in number, time and tries. `get.rs` asks for bytes, `change.rs` for everything else.

mod change;
mod failure;
mod get;
mod http;
mod operator;

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, PoisonError};

use opendal::Operator;
use opendal::layers::HttpClientLayer;
use opendal::raw::HttpClient;
use tokio::sync::Semaphore;

pub(crate) use change::OriginWriter;
pub(crate) use get::out_of_range;
pub(crate) use operator::Properties;

use crate::config::OriginConfig;
use crate::error::{Error, ErrorKind, Result};
use crate::location::Location;
use crate::stats::Counters;

/// Operators kept; more only come from credentials that rotate.
const MOST_OPERATORS: usize = 256;

/// All origins of a store.
pub(crate) struct Origins {
    config: OriginConfig,
    client: HttpClient,
    counters: Arc<Counters>,
    hasher: RandomState,
    buckets: Mutex<Buckets>,
}

#[derive(Default)]
struct Buckets {
    /// By scheme, bucket and a hash of all properties.
    operators: HashMap<(&'static str, String, u64), Operator>,
    /// By scheme and bucket: how many requests may be under way.
    permits: HashMap<(&'static str, String), Arc<Semaphore>>,
}

/// One bucket, with the credentials to ask it.
#[derive(Clone)]
pub(crate) struct Bucket {
    operator: Operator,
    permits: Arc<Semaphore>,
    config: OriginConfig,
    counters: Arc<Counters>,
}

impl Origins {
    pub(crate) fn new(config: OriginConfig, counters: Arc<Counters>) -> Result<Self> {
        let client = http::CountingClient::new(&config, counters.clone()).map_err(|error| {
            Error::new(ErrorKind::Invalid, "can't make the HTTP client").with_source(error)
        })?;
        Ok(Self {
            config,
            client: HttpClient::with(client),
            counters,
            hasher: RandomState::new(),
            buckets: Mutex::default(),
        })
    }

    /// The bucket of a location.
    pub(crate) fn bucket(&self, location: &Location, properties: &Properties) -> Result<Bucket> {
        let scheme = location.scheme.name();
        let properties_hash = if location.scheme.is_remote() {
            self.hash(properties)
        } else {
            0
        };
        let key = (scheme, location.authority.clone(), properties_hash);
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let operator = match buckets.operators.get(&key) {
            Some(operator) => operator.clone(),
            None => {
                let operator = operator::build(location, properties)?
                    .layer(HttpClientLayer::new(self.client.clone()));
                if buckets.operators.len() >= MOST_OPERATORS {
                    // The objects of a memory bucket live in its operator.
                    buckets
                        .operators
                        .retain(|(scheme, ..), _| *scheme == "memory");
                }
                buckets.operators.insert(key, operator.clone());
                operator
            }
        };
        let permits = buckets
            .permits
            .entry((scheme, location.authority.clone()))
            .or_insert_with(|| Arc::new(Semaphore::new(self.config.concurrency.max(1))))
            .clone();
        Ok(Bucket {
            operator,
            permits,
            config: self.config.clone(),
            counters: self.counters.clone(),
        })
    }

    fn hash(&self, properties: &Properties) -> u64 {
        let mut pairs: Vec<_> = properties.iter().collect();
        pairs.sort();
        self.hasher.hash_one(pairs)
    }
}

/// Operators hold credentials.
impl fmt::Debug for Origins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Origins")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bucket")
            .field("name", &self.operator.info().name())
            .finish_non_exhaustive()
    }
}
