//! What the store did since the process began: counted here, and handed on to the `metrics` facade.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use serde::Serialize;

/// Requests that left for an origin, by method.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub struct RequestCounts {
    /// Objects or ranges of them asked for.
    pub get: u64,
    /// Questions whether an object is there. Reading a table sends none.
    pub head: u64,
    /// Listings. Reading a table sends none.
    pub list: u64,
    /// Objects or parts of them written.
    pub put: u64,
    /// Other requests that change something: multipart uploads, batches of deletions.
    pub post: u64,
    /// Objects deleted.
    pub delete: u64,
}

/// A snapshot of the store's counters since the process began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StoreStats {
    /// Looks into memory that found something.
    pub memory_hits: u64,
    /// Bytes served from memory.
    pub memory_bytes: u64,
    /// Segments that the disk tier gave.
    pub disk_hits: u64,
    /// Bytes read from the disk tier.
    pub disk_bytes: u64,
    /// Reads that needed the origin, or waited for one that did.
    pub misses: u64,
    /// Bytes of content that came from origins.
    pub origin_bytes: u64,
    /// Bytes served that did not have to cross the line.
    pub bytes_saved: u64,
    /// Requests by method, retries included.
    pub requests: RequestCounts,
    /// Requests sent again after a passing failure.
    pub retries: u64,
    /// Files evicted from the disk tier by this process.
    pub evictions: u64,
    /// Their bytes.
    pub evicted_bytes: u64,
    /// Corrupt files of the cache that were dropped and fetched again.
    pub corruptions: u64,
    /// Failures of the cache's disk; each was answered from the origin.
    pub disk_errors: u64,
    /// Bytes held by the memory tier now.
    pub memory_used_bytes: u64,
}

/// The live counters.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    memory_hits: AtomicU64,
    memory_bytes: AtomicU64,
    disk_hits: AtomicU64,
    disk_bytes: AtomicU64,
    misses: AtomicU64,
    origin_bytes: AtomicU64,
    get: AtomicU64,
    head: AtomicU64,
    list: AtomicU64,
    put: AtomicU64,
    post: AtomicU64,
    delete: AtomicU64,
    retries: AtomicU64,
    evictions: AtomicU64,
    evicted_bytes: AtomicU64,
    corruptions: AtomicU64,
    disk_errors: AtomicU64,
}

impl Counters {
    pub(crate) fn memory_hit(&self, bytes: u64) {
        // The hottest path of the crate: the facade hears of it when a snapshot is taken.
        self.memory_hits.fetch_add(1, Relaxed);
        self.memory_bytes.fetch_add(bytes, Relaxed);
    }

    pub(crate) fn disk_hit(&self, bytes: u64) {
        self.disk_hits.fetch_add(1, Relaxed);
        self.disk_bytes.fetch_add(bytes, Relaxed);
        metrics::counter!("floe_cache_disk_hits_total").increment(1);
        metrics::counter!("floe_cache_disk_bytes_total").increment(bytes);
    }

    pub(crate) fn miss(&self) {
        self.misses.fetch_add(1, Relaxed);
        metrics::counter!("floe_cache_misses_total").increment(1);
    }

    pub(crate) fn origin_read(&self, bytes: u64) {
        self.origin_bytes.fetch_add(bytes, Relaxed);
        metrics::counter!("floe_origin_bytes_total").increment(bytes);
    }

    pub(crate) fn request(&self, method: &str, is_list: bool) {
        let (counter, name) = match method {
            "GET" if is_list => (&self.list, "list"),
            "GET" => (&self.get, "get"),
            "HEAD" => (&self.head, "head"),
            "PUT" => (&self.put, "put"),
            "DELETE" => (&self.delete, "delete"),
            _ => (&self.post, "post"),
        };
        counter.fetch_add(1, Relaxed);
        metrics::counter!("floe_origin_requests_total", "method" => name).increment(1);
    }

    pub(crate) fn retry(&self) {
        self.retries.fetch_add(1, Relaxed);
        metrics::counter!("floe_origin_retries_total").increment(1);
    }

    pub(crate) fn evicted(&self, files: u64, bytes: u64) {
        self.evictions.fetch_add(files, Relaxed);
        self.evicted_bytes.fetch_add(bytes, Relaxed);
        metrics::counter!("floe_cache_evictions_total").increment(files);
    }

    pub(crate) fn corruption(&self) {
        self.corruptions.fetch_add(1, Relaxed);
        metrics::counter!("floe_cache_corruptions_total").increment(1);
    }

    pub(crate) fn disk_error(&self) {
        self.disk_errors.fetch_add(1, Relaxed);
        metrics::counter!("floe_cache_disk_errors_total").increment(1);
    }

    pub(crate) fn snapshot(&self, memory_used_bytes: u64) -> StoreStats {
        let memory_bytes = self.memory_bytes.load(Relaxed);
        let disk_bytes = self.disk_bytes.load(Relaxed);
        metrics::counter!("floe_cache_memory_hits_total").absolute(self.memory_hits.load(Relaxed));
        metrics::counter!("floe_cache_memory_bytes_total").absolute(memory_bytes);
        metrics::gauge!("floe_cache_memory_used_bytes").set(memory_used_bytes as f64);
        StoreStats {
            memory_hits: self.memory_hits.load(Relaxed),
            memory_bytes,
            disk_hits: self.disk_hits.load(Relaxed),
            disk_bytes,
            misses: self.misses.load(Relaxed),
            origin_bytes: self.origin_bytes.load(Relaxed),
            bytes_saved: memory_bytes + disk_bytes,
            requests: RequestCounts {
                get: self.get.load(Relaxed),
                head: self.head.load(Relaxed),
                list: self.list.load(Relaxed),
                put: self.put.load(Relaxed),
                post: self.post.load(Relaxed),
                delete: self.delete.load(Relaxed),
            },
            retries: self.retries.load(Relaxed),
            evictions: self.evictions.load(Relaxed),
            evicted_bytes: self.evicted_bytes.load(Relaxed),
            corruptions: self.corruptions.load(Relaxed),
            disk_errors: self.disk_errors.load(Relaxed),
            memory_used_bytes,
        }
    }
}
