//! Checks of the machine that concern every node.

use std::fs::OpenOptions;
use std::io;

use caps::{CapSet, Capability};

use super::System;
use super::faults;
use super::finding::{Fault, Finding, Verdict};

pub(super) fn tun(system: &System) -> Finding {
    let device = system.path("dev/net/tun");
    match OpenOptions::new().read(true).write(true).open(&device) {
        Ok(_) => Finding::ok(faults::TUN_REFUSED.check, "/dev/net/tun can be opened"),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            faults::TUN_MISSING.found("there is no /dev/net/tun")
        }
        Err(error) => faults::TUN_REFUSED.found(format!("/dev/net/tun: {error}")),
    }
}

/// The capability whose want is this fault.
pub(super) fn capability(fault: &Fault, capability: Capability) -> Finding {
    match caps::has_cap(None, CapSet::Effective, capability) {
        Ok(true) => Finding::ok(fault.check, format!("{capability} is there")),
        Ok(false) => fault.found(format!("{capability} is missing: {}", fault.spoils)),
        Err(error) => Finding::skipped(fault.check, error.to_string()),
    }
}

/// A program in the kernel deals packets to queues.
pub(super) fn programs(system: &System) -> Finding {
    let needs = capability(&faults::NO_BPF, Capability::CAP_BPF);
    let is_anybodys = system.read("proc/sys/kernel/unprivileged_bpf_disabled").as_deref() == Some("0");
    let is_roots = caps::has_cap(None, CapSet::Effective, Capability::CAP_SYS_ADMIN).unwrap_or(false);
    match needs.verdict {
        Verdict::Failure if is_anybodys => {
            Finding::ok(faults::NO_BPF.check, "anyone may load a program for sockets")
        }
        Verdict::Failure if is_roots => Finding::ok(faults::NO_BPF.check, "CAP_SYS_ADMIN is there"),
        _ => needs,
    }
}

/// A strict filter drops packets that come in over another interface than the reply would leave by. The greater of the
/// values for all and for an interface counts. A new TUN begins with the default.
pub(super) fn rp_filter(system: &System) -> Finding {
    match filter_of(system, "all").max(filter_of(system, "default")) {
        None => Finding::skipped(faults::RP_FILTER_STRICT.check, "the kernel does not show it"),
        Some(1) => {
            let said = "strict: packets from a node's address are dropped unless the way back is the TUN that \
                        they came from";
            faults::RP_FILTER_STRICT.found(said).with("OF", "all")
        }
        Some(value) => Finding::ok(faults::RP_FILTER_STRICT.check, format!("{value}, not strict")),
    }
}

/// The same for an interface of a mesh, where the two ways between hosts may differ.
pub(super) fn rp_filter_of(system: &System, interface: &str) -> Finding {
    let check = faults::RP_FILTER_STRICT.check;
    match filter_of(system, interface).map(|own| own.max(filter_of(system, "all").unwrap_or(0))) {
        None => Finding::skipped(check, format!("{interface}: the kernel does not show it")),
        Some(1) => {
            let said = format!(
                "{interface}: strict: packets are dropped that come in here while their way back is another"
            );
            faults::RP_FILTER_STRICT.found(said).with("OF", &interface.replace('.', "/"))
        }
        Some(value) => Finding::ok(check, format!("{interface}: {value}, not strict")),
    }
}

fn filter_of(system: &System, interface: &str) -> Option<u8> {
    system.read(&format!("proc/sys/net/ipv4/conf/{interface}/rp_filter"))?.parse().ok()
}

/// Some clocks take a system call and a device access for every reading.
pub(super) fn clock_source(system: &System) -> Finding {
    const FOLDER: &str = "sys/devices/system/clocksource/clocksource0";
    let check = faults::CLOCK_SLOW.check;
    let Some(current) = system.read(&format!("{FOLDER}/current_clocksource")) else {
        return Finding::skipped(check, "the kernel does not show it");
    };
    let slow = ["hpet", "acpi_pm", "jiffies", "refined-jiffies", "pit"];
    if !slow.contains(&current.as_str()) {
        return Finding::ok(check, current);
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

/// Returns whether a program keeps the clock with others.
pub(super) fn clock_is_kept(asked: io::Result<bool>) -> Finding {
    let check = faults::CLOCK_ALONE.check;
    match asked {
        Ok(true) => Finding::ok(check, "a program keeps it with others"),
        Ok(false) => faults::CLOCK_ALONE.found("no program keeps the clock of this machine with others"),
        Err(error) => Finding::skipped(check, error.to_string()),
    }
}

/// The governors of the CPUs.
pub(super) fn governor(system: &System) -> Finding {
    const FOLDER: &str = "sys/devices/system/cpu/cpufreq";
    const QUICK: &str = "performance";
    let check = faults::GOVERNOR.check;
    let of = |name: &String| Some((name.clone(), system.read(&format!("{FOLDER}/{name}/scaling_governor"))?));
    let all: Vec<_> = system.names(FOLDER).iter().filter_map(of).collect();
    if all.is_empty() {
        return Finding::skipped(
            check,
            "the kernel shows none: the CPU keeps its frequency, or a host sets it",
        );
    }
    let slow: Vec<_> = all.iter().filter(|(_, governor)| governor != QUICK).collect();
    match slow.first() {
        None => Finding::ok(check, QUICK),
        Some((name, governor)) if slow.len() == all.len() => {
            faults::GOVERNOR.found(format!("{governor} ({name} and all others)"))
        }
        Some((name, governor)) => faults::GOVERNOR.found(format!("{governor} ({name})")),
    }
}
