//! Paths in configuration: what is relative is relative to the file that holds it.

use std::path::{Path, PathBuf};

use super::environment::Environment;

/// The user's cache directory for floe, by the XDG rules; none without a home.
pub(super) fn default_cache_dir(environment: &Environment) -> Option<PathBuf> {
    // A relative XDG directory is to be ignored, says its specification.
    let xdg = environment
        .get("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .filter(|dir| dir.is_absolute());
    let base = xdg.or_else(|| environment.home.as_ref().map(|home| home.join(".cache")))?;
    Some(base.join("floe"))
}

/// A path as written, made absolute: `~/` is the home directory.
pub(super) fn resolve(path: &str, base: &Path, home: Option<&Path>) -> PathBuf {
    match (path.strip_prefix("~/"), home) {
        (Some(below), Some(home)) => home.join(below),
        _ => plain(&base.join(path)),
    }
}

/// The value of a catalog's property: the relative file of a SQLite `uri` becomes absolute, all else stays.
pub(super) fn resolve_property(key: &str, value: &str, base: &Path) -> String {
    if key != "uri" {
        return value.to_string();
    }
    relative_sqlite(value)
        .map(|(scheme, path)| format!("{scheme}{}", plain(&base.join(path)).display()))
        .unwrap_or_else(|| value.to_string())
}

/// Where a location is read instead: a path without a scheme is a file.
pub(super) fn resolve_location(target: &str, base: &Path, home: Option<&Path>) -> String {
    let has_scheme = target
        .split_once(':')
        .is_some_and(|(scheme, rest)| !scheme.contains('/') && rest.starts_with('/'));
    match has_scheme {
        true => target.to_string(),
        false => format!("file:{}", resolve(target, base, home).display()),
    }
}

/// The relative path of `sqlite:x`, `sqlite://x`, `jdbc:sqlite:x`, and what to write before an absolute one: with its own
/// slash that makes four, which all readers take for absolute.
/// `sqlite:///x` is left to the catalog, which knows both its meanings.
fn relative_sqlite(uri: &str) -> Option<(&'static str, &str)> {
    let (jdbc, plain) = match uri.strip_prefix("jdbc:") {
        Some(plain) => (true, plain),
        None => (false, uri),
    };
    let (scheme, rest) = plain.split_once(':')?;
    if scheme.split('+').next()? != "sqlite" || rest.starts_with(':') || rest.starts_with("file:") {
        return None;
    }
    let path = match rest.strip_prefix("//") {
        Some(path) if !jdbc => path,
        _ => rest,
    };
    (!path.is_empty() && !path.starts_with('/'))
        .then_some((if jdbc { "jdbc:sqlite:" } else { "sqlite:///" }, path))
}

/// Without `.` and, where a name precedes it, without `..`: the store refuses them.
pub(super) fn plain(path: &Path) -> PathBuf {
    use std::path::Component;
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            part => plain.push(part),
        }
    }
    plain
}
