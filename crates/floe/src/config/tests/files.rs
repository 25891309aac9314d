//! What the two kinds of file may hold, and what is wrong in them.

use super::{World, shown};

fn toml(text: &str) -> World {
    World::new().file("cwd/floe.toml", text)
}

#[test]
fn properties_are_flat_or_nested_and_become_strings() {
    let world = toml(
        "[catalog.a]\n\"s3.endpoint\" = \"http://flat\"\nport = 9000\nratio = 0.5\non = true\nday = 2024-05-01\n\
         [catalog.a.s3]\nregion = \"r\"\n[catalog.a.s3.sse]\ntype = \"kms\"\n",
    );
    for (key, value) in [
        ("s3.endpoint", "http://flat"),
        ("port", "9000"),
        ("ratio", "0.5"),
        ("on", "true"),
        ("day", "2024-05-01"),
        ("s3.region", "r"),
        ("s3.sse.type", "kms"),
    ] {
        assert_eq!(world.property("a", key).as_deref(), Some(value), "{key}");
    }
}

#[test]
fn relative_paths_are_relative_to_the_file() {
    let world = World::new().file(
        "elsewhere/deep/floe.toml",
        "[catalog.a]\nuri = \"sqlite:lake/c.db\"\n[catalog.b]\nuri = \"jdbc:sqlite:../c.db\"\n\
         [catalog.c]\nuri = \"sqlite:////abs/c.db\"\n[catalog.d]\nuri = \"sqlite:///abs/c.db\"\n\
         [catalog.e]\nuri = \"sqlite+pysqlite://c.db\"\nwarehouse = \"not/a/path\"\n[catalog.f]\nuri = \"sqlite::memory:\"\n\
         [cache]\ndir = \"cache\"\n[audit]\npath = \"~/audit.jsonl\"\n\
         [location-map]\n\"file:/lake\" = \"fixtures/lake\"\n\"s3://a\" = \"s3://b\"\n\"s3://c\" = \"/abs\"\n",
    );
    let world = world.named("../elsewhere/deep/floe.toml");
    let uri = |name: &str| world.property(name, "uri").unwrap();
    let dir = world.text("elsewhere");
    assert_eq!(uri("a"), format!("sqlite:///{dir}/deep/lake/c.db"));
    assert_eq!(uri("b"), format!("jdbc:sqlite:{dir}/c.db"));
    assert_eq!(
        (uri("c").as_str(), uri("d").as_str()),
        ("sqlite:////abs/c.db", "sqlite:///abs/c.db")
    );
    assert_eq!(uri("e"), format!("sqlite:///{dir}/deep/c.db"));
    assert_eq!(world.property("e", "warehouse").unwrap(), "not/a/path");
    assert_eq!(uri("f"), "sqlite::memory:");
    let config = world.config();
    let store = config.store_config().unwrap();
    assert_eq!(store.cache.dir, Some(world.path("elsewhere/deep/cache")));
    assert_eq!(
        config.audit_path(),
        Some(world.path("home/audit.jsonl").as_path())
    );
    assert_eq!(
        store.location_map.apply("file:///lake/x"),
        format!("file:{dir}/deep/fixtures/lake/x").as_str()
    );
    assert_eq!(store.location_map.apply("s3://a/x"), "s3://b/x");
    assert_eq!(store.location_map.apply("s3://c/x"), "file:/abs/x");
    assert_eq!(shown(&config, "location-map.\"s3://a\""), "s3://b");
}

#[test]
fn an_unknown_key_names_file_key_and_the_nearest_known() {
    for (text, key, near) in [
        (
            "[cache]\nmax-byte = 1",
            "`cache.max-byte`",
            "`cache.max-bytes`",
        ),
        (
            "[cache]\nmax_bytes = 1",
            "`cache.max_bytes`",
            "`cache.max-bytes`",
        ),
        ("[origin]\nretry = 1", "`origin.retry`", "`origin.retries`"),
        ("[audit]\npaht = \"x\"", "`audit.paht`", "`audit.path`"),
        ("[catalogs.x]\nuri = \"x\"", "`catalogs`", "`catalog`"),
        (
            "default_catalog = \"x\"",
            "`default_catalog`",
            "`default-catalog`",
        ),
        ("[location_map]", "`location_map`", "`location-map`"),
        (
            "[cache]\nqqqqqqqq = 1",
            "`cache.qqqqqqqq`",
            "known here: dir, max-bytes",
        ),
    ] {
        let world = toml(text);
        let error = world.discover().unwrap_err();
        assert!(
            error.to_string().contains(key)
                && error.to_string().contains(&world.text("cwd/floe.toml")),
            "{error}"
        );
        assert!(error.hint().unwrap().contains(near), "{text}: {error:?}");
    }
}

#[test]
fn a_value_of_the_wrong_kind_names_file_and_key() {
    for (text, key) in [
        ("catalog = 1", "`catalog`"),
        ("[catalog]\na = \"x\"", "`catalog.a`"),
        ("[catalog.a]\nuri = [\"x\"]", "`uri`"),
        ("default-catalog = 1", "`default-catalog`"),
        ("cache = true", "`cache`"),
        ("[cache]\nmax-bytes = -1", "`cache.max-bytes`"),
        ("[cache]\nmax-bytes = \"20 giga\"", "`cache.max-bytes`"),
        (
            "[cache]\nmax-bytes = \"99999999999 TiB\"",
            "`cache.max-bytes`",
        ),
        ("[cache]\ndir = \"\"", "`cache.dir`"),
        ("[cache]\nscope = \"all\"", "`cache.scope`"),
        ("[origin]\nconcurrency = 0", "`origin.concurrency`"),
        ("[origin]\nconcurrency = \"8\"", "`origin.concurrency`"),
        ("[origin]\nretries = -1", "`origin.retries`"),
        ("[origin]\ntimeout = 0", "`origin.timeout`"),
        ("[origin]\ntimeout = \"1 h\"", "`origin.timeout`"),
        ("[audit]\npath = 1", "`audit.path`"),
        (
            "[location-map]\n\"s3://a\" = 1",
            "`location-map.\"s3://a\"`",
        ),
    ] {
        let error = toml(text).discover().unwrap_err();
        assert!(
            error.to_string().contains(key) && error.to_string().contains("floe.toml"),
            "{text}: {error}"
        );
    }
}

#[test]
fn one_property_given_twice_is_an_error() {
    let error = toml("[catalog.a]\n\"s3.x\" = \"1\"\n[catalog.a.s3]\nx = \"2\"")
        .discover()
        .unwrap_err();
    assert!(error.to_string().contains("s3.x"), "{error}");
    let error = toml("[catalog.a]\nuri = \"1\"\nURI = \"2\"")
        .discover()
        .unwrap_err();
    assert!(error.to_string().contains("twice"), "{error}");
    let error = toml("[catalog.a]\nuri = \"1\"\n[catalog.A]\nuri = \"2\"")
        .discover()
        .unwrap_err();
    assert!(error.to_string().contains("case"), "{error}");
}

#[test]
fn one_prefix_mapped_twice_is_an_error_of_the_store_config() {
    let world = toml("[location-map]\n\"file:/a\" = \"s3://x\"\n\"file:///a\" = \"s3://y\"");
    let error = world.config().store_config().unwrap_err();
    assert!(error.to_string().contains("floe.toml"), "{error}");
}

#[test]
fn broken_files_say_where_and_quote_nothing() {
    let world = toml("[catalog.a]\nuri = \"x\"\ntoken = \"s3cret\n");
    let error = world.discover().unwrap_err();
    assert!(
        error.to_string().contains("line 3") && !format!("{error:?}").contains("s3cret"),
        "{error:?}"
    );
    for text in [
        "catalog:\n  a:\n    token: \"s3cret\n",
        "catalog:\n  a:\n    token: [s3cret]\n",
        "catalog:\n  a: s3cret\n",
        "s3cret",
    ] {
        let world = World::new().file("home/.pyiceberg.yaml", text);
        let error = world.discover().unwrap_err();
        assert!(error.to_string().contains(".pyiceberg.yaml"), "{error}");
        assert!(!format!("{error:?}").contains("s3cret"), "{error:?}");
    }
    let world = World::new();
    std::fs::write(world.path("cwd/floe.toml"), [0xff, 0xfe]).unwrap();
    assert!(
        world
            .discover()
            .unwrap_err()
            .to_string()
            .contains("floe.toml")
    );
    let world = World::new();
    std::fs::create_dir(world.path("cwd/floe.toml")).unwrap();
    assert!(
        world
            .discover()
            .unwrap_err()
            .to_string()
            .contains("floe.toml")
    );
}

#[test]
fn yaml_scalars_are_the_text_that_stands_there() {
    let yaml = "Default-Catalog: A\nmax-workers: 4\ncatalog:\n  A:\n    URI: http://x\n    octal: 0123\n    hex: 0x1F\n    \
        float: 1e10\n    yes: yes\n    \"true\": True\n    nothing:\n    tilde: ~\n    quoted: \"a\\tb\"\n    \
        long: 12345678901234567890123\n    s3:\n      endpoint: http://e\n    anchor: &x 007\n    alias: *x\n";
    let world = World::new().file("home/.pyiceberg.yaml", yaml);
    assert_eq!(world.config().default_catalog().unwrap(), "A");
    for (key, value) in [
        ("uri", "http://x"),
        ("octal", "0123"),
        ("hex", "0x1F"),
        ("float", "1e10"),
        ("yes", "yes"),
        ("true", "True"),
        ("nothing", ""),
        ("tilde", "~"),
        ("quoted", "a\tb"),
        ("long", "12345678901234567890123"),
        ("s3.endpoint", "http://e"),
        ("anchor", "007"),
        ("alias", "007"),
    ] {
        assert_eq!(world.property("a", key).as_deref(), Some(value), "{key}");
    }
}

#[test]
fn a_named_yaml_is_read_in_pyicebergs_form() {
    let world = World::new()
        .file(
            "elsewhere/my.yaml",
            "catalog:\n  a:\n    uri: sqlite:c.db\n",
        )
        .named("../elsewhere/my.yaml");
    assert_eq!(
        world.property("a", "uri").unwrap(),
        format!("sqlite:///{}", world.text("elsewhere/c.db"))
    );
}
