//! What the command, the examples, the benches and the tests share.

mod hex;
pub mod lab;
pub mod located;
pub mod memory;
pub mod parallel;
pub mod plain;
pub mod routing;
pub mod rules;
pub mod scenario;
pub mod shadow;
pub mod sim;
pub mod swarm;
pub mod units;

pub use hex::hex;

/// The README's examples are compiled and run with the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
