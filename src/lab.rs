//! The laboratory: what a run came to, what is kept of it, and what many runs say together.

pub mod campaign;
pub mod claims;
#[cfg(feature = "parquet")]
mod columns;
pub mod cost;
pub mod csv;
pub mod explain;
pub mod findings;
pub mod metric;
pub mod record;
pub mod report;
pub mod result;
pub mod seal;
mod settings;
pub mod statistics;
pub mod store;
pub mod summary;

/// The version with a hash of the sources: results of two builds are never taken for each other's.
pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "+", env!("HOPWISE_SOURCES"));
