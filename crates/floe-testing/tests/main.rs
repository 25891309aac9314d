//! Integration tests of the test crate itself, one module per topic.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod conformance;
mod lake;
mod line;
mod origin;
mod s3;
mod storage;
mod support;
mod table;
