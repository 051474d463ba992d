//! The neighbours, the last known position of each, and until when it is believed.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use hopwise_core::{Instant, LinkId};

use super::plane::Point;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Neighbour {
    link: LinkId,
    place: Point,
    until: Instant,
}

#[derive(Debug)]
pub(super) struct Neighbours {
    by_address: BTreeMap<Ipv4Addr, Neighbour>,
    most: usize,
}

impl Neighbours {
    pub(super) fn new(most: u32) -> Neighbours {
        Neighbours { by_address: BTreeMap::new(), most: most.max(1) as usize }
    }

    /// Notes a neighbour's position. Without room a new neighbour is ignored.
    pub(super) fn heard(&mut self, node: Ipv4Addr, link: LinkId, place: Point, until: Instant) {
        if self.by_address.len() < self.most || self.by_address.contains_key(&node) {
            self.by_address.insert(node, Neighbour { link, place, until });
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
