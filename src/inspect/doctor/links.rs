//! Checks of the links that a configuration names.

use std::io;
use std::process::Command;

use hopwise_host::Raw;

use super::{Finding, System};
use crate::node::config::{ChecksumsName, Link, LinkKind, MTU, NodeConfig};

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
                findings
                    .push(features(link).map_or_else(|skipped| skipped, |output| offloads(link, &output)));
                findings.push(reset(system, link));
            }
            LinkKind::Pcap => {
                findings.push(interface(system, link));
                findings.extend(match features(link) {
                    Ok(output) => vec![offloads(link, &output), checksums(link, &output)],
                    Err(skipped) => vec![skipped],
                });
            }
            LinkKind::Replay => findings.push(recording(link)),
        }
    }
    findings
}

/// An existing TUN belongs to a daemon, or was made to stay.
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

/// Packets larger than the MTU of an interface behind the kernel are fragmented or refused there.
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

const OFFLOADS: &str = "offloads";

/// The output of ethtool about an interface.
fn features(link: &Link) -> Result<String, Finding> {
    let name = &link.name;
    let Ok(output) = Command::new("ethtool").args(["-k", name]).output() else {
        return Err(Finding::skipped(OFFLOADS, "ethtool is not installed, which could tell"));
    };
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(Finding::skipped(OFFLOADS, format!("ethtool does not know {name}")))
    }
}

/// Coalesced segments were never packets on the wire, and are larger than the MTU.
fn offloads(link: &Link, output: &str) -> Finding {
    let (name, on) = (&link.name, offloads_in(output));
    if on.is_empty() {
        return Finding::ok(OFFLOADS, format!("{name} hands over what came"));
    }
    let switches: Vec<_> = on.iter().map(|(_, short)| format!("{short} off")).collect();
    let names: Vec<_> = on.iter().map(|(long, _)| *long).collect();
    Finding::warning(
        OFFLOADS,
        format!("{name} has {} on: it hands over packets that were never on the wire", names.join(" and ")),
        format!("ethtool -K {name} {}", switches.join(" ")),
    )
}

/// A packet of this machine is captured before the device computes its checksums.
pub(super) fn checksums(link: &Link, output: &str) -> Finding {
    const CHECK: &str = "checksums";
    let name = &link.name;
    if link.checksums == Some(ChecksumsName::Trust) {
        return Finding::ok(CHECK, format!("{name}: they are not looked at"));
    }
    if !is_on(output, "tx-checksumming") {
        return Finding::ok(CHECK, format!("{name} is given whole packets"));
    }
    Finding::warning(
        CHECK,
        format!(
            "{name} computes them (tx-checksumming): what this machine sends is captured without, and dropped as \
             tcp-checksum"
        ),
        format!("checksums: trust for {name} in the configuration, or: ethtool -K {name} tx off"),
    )
}

fn is_on(output: &str, long: &str) -> bool {
    output.lines().any(|line| line.trim().starts_with(&format!("{long}: on")))
}

/// The offloads that are on in ethtool's output, with the words that turn them off.
pub(super) fn offloads_in(text: &str) -> Vec<(&'static str, &'static str)> {
    let known = [("generic-receive-offload", "gro"), ("large-receive-offload", "lro")];
    known.into_iter().filter(|(long, _)| is_on(text, long)).collect()
}

/// The kernel knows nothing of our connections and would reset them. An nft table prevents that. It is removed with the
/// node, but older versions left it behind when they were killed.
fn reset(system: &System, link: &Link) -> Finding {
    let name = &link.name;
    match Raw::has_table(name) {
        Ok(has_table) => guarded(system, name, has_table),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Finding::failure(
            KERNEL_RST,
            format!("{name}: the kernel will reset its connections, since nft is missing"),
            "apt-get install nftables",
        ),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            Finding::skipped(KERNEL_RST, format!("{name}: only root may ask nft"))
        }
        Err(error) => Finding::failure(
            KERNEL_RST,
            format!("{name}: nft lists no tables: {error}"),
            "`nft list tables` has to answer",
        ),
    }
}

pub(super) const KERNEL_RST: &str = "kernel-rst";

/// A table was left behind if no node has the interface.
pub(super) fn guarded(system: &System, name: &str, has_table: bool) -> Finding {
    let (table, lock) = (Raw::table_of(name), format!("@{}", Raw::lock_of(name)));
    let users = system.read("proc/net/unix").unwrap_or_default();
    let has_user = users.lines().any(|line| line.split_whitespace().last() == Some(&lock));
    match (has_user, has_table) {
        (true, _) => Finding::warning(
            KERNEL_RST,
            format!("{name}: a node has it: another one is refused when it starts"),
            "end the node that has it first",
        ),
        (false, true) => Finding::warning(
            KERNEL_RST,
            format!(
                "{name}: a node that was killed has left the nft table {table}, by which the kernel stays silent for \
                 its addresses; the next start replaces it"
            ),
            format!("start the node, or: nft delete table inet {table}"),
        ),
        (false, false) => Finding::ok(
            KERNEL_RST,
            format!("{name}: nft is there, to keep the kernel from resetting connections"),
        ),
    }
}
