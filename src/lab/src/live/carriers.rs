//! The transparent nodes of an arm: each carries the TCP of the host behind an end of flows.

use std::fmt::Write;

use hopwise_host::Behind;
use hopwise_lab::live::part::CarriedCounts;
use hopwise_lab::live::{address_of_host, address_of_programs};
use hopwise_lab::sim::{Plan, TrafficPlan};
use hopwise_lab::words::Word;

use hopwise_daemon::failure::Failure;
use hopwise_part::v4;

/// The node's device to its host.
const NEAR: &str = "host0";
const FAR: &str = "eth0";
const MTU: u16 = 1500;
/// Headers of IPv4 and TCP with timestamps.
const HEADERS: u16 = 52;

/// The host behind a node.
pub(super) fn host_of(node: u32) -> Result<Behind<'static>, Failure> {
    let address = v4(address_of_host(node));
    let address = address.ok_or_else(|| Failure::failed("place a host", "it has no IPv4 address"))?;
    Ok(Behind { near: NEAR, far: FAR, address, mtu: MTU })
}

/// The configuration of a node that carries the TCP of its host to the other ends of flows, with the arm's agents. Its
/// segments are as long as the plan's flows have them. Agents decide about each ACK, as in other arms.
pub(super) fn config_of(
    plan: &Plan,
    (node, name): (u32, &str),
    ends: &[u32],
) -> Result<String, serde_json::Error> {
    let (own, profile) = (address_of_programs(node), serde_json::to_string(&Word(plan.profile))?);
    let mut text = format!(
        "node: {{ name: \"{name}\", address: {own}/32 }}\n\
         links: [{{ kind: tun, name: hw0, mtu: {} }}]\n\
         routes: [{{ to: 0.0.0.0/0, link: hw0 }}]\n\
         rules: [{{ receiver: \"{}\", sender: {} }}]\n\
         tcp: {{ profile: {}, ack_merge: off }}\n\
         stop_within: 100ms\n\
         user: root\n\
         transparent:\n  \
         interfaces: [{NEAR}]\n  \
         answers_within: 30s\n  \
         source: own\n  \
         connections: 65536\n  \
         from: [10.64.0.0/11]\n  \
         targets: [{}/32]\n  \
         to:\n",
        mtu(plan),
        plan.arm.receiver,
        plan.arm.senders,
        profile,
        address_of_host(node),
    );
    for other in ends.iter().filter(|other| **other != node) {
        let (network, by) = (address_of_host(*other), address_of_programs(*other));
        let _ = writeln!(text, "    - {{ network: {network}/32, node: {by} }}");
    }
    Ok(text)
}

/// A packet with a segment of the plan's length.
fn mtu(plan: &Plan) -> u16 {
    let segments = plan.flows.iter().filter_map(|flow| match &flow.traffic {
        TrafficPlan::Tcp(plan) => Some(plan.tcp.segment_bytes),
        _ => None,
    });
    segments.max().map_or(MTU, |bytes| (bytes + HEADERS).min(MTU))
}

/// Refuses a run with connections that went past the nodes: it says nothing of their agents.
pub(super) fn check(carried: &[CarriedCounts]) -> Result<(), Failure> {
    let straight: u64 = carried.iter().map(|node| node.straight).sum();
    if straight == 0 {
        return Ok(());
    }
    let caught: u64 = carried.iter().map(|node| node.caught).sum();
    let problem = format!("{straight} connections went past the nodes, and {caught} by them");
    Err(Failure::failed("carry the TCP of hosts", problem))
}
