//! SQL over Iceberg tables: DataFusion on top of [`floe_scan`].
//!
//! ```text
//!  SQL text ─▶ filter    an expression -> a condition of a scan (convert: what is understood, opaque: what only rows tell)
//!  query ────▶ catalog   finds tables when a query names them ─┬▶ provider   plans and reads them in partitions
//!                                                              └▶ metadata   what their metadata holds
//! ```
//!
//! It is a crate of its own so that what only plans and reads does not wait for DataFusion to compile.

mod catalog;
mod convert;
mod filter;
mod literal;
mod metadata;
mod numbers;
mod opaque;
mod part;
mod provider;
mod statistics;

pub use catalog::{FloeCatalogList, FloeCatalogProvider, SourceError, TableSource};
pub use filter::parse_filter;
pub use numbers::{exact_numbers, number_rules};
pub use provider::FloeTable;
