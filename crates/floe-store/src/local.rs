//! Files of this machine, written so that they appear whole or not at all.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::error::{Error, ErrorKind, Result};
use crate::location::Location;

/// Writes aside, in the same directory, and renames; dropped before that, it leaves nothing.
#[derive(Debug)]
pub(crate) struct LocalWriter {
    path: PathBuf,
    aside: PathBuf,
    file: File,
    published: bool,
}

impl LocalWriter {
    /// Begin to write the file of a location, its directories made where they are missing.
    pub(crate) fn create(location: &Location) -> Result<Self> {
        let path = Path::new("/").join(&location.key);
        let failed = |error| failed(&path, error);
        let name = path
            .file_name()
            .ok_or_else(|| Error::new(ErrorKind::Invalid, format!("{location} names no file")))?;
        let parent = path.parent().expect("a path with a file name has a parent");
        fs::create_dir_all(parent).map_err(failed)?;
        // Hidden, and not by its own name: readers of the directory must not take it for a table's file.
        let unique = format!(".floe-{:016x}.tmp", rand::random::<u64>());
        debug_assert_ne!(name.to_string_lossy(), unique);
        let aside = parent.join(unique);
        let file = File::options()
            .write(true)
            .create_new(true)
            .open(&aside)
            .map_err(failed)?;
        Ok(Self {
            path,
            aside,
            file,
            published: false,
        })
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.file
            .write_all(bytes)
            .map_err(|error| failed(&self.path, error))
    }

    /// Make it appear, on the disk and not only in its cache: a commit may rest on it.
    pub(crate) fn publish(mut self) -> Result<()> {
        self.file
            .sync_all()
            .and_then(|()| fs::rename(&self.aside, &self.path))
            .map_err(|error| failed(&self.path, error))?;
        self.published = true;
        Ok(())
    }
}

impl Drop for LocalWriter {
    fn drop(&mut self) {
        if !self.published {
            let _ = fs::remove_file(&self.aside);
        }
    }
}

fn failed(path: &Path, error: io::Error) -> Error {
    Error::new(
        ErrorKind::Unexpected,
        format!("can't write {}", path.display()),
    )
    .with_source(error)
}
