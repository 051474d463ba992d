//! The laboratory: scenarios, the worlds that run them, trials, conclusions from many runs, and their records.
//!
//! It knows the stack, the air and the agents. It reads files and writes results; it has no command line, no daemon and
//! no device.
//!
//! The page of this room follows.
#![doc = include_str!("../README.md")]
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]

pub mod agreement;
pub mod campaign;
pub mod claims;
#[cfg(feature = "parquet")]
mod columns;
pub mod cost;
pub mod explain;
pub mod file_kind;
pub mod findings;
pub mod folder;
pub mod keys;
pub mod live;
pub mod located;
pub mod machine;
pub mod metric;
pub mod named;
pub mod parallel;
pub mod plain;
pub mod programs;
pub mod record;
pub mod report;
pub mod result;
pub mod routing;
pub mod rules;
pub mod scenario;
pub mod seal;
pub mod shadow;
pub mod sim;
pub mod statistics;
pub mod store;
pub mod summary;
pub mod tcp;
pub mod units;
pub mod version;
pub mod words;
pub mod world;

pub use version::VERSION;

/// The bytes in lower-case hexadecimal digits, without separators.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
