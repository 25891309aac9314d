//! The read half of floe-catalog from outside: conformance of each backend, metadata files, faults.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod support;

mod metadata;
mod rest;
mod sqlite;
