//! Hostile names: taken to the letter, each its own object.

use crate::support::{World, content};

#[tokio::test]
async fn hostile_names_are_objects_of_their_own() {
    let world = World::new().await;
    let long = "k".repeat(1016) + ".parquet";
    let names = [
        "a#b.parquet",
        "a?b=c.parquet",
        "a%20b.parquet",
        "a b.parquet",
        "a+b.parquet",
        "a&b.parquet",
        "ünï/ço.parquet",
        "p=x%2Fy/f.parquet",
        "a//b.parquet",
        " lead.parquet",
        "trail .parquet",
        "quote'\"`.parquet",
        "back\\slash.parquet",
        "new\nline.parquet",
        "漢字/🧊.parquet",
        "a:b.parquet",
        "a=b;c,d.parquet",
        &long,
    ];
    for name in names {
        world
            .origin
            .put(&format!("b/{name}"), content(name, 500 + name.len()));
    }
    for round in 0..2 {
        let store = world.store();
        for name in names {
            let read = world.file(&store, name).read_all().await;
            assert_eq!(
                read.unwrap_or_else(|e| panic!("{name:?}: {e:?}")),
                content(name, 500 + name.len()),
                "{name:?}"
            );
        }
        let expected = if round == 0 { names.len() as u64 } else { 0 };
        assert_eq!(world.gets(), expected);
    }
    let listed = world.store().cache().unwrap().list().unwrap();
    assert_eq!(listed.len(), names.len());
    assert!(
        listed
            .iter()
            .any(|object| object.location == format!("s3://b/{long}"))
    );
}

#[tokio::test]
async fn a_path_that_an_http_client_would_resolve_to_another_object_is_refused() {
    let world = World::new().await;
    let store = world.store();
    for name in ["../up.parquet", "a/../b.parquet", "a/./b.parquet", "a/.."] {
        let location = format!("s3://b/{name}");
        let error = store
            .file(&location, &world.properties(), None)
            .unwrap_err();
        assert_eq!(error.kind(), floe_store::ErrorKind::Invalid, "{name}");
        assert!(error.to_string().contains(&location), "{error}");
    }
    assert_eq!(world.gets(), 0);
}
