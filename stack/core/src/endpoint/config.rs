//! What an endpoint is made from.

use std::net::IpAddr;
use std::sync::Arc;

use super::bounds::Bounds;
use super::rules::Rule;
use crate::agent::AgentSpecs;
use crate::ip::{Limits, Prefix, UdpLimits};
use crate::secrets::PortRange;
use crate::tcp::{AckMerge, TcpConfig};
use crate::wire::Checksums;
use crate::{LinkId, NextHop};

/// Settings of an [`Endpoint`](super::Endpoint). Nothing in it is random: the key comes from whoever makes it.
#[derive(Clone, Debug)]
pub struct EndpointConfig {
    pub links: Vec<LinkConfig>,
    /// Longest prefix first; a link's own subnets need no route.
    pub routes: Vec<Route>,
    pub tcp: Arc<TcpConfig>,
    /// Which agents a connection gets: the first rule that matches, else `agents`.
    pub rules: Vec<Rule>,
    pub agents: AgentSpecs,
    /// For initial sequence numbers, ports, cookies and the connection table. A key used twice repeats them.
    pub key: [u8; 32],
    /// Events kept until they are drained, unless its driver has said that [nobody will](crate::Machine::keep_trace).
    pub trace_events: usize,
    pub most_connections: usize,
    pub bounds: Bounds,
    /// SYNs answered with cookies in a second, a tenth of them at once, and as many again of those that come for the
    /// second time. A flood from made-up addresses is as fast as it likes: to answer all of it takes from the
    /// connections that there are, and sends to those who never asked.
    pub cookies_per_second: u32,
    /// `Trust` goes for every link; a single one may be trusted by its own setting.
    pub checksums: Checksums,
    /// Whether packets that came by a source route are taken (RFC 7126 advises against).
    pub source_routes: SourceRoutes,
    pub ports: PortRange,
    pub fragments: Limits,
    pub udp: UdpLimits,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkConfig {
    pub id: LinkId,
    pub mtu: u16,
    /// Our addresses there, with their subnets.
    pub addresses: Vec<Prefix>,
    /// How the link finds who is next: a TUN decides itself, a radio wants a neighbour.
    pub neighbours: Neighbours,
    pub offload: Offload,
    /// With [`Checksums::Trust`] the link finishes those of TCP segments that leave, whose field holds the sum of the
    /// pseudo-header, and vouches for those of the packets it hands in. Fragments are verified all the same.
    pub checksums: Checksums,
    /// Routers on the way that join no two links of the path. A kernel that forwards between a TUN device and the radio
    /// is one, at each end that has such a device. What they take off the hop limit is not counted as hops.
    pub crossings: u8,
    /// What becomes of ACKs for packets that were read in a row: see [`EndpointConfig::ack_merge`].
    pub ack_merge: AckMerge,
}

/// What a link does with TCP segments for us.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Offload {
    /// A packet is a segment.
    #[default]
    None,
    /// It takes [bundles](crate::wire::bundle) in packets of up to `most_bytes`, headers and all, and cuts them up as
    /// [`Transmit::segment_bytes`](crate::Transmit::segment_bytes) says, or hands them on to who takes them whole. At
    /// most 65,535 bytes are made use of.
    Cut { most_bytes: u32 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Neighbours {
    /// The link delivers by itself (TUN, a wire with one other end).
    Implied,
    /// Packets are handed to a neighbour by its address.
    Named,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    pub to: Prefix,
    pub link: LinkId,
    pub via: NextHop,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceRoutes {
    Refuse,
    Accept,
}

impl LinkConfig {
    /// A link that delivers by itself, and does nothing else for us.
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
        }
    }

    pub(super) fn has_address(&self, address: IpAddr) -> bool {
        self.addresses.iter().any(|prefix| prefix.address() == address)
    }
}

impl EndpointConfig {
    /// One link, the default agents, the modern TCP.
    pub fn new(link: LinkConfig, key: [u8; 32]) -> EndpointConfig {
        EndpointConfig {
            links: vec![link],
            routes: Vec::new(),
            tcp: Arc::new(TcpConfig::modern()),
            rules: Vec::new(),
            agents: AgentSpecs::default(),
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

    /// ACKs are merged where the TCP settings say so, or where each link does. A radio hands in packets one by one, and
    /// each ACK tells its peer something: one such link among others is enough to merge none.
    pub fn ack_merge(&self) -> AckMerge {
        let merge = |link: &LinkConfig| link.ack_merge == AckMerge::Read;
        let do_links = !self.links.is_empty() && self.links.iter().all(merge);
        if do_links { AckMerge::Read } else { self.tcp.ack_merge }
    }
}
