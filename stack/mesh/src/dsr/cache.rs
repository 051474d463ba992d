//! The route cache (RFC 4728 §4.1): routes that begin here, each a list of nodes, found by request or overheard.

use std::net::Ipv4Addr;
use std::time::Duration;

use hopwise_core::Instant;
use hopwise_core::narrow::as_u8;

use super::options::{MOST_ADDRESSES, has_repeats};

/// The origin of a route. An overheard route never pushes out one that was requested or used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RouteOrigin {
    Asked,
    Overheard,
}

#[derive(Clone, Debug)]
struct CachedRoute {
    /// From the first neighbour to the last node.
    nodes: Vec<Ipv4Addr>,
    learned: RouteOrigin,
    until: Instant,
    /// Grows with every use, and every time that the route is learned again.
    stamp: u64,
}

#[derive(Debug)]
pub(super) struct Cache {
    own: Ipv4Addr,
    routes: Vec<CachedRoute>,
    most_asked: usize,
    most_overheard: usize,
    time: Duration,
    stamps: u64,
    has_changed: bool,
}

impl Cache {
    pub(super) fn new(own: Ipv4Addr, most_asked: u32, most_overheard: u32, time: Duration) -> Cache {
        Cache {
            own,
            routes: Vec::new(),
            most_asked: most_asked.max(1) as usize,
            most_overheard: most_overheard as usize,
            time,
            stamps: 0,
            has_changed: false,
        }
    }

    /// Adds a route that begins with the first neighbour, unless it is a loop or too long for a header.
    pub(super) fn add(&mut self, now: Instant, nodes: &[Ipv4Addr], learned: RouteOrigin) {
        let is_too_long = nodes.len() > MOST_ADDRESSES;
        if nodes.is_empty() || is_too_long || nodes.contains(&self.own) || has_repeats(nodes) {
            return;
        }
        self.stamps += 1;
        let (until, stamp) = (now + self.time, self.stamps);
        let known = self.routes.iter_mut().find(|route| {
            let shared = route.nodes.len().min(nodes.len());
            route.nodes[..shared] == nodes[..shared]
        });
        if let Some(route) = known {
            // A shorter part of a known route says nothing new of the rest.
            if nodes.len() >= route.nodes.len() {
                self.has_changed |= nodes.len() > route.nodes.len() || route.until <= now;
                route.nodes = nodes.to_vec();
                route.until = until;
            }
            route.stamp = stamp;
            if learned == RouteOrigin::Asked {
                route.learned = learned;
            }
        } else {
            self.has_changed = true;
            self.routes.push(CachedRoute { nodes: nodes.to_vec(), learned, until, stamp });
        }
        self.make_room(RouteOrigin::Asked, self.most_asked);
        self.make_room(RouteOrigin::Overheard, self.most_overheard);
    }

    /// Removes the routes that were used or learned longest ago.
    fn make_room(&mut self, learned: RouteOrigin, most: usize) {
        while self.routes.iter().filter(|route| route.learned == learned).count() > most {
            let of_kind = self.routes.iter().enumerate().filter(|(_, route)| route.learned == learned);
            let Some((oldest, _)) = of_kind.min_by_key(|(_, route)| route.stamp) else { return };
            self.routes.remove(oldest);
        }
    }

    fn best(&self, now: Instant, dst: Ipv4Addr) -> Option<(usize, usize)> {
        let hops = |route: &CachedRoute| route.nodes.iter().position(|node| *node == dst).map(|at| at + 1);
        let alive = self.routes.iter().enumerate().filter(|(_, route)| route.until > now);
        let reaching = alive.filter_map(|(n, route)| Some((n, hops(route)?)));
        // Among equally short routes, the one learned last.
        reaching.min_by_key(|(n, hops)| (*hops, u64::MAX - self.routes[*n].stamp))
    }

    /// The shortest route to `dst`: from the first neighbour to `dst`, both included.
    pub(super) fn find(&self, now: Instant, dst: Ipv4Addr) -> Option<&[Ipv4Addr]> {
        self.best(now, dst).map(|(n, hops)| &self.routes[n].nodes[..hops])
    }

    /// The same for a packet of our own: the route is now in use and counts as requested.
    pub(super) fn take(&mut self, now: Instant, dst: Ipv4Addr) -> Option<&[Ipv4Addr]> {
        let (n, hops) = self.best(now, dst)?;
        self.stamps += 1;
        let route = &mut self.routes[n];
        (route.stamp, route.learned) = (self.stamps, RouteOrigin::Asked);
        Some(&self.routes[n].nodes[..hops])
    }

    pub(super) fn hops(&self, now: Instant, dst: Ipv4Addr) -> Option<u8> {
        self.find(now, dst).map(|route| as_u8(route.len()))
    }

    /// Cuts every route off before that link, in either direction: 802.11 needs both.
    pub(super) fn lose_link(&mut self, a: Ipv4Addr, b: Ipv4Addr) {
        let own = self.own;
        let is_lost = |from: Ipv4Addr, to: Ipv4Addr| (from, to) == (a, b) || (from, to) == (b, a);
        for route in &mut self.routes {
            let steps = std::iter::once(&own).chain(&route.nodes).zip(&route.nodes);
            let sound = steps.take_while(|(from, to)| !is_lost(**from, **to)).count();
            route.nodes.truncate(sound);
        }
        self.routes.retain(|route| !route.nodes.is_empty());
        self.join();
        self.has_changed = true;
    }

    /// Removes routes that are the beginning of a longer route.
    fn join(&mut self) {
        let mut n = 0;
        while n < self.routes.len() {
            let nodes = &self.routes[n].nodes;
            let others = self.routes.iter().enumerate().filter(|(other, _)| *other != n);
            let is_part = |(other, route): (usize, &CachedRoute)| {
                route.nodes.starts_with(nodes) && (route.nodes.len() > nodes.len() || other < n)
            };
            if others.into_iter().any(is_part) {
                self.routes.remove(n);
            } else {
                n += 1;
            }
        }
    }

    /// Returns whether routes have come or gone since the last call.
    pub(super) fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.has_changed)
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.routes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use RouteOrigin::{Asked, Overheard};

    const LIFE: Duration = Duration::from_secs(300);

    fn nodes(last: &[u8]) -> Vec<Ipv4Addr> {
        last.iter().map(|last| Ipv4Addr::new(10, 0, 0, *last)).collect()
    }

    fn node(last: u8) -> Ipv4Addr {
        Ipv4Addr::new(10, 0, 0, last)
    }

    fn cache(most: u32) -> Cache {
        Cache::new(node(1), most, most, LIFE)
    }

    fn found(cache: &Cache, dst: u8) -> Option<Vec<u8>> {
        let route = cache.find(Instant::ZERO, node(dst))?;
        Some(route.iter().map(|node| node.octets()[3]).collect())
    }

    #[test]
    fn the_shortest_way_is_taken_and_of_two_the_one_heard_last() {
        let mut cache = cache(8);
        cache.add(Instant::ZERO, &nodes(&[2, 3, 4, 9]), Overheard);
        cache.add(Instant::ZERO, &nodes(&[5, 4, 9]), Overheard);
        assert_eq!(found(&cache, 9), Some(vec![5, 4, 9]));
        assert_eq!(found(&cache, 3), Some(vec![2, 3]), "the beginning of a way is one too");
        cache.add(Instant::ZERO, &nodes(&[6, 7, 9]), Overheard);
        assert_eq!(found(&cache, 9), Some(vec![6, 7, 9]));
        assert_eq!(found(&cache, 8), None);
    }

    #[test]
    fn no_way_leads_in_a_circle_or_back_here() {
        let mut cache = cache(8);
        for bad in [&[2, 3, 2][..], &[2, 1, 3], &[1], &[]] {
            cache.add(Instant::ZERO, &nodes(bad), Asked);
        }
        let long: Vec<u8> = (2..200).collect();
        cache.add(Instant::ZERO, &nodes(&long), Asked);
        assert_eq!(cache.len(), 0);
    }

    #[test]
    fn a_lost_link_cuts_ways_in_both_directions_and_leaves_what_is_before_it() {
        let mut cache = cache(8);
        cache.add(Instant::ZERO, &nodes(&[2, 3, 4, 5]), Overheard);
        cache.add(Instant::ZERO, &nodes(&[6, 4, 3, 7]), Overheard);
        cache.lose_link(node(3), node(4));
        assert_eq!(found(&cache, 5), None);
        assert_eq!(found(&cache, 3), Some(vec![2, 3]));
        assert_eq!(found(&cache, 4), Some(vec![6, 4]));
        cache.lose_link(node(1), node(2));
        assert_eq!(found(&cache, 3), None, "our own links are links");
        assert_eq!(cache.len(), 1);
    }

    #[test]
    fn what_is_left_of_two_ways_is_kept_once() {
        let mut cache = cache(8);
        cache.add(Instant::ZERO, &nodes(&[2, 3, 4]), Asked);
        cache.add(Instant::ZERO, &nodes(&[2, 3, 5]), Overheard);
        cache.lose_link(node(3), node(4));
        cache.lose_link(node(3), node(5));
        assert_eq!((cache.len(), found(&cache, 3)), (1, Some(vec![2, 3])));
    }

    #[test]
    fn what_is_overheard_is_bounded_and_pushes_nothing_out_that_was_asked_for() {
        let mut cache = cache(2);
        cache.add(Instant::ZERO, &nodes(&[2, 3]), Asked);
        for last in 10..250 {
            cache.add(Instant::ZERO, &nodes(&[4, last]), Overheard);
        }
        assert_eq!(cache.len(), 3);
        assert_eq!(found(&cache, 3), Some(vec![2, 3]));
        assert_eq!(found(&cache, 249), Some(vec![4, 249]), "the newest is there");
        assert!(cache.take(Instant::ZERO, node(249)).is_some());
        cache.add(Instant::ZERO, &nodes(&[4, 8]), Overheard);
        cache.add(Instant::ZERO, &nodes(&[4, 9]), Overheard);
        cache.add(Instant::ZERO, &nodes(&[4, 10]), Overheard);
        assert_eq!(found(&cache, 249), Some(vec![4, 249]), "what is used counts as asked for");
    }

    #[test]
    fn ways_are_forgotten_when_nobody_speaks_of_them() {
        let mut cache = cache(2);
        cache.add(Instant::ZERO, &nodes(&[2, 3]), Asked);
        cache.add(Instant::from_secs(200), &nodes(&[2, 3]), Asked);
        assert_eq!(cache.hops(Instant::from_secs(499), node(3)), Some(2));
        assert_eq!(cache.hops(Instant::from_secs(500), node(3)), None);
        assert!(cache.take_changed() && !cache.take_changed());
        cache.add(Instant::from_secs(500), &nodes(&[2, 3]), Asked);
        assert!(cache.take_changed(), "it is back");
        assert_eq!((cache.len(), cache.hops(Instant::from_secs(501), node(3))), (1, Some(2)));
    }
}
