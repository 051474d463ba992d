//! Gives up files by Landlock and system calls by seccomp, for good, after the program has opened what it needs. Open
//! files stay usable.
//!
//! Both hold for the calling thread, and for every thread and program that it starts afterwards. Call them while the
//! program has one thread.

mod calls;
mod refused;

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, NetPort, PathBeneath, Ruleset,
    RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};
use rustix::fs::OFlags;

pub use calls::{CallRefusal, Calls, give_up_calls, try_a_refused_call};

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

/// The newest version of Landlock whose rights are named here. Older kernels enforce fewer of them.
const KNOWN: ABI = ABI::V6;

/// The extent to which this kernel enforces the limits.
#[derive(Debug)]
pub enum Enforced {
    /// All rights known here. The folders stay open: a folder of /proc gets another identity when the kernel forgets
    /// it.
    Fully(Vec<OwnedFd>),
    /// A kernel with an older Landlock.
    Partly(Vec<OwnedFd>),
    /// A kernel without it.
    No,
}

/// From here on, only these paths can be opened, and no TCP port of our choice can be bound. Signals reach no program
/// that started before.
pub fn give_up_files(paths: &Paths) -> io::Result<Enforced> {
    let mut held = Vec::new();
    let status = restrict(paths, &mut held).map_err(io::Error::other)?;
    Ok(match status {
        RulesetStatus::FullyEnforced => Enforced::Fully(held),
        RulesetStatus::PartiallyEnforced => Enforced::Partly(held),
        RulesetStatus::NotEnforced => Enforced::No,
    })
}

fn restrict(paths: &Paths, held: &mut Vec<OwnedFd>) -> Result<RulesetStatus, RulesetError> {
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(KNOWN))?
        .handle_access(AccessNet::BindTcp)?
        .scope(Scope::Signal)?
        .create()?;
    if paths.chosen_ports {
        rules = rules.add_rule(NetPort::new(0, AccessNet::BindTcp))?;
    }
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    let write =
        (AccessFs::from_all(KNOWN) & !AccessFs::Execute) & !(AccessFs::MakeChar | AccessFs::MakeBlock);
    for (paths, rights) in [(&paths.reads, read), (&paths.writes, write)] {
        for path in paths {
            rules = allow(rules, path, rights, held)?;
        }
    }
    Ok(rules.restrict_self()?.ruleset)
}

fn allow(
    rules: RulesetCreated,
    path: &Path,
    rights: BitFlags<AccessFs>,
    held: &mut Vec<OwnedFd>,
) -> Result<RulesetCreated, RulesetError> {
    let flags = (OFlags::PATH | OFlags::CLOEXEC).bits();
    let opened = File::options().read(true).custom_flags(flags as i32).open(path);
    let Ok(file) = opened else { return Ok(rules) };
    let is_folder = file.metadata().is_ok_and(|facts| facts.is_dir());
    let rights = if is_folder { rights } else { rights & AccessFs::from_file(KNOWN) };
    let rules = rules.add_rule(PathBeneath::new(&file, rights))?;
    held.push(file.into());
    Ok(rules)
}
