//! Locations as Iceberg writes them: `scheme://authority/key`, the key taken to the letter.
//! They are not URLs: `#`, `?` and `%` in a key are plain characters and nothing is ever decoded.

use std::borrow::Cow;
use std::fmt;

use crate::error::{Error, ErrorKind, Result};

/// Which kind of store a location lives in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Scheme {
    /// S3 and its spellings `s3`, `s3a`, `s3n`.
    S3,
    /// Google Cloud Storage: `gs`, `gcs`.
    Gcs,
    /// Azure Data Lake: `abfs`, `abfss`.
    Adls,
    /// Azure Blob: `wasb`, `wasbs`.
    Azblob,
    /// A file of this machine: `file:/x`, `file:///x`, `/x`.
    File,
    /// Objects in this process's memory: `memory:/x`, `memory://x`.
    Memory,
}

impl Scheme {
    /// The one spelling under which cached objects are known, so that `s3a` and `s3` share them.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Scheme::S3 => "s3",
            Scheme::Gcs => "gs",
            Scheme::Adls => "abfs",
            Scheme::Azblob => "wasb",
            Scheme::File => "file",
            Scheme::Memory => "memory",
        }
    }

    /// Whether objects lie behind a line, so that caching them gains something.
    pub(crate) fn is_remote(self) -> bool {
        !matches!(self, Scheme::File | Scheme::Memory)
    }
}

/// A parsed location.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Location {
    pub(crate) scheme: Scheme,
    /// Bucket, `container@account.host`, or empty.
    pub(crate) authority: String,
    /// The key, without a leading slash; for files the absolute path without it.
    pub(crate) key: String,
}

impl Location {
    /// Parse a location, the key to the letter.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] for an unknown scheme, a missing bucket or key, a NUL, or a path with `.` or `..`.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let invalid = |why: &str| {
            Error::new(
                ErrorKind::Invalid,
                format!("can't read location {text:?}: {why}"),
            )
        };
        if text.contains('\0') {
            return Err(invalid("it holds a NUL character"));
        }
        let (scheme, rest) = match text.split_once(':') {
            Some((scheme, rest)) if !scheme.contains('/') => (scheme, rest),
            _ if text.starts_with('/') => ("file", text),
            _ => return Err(invalid("it is neither an absolute path nor scheme://...")),
        };
        let scheme = match scheme.to_ascii_lowercase().as_str() {
            "s3" | "s3a" | "s3n" => Scheme::S3,
            "gs" | "gcs" => Scheme::Gcs,
            "abfs" | "abfss" => Scheme::Adls,
            "wasb" | "wasbs" => Scheme::Azblob,
            "file" => Scheme::File,
            "memory" => Scheme::Memory,
            other => {
                return Err(invalid(&format!(
                    "scheme {other:?} is none of s3, s3a, s3n, gs, abfs(s), wasb(s), file, memory"
                )));
            }
        };
        let (authority, key) = if scheme.is_remote() {
            let rest = rest
                .strip_prefix("//")
                .ok_or_else(|| invalid("`//` and a bucket must follow the scheme"))?;
            rest.split_once('/')
                .ok_or_else(|| invalid("no key follows the bucket"))?
        } else {
            ("", rest.trim_start_matches('/'))
        };
        if scheme.is_remote() && authority.is_empty() {
            return Err(invalid("the bucket is missing"));
        }
        if key.split('/').any(|part| matches!(part, "." | "..")) && scheme != Scheme::Memory {
            return Err(invalid(
                "its path holds `.` or `..`, which a file system or an HTTP client would resolve to another file",
            ));
        }
        Ok(Self {
            scheme,
            authority: authority.to_string(),
            key: key.to_string(),
        })
    }

    /// The last part of the key.
    pub(crate) fn file_name(&self) -> &str {
        self.key.rsplit('/').next().unwrap_or_default()
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}://{}/{}",
            self.scheme.name(),
            self.authority,
            self.key
        )
    }
}

/// Prefixes of locations that are read elsewhere: a mirror, a gateway, a local copy.
///
/// The longest prefix wins, a prefix matches at `/` only, and `file:/x`, `file:///x` and `/x` are one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LocationMap {
    /// Longest prefix first, both sides without a trailing slash.
    entries: Vec<(String, String)>,
}

impl LocationMap {
    /// An empty map: every location is read where it says.
    pub fn new() -> Self {
        Self::default()
    }

    /// Read what lies below `from` below `to`.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] if a side is empty or `from` is mapped already.
    pub fn insert(&mut self, from: &str, to: &str) -> Result<()> {
        let from = normal_prefix(from);
        let to = normal_prefix(to);
        if from.is_empty() || to.is_empty() {
            return Err(Error::new(
                ErrorKind::Invalid,
                "location-map: both the prefix and its target must be given",
            ));
        }
        if self.entries.iter().any(|(known, _)| *known == from) {
            return Err(Error::new(
                ErrorKind::Invalid,
                format!("location-map: {from:?} is mapped twice"),
            ));
        }
        self.entries.push((from, to));
        self.entries
            .sort_by_key(|(from, _)| std::cmp::Reverse(from.len()));
        Ok(())
    }

    /// Where a location is read; the location itself if no prefix matches.
    pub fn apply<'a>(&self, location: &'a str) -> Cow<'a, str> {
        if self.entries.is_empty() {
            return Cow::Borrowed(location);
        }
        let normal = normal_file(location);
        for (from, to) in &self.entries {
            if let Some(rest) = normal.strip_prefix(from.as_str())
                && (rest.is_empty() || rest.starts_with('/'))
            {
                return Cow::Owned(format!("{to}{rest}"));
            }
        }
        Cow::Borrowed(location)
    }

    /// Whether any prefix of the map covers this location.
    pub fn covers(&self, location: &str) -> bool {
        matches!(self.apply(location), Cow::Owned(_))
    }

    /// Whether the map holds no prefix.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The pairs of prefix and target, longest prefix first.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.entries
            .iter()
            .map(|(from, to)| (from.as_str(), to.as_str()))
    }
}

fn normal_prefix(prefix: &str) -> String {
    let normal = normal_file(prefix);
    normal.trim_end_matches('/').to_string()
}

/// `file:/x`, `file://x`-less spellings and `/x` become `file:/x`; other schemes stay.
fn normal_file(location: &str) -> Cow<'_, str> {
    let path = match location.strip_prefix("file:") {
        Some(path) => path,
        None if location.starts_with('/') => location,
        None => return Cow::Borrowed(location),
    };
    Cow::Owned(format!("file:/{}", path.trim_start_matches('/')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_taken_to_the_letter() {
        for key in [
            "a#b",
            "a?b=c",
            "a%20b",
            "a b",
            "ünï/ço+de&:",
            "x//y",
            "p..%2f",
        ] {
            let parsed = Location::parse(&format!("s3://bucket/{key}")).unwrap();
            assert_eq!(
                (parsed.authority.as_str(), parsed.key.as_str()),
                ("bucket", key)
            );
        }
    }

    #[test]
    fn spellings_of_one_store_are_one_scheme() {
        for scheme in ["s3", "s3a", "s3n", "S3"] {
            assert_eq!(
                Location::parse(&format!("{scheme}://b/k")).unwrap().scheme,
                Scheme::S3
            );
        }
        for file in ["file:/x/y", "file:///x/y", "/x/y"] {
            assert_eq!(Location::parse(file).unwrap().key, "x/y");
        }
    }

    #[test]
    fn a_location_that_is_none_is_an_error_that_says_why() {
        for bad in [
            "",
            "x",
            "s3:/b/k",
            "s3://",
            "s3://b",
            "s3:///k",
            "ftp://b/k",
            "file:/a/../b",
            "s3://b/a/./c",
            "s3://b/k\0",
        ] {
            let error = Location::parse(bad).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid, "{bad}");
            assert!(
                error.to_string().starts_with("can't read location"),
                "{error}"
            );
        }
    }

    #[test]
    fn the_longest_prefix_wins_and_matches_at_a_slash_only() {
        let mut map = LocationMap::new();
        map.insert("file:///lake", "s3://one").unwrap();
        map.insert("file:/lake/deep/", "s3://two/").unwrap();
        assert_eq!(map.apply("file:/lake/a"), "s3://one/a");
        assert_eq!(map.apply("/lake/deep/a#b?c"), "s3://two/a#b?c");
        assert_eq!(map.apply("file:///lake"), "s3://one");
        assert_eq!(map.apply("file:/lakeside/a"), "file:/lakeside/a");
        assert_eq!(map.apply("s3://lake/a"), "s3://lake/a");
        assert!(map.covers("file:///lake/deep/x") && !map.covers("file:///lak"));
        assert_eq!(
            map.insert("/lake", "s3://three").unwrap_err().kind(),
            ErrorKind::Invalid
        );
    }
}
