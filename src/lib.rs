//! The command's package. What programs build on are the crates `hopwise-core`, `hopwise-agents`, `hopwise-host` and
//! `hopwise-lab`.

/// The README's examples are compiled and run with the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
