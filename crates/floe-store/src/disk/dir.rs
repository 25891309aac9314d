//! The cache's directory: who may own it, what lies where in it.
//!
//! ```text
//! DIR/            0700, owned by this user, not reached through another user's link
//!   usage         bytes taken, one counter a shard; its lock orders all changes (usage.rs)
//!   shards/xx/    files of the cache, by the first byte of the path's hash (file.rs)
//!   tmp/          files being written, each locked by its writer (scan.rs sweeps the others)
//!   flights/      one locked file for each object being fetched (flights.rs)
//!   tombstones/   paths that were purged (purge.rs)
//!   purges.log    the same, in order, for the memory of other processes
//!   pins/         what is never evicted (pins.rs)
//!   scanned       when usage was last counted (scan.rs)
//! ```

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use crate::error::{Error, ErrorKind, Result};

/// The name tells the format: another format is another directory, so versions live side by side.
const FORMAT_DIR: &str = "v1";

/// A cache directory that was checked.
#[derive(Clone, Debug)]
pub(crate) struct CacheDir {
    root: PathBuf,
    /// Whether files can be made here; a cache on a read-only file system still serves its hits.
    pub(crate) writable: bool,
}

impl CacheDir {
    /// Make the directory if it is not there, and check who owns it and how it is reached.
    ///
    /// # Errors
    /// [`ErrorKind::CacheDir`] if another user owns it or a link of another user leads to it: what it
    /// serves would be another's to choose. [`ErrorKind::Unavailable`] if it can't be made or read.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let path = std::path::absolute(path).map_err(|e| failed("find", path, e))?;
        refuse_links(&path)?;
        let root = path.join(FORMAT_DIR);
        let made = make_private(&path).and_then(|()| make_private(&root));
        if let Err(error) = made
            && !root.is_dir()
        {
            return Err(failed("make", &path, error));
        }
        for dir in [&path, &root] {
            check_owner(dir)?;
        }
        let writable = ["shards", "tmp", "flights", "tombstones", "pins"]
            .iter()
            .try_for_each(|name| make_private(&root.join(name)))
            .and_then(|()| probe(&root.join("tmp")))
            .is_ok();
        Ok(Self { root, writable })
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    pub(crate) fn shard(&self, shard: u8) -> PathBuf {
        self.root.join(format!("shards/{shard:02x}"))
    }
}

/// A fresh file that only this user may read.
pub(crate) fn create_private(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .read(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
}

/// Open for reading and writing, made if it is not there.
pub(crate) fn open_private(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .read(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
}

/// Make a directory of mode 0700, parents included; one that is there stays as it is.
pub(crate) fn make_private(path: &Path) -> io::Result<()> {
    match DirBuilder::new().recursive(true).mode(0o700).create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}

fn probe(tmp: &Path) -> io::Result<()> {
    let path = tmp.join(format!(
        "probe-{}-{:016x}",
        std::process::id(),
        rand::random::<u64>()
    ));
    create_private(&path)?;
    fs::remove_file(path)
}

/// The directory itself must be no link, and no link of another user (root apart) may lead to it.
fn refuse_links(path: &Path) -> Result<()> {
    let me = rustix::process::geteuid().as_raw();
    let mut at = PathBuf::new();
    let last = path.components().count() - 1;
    for (depth, component) in path.components().enumerate() {
        at.push(component);
        if component == Component::ParentDir {
            return Err(refused(path, "its path holds `..`"));
        }
        let Ok(metadata) = fs::symlink_metadata(&at) else {
            return Ok(());
        };
        if metadata.is_symlink() && (depth == last || ![0, me].contains(&metadata.uid())) {
            return Err(refused(
                path,
                &format!("it is reached through the link {}", at.display()),
            ));
        }
    }
    Ok(())
}

fn check_owner(path: &Path) -> Result<()> {
    let metadata = fs::symlink_metadata(path).map_err(|e| failed("look at", path, e))?;
    if !metadata.is_dir() {
        return Err(refused(path, "it is not a directory"));
    }
    let me = rustix::process::geteuid().as_raw();
    if metadata.uid() != me {
        return Err(refused(
            path,
            &format!(
                "user {} owns it, and this process runs as user {me}",
                metadata.uid()
            ),
        ));
    }
    if metadata.mode() & 0o077 != 0 {
        fs::set_permissions(path, fs::Permissions::from_mode(0o700))
            .map_err(|e| failed("close to other users", path, e))?;
    }
    Ok(())
}

fn refused(path: &Path, why: &str) -> Error {
    Error::new(
        ErrorKind::CacheDir,
        format!("refuse the cache directory {}: {why}", path.display()),
    )
    .with_hint("name a directory of your own with [cache] dir in floe.toml, or FLOE_CACHE_DIR")
}

fn failed(what: &str, path: &Path, error: io::Error) -> Error {
    Error::new(
        ErrorKind::Unavailable,
        format!("can't {what} the cache directory {}", path.display()),
    )
    .with_source(error)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn the_directory_is_made_private() {
        let temp = tempfile::tempdir().unwrap();
        let dir = CacheDir::open(&temp.path().join("a/b")).unwrap();
        assert!(dir.writable);
        assert_eq!(mode(dir.root()), 0o700);
        assert_eq!(mode(&temp.path().join("a/b")), 0o700);
        assert_eq!(
            fs::read_dir(dir.join("tmp")).unwrap().count(),
            0,
            "the probe is gone"
        );
    }

    #[test]
    fn a_directory_open_to_others_is_closed() {
        let temp = tempfile::tempdir().unwrap();
        fs::set_permissions(temp.path(), fs::Permissions::from_mode(0o755)).unwrap();
        CacheDir::open(temp.path()).unwrap();
        assert_eq!(mode(temp.path()), 0o700);
    }

    #[test]
    fn a_link_is_refused() {
        let temp = tempfile::tempdir().unwrap();
        fs::create_dir(temp.path().join("real")).unwrap();
        symlink(temp.path().join("real"), temp.path().join("link")).unwrap();
        let error = CacheDir::open(&temp.path().join("link")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::CacheDir);
        assert!(error.to_string().contains("link"), "{error}");
    }

    #[test]
    fn a_file_in_its_place_is_refused() {
        let temp = tempfile::NamedTempFile::new().unwrap();
        assert!(CacheDir::open(temp.path()).is_err());
    }
}
