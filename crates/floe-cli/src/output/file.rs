//! Rows into a file: written aside, renamed when whole. A run that fails or is killed leaves no half file under the name.

use std::fs::{self, File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use super::rows::{self, RowWriter};
use crate::failure::Usage;

/// A file in the making.
pub(crate) struct OutputFile {
    writer: Box<dyn RowWriter>,
    aside: Aside,
    target: PathBuf,
}

/// Removes the file under its temporary name, unless it was renamed.
struct Aside {
    path: PathBuf,
    file: File,
    kept: bool,
}

impl Drop for Aside {
    fn drop(&mut self) {
        if !self.kept {
            // It may be gone already; nothing more can be done about it here.
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl OutputFile {
    /// Begins a file whose format its extension tells.
    pub(crate) fn create(target: &Path, schema: &SchemaRef) -> Result<Self> {
        let kind = Kind::of(target)?;
        let name = target
            .file_name()
            .ok_or_else(|| Usage::error(format!("{} names no file", target.display())))?;
        let path = target.with_file_name(format!(
            ".{}.{}.tmp",
            name.to_string_lossy(),
            uuid::Uuid::new_v4()
        ));
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&path)
            .with_context(|| format!("can't write {}", target.display()))?;
        let aside = Aside {
            path,
            file,
            kept: false,
        };
        let out = BufWriter::new(aside.file.try_clone()?);
        let writer = match kind {
            Kind::Parquet => rows::parquet(schema, out)?,
            Kind::Arrow => rows::arrow_file(schema, out)?,
            Kind::Csv => rows::csv(out),
        };
        Ok(Self {
            writer,
            aside,
            target: target.to_path_buf(),
        })
    }

    pub(crate) fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.writer.write(batch)
    }

    /// Puts the whole file under its name; gives its length in bytes.
    pub(crate) fn finish(self) -> Result<u64> {
        let Self {
            writer,
            mut aside,
            target,
        } = self;
        writer.finish()?;
        let placed = aside
            .file
            .flush()
            .and_then(|()| aside.file.sync_all())
            .and_then(|()| fs::rename(&aside.path, &target));
        placed.with_context(|| format!("can't write {}", target.display()))?;
        aside.kept = true;
        Ok(aside.file.metadata()?.len())
    }
}

/// A format of files.
enum Kind {
    Parquet,
    Arrow,
    Csv,
}

impl Kind {
    fn of(path: &Path) -> Result<Self> {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("parquet") => Ok(Self::Parquet),
            Some("arrow") => Ok(Self::Arrow),
            Some("csv") => Ok(Self::Csv),
            _ => Err(Usage::error(format!(
                "can't tell the format of {}: its name must end with .parquet, .arrow or .csv",
                path.display()
            ))),
        }
    }
}
