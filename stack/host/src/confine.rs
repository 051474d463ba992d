//! Gives up files by Landlock and system calls by seccomp, for good, after the program has opened what it needs.
//!
//! Both hold for the calling thread, and for every thread and program that it starts afterwards. Call them while the
//! program has one thread.

mod calls;
mod files;
mod refused;

use std::path::PathBuf;

pub use calls::{Calls, Refusal, give_up_calls, try_a_refused_call};
pub use files::{Enforced, give_up_files};

/// The paths that stay reachable. A folder includes all below it. A path that does not exist is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Paths {
    /// These can be read.
    pub reads: Vec<PathBuf>,
    /// These can also be read.
    pub writes: Vec<PathBuf>,
    /// TCP may bind a port that the kernel chooses.
    pub chosen_ports: bool,
}
