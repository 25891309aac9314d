//! A file from the working directory must not send credentials where it likes.

use super::World;

const REST: &str = "[catalog.prod]\nuri = \"http://evil\"\n";
const S3: &str = "[catalog.prod]\nuri = \"sqlite:////c.db\"\n\"s3.endpoint\" = \"http://evil\"\n";

fn refused(world: &World) -> String {
    let config = world.config();
    let error = config.catalog("prod").unwrap_err();
    assert!(error.hint().unwrap().contains("--config"), "{error:?}");
    // The rest of the configuration stays usable, and shown.
    assert!(config.store_config().is_ok() && !config.entries().is_empty());
    error.to_string()
}

fn allowed(world: &World) {
    if let Err(error) = world.config().catalog("prod") {
        panic!("{error:?}");
    }
}

#[test]
fn secrets_of_environment_home_and_named_files_stay_with_them() {
    let environment = World::new()
        .file("cwd/floe.toml", REST)
        .var("PYICEBERG_CATALOG__PROD__TOKEN", "s3cret");
    let text = refused(&environment);
    assert!(
        text.contains("PYICEBERG_CATALOG__PROD__TOKEN")
            && text.contains(&environment.text("cwd/floe.toml")),
        "{text}"
    );
    assert!(text.contains("`uri`") && !text.contains("s3cret"), "{text}");

    let home = World::new()
        .file(
            "home/.pyiceberg.yaml",
            "catalog:\n  prod:\n    uri: http://good\n    credential: a:b\n",
        )
        .file("cwd/floe.toml", REST);
    assert!(refused(&home).contains(&home.text("home/.pyiceberg.yaml")));

    let named = World::new()
        .file("elsewhere/f.toml", "[catalog.prod]\ntoken = \"t\"")
        .file(
            "cwd/.pyiceberg.yaml",
            "catalog:\n  prod:\n    uri: http://evil\n",
        )
        .named("../elsewhere/f.toml");
    assert!(refused(&named).contains(".pyiceberg.yaml"));
}

#[test]
fn every_property_that_names_a_place_counts() {
    for line in [
        "uri = \"http://evil\"",
        "\"s3.endpoint\" = \"http://evil\"",
        "\"oauth2-server-uri\" = \"http://evil\"",
        "\"s3.proxy-uri\" = \"http://evil\"",
        "\"header.host\" = \"evil\"",
        "\"rest.signing-name\" = \"x\"",
        "\"rest.authorization-url\" = \"http://evil\"",
        "\"s3.signer.uri\" = \"http://evil\"",
        "\"gcs.service.path\" = \"http://evil\"",
        "\"adls.account-name\" = \"evil\"",
        "\"adls.authority-host\" = \"http://evil\"",
        "\"s3.region\" = \"evil.example/\"",
        "s3 = { endpoint = \"http://evil\" }",
    ] {
        let world = World::new()
            .file("cwd/floe.toml", &format!("[catalog.prod]\n{line}\n"))
            .var("PYICEBERG_CATALOG__PROD__S3__SECRET_ACCESS_KEY", "s3cret");
        assert!(!refused(&world).contains("s3cret"), "{line}");
    }
}

#[test]
fn a_file_may_say_all_that_names_no_place() {
    let world = World::new()
        .file(
            "cwd/floe.toml",
            "[catalog.prod]\nwarehouse = \"w\"\nscope = \"s\"\n\"s3.region\" = \"eu-north-1\"\n\"s3.path-style-access\" = true\n",
        )
        .var("PYICEBERG_CATALOG__PROD__URI", "http://good")
        .var("PYICEBERG_CATALOG__PROD__TOKEN", "t");
    allowed(&world);
}

#[test]
fn a_place_that_another_source_overrides_does_not_count() {
    let world = World::new()
        .file("cwd/floe.toml", REST)
        .var("PYICEBERG_CATALOG__PROD__URI", "http://good")
        .var("PYICEBERG_CATALOG__PROD__TOKEN", "t");
    allowed(&world);
}

#[test]
fn a_file_with_secrets_of_its_own_may_send_them_anywhere() {
    allowed(&World::new().file("cwd/floe.toml", &format!("{REST}token = \"own\"\n")));
    let other = World::new()
        .file("cwd/floe.toml", REST)
        .var("PYICEBERG_CATALOG__OTHER__TOKEN", "t");
    allowed(&other);
}

#[test]
fn a_named_file_is_trusted() {
    let world = World::new()
        .file("cwd/floe.toml", S3)
        .var("PYICEBERG_CATALOG__PROD__TOKEN", "t");
    let world = world.var("AWS_SECRET_ACCESS_KEY", "k");
    refused(&world);
    allowed(&world.named("floe.toml"));
    let world = World::new()
        .file("cwd/floe.toml", S3)
        .var("AWS_PROFILE", "work")
        .var("FLOE_CONFIG", "floe.toml");
    allowed(&world);
    let yaml = "catalog:\n  prod:\n    uri: http://x\n";
    let world = World::new()
        .file("cwd/.pyiceberg.yaml", yaml)
        .var("PYICEBERG_CATALOG__PROD__TOKEN", "t");
    refused(&world);
    allowed(&world.var("PYICEBERG_HOME", "."));
    let world = World::new()
        .file("cwd/.pyiceberg.yaml", yaml)
        .var("PYICEBERG_CATALOG__PROD__TOKEN", "t");
    allowed(&world.named(".pyiceberg.yaml"));
}

#[test]
fn ambient_aws_credentials_stay_with_aws() {
    for name in [
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "AWS_PROFILE",
        "AWS_WEB_IDENTITY_TOKEN_FILE",
    ] {
        let text = refused(&World::new().file("cwd/floe.toml", S3).var(name, "s3cret"));
        assert!(
            text.contains(name) && text.contains("`s3.endpoint`") && !text.contains("s3cret"),
            "{text}"
        );
    }
    let home = World::new()
        .file("cwd/floe.toml", S3)
        .file("home/.aws/credentials", "[default]");
    assert!(refused(&home).contains(".aws/credentials"));
    allowed(&World::new().file("cwd/floe.toml", S3));
    allowed(
        &World::new()
            .file("cwd/floe.toml", REST)
            .var("AWS_SECRET_ACCESS_KEY", "k"),
    );
    for own in [
        "\"s3.access-key-id\" = \"i\"\n\"s3.secret-access-key\" = \"k\"\n",
        "\"s3.allow-anonymous\" = true\n",
    ] {
        allowed(
            &World::new()
                .file("cwd/floe.toml", &format!("{S3}{own}"))
                .var("AWS_SECRET_ACCESS_KEY", "k"),
        );
    }
    let off = format!("{S3}\"s3.allow-anonymous\" = false\n");
    refused(
        &World::new()
            .file("cwd/floe.toml", &off)
            .var("AWS_SECRET_ACCESS_KEY", "k"),
    );
}

#[test]
fn ambient_credentials_of_others_stay_with_them_too() {
    let google =
        "[catalog.prod]\nuri = \"sqlite:////c.db\"\n\"gcs.service.path\" = \"http://evil\"\n";
    refused(
        &World::new()
            .file("cwd/floe.toml", google)
            .var("GOOGLE_APPLICATION_CREDENTIALS", "/x"),
    );
    let azure = "[catalog.prod]\nuri = \"sqlite:////c.db\"\n\"adls.endpoint\" = \"http://evil\"\n";
    refused(
        &World::new()
            .file("cwd/floe.toml", azure)
            .var("AZURE_STORAGE_ACCOUNT_KEY", "k"),
    );
    let postgres = "[catalog.prod]\nuri = \"postgresql://u@evil/db\"\n";
    refused(
        &World::new()
            .file("cwd/floe.toml", postgres)
            .var("PGPASSWORD", "k"),
    );
    let own = "[catalog.prod]\nuri = \"postgresql://u:own@host/db\"\n";
    allowed(
        &World::new()
            .file("cwd/floe.toml", own)
            .var("PGPASSWORD", "k"),
    );
}

#[test]
fn a_location_map_can_not_lead_azure_credentials_away() {
    let toml = |target: &str| format!("[location-map]\n\"s3://a\" = \"{target}\"\n");
    let world = |target: &str| {
        World::new()
            .file("cwd/floe.toml", &toml(target))
            .var("PYICEBERG_CATALOG__PROD__URI", "sqlite:////c.db")
            .var("PYICEBERG_CATALOG__PROD__ADLS__SAS_TOKEN", "sig")
    };
    assert!(refused(&world("abfss://c@evil.dfs.core.windows.net")).contains("location-map"));
    allowed(&world("s3://b"));
    allowed(&world("fixtures/lake"));
}
