//! Rows and lists on their way out: formats by name, tables for people, files written aside and renamed.

pub(crate) mod file;
mod keys;
pub(crate) mod listing;
pub(crate) mod rows;
pub(crate) mod table;
