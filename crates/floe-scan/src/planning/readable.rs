//! Whether a planned file can be read. Asked when it is handed on: a file that is pruned may be anything.

use std::fmt::Display;

use iceberg::spec::DataFileFormat;

use crate::error::{Error, ErrorKind, Result};
use crate::task::{DeleteFile, DeleteKind, FileTask};

/// Refuses what the reader can't read, naming file and feature.
pub(crate) fn readable(task: &FileTask, table: impl Display) -> Result<()> {
    let file = &task.file;
    if file.encrypted {
        return Err(unsupported(table, &file.path, "encrypted"));
    }
    if file.format != DataFileFormat::Parquet {
        let feature = format!("a data file written as {}", file.format);
        return Err(unsupported(table, &file.path, &feature));
    }
    for delete in &task.deletes {
        if let Some(feature) = beyond_us(delete) {
            return Err(unsupported(table, &delete.path, &feature));
        }
    }
    Ok(())
}

fn beyond_us(delete: &DeleteFile) -> Option<String> {
    let kind = match &delete.kind {
        _ if delete.encrypted => return Some("an encrypted delete file".to_string()),
        DeleteKind::Vector { .. } => return None,
        _ if delete.format == DataFileFormat::Parquet => return None,
        DeleteKind::Positions => "position deletes",
        DeleteKind::Equality(_) => "equality deletes",
    };
    Some(format!("{kind} written as {}", delete.format))
}

fn unsupported(table: impl Display, file: &str, feature: &str) -> Error {
    Error::new(
        ErrorKind::Unsupported,
        format!("can't read {table}: {file} is {feature}, which floe can't read yet"),
    )
    .with_hint(
        "rewrite the table's data files with the engine that wrote them, or read an older snapshot",
    )
}
