//! Routes installed by hand: they never change and need no messages.

use std::collections::VecDeque;
use std::net::IpAddr;

use hopwise_core::agent::{HopSource, Path};
use hopwise_core::trace::DropReason;
use hopwise_core::{Instant, LinkId, NextHop};

use crate::protocol::{LiveRouter, PacketMark, RoutingProtocol};
use crate::routing::{ControlMessage, Cx, RoutedPacket, Routing, RoutingOrder, RoutingVerdict};

/// The first step towards a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirstStep {
    /// The link to the next hop.
    pub link: LinkId,
    /// The next hop on that link.
    pub via: NextHop,
    /// Links to the destination.
    pub hops: u8,
}

/// A node that is reached in one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StaticNeighbour {
    /// The neighbour's index in the list of nodes.
    pub node: usize,
    /// The link of the first node to it.
    pub link: LinkId,
    /// Its name on that link.
    pub via: NextHop,
}

/// The first step of every node's shortest path to `end`, by a breadth-first search. Only links that work in both
/// directions count. Among equally short paths the neighbour that was reached first wins.
pub fn towards(end: usize, neighbours: &[Vec<StaticNeighbour>]) -> Vec<(usize, FirstStep)> {
    let mut steps = Vec::new();
    let mut seen = vec![false; neighbours.len()];
    seen[end] = true;
    let mut edge = VecDeque::from([(end, 0_u8)]);
    while let Some((at, hops)) = edge.pop_front() {
        for StaticNeighbour { node, .. } in &neighbours[at] {
            let back = neighbours[*node].iter().find(|back| back.node == at);
            let (Some(back), false) = (back, seen[*node]) else { continue };
            seen[*node] = true;
            let hops = hops.saturating_add(1);
            steps.push((*node, FirstStep { link: back.link, via: back.via, hops }));
            edge.push_back((*node, hops));
        }
    }
    steps
}

/// Static routes in the registry.
pub(crate) static DESCRIPTOR: RoutingProtocol = RoutingProtocol {
    name: "static",
    summary: "Paths with the fewest hops, computed once at time 0.",
    constants: &[],
    subject: "static routes",
    is_flat: false,
    mark: PacketMark::None,
    needs_positions: false,
    live: LiveRouter::Nobody,
    daemon: None,
    make: |_, setup| Box::new(StaticRoutes::new(setup.routes)),
};

/// A routing protocol without messages: a table that is given at construction.
#[derive(Clone, Debug, Default)]
pub struct StaticRoutes {
    /// Sorted by destination.
    routes: Vec<(IpAddr, FirstStep)>,
}

impl StaticRoutes {
    /// Takes the first step for each destination, in any order.
    pub fn new(routes: impl IntoIterator<Item = (IpAddr, FirstStep)>) -> StaticRoutes {
        let mut routes: Vec<_> = routes.into_iter().collect();
        routes.sort_unstable_by_key(|(to, _)| *to);
        StaticRoutes { routes }
    }

    /// The first step towards a destination.
    pub fn to(&self, dst: IpAddr) -> Option<&FirstStep> {
        self.routes.binary_search_by_key(&dst, |(to, _)| *to).ok().map(|index| &self.routes[index].1)
    }
}

impl Routing for StaticRoutes {
    fn route(&mut self, _cx: &Cx<'_>, packet: &RoutedPacket<'_>) -> RoutingVerdict {
        match self.to(packet.dst) {
            Some(hop) => RoutingVerdict::Forward { link: hop.link, via: hop.via },
            None => RoutingVerdict::Drop(DropReason::NoRoute),
        }
    }

    fn handle_control(&mut self, _cx: &Cx<'_>, _control: &ControlMessage<'_>) {}

    fn handle_timeout(&mut self, _cx: &Cx<'_>) {}

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn poll_order(&mut self, _now: Instant) -> Option<RoutingOrder> {
        None
    }

    fn next_hop(&self, _now: Instant, dst: IpAddr) -> Option<(LinkId, IpAddr)> {
        self.to(dst).map(|hop| match hop.via {
            NextHop::Neighbour(via) => (hop.link, via),
            NextHop::Link | NextHop::All => (hop.link, dst),
        })
    }

    fn path(&self, peer: IpAddr) -> Path {
        let hops = self.to(peer).map(|hop| (hop.hops, HopSource::Routing));
        Path { hops_to_peer: hops, hops_from_peer: hops, ..Path::default() }
    }

    fn counts(&self) -> (u64, u64) {
        (0, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(n: usize) -> IpAddr {
        IpAddr::from([10, 0, 0, n as u8 + 1])
    }

    #[test]
    fn shortest_paths_take_the_way_with_the_fewest_links() {
        // 0-1-2-3 and a shortcut 0-3.
        let radio =
            |node: usize| StaticNeighbour { node, link: LinkId(0), via: NextHop::Neighbour(address(node)) };
        let neighbours = [[1, 3], [0, 2], [1, 3], [2, 0]].map(|near| near.map(radio).to_vec());
        let steps = towards(3, &neighbours);
        let step = |from| steps.iter().find(|(node, _)| *node == from).map(|(_, hop)| (hop.via, hop.hops));
        assert_eq!(step(0), Some((NextHop::Neighbour(address(3)), 1)));
        assert_eq!(step(1), Some((NextHop::Neighbour(address(2)), 2)));
        assert_eq!(step(3), None);
    }
}
