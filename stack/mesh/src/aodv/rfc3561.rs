//! AODV as in RFC 3561.
//!
//! It differs from the RFC in these points. An expired route is given up like a broken one, with its number raised. A
//! node does not reply with a route that leads through the node that sent the request. A RERR of the next hop is
//! believed whatever its number, and the number is raised. A RREP's lifetime is capped by the time for which numbers
//! are remembered. Each of them prevents a loop or a black hole, and costs a discovery at most. Also, the wait after a
//! reboot (§6.13) is put off by three DELETE_PERIODs at most. Otherwise a stranger's packets would keep a node silent
//! for ever. A node that ended in order has not lost its numbers, and goes on from them without a wait. All its routes
//! are given up then, as if their links had broken.

mod discovery;
mod errors;
mod links;
mod repair;
mod replies;
mod requests;
mod table;

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use hopwise_core::agent::Path;
use hopwise_core::trace::DropReason;
use hopwise_core::{Cast, Instant, LinkId, NextHop};

use super::SeenRequest;
use super::messages::{AodvMessage, Extensions, MOST_HOPS, Rrep, Rreq};
use super::settings::Settings;
use super::{PORT, ack_seq, desk, icv};
use crate::on_demand::rank::{Wish, is_answer};
use crate::on_demand::searches::Searches;
use crate::on_demand::{Auth, Desk, OnDemand, RouteChange, Via, all_changed, path_of, v4};
use crate::protocol::RoutingSetup;
use crate::routing::{
    ControlMessage, Cx, Hop, RoutedPacket, Routing, RoutingOrder, RoutingVerdict, Undelivered,
};
use discovery::Plan;
use links::Links;
use table::{Offer, OwnUse, Route, State, Table};

/// The TTL of messages for one neighbour, which the RFC leaves open.
const NEAR: u8 = 255;

/// A node that follows RFC 3561.
#[derive(Debug)]
pub struct Aodv {
    settings: Settings,
    desk: Desk,
    seq: u32,
    request_id: u32,
    table: Table,
    searches: Searches<Plan>,
    links: Links,
    seen: SeenRequest,
    next_sweep: Instant,
    /// Data puts the wait of a node that has lost its numbers off no further (§6.13).
    wakes_by: Instant,
}

/// The time between two removals of expired routes.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);

/// The largest number of delete periods by which the wait of a node that has lost its numbers is put off.
const MOST_PUT_OFF: u32 = 3;

impl Aodv {
    /// A node without routes, at time 0.
    pub fn new(settings: Settings, setup: RoutingSetup) -> Aodv {
        let mut desk = desk(&settings, setup);
        let next_sweep = Instant::ZERO + desk.outbox.chance.up_to(SWEEP_INTERVAL);
        Aodv {
            seq: 0,
            request_id: 0,
            table: Table::new(settings.most_routes, settings.delete_period()),
            searches: Searches::new(settings.rreq_ratelimit),
            links: Links::new(desk.outbox.chance.up_to(settings.hello_interval)),
            seen: SeenRequest::default(),
            next_sweep,
            wakes_by: desk.wakes_at + settings.delete_period() * MOST_PUT_OFF,
            desk,
            settings,
        }
    }

    /// A route was found: waiting packets leave, and connections learn of it.
    fn found(&mut self, now: Instant, dst: Ipv4Addr) {
        self.searches.end(dst);
        self.report_route(dst);
        if let Some(route) = self.table.get(dst) {
            self.expect_hellos(now, Via { from: route.next_hop, link: route.link });
        }
        if self.desk.buffer.has(dst)
            && let Some(route) = self.table.valid(now, dst)
        {
            let until = now + self.settings.active_route_timeout;
            route.lives_at_least(until);
            // Own packets that waited use it now.
            route.own_use.iter_mut().for_each(|used| used.until = until);
            self.desk.release(now, dst, (route.link, route.next_hop), Duration::ZERO);
        }
    }

    /// §6.9 waits for a first hello; a next hop that falls silent before it would never be missed.
    fn expect_hellos(&mut self, now: Instant, via: Via) {
        if self.settings.hello {
            let life = self.settings.hello_life() + self.settings.hello_interval;
            self.links.expect(now, via, life);
        }
    }

    /// Each hop writes a packet of its own.
    fn tell_neighbour(&mut self, link: LinkId, to: Ipv4Addr, message: &[u8]) {
        self.desk.tell_neighbour(link, to, NEAR, message);
    }

    fn believe(&mut self, own: Ipv4Addr, peer: Ipv4Addr, extensions: &Extensions<'_>) {
        let said = ack_seq::read(&mut self.desk.ack_seqs, own, peer, extensions);
        let hops = self.table.get(peer).and_then(Route::usable_hops);
        self.desk.tell_arrivals(peer, said, hops);
    }

    /// Informs connections to a peer when its route comes, goes or gets longer.
    fn report_route(&mut self, dst: Ipv4Addr) {
        if let Some(route) = self.table.peek_mut(dst).filter(|route| route.is_ours) {
            let hops = route.usable_hops();
            self.desk.outbox.report_route(dst, &mut route.reported_hops, hops);
        }
    }

    fn sweep(&mut self, now: Instant) {
        let mut gone = Vec::new();
        self.table.sweep(now, &mut |dst| gone.push(dst));
        gone.into_iter().for_each(|dst| self.report_route(dst));
        self.links.forget(now);
        self.searches.forget(now);
    }

    /// A data packet keeps the routes to both its ends alive (§6.2).
    fn refresh(&mut self, now: Instant, packet: &RoutedPacket<'_>) {
        let until = now + self.settings.active_route_timeout;
        self.note_own_use(now, packet);
        for end in [v4(packet.dst), v4(packet.src)].into_iter().flatten() {
            let Some(route) = self.table.valid(now, end) else { continue };
            route.lives_at_least(until);
            let (next_hop, link) = (route.next_hop, route.link);
            if v4(packet.dst) == Some(end) {
                let via = Via { from: next_hop, link };
                self.expect_hellos(now, via);
                self.links.note_use(via, until);
            }
            if next_hop != end
                && let Some(neighbour) = self.table.valid(now, next_hop)
            {
                neighbour.lives_at_least(until);
            }
        }
    }

    /// Returns whether only a neighbour can have sent it. Routers do not pass broadcasts on, and every router lowers
    /// the TTL that messages to one node have (RFC 5082). A RREQ is always broadcast (§6.3), whatever its TTL.
    fn is_near(&self, control: &ControlMessage<'_>, message: &AodvMessage) -> bool {
        let is_for_one = control.cast != Cast::ToAll && control.dst != IpAddr::V4(Ipv4Addr::BROADCAST);
        let is_right = !is_for_one || (control.hop_limit == NEAR && !matches!(message, AodvMessage::Rreq(_)));
        is_right || !self.settings.gtsm
    }
}

impl OnDemand for Aodv {
    fn note_use(&mut self, now: Instant, src: Ipv4Addr, dst: Ipv4Addr) {
        let (src, dst) = (IpAddr::V4(src), IpAddr::V4(dst));
        self.refresh(now, &RoutedPacket { src, dst, from: None, hop_limit: 1, id: 0, packet: &[] });
    }

    fn note_came(&mut self, now: Instant, src: Ipv4Addr, dst: Ipv4Addr) {
        self.desk.note_came(now, src, dst);
    }

    /// §6.13 keeps no number across restarts.
    fn number(&self) -> Option<u16> {
        None
    }

    fn auth(&self) -> Option<&Auth> {
        self.desk.auth.as_ref()
    }

    fn auth_mut(&mut self) -> Option<&mut Auth> {
        self.desk.auth.as_mut()
    }

    fn lose(&mut self, now: Instant, link: LinkId, neighbour: Ipv4Addr) {
        self.lose_neighbour(now, Via { from: neighbour, link }, None);
    }

    fn routes(&self, now: Instant) -> Vec<(Ipv4Addr, Ipv4Addr, LinkId, u8)> {
        let is_valid = |(_, route): &(Ipv4Addr, &Route)| route.is_valid() && route.lives_until >= now;
        let row = |(dst, route): (Ipv4Addr, &Route)| (dst, route.next_hop, route.link, route.hops);
        self.table.iter().filter(is_valid).map(row).collect()
    }

    fn changes(&mut self, now: Instant) -> Vec<RouteChange> {
        let Some(noted) = self.table.changes.take() else { return all_changed(self.routes(now)) };
        let row = |dst: Ipv4Addr| {
            let route = self.table.get(dst).filter(|route| route.is_valid() && route.lives_until >= now);
            (dst, route.map(|route| (route.next_hop, route.link, route.hops)))
        };
        noted.into_iter().map(row).collect()
    }
}

impl Routing for Aodv {
    fn port(&self) -> Option<u16> {
        Some(PORT)
    }

    fn route(&mut self, cx: &Cx<'_>, packet: &RoutedPacket<'_>) -> RoutingVerdict {
        let dst = v4(packet.dst).filter(|dst| self.desk.trust.covers(*dst));
        let Some(dst) = dst else { return RoutingVerdict::Drop(DropReason::NoRoute) };
        let now = cx.now;
        if let Some(route) = self.table.valid(now, dst) {
            let is_first = packet.from.is_none() && !route.is_ours;
            route.is_ours |= is_first;
            let verdict =
                RoutingVerdict::Forward { link: route.link, via: NextHop::Neighbour(route.next_hop.into()) };
            self.refresh(now, packet);
            if self.settings.rerr_to_source {
                self.note_user(now, packet, dst);
            }
            if is_first {
                self.searches.note_known(dst, is_answer(packet.packet));
                self.report_route(dst);
            }
            return verdict;
        }
        if packet.from.is_none() {
            let wish = self.desk.wish(now, packet, self.searches.is_known(dst));
            if self.searches.rests(now, dst, wish.rank) {
                return RoutingVerdict::Drop(DropReason::NoRoute);
            }
            self.table.want(now, dst);
            self.note_own_use(now, packet);
            self.report_route(dst);
            self.desk.keep(now, (dst, wish), packet);
            self.search(cx, packet.src, (dst, wish));
            return RoutingVerdict::Keep;
        }
        if self.table.get(dst).is_some_and(|route| route.state == State::InRepair) {
            self.desk.keep(now, (dst, Wish::PASSED_ON), packet);
            return RoutingVerdict::Keep;
        }
        self.refuse_data(now, dst);
        RoutingVerdict::Drop(DropReason::NoRoute)
    }

    fn handle_control(&mut self, cx: &Cx<'_>, control: &ControlMessage<'_>) {
        let Some(opened) = self.desk.open(cx.now, control) else { return };
        let opened = if self.desk.is_signed() { opened } else { icv::strip(opened) };
        let (Some(from), Ok((message, extensions))) = (v4(control.src), AodvMessage::parse(opened)) else {
            self.desk.dropped(DropReason::RoutingMalformed, 0);
            return;
        };
        let is_off_link = control.from.is_some_and(|neighbour| neighbour != control.src);
        let is_own = self.desk.is_mine(from);
        if is_off_link || is_own || !self.desk.trust.covers(from) || !self.is_near(control, &message) {
            self.desk.dropped(DropReason::RoutingRefused, 0);
            return;
        }
        if !self.desk.may_hear(cx.now, from) {
            return;
        }
        let via = Via { from, link: control.link };
        self.links.heard(cx.now, from, self.settings.hello_life());
        match message {
            AodvMessage::Rreq(Rreq { hop_count, .. }) | AodvMessage::Rrep(Rrep { hop_count, .. })
                if hop_count >= MOST_HOPS =>
            {
                self.desk.dropped(DropReason::RoutingMalformed, 0);
            }
            AodvMessage::Rreq(rreq) => self.take_request(cx, via, control.hop_limit, &rreq, &extensions),
            AodvMessage::Rrep(rrep) if control.cast == Cast::ToAll => {
                self.take_hello(cx.now, via, &rrep, &extensions);
            }
            AodvMessage::Rrep(rrep) => self.take_reply(cx, via, &rrep, &extensions),
            AodvMessage::Rerr(rerr) => {
                self.take_error(cx.now, via, &rerr);
                self.ask_for_lost(cx);
            }
            AodvMessage::RrepAck => self.links.acknowledged(from),
        }
    }

    fn on_undelivered(&mut self, cx: &Cx<'_>, (link, to): Hop, packet: &RoutedPacket<'_>) -> Undelivered {
        let (Some(from), Some(dst)) = (v4(to), v4(packet.dst)) else { return Undelivered::Drop };
        let fate = self.take_failure(cx, Via { from, link }, dst, packet);
        self.ask_for_lost(cx);
        fate
    }

    fn handle_timeout(&mut self, cx: &Cx<'_>) {
        let now = cx.now;
        self.desk.drop_late(now);
        if self.next_sweep <= now {
            self.next_sweep = now + SWEEP_INTERVAL;
            self.sweep(now);
        }
        self.go_on_searching(cx);
        self.watch_links(now);
        self.ask_for_lost(cx);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let search = self.searches.next(self.desk.wakes_at);
        self.desk.next([search, self.links.next(&self.settings), Some(self.next_sweep)])
    }

    fn poll_order(&mut self, now: Instant) -> Option<RoutingOrder> {
        self.desk.next_order(now)
    }

    fn next_hop(&self, now: Instant, dst: IpAddr) -> Option<(LinkId, IpAddr)> {
        let route = self.table.get(v4(dst)?)?;
        let is_usable = route.is_valid() && route.lives_until >= now;
        is_usable.then(|| (route.link, route.next_hop.into()))
    }

    fn path(&self, peer: IpAddr) -> Path {
        path_of(v4(peer).and_then(|peer| self.table.get(peer)).and_then(Route::usable_hops))
    }

    fn counts(&self) -> (u64, u64) {
        (self.desk.discoveries, self.desk.failures)
    }

    /// Its own number, and the destinations' numbers as they are once their routes are given up.
    fn numbers(&self) -> Vec<(Ipv4Addr, u32)> {
        let of = |(dst, route): (Ipv4Addr, &Route)| Some((dst, route.number_when_given_up()?));
        std::iter::once((self.desk.own, self.seq)).chain(self.table.iter().filter_map(of)).collect()
    }

    fn go_on_from(&mut self, now: Instant, numbers: &[(Ipv4Addr, u32)]) -> bool {
        for (node, seq) in numbers {
            if *node == self.desk.own {
                // Each request takes one of both, so no request has had a higher id.
                (self.seq, self.request_id) = (*seq, *seq);
            } else {
                self.table.remember(now, *node, *seq);
            }
        }
        let has_own = numbers.iter().any(|(node, _)| *node == self.desk.own);
        if has_own {
            (self.desk.wakes_at, self.wakes_by) = (now, now);
        }
        has_own
    }
}

#[cfg(test)]
mod hostile;
#[cfg(test)]
mod tests;
