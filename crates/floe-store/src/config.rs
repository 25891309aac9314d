//! The settings of a store: plain values, with the unit and the price of each.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::location::LocationMap;

/// One mebibyte.
const MIB: u64 = 1024 * 1024;
/// One gibibyte.
const GIB: u64 = 1024 * MIB;

/// Everything [`Store::open`](crate::Store::open) needs to know.
#[derive(Clone, Debug, Default)]
pub struct StoreConfig {
    /// The tiers of the cache.
    pub cache: CacheConfig,
    /// How origins are asked.
    pub origin: OriginConfig,
    /// Prefixes of locations that are read elsewhere than the table's metadata says.
    pub location_map: LocationMap,
    /// Never ask an origin: what is not cached is an error. Default: false.
    pub offline: bool,
}

/// The two tiers of the cache.
#[derive(Clone, Debug)]
pub struct CacheConfig {
    /// Directory of the disk tier, shared by any number of processes; `None`: no disk tier.
    pub dir: Option<PathBuf>,
    /// Bytes that the disk tier may take, a hard limit over all processes. Default: 20 GiB.
    pub max_bytes: u64,
    /// Bytes of the file system that must stay free; the cache shrinks to keep them. Default: 2 GiB.
    pub keep_free_bytes: u64,
    /// Bytes of file content kept in this process's memory. Default: 512 MiB.
    pub memory_bytes: u64,
    /// Who shares what is cached. Default: every principal of this user.
    pub scope: CacheScope,
}

impl Default for CacheConfig {
    fn default() -> Self {
        Self {
            dir: None,
            max_bytes: 20 * GIB,
            keep_free_bytes: 2 * GIB,
            memory_bytes: 512 * MIB,
            scope: CacheScope::User,
        }
    }
}

/// Who may be served what another's credentials fetched.
///
/// A warm cache outlives a revoked grant: bytes fetched while access was granted stay readable
/// from the cache afterwards. `Principal` narrows that to the same credentials, at the price of
/// one copy for each principal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CacheScope {
    /// One cache for the operating system's user, whatever credentials fetched the bytes.
    #[default]
    User,
    /// What one set of credentials fetched is served to the same credentials only.
    Principal,
}

/// How origins are asked.
#[derive(Clone, Debug)]
pub struct OriginConfig {
    /// Requests under way at once for one bucket. Default: 6, which fills a line of 20 Mbit/s and 30 ms
    /// many times over and keeps connections below 8: a client opens a spare one now and then while
    /// the last is being given back. Lines with a larger product of bandwidth and delay want more.
    pub concurrency: usize,
    /// Tries after the first for one request that failed in passing. Default: 6.
    pub retries: u32,
    /// Pause before the first retry; doubles each time, with jitter, to at most 10 s. Default: 100 ms.
    pub retry_delay: Duration,
    /// How long an origin may send nothing before the request is given up. Default: 30 s.
    pub timeout: Duration,
    /// The largest part of an object asked for by one request, in bytes. Default: 4 MiB.
    pub request_bytes: u64,
    /// Unwanted bytes between two wanted ranges that are fetched along rather than ask twice. Default:
    /// 64 KiB, a little less than what a 20 Mbit/s line carries in a 30 ms round trip.
    pub gap_bytes: u64,
    /// Files up to this length are fetched whole at the first read. Default: 4 MiB.
    pub whole_file_bytes: u64,
}

impl Default for OriginConfig {
    fn default() -> Self {
        Self {
            concurrency: 6,
            retries: 6,
            retry_delay: Duration::from_millis(100),
            timeout: Duration::from_secs(30),
            request_bytes: 4 * MIB,
            gap_bytes: 64 * 1024,
            whole_file_bytes: 4 * MIB,
        }
    }
}
