//! The settings of an endpoint.

use std::net::IpAddr;
use std::sync::Arc;

use super::bounds::Bounds;
use super::rules::{AgentChoice, Rule};
use crate::ip::{Limits, Prefix, UdpLimits};
use crate::secrets::PortRange;
use crate::tcp::{AckMerge, TcpConfig};
use crate::wire::Checksums;
use crate::{LinkId, NextHop};

/// Settings of an [`Endpoint`](super::Endpoint). None of them is random: the caller supplies the key.
#[derive(Clone, Debug)]
pub struct EndpointConfig {
    /// Their ids differ. The set stays as it is for the life of the endpoint.
    pub links: Vec<LinkConfig>,
    /// In any order: the longest prefix wins. A link's own subnets need no route.
    pub routes: Vec<Route>,
    /// For connections that bring no settings of their own. RSTs and ICMP messages take their hop limit from it.
    pub tcp: Arc<TcpConfig>,
    /// The choice of a connection's agents: the first rule that matches, else `agents`.
    pub rules: Vec<Rule>,
    /// They also complete a rule that leaves some agents open. The maker's defaults complete them.
    pub agents: AgentChoice,
    /// Key of initial sequence numbers, ports, cookies and the connection table. The same key repeats them.
    pub key: [u8; 32],
    /// Events kept until they are drained, unless the driver has [switched the trace off](crate::Machine::keep_trace).
    pub trace_events: usize,
    /// Connections in every state. If the table is full, the oldest TIME-WAIT that no program holds makes room.
    pub most_connections: usize,
    /// The limits of memory and of connections that no program holds; checked after every change of a connection.
    pub bounds: Bounds,
    /// SYNs answered with cookies in a second, a tenth of them at once. The same number again goes to repeated SYNs. A
    /// flood from forged addresses has no limit of its own. Answers to all of it would slow real connections, and would
    /// reach hosts that sent nothing.
    pub cookies_per_second: u32,
    /// `Trust` holds for every link; a link may also be trusted by its own setting.
    pub checksums: Checksums,
    /// The rule for packets that came by a source route (RFC 7126 advises against them).
    pub source_routes: SourceRoutes,
    /// Local ports of connections that are opened without one.
    pub ports: PortRange,
    /// The limits of incomplete datagrams, of both IP versions together.
    pub fragments: Limits,
    /// The limits of UDP sockets and of their queues.
    pub udp: UdpLimits,
}

/// A link as the endpoint sees it: its addresses, and the help that its driver gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkConfig {
    /// The driver's name for the link, unique in the endpoint.
    pub id: LinkId,
    /// The largest IP packet that the link carries, in bytes. Only bundles ([`Offload::Cut`]) may be larger.
    pub mtu: u16,
    /// Our addresses on the link, with their subnets.
    pub addresses: Vec<Prefix>,
    /// The way to the next hop: a TUN finds it itself, a radio needs a neighbour's address.
    pub neighbours: Neighbours,
    /// [`Offload::None`], unless the driver takes TCP packets larger than `mtu`.
    pub offload: Offload,
    /// With [`Checksums::Trust`] the link completes the checksums of outgoing TCP segments, which hold the
    /// pseudo-header's sum. It also vouches for the packets that it delivers. Fragments are verified all the same.
    pub checksums: Checksums,
    /// Routers on the path that join no two of its links, such as a kernel between a TUN device and the radio. Each end
    /// with such a device has one. Their decrements of the hop limit do not count as hops.
    pub crossings: u8,
    /// The rule for ACKs of packets that were read in a row: see [`EndpointConfig::ack_merge`].
    pub ack_merge: AckMerge,
    /// The addresses at which the endpoint answers TCP that comes over the link.
    pub answers_for: AnswersFor,
}

/// The destinations of TCP that an endpoint takes from a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AnswersFor {
    /// Its own addresses.
    #[default]
    Itself,
    /// Each address of one host. The endpoint stands for all hosts behind it, as a transparent proxy does.
    Everyone,
}

/// The link's help with TCP segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Offload {
    /// Each packet is one segment.
    #[default]
    None,
    /// It takes [bundles](crate::wire::bundle) in packets of up to `most_bytes`, headers included. It cuts them up as
    /// in [`Transmit::segment_bytes`](crate::Transmit::segment_bytes), or passes them on whole. At most 65,535 bytes
    /// are used.
    Cut {
        /// Bytes of a whole packet.
        most_bytes: u32,
    },
}

/// The side that finds the next hop of a packet: the link or the endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Neighbours {
    /// The link delivers by itself (TUN, a wire with one other end).
    Implied,
    /// Packets are handed to a neighbour by its address.
    Named,
}

/// A way to addresses outside the links' own subnets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// The longest prefix that contains an address wins; of equal ones a link's subnet wins.
    pub to: Prefix,
    /// A route with an unknown id leads nowhere.
    pub link: LinkId,
    /// Used only on links with [`Neighbours::Named`].
    pub via: NextHop,
}

/// The fate of IPv4 packets that came by a source route (RFC 791 §3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceRoutes {
    /// Drops them (RFC 7126 §4.3, §4.4).
    Refuse,
    /// A connection that the peer opened answers by the reverse route (RFC 9293 MUST-53).
    Accept,
}

impl LinkConfig {
    /// A link that delivers by itself, and offers no other help.
    pub fn wire(id: u16, mtu: u16, addresses: Vec<Prefix>) -> LinkConfig {
        LinkConfig {
            id: LinkId(id),
            mtu,
            addresses,
            neighbours: Neighbours::Implied,
            offload: Offload::None,
            checksums: Checksums::Verify,
            crossings: 0,
            ack_merge: AckMerge::Off,
            answers_for: AnswersFor::Itself,
        }
    }

    pub(super) fn has_address(&self, address: IpAddr) -> bool {
        self.addresses.iter().any(|prefix| prefix.address() == address)
    }
}

impl EndpointConfig {
    /// One link, the default agents, the modern TCP profile.
    pub fn new(link: LinkConfig, key: [u8; 32]) -> EndpointConfig {
        EndpointConfig {
            links: vec![link],
            routes: Vec::new(),
            tcp: Arc::new(TcpConfig::modern()),
            rules: Vec::new(),
            agents: AgentChoice::default(),
            key,
            trace_events: 4096,
            most_connections: 1 << 20,
            bounds: Bounds::default(),
            cookies_per_second: 25_000,
            checksums: Checksums::Verify,
            source_routes: SourceRoutes::Refuse,
            ports: PortRange::default(),
            fragments: Limits::default(),
            udp: UdpLimits::default(),
        }
    }

    /// Returns whether ACKs are merged: by the TCP settings, or if each link merges them. A radio delivers packets one
    /// by one, and each ACK informs its peer. One such link among others is enough to merge none.
    pub fn ack_merge(&self) -> AckMerge {
        let merge = |link: &LinkConfig| link.ack_merge == AckMerge::Read;
        let do_links = !self.links.is_empty() && self.links.iter().all(merge);
        if do_links { AckMerge::Read } else { self.tcp.ack_merge }
    }
}
