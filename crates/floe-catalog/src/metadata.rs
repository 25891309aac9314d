//! From a metadata location to a table: reads the JSON through the store, plain or gzipped. Which location is current
//! is the catalog's to say.

use std::collections::HashMap;
use std::io::Read;
use std::path::{Component, Path};

use flate2::read::MultiGzDecoder;
use floe_store::Store;
use iceberg::io::FileIO;
use iceberg::spec::{TableMetadata, TableMetadataRef};
use iceberg::table::Table;
use iceberg::{NamespaceIdent, Runtime, TableIdent};
use serde_json::Value;

use crate::decoded;
use crate::error::{Error, ErrorKind, Result, find_source};
use crate::redact::redact_uri;
use crate::repair;

/// Unpacked metadata beyond this many bytes is taken for a decompression bomb.
const MAX_UNPACKED_BYTES: u64 = 1 << 30;

/// A read-only table from the path or URL of a metadata JSON, without a catalog.
///
/// A path without a scheme is a file of this machine, relative to the working directory. Gzip is told by content, not by
/// name. The table is called after the last two parts of its own location (`.../football/events` is `football.events`):
/// a label, nothing is looked up by it.
///
/// # Errors
/// [`ErrorKind::MetadataNotFound`], [`ErrorKind::Corrupt`] if it is no table metadata, and what the store says.
pub async fn load_metadata(
    location: &str,
    properties: &HashMap<String, String>,
    store: &Store,
) -> Result<Table> {
    let location = absolute(location)?;
    let metadata = read_metadata(&location, properties, store).await?;
    let ident = ident_of(metadata.location());
    build_table(ident, Some(location), metadata, properties, store)
}

/// The table whose pointer names `location`.
pub(crate) async fn read_table(
    ident: &TableIdent,
    location: &str,
    properties: &HashMap<String, String>,
    store: &Store,
) -> Result<Table> {
    let metadata = read_metadata(location, properties, store)
        .await
        .map_err(|e| e.with_context("table", show(ident)))?;
    build_table(
        ident.clone(),
        Some(location.to_string()),
        metadata,
        properties,
        store,
    )
}

/// A table of metadata that is known already; its files are read through the store.
pub(crate) fn build_table(
    ident: TableIdent,
    location: Option<String>,
    metadata: TableMetadataRef,
    properties: &HashMap<String, String>,
    store: &Store,
) -> Result<Table> {
    let runtime = Runtime::try_current().map_err(|e| {
        Error::new(
            ErrorKind::Invalid,
            "tables are loaded within a tokio runtime, and there is none",
        )
        .with_source(e)
    })?;
    // Version 1 may lack a uuid; the nil one that stands in its place is nobody's.
    let uuid = Some(metadata.uuid()).filter(|uuid| !uuid.is_nil());
    let mut table = Table::builder()
        .identifier(ident)
        .file_io(store.file_io(&storage_properties(properties), uuid))
        .metadata(metadata)
        .runtime(runtime);
    if let Some(location) = location {
        table = table.metadata_location(location);
    }
    table.build().map_err(|e| {
        Error::new(
            ErrorKind::Unsupported,
            format!("can't open the table: {}", e.message()),
        )
    })
}

/// What of a catalog's properties concerns files. What opens the catalog itself stays out of every `FileIO`.
pub(crate) fn storage_properties(properties: &HashMap<String, String>) -> HashMap<String, String> {
    let is_catalogs = |key: &str| {
        ["token", "credential", "oauth2-server-uri", "uri", "type"].contains(&key)
            || key.starts_with("header.")
            || key.starts_with("jdbc.")
    };
    properties
        .iter()
        .filter(|(key, _)| !is_catalogs(key))
        .map(|(k, v)| (k.clone(), v.clone()))
        .collect()
}

/// A table's name for messages.
pub(crate) fn show(ident: &TableIdent) -> String {
    format!("{}.{}", ident.namespace().join("."), ident.name())
}

async fn read_metadata(
    location: &str,
    properties: &HashMap<String, String>,
    store: &Store,
) -> Result<TableMetadataRef> {
    let file_io = store.file_io(&storage_properties(properties), None);
    let bytes = fetch(&file_io, location)
        .await
        .map_err(|error| read_error(location, &error))?;
    decoded::of(location, &bytes, || parse(&bytes))
        .map_err(|error| error.with_context("location", redact_uri(location)))
}

async fn fetch(file_io: &FileIO, location: &str) -> iceberg::Result<bytes::Bytes> {
    file_io.new_input(location)?.read().await
}

/// What the store said, in the catalog's kinds.
fn read_error(location: &str, error: &iceberg::Error) -> Error {
    let Some(cause) = find_source::<floe_store::Error>(error) else {
        return Error::new(
            ErrorKind::Unexpected,
            format!("can't read table metadata: {}", error.message()),
        )
        .with_context("location", redact_uri(location));
    };
    use floe_store::ErrorKind as Store;
    let (kind, message) = match cause.kind() {
        Store::NotFound => (
            ErrorKind::MetadataNotFound,
            "there is no metadata file where the table's metadata should be",
        ),
        Store::PermissionDenied => (
            ErrorKind::Denied,
            "not allowed to read the table's metadata",
        ),
        Store::Unavailable | Store::Offline => {
            (ErrorKind::Unavailable, "can't reach the table's metadata")
        }
        Store::Overwritten | Store::WrongLength => (
            ErrorKind::Corrupt,
            "the table's metadata changed while it was read",
        ),
        Store::Invalid => (ErrorKind::Invalid, "can't read the table's metadata"),
        _ => (ErrorKind::Unexpected, "can't read the table's metadata"),
    };
    let error = Error::new(kind, message).with_context("location", redact_uri(location));
    let hint = match (cause.hint(), kind) {
        (Some(hint), _) => Some(hint),
        (None, ErrorKind::MetadataNotFound) => Some(
            "check the location; a table is given by the path of one of its *.metadata.json files",
        ),
        (None, _) => None,
    };
    let error = error.with_source(cause.clone());
    match hint {
        Some(hint) => error.with_hint(hint),
        None => error,
    }
}

/// Table metadata from the bytes of its file.
fn parse(bytes: &[u8]) -> Result<TableMetadata> {
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        return parse_json(bytes);
    }
    let mut unpacked = Vec::new();
    let mut reader = MultiGzDecoder::new(bytes).take(MAX_UNPACKED_BYTES + 1);
    reader.read_to_end(&mut unpacked).map_err(|e| {
        Error::new(
            ErrorKind::Corrupt,
            format!(
                "the metadata file is not whole gzip ({} bytes)",
                bytes.len()
            ),
        )
        .with_source(e)
    })?;
    if unpacked.len() as u64 > MAX_UNPACKED_BYTES {
        return Err(Error::new(
            ErrorKind::Corrupt,
            "the metadata file unpacks to more than 1 GiB",
        ));
    }
    parse_json(&unpacked)
}

fn parse_json(json: &[u8]) -> Result<TableMetadata> {
    let metadata = match serde_json::from_slice(json) {
        Ok(metadata) => metadata,
        Err(error) => repair::unknown_transforms(json).ok_or_else(|| explain(json, &error))?,
    };
    repair::lost(json, metadata)
}

/// Iceberg's parser only says that no format version fits; look closer at what is there.
fn explain(json: &[u8], error: &serde_json::Error) -> Error {
    let corrupt = |message: String| Error::new(ErrorKind::Corrupt, message);
    if json.is_empty() {
        return corrupt("the metadata file is empty".into());
    }
    let value = match serde_json::from_slice::<Value>(json) {
        Ok(value) => value,
        Err(syntax) => {
            return corrupt(format!(
                "the metadata file is not JSON, found in {} bytes",
                json.len()
            ))
            .with_source(syntax);
        }
    };
    let Some(version) = value.get("format-version") else {
        return corrupt(
            "the file is JSON, but no table metadata: it has no `format-version`".into(),
        )
        .with_hint("give the path of a table's *.metadata.json, not of another file");
    };
    match version.as_u64() {
        Some(1..=3) => {}
        Some(newer @ 4..) => {
            return Error::new(
                ErrorKind::Unsupported,
                format!("the table has format version {newer}"),
            )
            .with_hint("floe reads the format versions 1, 2 and 3");
        }
        _ => return corrupt(format!("the metadata's `format-version` is {version}")),
    }
    let required = [
        "table-uuid",
        "location",
        "last-updated-ms",
        "last-column-id",
    ];
    let missing: Vec<_> = required
        .into_iter()
        .filter(|key| value.get(key).is_none() && !(version == 1 && *key == "table-uuid"))
        .collect();
    if missing.is_empty() {
        corrupt(format!(
            "the metadata is not valid for format version {version}: {error}"
        ))
    } else {
        corrupt(format!("the metadata lacks {}", missing.join(", ")))
    }
}

/// A location with a scheme as it is; a path made absolute, without `.` and `..`.
fn absolute(location: &str) -> Result<String> {
    let has_scheme = location.split_once(':').is_some_and(|(scheme, rest)| {
        !scheme.contains('/') && (rest.starts_with('/') || scheme == "file")
    });
    if has_scheme || location.is_empty() {
        return Ok(location.to_string());
    }
    let fail = |e: std::io::Error| {
        let kind = match e.kind() {
            std::io::ErrorKind::NotFound => ErrorKind::MetadataNotFound,
            _ => ErrorKind::Invalid,
        };
        Error::new(kind, "can't find the metadata file")
            .with_context("path", location)
            .with_source(e)
    };
    let mut path = std::path::absolute(Path::new(location)).map_err(fail)?;
    // `..` after a link does not mean the parent by name: only the file system knows.
    if path.components().any(|part| part == Component::ParentDir) {
        path = path.canonicalize().map_err(fail)?;
    }
    match path.to_str() {
        Some(path) => Ok(format!("file://{path}")),
        None => Err(Error::new(
            ErrorKind::Invalid,
            "the working directory's name is not unicode",
        )),
    }
}

/// A label for a table without a catalog.
fn ident_of(location: &str) -> TableIdent {
    let mut parts = location
        .trim_end_matches('/')
        .rsplit('/')
        .filter(|part| !part.is_empty() && !part.ends_with(':'));
    let name = parts.next().unwrap_or("table").to_string();
    let namespace = parts.next().unwrap_or("file").to_string();
    TableIdent::new(NamespaceIdent::new(namespace), name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_becomes_a_location_and_a_location_stays() {
        assert_eq!(absolute("s3://b/a#b?c").unwrap(), "s3://b/a#b?c");
        assert_eq!(absolute("file:/a/b").unwrap(), "file:/a/b");
        assert_eq!(absolute("/a/./b%20:c").unwrap(), "file:///a/b%20:c");
        let relative = absolute("a/b:c.json").unwrap();
        assert!(
            relative.starts_with("file:///") && relative.ends_with("/a/b:c.json"),
            "{relative}"
        );
        assert_eq!(
            absolute("../no/such/../file").unwrap_err().kind(),
            ErrorKind::MetadataNotFound
        );
    }

    #[test]
    fn a_table_without_a_catalog_is_called_after_its_location() {
        for (location, name) in [
            ("s3://lake/football/events/", "football.events"),
            ("file:///lake/events", "lake.events"),
            ("s3://events", "file.events"),
            ("", "file.table"),
        ] {
            assert_eq!(show(&ident_of(location)), name);
        }
    }

    #[test]
    fn the_files_see_no_credential_of_the_catalog() {
        let all = [
            "token",
            "credential",
            "header.authorization",
            "jdbc.password",
            "uri",
            "s3.endpoint",
            "warehouse",
        ];
        let properties = all
            .iter()
            .map(|key| (key.to_string(), "x".to_string()))
            .collect();
        let mut kept: Vec<_> = storage_properties(&properties).into_keys().collect();
        kept.sort();
        assert_eq!(kept, ["s3.endpoint", "warehouse"]);
    }

    #[test]
    fn what_is_no_metadata_is_told_apart() {
        for (json, kind, words) in [
            ("", ErrorKind::Corrupt, "empty"),
            ("<html>", ErrorKind::Corrupt, "not JSON"),
            ("{\"format-version\": 2,", ErrorKind::Corrupt, "not JSON"),
            ("{}", ErrorKind::Corrupt, "format-version"),
            ("[]", ErrorKind::Corrupt, "format-version"),
            (
                "{\"format-version\": 9}",
                ErrorKind::Unsupported,
                "format version 9",
            ),
            ("{\"format-version\": \"2\"}", ErrorKind::Corrupt, "\"2\""),
            (
                "{\"format-version\": 2, \"location\": \"x\"}",
                ErrorKind::Corrupt,
                "lacks table-uuid",
            ),
            ("\u{1f}\u{8b}", ErrorKind::Corrupt, "not JSON"),
        ] {
            let error = parse(json.as_bytes()).unwrap_err();
            assert_eq!(error.kind(), kind, "{json}: {error}");
            assert!(error.to_string().contains(words), "{json}: {error}");
        }
        let error = parse(&[0x1f, 0x8b, 8, 0, 1, 2, 3]).unwrap_err();
        assert!(error.to_string().contains("gzip"), "{error}");
    }
}
