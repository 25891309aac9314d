//! Tables straight from their metadata files.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use floe_catalog::{ErrorKind, load_metadata};
use tempfile::TempDir;
use uuid::Uuid;

use crate::support::{metadata_json, properties, store};

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

async fn load(location: &str) -> Result<iceberg::table::Table, floe_catalog::Error> {
    load_metadata(location, &properties(&[]), &store()).await
}

#[tokio::test]
async fn plain_and_gzipped_files_of_any_name_are_read() {
    let dir = TempDir::new().unwrap();
    let uuid = Uuid::new_v4();
    let json = metadata_json(uuid, "s3://lake/football/events", 7);
    for (name, bytes) in [
        ("v3.metadata.json", json.clone().into_bytes()),
        ("v3.gz.metadata.json", gzip(json.as_bytes())),
        ("00001-aa.gz.metadata.json", gzip(json.as_bytes())),
        ("v4.metadata.json.gz", gzip(json.as_bytes())),
        ("named-plain.metadata.json", gzip(json.as_bytes())),
        ("named-gz.gz.metadata.json", json.clone().into_bytes()),
        ("a b%20ü#?.json", json.clone().into_bytes()),
    ] {
        let path = dir.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        let path = path.to_str().unwrap();
        for location in [
            path.to_string(),
            format!("file:{path}"),
            format!("file://{path}"),
        ] {
            let table = load(&location)
                .await
                .unwrap_or_else(|e| panic!("{location}: {e:?}"));
            assert_eq!(table.metadata().uuid(), uuid);
            assert_eq!(table.identifier().to_string(), "football.events");
            assert!(
                table.metadata_location().unwrap().ends_with(path),
                "{location}"
            );
        }
    }
}

#[tokio::test]
async fn gzip_in_several_members_is_one_file() {
    let dir = TempDir::new().unwrap();
    let json = metadata_json(Uuid::new_v4(), "file:///x", 1);
    let (head, tail) = json.as_bytes().split_at(100);
    let path = dir.path().join("v1.gz.metadata.json");
    std::fs::write(&path, [gzip(head), gzip(tail)].concat()).unwrap();
    load(path.to_str().unwrap()).await.unwrap();
}

#[tokio::test]
async fn cut_or_damaged_files_are_corrupt_and_named() {
    let dir = TempDir::new().unwrap();
    let json = metadata_json(Uuid::new_v4(), "file:///x", 1);
    let packed = gzip(json.as_bytes());
    let mut flipped = packed.clone();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 0x40;
    for (name, bytes) in [
        ("cut.json", json.as_bytes()[..json.len() / 2].to_vec()),
        ("cut.gz.json", packed[..packed.len() - 9].to_vec()),
        ("flipped.gz.json", flipped),
        ("binary.json", vec![0xff; 100]),
        ("empty.json", Vec::new()),
        ("manifest.json", b"{\"manifest\": 1}".to_vec()),
    ] {
        let path = dir.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        let error = load(path.to_str().unwrap()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{name}: {error:?}");
        assert!(error.to_string().contains(name), "{error}");
    }
}

#[tokio::test]
async fn a_file_that_is_not_there_is_said_by_its_location() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("v1.metadata.json");
    let error = load(path.to_str().unwrap()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::MetadataNotFound, "{error:?}");
    assert!(
        error.to_string().contains(path.to_str().unwrap()) && error.hint().is_some(),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_location_of_no_known_store_is_invalid() {
    for location in ["ftp://h/x.json", "", "s3://bucket"] {
        let error = load(location).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{location}: {error:?}");
    }
}
