//! Where Iceberg table pointers live: one contract, several backends.
//!
//! ```text
//!  name + properties --connect--> sql::SqlCatalog   (SQLite, PostgreSQL: the JDBC / PyIceberg schema)
//!                                 rest::RestBackend (Iceberg REST)
//!                                        |  asked for the pointer at every load
//!                                        v
//!                                 metadata location --metadata--> floe-store --> iceberg Table
//! ```
//!
//! - [`Catalog`]: the contract, with what implementers guarantee and callers may assume;
//! - [`connect`]: a catalog from its name and Iceberg's properties;
//! - [`load_metadata`]: a table from the path or URL of a metadata JSON, without a catalog;
//! - [`Error`], [`ErrorKind`]: what went wrong and what the caller can do;
//! - [`redact_uri`]: a URI without its secrets, for everything that is printed.

mod catalog;
mod connect;
mod decoded;
mod error;
mod metadata;
mod redact;
mod repair;
mod rest;
mod sql;

pub use catalog::Catalog;
pub use connect::connect;
pub use error::{Error, ErrorKind, Result};
pub use metadata::load_metadata;
pub use redact::redact_uri;
