//! Checks of the machine that concern every node.

use std::fs::OpenOptions;
use std::io;

use caps::{CapSet, Capability};

use super::{Finding, System, Verdict};

pub(super) fn tun(system: &System) -> Finding {
    const CHECK: &str = "tun";
    let device = system.path("dev/net/tun");
    match OpenOptions::new().read(true).write(true).open(&device) {
        Ok(_) => Finding::ok(CHECK, "/dev/net/tun can be opened"),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Finding::failure(
            CHECK,
            "there is no /dev/net/tun",
            "modprobe tun; in a container, pass the device in with --device=/dev/net/tun",
        ),
        Err(error) => Finding::failure(
            CHECK,
            format!("/dev/net/tun: {error}"),
            "run as root, or chmod 0666 /dev/net/tun",
        ),
    }
}

pub(super) fn capability(check: &'static str, capability: Capability, what_for: &str) -> Finding {
    match caps::has_cap(None, CapSet::Effective, capability) {
        Ok(true) => Finding::ok(check, format!("{capability} is there")),
        Ok(false) => {
            let name = capability.to_string().to_lowercase();
            let fix = format!("run as root, or: setcap {name}+ep $(command -v hopwise)");
            Finding::failure(check, format!("{capability} is missing, which {what_for} need"), fix)
        }
        Err(error) => Finding::skipped(check, error.to_string()),
    }
}

/// A program in the kernel deals packets to queues.
pub(super) fn programs(system: &System) -> Finding {
    let needs = capability("bpf", Capability::CAP_BPF, "several queues");
    let is_anybodys = system.read("proc/sys/kernel/unprivileged_bpf_disabled").as_deref() == Some("0");
    let is_roots = caps::has_cap(None, CapSet::Effective, Capability::CAP_SYS_ADMIN).unwrap_or(false);
    match needs.verdict {
        Verdict::Failure if is_anybodys => Finding::ok("bpf", "anyone may load a program for sockets"),
        Verdict::Failure if is_roots => Finding::ok("bpf", "CAP_SYS_ADMIN is there"),
        _ => needs,
    }
}

/// A strict filter drops packets that come in over another interface than the reply would leave by. The greater of the
/// values for all and for an interface counts. A new TUN begins with the default.
pub(super) fn rp_filter(system: &System) -> Finding {
    const CHECK: &str = "rp-filter";
    let value = |of: &str| system.read(&format!("proc/sys/net/ipv4/conf/{of}/rp_filter"))?.parse::<u8>().ok();
    match value("all").max(value("default")) {
        None => Finding::skipped(CHECK, "the kernel does not show it"),
        Some(1) => Finding::warning(
            CHECK,
            "strict: packets from a node's address are dropped unless the way back is the TUN they came from",
            "sysctl -w net.ipv4.conf.all.rp_filter=2",
        ),
        Some(value) => Finding::ok(CHECK, format!("{value}, not strict")),
    }
}

/// Without forwarding, hosts beyond this machine cannot be reached through a TUN.
pub(super) fn forwarding(system: &System) -> Finding {
    let on = "sysctl -w net.ipv4.ip_forward=1";
    forwarding_of("forwarding", system.read("proc/sys/net/ipv4/ip_forward"), on)
}

pub(super) fn forwarding_v6(system: &System) -> Finding {
    let on = "sysctl -w net.ipv6.conf.all.forwarding=1, and net.ipv6.conf.IF.accept_ra=2 for an interface IF that \
              learns its address from a router";
    forwarding_of("forwarding6", system.read("proc/sys/net/ipv6/conf/all/forwarding"), on)
}

fn forwarding_of(check: &'static str, switch: Option<String>, on: &str) -> Finding {
    match switch.as_deref() {
        None => Finding::skipped(check, "the kernel does not show it"),
        Some("0") => Finding::warning(check, "off: a node on a TUN reaches this machine alone", on),
        Some(_) => Finding::ok(check, "on"),
    }
}

/// Some clocks take a system call and a device access for every reading.
pub(super) fn clock_source(system: &System) -> Finding {
    const CHECK: &str = "clock";
    const FOLDER: &str = "sys/devices/system/clocksource/clocksource0";
    let Some(current) = system.read(&format!("{FOLDER}/current_clocksource")) else {
        return Finding::skipped(CHECK, "the kernel does not show it");
    };
    let slow = ["hpet", "acpi_pm", "jiffies", "refined-jiffies", "pit"];
    if !slow.contains(&current.as_str()) {
        return Finding::ok(CHECK, current);
    }
    let available = system.read(&format!("{FOLDER}/available_clocksource")).unwrap_or_default();
    let better = available.split_whitespace().find(|name| !slow.contains(name));
    let fix = better.map_or_else(
        || "none here is quick; timers and rates will be coarse".to_owned(),
        |better| format!("echo {better} > /{FOLDER}/current_clocksource"),
    );
    Finding::warning(CHECK, format!("{current} is slow to read, and it is read for every packet"), fix)
}
