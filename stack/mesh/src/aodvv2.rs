//! AODVv2, which was DYMO before: routes on demand, in the packets of RFC 5444.
//!
//! It follows draft-ietf-manet-aodvv2-16, the last one of the working group, with hop counts as the metric, for IPv4
//! hosts. No node replies for another. A link is used once it is known to work in both directions (RREP_Ack). A node
//! that does not acknowledge a reply is ignored for a while.
//!
//! It differs from the draft in these points. A destination whose request has a newer number than its own continues
//! from that number, as in RFC 3561. A node that lost its number is thus found. A request that does not improve the
//! table is not passed on. A number is remembered as long as data comes through here. Next hops in use may be probed
//! with RREP_Ack requests, if no link layer reports losses. The draft leaves such probes to implementations.

mod discovery;
mod errors;
pub mod messages;
mod neighbours;
mod requests;
mod table;
#[cfg(test)]
mod testing;

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use hopwise_core::agent::Path;
use hopwise_core::trace::DropReason;
use hopwise_core::{Instant, LinkId, NextHop};

use crate::constants::{ConstantForm, MOST_PACKETS, MOST_ROUTES, OFF, OnlySimulated, constants};
use crate::on_demand::ack_seq::AckSeqs;
use crate::on_demand::rank::{Wish, is_answer};
use crate::on_demand::rates::Limits;
use crate::on_demand::searches::Searches;
use crate::on_demand::{
    Auth, AuthForm, BufferBounds, Desk, Key, Manners, OnDemand, RouteChange, Via, all_changed, path_of, v4,
};
use crate::protocol::{DaemonProtocol, LiveRouter, PacketMark, RoutingProtocol, RoutingSetup};
use crate::rfc5444::{ALL_ROUTERS, PORT, Packet, Rfc5444Message, TooLong, icv};
use crate::routing::{
    ControlMessage, Cx, Hop, RoutedPacket, Routing, RoutingOrder, RoutingVerdict, Undelivered,
};
use discovery::ProcessedRequests;
use errors::LatestErrors;
use messages::{MessageRefusal, MessageResult};
use neighbours::Neighbours;
use table::{OfferedRoute, Route, RouteTable};

/// Messages come from neighbours alone (RFC 5082).
const HOP_LIMIT: u8 = 255;
/// The longest time that a packet waits for a route.
const BUFFER_TIME: Duration = Duration::from_secs(30);
/// The time between two removals of expired routes.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);

const FORM: AuthForm = AuthForm { sign: icv::sign, verify: icv::verify, cost: icv::COST };

/// AODVv2 in the registry.
pub static DESCRIPTOR: RoutingProtocol = RoutingProtocol {
    name: "dymo",
    summary: "AODVv2 (draft-ietf-manet-aodvv2-16), formerly DYMO.",
    constants: Settings::CONSTANTS,
    subject: "AODVv2",
    is_flat: false,
    mark: PacketMark::Port(PORT),
    needs_positions: false,
    live: LiveRouter::Daemon,
    daemon: Some(DaemonProtocol {
        port: PORT,
        everyone: ALL_ROUTERS,
        rest: |constants| Settings::from(constants).max_seqnum_lifetime,
        make: |constants, setup| Box::new(Aodvv2::new(constants.into(), setup)),
    }),
    make: |constants, setup| Box::new(Aodvv2::new(constants.into(), setup)),
};

/// A node that runs AODVv2.
#[derive(Debug)]
pub struct Aodvv2 {
    settings: Settings,
    desk: Desk,
    /// Never 0, which stands for an unknown number.
    seq: u16,
    table: RouteTable,
    /// With the number of the next request.
    searches: Searches<u8>,
    neighbours: Neighbours,
    seen: ProcessedRequests,
    latest: LatestErrors,
    next_sweep: Instant,
}

impl Aodvv2 {
    /// A node without routes, at time 0.
    pub fn new(settings: Settings, setup: RoutingSetup) -> Aodvv2 {
        let bounds = BufferBounds { packets: settings.buffer_packets, time: BUFFER_TIME, is_shared: true };
        let (seq, counter) = (setup.seq, setup.counter);
        let ack_seqs = AckSeqs::new(settings.ack_seq, settings.key, counter);
        let manners = Manners { port: PORT, everyone: ALL_ROUTERS };
        let limits =
            Limits::new(settings.message_ratelimit, settings.answer_ratelimit, settings.rerr_ratelimit);
        let mut desk = Desk::new(setup, manners, bounds, ack_seqs).with_limits(limits).signed(FORM, counter);
        Aodvv2 {
            next_sweep: Instant::ZERO + desk.outbox.chance.up_to(SWEEP_INTERVAL),
            desk,
            seq,
            table: RouteTable::new(
                settings.most_routes,
                settings.max_idletime,
                settings.max_seqnum_lifetime,
                settings.rtemsg_entry_time,
            ),
            searches: Searches::new(settings.rreq_ratelimit),
            neighbours: Neighbours::default(),
            seen: ProcessedRequests::default(),
            latest: LatestErrors::default(),
            settings,
        }
    }

    /// The number of our next RREQ or RREP.
    fn next_seq(&mut self) -> u16 {
        self.seq = self.seq.checked_add(1).unwrap_or(1);
        self.seq
    }

    fn tell_everyone(&mut self, at: Option<Instant>, message: Rfc5444Message) {
        match Packet::of(message).bytes() {
            Ok(bytes) => self.desk.tell_everyone(at, HOP_LIMIT, &bytes),
            Err(TooLong) => self.desk.dropped(DropReason::RoutingRefused, 0),
        }
    }

    fn tell_neighbour(&mut self, via: Via, messages: Vec<Rfc5444Message>) {
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
            self.desk.release(now, dst, (route.link, route.next_hop), Duration::ZERO);
        }
    }

    fn use_route(&mut self, now: Instant, dst: Ipv4Addr) {
        let Some(route) = self.table.get_mut(now, dst) else { return };
        route.note_use(now);
        if let Some(OfferedRoute { next_hop, link, .. }) = route.valid().copied() {
            self.neighbours.note_use(now, Via { from: next_hop, link }, &self.settings);
        }
    }

    /// Informs connections to a peer when its route comes, goes or gets longer.
    fn report_route(&mut self, dst: Ipv4Addr) {
        if let Some(route) = self.table.peek_mut(dst).filter(|route| route.is_ours) {
            let hops = route.hops();
            self.desk.outbox.report_route(dst, &mut route.reported_hops, hops);
        }
    }

    fn believe(&mut self, own: Ipv4Addr, peer: Ipv4Addr, message: &Rfc5444Message) {
        let (open, signed) = messages::statements(message);
        let said = self.desk.ack_seqs.read(own, peer, open, signed);
        let hops = self.table.get(peer).and_then(Route::hops);
        self.desk.tell_arrivals(peer, said, hops);
    }

    fn take_message(&mut self, cx: &Cx<'_>, via: Via, message: &Rfc5444Message) -> MessageResult {
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
            // A message of another protocol, which may travel in a packet with ours.
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
        self.desk.note_came(now, src, dst);
    }

    fn number(&self) -> Option<u16> {
        Some(self.seq)
    }

    fn auth(&self) -> Option<&Auth> {
        self.desk.auth.as_ref()
    }

    fn auth_mut(&mut self) -> Option<&mut Auth> {
        self.desk.auth.as_mut()
    }

    fn lose(&mut self, now: Instant, link: LinkId, neighbour: Ipv4Addr) {
        self.lose_neighbour(now, Via { from: neighbour, link });
    }

    fn routes(&self, now: Instant) -> Vec<(Ipv4Addr, Ipv4Addr, LinkId, u8)> {
        let row = |(dst, _, route): (Ipv4Addr, &Route, &OfferedRoute)| {
            (dst, route.next_hop, route.link, route.metric)
        };
        self.table.iter_valid(now).map(row).collect()
    }

    fn changes(&mut self, now: Instant) -> Vec<RouteChange> {
        let Some(noted) = self.table.changes.take() else { return all_changed(self.routes(now)) };
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

    fn route(&mut self, cx: &Cx<'_>, packet: &RoutedPacket<'_>) -> RoutingVerdict {
        let dst = v4(packet.dst).filter(|dst| self.desk.trust.covers(*dst));
        let Some(dst) = dst else { return RoutingVerdict::Drop(DropReason::NoRoute) };
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
            return RoutingVerdict::Forward {
                link: route.link,
                via: NextHop::Neighbour(route.next_hop.into()),
            };
        }
        let unconfirmed = self.table.get(dst).and_then(|route| route.unconfirmed);
        let is_waiting = unconfirmed.is_some_and(|route| self.neighbours.is_asked(route.next_hop));
        if !is_own && !is_waiting {
            self.refuse_data(now, v4(packet.src), dst);
            return RoutingVerdict::Drop(DropReason::NoRoute);
        }
        let wish =
            if is_own { self.desk.wish(now, packet, self.searches.is_known(dst)) } else { Wish::PASSED_ON };
        if is_own && !is_waiting && self.searches.rests(now, dst, wish.rank) {
            return RoutingVerdict::Drop(DropReason::NoRoute);
        }
        if is_own && let Some(route) = self.table.entry(now, dst) {
            route.is_ours = true;
            self.report_route(dst);
        }
        self.desk.keep(now, (dst, wish), packet);
        if is_own && !is_waiting {
            self.search(cx, packet.src, (dst, wish));
        }
        RoutingVerdict::Keep
    }

    fn handle_control(&mut self, cx: &Cx<'_>, control: &ControlMessage<'_>) {
        let Some(opened) = self.desk.open(cx.now, control) else { return };
        let (Some(from), Ok(packet)) = (v4(control.src), Packet::parse(opened)) else {
            self.desk.dropped(DropReason::RoutingMalformed, 0);
            return;
        };
        let is_off_link = control.from.is_some_and(|neighbour| neighbour != control.src);
        let has_travelled = control.hop_limit != HOP_LIMIT;
        if is_off_link || has_travelled || self.desk.is_mine(from) || !self.desk.trust.covers(from) {
            self.desk.dropped(DropReason::RoutingRefused, 0);
            return;
        }
        let via = Via { from, link: control.link };
        if !self.desk.may_hear(cx.now, from) {
            return;
        }
        self.neighbours.heard(cx.now, via);
        for message in &packet.messages {
            if !self.desk.may_hear(cx.now, from) {
                return;
            }
            match self.take_message(cx, via, message) {
                Ok(()) => {}
                Err(MessageRefusal::Malformed) => self.desk.dropped(DropReason::RoutingMalformed, 0),
                Err(MessageRefusal::Foreign) => self.desk.dropped(DropReason::RoutingRefused, 0),
            }
        }
        let asks =
            |message: &Rfc5444Message| message.kind == messages::RREP_ACK && messages::is_request(message);
        if packet.messages.iter().any(asks) && self.desk.may_answer(cx.now, via.from) {
            self.tell_neighbour(via, vec![messages::rrep_ack(false)]);
        }
    }

    fn on_undelivered(&mut self, cx: &Cx<'_>, (link, to): Hop, packet: &RoutedPacket<'_>) -> Undelivered {
        let (Some(from), Some(dst)) = (v4(to), v4(packet.dst)) else { return Undelivered::Drop };
        self.take_failure(cx, Via { from, link }, dst, packet)
    }

    fn handle_timeout(&mut self, cx: &Cx<'_>) {
        let now = cx.now;
        self.desk.drop_late(now);
        if self.next_sweep <= now {
            self.next_sweep = now + SWEEP_INTERVAL;
            self.sweep(now);
        }
        self.go_on_searching(cx);
        self.watch_neighbours(cx);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let search = self.searches.next(self.desk.wakes_at);
        self.desk.next([search, self.neighbours.next(), Some(self.next_sweep)])
    }

    fn poll_order(&mut self, now: Instant) -> Option<RoutingOrder> {
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

// AODVv2's constants, named as in the draft's section on timers, each a setting.

constants! {
    /// Constants of AODVv2, with the names and defaults of draft-ietf-manet-aodvv2-16.
    Settings;
    /// Time for which a route stays active after its last use
    active_interval: Duration = ConstantForm::time(1).is(5_000),
    /// Time without use after which a route becomes invalid
    max_idletime: Duration = ConstantForm::time(1).is(200_000),
    /// Time for which sequence numbers are remembered. A node that lost its own sends no requests or replies for this
    /// time
    max_seqnum_lifetime: Duration = ConstantForm::time(1).is(300_000),
    /// Time for which requests of a neighbour behind a one-way link are ignored
    max_blacklist_time: Duration = ConstantForm::time(0).is(200_000),
    /// Time for which the same route error is not repeated
    rerr_timeout: Duration = ConstantForm::time(0).is(3_000),
    /// Time for which a route request or reply is remembered, so that copies are recognised
    rtemsg_entry_time: Duration = ConstantForm::time(1).is(12_000),
    /// Time to wait for the reply to a route request
    rreq_wait_time: Duration = ConstantForm::time(1).is(2_000),
    /// Time after a failed route discovery before the next one for the same destination
    rreq_holddown_time: Duration = ConstantForm::time(0).is(10_000),
    /// Time to wait for an RREP_Ack
    rrep_ack_sent_timeout: Duration = ConstantForm::time(1).is(1_000),
    /// Number of route requests for a destination after which the packets for it are dropped
    discovery_attempts_max: u8 = ConstantForm::count("requests", 1, 10).is(3),
    /// Largest number of hops of a route
    max_hopcount: u8 = ConstantForm::count("hops", 1, 250).is(20),
    /// Largest number of route requests that a node originates per second
    rreq_ratelimit: u32 = ConstantForm::per_second("requests").is(10),
    /// Largest number of route errors that a node originates per second
    rerr_ratelimit: u32 = ConstantForm::per_second("errors").is(10),
    /// Largest number of route requests of one originator that are forwarded per second
    relay_ratelimit: u32 = ConstantForm::per_second("requests").is(20),
    /// Largest number of messages per second that a node accepts from one neighbour. For all neighbours together the
    /// limit is four times this
    message_ratelimit: u32 = ConstantForm::per_second("messages").is(500),
    /// Largest number of messages per second that a node sends in answer to one neighbour. For all neighbours together
    /// the limit is four times this
    answer_ratelimit: u32 = ConstantForm::per_second("messages").is(200),
    /// Nodes ask the next hops of active routes for an RREP_Ack, so that broken links are found
    hello: bool = ConstantForm::Switch
        .is(OFF)
        .means("false in world sim, whose link layer reports losses, otherwise true"),
    /// Time between two probes of a next hop
    hello_interval: Duration = ConstantForm::time(1).is(1_000),
    /// Number of unanswered probes in a row after which a link counts as broken
    allowed_hello_loss: u8 = ConstantForm::count("probes", 1, 250).is(2),
    /// Largest number of packets that wait for routes at a node
    buffer_packets: u32 = ConstantForm::count("packets", 1, MOST_PACKETS).is(64),
    /// Largest random delay of a multicast message that is forwarded, as in RFC 5148
    jitter: Duration = ConstantForm::time(0).is(10),
    /// Largest number of routes in the table of a node
    most_routes: u32 = ConstantForm::count("routes", 16, MOST_ROUTES).is(16_384),
    /// Nodes sign their routing messages with a built-in key, not with `key`; only in world sim
    signed: bool = ConstantForm::Switch.is(OFF).only_simulated(OnlySimulated::Signed),
    /// A node's route requests and replies tell the node at the route's other end the RCV.NXT of their connections.
    /// Sender agent `pgy` uses it; in a scenario only in world sim
    ack_seq: bool = ConstantForm::Switch.is(OFF),
    /// Secret text, the same at all nodes, to sign the sequence numbers that `ack_seq` adds
    key: Option<Key> = ConstantForm::Key.unset("none, and they are not signed"),
}
