//! Who is heard, and who is heard first.

use std::time::Duration;

use floe_store::CacheScope;

use super::{World, source};

const GIB: u64 = 1 << 30;

#[test]
fn nothing_said_leaves_the_defaults() {
    let world = World::new();
    let config = world.config();
    let store = config.store_config().unwrap();
    assert_eq!(store.cache.dir, Some(world.path("home/.cache/floe")));
    assert_eq!(
        (store.cache.max_bytes, store.cache.keep_free_bytes),
        (20 * GIB, 2 * GIB)
    );
    assert_eq!(
        (store.cache.memory_bytes, store.cache.scope),
        (GIB / 2, CacheScope::User)
    );
    assert!(store.location_map.is_empty() && !store.offline);
    assert_eq!(source(&config, "cache.dir"), "default");
    assert!(config.files().is_empty());
    let error = config.default_catalog().unwrap_err();
    assert!(error.to_string().contains("no catalog is configured") && error.hint().is_some());
}

#[test]
fn the_cache_follows_xdg_and_needs_no_home() {
    let world = World::new().var("XDG_CACHE_HOME", "/var/cache/me");
    assert_eq!(
        world.config().store_config().unwrap().cache.dir,
        Some("/var/cache/me/floe".into())
    );
    let mut world = World::new().var("XDG_CACHE_HOME", "relative/is/ignored");
    assert_eq!(
        world.config().store_config().unwrap().cache.dir,
        Some(world.path("home/.cache/floe"))
    );
    world.options.environment.home = None;
    assert_eq!(world.config().store_config().unwrap().cache.dir, None);
}

#[test]
fn environment_before_toml_before_yaml_value_by_value() {
    let world = World::new()
        .file(
            "home/.pyiceberg.yaml",
            "catalog:\n  prod:\n    uri: http://yaml\n    warehouse: yaml\n    a: yaml\n",
        )
        .file(
            "cwd/floe.toml",
            "[catalog.prod]\nuri = \"http://toml\"\nwarehouse = \"toml\"\n",
        )
        .var("PYICEBERG_CATALOG__PROD__URI", "http://env");
    let config = world.config();
    let properties = config.catalog("prod").unwrap().properties;
    assert_eq!(properties["uri"], "http://env");
    assert_eq!(properties["warehouse"], "toml");
    assert_eq!(properties["a"], "yaml");
    assert_eq!(
        source(&config, "catalog.prod.uri"),
        "variable PYICEBERG_CATALOG__PROD__URI"
    );
    assert_eq!(
        source(&config, "catalog.prod.warehouse"),
        format!("file {}", world.text("cwd/floe.toml"))
    );
    assert_eq!(
        source(&config, "catalog.prod.a"),
        format!("file {}", world.text("home/.pyiceberg.yaml"))
    );
    assert_eq!(
        config.files(),
        [
            world.path("home/.pyiceberg.yaml"),
            world.path("cwd/floe.toml")
        ]
    );
}

#[test]
fn a_named_file_takes_the_place_of_the_one_in_the_working_directory() {
    let world = World::new()
        .file("cwd/floe.toml", "[catalog.cwd]\nuri = \"http://cwd\"")
        .file("elsewhere/a.toml", "[catalog.named]\nuri = \"http://a\"")
        .file("elsewhere/b.toml", "[catalog.variable]\nuri = \"http://b\"");
    assert_eq!(world.config().catalog_names().collect::<Vec<_>>(), ["cwd"]);
    let world = world.var("FLOE_CONFIG", "../elsewhere/b.toml");
    assert_eq!(
        world.config().catalog_names().collect::<Vec<_>>(),
        ["variable"]
    );
    let file = world.path("elsewhere/a.toml");
    let world = world.named(file);
    assert_eq!(
        world.config().catalog_names().collect::<Vec<_>>(),
        ["named"]
    );
}

#[test]
fn a_named_file_that_is_missing_is_an_error() {
    for world in [
        World::new().named("no.toml"),
        World::new().var("FLOE_CONFIG", "no.yaml"),
    ] {
        let error = world.discover().unwrap_err();
        assert!(
            error.to_string().contains(&world.text("cwd/no.")),
            "{error}"
        );
        assert!(error.hint().unwrap().contains("--config"), "{error:?}");
    }
}

#[test]
fn yaml_is_searched_as_pyiceberg_does() {
    let yaml = |name: &str| format!("catalog:\n  {name}:\n    uri: http://x\n");
    let names = |world: &World| {
        world
            .config()
            .catalog_names()
            .map(str::to_string)
            .collect::<Vec<_>>()
    };
    let world = World::new().file("cwd/.pyiceberg.yaml", &yaml("cwd"));
    assert_eq!(names(&world), ["cwd"]);
    // An empty file says nothing, and the search goes on.
    let world = world.file("home/.pyiceberg.yaml", "# nothing\n");
    assert_eq!(names(&world), ["cwd"]);
    let world = world.file("home/.pyiceberg.yaml", &yaml("home"));
    assert_eq!(names(&world), ["home"]);
    let world = world
        .file("elsewhere/.pyiceberg.yaml", &yaml("elsewhere"))
        .var("PYICEBERG_HOME", "../elsewhere");
    assert_eq!(names(&world), ["elsewhere"]);
}

#[test]
fn variables_split_as_in_pyiceberg() {
    let world = World::new()
        .var("PYICEBERG_CATALOG__PROD__S3__ACCESS_KEY_ID", "id")
        .var("pyiceberg_catalog__prod__uri", "http://x")
        .var("PYICEBERG_CATALOG__MY_PROD__OAUTH2_SERVER_URI", "http://y")
        .var("PYICEBERG_CATALOG__PROD__A__B__C", "deep")
        .var("PYICEBERG_MAX_WORKERS", "4")
        .var("PYICEBERG_CATALOG__PROD__EMPTY", "")
        .var("PYICEBERG_DEFAULT_CATALOG", "my-prod");
    let config = world.config();
    let prod = config.catalog("prod").unwrap().properties;
    assert_eq!(
        (prod["s3.access-key-id"].as_str(), prod["uri"].as_str()),
        ("id", "http://x")
    );
    assert_eq!((prod["a.b.c"].as_str(), prod.len()), ("deep", 3));
    assert_eq!(
        config.catalog("my-prod").unwrap().properties["oauth2-server-uri"],
        "http://y"
    );
    assert_eq!(config.default_catalog().unwrap(), "my-prod");
    for name in [
        "PYICEBERG_CATALOG__PROD",
        "PYICEBERG_CATALOG",
        "PYICEBERG_CATALOG__PROD__",
        "PYICEBERG_CATALOG____URI",
    ] {
        let error = World::new().var(name, "x").discover().unwrap_err();
        assert!(error.to_string().contains(name), "{error}");
    }
}

#[test]
fn an_empty_variable_hides_nothing() {
    let world = World::new()
        .file(
            "cwd/floe.toml",
            "default-catalog = \"a\"\n[catalog.a]\nuri = \"http://x\"\n[cache]\nmax-bytes = 7",
        )
        .var("PYICEBERG_CATALOG__A__URI", "")
        .var("PYICEBERG_DEFAULT_CATALOG", "")
        .var("FLOE_CACHE_MAX_BYTES", "")
        .var("FLOE_CONFIG", "");
    assert_eq!(world.property("a", "uri").unwrap(), "http://x");
    assert_eq!(world.config().store_config().unwrap().cache.max_bytes, 7);
}

#[test]
fn floes_own_variables_win_over_the_file() {
    let world = World::new()
        .file("cwd/floe.toml", "[cache]\ndir = \"in-file\"\nmax-bytes = 1")
        .var("FLOE_CACHE_DIR", "from-env")
        .var("FLOE_CACHE_MAX_BYTES", "1.5 GiB");
    let config = world.config();
    let cache = config.store_config().unwrap().cache;
    assert_eq!(
        (cache.dir, cache.max_bytes),
        (Some(world.path("cwd/from-env")), 3 * GIB / 2)
    );
    assert_eq!(source(&config, "cache.dir"), "variable FLOE_CACHE_DIR");
    let error = World::new()
        .var("FLOE_CACHE_MAX_BYTES", "lots")
        .discover()
        .unwrap_err();
    assert!(
        error.to_string().contains("FLOE_CACHE_MAX_BYTES") && error.to_string().contains("lots"),
        "{error}"
    );
}

#[test]
fn the_default_catalog_is_said_or_obvious() {
    let toml = "[catalog.one]\nuri = \"http://1\"\n";
    assert_eq!(
        World::new()
            .file("cwd/floe.toml", toml)
            .config()
            .default_catalog()
            .unwrap(),
        "one"
    );
    let two = format!("{toml}[catalog.two]\nuri = \"http://2\"\n");
    let error = World::new()
        .file("cwd/floe.toml", &two)
        .config()
        .default_catalog()
        .unwrap_err();
    assert!(
        error.to_string().contains("one, two") && error.hint().unwrap().contains("--catalog"),
        "{error:?}"
    );
    let said = format!("default-catalog = \"two\"\n{two}");
    let mut world = World::new().file("cwd/floe.toml", &said);
    assert_eq!(world.config().default_catalog().unwrap(), "two");
    world.options.catalog = Some("one".into());
    assert_eq!(world.config().default_catalog().unwrap(), "one");
    assert_eq!(source(&world.config(), "default-catalog"), "flag --catalog");
    let named = format!("{two}[catalog.default]\nuri = \"http://3\"\n");
    assert_eq!(
        World::new()
            .file("cwd/floe.toml", &named)
            .config()
            .default_catalog()
            .unwrap(),
        "default"
    );
}

#[test]
fn catalogs_are_matched_without_case_and_called_as_asked() {
    let world = World::new()
        .file("cwd/floe.toml", "[catalog.Prod]\nURI = \"http://x\"")
        .var("PYICEBERG_CATALOG__PROD__WAREHOUSE", "w");
    let config = world.config();
    assert_eq!(config.catalog_names().collect::<Vec<_>>(), ["Prod"]);
    let catalog = config.catalog("PROD").unwrap();
    assert_eq!(catalog.name, "PROD");
    assert_eq!(
        (
            catalog.properties["uri"].as_str(),
            catalog.properties["warehouse"].as_str()
        ),
        ("http://x", "w")
    );
    let error = config.catalog("other").unwrap_err();
    assert!(error.hint().unwrap().contains("Prod"), "{error:?}");
    assert!(
        World::new()
            .config()
            .catalog("x")
            .unwrap_err()
            .to_string()
            .contains("none is configured")
    );
}

#[test]
fn the_store_is_set_up_as_said() {
    let toml = "[cache]\nmax-bytes = \"10 GB\"\nkeep-free-bytes = 0\nmemory-bytes = \"64MiB\"\nscope = \"principal\"\n\
        [origin]\nconcurrency = 3\nretries = 0\ntimeout = \"1.5 min\"\n";
    let mut world = World::new().file("cwd/floe.toml", toml);
    world.options.offline = true;
    let store = world.config().store_config().unwrap();
    assert_eq!(
        (store.cache.max_bytes, store.cache.keep_free_bytes),
        (10_000_000_000, 0)
    );
    assert_eq!(
        (store.cache.memory_bytes, store.cache.scope),
        (64 << 20, CacheScope::Principal)
    );
    assert_eq!((store.origin.concurrency, store.origin.retries), (3, 0));
    assert_eq!(store.origin.timeout, Duration::from_secs(90));
    assert!(store.offline);
    let off = World::new()
        .file("cwd/floe.toml", "[cache]\nmax-bytes = 0")
        .config()
        .store_config()
        .unwrap();
    assert_eq!(off.cache.dir, None);
}
