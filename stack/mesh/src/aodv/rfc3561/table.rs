//! Routes (RFC 3561 §6.2), and the one rule by which they change.
//!
//! The rule prevents loops: a number never falls, and a node that gives a route up raises its number first. The next
//! hop of a valid route therefore has a newer number, or an equal number and fewer hops. An expired route is given up
//! like a broken one, which the RFC leaves open. Otherwise a neighbour that still routes through us could reply to us.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use hopwise_core::{Instant, LinkId};

use crate::on_demand::rank::Wish;
use crate::on_demand::shares::{Changes, OfferResult, Shares};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Valid,
    Invalid,
    /// Invalid, and a local repair is under way.
    InRepair,
}

#[derive(Clone, Debug)]
pub(super) struct Route {
    pub(super) state: State,
    /// `None` for a neighbour whose number is unknown.
    pub(super) seq: Option<u32>,
    pub(super) hops: u8,
    pub(super) link: LinkId,
    pub(super) next_hop: Ipv4Addr,
    /// Neighbours that send through here, sorted.
    pub(super) precursors: Vec<Ipv4Addr>,
    /// The end of its validity. After that, the end of the time for which its number is remembered.
    pub(super) lives_until: Instant,
    /// The time of the last error about it.
    pub(super) last_rerr: Instant,
    /// Packets of this node itself have used it.
    pub(super) is_ours: bool,
    /// The last own packet, with `search_at_once`.
    pub(super) own_use: Option<OwnUse>,
    /// The hop count that connections last got.
    pub(super) reported_hops: Option<u8>,
    /// The neighbour that first reported it, unless the node itself searched for it.
    brought_by: Option<Ipv4Addr>,
}

/// An own packet on a route: its source and wish, and the end of the time for which it counts.
#[derive(Clone, Copy, Debug)]
pub(super) struct OwnUse {
    pub(super) src: IpAddr,
    pub(super) wish: Wish,
    pub(super) until: Instant,
}

/// A route in a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offer {
    pub(super) seq: Option<u32>,
    pub(super) hops: u8,
    pub(super) link: LinkId,
    pub(super) next_hop: Ipv4Addr,
    pub(super) lives_until: Instant,
}

/// Sequence numbers are compared around the circle (RFC 3561 §6.1).
pub(super) fn is_newer(seq: u32, than: u32) -> bool {
    seq.wrapping_sub(than) as i32 > 0
}

impl Route {
    pub(super) fn is_valid(&self) -> bool {
        self.state == State::Valid
    }

    /// Returns whether nothing was ever known of the destination.
    fn is_wish(&self) -> bool {
        self.state == State::Invalid && self.next_hop.is_unspecified() && self.seq.is_none()
    }

    /// No route, with what is remembered of the destination.
    fn none(seq: Option<u32>, until: Instant, brought_by: Option<Ipv4Addr>) -> Route {
        Route {
            state: State::Invalid,
            seq,
            hops: 0,
            link: LinkId(0),
            next_hop: Ipv4Addr::UNSPECIFIED,
            precursors: Vec::new(),
            lives_until: until,
            last_rerr: Instant::ZERO,
            is_ours: false,
            own_use: None,
            reported_hops: None,
            brought_by,
        }
    }

    pub(super) fn number_when_given_up(&self) -> Option<u32> {
        self.seq.map(|seq| if self.is_valid() { seq.wrapping_add(1) } else { seq })
    }

    pub(super) fn usable_hops(&self) -> Option<u8> {
        self.is_valid().then_some(self.hops)
    }

    /// RFC 3561 §6.2 and §6.7: a newer number wins, or an equal number if the route was given up or has more hops.
    fn yields_to(&self, offer: &Offer) -> bool {
        let Some(offered) = offer.seq else {
            // A neighbour itself sent it: no route is shorter.
            return !self.is_valid() || self.hops > 1;
        };
        match self.seq {
            None => true,
            Some(known) if known == offered => !self.is_valid() || offer.hops < self.hops,
            Some(known) => is_newer(offered, known),
        }
    }

    /// Raises the number, so that a node that routes through here cannot reply for it.
    pub(super) fn give_up(&mut self, until: Instant) {
        self.seq = self.seq.map(|seq| seq.wrapping_add(1));
        self.state = State::Invalid;
        self.lives_until = until;
    }

    pub(super) fn lives_at_least(&mut self, until: Instant) {
        self.lives_until = self.lives_until.max(until);
    }

    /// With the largest number of precursors an error is broadcast, so that one more need not be known.
    pub(super) fn add_precursor(&mut self, neighbour: Ipv4Addr) {
        if let Err(at) = self.precursors.binary_search(&neighbour)
            && self.precursors.len() < MOST_PRECURSORS
        {
            self.precursors.insert(at, neighbour);
        }
    }
}

const MOST_PRECURSORS: usize = 64;

#[derive(Debug)]
pub(super) struct Table {
    routes: BTreeMap<Ipv4Addr, Route>,
    shares: Shares,
    pub(super) changes: Changes,
    /// The time for which the number of a lost route is remembered.
    remembers: std::time::Duration,
}

impl Table {
    pub(super) fn new(most: u32, remembers: std::time::Duration) -> Table {
        Table { routes: BTreeMap::new(), shares: Shares::new(most), changes: Changes::default(), remembers }
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.routes.len()
    }

    pub(super) fn get(&self, dst: Ipv4Addr) -> Option<&Route> {
        self.routes.get(&dst)
    }

    /// A route as it was left, without a check of its life.
    pub(super) fn peek_mut(&mut self, dst: Ipv4Addr) -> Option<&mut Route> {
        self.changes.note(dst);
        self.routes.get_mut(&dst)
    }

    /// A route as it is now: an expired one is given up first.
    pub(super) fn get_mut(&mut self, now: Instant, dst: Ipv4Addr) -> Option<&mut Route> {
        let route = self.routes.get_mut(&dst)?;
        self.changes.note(dst);
        if route.is_valid() && route.lives_until < now {
            route.give_up(now + self.remembers);
        }
        Some(route)
    }

    pub(super) fn valid(&mut self, now: Instant, dst: Ipv4Addr) -> Option<&mut Route> {
        self.get_mut(now, dst).filter(|route| route.is_valid())
    }

    pub(super) fn offer(&mut self, now: Instant, dst: Ipv4Addr, offer: &Offer) -> OfferResult {
        if let Some(route) = self.get_mut(now, dst) {
            if !route.yields_to(offer) {
                return OfferResult::No;
            }
            let still = if route.is_valid() { route.lives_until } else { Instant::ZERO };
            route.state = State::Valid;
            route.seq = offer.seq.or(route.seq);
            (route.hops, route.link, route.next_hop) = (offer.hops, offer.link, offer.next_hop);
            route.lives_until = offer.lives_until.max(still);
            return OfferResult::Yes;
        }
        let by = Some(offer.next_hop);
        if !self.makes_room(now, by) {
            return OfferResult::No;
        }
        self.shares.add(by);
        self.changes.note(dst);
        let Offer { seq, hops, link, next_hop, lives_until } = *offer;
        self.routes.insert(
            dst,
            Route { state: State::Valid, hops, link, next_hop, ..Route::none(seq, lives_until, by) },
        );
        OfferResult::Yes
    }

    /// Returns whether there is room for one more, after expired routes are forgotten.
    fn makes_room(&mut self, now: Instant, by: Option<Ipv4Addr>) -> bool {
        if !self.shares.has_room(self.routes.len(), by) {
            self.sweep(now, &mut |_| {});
        }
        self.shares.has_room(self.routes.len(), by)
    }

    /// Adds an unknown destination, so that it is known as wanted by this node.
    pub(super) fn want(&mut self, now: Instant, dst: Ipv4Addr) {
        let until = now + self.remembers;
        if let Some(route) = self.get_mut(now, dst) {
            route.is_ours = true;
            if !route.is_valid() {
                route.lives_at_least(until);
            }
        } else if self.shares.has_room(self.routes.len(), None) {
            self.shares.add(None);
            let wish = Route { is_ours: true, ..Route::none(None, until, None) };
            self.routes.insert(dst, wish);
        }
    }

    /// Adds the number of a destination without a route, as an earlier start knew it. There is room: the earlier start
    /// had equally many routes.
    pub(super) fn remember(&mut self, now: Instant, dst: Ipv4Addr, seq: u32) {
        let by = Some(dst);
        if self.routes.insert(dst, Route::none(Some(seq), now + self.remembers, by)).is_none() {
            self.shares.add(by);
        }
    }

    /// Removes a destination that was only searched for.
    pub(super) fn forget_wish(&mut self, dst: Ipv4Addr) {
        if self.routes.get(&dst).is_some_and(Route::is_wish) {
            self.routes.remove(&dst);
            self.shares.remove(None);
        }
    }

    /// Gives up expired routes, and forgets routes that were given up long ago. Calls `gone` for each one given up.
    pub(super) fn sweep(&mut self, now: Instant, gone: &mut dyn FnMut(Ipv4Addr)) {
        let until = now + self.remembers;
        let (shares, changes) = (&mut self.shares, &mut self.changes);
        self.routes.retain(|dst, route| {
            if route.is_valid() && route.lives_until < now {
                route.give_up(until);
                changes.note(*dst);
                gone(*dst);
            }
            let is_known = route.state != State::Invalid || route.lives_until >= now;
            if !is_known {
                shares.remove(route.brought_by);
            }
            is_known
        });
    }

    /// Every route, and the place to note which of them change.
    pub(super) fn all_mut(&mut self) -> (impl Iterator<Item = (Ipv4Addr, &mut Route)>, &mut Changes) {
        (self.routes.iter_mut().map(|(dst, route)| (*dst, route)), &mut self.changes)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Ipv4Addr, &Route)> {
        self.routes.iter().map(|(dst, route)| (*dst, route))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const DST: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 9);
    const VIA: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
    const OTHER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 3);

    fn offer(seq: Option<u32>, hops: u8, next_hop: Ipv4Addr) -> Offer {
        Offer { seq, hops, link: LinkId(0), next_hop, lives_until: Instant::from_secs(3) }
    }

    fn table(seq: Option<u32>, hops: u8) -> Table {
        let mut table = Table::new(16, Duration::from_secs(15));
        assert_eq!(table.offer(Instant::ZERO, DST, &offer(seq, hops, VIA)), OfferResult::Yes);
        table
    }

    #[test]
    fn a_route_changes_for_a_newer_number_or_the_same_one_with_fewer_hops() {
        for (seq, hops, taken) in [
            (11, 9, OfferResult::Yes),
            (10, 3, OfferResult::Yes),
            (10, 4, OfferResult::No),
            (10, 5, OfferResult::No),
            (9, 1, OfferResult::No),
        ] {
            let mut table = table(Some(10), 4);
            assert_eq!(
                table.offer(Instant::ZERO, DST, &offer(Some(seq), hops, OTHER)),
                taken,
                "{seq}/{hops}"
            );
        }
        assert_eq!(table(None, 1).offer(Instant::ZERO, DST, &offer(Some(1), 5, OTHER)), OfferResult::Yes);
    }

    #[test]
    fn numbers_are_newer_around_the_circle() {
        for (seq, than, newer) in [
            (0, u32::MAX, true),
            (u32::MAX, 0, false),
            (0x8000_0000, 1, true),
            (0x8000_0001, 1, false),
            (7, 7, false),
        ] {
            assert_eq!(is_newer(seq, than), newer, "{seq:x} than {than:x}");
        }
        let mut table = table(Some(u32::MAX), 4);
        assert_eq!(table.offer(Instant::ZERO, DST, &offer(Some(0), 9, OTHER)), OfferResult::Yes);
    }

    #[test]
    fn who_routes_through_us_cannot_answer_once_a_route_has_run_out() {
        let mut table = table(Some(10), 4);
        let now = Instant::from_secs(4);
        assert_eq!(table.valid(now, DST).map(|route| route.hops), None);
        assert_eq!(table.get(DST).and_then(|route| route.seq), Some(11));
        assert_eq!(table.offer(now, DST, &offer(Some(10), 5, OTHER)), OfferResult::No);
        assert_eq!(table.offer(now, DST, &offer(Some(11), 5, OTHER)), OfferResult::Yes);
    }

    #[test]
    fn a_number_is_remembered_for_the_delete_period_and_then_forgotten() {
        let mut table = table(Some(10), 4);
        table.sweep(Instant::from_secs(4), &mut |dst| assert_eq!(dst, DST));
        table.sweep(Instant::from_secs(19), &mut |_| panic!("given up once"));
        assert_eq!(table.len(), 1);
        table.sweep(Instant::from_secs(20), &mut |_| panic!("given up once"));
        assert_eq!(table.len(), 0);
    }

    #[test]
    fn a_full_table_takes_no_more_destinations_but_those_that_the_node_looks_for() {
        let mut table = table(Some(10), 4);
        let mut taken = |by: Ipv4Addr, from: u32| {
            let offer = offer(Some(1), 1, by);
            let all = (from..from + 100).map(|n| table.offer(Instant::ZERO, Ipv4Addr::from_bits(n), &offer));
            all.filter(|taken| *taken == OfferResult::Yes).count()
        };
        assert_eq!(taken(VIA, 0), 3, "a neighbour has a quarter");
        assert_eq!((taken(OTHER, 100), taken(DST, 200), taken(Ipv4Addr::LOCALHOST, 300)), (4, 4, 0));
        let wanted = Ipv4Addr::from_bits(999);
        table.want(Instant::ZERO, wanted);
        assert_eq!(table.offer(Instant::ZERO, wanted, &offer(Some(1), 1, VIA)), OfferResult::Yes);
        // A forgotten route makes room again.
        let late = Instant::from_secs(40);
        table.sweep(late, &mut |_| {});
        table.sweep(late + Duration::from_secs(40), &mut |_| {});
        assert_eq!(table.len(), 0);
        let offer = Offer { lives_until: Instant::from_secs(99), ..offer(Some(1), 1, VIA) };
        let again = (0..9).map(|n| table.offer(Instant::from_secs(80), Ipv4Addr::from_bits(n), &offer));
        assert_eq!(again.filter(|taken| *taken == OfferResult::Yes).count(), 4);
    }
}
