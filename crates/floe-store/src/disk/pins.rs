//! What is never evicted: one small file for each pin, listing the hashes of the paths it holds.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::sync::Mutex;
use std::time::SystemTime;

use crate::disk::dir::{CacheDir, create_private};
use crate::key::PathHash;

/// The pins of all processes, read again when their directory changed.
#[derive(Debug, Default)]
pub(crate) struct Pins {
    known: Mutex<(Option<SystemTime>, HashSet<PathHash>)>,
}

/// The file of a pin; the name of a table may hold any character, so it is hashed.
fn file_of(dir: &CacheDir, name: &str) -> std::path::PathBuf {
    dir.join("pins").join(PathHash::of(name).hex())
}

impl Pins {
    /// Pin these paths under a name, in place of what the name pinned before.
    pub(crate) fn set(
        &self,
        dir: &CacheDir,
        name: &str,
        paths: impl Iterator<Item = PathHash>,
    ) -> io::Result<()> {
        let mut text = format!("{}\n", name.escape_default());
        for path in paths {
            text.push_str(&path.hex());
            text.push('\n');
        }
        let aside = dir
            .join("tmp")
            .join(format!("pin-{:016x}", rand::random::<u64>()));
        let mut file = create_private(&aside)?;
        file.lock()?;
        crate::disk::file::write(&mut file, &[text.into()])?;
        fs::rename(&aside, file_of(dir, name))
    }

    /// Forget a pin; whether there was one.
    pub(crate) fn remove(&self, dir: &CacheDir, name: &str) -> io::Result<bool> {
        match fs::remove_file(file_of(dir, name)) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The names of all pins.
    pub(crate) fn names(&self, dir: &CacheDir) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(dir.join("pins"))? {
            let text = fs::read_to_string(entry?.path())?;
            names.push(text.lines().next().unwrap_or_default().to_string());
        }
        names.sort();
        Ok(names)
    }

    /// Whether any pin holds this path. What can't be read counts as not pinned.
    pub(crate) fn holds(&self, dir: &CacheDir, path: PathHash) -> bool {
        let changed = fs::metadata(dir.join("pins"))
            .and_then(|m| m.modified())
            .ok();
        let mut known = self
            .known
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        if known.0.is_none() || known.0 != changed {
            *known = (changed, read_all(dir).unwrap_or_default());
        }
        known.1.contains(&path)
    }
}

fn read_all(dir: &CacheDir) -> io::Result<HashSet<PathHash>> {
    let mut all = HashSet::new();
    for entry in fs::read_dir(dir.join("pins"))? {
        let text = fs::read_to_string(entry?.path())?;
        all.extend(
            text.lines()
                .skip(1)
                .filter_map(|line| u128::from_str_radix(line, 16).ok())
                .map(PathHash),
        );
    }
    Ok(all)
}
