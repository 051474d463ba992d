//! The configuration of a proxy: its links, its rules and its bounds. Also its counters.

use std::net::IpAddr;

use hopwise_core::LinkId;
use hopwise_core::ip::Prefix;
use hopwise_core::trace::DropReason;
use hopwise_core::wire::Checksums;

use super::flow::ProxyFlow;
use super::{FlowKey, Proxy};

/// Chooses the agent of a flow; the first matching rule wins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProxyRule {
    /// The network of the mobile end; `None`: any.
    pub mobile: Option<Prefix>,
    /// The network of the other end; `None`: any.
    pub fixed: Option<Prefix>,
    /// The port of either end.
    pub port: Option<u16>,
    /// The spec of the base-station agent for these flows.
    pub agent: String,
}

impl ProxyRule {
    pub(super) fn fits(&self, key: &FlowKey) -> bool {
        let within = |prefix: &Option<Prefix>, ip: IpAddr| prefix.is_none_or(|prefix| prefix.contains(ip));
        let ports = [key.mobile.port(), key.fixed.port()];
        within(&self.mobile, key.mobile.ip())
            && within(&self.fixed, key.fixed.ip())
            && self.port.is_none_or(|port| ports.contains(&port))
    }
}

/// The configuration of a proxy, given at construction.
#[derive(Clone, Debug)]
pub struct ProxyConfig {
    /// The link towards the wire.
    pub fixed: LinkId,
    /// The link towards the mobiles.
    pub mobile: LinkId,
    /// The rules in their order; a flow without a rule passes untouched.
    pub rules: Vec<ProxyRule>,
    /// The largest number of flows that are followed at a time.
    pub most_flows: usize,
    /// The largest number of bytes in waiting packets of all flows, and of one flow. The former includes the buffers of
    /// cut flows. Each mobile has a share of it.
    pub most_kept_bytes: usize,
    /// The largest number of bytes in waiting packets of one flow.
    pub most_kept_bytes_a_flow: usize,
    /// The largest number of departing packets that wait for room, on each side. They have as many bytes as
    /// `most_kept_bytes` at most, or 16 MiB.
    pub most_queued: usize,
    /// The place where the checksums of packets are verified and completed.
    pub checksums: Checksums,
    /// The largest number of trace events that are kept until they are drained.
    pub trace_events: usize,
    /// The secret for the initial sequence numbers of the proxy's own connections.
    pub key: [u8; 32],
}

impl ProxyConfig {
    /// A configuration with one agent for all flows.
    pub fn new(fixed: LinkId, mobile: LinkId, agent: &str) -> ProxyConfig {
        ProxyConfig {
            fixed,
            mobile,
            rules: vec![ProxyRule { agent: agent.to_owned(), ..ProxyRule::default() }],
            most_flows: 10_000,
            most_kept_bytes: 64 << 20,
            most_kept_bytes_a_flow: 8 << 20,
            most_queued: 65_536,
            checksums: Checksums::Verify,
            trace_events: 0,
            key: [0; 32],
        }
    }
}

/// The counters of a proxy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProxyCounts {
    /// All packets that came in on the two links.
    pub packets: u64,
    /// Flows in the table.
    pub flows: usize,
    /// Those of them without a lasting entry. Only one side was seen, they lack something that their agent needs, or
    /// they are cut in two and over.
    pub brief: usize,
    /// Those of them that are cut in two.
    pub cut: usize,
    /// Flows that were forgotten because another flow needed the room.
    pub gave_way: u64,
    /// Packets of no followed flow: no TCP, fragments, damaged, beyond `most_flows`, or without a rule.
    pub untouched: u64,
    /// Packets of flows in the table with numbers that neither end can have sent. They pass without further effect.
    pub unfit: u64,
    /// ACKs of mobiles that were held back until now, however they left.
    pub held: u64,
    /// Packets of data that went on, of which a copy was kept until now.
    pub copied: u64,
    /// Flows that pass because they lack something that their agent needs.
    pub unserved: usize,
    /// Flows whose packets went on because memory was short, once for each fade.
    pub overflows: u64,
    /// Waiting packets that went on, and copies that were dropped, because other mobiles needed the memory.
    pub pushed_out: u64,
    /// Packets that found the queue of their link full, and were dropped.
    pub no_room: u64,
    /// Packets that wait now, and their memory, with the buffers of flows that are cut in two.
    pub kept_packets: usize,
    /// The bytes of memory that waiting packets and buffers take.
    pub kept_bytes: usize,
    /// The memory of these buffers.
    pub cut_bytes: usize,
}

impl Proxy {
    /// The counters as of now.
    pub fn counts(&self) -> ProxyCounts {
        let (all, kept): (_, usize) =
            (self.entries.bytes(), self.flows.values().map(ProxyFlow::kept_bytes).sum());
        ProxyCounts {
            packets: self.packets,
            flows: self.flows.len() + self.relays.len(),
            brief: self.entries.brief(),
            cut: self.relays.len(),
            gave_way: self.gave_way,
            untouched: self.untouched,
            unfit: self.out.unfit,
            held: self.out.held,
            copied: self.out.copied,
            unserved: self.flows.values().filter(|flow| flow.is_unserved()).count(),
            overflows: self.out.overflows,
            pushed_out: self.out.pushed_out,
            no_room: self.drops(DropReason::QueueFull),
            kept_packets: self.flows.values().map(ProxyFlow::kept_packets).sum(),
            kept_bytes: all,
            cut_bytes: all.saturating_sub(kept),
        }
    }
}
