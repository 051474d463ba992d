//! The next hop of a packet (Karp and Kung 2000, §2): the neighbour closest to its destination, or else one on a face
//! of the planar graph. It goes around until a node is closer than where that began. Also the table
//! of neighbours.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use hopwise_core::{Instant, LinkId};

use super::header::PerimeterState;
use super::plane::{Alike, Planar, Point, crossing, first_counterclockwise, is_kept};

/// The node's position, and its neighbours.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ground<'a> {
    pub(super) own: Ipv4Addr,
    pub(super) here: Point,
    pub(super) neighbours: &'a NeighbourPositions,
    pub(super) planar: Planar,
    pub(super) has_perimeter: bool,
}

/// The next node, and the packet's perimeter state from then on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NextStep {
    pub(super) via: Ipv4Addr,
    pub(super) around: Option<PerimeterState>,
}

impl Ground<'_> {
    /// `around` is the perimeter state of the packet and its sender's position, if it goes around.
    pub(super) fn step(
        &self,
        (dst, destination): (Ipv4Addr, Point),
        around: Option<(PerimeterState, Point)>,
    ) -> Option<NextStep> {
        // A neighbour is in range, even if the packet's position for it is old.
        if self.neighbours.contains(dst) {
            return Some(NextStep { via: dst, around: None });
        }
        let left = self.here.away(destination);
        match around {
            Some((around, from)) if left >= around.entered.away(destination) => {
                self.go_on(destination, around, from)
            }
            _ => match self.closest(destination) {
                Some(via) => Some(NextStep { via, around: None }),
                None => self.go_around(destination),
            },
        }
    }

    /// The neighbour closest to `destination`, if it is closer than this node.
    fn closest(&self, destination: Point) -> Option<Ipv4Addr> {
        let left = self.here.away(destination);
        let closer = self.neighbours.iter().map(|(node, place)| (place.away(destination), node));
        closer.filter(|(away, _)| *away < left).min().map(|(_, node)| node)
    }

    /// Neighbours on the planar graph.
    fn edges(&self) -> Vec<(Ipv4Addr, Point)> {
        let is_edge = |(node, place): &(Ipv4Addr, Point)| {
            let others = self.neighbours.iter().filter(|(other, _)| other != node);
            is_kept(self.planar, self.here, *place, others.map(|(_, place)| place))
        };
        self.neighbours.iter().filter(is_edge).collect()
    }

    /// No neighbour is closer: takes the first edge counterclockwise from the line to the destination.
    fn go_around(&self, destination: Point) -> Option<NextStep> {
        if !self.has_perimeter {
            return None;
        }
        let edges = self.edges();
        let via = first_counterclockwise(self.here, destination, Alike::First, edges.iter().copied())?;
        let around = PerimeterState { entered: self.here, face: self.here, first_edge: (self.own, via) };
        Some(NextStep { via, around: Some(around) })
    }

    /// Follows the right-hand rule. At an edge that crosses the line to the destination, the next face begins.
    /// begins.
    fn go_on(&self, destination: Point, mut around: PerimeterState, from: Point) -> Option<NextStep> {
        let edges = self.edges();
        let next = |from: Point| {
            let nodes = edges.iter().map(|edge| (*edge, edge.1));
            first_counterclockwise(self.here, from, Alike::Last, nodes)
        };
        let (mut via, mut place) = next(from)?;
        if around.first_edge == (self.own, via) {
            return None; // Once around the face, and no neighbour was closer.
        }
        // Every change brings the face closer to the destination, so that there are at most as many changes as edges.
        for _ in 0..=edges.len() {
            let line = (around.entered, destination);
            let Some(at) = crossing(line, (self.here, place)) else { break };
            if at.away(destination) >= around.face.away(destination) {
                break;
            }
            around.face = at;
            (via, place) = next(place)?;
            around.first_edge = (self.own, via);
        }
        Some(NextStep { via, around: Some(around) })
    }
}

/// The neighbours, the last known position of each, and until when it is believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct NeighbourPosition {
    link: LinkId,
    place: Point,
    until: Instant,
}

#[derive(Debug)]
pub(super) struct NeighbourPositions {
    by_address: BTreeMap<Ipv4Addr, NeighbourPosition>,
    most: usize,
}

impl NeighbourPositions {
    pub(super) fn new(most: u32) -> NeighbourPositions {
        NeighbourPositions { by_address: BTreeMap::new(), most: most.max(1) as usize }
    }

    /// Notes a neighbour's position. Without room a new neighbour is ignored.
    pub(super) fn heard(&mut self, node: Ipv4Addr, link: LinkId, place: Point, until: Instant) {
        if self.by_address.len() < self.most || self.by_address.contains_key(&node) {
            self.by_address.insert(node, NeighbourPosition { link, place, until });
        }
    }

    pub(super) fn lose(&mut self, node: Ipv4Addr) {
        self.by_address.remove(&node);
    }

    pub(super) fn forget(&mut self, now: Instant) {
        self.by_address.retain(|_, neighbour| neighbour.until > now);
    }

    /// The time at which the next neighbour expires.
    pub(super) fn next(&self) -> Option<Instant> {
        self.by_address.values().map(|neighbour| neighbour.until).min()
    }

    pub(super) fn contains(&self, node: Ipv4Addr) -> bool {
        self.by_address.contains_key(&node)
    }

    pub(super) fn link(&self, node: Ipv4Addr) -> Option<LinkId> {
        self.by_address.get(&node).map(|neighbour| neighbour.link)
    }

    /// In the order of their addresses.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Ipv4Addr, Point)> {
        self.by_address.iter().map(|(node, neighbour)| (*node, neighbour.place))
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.by_address.len()
    }
}
