//! AODVv2, which was DYMO before: routes on demand, in the packets of RFC 5444.
//!
//! It follows draft-ietf-manet-aodvv2-16, the last one of the working group, with hop counts as the metric, for IPv4
//! hosts. No node replies for another. A link is used once it is known to work in both directions (RREP_Ack). A node
//! that does not acknowledge a reply is ignored for a while.
//!
//! It differs from the draft in these points. A destination whose request has a newer number than its own continues
//! from that number, as in RFC 3561. A node that lost its number is thus found. A request that does not improve the
//! table is not passed on. A number is remembered as long as data comes through here. Next hops in use may be probed
//! with RREP_Ack requests, if no link layer reports losses: the draft leaves that to others.

mod discovery;
mod errors;
pub mod messages;
mod neighbours;
mod replies;
mod requests;
mod seen;
mod settings;
mod table;
#[cfg(test)]
mod testing;

use std::net::{IpAddr, Ipv4Addr};

use hopwise_core::agent::Path;
use hopwise_core::trace::DropReason;
use hopwise_core::{Instant, LinkId, NextHop, Rx};

pub use settings::Settings;

use crate::on_demand::ack_seq::AckSeqs;
use crate::on_demand::rank::{Wish, is_answer};
use crate::on_demand::rates::{Errors, Throttle};
use crate::on_demand::searches::Searches;
use crate::on_demand::{
    BufferBounds, Change, Desk, Form, Interface, Keys, Manners, OnDemand, Outbox, Trust, all_changed,
    path_of, v4,
};
use crate::rfc5444::{ALL_ROUTERS, Message, PORT, Packet, TooLong, icv};
use crate::routing::{Control, Cx, Order, Routed, Routing, Undelivered, Verdict};
use errors::LatestErrors;
use messages::Refused;
use neighbours::Neighbours;
use seen::Seen;
use table::{Offer, Route, Table};

/// Messages come from neighbours alone (RFC 5082).
const HOP_LIMIT: u8 = 255;

const FORM: Form = Form { sign: icv::sign, verify: icv::verify, cost: icv::COST };

/// The configuration of a node, given at construction.
#[derive(Clone, Debug)]
pub struct Config {
    /// The constants of the protocol.
    pub settings: Settings,
    /// At least one; the first one's address is the node's name.
    pub interfaces: Vec<Interface>,
    /// Other addresses that this node makes reachable and searches for.
    pub serves: Vec<Ipv4Addr>,
    /// The highest number that it may have used before, 0 for none.
    pub seq: u16,
    /// Seed of all random draws.
    pub seed: u64,
    /// The start of the counters in signed messages: higher at every start of the same node.
    pub counter: u64,
    /// A node that may have routed before and has lost its number sends no requests or replies until then.
    pub wakes_at: Instant,
    /// The limits on messages of others.
    pub trust: Trust,
}

/// A node that runs AODVv2.
#[derive(Debug)]
pub struct Aodvv2 {
    settings: Settings,
    desk: Desk,
    serves: Vec<Ipv4Addr>,
    /// Never 0, which stands for an unknown number.
    seq: u16,
    table: Table,
    /// With the number of the next request.
    searches: Searches<u8>,
    neighbours: Neighbours,
    seen: Seen,
    errors: Errors,
    /// Limits on messages of neighbours, and on messages that these cause.
    heard: Throttle,
    answers: Throttle,
    latest: LatestErrors,
    next_sweep: Instant,
    wakes_at: Instant,
}

/// The neighbour and the link that a message came from.
#[derive(Clone, Copy, Debug)]
struct Via {
    from: Ipv4Addr,
    link: LinkId,
}

impl Aodvv2 {
    /// A node without routes, at time 0.
    pub fn new(config: Config) -> Aodvv2 {
        let Config { settings, interfaces, serves, seq, seed, counter, wakes_at, trust } = config;
        let mut outbox = Outbox::new(Manners { port: PORT, everyone: ALL_ROUTERS }, seed);
        let next_sweep = Instant::ZERO + outbox.chance.up_to(settings.sweep_interval);
        let bounds =
            BufferBounds { packets: settings.buffer_packets, time: settings.buffer_time, is_shared: true };
        let ack_seqs = AckSeqs::new(settings.ack_seq, settings.key, counter);
        Aodvv2 {
            desk: Desk::new(interfaces, outbox, bounds, ack_seqs).with_trust(trust, FORM, counter),
            serves,
            seq,
            table: Table::new(
                settings.most_routes,
                settings.max_idletime,
                settings.max_seqnum_lifetime,
                settings.rtemsg_entry_time,
            ),
            searches: Searches::new(settings.rreq_ratelimit),
            neighbours: Neighbours::default(),
            seen: Seen::default(),
            errors: Errors::new(settings.rerr_ratelimit),
            heard: Throttle::new(settings.message_ratelimit),
            answers: Throttle::new(settings.answer_ratelimit),
            latest: LatestErrors::default(),
            next_sweep,
            wakes_at,
            settings,
        }
    }

    /// The number of our next RREQ or RREP.
    fn next_seq(&mut self) -> u16 {
        self.seq = self.seq.checked_add(1).unwrap_or(1);
        self.seq
    }

    fn is_mine(&self, address: Ipv4Addr) -> bool {
        self.serves.contains(&address) || self.desk.has_address(address)
    }

    fn is_asleep(&self, now: Instant) -> bool {
        now < self.wakes_at
    }

    /// Returns whether one more message may be sent because of that neighbour's messages.
    fn may_answer(&mut self, now: Instant, via: Via) -> bool {
        let may = self.answers.take(now, via.from);
        if !may {
            self.desk.dropped(DropReason::RoutingRateLimited, 0);
        }
        may
    }

    fn tell_everyone(&mut self, at: Option<Instant>, message: Message) {
        match Packet::of(message).bytes() {
            Ok(bytes) => self.desk.tell_everyone(at, HOP_LIMIT, &bytes),
            Err(TooLong) => self.desk.dropped(DropReason::RoutingRefused, 0),
        }
    }

    fn tell_neighbour(&mut self, via: Via, messages: Vec<Message>) {
        match (Packet { messages, ..Packet::default() }).bytes() {
            Ok(bytes) => self.desk.tell_neighbour(via.link, via.from, HOP_LIMIT, &bytes),
            Err(TooLong) => self.desk.dropped(DropReason::RoutingRefused, 0),
        }
    }

    /// A route was found: waiting packets leave, and connections learn of it.
    fn found(&mut self, now: Instant, dst: Ipv4Addr) {
        self.searches.end(dst);
        self.report_route(dst);
        if self.desk.buffer.has(dst)
            && let Some(route) = self.table.valid(now, dst)
        {
            self.use_route(now, dst);
            self.desk.release(now, dst, (route.link, route.next_hop), std::time::Duration::ZERO);
        }
    }

    fn use_route(&mut self, now: Instant, dst: Ipv4Addr) {
        let Some(route) = self.table.get_mut(now, dst) else { return };
        route.note_use(now);
        if let Some(Offer { next_hop, link, .. }) = route.valid().copied() {
            self.neighbours.note_use(now, Via { from: next_hop, link }, &self.settings);
        }
    }

    /// Informs connections to a peer when its route comes, goes or gets longer.
    fn report_route(&mut self, dst: Ipv4Addr) {
        if let Some(route) = self.table.peek_mut(dst).filter(|route| route.is_ours) {
            let hops = route.hops();
            self.desk.report_route(dst, &mut route.reported_hops, hops);
        }
    }

    fn believe(&mut self, own: Ipv4Addr, peer: Ipv4Addr, message: &Message) {
        let (open, signed) = messages::statements(message);
        let said = self.desk.ack_seqs.read(own, peer, open, signed);
        let hops = self.table.get(peer).and_then(Route::hops);
        self.desk.tell_arrivals(peer, said, hops);
    }

    fn take_message(&mut self, cx: &Cx<'_>, via: Via, message: &Message) -> Result<(), Refused> {
        match message.kind {
            messages::RREQ => self.take_request(cx, via, message),
            messages::RREP => self.take_reply(cx, via, message),
            messages::RERR => self.take_error(cx.now, via, message),
            // One answer is enough for all requests of a packet.
            messages::RREP_ACK if messages::is_request(message) => Ok(()),
            messages::RREP_ACK => {
                self.take_ack(cx, via);
                Ok(())
            }
            // A message of another protocol, which may travel in the same packet.
            _ => Ok(()),
        }
    }

    fn sweep(&mut self, now: Instant) {
        let mut gone = Vec::new();
        self.table.sweep(now, &mut |dst| gone.push(dst));
        gone.into_iter().for_each(|dst| self.report_route(dst));
        self.neighbours.forget(now, self.settings.max_idletime);
        self.latest.forget(now);
        self.searches.forget(now);
    }
}

impl OnDemand for Aodvv2 {
    /// Packets in the reverse direction keep the reverse route alive.
    fn note_use(&mut self, now: Instant, _src: Ipv4Addr, dst: Ipv4Addr) {
        self.use_route(now, dst);
    }

    fn note_came(&mut self, now: Instant, src: Ipv4Addr, dst: Ipv4Addr) {
        for (here, there) in [(dst, src), (src, dst)] {
            if self.is_mine(here) {
                self.desk.note_named(now, (here, there));
            }
        }
    }

    fn number(&self) -> Option<u16> {
        Some(self.seq)
    }

    fn signed_stamps(&self) -> Vec<u64> {
        self.desk.signed_stamps()
    }

    fn heard_stamps(&self) -> Vec<(Ipv4Addr, u64)> {
        self.desk.heard_stamps()
    }

    fn remember_stamps(&mut self, signed: &[u64], heard: &[(Ipv4Addr, u64)]) {
        self.desk.remember_stamps(signed, heard);
    }

    fn set_clock(&mut self, now: Instant, wall: u64) {
        self.desk.set_clock(now, wall);
    }

    fn change_keys(&mut self, keys: Keys) {
        self.desk.change_keys(keys);
    }

    fn lose(&mut self, now: Instant, link: LinkId, neighbour: Ipv4Addr) {
        self.lose_neighbour(now, Via { from: neighbour, link });
    }

    fn routes(&self, now: Instant) -> Vec<(Ipv4Addr, Ipv4Addr, LinkId, u8)> {
        let row =
            |(dst, _, route): (Ipv4Addr, &Route, &Offer)| (dst, route.next_hop, route.link, route.metric);
        self.table.iter_valid(now).map(row).collect()
    }

    fn changes(&mut self, now: Instant) -> Vec<Change> {
        let Some(noted) = self.table.changes.take() else {
            return all_changed(self.routes(now));
        };
        let row = |dst: Ipv4Addr| {
            let route = self.table.valid_at(now, dst);
            (dst, route.map(|route| (route.next_hop, route.link, route.metric)))
        };
        noted.into_iter().map(row).collect()
    }
}

impl Routing for Aodvv2 {
    fn port(&self) -> Option<u16> {
        Some(PORT)
    }

    fn route(&mut self, cx: &Cx<'_>, packet: &Routed<'_>) -> Verdict {
        let dst = v4(packet.dst).filter(|dst| self.desk.trust.covers(*dst));
        let Some(dst) = dst else { return Verdict::Drop(DropReason::NoRoute) };
        let now = cx.now;
        let is_own = packet.from.is_none();
        if let Some(route) = self.table.valid(now, dst) {
            if is_own && let Some(route) = self.table.get_mut(now, dst) {
                if !route.is_ours {
                    self.searches.note_known(dst, is_answer(packet.packet));
                }
                route.is_ours = true;
                self.report_route(dst);
            }
            self.use_route(now, dst);
            return Verdict::Forward { link: route.link, via: NextHop::Neighbour(route.next_hop.into()) };
        }
        let unconfirmed = self.table.get(dst).and_then(|route| route.unconfirmed);
        let is_waiting = unconfirmed.is_some_and(|route| self.neighbours.is_asked(route.next_hop));
        if !is_own && !is_waiting {
            self.refuse_data(now, v4(packet.src), dst);
            return Verdict::Drop(DropReason::NoRoute);
        }
        let wish =
            if is_own { self.desk.wish(now, packet, self.searches.is_known(dst)) } else { Wish::PASSED_ON };
        if is_own && !is_waiting && self.searches.rests(now, dst, wish.rank) {
            return Verdict::Drop(DropReason::NoRoute);
        }
        if is_own && let Some(route) = self.table.entry(now, dst) {
            route.is_ours = true;
            self.report_route(dst);
        }
        self.desk.keep(now, (dst, wish), packet);
        if is_own && !is_waiting {
            self.search(cx, packet.src, (dst, wish));
        }
        Verdict::Keep
    }

    fn handle_control(&mut self, cx: &Cx<'_>, control: &Control<'_>) {
        let Some(opened) = self.desk.open(cx.now, control) else { return };
        let (Some(from), Ok(packet)) = (v4(control.src), Packet::parse(opened)) else {
            self.desk.dropped(DropReason::RoutingMalformed, 0);
            return;
        };
        let is_off_link = control.from.is_some_and(|neighbour| neighbour != control.src);
        let has_travelled = control.hop_limit != HOP_LIMIT;
        if is_off_link || has_travelled || self.is_mine(from) || !self.desk.trust.covers(from) {
            self.desk.dropped(DropReason::RoutingRefused, 0);
            return;
        }
        let via = Via { from, link: control.link };
        if !self.heard.take(cx.now, from) {
            self.desk.dropped(DropReason::RoutingRateLimited, 0);
            return;
        }
        self.neighbours.heard(cx.now, via);
        for message in &packet.messages {
            if !self.heard.take(cx.now, from) {
                self.desk.dropped(DropReason::RoutingRateLimited, 0);
                return;
            }
            match self.take_message(cx, via, message) {
                Ok(()) => {}
                Err(Refused::Malformed) => self.desk.dropped(DropReason::RoutingMalformed, 0),
                Err(Refused::Foreign) => self.desk.dropped(DropReason::RoutingRefused, 0),
            }
        }
        let asks = |message: &Message| message.kind == messages::RREP_ACK && messages::is_request(message);
        if packet.messages.iter().any(asks) && self.may_answer(cx.now, via) {
            self.tell_neighbour(via, vec![messages::rrep_ack(false)]);
        }
    }

    fn on_overheard(&mut self, _now: Instant, _rx: &Rx<'_>) {}

    fn on_undelivered(&mut self, cx: &Cx<'_>, link: LinkId, to: IpAddr, packet: &Routed<'_>) -> Undelivered {
        let (Some(from), Some(dst)) = (v4(to), v4(packet.dst)) else { return Undelivered::Drop };
        self.take_failure(cx, Via { from, link }, dst, packet)
    }

    fn handle_timeout(&mut self, cx: &Cx<'_>) {
        let now = cx.now;
        self.desk.drop_late(now);
        if self.next_sweep <= now {
            self.next_sweep = now + self.settings.sweep_interval;
            self.sweep(now);
        }
        self.go_on_searching(cx);
        self.watch_neighbours(cx);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let times = [
            self.desk.buffer.next(),
            self.desk.outbox.next(),
            self.searches.next(self.wakes_at),
            self.neighbours.next(),
        ];
        times.into_iter().flatten().chain([self.next_sweep]).min()
    }

    fn poll_order(&mut self, now: Instant) -> Option<Order> {
        self.desk.next_order(now)
    }

    fn next_hop(&self, now: Instant, dst: IpAddr) -> Option<(LinkId, IpAddr)> {
        let route = self.table.valid_at(now, v4(dst)?)?;
        Some((route.link, route.next_hop.into()))
    }

    fn path(&self, peer: IpAddr) -> Path {
        path_of(v4(peer).and_then(|peer| self.table.get(peer)).and_then(Route::hops))
    }

    fn counts(&self) -> (u64, u64) {
        (self.desk.discoveries, self.desk.failures)
    }
}

#[cfg(test)]
mod hostile;
#[cfg(test)]
mod tests;
