//! Plans of tables that are made for the purpose, and of Spark's.

mod deletes;
mod lake;
mod pruning;
mod spark;
