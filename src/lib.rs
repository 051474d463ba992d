//! The command's package. Programs build on the crates `hopwise-core`, `hopwise-agents`, `hopwise-host` and
//! `hopwise-lab`.

#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]

/// The examples of this page are compiled and run with the tests.
#[cfg(doctest)]
#[doc = include_str!("../docs/programs.md")]
struct Programs;
