//! The machine by its files, and the checks of it that concern every node.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

use caps::{CapSet, Capability};
use hopwise_core::tcp::HopCounting;
use hopwise_host::firewall::Ruleset;

use super::faults;
use super::finding::{CheckFault, CheckVerdict, Finding};

pub(super) fn tun(system: &System) -> Finding {
    let device = system.path("dev/net/tun");
    match OpenOptions::new().read(true).write(true).open(&device) {
        Ok(_) => faults::TUN_REFUSED.ok("/dev/net/tun can be opened"),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            faults::TUN_MISSING.found("there is no /dev/net/tun")
        }
        Err(error) => faults::TUN_REFUSED.found(format!("/dev/net/tun: {error}")),
    }
}

/// The capability whose want is this fault.
pub(super) fn capability(fault: &CheckFault, capability: Capability) -> Finding {
    match caps::has_cap(None, CapSet::Effective, capability) {
        Ok(true) => fault.ok(format!("{capability} is there")),
        Ok(false) => fault.found(format!("{capability} is missing: {}", fault.spoils)),
        Err(error) => fault.skipped(error.to_string()),
    }
}

/// A program in the kernel deals packets to queues.
pub(super) fn programs(system: &System) -> Finding {
    let needs = capability(&faults::NO_BPF, Capability::CAP_BPF);
    let is_anybodys = system.read("proc/sys/kernel/unprivileged_bpf_disabled").as_deref() == Some("0");
    let is_roots = caps::has_cap(None, CapSet::Effective, Capability::CAP_SYS_ADMIN).unwrap_or(false);
    match needs.verdict {
        CheckVerdict::Failure if is_anybodys => faults::NO_BPF.ok("anyone may load a program for sockets"),
        CheckVerdict::Failure if is_roots => faults::NO_BPF.ok("CAP_SYS_ADMIN is there"),
        _ => needs,
    }
}

/// A strict filter drops packets that come in over another interface than the reply would leave by. The greater of the
/// values for all and for an interface counts. A new TUN begins with the default.
pub(super) fn rp_filter(system: &System) -> Finding {
    match filter_of(system, "all").max(filter_of(system, "default")) {
        None => faults::RP_FILTER_STRICT.skipped("the kernel does not show it"),
        Some(1) => {
            let said = "strict: packets from a node's address are dropped unless the way back is the TUN that \
                        they came from";
            faults::RP_FILTER_STRICT.found(said).with("OF", "all")
        }
        Some(value) => faults::RP_FILTER_STRICT.ok(format!("{value}, not strict")),
    }
}

/// The same for an interface of a mesh, where the two ways between hosts may differ.
pub(super) fn rp_filter_of(system: &System, interface: &str) -> Finding {
    match filter_of(system, interface).map(|own| own.max(filter_of(system, "all").unwrap_or(0))) {
        None => faults::RP_FILTER_STRICT.skipped(format!("{interface}: the kernel does not show it")),
        Some(1) => {
            let said = format!(
                "{interface}: strict: packets are dropped that come in here while their way back is another"
            );
            faults::RP_FILTER_STRICT.found(said).with("OF", &interface.replace('.', "/"))
        }
        Some(value) => faults::RP_FILTER_STRICT.ok(format!("{interface}: {value}, not strict")),
    }
}

fn filter_of(system: &System, interface: &str) -> Option<u8> {
    system.read(&format!("proc/sys/net/ipv4/conf/{interface}/rp_filter"))?.parse().ok()
}

/// Some clocks take a system call and a device access for every reading.
pub(super) fn clock_source(system: &System) -> Finding {
    const FOLDER: &str = "sys/devices/system/clocksource/clocksource0";
    let Some(current) = system.read(&format!("{FOLDER}/current_clocksource")) else {
        return faults::CLOCK_SLOW.skipped("the kernel does not show it");
    };
    let slow = ["hpet", "acpi_pm", "jiffies", "refined-jiffies", "pit"];
    if !slow.contains(&current.as_str()) {
        return faults::CLOCK_SLOW.ok(current);
    }
    let available = system.read(&format!("{FOLDER}/available_clocksource")).unwrap_or_default();
    let better = available.split_whitespace().find(|name| !slow.contains(name));
    let found =
        faults::CLOCK_SLOW.found(format!("{current} is slow to read, and it is read for every packet"));
    match better {
        Some(better) => found.with("CLOCK", better),
        None => {
            Finding { fix: Some("none here is quick; timers and rates will be coarse".to_owned()), ..found }
        }
    }
}

/// Finds whether a program synchronises the clock (NTP or PTP).
pub(super) fn clock_is_kept(asked: io::Result<bool>) -> Finding {
    match asked {
        Ok(true) => faults::CLOCK_ALONE.ok("a program synchronises it"),
        Ok(false) => faults::CLOCK_ALONE.found("no program synchronises the clock of this machine"),
        Err(error) => faults::CLOCK_ALONE.skipped(error.to_string()),
    }
}

/// The governors of the CPUs.
pub(super) fn governor(system: &System) -> Finding {
    const FOLDER: &str = "sys/devices/system/cpu/cpufreq";
    const QUICK: &str = "performance";
    let of = |name: &String| Some((name.clone(), system.read(&format!("{FOLDER}/{name}/scaling_governor"))?));
    let all: Vec<_> = system.names(FOLDER).iter().filter_map(of).collect();
    if all.is_empty() {
        return faults::GOVERNOR
            .skipped("the kernel shows none: the CPU keeps its frequency, or a host sets it");
    }
    let slow: Vec<_> = all.iter().filter(|(_, governor)| governor != QUICK).collect();
    match slow.first() {
        None => faults::GOVERNOR.ok(QUICK),
        Some((name, governor)) if slow.len() == all.len() => {
            faults::GOVERNOR.found(format!("{governor} ({name} and all other processors)"))
        }
        Some((name, governor)) => faults::GOVERNOR.found(format!("{governor} ({name})")),
    }
}

/// The keys below /proc/sys/net with the hop limits of new packets.
fn hop_limit_keys(interfaces: &[String]) -> Vec<String> {
    let own = interfaces.iter().map(|name| format!("ipv6/conf/{name}/hop_limit"));
    ["ipv4/ip_default_ttl".to_owned(), "ipv6/conf/all/hop_limit".to_owned()].into_iter().chain(own).collect()
}

/// Agents that count hops by hop limits expect 64 at the first host.
pub(super) fn hop_limits(system: &System, interfaces: &[String], rules: io::Result<Ruleset>) -> Vec<Finding> {
    let mut findings = vec![first_hop_limit(system, interfaces)];
    if let Ok(rules) = rules {
        findings.extend(rules.setting_hop_limits().iter().map(|rule| hop_limit_rule(rule)));
    }
    findings
}

fn first_hop_limit(system: &System, interfaces: &[String]) -> Finding {
    let expected = HopCounting::default().peers_hop_limit.to_string();
    let of = |key: String| system.read(&format!("proc/sys/net/{key}")).map(|limit| (key, limit));
    let all: Vec<_> = hop_limit_keys(interfaces).into_iter().filter_map(of).collect();
    match all.iter().find(|(_, limit)| *limit != expected) {
        _ if all.is_empty() => faults::HOP_LIMIT_OTHER.skipped("the kernel does not show it"),
        None => faults::HOP_LIMIT_OTHER.ok(format!("packets begin with {expected}")),
        Some((key, limit)) => faults::HOP_LIMIT_OTHER
            .found(format!("packets begin with {limit} ({key}), and hops are counted from {expected}"))
            .with("KEY", key)
            .with("LIMIT", limit),
    }
}

fn hop_limit_rule(rule: &str) -> Finding {
    let table = rule.split(':').next().unwrap_or(rule);
    faults::HOP_LIMIT_RULE.found(format!("a rule changes it: {rule}")).with("TABLE", table)
}

/// A machine by its files and its programs; tests give it a folder with recorded files.
#[derive(Debug)]
pub(super) struct System {
    root: PathBuf,
}

impl System {
    pub(super) fn at(root: &Path) -> System {
        System { root: root.to_owned() }
    }

    pub(super) fn path(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    /// A file's text without its newline. Names in it may be any bytes that a user of the machine chooses.
    pub(super) fn read(&self, path: &str) -> Option<String> {
        let bytes = fs::read(self.path(path)).ok()?;
        Some(String::from_utf8_lossy(&bytes).trim().to_owned())
    }

    pub(super) fn has(&self, path: &str) -> bool {
        self.path(path).exists()
    }

    /// The names in a folder, in their order; none if it is not there.
    pub(super) fn names(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(folder)).into_iter().flatten().flatten();
        let mut names: Vec<_> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort_unstable();
        names
    }

    /// The output of a program, or the reason why there is none.
    pub(super) fn run(&self, program: &str, words: &[&str]) -> io::Result<String> {
        let output = Command::new(self.path(program)).args(words).output()?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        if output.status.success() {
            return Ok(text(&output.stdout));
        }
        let said = text(&[output.stderr, output.stdout].concat());
        Err(io::Error::other(if said.is_empty() { output.status.to_string() } else { said }))
    }
}
