//! Turns the file's configuration into the core's.

use std::sync::Arc;

use hopwise_core::endpoint::{self, EndpointConfig, LinkConfig};
use hopwise_core::ip::Prefix;
use hopwise_core::tcp::AckMerge;
use hopwise_core::{LinkId, NextHop};

use super::{Address, Bounds, Link, LinkKind, NodeConfig, TUN_CROSSINGS};

/// More than the seats of any file: some connections end by themselves.
const MOST_CONNECTIONS: usize = 1 << 18;

impl NodeConfig {
    /// The endpoint's configuration. Links are numbered in the file's order, and describe themselves once they are
    /// open.
    pub(crate) fn endpoint(&self, mut links: Vec<LinkConfig>, key: [u8; 32]) -> EndpointConfig {
        let first = LinkConfig::wire(0, 1500, Vec::new());
        if self.tcp.ack_merge.is_some_and(|merge| merge.0 == AckMerge::Off) {
            links.iter_mut().for_each(|link| link.ack_merge = AckMerge::Off);
        }
        EndpointConfig {
            links,
            routes: self.routes.iter().filter_map(|route| self.route(route)).collect(),
            rules: self.core_rules(),
            tcp: Arc::new(self.tcp.config()),
            most_connections: self.most_connections().div_ceil(self.shards().into()),
            bounds: self.bounds.core().of_one_in(self.shards().into()),
            ..EndpointConfig::new(first, key)
        }
    }

    /// The most connections that all stacks have together.
    pub(crate) fn most_connections(&self) -> usize {
        self.bounds.connections.unwrap_or(MOST_CONNECTIONS)
    }

    /// The seats of SOCKS5, of all forwards, and of carried connections. A client with a seat takes a connection.
    pub(crate) fn seats(&self) -> usize {
        let forwards = self.forwards.iter().map(|forward| forward.connections);
        let carried = self.transparent.iter().map(|transparent| transparent.connections);
        forwards.chain(self.socks5.iter().map(|socks5| socks5.connections)).chain(carried).sum()
    }

    /// The warning that there are more seats than connections.
    pub(crate) fn lacks_connections(&self) -> Option<String> {
        let (most, seats) = (self.most_connections(), self.seats());
        (most < seats).then(|| {
            format!(
                "bounds.connections: {most} are fewer than the {seats} seats of socks5, transparent and all forwards: \
                 a client with a seat may get no connection"
            )
        })
    }

    pub(crate) fn core_rules(&self) -> Vec<endpoint::Rule> {
        self.rules.iter().map(|rule| rule.core(|network| network.0)).collect()
    }

    /// A link's own addresses, or the node's. The first link without its own addresses gets the node's with their
    /// subnet. The others get them as single addresses, so that one subnet is not on two links.
    pub(crate) fn addresses_of(&self, nth: usize) -> Vec<Prefix> {
        let prefix = |address: &Address| address.0;
        let Some(link) = self.links.get(nth).filter(|link| link.address.is_empty()) else {
            return self.links.get(nth).map_or(Vec::new(), |link| link.address.iter().map(prefix).collect());
        };
        let first = self.links.iter().find(|link| link.address.is_empty());
        let is_first = first.is_some_and(|first| first.name == link.name);
        let of_node = self.node.address.iter().map(prefix);
        of_node.map(|own| if is_first { own } else { Prefix::host(own.address()) }).collect()
    }

    fn route(&self, route: &super::Route) -> Option<endpoint::Route> {
        let nth = self.link_by_name(&route.link)?;
        let via = route.via.map_or(NextHop::Link, NextHop::Neighbour);
        Some(endpoint::Route { to: route.to.0, link: link_id(nth), via })
    }

    /// Returns whether the node has an IPv6 address on any link.
    pub fn has_ipv6(&self) -> bool {
        let mut of_links = self.links.iter().flat_map(|link| &link.address);
        of_links.any(is_v6) || self.node.address.iter().any(is_v6)
    }

    /// Returns whether a link of the node captures on an interface.
    pub fn has_packet_sockets(&self) -> bool {
        self.links.iter().any(|link| matches!(link.kind, LinkKind::Raw | LinkKind::Pcap))
    }

    /// The kernel brings its packets: it forwards for the node.
    pub fn has_tun(&self) -> bool {
        self.links.iter().any(|link| matches!(link.kind, LinkKind::Tun | LinkKind::TunFast))
    }

    /// Number of stacks that run side by side.
    pub(crate) fn shards(&self) -> u16 {
        self.links.iter().filter_map(|link| link.queues).max().unwrap_or(1)
    }

    pub(crate) fn link_by_name(&self, name: &str) -> Option<usize> {
        self.links.iter().position(|link| link.name == name)
    }
}

fn is_v6(address: &Address) -> bool {
    address.0.address().is_ipv6()
}

pub(crate) fn link_id(nth: usize) -> LinkId {
    LinkId(u16::try_from(nth).unwrap_or(u16::MAX))
}

impl Link {
    /// Packets of other links go to the radio unchanged.
    pub(crate) fn crossings(&self) -> u8 {
        self.crossings.unwrap_or(if self.is_tun() { TUN_CROSSINGS } else { 0 })
    }

    /// Returns whether the kernel is at the other end.
    pub(crate) fn is_tun(&self) -> bool {
        matches!(self.kind, LinkKind::Tun | LinkKind::TunFast)
    }
}

impl Bounds {
    fn core(&self) -> endpoint::Bounds {
        let default = endpoint::Bounds::default();
        endpoint::Bounds {
            orphans: self.orphans.unwrap_or(default.orphans),
            orphan_bytes: self.orphan_memory.map_or(default.orphan_bytes, |size| size.0),
            time_waits: self.time_waits.unwrap_or(default.time_waits),
            buffer_bytes: self.memory.map_or(default.buffer_bytes, |size| size.0),
        }
    }
}
