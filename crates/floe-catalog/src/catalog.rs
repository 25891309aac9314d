//! The contract every catalog fulfils, for reading. Backends live beside it; nothing here knows them.

use std::fmt::Debug;

use async_trait::async_trait;
use iceberg::table::Table;
use iceberg::{NamespaceIdent, TableIdent};

use crate::error::Error;

/// Where the current metadata of tables is looked up.
///
/// # Contract
///
/// An implementer guarantees:
/// - **Fresh.** Every [`load_table`](Catalog::load_table) asks the catalog for the table's pointer. Nothing that
///   tells which metadata is current is kept between calls: not in memory, not on disk, not by an HTTP cache. A
///   pointer moved by anyone before the call began is seen by the call.
/// - **Whole.** The table returned carries metadata read after the pointer, from the very location the pointer named,
///   and a `FileIO` of the caller's [`Store`](floe_store::Store), with the table's uuid as scope of its cache where the
///   metadata has one, and with the credentials the catalog vended for this table, if any.
/// - **Read only.** No call creates, repairs, migrates or locks anything. A database file that does not exist is not
///   created by asking for it.
/// - **Distinct failures.** A table that is missing ([`TableNotFound`]), a namespace that is missing
///   ([`NamespaceNotFound`]) and a catalog that can't be reached or is busy ([`Unavailable`]) are never confused: a
///   failure to ask is never reported as an absence. Views are no tables: they are not listed and loading one is
///   [`TableNotFound`].
/// - **Silent about secrets.** Neither `Debug` nor an error shows a password, a token or a key.
///
/// A caller may assume:
/// - Calls are independent and safe to make concurrently; dropping one leaves nothing behind.
/// - Names are taken to the letter: case, quotes, `%`, spaces and unicode matter and need no escaping. A namespace level
///   that holds a `.` can't be told from two levels by catalogs that store namespaces as one dotted string.
/// - Lists are sorted and free of duplicates. They are snapshots: a table listed may be gone when it is loaded.
/// - A namespace is listed if it was created or if a table or namespace lies below it.
///
/// [`TableNotFound`]: crate::ErrorKind::TableNotFound
/// [`NamespaceNotFound`]: crate::ErrorKind::NamespaceNotFound
/// [`Unavailable`]: crate::ErrorKind::Unavailable
#[async_trait]
pub trait Catalog: Debug + Send + Sync {
    /// The name by which the catalog is configured.
    fn name(&self) -> &str;

    /// The namespaces directly below `parent`, or the top-level ones.
    ///
    /// # Errors
    /// [`NamespaceNotFound`](crate::ErrorKind::NamespaceNotFound) if `parent` does not exist, and the contract's others.
    async fn list_namespaces(
        &self,
        parent: Option<&NamespaceIdent>,
    ) -> Result<Vec<NamespaceIdent>, Error>;

    /// The tables of one namespace, those of namespaces below it left out.
    ///
    /// # Errors
    /// [`NamespaceNotFound`](crate::ErrorKind::NamespaceNotFound) if it does not exist, and the contract's others.
    async fn list_tables(&self, namespace: &NamespaceIdent) -> Result<Vec<TableIdent>, Error>;

    /// Ask for the table's pointer, then read the metadata it names through the store.
    ///
    /// # Errors
    /// [`TableNotFound`](crate::ErrorKind::TableNotFound), [`NamespaceNotFound`](crate::ErrorKind::NamespaceNotFound),
    /// [`MetadataNotFound`](crate::ErrorKind::MetadataNotFound) if the pointer names a file that is not there,
    /// [`Corrupt`](crate::ErrorKind::Corrupt) if that file is no table metadata, and the contract's others.
    async fn load_table(&self, ident: &TableIdent) -> Result<Table, Error>;
}
