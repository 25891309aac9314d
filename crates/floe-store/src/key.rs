//! The name under which an object's bytes are kept: origin, path, table, and who fetched them.

use std::collections::HashMap;
use std::fmt::Write as _;

use twox_hash::{XxHash3_64, XxHash3_128};
use uuid::Uuid;

use crate::config::CacheScope;
use crate::location::{Location, Scheme};

/// Properties that say which store answers for a bucket.
const ENDPOINTS: [(Scheme, &str); 2] = [
    (Scheme::S3, "s3.endpoint"),
    (Scheme::Gcs, "gcs.service.path"),
];

/// Properties that say who asks. Temporary credentials change with each load of a table, so a
/// catalog that knows its principal names it in [`PRINCIPAL`].
const CREDENTIALS: [&str; 9] = [
    "s3.access-key-id",
    "client.assume-role.arn",
    "gcs.credentials-json",
    "gcs.oauth2.token",
    "adls.account-key",
    "adls.sas-token",
    "adls.client-id",
    "adls.connection-string",
    "s3.allow-anonymous",
];

/// The property that names the principal for [`CacheScope::Principal`].
pub const PRINCIPAL: &str = "floe.principal";

/// The whole key of an object. Two objects are one only if all of it is equal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ObjectKey {
    /// Scheme, bucket and key. `purge` knows no more than this, so files are found by it alone.
    path: String,
    /// Endpoint, the table's uuid, and under principal scope a hash of the credentials.
    scope: String,
}

impl ObjectKey {
    pub(crate) fn new(
        location: &Location,
        properties: &HashMap<String, String>,
        table: Option<Uuid>,
        scope: CacheScope,
    ) -> Self {
        let table = table.map(|uuid| uuid.to_string()).unwrap_or_default();
        let mut text = format!("{} {table}", endpoint(location, properties));
        if scope == CacheScope::Principal {
            write!(text, " {:016x}", principal(properties)).expect("a String takes any text");
        }
        Self {
            path: path_text(location),
            scope: text,
        }
    }

    /// Rebuild a key from the two texts that a file of the cache holds.
    pub(crate) fn from_parts(path: String, scope: String) -> Self {
        Self { path, scope }
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    pub(crate) fn scope(&self) -> &str {
        &self.scope
    }

    /// The location that the key stands for.
    pub(crate) fn location(&self) -> String {
        let mut parts = self.path.splitn(3, ' ');
        let mut next = || parts.next().unwrap_or_default();
        let (scheme, authority, key) = (next(), next(), next());
        format!("{scheme}://{authority}/{key}")
    }

    /// The uuid of the table whose file it is.
    pub(crate) fn table(&self) -> Option<String> {
        self.scope
            .split(' ')
            .nth(1)
            .filter(|uuid| !uuid.is_empty())
            .map(str::to_string)
    }

    pub(crate) fn path_hash(&self) -> PathHash {
        PathHash::of(&self.path)
    }

    /// The name of a segment's file, all of one path beginning alike.
    pub(crate) fn file_name(&self, segment: u64) -> String {
        let scope = XxHash3_64::oneshot(self.scope.as_bytes());
        format!("{}-{scope:016x}.{segment:x}", self.path_hash().hex())
    }
}

/// The path part of a key: whatever endpoint, table or principal fetched it.
pub(crate) fn path_text(location: &Location) -> String {
    format!(
        "{} {} {}",
        location.scheme.name(),
        location.authority,
        location.key
    )
}

fn endpoint<'a>(location: &Location, properties: &'a HashMap<String, String>) -> &'a str {
    ENDPOINTS
        .iter()
        .find(|(scheme, _)| *scheme == location.scheme)
        .and_then(|(_, name)| properties.get(*name))
        .map_or("", |endpoint| endpoint.trim_end_matches('/'))
}

fn principal(properties: &HashMap<String, String>) -> u64 {
    let mut text = String::new();
    match properties.get(PRINCIPAL) {
        Some(name) => text.push_str(name),
        None => {
            for name in CREDENTIALS {
                let value = properties.get(name).map_or("", String::as_str);
                writeln!(text, "{name}={value}").expect("a String takes any text");
            }
        }
    }
    XxHash3_64::oneshot(text.as_bytes())
}

/// A hash of the path part of a key. Files are found by it; the key they hold decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PathHash(pub(crate) u128);

impl PathHash {
    pub(crate) fn of(path: &str) -> Self {
        Self(XxHash3_128::oneshot(path.as_bytes()))
    }

    pub(crate) fn hex(self) -> String {
        format!("{:032x}", self.0)
    }

    /// Which of the 256 shards.
    pub(crate) fn shard(self) -> u8 {
        (self.0 >> 120) as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(
        location: &str,
        properties: &[(&str, &str)],
        table: u128,
        scope: CacheScope,
    ) -> ObjectKey {
        let properties = properties
            .iter()
            .map(|(k, v)| (k.to_string(), v.to_string()))
            .collect();
        ObjectKey::new(
            &Location::parse(location).unwrap(),
            &properties,
            Some(Uuid::from_u128(table)),
            scope,
        )
    }

    #[test]
    fn a_recreated_table_shares_no_key_with_the_dropped_one() {
        let at = "s3://b/t/data/part-0.parquet";
        assert_ne!(
            key(at, &[], 1, CacheScope::User),
            key(at, &[], 2, CacheScope::User)
        );
        assert_eq!(
            key(at, &[], 1, CacheScope::User).path_hash(),
            key(at, &[], 2, CacheScope::User).path_hash()
        );
    }

    #[test]
    fn another_endpoint_is_another_object_but_a_spelling_is_not() {
        let one = key(
            "s3://b/k.avro",
            &[("s3.endpoint", "http://a")],
            1,
            CacheScope::User,
        );
        assert_ne!(
            one,
            key(
                "s3://b/k.avro",
                &[("s3.endpoint", "http://b")],
                1,
                CacheScope::User
            )
        );
        assert_eq!(
            one,
            key(
                "s3a://b/k.avro",
                &[("s3.endpoint", "http://a/")],
                1,
                CacheScope::User
            )
        );
    }

    #[test]
    fn principals_are_apart_only_under_principal_scope() {
        let ask = |who: &str, scope| key("s3://b/k.avro", &[("s3.access-key-id", who)], 1, scope);
        assert_eq!(ask("ann", CacheScope::User), ask("bob", CacheScope::User));
        assert_ne!(
            ask("ann", CacheScope::Principal),
            ask("bob", CacheScope::Principal)
        );
        let named = |key_id: &str| {
            key(
                "s3://b/k.avro",
                &[("s3.access-key-id", key_id), (PRINCIPAL, "ann")],
                1,
                CacheScope::Principal,
            )
        };
        assert_eq!(
            named("ASIA1"),
            named("ASIA2"),
            "rotating credentials of one named principal"
        );
    }

    #[test]
    fn a_key_tells_its_location_and_table() {
        let key = key(
            "s3a://b/a b#c",
            &[("s3.endpoint", "http://e")],
            7,
            CacheScope::Principal,
        );
        assert_eq!(key.location(), "s3://b/a b#c");
        assert_eq!(key.table(), Some(Uuid::from_u128(7).to_string()));
    }

    #[test]
    fn no_secret_stands_in_a_key() {
        let key = key(
            "s3://b/k",
            &[("gcs.oauth2.token", "hunter2")],
            1,
            CacheScope::Principal,
        );
        assert!(!format!("{key:?}{}", key.file_name(0)).contains("hunter2"));
    }
}
