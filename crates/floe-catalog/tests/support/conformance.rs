//! What every catalog's read half must do, run against each backend. A backend brings a [`Lake`]: the other side, by
//! which pointers are moved without floe.

use std::sync::Arc;

use floe_catalog::{Catalog, ErrorKind};
use iceberg::{NamespaceIdent, TableIdent};
use tempfile::TempDir;

use super::TableFiles;

/// A catalog and somebody else who writes to it.
pub(crate) trait Lake: Sync {
    /// Whether the catalog reads the metadata itself, and so can name what is wrong with it.
    const READS_METADATA: bool = true;

    fn catalog(&self) -> Arc<dyn Catalog>;
    fn create_namespace(&self, levels: &[&str]) -> impl Future<Output = ()> + Send;
    /// Create the table or move its pointer.
    fn point(
        &self,
        levels: &[&str],
        table: &str,
        location: &str,
    ) -> impl Future<Output = ()> + Send;
    fn drop_table(&self, levels: &[&str], table: &str) -> impl Future<Output = ()> + Send;
}

/// Names that break catalogs which build SQL, paths or patterns from them. Namespace levels hold no dot: the contract
/// lets catalogs read one as two levels.
const NAMES: [&str; 14] = [
    "plain",
    "UPPER",
    "with space",
    "quote'",
    "double\"quote",
    "per%cent",
    "per%20cent",
    "under_score",
    "sla/sh",
    "que?ry#hash",
    "back\\slash",
    "snö☃",
    "'; DROP TABLE iceberg_tables; --",
    "&=+$1",
];

/// Names that only a table may have.
const TABLE_NAMES: [&str; 3] = ["a.b", "..hidden", "x."];

/// Everything.
pub(crate) async fn run(lake: &impl Lake) {
    an_empty_catalog_lists_nothing(lake).await;
    missing_tables_and_namespaces_are_told_apart(lake).await;
    a_moved_pointer_is_seen_by_the_next_load(lake).await;
    a_table_dropped_and_made_again_is_the_new_one(lake).await;
    names_are_taken_to_the_letter(lake).await;
    namespaces_nest_and_lists_are_sorted(lake).await;
    a_broken_table_is_no_missing_table(lake).await;
    concurrent_loads_do_not_disturb_each_other(lake).await;
}

fn namespace(levels: &[&str]) -> NamespaceIdent {
    NamespaceIdent::from_strs(levels).unwrap()
}

fn ident(levels: &[&str], table: &str) -> TableIdent {
    TableIdent::new(namespace(levels), table.to_string())
}

async fn an_empty_catalog_lists_nothing(lake: &impl Lake) {
    assert_eq!(lake.catalog().list_namespaces(None).await.unwrap(), []);
}

async fn missing_tables_and_namespaces_are_told_apart(lake: &impl Lake) {
    let catalog = lake.catalog();
    lake.create_namespace(&["there"]).await;
    let kind = |error: floe_catalog::Error| error.kind();
    assert_eq!(
        kind(
            catalog
                .load_table(&ident(&["there"], "no"))
                .await
                .unwrap_err()
        ),
        ErrorKind::TableNotFound
    );
    assert_eq!(
        kind(catalog.load_table(&ident(&["no"], "no")).await.unwrap_err()),
        ErrorKind::NamespaceNotFound
    );
    assert_eq!(
        kind(catalog.list_tables(&namespace(&["no"])).await.unwrap_err()),
        ErrorKind::NamespaceNotFound
    );
    assert_eq!(
        kind(
            catalog
                .list_namespaces(Some(&namespace(&["no"])))
                .await
                .unwrap_err()
        ),
        ErrorKind::NamespaceNotFound
    );
    assert_eq!(
        catalog.list_tables(&namespace(&["there"])).await.unwrap(),
        []
    );
    assert_eq!(
        catalog
            .list_namespaces(Some(&namespace(&["there"])))
            .await
            .unwrap(),
        []
    );
    let text = catalog
        .load_table(&ident(&["there"], "no"))
        .await
        .unwrap_err()
        .to_string();
    assert!(
        text.contains("\"there.no\"") && text.contains(catalog.name()),
        "{text}"
    );
}

async fn a_moved_pointer_is_seen_by_the_next_load(lake: &impl Lake) {
    let dir = TempDir::new().unwrap();
    let files = TableFiles::new(dir.path());
    let catalog = lake.catalog();
    lake.create_namespace(&["moving"]).await;
    for version in 1..=5 {
        let location = files.write(version);
        lake.point(&["moving"], "t", &location).await;
        for _ in 0..2 {
            let table = catalog.load_table(&ident(&["moving"], "t")).await.unwrap();
            assert_eq!(table.metadata_location(), Some(location.as_str()));
            assert_eq!(table.metadata().last_updated_ms(), version);
            assert_eq!(table.identifier(), &ident(&["moving"], "t"));
            assert_eq!(table.metadata().uuid(), files.uuid);
        }
    }
}

async fn a_table_dropped_and_made_again_is_the_new_one(lake: &impl Lake) {
    let dir = TempDir::new().unwrap();
    let (old, new) = (TableFiles::new(dir.path()), TableFiles::new(dir.path()));
    let catalog = lake.catalog();
    lake.create_namespace(&["again"]).await;
    lake.point(&["again"], "t", &old.write(1)).await;
    assert_eq!(
        catalog
            .load_table(&ident(&["again"], "t"))
            .await
            .unwrap()
            .metadata()
            .uuid(),
        old.uuid
    );
    lake.drop_table(&["again"], "t").await;
    let gone = catalog
        .load_table(&ident(&["again"], "t"))
        .await
        .unwrap_err();
    assert_eq!(gone.kind(), ErrorKind::TableNotFound);
    lake.point(&["again"], "t", &new.write(1)).await;
    assert_eq!(
        catalog
            .load_table(&ident(&["again"], "t"))
            .await
            .unwrap()
            .metadata()
            .uuid(),
        new.uuid
    );
}

async fn names_are_taken_to_the_letter(lake: &impl Lake) {
    let dir = TempDir::new().unwrap();
    let catalog = lake.catalog();
    let mut expected = Vec::new();
    for level in NAMES {
        let levels = ["names", level];
        lake.create_namespace(&levels).await;
        for table in NAMES.into_iter().chain(TABLE_NAMES) {
            let files = TableFiles::new(dir.path());
            lake.point(&levels, table, &files.write(1)).await;
            expected.push((level, table, files.uuid));
        }
    }
    for (level, table, uuid) in &expected {
        let loaded = catalog
            .load_table(&ident(&["names", level], table))
            .await
            .unwrap();
        assert_eq!(loaded.metadata().uuid(), *uuid, "{level}.{table}");
    }
    let mut sorted = NAMES.to_vec();
    sorted.sort_unstable();
    let levels = catalog
        .list_namespaces(Some(&namespace(&["names"])))
        .await
        .unwrap();
    assert_eq!(
        levels,
        sorted
            .iter()
            .map(|level| namespace(&["names", level]))
            .collect::<Vec<_>>()
    );
    let mut sorted: Vec<_> = NAMES.into_iter().chain(TABLE_NAMES).collect();
    sorted.sort_unstable();
    for level in NAMES {
        let tables = catalog
            .list_tables(&namespace(&["names", level]))
            .await
            .unwrap();
        assert_eq!(
            tables,
            sorted
                .iter()
                .map(|table| ident(&["names", level], table))
                .collect::<Vec<_>>()
        );
    }
    // What would match if case were folded or `%` and `_` were patterns.
    for near in [
        "PLAIN",
        "upper",
        "per_cent",
        "underXscore",
        "per cent",
        "%",
        "",
        "plain ",
    ] {
        if let Ok(table) = catalog.load_table(&ident(&["names", "plain"], near)).await {
            panic!("{near:?} found {}", table.identifier());
        }
    }
}

async fn namespaces_nest_and_lists_are_sorted(lake: &impl Lake) {
    let dir = TempDir::new().unwrap();
    let catalog = lake.catalog();
    for levels in [
        &["nest"][..],
        &["nest", "b"],
        &["nest", "b", "deep"],
        &["nest", "a"],
        &["nest-not"],
    ] {
        lake.create_namespace(levels).await;
    }
    for (levels, table) in [
        (&["nest"][..], "z"),
        (&["nest"], "a"),
        (&["nest", "b"], "inner"),
        (&["nest-not"], "other"),
    ] {
        lake.point(levels, table, &TableFiles::new(dir.path()).write(1))
            .await;
    }
    let below = |levels: Vec<&'static str>| {
        let catalog = catalog.clone();
        async move {
            catalog
                .list_namespaces(Some(&namespace(&levels)))
                .await
                .unwrap()
        }
    };
    assert_eq!(
        below(vec!["nest"]).await,
        [namespace(&["nest", "a"]), namespace(&["nest", "b"])]
    );
    assert_eq!(
        below(vec!["nest", "b"]).await,
        [namespace(&["nest", "b", "deep"])]
    );
    assert_eq!(below(vec!["nest", "a"]).await, []);
    let tables = catalog.list_tables(&namespace(&["nest"])).await.unwrap();
    assert_eq!(tables, [ident(&["nest"], "a"), ident(&["nest"], "z")]);
    let top = catalog.list_namespaces(None).await.unwrap();
    assert!(top.is_sorted_by(|a, b| a.as_ref() < b.as_ref()), "{top:?}");
    assert!(
        top.contains(&namespace(&["nest"])) && top.iter().all(|ns| ns.len() == 1),
        "{top:?}"
    );
}

async fn a_broken_table_is_no_missing_table<L: Lake>(lake: &L) {
    let dir = TempDir::new().unwrap();
    let location = TableFiles::new(dir.path()).write(1);
    let path = location.strip_prefix("file://").unwrap();
    lake.create_namespace(&["broken"]).await;
    lake.point(&["broken"], "t", &location).await;

    std::fs::write(path, "{\"format-version\": 2}").unwrap();
    let garbage = lake
        .catalog()
        .load_table(&ident(&["broken"], "t"))
        .await
        .unwrap_err();
    std::fs::remove_file(path).unwrap();
    let gone = lake
        .catalog()
        .load_table(&ident(&["broken"], "t"))
        .await
        .unwrap_err();
    for error in [&garbage, &gone] {
        assert!(
            ![ErrorKind::TableNotFound, ErrorKind::NamespaceNotFound].contains(&error.kind()),
            "{error:?}"
        );
    }
    if L::READS_METADATA {
        assert_eq!(garbage.kind(), ErrorKind::Corrupt, "{garbage:?}");
        assert_eq!(gone.kind(), ErrorKind::MetadataNotFound, "{gone:?}");
        assert!(gone.to_string().contains(&location), "{gone}");
    }
}

async fn concurrent_loads_do_not_disturb_each_other(lake: &impl Lake) {
    let dir = TempDir::new().unwrap();
    lake.create_namespace(&["many"]).await;
    let mut loads = Vec::new();
    for i in 0..16 {
        let files = TableFiles::new(dir.path());
        let name = format!("t{i}");
        lake.point(&["many"], &name, &files.write(i)).await;
        let catalog = lake.catalog();
        loads.push(tokio::spawn(async move {
            let table = catalog.load_table(&ident(&["many"], &name)).await.unwrap();
            assert_eq!(table.metadata().uuid(), files.uuid);
        }));
    }
    for load in loads {
        load.await.unwrap();
    }
}
