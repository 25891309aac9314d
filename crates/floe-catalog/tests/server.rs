//! The conformance suite against servers that someone runs: built with `--features server-tests` only.
//! `FLOE_TEST_POSTGRES` is the URI of a database whose Iceberg tables may be dropped and made anew.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod support;

#[path = "server/postgres.rs"]
mod postgres;
