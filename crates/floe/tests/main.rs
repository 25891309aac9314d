//! The SDK over real lakes.

// Clippy knows test functions, not the functions that they share.
#![allow(clippy::unwrap_used)]

mod reading;
mod tables;
