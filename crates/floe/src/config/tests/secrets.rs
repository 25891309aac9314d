//! What is printed, and what never is.

use super::super::{secret, units};
use super::{World, shown};

const TOML: &str = "[catalog.a]\nuri = \"postgresql://ann:s3cret1@host/db\"\ntoken = \"s3cret2\"\ncredential = \"id:s3cret3\"\n\
    \"s3.access-key-id\" = \"AKIAIOSFODNN7EXAMPLE\"\n\"s3.secret-access-key\" = \"s3cret4\"\n\
    \"s3.session-token\" = \"s3cret5\"\n\"header.authorization\" = \"Bearer s3cret6\"\n\"header.X-Api-Key\" = \"s3cret7\"\n\
    \"adls.sas-token.acme.dfs.core.windows.net\" = \"s3cret8\"\n\"adls.connection-string\" = \"s3cret9\"\n\
    \"jdbc.password\" = \"s3cret0\"\n\"s3.sse.key\" = \"s3cretA\"\nwarehouse = \"w\"\n";

#[test]
fn no_secret_is_shown_by_entries_debug_or_json() {
    let world = World::new()
        .file("cwd/floe.toml", TOML)
        .var("PYICEBERG_CATALOG__A__GCS__OAUTH2__TOKEN", "s3cretB");
    // The secrets are from two sources, and the file names a place: it has to be named.
    let world = world.named("floe.toml");
    let config = world.config();
    let catalog = config.catalog("a").unwrap();
    let all = format!(
        "{config:?} {config:#?} {catalog:?} {:?} {:?} {}",
        world.options,
        config.entries(),
        serde_json::to_string(&config.entries()).unwrap(),
    );
    assert!(!all.contains("s3cret"), "{all}");
    assert!(!all.contains("AKIAIOSFODNN7"), "{all}");
    assert_eq!(
        shown(&config, "catalog.a.uri"),
        "postgresql://ann:***@host/db"
    );
    assert_eq!(shown(&config, "catalog.a.s3.access-key-id"), "***MPLE");
    assert_eq!(shown(&config, "catalog.a.token"), "***");
    assert_eq!(shown(&config, "catalog.a.warehouse"), "w");
    // Whoever connects gets the real ones.
    assert_eq!(catalog.properties["s3.secret-access-key"], "s3cret4");
    assert_eq!(catalog.properties["header.x-api-key"], "s3cret7");
}

#[test]
fn secret_keys_are_known_in_every_spelling() {
    for key in [
        "s3.secret-access-key",
        "S3.SECRET_ACCESS_KEY",
        "client.session-token",
        "adls.account-key",
        "adls.client-secret",
        "gcs.credentials-json",
        "header.Authorization",
        "header.cookie",
        "adls.sas-token.x",
        "my.sas",
        "connection-string",
        "db_password",
    ] {
        assert!(secret::is_secret_key(key), "{key}");
        assert_eq!(secret::show(key, "x"), "***", "{key}");
    }
    for key in [
        "uri",
        "warehouse",
        "s3.endpoint",
        "s3.region",
        "header.x-iceberg-access-delegation",
        "jdbc.user",
        "scope",
    ] {
        assert!(!secret::is_secret_key(key), "{key}");
        assert_eq!(secret::show(key, "x"), "x", "{key}");
    }
    assert_eq!(secret::show("s3.access-key-id", "short"), "***");
    assert_eq!(secret::show("token", ""), "");
}

#[test]
fn sizes_and_times_are_read_as_people_write_them() {
    for (text, bytes) in [
        ("0", 0),
        ("7 B", 7),
        ("1kB", 1000),
        ("1 KiB", 1024),
        ("20 GiB", 20 << 30),
        ("20 gib", 20 << 30),
        ("1.5 MB", 1_500_000),
        (" 2 TiB ", 2 << 40),
        ("9007199254740993", 9_007_199_254_740_993),
    ] {
        assert_eq!(units::bytes(text), Ok(bytes), "{text}");
    }
    for text in [
        "",
        "GiB",
        "-1",
        "1 G",
        "1 giga",
        "1e3",
        "1..5 MB",
        "inf",
        "nan",
        "20000000 TiB",
    ] {
        assert!(units::bytes(text).is_err(), "{text}");
    }
    for (text, millis) in [
        ("1", 1000),
        ("250 ms", 250),
        ("1.5s", 1500),
        ("2 min", 120_000),
    ] {
        assert_eq!(units::duration(text).unwrap().as_millis(), millis, "{text}");
    }
    for text in ["", "0", "-1", "1 h", "99999999999999999999999 min"] {
        assert!(units::duration(text).is_err(), "{text}");
    }
}
