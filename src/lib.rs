//! The `hopwise` command as a library, for programs that add agents of their own to it.
//!
//! Such a program has every subcommand of `hopwise`, and knows its agents like ours in all of them:
//!
//! ```text
//! fn main() -> ExitCode {
//!     hopwise::main_with(&[(&growing::DESCRIPTOR, include_str!("growing.rs"))])
//! }
//! ```
//!
//! `docs/own-agent.md` has a whole agent, and `examples/own-agent` is its crate. Programs whose
//! own TCP should be this one depend on `hopwise-sockets`, which has nothing that the command alone needs.

#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]

use std::process::ExitCode;

pub use hopwise_agents::agent;
#[cfg(feature = "testkit")]
pub use hopwise_agents::testkit;

use agent::Descriptor;
use hopwise_daemon::failure::Failure;

#[cfg(test)]
mod book;
mod command;
mod manual;

/// The `main` of a program that has these agents beside ours, each with the text of its file (by [`include_str!`]).
///
/// `agents show` prints the header of that text. Its hash is a part of the version, so that runs of two versions of an
/// agent are never mixed. The exit status is 0 when the work is done, 1 if it failed, and 2 if the input was refused. A
/// wrong description of an agent is refused before the command line is read.
pub fn main_with(own: &[(&'static Descriptor, &'static str)]) -> ExitCode {
    match add(own) {
        Ok(()) => command::run(),
        Err(failure) => {
            failure.print();
            ExitCode::from(2)
        }
    }
}

/// These agents, and in the laboratory the one that the environment names.
fn add(own: &[(&'static Descriptor, &'static str)]) -> Result<(), Failure> {
    #[cfg(feature = "lab")]
    let own = &[own, hopwise_trial::agents::program::of_environment()?.as_slice()].concat();
    hopwise_agents::registry::add(own).map_err(|error| Failure::refused("agents of one's own", error))
}

/// The examples of this page are compiled and run with the tests.
#[cfg(doctest)]
#[doc = include_str!("../docs/programs.md")]
struct Programs;
