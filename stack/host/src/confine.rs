//! A program gives up files by Landlock and system calls by seccomp, for good, after it has opened what it needs.
//!
//! Both hold for the thread that asks and for every thread and program that it starts afterwards. A program asks while
//! it has one thread.

mod calls;
mod files;
mod refused;

use std::path::PathBuf;

pub use calls::{Calls, Refusal, give_up_calls, try_a_refused_call};
pub use files::{Enforced, give_up_files};

/// What stays reachable. A folder stands for all below it, and what is not there is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Paths {
    pub reads: Vec<PathBuf>,
    /// Also read.
    pub writes: Vec<PathBuf>,
}
