//! `hopwise air hwsim`: a scenario under the Wi-Fi stack of a real kernel, in a guest or on this machine.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::ExitCode;

use hopwise_host::own_file::folder_of;
use hopwise_lab::scenario::Prepared;
use hopwise_mesh::LiveRouter;

use hopwise_daemon::failure::{Failure, remark};

mod arguments;
mod field;
mod guest;
mod image;
mod inside;
mod medium;
mod network;
mod qemu;
mod wmediumd;

use arguments::words;
pub(crate) use arguments::{Arguments, OfRadios};
pub(crate) use field::RadioSetup;
use guest::{Guest, SharedFolder, Up};
use image::Image;
pub(super) use inside::HwsimReport;
pub(super) use medium::HwsimMedium;
pub(crate) use network::{CarriedRadios, HwsimNetwork};
pub(super) use network::{MOST_WAITING, begin};
use qemu::Accelerator;

/// The kernel's netlink socket, and a namespace each, hold more than that; a guest's processor does not.
const MOST: usize = 64;
/// Memory of a guest, in MiB.
const MEMORY_MIB: u32 = 768;

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let Some(file) = &arguments.scenario else {
        let image = Image::prepare(None, &arguments.packages)?;
        remark(&format!("the guest's image is ready: {}", image.folder.display()));
        return Ok(ExitCode::SUCCESS);
    };
    let (prepared, out) = arguments.of.prepare(file)?;
    check(&prepared, arguments.shell.as_deref())?;
    if arguments.shell.is_some() && arguments.accelerator == Accelerator::Counted {
        let problem = "counted, expected auto, kvm or tcg: at a shell its clock would run ahead of its user";
        return Err(Failure::refused("--accelerator", problem));
    }
    if arguments.junit {
        // That of an earlier command says nothing about this command.
        let _ = std::fs::remove_file(out.join("junit.xml"));
    }
    if arguments.here {
        return inside::run(arguments, &prepared, &out);
    }
    let image = Image::prepare(None, &arguments.packages)?;
    let guest = Guest {
        image: &image,
        memory_mib: arguments.memory,
        accelerator: arguments.accelerator,
        limit: arguments.limit.map(|limit| limit.0),
        has_terminal: arguments.shell.is_some(),
        shares: shares(file, &out)?,
    };
    guest.run(&words(arguments, file)?)
}

/// Refuses a scenario that the kernel's radios cannot play, or a shell on a node that it does not have.
pub(crate) fn check(prepared: &Prepared, shell: Option<&str>) -> Result<(), Failure> {
    let plan = &prepared.plan;
    let count = plan.positions.len();
    if count > MOST {
        let problem = format!("{count} nodes, expected at most {MOST}: each has a radio and a namespace");
        return Err(Failure::refused("topology", problem));
    }
    if !plan.wires.is_empty() || plan.positions.contains(&None) {
        return Err(Failure::refused("topology", "wires, expected radios alone: `hopwise air` has both"));
    }
    if plan.routing.protocol.live == LiveRouter::Simulation {
        let problem = "this protocol is only for simulations, expected static, batman, hwmp, or what `hopwise route` \
                       speaks";
        return Err(Failure::refused("routing.protocol", problem));
    }
    match shell {
        Some(node) if !node.is_empty() && !prepared.names.iter().any(|name| name == node) => {
            let names = prepared.names.join(", ");
            Err(Failure::refused("--shell", format_args!("no node `{node}`, expected one of: {names}")))
        }
        _ => Ok(()),
    }
}

/// The folders that the guest sees.
fn shares(file: &Path, out: &Path) -> Result<Vec<SharedFolder>, Failure> {
    let failed = |path: &Path, error: std::io::Error| {
        Failure::failed("share a folder with the guest", format_args!("{}: {error}", path.display()))
    };
    std::fs::create_dir_all(out).map_err(|error| failed(out, error))?;
    let program = std::env::current_exe().map_err(|error| failed(Path::new("/proc/self/exe"), error))?;
    [
        ("program", folder_of(&program), true),
        ("share", Path::new("."), true),
        ("scenario", folder_of(file), true),
        ("out", out, false),
    ]
    .into_iter()
    .map(|(tag, folder, is_read_only)| {
        let folder = folder.canonicalize().map_err(|error| failed(folder, error))?;
        Ok(SharedFolder { tag, folder, is_read_only })
    })
    .collect()
}

/// This program, as the guest sees it.
fn program_in_guest() -> Result<String, Failure> {
    let program = std::env::current_exe().map_err(|error| Failure::failed("find the program", error))?;
    Ok(place("/program", &program))
}

fn place(folder: &str, path: &Path) -> String {
    format!("{folder}/{}", path.file_name().unwrap_or_default().to_string_lossy())
}

/// Dropping it ends the guest.
#[derive(Debug)]
pub(crate) struct Session {
    up: Up,
}

impl Session {
    /// Boots a guest in which this program runs that subcommand. It sees the current folder, and `out` for results.
    /// The kernel ends it with this thread.
    pub(crate) fn start(out: &Path, subcommand: &str, ends: &OwnedFd) -> Result<Session, Failure> {
        let image = Image::prepare(Some(ends), &[])?;
        let guest = Guest {
            image: &image,
            memory_mib: MEMORY_MIB,
            // Its clock is its own: the load of this machine does not reach the figures of a run.
            accelerator: Accelerator::Counted,
            limit: None,
            has_terminal: false,
            shares: shares(Path::new("."), out)?,
        };
        let words = [program_in_guest()?, subcommand.to_owned(), "/out".to_owned()];
        let up = guest.start(&words, ends)?;
        up.carry_errors().map_err(|error| Failure::failed("start a thread", error))?;
        Ok(Session { up })
    }

    /// Says a line, and waits for the answer. A signal ends the wait, and then the guest is of no more use.
    pub(crate) fn ask(&mut self, line: &str, ends: &OwnedFd) -> Result<String, Failure> {
        self.up.ask(line, ends)
    }
}

#[cfg(test)]
mod tests {
    use hopwise_lab::scenario::Scenario;

    use super::*;
    use crate::scenario::first_arm_unless;

    fn problem(sets: &[&str], shell: Option<&str>) -> Option<String> {
        let sets: Vec<_> = sets.iter().map(|set| (*set).to_owned()).collect();
        let scenario = Scenario::load(
            Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../configs/chain.yaml")),
            &sets,
        )
        .expect("it is sound");
        let prepared = first_arm_unless(&scenario, None, 1).expect("it has arms");
        check(&prepared, shell).err().map(|failure| failure.to_string())
    }

    #[test]
    fn a_scenario_that_kernels_radios_cannot_play_is_refused_with_what_would_be_accepted() {
        assert_eq!(problem(&[], Some("n8")), None);
        let of = |sets: &[&str], shell| problem(sets, shell).expect("it is refused");
        assert!(of(&["topology.hops=2"], Some("n3")).ends_with("no node `n3`, expected one of: n0, n1, n2"));
        assert_eq!(problem(&["mac.rules=standard", "radio.profile=ht20-mcs7"], None), None);
        assert!(of(&["topology.hops=64"], None).contains("65 nodes, expected at most 64"));
        assert!(
            of(&["routing.protocol=dsr"], None)
                .contains("expected static, batman, hwmp, or what `hopwise route`")
        );
    }
}
