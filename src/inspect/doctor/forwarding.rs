//! Checks that a machine sends on the packets of others, where others need it.
//!
//! An end of a mesh need not forward, and a switch that is off is no fault there. One machine cannot always tell: the
//! routes of the other hosts of a fleet do.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde::{Deserialize, Serialize};

use super::faults::{FORWARDING_OFF, FORWARDING6_OFF};
use super::finding::{Fault, Finding};
use super::fleet::HostReport;
use super::system::System;
use crate::node::config::NodeConfig;

/// The flag of a route that leads through a router (RTF_GATEWAY).
const THROUGH_ROUTER: u32 = 2;

/// The facts about a machine's forwarding that are compared with the routes of others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Forwarding {
    /// The routers of its routes.
    #[serde(default)]
    pub(super) through: Vec<IpAddr>,
    /// The switches, where the kernel shows them.
    #[serde(default)]
    pub(super) v4: Option<bool>,
    #[serde(default)]
    pub(super) v6: Option<bool>,
}

impl Forwarding {
    /// The facts; those of IPv4 are about these interfaces of the mesh, if there are any.
    pub(super) fn of(system: &System, names: &[String]) -> Forwarding {
        let is_on = |path: &str| Some(system.read(path)? != "0");
        // IPv4 asks the interface that a packet came in by, and IPv6 one switch for all.
        let each =
            names.iter().filter_map(|name| is_on(&format!("proc/sys/net/ipv4/conf/{name}/forwarding")));
        let of_interfaces = each.reduce(|all, one| all && one);
        let mut through = routers_v4(&system.read("proc/net/route").unwrap_or_default());
        through.extend(routers_v6(&system.read("proc/net/ipv6_route").unwrap_or_default()));
        Forwarding {
            through,
            v4: of_interfaces.or_else(|| is_on("proc/sys/net/ipv4/ip_forward")),
            v6: is_on("proc/sys/net/ipv6/conf/all/forwarding"),
        }
    }
}

fn hex(text: &str) -> Option<u32> {
    u32::from_str_radix(text, 16).ok()
}

/// The kernel prints an address as the number that its bytes are in memory.
fn routers_v4(table: &str) -> Vec<IpAddr> {
    let router = |line: &str| {
        let words: Vec<_> = line.split_whitespace().collect();
        let (router, flags) = (hex(words.get(2)?)?, hex(words.get(3)?)?);
        (flags & THROUGH_ROUTER != 0).then(|| IpAddr::from(Ipv4Addr::from(router.to_ne_bytes())))
    };
    table.lines().filter_map(router).collect()
}

fn routers_v6(table: &str) -> Vec<IpAddr> {
    let router = |line: &str| {
        let words: Vec<_> = line.split_whitespace().collect();
        let router = u128::from_str_radix(words.get(4)?, 16).ok()?;
        (hex(words.get(8)?)? & THROUGH_ROUTER != 0).then(|| IpAddr::from(Ipv6Addr::from(router)))
    };
    table.lines().filter_map(router).collect()
}

/// The findings about one machine, with the interfaces that its user named.
pub(super) fn examine(system: &System, config: Option<&NodeConfig>, names: &[String]) -> Vec<Finding> {
    let facts = Forwarding::of(system, names);
    let need = if config.is_some_and(NodeConfig::has_tun) {
        Some("a node on a TUN reaches this machine alone")
    } else if names.len() > 1 {
        Some("nothing goes from one interface of the mesh to another")
    } else {
        None
    };
    if config.is_some() && need.is_none() {
        return Vec::new();
    }
    let mut findings = vec![finding(&FORWARDING_OFF, facts.v4, need)];
    if config.is_none_or(NodeConfig::has_ipv6) {
        findings.push(finding(&FORWARDING6_OFF, facts.v6, need));
    }
    findings
}

fn finding(fault: &Fault, switch: Option<bool>, need: Option<&str>) -> Finding {
    match (switch, need) {
        (None, _) => Finding::skipped(fault.check, "the kernel does not show it"),
        (Some(true), _) => Finding::ok(fault.check, "on"),
        (Some(false), Some(need)) => fault.found(format!("off: {need}")),
        (Some(false), None) => Finding::skipped(
            fault.check,
            "off, which matters where packets of others go through this machine: --config, several --interface or \
             --fleet tell",
        ),
    }
}

/// Hosts of a fleet that others have as a router and that forward nothing.
pub(super) fn together(hosts: &[HostReport]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut routers = 0;
    for host in hosts {
        let ours: Vec<IpAddr> =
            host.report.interfaces.iter().flat_map(super::InterfaceFacts::all_addresses).collect();
        for (fault, switch, is_v4) in [
            (&FORWARDING_OFF, host.report.forwarding.v4, true),
            (&FORWARDING6_OFF, host.report.forwarding.v6, false),
        ] {
            let leads_here = |at: &IpAddr| at.is_ipv4() == is_v4 && ours.contains(at);
            let others = hosts.iter().filter(|other| other.report.forwarding.through.iter().any(leads_here));
            let others: Vec<_> = others.map(|other| other.host.as_str()).collect();
            routers += usize::from(!others.is_empty());
            if !others.is_empty() && switch == Some(false) {
                let said = format!("{}: off, and {} sends through it", host.host, others.join(", "));
                findings.push(fault.found(said));
            }
        }
    }
    if findings.is_empty() && routers > 0 {
        findings.push(Finding::ok(FORWARDING_OFF.check, "each host that others send through forwards"));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routers_are_read_from_the_kernels_tables() {
        let (router, none) = (u32::from_ne_bytes([10, 0, 0, 2]), 0);
        let table = format!(
            "Iface\tDestination\tGateway\tFlags\nair0\t0300000A\t{router:08X}\t0007\t0\n\
             air0\t0000000A\t{none:08X}\t0001\t0\n"
        );
        assert_eq!(routers_v4(&table), ["10.0.0.2".parse::<IpAddr>().expect("an address")]);
        let zero = "0".repeat(32);
        let (via, to) = ("fd070000000000000000000000000002", "fd070000000000000000000000000003");
        let table = format!(
            "{to} 80 {zero} 00 {via} 00000400 00000001 00000000 00000003     air0\n\
             {to} 80 {zero} 00 {zero} 00000400 00000001 00000000 00000001     air0\n"
        );
        assert_eq!(routers_v6(&table), ["fd07::2".parse::<IpAddr>().expect("an address")]);
    }
}
