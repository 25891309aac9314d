//! What a server or a line in the tests was asked: one record a request, and the counts that assertions want.
//! Shared by the S3 server, the slow line and the scripted origin.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;

/// One request as it was seen on the wire.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RequestRecord {
    /// `GET`, `HEAD`, ...
    pub method: String,
    /// Path and query exactly as they were sent, percent-encoding included.
    pub path: String,
    /// The `Range` header, if there was one.
    pub range: Option<String>,
}

impl RequestRecord {
    /// What the request is in S3's terms: `LIST` for a GET of a bucket, else the method.
    pub fn operation(&self) -> &str {
        let (path, query) = self.path.split_once('?').unwrap_or((&self.path, ""));
        let names_an_object = path
            .trim_start_matches('/')
            .split_once('/')
            .is_some_and(|(_, key)| !key.is_empty());
        if self.method == "GET" && (!names_an_object || query.contains("list-type=")) {
            "LIST"
        } else {
            &self.method
        }
    }
}

/// Requests in the order in which they arrived. Clones share one log.
#[derive(Clone, Debug, Default)]
pub struct RequestLog {
    records: Arc<Mutex<Vec<RequestRecord>>>,
}

impl RequestLog {
    /// Adds one request.
    pub fn push(&self, record: RequestRecord) {
        self.lock().push(record);
    }

    /// All requests since the start or the last [`clear`](Self::clear).
    pub fn records(&self) -> Vec<RequestRecord> {
        self.lock().clone()
    }

    /// Requests by [`RequestRecord::operation`]: `GET`, `HEAD`, `LIST`, `PUT`, ...
    pub fn counts(&self) -> BTreeMap<String, u64> {
        let mut counts = BTreeMap::new();
        for record in self.lock().iter() {
            *counts.entry(record.operation().to_owned()).or_default() += 1;
        }
        counts
    }

    /// How many requests there were.
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Whether nothing was asked.
    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Forgets everything.
    pub fn clear(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, Vec<RequestRecord>> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
