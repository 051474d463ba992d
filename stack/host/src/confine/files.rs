//! Limits the files and folders that a program can open, by Landlock. Open files stay usable.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, NetPort, PathBeneath, Ruleset,
    RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};
use rustix::fs::OFlags;

use super::Paths;

/// The newest version of Landlock whose rights are named here. Older kernels enforce fewer of them.
const KNOWN: ABI = ABI::V6;

/// The extent to which this kernel enforces the limits.
#[derive(Debug)]
pub enum Enforced {
    /// All rights known here. The folders stay open: those of /proc get another identity when the kernel forgets them.
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
