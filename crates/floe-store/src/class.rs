//! Which files may be kept. The one place that decides it.
//!
//! By the specification metadata, manifest lists, manifests, data, delete and Puffin files never
//! change once written, so they are fetched once and never checked again. Pointers change, so they
//! are never kept. The name tells them apart:
//!
//! | name | class | why |
//! |---|---|---|
//! | `NNNNN-<uuid>.metadata.json`, also `.gz` | immutable | the uuid makes the name unique for ever |
//! | `vN.metadata.json` | pointer | Hadoop tables write the next `vN` by renaming; a re-created table starts again at `v1` |
//! | `version-hint.text`, an object catalog's root, other text | pointer | rewritten in place |
//! | `*.parquet`, `*.avro`, `*.orc`, `*.puffin`, `*.stats` | immutable | written once, then named by a manifest or by metadata |
//! | anything else, its length told by a manifest | immutable | a manifest names only immutable files |
//! | anything else | pointer | a wrong answer is worse than a slow one |
//!
//! A name alone does not survive `DROP TABLE` and `CREATE TABLE` at the same place: files written by
//! hand or by Hadoop tables come back under the same name with other content. So the key of an
//! immutable file carries the table's uuid (`key.rs`), which a re-created table never shares.

use crate::location::Location;

/// Whether a file's bytes may be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PathClass {
    /// Written once: kept, never checked again.
    Immutable,
    /// May change: asked for each time, never kept.
    Pointer,
}

/// The class of a location; `listed` if a manifest or a table's metadata told its length.
pub(crate) fn classify(location: &Location, listed: bool) -> PathClass {
    let name = location.file_name();
    if name.ends_with(".metadata.json") || name.ends_with(".metadata.json.gz") {
        return if holds_uuid(name) {
            PathClass::Immutable
        } else {
            PathClass::Pointer
        };
    }
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    match extension {
        "parquet" | "avro" | "orc" | "puffin" | "stats" => PathClass::Immutable,
        _ if listed => PathClass::Immutable,
        _ => PathClass::Pointer,
    }
}

/// Whether a name holds a uuid in its usual spelling: 8-4-4-4-12 hexadecimal digits.
fn holds_uuid(name: &str) -> bool {
    name.as_bytes().windows(36).any(|window| {
        window.iter().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class_of(name: &str, listed: bool) -> PathClass {
        classify(
            &Location::parse(&format!("s3://b/t/{name}")).unwrap(),
            listed,
        )
    }

    #[test]
    fn what_is_written_once_is_immutable() {
        for name in [
            "metadata/00003-6c4f8e6e-2f4b-4a8e-9d3c-0a1b2c3d4e5f.metadata.json",
            "metadata/00003-6c4f8e6e-2f4b-4a8e-9d3c-0a1b2c3d4e5f.gz.metadata.json",
            "metadata/snap-77-1-6c4f8e6e.avro",
            "data/part-0.parquet",
            "data/a#b?c=%20.orc",
            "metadata/dv.puffin",
        ] {
            assert_eq!(class_of(name, false), PathClass::Immutable, "{name}");
        }
        assert_eq!(
            class_of("data/000000_0", true),
            PathClass::Immutable,
            "a manifest told of it"
        );
    }

    #[test]
    fn what_may_change_is_a_pointer() {
        for name in [
            "metadata/version-hint.text",
            "metadata/v3.metadata.json",
            "metadata/v3.gz.metadata.json",
            "catalog.json",
            "data/000000_0",
            "",
        ] {
            assert_eq!(class_of(name, false), PathClass::Pointer, "{name}");
        }
        assert_eq!(
            class_of("metadata/v3.metadata.json", true),
            PathClass::Pointer
        );
    }
}
