//! The queries, in the SQL both databases share. `SELECT *` where the schema's first version lacks `iceberg_type`: the
//! columns wanted are picked from the answer, so that a column that is not there reads as empty.

/// The pointer of a table: catalog, namespace, table.
pub(super) const POINTER: &str = "SELECT * FROM iceberg_tables WHERE catalog_name = $1 AND table_namespace = $2 AND table_name = $3";

/// The tables and views of a namespace: catalog, namespace.
pub(super) const TABLES: &str =
    "SELECT * FROM iceberg_tables WHERE catalog_name = $1 AND table_namespace = $2";

/// Every namespace that was created or holds a table: catalog.
pub(super) const NAMESPACES: &str = "SELECT table_namespace AS namespace FROM iceberg_tables WHERE catalog_name = $1 \
     UNION SELECT namespace FROM iceberg_namespace_properties WHERE catalog_name = $1";

/// Every catalog name in use.
pub(super) const CATALOGS: &str = "SELECT catalog_name FROM iceberg_tables UNION SELECT catalog_name FROM iceberg_namespace_properties";
