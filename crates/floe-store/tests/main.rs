//! The store against origins that are real at the wire: right bytes, few requests, every fault.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod changes;
mod conformance;
mod damage;
mod faults;
mod names;
mod purge;
mod reading;
mod sharing;
mod support;
mod versions;
