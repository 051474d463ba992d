//! Checks that a machine forwards packets where other hosts route through it, and that the rules of its firewall hold
//! for TCP that passes a running proxy.
//!
//! An end of a mesh need not forward, and a switch that is off is no fault there. One machine cannot always tell: the
//! routes of the other hosts of a fleet do.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hopwise_host::firewall::{Between, Ruleset};
use hopwise_host::netlink::detours;
use serde::{Deserialize, Serialize};

use super::faults::{self, FORWARDING_OFF, FORWARDING6_OFF};
use super::finding::{CheckFault, Finding};
use super::fleet::CheckedHost;
use super::machine::System;
use hopwise_node::config::NodeConfig;

/// The flag of a route that leads through a router (RTF_GATEWAY).
const THROUGH_ROUTER: u32 = 2;

/// The facts about a machine's forwarding that are compared with the routes of a fleet's other hosts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ForwardingFacts {
    /// The routers of its routes.
    #[serde(default)]
    pub(super) through: Vec<IpAddr>,
    /// The switches, where the kernel shows them.
    pub(super) v4: Option<bool>,
    pub(super) v6: Option<bool>,
}

impl ForwardingFacts {
    /// The facts. IPv4's switch is read for these interfaces of the mesh, if there are any.
    pub(super) fn of(system: &System, names: &[String]) -> ForwardingFacts {
        let is_on = |path: &str| Some(system.read(path)? != "0");
        // IPv4 asks the interface that a packet came in by, and IPv6 one switch for all.
        let each =
            names.iter().filter_map(|name| is_on(&format!("proc/sys/net/ipv4/conf/{name}/forwarding")));
        let of_interfaces = each.reduce(|all, one| all && one);
        let mut through = routers_v4(&system.read("proc/net/route").unwrap_or_default());
        through.extend(routers_v6(&system.read("proc/net/ipv6_route").unwrap_or_default()));
        ForwardingFacts {
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
    let facts = ForwardingFacts::of(system, names);
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

fn finding(fault: &CheckFault, switch: Option<bool>, need: Option<&str>) -> Finding {
    match (switch, need) {
        (None, _) => fault.skipped("the kernel does not show it"),
        (Some(true), _) => fault.ok("on"),
        (Some(false), Some(need)) => fault.found(format!("off: {need}")),
        (Some(false), None) => fault.skipped(
            "off, which matters where other hosts route through this machine: --config, several --interface or \
             --fleet tell",
        ),
    }
}

/// Finds hosts of a fleet that forward nothing although another host has them as a router.
pub(super) fn together(hosts: &[CheckedHost]) -> Vec<Finding> {
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
        findings.push(Finding::ok(FORWARDING_OFF.check, "each host that is a router forwards"));
    }
    findings
}

const FIREWALL: &str = "firewall";

pub(super) fn firewall() -> Vec<Finding> {
    let rules = match Ruleset::read() {
        Ok(rules) => rules,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return vec![without_nft()],
        Err(error) => {
            return vec![Finding::skipped(FIREWALL, format!("nft does not list its rules: {error}"))];
        }
    };
    match detours(&rules) {
        Ok(detours) if detours.is_empty() => {
            vec![Finding::ok(
                FIREWALL,
                "no `hopwise proxy` by TUN runs here, so that each rule holds for all packets",
            )]
        }
        Ok(detours) => detours.iter().flat_map(|between| bypassed(&rules, between)).collect(),
        Err(error) => vec![Finding::skipped(FIREWALL, error.to_string())],
    }
}

fn without_nft() -> Finding {
    let said =
        "nft is not there: with `hopwise route`, what comes in from the mesh is forwarded to all devices";
    faults::FIREWALL_NO_NFT.found(said)
}

/// The rules that one proxy takes packets from.
fn bypassed(rules: &Ruleset, between: &Between) -> Vec<Finding> {
    let Between { wire, radio, fixed } = between;
    let found: Vec<_> = [rules.between(between), rules.redirects(between)].concat();
    if found.is_empty() {
        let said = format!(
            "no rule names both {radio} and {wire} without {fixed}, or redirects TCP by {radio} alone"
        );
        return vec![Finding::ok(FIREWALL, said)];
    }
    let warned = |rule: &String| {
        let found =
            format!("TCP between {radio} and {wire} passes `hopwise proxy`, and does not match: {rule}");
        faults::FIREWALL_BYPASSED.found(found).with("FIXED", fixed).with("RADIO", radio)
    };
    found.iter().map(warned).collect()
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
