//! Scans of real tables: written by floe-testing, read through the store.

// Clippy knows test functions, not the functions that they share.
#![allow(clippy::unwrap_used)]
// A table of one file is a list of one range of ids.
#![allow(clippy::single_range_in_vec_init)]

mod evolution;
mod filters;
mod metadata;
mod positions;
mod query;
mod reading;
mod refusals;
mod session;
mod support;
mod warming;
