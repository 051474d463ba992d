//! The arguments of `hopwise air hwsim`, on the host and in the guest.

use std::path::{Path, PathBuf};

use clap::Args;
use hopwise_lab::scenario::{Prepared, Scenario};
use hopwise_lab::units::Time;

use super::{MEMORY_MIB, place, program_in_guest, qemu, wmediumd};
use crate::scenario::first_arm_unless;
use hopwise_daemon::failure::Failure;
use hopwise_daemon::numbers;

/// The settings of a medium for kernels' radios.
#[derive(Args, Debug)]
pub(crate) struct OfRadios {
    /// Replace one value of the file, such as topology.hops=7; VALUE is YAML; repeatable
    #[arg(long, value_name = "PATH=VALUE")]
    pub(super) set: Vec<String>,
    /// Seed of the random numbers
    #[arg(long, value_name = "N", default_value_t = 1, allow_negative_numbers = true, value_parser = numbers::seed)]
    pub(super) seed: u64,
    /// Arm whose settings apply, if arms change settings (default: the first arm)
    #[arg(long, value_name = "A")]
    pub(super) arm: Option<String>,
    /// Folder for results, captures and logs [default: results/FILE]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Write what each radio sends and decodes to NODE.pcapng, for Wireshark
    #[arg(long)]
    pub(crate) capture: bool,
}

impl OfRadios {
    /// The run of a scenario, or of what a configuration of wmediumd says, whose field is written beside the results.
    /// With the folder for results.
    pub(crate) fn prepare(&self, file: &Path) -> Result<(Prepared, PathBuf), Failure> {
        let stem = file.file_stem().unwrap_or_default();
        let out = self.out.clone().unwrap_or_else(|| Path::new("results").join(stem));
        let prepared = |scenario: &Scenario| first_arm_unless(scenario, self.arm.as_deref(), self.seed);
        if file.extension().is_none_or(|kind| kind != "cfg") {
            return Ok((prepared(&Scenario::load(file, &self.set)?)?, out));
        }
        let text =
            std::fs::read(file).map_err(|error| Failure::refused(file.display().to_string(), error))?;
        let text = String::from_utf8_lossy(&text);
        let field = out.join("wmediumd.csv");
        let at = |line: usize| format!("{}:{line}", file.display());
        let medium =
            wmediumd::read(&text, &field).map_err(|(line, problem)| Failure::refused(at(line), problem))?;
        let written = std::fs::create_dir_all(&out).and_then(|()| std::fs::write(&field, medium.field));
        written.map_err(Failure::during("write wmediumd's links"))?;
        let scenario = Scenario::parse("wmediumd", &medium.scenario, &self.set).map_err(Failure::Located)?;
        let mut prepared = prepared(&scenario)?;
        prepared.plan.macs = medium.macs;
        Ok((prepared, out))
    }
}

/// A scenario with mac80211_hwsim: a virtual machine whose kernel has a simulated Wi-Fi radio for each node
#[derive(Args, Debug)]
#[command(
    group = clap::ArgGroup::new("what").required(true).multiple(false).args(["prepare", "shell", "command"]),
    after_help = "\
Examples:
  hopwise air hwsim --prepare
  hopwise air hwsim configs/chain.yaml --set topology.hops=3 --shell
  hopwise air hwsim configs/chain.yaml --set topology.hops=3 -- ip netns exec n0 ping -c 5 10.0.0.4
  hopwise air hwsim configs/chain.yaml --capture --monitor -- sh /share/experiment.sh

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
    pub(super) scenario: Option<PathBuf>,
    /// Fetch the packages and make the guest's image now, unless they are there
    #[arg(long)]
    pub(super) prepare: bool,
    /// Open a shell on this node (default: the first one)
    #[arg(long, value_name = "NODE", num_args = 0..=1, default_missing_value = "")]
    pub(super) shell: Option<String>,
    /// Command to run next to the nodes' namespaces; `ip netns exec NODE PROGRAM` runs a program on a node
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
    #[command(flatten)]
    pub(super) of: OfRadios,
    /// Give each node a monitor interface mon0, which hears frames for all nodes
    #[arg(long)]
    pub(super) monitor: bool,
    /// Leave the radios to COMMAND, for hostapd, wpa_supplicant and the like: each node has wlan0, the interface of a
    /// station without a network or an address
    #[arg(long)]
    pub(super) bare: bool,
    /// Package of Debian to have in the guest, unpacked and not configured; repeatable
    #[arg(long = "package", value_name = "NAME", value_parser = package, conflicts_with = "here")]
    pub(super) packages: Vec<String>,
    /// Write junit.xml with COMMAND as one test, for continuous integration
    #[arg(long)]
    pub(super) junit: bool,
    /// Use the module mac80211_hwsim of this machine, without a guest; needs root
    #[arg(long, conflicts_with = "prepare")]
    pub(super) here: bool,
    /// Time after which COMMAND is ended (default: none)
    #[arg(long, value_name = "TIME")]
    pub(super) limit: Option<Time>,
    /// Memory of the guest in MiB
    #[arg(long, value_name = "MIB", default_value_t = MEMORY_MIB, value_parser = numbers::whole(256..=u32::MAX))]
    pub(super) memory: u32,
    /// Way in which qemu runs the guest: by the processor (kvm), emulated in real time (tcg) or in its own (counted),
    /// or by the first of these that works (auto)
    #[arg(long, value_enum, default_value_t)]
    pub(super) accelerator: qemu::Accelerator,
}

/// The name of a package by Debian's rules.
fn package(name: &str) -> Result<String, String> {
    let is_part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "+.-".contains(c);
    let is_name = name.len() > 1
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(is_part)
        && !name.ends_with('-');
    if is_name {
        Ok(name.to_owned())
    } else {
        Err("expected the name of a package, such as hostapd".to_owned())
    }
}

/// The command in the guest: with `--here` and the guest's folders.
pub(super) fn words(arguments: &Arguments, file: &Path) -> Result<Vec<String>, Failure> {
    let mut words = vec![program_in_guest()?];
    words.extend(["air", "hwsim", "--here", "--out", "/out", "--seed"].map(str::to_owned));
    words.push(arguments.of.seed.to_string());
    for set in &arguments.of.set {
        words.extend(["--set".to_owned(), set.clone()]);
    }
    if let Some(arm) = &arguments.of.arm {
        words.extend(["--arm".to_owned(), arm.clone()]);
    }
    words.extend(arguments.of.capture.then(|| "--capture".to_owned()));
    words.extend(arguments.monitor.then(|| "--monitor".to_owned()));
    words.extend(arguments.bare.then(|| "--bare".to_owned()));
    words.extend(arguments.junit.then(|| "--junit".to_owned()));
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
        let begins = "air hwsim --here --out /out --seed 3";
        assert_eq!(
            words_of(&["s.yaml", "--seed", "3", "--set", "a=b c", "--capture", "--", "ping", "-c", "1"]),
            format!("{begins} --set a=b c --capture /scenario/chain.yaml -- ping -c 1")
        );
        let shell = format!("{begins} --monitor /scenario/chain.yaml --shell=n2");
        assert_eq!(words_of(&["s.yaml", "--seed", "3", "--monitor", "--shell", "n2"]), shell);
    }
}
