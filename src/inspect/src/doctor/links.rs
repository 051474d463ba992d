//! Checks of the links that a configuration names.

use std::io;

use hopwise_host::Raw;
use hopwise_host::netlink::{computes_checksums, joining_offloads};
use hopwise_lab::named;

use super::finding::Finding;
use super::{System, faults, interfaces};
use hopwise_node::config::{ChecksumsName, Link, LinkKind, MTU, NodeConfig};
use hopwise_node::control::client::Control;
use hopwise_node::status;

/// So many lost packets are no chance: a queue has room for 8,192.
const OVERFLOWED: u64 = 1000;

pub(super) fn examine(system: &System, config: &NodeConfig) -> Vec<Finding> {
    let mut findings = Vec::new();
    let running = links_of_running(config);
    for link in &config.links {
        let name = &link.name;
        let is_own = running.contains(name);
        match link.kind {
            LinkKind::Tun | LinkKind::TunFast => {
                findings.push(unless_own(is_own, name, device(system, link)));
                findings.push(mtu(system, link));
                findings.extend(overflowed(system, name));
                if link.queues.is_some_and(|queues| queues > 1) {
                    findings.push(super::machine::programs(system));
                }
            }
            LinkKind::Raw => {
                findings.push(interfaces::state(system, name));
                findings.push(offloads(name, joining_offloads(name)));
                findings.push(unless_own(is_own, name, reset(system, link)));
            }
            LinkKind::Pcap => {
                findings.push(interfaces::state(system, name));
                findings.push(offloads(name, joining_offloads(name)));
                findings.push(checksums(link, computes_checksums(name)));
            }
            LinkKind::Replay => findings.push(recording(link)),
        }
    }
    findings.extend(towards_hosts(config).map(|name| interfaces::state(system, name)));
    findings
}

fn towards_hosts(config: &NodeConfig) -> impl Iterator<Item = &String> {
    config.transparent.iter().flat_map(|transparent| &transparent.interfaces)
}

/// The interfaces of this machine that a configuration names.
pub(super) fn interfaces(config: &NodeConfig) -> impl Iterator<Item = &String> {
    let of_links = config.links.iter().filter(|link| matches!(link.kind, LinkKind::Raw | LinkKind::Pcap));
    of_links.map(|link| &link.name).chain(towards_hosts(config))
}

/// The links of the node that runs by this file; none if there is none, or it has no control socket.
fn links_of_running(config: &NodeConfig) -> Vec<String> {
    let asked = config.control.clone().and_then(|socket| status::ask(&Control::at(socket)).ok());
    let links = asked.into_iter().flat_map(|node| node.links).filter(|link| !link.gone);
    links.map(|link| link.name).collect()
}

/// A link that is in use spoils nothing for the node that uses it.
fn unless_own(is_own: bool, name: &str, found: Finding) -> Finding {
    let in_use = [&faults::DEVICE_TAKEN, &faults::LINK_IN_USE];
    if is_own && in_use.iter().any(|fault| found.fault.as_deref() == Some(fault.name)) {
        return Finding::ok(&found.check, format!("{name} belongs to the node that runs by this file"));
    }
    found
}

/// An existing TUN belongs to a daemon, or was made to stay.
fn device(system: &System, link: &Link) -> Finding {
    let (check, name) = (faults::DEVICE_TAKEN.check, &link.name);
    if !system.has(&format!("sys/class/net/{name}")) {
        return Finding::ok(check, format!("{name} is free"));
    }
    if system.has(&format!("sys/class/net/{name}/tun_flags")) {
        return faults::DEVICE_TAKEN.found(format!("{name} exists already")).with("IF", name);
    }
    faults::DEVICE_NO_TUN.found(format!("{name} exists and is no TUN"))
}

/// What the device's queue had no room for. A node reads it out as quickly as a TCP sends, but not as a flood comes.
fn overflowed(system: &System, name: &str) -> Option<Finding> {
    let lost: u64 = system.read(&format!("sys/class/net/{name}/statistics/tx_dropped"))?.parse().ok()?;
    (lost > OVERFLOWED).then(|| {
        let found = format!("{name}: {lost} packets came while the queue of the device was full");
        faults::DEVICE_OVERFLOWED.found(found).with("IF", name)
    })
}

/// Packets larger than the MTU of an interface behind the kernel are fragmented or refused there.
fn mtu(system: &System, link: &Link) -> Finding {
    let (check, own, wanted) = (faults::MTU_OF_PATH.check, &link.name, link.mtu.unwrap_or(MTU));
    let names = system.names("sys/class/net");
    if names.is_empty() {
        return Finding::skipped(check, "the kernel shows no interfaces");
    }
    let smaller = names.into_iter().filter(|name| name != "lo" && name != own).filter_map(|name| {
        let is_up =
            system.read(&format!("sys/class/net/{name}/operstate")).is_some_and(|state| state == "up");
        let mtu = interfaces::mtu(system, &name)?;
        (is_up && mtu < u32::from(wanted)).then_some((mtu, name))
    });
    match smaller.min() {
        None => Finding::ok(check, format!("{own}: {wanted} bytes fit every interface that is up")),
        Some((mtu, name)) => faults::MTU_OF_PATH
            .found(format!(
                "{own}: {wanted} bytes, but {name} carries only {mtu}: paths through it are found by trial"
            ))
            .with("MTU", &mtu.to_string())
            .with("IF", own),
    }
}

fn recording(link: &Link) -> Finding {
    let file = link.file.clone().unwrap_or_default();
    let shown = file.display();
    match named::open(&file) {
        Ok(_) => faults::RECORDING_UNREAD.ok(format!("{shown} can be read")),
        Err(error) => faults::RECORDING_UNREAD.found(format!("{shown}: {error}")),
    }
}

/// Joined segments were never packets on the wire, and are larger than the MTU. The kernel accepts joined segments that
/// we send.
fn offloads(name: &str, joining: io::Result<Vec<String>>) -> Finding {
    match joining {
        Ok(names) => {
            let received: Vec<_> = names.into_iter().filter(|name| name.starts_with("rx-")).collect();
            interfaces::offloads(name, &received)
        }
        Err(error) => faults::OFFLOADS_JOIN.skipped(format!("{name}: {error}")),
    }
}

/// A packet of this machine is captured before the device computes its checksums.
pub(super) fn checksums(link: &Link, computes: io::Result<bool>) -> Finding {
    let (check, name) = (faults::CHECKSUMS_LATE.check, &link.name);
    if link.checksums == Some(ChecksumsName::Trust) {
        return Finding::ok(check, format!("{name}: they are not looked at"));
    }
    match computes {
        Ok(false) => Finding::ok(check, format!("{name} is given whole packets")),
        Ok(true) => faults::CHECKSUMS_LATE
            .found(format!(
                "{name} computes them (tx-checksumming): what this machine sends is captured without, and dropped as \
                 tcp-checksum"
            ))
            .with("IF", name),
        Err(error) => Finding::skipped(check, format!("{name}: {error}")),
    }
}

/// The kernel knows nothing of our connections and would reset them. An nft table prevents that. It is removed with the
/// node, but older versions left it behind when they were killed.
fn reset(system: &System, link: &Link) -> Finding {
    let name = &link.name;
    match Raw::has_table(name) {
        Ok(has_table) => guarded(system, name, has_table),
        Err(error) if error.kind() == io::ErrorKind::NotFound => faults::NO_NFT
            .found(format!("{name}: the kernel will reset its connections, since nft is missing")),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            faults::NO_NFT.skipped(format!("{name}: only root may ask nft"))
        }
        Err(error) => faults::NFT_MUTE.found(format!("{name}: nft lists no tables: {error}")),
    }
}

/// A table without a node was left behind, and a node without its table is not guarded.
pub(super) fn guarded(system: &System, name: &str, has_table: bool) -> Finding {
    let (table, lock) = (Raw::table_of(name), format!("@{}", Raw::lock_of(name)));
    let users = system.read("proc/net/unix").unwrap_or_default();
    let has_user = users.lines().any(|line| line.split_whitespace().last() == Some(&lock));
    match (has_user, has_table) {
        (true, true) => faults::LINK_IN_USE
            .found(format!("{name}: a node has it: a second node is refused when it starts")),
        (true, false) => faults::RST_UNGUARDED
            .found(format!("{name}: a node has it, and the nft table {table} is gone: the kernel answers with RST"))
            .with("TABLE", &table),
        (false, true) => faults::GUARD_LEFT
            .found(format!(
                "{name}: a node that was killed has left the nft table {table}, by which the kernel stays silent for \
                 its addresses; the next start replaces it"
            ))
            .with("TABLE", &table),
        (false, false) => {
            faults::NO_NFT.ok(format!("{name}: nft is there, to keep the kernel from resetting connections"))
        }
    }
}
