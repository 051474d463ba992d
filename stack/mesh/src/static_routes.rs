//! Routes installed by hand: they never change and ask for nothing.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

use hopwise_core::agent::{HopSource, Path};
use hopwise_core::trace::DropReason;
use hopwise_core::{Instant, LinkId, NextHop, Rx};

use crate::routing::{Control, Order, Routed, Routing, Undelivered, Verdict};

/// The first step towards a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    pub link: LinkId,
    pub via: NextHop,
    /// Links to the destination.
    pub hops: u8,
}

#[derive(Clone, Debug, Default)]
pub struct StaticRoutes {
    /// Sorted by destination.
    routes: Vec<(IpAddr, Hop)>,
}

impl StaticRoutes {
    pub fn new(routes: impl IntoIterator<Item = (IpAddr, Hop)>) -> StaticRoutes {
        let mut routes: Vec<_> = routes.into_iter().collect();
        routes.sort_unstable_by_key(|(to, _)| *to);
        StaticRoutes { routes }
    }

    /// Shortest paths from one node to all others, by breadth; of equally short ones the first neighbour listed wins.
    /// `neighbours[n]` are the nodes that n reaches in one hop, with the link.
    pub fn shortest(
        from: usize,
        neighbours: &[Vec<(usize, LinkId, NextHop)>],
        addresses: &[IpAddr],
    ) -> StaticRoutes {
        let mut first: BTreeMap<usize, Hop> = BTreeMap::new();
        let mut seen = vec![false; neighbours.len()];
        seen[from] = true;
        let mut edge = VecDeque::from([(from, None, 0_u8)]);
        while let Some((at, step, hops)) = edge.pop_front() {
            for (next, link, via) in &neighbours[at] {
                if std::mem::replace(&mut seen[*next], true) {
                    continue;
                }
                let (link, via) = step.unwrap_or((*link, *via));
                let hops = hops.saturating_add(1);
                first.insert(*next, Hop { link, via, hops });
                edge.push_back((*next, Some((link, via)), hops));
            }
        }
        StaticRoutes::new(first.into_iter().map(|(to, hop)| (addresses[to], hop)))
    }

    pub fn to(&self, dst: IpAddr) -> Option<&Hop> {
        self.routes.binary_search_by_key(&dst, |(to, _)| *to).ok().map(|index| &self.routes[index].1)
    }
}

impl Routing for StaticRoutes {
    fn port(&self) -> Option<u16> {
        None
    }

    fn route(&mut self, _now: Instant, packet: &Routed<'_>) -> Verdict {
        match self.to(packet.dst) {
            Some(hop) => Verdict::Forward { link: hop.link, via: hop.via },
            None => Verdict::Drop(DropReason::NoRoute),
        }
    }

    fn handle_control(&mut self, _now: Instant, _control: &Control<'_>) {}

    fn on_overheard(&mut self, _now: Instant, _rx: &Rx<'_>) {}

    fn on_delivered(&mut self, _now: Instant, _id: u64) {}

    fn on_undelivered(
        &mut self,
        _now: Instant,
        _link: LinkId,
        _to: IpAddr,
        _packet: &Routed<'_>,
    ) -> Undelivered {
        Undelivered::Drop
    }

    fn handle_timeout(&mut self, _now: Instant) {}

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn poll_order(&mut self, _now: Instant) -> Option<Order> {
        None
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
    fn shortest_paths_take_the_first_step_of_the_way_with_the_fewest_links() {
        // 0-1-2-3 and a shortcut 0-3.
        let radio = |n: usize| (n, LinkId(0), NextHop::Neighbour(address(n)));
        let neighbours = [
            vec![radio(1), radio(3)],
            vec![radio(0), radio(2)],
            vec![radio(1), radio(3)],
            vec![radio(2), radio(0)],
        ];
        let addresses: Vec<_> = (0..4).map(address).collect();
        let routes = StaticRoutes::shortest(0, &neighbours, &addresses);
        let step = |n: usize| routes.to(address(n)).map(|hop| (hop.via, hop.hops));
        assert_eq!(step(3), Some((NextHop::Neighbour(address(3)), 1)));
        assert_eq!(step(2), Some((NextHop::Neighbour(address(1)), 2)));
        assert_eq!(step(0), None);
    }
}
