//! `hopwise world hwsim`: a scenario under the Wi-Fi stack of a real kernel, in a guest or on this machine.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use hopwise_host::own_file::folder_of;
use hopwise_lab::scenario::{Prepared, Scenario};
use hopwise_lab::sim::RoutingPlan;
use hopwise_lab::units::Time;

use crate::failure::{Failure, remark};
use crate::scenario::first_arm_unless;

mod field;
mod guest;
mod image;
mod inside;
mod medium;
mod network;
mod qemu;
mod session;
mod streams;

use guest::{Guest, Share};
use image::Image;
pub(crate) use network::{Carried, Network};
pub(crate) use session::Session;

/// The kernel's netlink socket, and a namespace each, hold more than that; a guest's processor does not.
const MOST: usize = 64;
/// Memory of a guest, in MiB.
const MEMORY_MIB: u32 = 768;

/// A scenario with mac80211_hwsim: a virtual machine whose kernel has a simulated Wi-Fi radio for each node
#[derive(Args, Debug)]
#[command(
    group = clap::ArgGroup::new("what").required(true).multiple(false).args(["prepare", "shell", "command"]),
    after_help = "\
Examples:
  hopwise world hwsim --prepare
  hopwise world hwsim configs/chain.yaml --set topology.hops=3 --shell
  hopwise world hwsim configs/chain.yaml --set topology.hops=3 -- ip netns exec n0 ping -c 5 10.0.0.4
  hopwise world hwsim configs/chain.yaml --capture --monitor -- sh /share/experiment.sh

Each node has a namespace with its name, and there the interface air0 in an ad hoc network (IBSS). The nodes are
10.0.0.1, 10.0.0.2, … With `routing: { protocol: static }` they have the shortest routes. Frames go over the scenario's
radio as under `hopwise air`: 802.11 with its collisions, losses, movement and outages. The kernels get the signal, the
tries and the outcome of each frame, so that `iw`, `hopwise route` and `hopwise doctor` see what a driver reports.

In the guest the current folder is /share (for reading), the folder for results /out, also in $OUT. The guest has
Debian's kernel and tools such as iw, tcpdump, iperf3 and python3; its packages are fetched once, without root. COMMAND
has the streams of this command, and its status becomes ours."
)]
pub(crate) struct Arguments {
    /// Scenario file in YAML
    #[arg(value_name = "SCENARIO", required_unless_present = "prepare", conflicts_with = "prepare")]
    scenario: Option<PathBuf>,
    /// Fetch the packages and make the guest's image now, unless they are there
    #[arg(long)]
    prepare: bool,
    /// Open a shell on this node (default: the first one)
    #[arg(long, value_name = "NODE", num_args = 0..=1, default_missing_value = "")]
    shell: Option<String>,
    /// Command to run beside the nodes' namespaces; `ip netns exec NODE` runs one on a node
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
    /// Replace one value of the file, such as topology.hops=7; VALUE is YAML; repeatable
    #[arg(long, value_name = "PATH=VALUE")]
    set: Vec<String>,
    /// Seed of the random numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Arm whose settings apply, if arms change settings (default: the first arm)
    #[arg(long, value_name = "A")]
    arm: Option<String>,
    /// Folder for results, captures and logs [default: results/SCENARIO]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Write what each radio sends and decodes to NODE.pcapng, for Wireshark
    #[arg(long)]
    capture: bool,
    /// Give each node a monitor interface mon0, which also hears frames for others
    #[arg(long)]
    monitor: bool,
    /// Use the module mac80211_hwsim of this machine, without a guest; needs root
    #[arg(long, conflicts_with = "prepare")]
    here: bool,
    /// Time after which COMMAND is ended (default: none)
    #[arg(long, value_name = "TIME")]
    limit: Option<Time>,
    /// Memory of the guest in MiB
    #[arg(long, value_name = "MIB", default_value_t = MEMORY_MIB, value_parser = clap::value_parser!(u32).range(256..))]
    memory: u32,
    /// Way in which qemu runs the guest: by the processor (kvm), emulated in real time (tcg) or in its own (counted),
    /// or by the first of these that works (auto)
    #[arg(long, value_enum, default_value_t)]
    accelerator: qemu::Accelerator,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let Some(file) = &arguments.scenario else {
        let image = Image::prepare(None)?;
        remark(&format!("the guest's image is ready: {}", image.folder().display()));
        return Ok(ExitCode::SUCCESS);
    };
    let scenario = Scenario::load(file, &arguments.set)?;
    let prepared = first_arm_unless(&scenario, arguments.arm.as_deref(), arguments.seed)?;
    check(&prepared, arguments.shell.as_deref())?;
    if arguments.shell.is_some() && arguments.accelerator == qemu::Accelerator::Counted {
        let problem = "counted, expected auto, kvm or tcg: at a shell its clock would run ahead of its user";
        return Err(Failure::refused("--accelerator", problem));
    }
    let out = arguments.out.clone().unwrap_or_else(|| PathBuf::from("results").join(&scenario.name));
    if arguments.here {
        return inside::run(arguments, &prepared, &out);
    }
    let image = Image::prepare(None)?;
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
    if matches!(plan.routing, RoutingPlan::Dsr(_) | RoutingPlan::Gpsr(_)) {
        let problem =
            "kernels do not put its headers into packets, expected static, or what `hopwise route` speaks";
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
fn shares(file: &Path, out: &Path) -> Result<Vec<Share>, Failure> {
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
        Ok(Share { tag, folder, is_read_only })
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

/// The command in the guest: the same one, with `--here` and the guest's folders.
fn words(arguments: &Arguments, file: &Path) -> Result<Vec<String>, Failure> {
    let mut words = vec![program_in_guest()?];
    words.extend(["world", "hwsim", "--here", "--out", "/out", "--seed"].map(str::to_owned));
    words.push(arguments.seed.to_string());
    for set in &arguments.set {
        words.extend(["--set".to_owned(), set.clone()]);
    }
    if let Some(arm) = &arguments.arm {
        words.extend(["--arm".to_owned(), arm.clone()]);
    }
    words.extend(arguments.capture.then(|| "--capture".to_owned()));
    words.extend(arguments.monitor.then(|| "--monitor".to_owned()));
    words.push(place("/scenario", file));
    match &arguments.shell {
        Some(node) if node.is_empty() => words.push("--shell".to_owned()),
        Some(node) => words.push(format!("--shell={node}")),
        None => {
            words.push("--".to_owned());
            words.extend(arguments.command.iter().cloned());
        }
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        arguments: Arguments,
    }

    fn parsed(words: &[&str]) -> Result<Arguments, clap::Error> {
        Line::try_parse_from([&["hwsim"], words].concat()).map(|line| line.arguments)
    }

    fn problem(sets: &[&str], shell: Option<&str>) -> Option<String> {
        let sets: Vec<_> = sets.iter().map(|set| (*set).to_owned()).collect();
        let scenario = Scenario::load(Path::new("configs/chain.yaml"), &sets).expect("it is sound");
        let prepared = first_arm_unless(&scenario, None, 1).expect("it has arms");
        check(&prepared, shell).err().map(|failure| failure.to_string())
    }

    #[test]
    fn a_scenario_that_kernels_radios_cannot_play_is_refused_with_what_would_be_accepted() {
        assert_eq!(problem(&[], Some("n8")), None);
        let of = |sets: &[&str], shell| problem(sets, shell).expect("it is refused");
        assert!(of(&["topology.hops=2"], Some("n3")).ends_with("no node `n3`, expected one of: n0, n1, n2"));
        assert!(of(&["topology.hops=64"], None).contains("65 nodes, expected at most 64"));
        assert!(
            of(&["routing.protocol=dsr"], None).contains("expected static, or what `hopwise route` speaks")
        );
    }

    #[test]
    fn one_thing_is_asked_for_at_a_time() {
        for words in [
            &["s.yaml"][..],
            &["s.yaml", "--shell", "--", "true"],
            &["s.yaml", "--prepare"],
            &["--shell"],
            &["s.yaml", "--memory", "1", "--shell"],
        ] {
            assert!(parsed(words).is_err(), "{words:?}");
        }
        assert!(parsed(&["--prepare"]).is_ok() && parsed(&["s.yaml", "--shell"]).is_ok());
    }

    #[test]
    fn the_guest_runs_the_same_command_in_its_own_folders() {
        let words_of = |given: &[&str]| {
            let arguments = parsed(given).expect("it is sound");
            words(&arguments, Path::new("configs/chain.yaml")).expect("this program has a name")[1..]
                .join(" ")
        };
        let begins = "world hwsim --here --out /out --seed 3";
        assert_eq!(
            words_of(&["s.yaml", "--seed", "3", "--set", "a=b c", "--capture", "--", "ping", "-c", "1"]),
            format!("{begins} --set a=b c --capture /scenario/chain.yaml -- ping -c 1")
        );
        let shell = format!("{begins} --monitor /scenario/chain.yaml --shell=n2");
        assert_eq!(words_of(&["s.yaml", "--seed", "3", "--monitor", "--shell", "n2"]), shell);
    }
}
