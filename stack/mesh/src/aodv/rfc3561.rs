//! AODV as RFC 3561 has it.
//!
//! Where it differs from the RFC's letter: a route whose life runs out is given up like one that breaks, with its
//! number raised; a node does not answer for a route that leads through who asks; a RERR of the next hop is believed
//! whatever its number, and the number is raised; and a RREP's lifetime is capped by the time for which numbers are
//! remembered. Each of them closes a way to a loop or to a black hole, and costs a discovery at most.

mod discovery;
mod errors;
mod links;
mod rates;
mod repair;
mod replies;
mod requests;
mod table;

use std::net::{IpAddr, Ipv4Addr};

use hopwise_core::agent::Path;
use hopwise_core::trace::DropReason;
use hopwise_core::{Cast, Instant, LinkId, NextHop, QueueClass, Rx};

use super::ack_seq::{AckSeqs, Said};
use super::buffer::{Buffer, Waiting};
use super::messages::{Extensions, MOST_HOPS, Message, Rrep, Rreq};
use super::outbox::{Interface, Outbox, Receiver};
use super::seen::Seen;
use super::settings::Settings;
use super::{Config, PORT, path_of, tell, v4};
use crate::routing::{Control, Cx, Order, Routed, Routing, Undelivered, Verdict};
use discovery::Searches;
use links::Links;
use rates::Rate;
use table::{Offer, Route, State, Table, Taken};

/// A node that follows RFC 3561.
#[derive(Debug)]
pub struct Aodv {
    settings: Settings,
    interfaces: Vec<Interface>,
    own: Ipv4Addr,
    serves: Vec<Ipv4Addr>,
    seq: u32,
    request_id: u32,
    table: Table,
    searches: Searches,
    links: Links,
    buffer: Buffer,
    seen: Seen,
    outbox: Outbox,
    ack_seqs: AckSeqs,
    errors: Rate,
    next_sweep: Instant,
    /// Until then a node that has lost its numbers passes nothing on (§6.13).
    wakes_at: Instant,
    discoveries: u64,
    failures: u64,
}

/// Where a message came from.
#[derive(Clone, Copy, Debug)]
struct Via {
    from: Ipv4Addr,
    link: LinkId,
}

impl Aodv {
    pub fn new(config: Config) -> Aodv {
        let Config { settings, interfaces, serves, seed, counter, wakes_at } = config;
        let mut outbox = Outbox::new(seed);
        let next_sweep = Instant::ZERO + outbox.chance.up_to(settings.sweep_interval);
        Aodv {
            own: super::first_address(&interfaces),
            serves,
            interfaces,
            seq: 0,
            request_id: 0,
            table: Table::new(settings.most_routes, settings.delete_period()),
            searches: Searches::new(settings.rreq_ratelimit),
            links: Links::new(outbox.chance.up_to(settings.hello_interval)),
            buffer: Buffer::new(settings.buffer_packets, settings.buffer_time),
            seen: Seen::default(),
            ack_seqs: AckSeqs::new(settings.ack_seq, settings.key.clone(), counter),
            errors: Rate::new(settings.rerr_ratelimit),
            outbox,
            next_sweep,
            wakes_at,
            discoveries: 0,
            failures: 0,
            settings,
        }
    }

    fn dropped(&mut self, reason: DropReason, id: u64) {
        self.outbox.push(Order::Dropped { reason, id });
    }

    fn keep(&mut self, now: Instant, dst: Ipv4Addr, packet: &Routed<'_>) {
        if let Some((id, reason)) = self.buffer.push(now, dst, packet.id, packet.packet) {
            self.dropped(reason, id);
        }
    }

    fn drop_waiting(&mut self, dst: Ipv4Addr) {
        for Waiting { id, .. } in self.buffer.take(dst) {
            self.dropped(DropReason::NoRoute, id);
        }
    }

    /// A route is there: whoever waited for it goes, and connections hear of it.
    fn found(&mut self, now: Instant, dst: Ipv4Addr) {
        self.searches.end(dst);
        self.tell_path(dst);
        if self.settings.hello
            && let Some(route) = self.table.get(dst)
        {
            // §6.9 waits for a first hello; a next hop that falls silent before it would never be missed.
            let life = self.settings.hello_life() + self.settings.hello_interval;
            self.links.expect(now, route.next_hop, route.link, life);
        }
        let waiting = self.buffer.take(dst);
        if waiting.is_empty() {
            return;
        }
        let until = now + self.settings.active_route_timeout;
        let Some(route) = self.table.valid(now, dst) else { return };
        route.lives_at_least(until);
        let (link, to) = (route.link, NextHop::Neighbour(route.next_hop.into()));
        for (Waiting { packet, .. }, n) in waiting.into_iter().zip(0..) {
            let at = now + self.settings.buffer_gap * n;
            self.outbox.push_at(at, Order::Send { link, to, class: QueueClass::Data, packet });
        }
    }

    fn tell_everyone(&mut self, at: Option<Instant>, ttl: u8, message: &[u8]) {
        for interface in &self.interfaces {
            let order = self.outbox.order(interface, Receiver::Everyone, ttl, message);
            match at {
                Some(at) => self.outbox.push_at(at, order),
                None => self.outbox.push(order),
            }
        }
    }

    fn tell_neighbour(&mut self, link: LinkId, to: Ipv4Addr, message: &[u8]) {
        if let Some(interface) = self.interfaces.iter().find(|interface| interface.link == link) {
            // Each hop writes a packet of its own, so that one hop is enough.
            let order = self.outbox.order(interface, Receiver::Neighbour(to), 1, message);
            self.outbox.push(order);
        }
    }

    fn believe(&mut self, peer: Ipv4Addr, extensions: &Extensions<'_>) {
        match self.ack_seqs.read(self.own, peer, extensions) {
            Ok(said) => said.into_iter().for_each(|said| self.tell_ack_seq(peer, said)),
            Err(reason) => self.dropped(reason, 0),
        }
    }

    fn tell_ack_seq(&mut self, peer: Ipv4Addr, ((ours, theirs), event): Said) {
        let path = path_of(self.table.get(peer).and_then(Route::usable_hops));
        self.outbox.push(Order::Tell { peer: peer.into(), ports: Some((theirs, ours)), event, path });
    }

    /// Connections to a peer hear when its route comes, goes or gets longer.
    fn tell_path(&mut self, dst: Ipv4Addr) {
        let Some(route) = self.table.peek_mut(dst) else { return };
        let hops = route.usable_hops();
        if route.is_ours
            && let Some(event) = super::news(&mut route.told, hops)
        {
            self.outbox.push(tell(dst, event, hops));
        }
    }

    fn sweep(&mut self, now: Instant) {
        let mut gone = Vec::new();
        self.table.sweep(now, &mut |dst| gone.push(dst));
        gone.into_iter().for_each(|dst| self.tell_path(dst));
        self.links.forget(now);
    }

    /// A data packet keeps its ways alive, both of them (§6.2).
    fn refresh(&mut self, now: Instant, packet: &Routed<'_>) {
        let until = now + self.settings.active_route_timeout;
        for end in [v4(packet.dst), v4(packet.src)].into_iter().flatten() {
            let Some(route) = self.table.valid(now, end) else { continue };
            route.lives_at_least(until);
            let next_hop = route.next_hop;
            if next_hop != end
                && let Some(neighbour) = self.table.valid(now, next_hop)
            {
                neighbour.lives_at_least(until);
            }
        }
    }

    /// A packet went over a neighbour by a way that the caller has seen, so that its routes stay alive. For those who
    /// forward packets that this machine does not see.
    pub fn note_use(&mut self, now: Instant, src: Ipv4Addr, dst: Ipv4Addr) {
        let (src, dst) = (IpAddr::V4(src), IpAddr::V4(dst));
        self.refresh(now, &Routed { src, dst, from: None, hop_limit: 1, id: 0, packet: &[] });
    }

    /// Routes that are valid now: destination, next hop, link, hops.
    pub fn routes(&self, now: Instant) -> impl Iterator<Item = (Ipv4Addr, Ipv4Addr, LinkId, u8)> {
        let is_valid = move |route: &&Route| route.is_valid() && route.lives_until >= now;
        self.table.iter().filter_map(move |(dst, route)| {
            Some(route).filter(is_valid).map(|route| (dst, route.next_hop, route.link, route.hops))
        })
    }

    fn is_asleep(&self, now: Instant) -> bool {
        now < self.wakes_at
    }
}

impl Routing for Aodv {
    fn port(&self) -> Option<u16> {
        Some(PORT)
    }

    fn route(&mut self, cx: &Cx<'_>, packet: &Routed<'_>) -> Verdict {
        let Some(dst) = v4(packet.dst) else { return Verdict::Drop(DropReason::NoRoute) };
        let now = cx.now;
        if let Some(route) = self.table.valid(now, dst) {
            let is_first = packet.from.is_none() && !route.is_ours;
            route.is_ours |= is_first;
            let verdict =
                Verdict::Forward { link: route.link, via: NextHop::Neighbour(route.next_hop.into()) };
            self.refresh(now, packet);
            if is_first {
                self.tell_path(dst);
            }
            return verdict;
        }
        if packet.from.is_none() {
            self.table.want(now, dst);
            self.tell_path(dst);
            self.keep(now, dst, packet);
            self.search(cx, dst);
            return Verdict::Keep;
        }
        if self.table.get(dst).is_some_and(|route| route.state == State::InRepair) {
            self.keep(now, dst, packet);
            return Verdict::Keep;
        }
        self.refuse_data(now, dst);
        Verdict::Drop(DropReason::NoRoute)
    }

    fn handle_control(&mut self, cx: &Cx<'_>, control: &Control<'_>) {
        let (Some(from), Ok((message, extensions))) = (v4(control.src), Message::parse(control.message))
        else {
            self.dropped(DropReason::RoutingMalformed, 0);
            return;
        };
        let is_off_link = control.from.is_some_and(|neighbour| neighbour != control.src);
        let is_own = self.interfaces.iter().any(|interface| interface.address == from);
        if is_off_link || is_own || !is_host(from) {
            self.dropped(DropReason::RoutingRefused, 0);
            return;
        }
        let via = Via { from, link: control.link };
        self.links.heard(cx.now, from, self.settings.hello_life());
        match message {
            Message::Rreq(Rreq { hop_count, .. }) | Message::Rrep(Rrep { hop_count, .. })
                if hop_count >= MOST_HOPS =>
            {
                self.dropped(DropReason::RoutingMalformed, 0);
            }
            Message::Rreq(rreq) => self.take_request(cx, via, control.hop_limit, &rreq, &extensions),
            Message::Rrep(rrep) if control.cast == Cast::ToAll => {
                self.take_hello(cx.now, via, &rrep, &extensions);
            }
            Message::Rrep(rrep) => self.take_reply(cx, via, &rrep, &extensions),
            Message::Rerr(rerr) => self.take_error(cx.now, via, &rerr),
            Message::RrepAck => self.links.acknowledged(from),
        }
    }

    fn on_overheard(&mut self, _now: Instant, _rx: &Rx<'_>) {}

    fn on_delivered(&mut self, _now: Instant, _id: u64) {}

    fn on_undelivered(&mut self, cx: &Cx<'_>, link: LinkId, to: IpAddr, packet: &Routed<'_>) -> Undelivered {
        let (Some(from), Some(dst)) = (v4(to), v4(packet.dst)) else { return Undelivered::Drop };
        self.take_failure(cx, Via { from, link }, dst, packet)
    }

    fn handle_timeout(&mut self, cx: &Cx<'_>) {
        let now = cx.now;
        while let Some(id) = self.buffer.take_late(now) {
            self.dropped(DropReason::RouteBufferTimeout, id);
        }
        if self.next_sweep <= now {
            self.next_sweep = now + self.settings.sweep_interval;
            self.sweep(now);
        }
        self.go_on_searching(cx);
        self.watch_links(now);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let times =
            [self.buffer.next(), self.outbox.next(), self.searches.next(), self.links.next(&self.settings)];
        times.into_iter().flatten().chain([self.next_sweep]).min()
    }

    fn poll_order(&mut self, now: Instant) -> Option<Order> {
        self.outbox.pop(now)
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
        (self.discoveries, self.failures)
    }
}

/// An address that a node may have.
fn is_host(address: Ipv4Addr) -> bool {
    !(address.is_multicast() || address.is_broadcast() || address.is_unspecified() || address.is_loopback())
}

#[cfg(test)]
mod tests;
