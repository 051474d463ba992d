//! What holds for the links that a configuration names.

use std::process::Command;

use super::{Finding, System};
use crate::node::config::{Link, LinkKind, MTU, NodeConfig};

pub(super) fn examine(system: &System, config: &NodeConfig) -> Vec<Finding> {
    let mut findings = Vec::new();
    for link in &config.links {
        match link.kind {
            LinkKind::Tun | LinkKind::TunFast => {
                findings.push(device(system, link));
                findings.push(mtu(system, link));
                if link.queues.is_some_and(|queues| queues > 1) {
                    findings.push(super::machine::programs(system));
                }
            }
            LinkKind::Raw => {
                findings.push(interface(system, link));
                findings.push(offloads(link));
                findings.push(reset(link));
            }
            LinkKind::Pcap => findings.push(interface(system, link)),
            LinkKind::Replay => findings.push(recording(link)),
        }
    }
    findings
}

/// A TUN that is there already is a daemon's, or was left behind by whoever made it to stay.
fn device(system: &System, link: &Link) -> Finding {
    const CHECK: &str = "device";
    let name = &link.name;
    if !system.has(&format!("sys/class/net/{name}")) {
        return Finding::ok(CHECK, format!("{name} is free"));
    }
    if system.has(&format!("sys/class/net/{name}/tun_flags")) {
        let fix = format!("end the node that has it, or: ip link del {name}");
        return Finding::warning(CHECK, format!("{name} exists already"), fix);
    }
    Finding::failure(
        CHECK,
        format!("{name} exists and is no TUN"),
        "name another device in the configuration",
    )
}

/// Larger packets than the interfaces behind the kernel carry are cut or refused there.
fn mtu(system: &System, link: &Link) -> Finding {
    const CHECK: &str = "mtu";
    let Ok(entries) = std::fs::read_dir(system.path("sys/class/net")) else {
        return Finding::skipped(CHECK, "the kernel shows no interfaces");
    };
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let smaller = names.filter(|name| name != "lo" && *name != link.name).filter_map(|name| {
        let is_up =
            system.read(&format!("sys/class/net/{name}/operstate")).is_some_and(|state| state == "up");
        let mtu: u32 = system.read(&format!("sys/class/net/{name}/mtu"))?.parse().ok()?;
        (is_up && mtu < u32::from(link.mtu.unwrap_or(MTU))).then_some((mtu, name))
    });
    match smaller.min() {
        None => Finding::ok(
            CHECK,
            format!("{}: {} bytes fit every interface that is up", link.name, link.mtu.unwrap_or(MTU)),
        ),
        Some((mtu, name)) => Finding::warning(
            CHECK,
            format!(
                "{}: {} bytes, but {name} carries only {mtu}: paths through it are found by trial",
                link.name,
                link.mtu.unwrap_or(MTU)
            ),
            format!("mtu: {mtu} for {} in the configuration", link.name),
        ),
    }
}

fn recording(link: &Link) -> Finding {
    const CHECK: &str = "capture";
    let file = link.file.clone().unwrap_or_default();
    let shown = file.display();
    match std::fs::File::open(&file) {
        Ok(_) => Finding::ok(CHECK, format!("{shown} can be read")),
        Err(error) => Finding::failure(CHECK, format!("{shown}: {error}"), "name a capture that is there"),
    }
}

fn interface(system: &System, link: &Link) -> Finding {
    const CHECK: &str = "interface";
    let name = &link.name;
    match system.read(&format!("sys/class/net/{name}/operstate")).as_deref() {
        None => Finding::failure(CHECK, format!("there is no {name}"), "name an interface of `ip link`"),
        Some("down") => Finding::failure(CHECK, format!("{name} is down"), format!("ip link set {name} up")),
        Some(state) => Finding::ok(CHECK, format!("{name} is {state}")),
    }
}

/// Coalesced segments are no packets that ever were on the wire, and are larger than the MTU.
fn offloads(link: &Link) -> Finding {
    const CHECK: &str = "offloads";
    let name = &link.name;
    let Ok(told) = Command::new("ethtool").args(["-k", name]).output() else {
        return Finding::skipped(CHECK, "ethtool is not installed, which could tell");
    };
    if !told.status.success() {
        return Finding::skipped(CHECK, format!("ethtool does not know {name}"));
    }
    let on = offloads_in(&String::from_utf8_lossy(&told.stdout));
    if on.is_empty() {
        return Finding::ok(CHECK, format!("{name} hands over what came"));
    }
    let switches: Vec<_> = on.iter().map(|(_, short)| format!("{short} off")).collect();
    let names: Vec<_> = on.iter().map(|(long, _)| *long).collect();
    Finding::warning(
        CHECK,
        format!("{name} has {} on: it hands over packets that were never on the wire", names.join(" and ")),
        format!("ethtool -K {name} {}", switches.join(" ")),
    )
}

/// The offloads that are on in what ethtool prints, with the words that turn them off.
pub(super) fn offloads_in(text: &str) -> Vec<(&'static str, &'static str)> {
    let known = [("generic-receive-offload", "gro"), ("large-receive-offload", "lro")];
    let is_on = |long: &str| text.lines().any(|line| line.trim().starts_with(&format!("{long}: on")));
    known.into_iter().filter(|(long, _)| is_on(long)).collect()
}

/// The kernel knows nothing of our connections, and would reset them.
fn reset(link: &Link) -> Finding {
    const CHECK: &str = "kernel-rst";
    match Command::new("nft").arg("--version").output() {
        Ok(_) => Finding::ok(
            CHECK,
            format!("{}: nft is there, to keep the kernel from resetting connections", link.name),
        ),
        Err(_) => Finding::failure(
            CHECK,
            format!("{}: the kernel will reset its connections, since nft is missing", link.name),
            "apt-get install nftables",
        ),
    }
}
