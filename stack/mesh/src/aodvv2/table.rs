//! Routes, and the rule by which they change.
//!
//! The rule prevents loops: a distance that a node has advertised binds it. It takes no route that is older, or as old
//! and longer, during the validity of its own route and after it. The next hop of a valid route therefore has a newer
//! number, or an equal number and a smaller metric. A route over an unconfirmed neighbour waits next to the valid route
//! until the neighbour is confirmed. It may be advertised only without an older valid route, which the receiver of the
//! advertisement could be on. The draft lacks this rule, and has a loop there.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

use hopwise_core::{Instant, LinkId};

use crate::on_demand::shares::{Changes, OfferResult, Shares};

/// A route in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OfferedRoute {
    pub(super) seq: u16,
    pub(super) metric: u8,
    pub(super) link: LinkId,
    pub(super) next_hop: Ipv4Addr,
    /// The end of its validity, if the message has one.
    pub(super) ends: Option<Instant>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Route {
    /// The last route that was taken; `None` for a destination that was only searched for.
    way: Option<OfferedRoute>,
    is_valid: bool,
    /// The newest number that was taken or advertised, and the least metric with it.
    bound: Option<(u16, u8)>,
    /// A route over a neighbour that our frames may not reach.
    pub(super) unconfirmed: Option<OfferedRoute>,
    waits_until: Instant,
    learned: Instant,
    used: Option<Instant>,
    /// When it is not valid: until when it is remembered.
    until: Instant,
    /// Packets of this node itself have used it.
    pub(super) is_ours: bool,
    /// The hop count that connections last got.
    pub(super) reported_hops: Option<u8>,
    /// The neighbour that first reported it, unless the node itself searched for it.
    brought_by: Option<Ipv4Addr>,
}

/// Sequence numbers are compared around the circle.
pub(super) fn is_newer(seq: u16, than: u16) -> bool {
    seq.wrapping_sub(than) as i16 > 0
}

impl Route {
    pub(super) fn valid(&self) -> Option<&OfferedRoute> {
        self.way.as_ref().filter(|_| self.is_valid)
    }

    pub(super) fn hops(&self) -> Option<u8> {
        self.valid().map(|way| way.metric)
    }

    pub(super) fn seq(&self) -> Option<u16> {
        self.bound.map(|(seq, _)| seq)
    }

    pub(super) fn is_active(&self, now: Instant, interval: Duration) -> bool {
        self.is_valid && self.used.is_some_and(|used| now.since(used) < interval)
    }

    pub(super) fn note_use(&mut self, now: Instant) {
        self.used = Some(now);
    }

    /// The route of a reply: the newest one, confirmed or not.
    pub(super) fn newest(&self) -> Option<&OfferedRoute> {
        self.unconfirmed.as_ref().or_else(|| self.valid())
    }

    pub(super) fn lives_at_least(&mut self, until: Instant) {
        self.until = self.until.max(until);
    }

    fn yields_to(&self, offer: &OfferedRoute) -> bool {
        match self.bound {
            None => true,
            Some((seq, metric)) if seq == offer.seq && self.is_valid => offer.metric < metric,
            // A route as near as this one was at its end does not lead through here.
            Some((seq, metric)) if seq == offer.seq => offer.metric <= metric,
            Some((seq, _)) => is_newer(offer.seq, seq),
        }
    }

    fn take(&mut self, now: Instant, offer: &OfferedRoute) {
        (self.way, self.is_valid, self.bound) = (Some(*offer), true, Some((offer.seq, offer.metric)));
        self.learned = now;
        if self.unconfirmed.is_some_and(|waiting| !is_newer(waiting.seq, offer.seq)) {
            self.unconfirmed = None;
        }
    }

    /// Notes that the waiting route is advertised, which binds this node.
    pub(super) fn tell_of_unconfirmed(&mut self) {
        assert!(!self.is_valid, "somebody who hears of it could be on the older route");
        if let Some(offer) = self.unconfirmed {
            self.bound = Some((offer.seq, offer.metric));
        }
    }

    fn is_over(&self, now: Instant, max_idletime: Duration) -> bool {
        let has_ended = self.way.is_some_and(|way| way.ends.is_some_and(|ends| ends < now));
        has_ended || now.since(self.used.unwrap_or(self.learned).max(self.learned)) > max_idletime
    }
}

#[derive(Debug)]
pub(super) struct RouteTable {
    routes: BTreeMap<Ipv4Addr, Route>,
    shares: Shares,
    pub(super) changes: Changes,
    max_idletime: Duration,
    /// The time for which a lost route is remembered.
    remembers: Duration,
    /// The time for which a route waits to be confirmed.
    waits: Duration,
}

impl RouteTable {
    pub(super) fn new(most: u32, max_idletime: Duration, remembers: Duration, waits: Duration) -> RouteTable {
        let (shares, changes) = (Shares::new(most), Changes::default());
        RouteTable { routes: BTreeMap::new(), shares, changes, max_idletime, remembers, waits }
    }

    pub(super) fn get(&self, dst: Ipv4Addr) -> Option<&Route> {
        self.routes.get(&dst)
    }

    /// A route as it is now: one that was unused for long is given up first.
    pub(super) fn get_mut(&mut self, now: Instant, dst: Ipv4Addr) -> Option<&mut Route> {
        let route = self.routes.get_mut(&dst)?;
        self.changes.note(dst);
        if route.is_valid && route.is_over(now, self.max_idletime) {
            (route.is_valid, route.until) = (false, now + self.remembers);
        }
        Some(route)
    }

    /// A route as it was left, without a check of its life.
    pub(super) fn peek_mut(&mut self, dst: Ipv4Addr) -> Option<&mut Route> {
        self.routes.get_mut(&dst)
    }

    pub(super) fn valid_at(&self, now: Instant, dst: Ipv4Addr) -> Option<&OfferedRoute> {
        self.routes.get(&dst).filter(|route| !route.is_over(now, self.max_idletime))?.valid()
    }

    /// The valid route to `dst`, if there is one.
    pub(super) fn valid(&mut self, now: Instant, dst: Ipv4Addr) -> Option<OfferedRoute> {
        self.get_mut(now, dst)?.valid().copied()
    }

    /// The entry of a destination that the node searches for, known or not, while there is room.
    pub(super) fn entry(&mut self, now: Instant, dst: Ipv4Addr) -> Option<&mut Route> {
        self.entry_of(now, dst, None)
    }

    /// Removes a destination of which neither a distance nor a route was ever known.
    pub(super) fn forget_wish(&mut self, dst: Ipv4Addr) {
        let is_wish = |route: &&Route| route.bound.is_none() && route.unconfirmed.is_none();
        if let Some(brought_by) = self.routes.get(&dst).filter(is_wish).map(|route| route.brought_by) {
            self.routes.remove(&dst);
            self.shares.remove(brought_by);
        }
    }

    /// The same for a destination that a neighbour names.
    fn entry_of(&mut self, now: Instant, dst: Ipv4Addr, by: Option<Ipv4Addr>) -> Option<&mut Route> {
        if !self.routes.contains_key(&dst) {
            if !self.shares.has_room(self.routes.len(), by) {
                self.sweep(now, &mut |_| {});
            }
            if !self.shares.has_room(self.routes.len(), by) {
                return None;
            }
            self.shares.add(by);
            let until = now + self.remembers;
            self.routes.insert(dst, Route { until, brought_by: by, ..Route::default() });
        }
        self.get_mut(now, dst)
    }

    /// A route over a confirmed neighbour is taken, if it is better.
    pub(super) fn offer(&mut self, now: Instant, dst: Ipv4Addr, offer: &OfferedRoute) -> OfferResult {
        match self.entry_of(now, dst, Some(offer.next_hop)).filter(|route| route.yields_to(offer)) {
            Some(route) => {
                route.take(now, offer);
                OfferResult::Yes
            }
            None => OfferResult::No,
        }
    }

    /// A route over an unconfirmed neighbour waits.
    pub(super) fn offer_unconfirmed(
        &mut self,
        now: Instant,
        dst: Ipv4Addr,
        offer: &OfferedRoute,
    ) -> OfferResult {
        let (until, waits) = (now + self.remembers, self.waits);
        let by = Some(offer.next_hop);
        let Some(route) = self.entry_of(now, dst, by).filter(|route| route.yields_to(offer)) else {
            return OfferResult::No;
        };
        let is_better = route.unconfirmed.is_none_or(|waiting| {
            is_newer(offer.seq, waiting.seq) || (offer.seq == waiting.seq && offer.metric < waiting.metric)
        });
        if !is_better {
            return OfferResult::No;
        }
        (route.unconfirmed, route.waits_until) = (Some(*offer), now + waits);
        route.lives_at_least(until);
        OfferResult::Yes
    }

    /// A neighbour is confirmed: returns the destinations whose waiting routes over it were taken.
    pub(super) fn confirm(&mut self, now: Instant, neighbour: Ipv4Addr) -> Vec<Ipv4Addr> {
        self.waiting_over(neighbour)
            .into_iter()
            .filter(|dst| {
                let Some(route) = self.get_mut(now, *dst) else { return false };
                let Some(offer) = route.unconfirmed.take() else { return false };
                let is_better = route.yields_to(&offer);
                if is_better {
                    route.take(now, &offer);
                }
                is_better
            })
            .collect()
    }

    /// A neighbour is blacklisted: returns the destinations whose routes over it waited.
    pub(super) fn doubt(&mut self, neighbour: Ipv4Addr) -> Vec<Ipv4Addr> {
        let gone = self.waiting_over(neighbour);
        for dst in &gone {
            if let Some(route) = self.routes.get_mut(dst) {
                route.unconfirmed = None;
            }
        }
        gone
    }

    fn waiting_over(&self, neighbour: Ipv4Addr) -> Vec<Ipv4Addr> {
        let waits = |route: &Route| route.unconfirmed.is_some_and(|offer| offer.next_hop == neighbour);
        self.routes.iter().filter(|(_, route)| waits(route)).map(|(dst, _)| *dst).collect()
    }

    pub(super) fn give_up(&mut self, now: Instant, dst: Ipv4Addr) {
        let until = now + self.remembers;
        self.changes.note(dst);
        if let Some(route) = self.routes.get_mut(&dst) {
            (route.is_valid, route.until) = (false, until);
        }
    }

    /// Destinations of valid routes over that neighbour.
    pub(super) fn over(&self, neighbour: Ipv4Addr) -> Vec<Ipv4Addr> {
        let is_over = |route: &Route| route.valid().is_some_and(|way| way.next_hop == neighbour);
        self.routes.iter().filter(|(_, route)| is_over(route)).map(|(dst, _)| *dst).collect()
    }

    /// Gives up unused routes, and forgets routes that were given up long ago. Calls `gone` for each one given up.
    pub(super) fn sweep(&mut self, now: Instant, gone: &mut dyn FnMut(Ipv4Addr)) {
        let (idle, until) = (self.max_idletime, now + self.remembers);
        let (shares, changes) = (&mut self.shares, &mut self.changes);
        self.routes.retain(|dst, route| {
            if route.is_valid && route.is_over(now, idle) {
                (route.is_valid, route.until) = (false, until);
                changes.note(*dst);
                gone(*dst);
            }
            if route.waits_until <= now {
                route.unconfirmed = None;
            }
            let is_known = route.is_valid || route.until >= now;
            if !is_known {
                shares.remove(route.brought_by);
            }
            is_known
        });
    }

    /// The routes that are valid now.
    pub(super) fn iter_valid(&self, now: Instant) -> impl Iterator<Item = (Ipv4Addr, &Route, &OfferedRoute)> {
        self.routes
            .iter()
            .filter(move |(_, route)| !route.is_over(now, self.max_idletime))
            .filter_map(|(dst, route)| Some((*dst, route, route.valid()?)))
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.routes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DST: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 9);
    const VIA: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
    const OTHER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 3);
    const NOW: Instant = Instant::from_secs(1);

    fn offer(seq: u16, metric: u8, next_hop: Ipv4Addr) -> OfferedRoute {
        OfferedRoute { seq, metric, link: LinkId(0), next_hop, ends: None }
    }

    fn table() -> RouteTable {
        let mut table =
            RouteTable::new(16, Duration::from_secs(200), Duration::from_secs(300), Duration::from_secs(12));
        assert_eq!(table.offer(NOW, DST, &offer(10, 4, VIA)), OfferResult::Yes);
        table
    }

    #[test]
    fn a_valid_route_yields_to_a_newer_number_or_to_a_shorter_way() {
        for (seq, metric, taken) in [
            (11, 9, OfferResult::Yes),
            (10, 3, OfferResult::Yes),
            (10, 4, OfferResult::No),
            (10, 5, OfferResult::No),
            (9, 1, OfferResult::No),
        ] {
            assert_eq!(table().offer(NOW, DST, &offer(seq, metric, OTHER)), taken, "{seq}/{metric}");
        }
    }

    #[test]
    fn a_route_that_is_gone_yields_to_nobody_who_was_farther_away() {
        for (seq, metric, taken) in [
            (11, 9, OfferResult::Yes),
            (10, 4, OfferResult::Yes),
            (10, 5, OfferResult::No),
            (9, 1, OfferResult::No),
        ] {
            let mut table = table();
            table.give_up(NOW, DST);
            assert_eq!(table.valid(NOW, DST), None);
            assert_eq!(table.offer(NOW, DST, &offer(seq, metric, OTHER)), taken, "{seq}/{metric}");
        }
    }

    #[test]
    fn numbers_are_newer_around_the_circle() {
        for (seq, than, newer) in
            [(1, u16::MAX, true), (u16::MAX, 1, false), (0x8000, 1, true), (0x8001, 1, false), (7, 7, false)]
        {
            assert_eq!(is_newer(seq, than), newer, "{seq:x} than {than:x}");
        }
    }

    #[test]
    fn a_way_over_who_may_not_hear_us_waits_beside_the_route() {
        let mut table = table();
        assert_eq!(table.offer_unconfirmed(NOW, DST, &offer(11, 2, OTHER)), OfferResult::Yes);
        assert_eq!(table.offer_unconfirmed(NOW, DST, &offer(11, 3, OTHER)), OfferResult::No);
        assert_eq!(table.valid(NOW, DST).map(|way| way.next_hop), Some(VIA));
        assert_eq!(table.get(DST).and_then(Route::newest).map(|way| way.next_hop), Some(OTHER));
        assert_eq!(table.confirm(NOW, OTHER), [DST]);
        assert_eq!(table.valid(NOW, DST), Some(offer(11, 2, OTHER)));
        table.offer_unconfirmed(NOW, DST, &offer(12, 2, VIA));
        assert_eq!(table.doubt(VIA), [DST]);
        assert!(table.confirm(NOW, VIA).is_empty());
        assert_eq!(table.valid(NOW, DST), Some(offer(11, 2, OTHER)));
    }

    #[test]
    fn what_was_told_of_binds_also_when_it_did_not_become_a_route() {
        let mut table = table();
        table.offer_unconfirmed(NOW, DST, &offer(11, 2, OTHER));
        table.give_up(NOW, DST);
        table.peek_mut(DST).expect("it is known").tell_of_unconfirmed();
        table.doubt(OTHER);
        assert_eq!(table.offer(NOW, DST, &offer(11, 3, VIA)), OfferResult::No);
        assert_eq!(table.offer(NOW, DST, &offer(11, 2, VIA)), OfferResult::Yes);
    }

    #[test]
    fn what_waited_is_held_against_what_has_come_since() {
        let mut table = table();
        table.offer_unconfirmed(NOW, DST, &offer(11, 5, OTHER));
        table.offer(NOW, DST, &offer(12, 6, VIA));
        assert!(table.confirm(NOW, OTHER).is_empty());
        assert_eq!(table.valid(NOW, DST), Some(offer(12, 6, VIA)));
    }

    #[test]
    fn a_route_that_nobody_uses_is_gone_and_then_forgotten() {
        let mut table = table();
        let at = Instant::from_secs;
        assert_eq!(table.valid(at(201), DST), Some(offer(10, 4, VIA)));
        table.sweep(at(202), &mut |dst| assert_eq!(dst, DST));
        assert_eq!((table.valid(at(202), DST), table.len()), (None, 1));
        table.sweep(at(502), &mut |_| panic!("given up once"));
        assert_eq!(table.len(), 1);
        table.sweep(at(503), &mut |_| panic!("given up once"));
        assert_eq!(table.len(), 0);
        let short = OfferedRoute { ends: Some(at(600)), ..offer(10, 4, VIA) };
        table.offer(at(510), DST, &short);
        assert_eq!(table.valid(at(601), DST), None, "the message said until when");
    }

    #[test]
    fn a_full_table_takes_no_more_destinations_but_those_that_the_node_looks_for() {
        let mut table = table();
        let mut taken = |by: Ipv4Addr, from: u32| {
            let all = (from..from + 100).map(|n| table.offer(NOW, Ipv4Addr::from_bits(n), &offer(1, 1, by)));
            all.filter(|taken| *taken == OfferResult::Yes).count()
        };
        assert_eq!(taken(VIA, 0), 3, "a neighbour has a quarter");
        assert_eq!((taken(OTHER, 100), taken(DST, 200), taken(Ipv4Addr::LOCALHOST, 300)), (4, 4, 0));
        assert!(table.entry(NOW, Ipv4Addr::from_bits(999)).is_some());
    }
}
