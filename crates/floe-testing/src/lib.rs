//! A real S3 server in process, a slow line, faulty storage, table builders and conformance suites.
//!
//! ```text
//! lake -> table -> (FileIO) -> files -> s3 (a server over them) -> line (rate, round trip, faults) -> what is tested
//! conformance: what every iceberg Storage must do;  storage: one that fails as it is told to
//! ```
//!
//! The crate depends on no other crate of the workspace: all of them test with it, and the `demo` verb shows with it.

pub mod conformance;
pub mod lake;
pub mod line;
pub mod requests;
pub mod s3;
pub mod storage;
pub mod table;
