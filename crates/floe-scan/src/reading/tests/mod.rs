//! The reader over small Parquet files in memory.

mod count;
mod damage;
mod deletes;
mod evolution;
mod halves;
mod kit;
mod metadata;
mod network;
mod plain;
mod pruning;
mod random;
