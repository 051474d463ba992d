//! The configuration of a proxy: its links, its rules and its bounds.

use std::net::IpAddr;

use hopwise_core::LinkId;
use hopwise_core::ip::Prefix;
use hopwise_core::wire::Checksums;

use super::FlowKey;

/// Chooses the agent of a flow; the first matching rule wins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProxyRule {
    pub mobile: Option<Prefix>,
    pub fixed: Option<Prefix>,
    /// The port of either end.
    pub port: Option<u16>,
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

#[derive(Clone, Debug)]
pub struct ProxyConfig {
    pub fixed: LinkId,
    pub mobile: LinkId,
    pub rules: Vec<ProxyRule>,
    pub most_flows: usize,
    /// The largest number of bytes in waiting packets of all flows, and of one flow. The former includes the buffers of
    /// cut flows. Each mobile has a share of it.
    pub most_kept_bytes: usize,
    pub most_kept_bytes_a_flow: usize,
    /// The largest number of departing packets that wait for room, on each side. They have as many bytes as
    /// `most_kept_bytes` at most, or 16 MiB.
    pub most_queued: usize,
    pub checksums: Checksums,
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
