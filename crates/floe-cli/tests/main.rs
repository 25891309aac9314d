//! The built `floe`, run as a user would: a module for each verb.

// Clippy knows test functions, not the functions that they share.
#![allow(clippy::unwrap_used)]

mod cache;
mod cli;
mod config;
mod demo;
mod offline;
mod scan;
mod sql;
mod support;
mod table;
