//! The common part of the protocols that search for routes on demand: interfaces, waiting packets, the outbox of
//! orders, arrivals, and path news for connections.

pub(crate) mod ack_seq;
mod auth;
mod buffer;
mod key;
mod outbox;
pub(crate) mod rank;
pub(crate) mod rates;
pub(crate) mod searches;
pub(crate) mod shares;
#[cfg(test)]
pub(crate) mod testing;
mod trust;

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use hopwise_core::agent::{HopSource, Path};
use hopwise_core::trace::DropReason;
use hopwise_core::wire::{IpView, protocol};
use hopwise_core::{Instant, LinkId, NextHop, QueueClass};

use ack_seq::{AckSeqs, FlowEntry};
pub use auth::Auth;
pub(crate) use auth::{AuthForm, Envelope};
pub use auth::{Keys, KeysError, first_stamp};
pub(crate) use buffer::BufferBounds;
use buffer::{Buffer, HeldPackets};
pub use key::Key;
pub(crate) use key::TAG_BYTES;
pub use outbox::Interface;
pub(crate) use outbox::{Chance, Manners, MessageReceiver, Outbox, packet_of_header};
use rank::Wish;
use rates::{Cause, Limits, RequestNews};
pub use trust::Trust;
use trust::{RequestPair, RequestedRoutes};

use crate::protocol::RoutingSetup;
use crate::routing::{ControlMessage, RoutedPacket, Routing, RoutingOrder};

/// A destination whose route may have changed, with its next hop, link and hops if there is one.
pub type RouteChange = (Ipv4Addr, Option<(Ipv4Addr, LinkId, u8)>);

/// Reports every route as one that may have changed, for a daemon that has seen none.
pub(crate) fn all_changed(routes: Vec<(Ipv4Addr, Ipv4Addr, LinkId, u8)>) -> Vec<RouteChange> {
    routes.into_iter().map(|(dst, via, link, hops)| (dst, Some((via, link, hops)))).collect()
}

/// The time within which programs answer most datagrams.
const NAMED_FOR: Duration = Duration::from_secs(4);

/// The needs of a daemon whose kernel forwards the packets of a protocol.
pub trait OnDemand: Routing {
    /// The caller has seen a packet on a route, so that the route stays alive.
    fn note_use(&mut self, now: Instant, src: Ipv4Addr, dst: Ipv4Addr);
    /// The caller has seen a packet come in from a neighbour. Any node may have sent it, in whatever name.
    fn note_came(&mut self, now: Instant, src: Ipv4Addr, dst: Ipv4Addr);
    /// The node's latest sequence number, if a later start may continue from it.
    fn number(&self) -> Option<u16>;
    /// The time stamp of the last message that it signed, and the stamps that it left behind when its clock jumped. A
    /// later start has to continue above them.
    fn signed_stamps(&self) -> Vec<u64> {
        self.auth().map(Auth::signed).unwrap_or_default()
    }
    /// The newest time stamp of each neighbour. A later start has to [remember](OnDemand::remember_stamps) these.
    fn heard_stamps(&self) -> Vec<(Ipv4Addr, u64)> {
        self.auth().map(Auth::heard).unwrap_or_default()
    }
    /// Takes no message that was signed by then, so that nobody can play it to a node that starts again, and signs none
    /// with the stamps that an earlier start has signed.
    fn remember_stamps(&mut self, signed: &[u64], heard: &[(Ipv4Addr, u64)]) {
        self.auth_mut().into_iter().for_each(|auth| auth.remember(signed, heard));
    }
    /// Sets the time of day, in nanoseconds since 1970. Sent messages are signed with it, and received ones are checked
    /// by it.
    fn set_clock(&mut self, now: Instant, wall: u64) {
        self.auth_mut().into_iter().for_each(|auth| auth.set_clock(now, wall));
    }
    /// Uses other keys from now on, if messages are signed. Time stamps are remembered.
    fn change_keys(&mut self, keys: Keys) {
        if let Some(auth) = self.auth_mut() {
            auth.keys = keys;
        }
    }
    /// The signatures, if messages are signed.
    fn auth(&self) -> Option<&Auth>;
    /// The same, to change them.
    fn auth_mut(&mut self) -> Option<&mut Auth>;
    /// The link layer reports that a neighbour is gone.
    fn lose(&mut self, now: Instant, link: LinkId, neighbour: Ipv4Addr);
    /// Routes that are valid now: destination, next hop, link, hops.
    fn routes(&self, now: Instant) -> Vec<(Ipv4Addr, Ipv4Addr, LinkId, u8)>;
    /// The routes that may have changed since the last call.
    fn changes(&mut self, now: Instant) -> Vec<RouteChange>;
}

/// The neighbour and the link that a message came from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Via {
    pub(crate) from: Ipv4Addr,
    pub(crate) link: LinkId,
}

/// The state of a protocol apart from its routes and its messages.
#[derive(Debug)]
pub(crate) struct Desk {
    pub(crate) interfaces: Vec<Interface>,
    /// The first interface's address is the node's name.
    pub(crate) own: Ipv4Addr,
    /// Other addresses that this node makes reachable and searches for.
    serves: Vec<Ipv4Addr>,
    /// Until then a node that has lost its numbers forwards nothing (RFC 3561 §6.13).
    pub(crate) wakes_at: Instant,
    limits: Limits,
    pub(crate) buffer: Buffer,
    pub(crate) outbox: Outbox,
    pub(crate) ack_seqs: AckSeqs,
    pub(crate) trust: Trust,
    pub(crate) auth: Option<Auth>,
    /// The requests of this node, and the requests that it passed on, which are too many to share one table.
    asked: RequestedRoutes,
    asked_for_others: RequestedRoutes,
    /// Pairs of an address here and one elsewhere that came in packets of strangers.
    named: RequestedRoutes,
    pub(crate) discoveries: u64,
    pub(crate) failures: u64,
}

impl Desk {
    pub(crate) fn new(
        setup: RoutingSetup,
        manners: Manners,
        bounds: BufferBounds,
        ack_seqs: AckSeqs,
    ) -> Desk {
        let RoutingSetup { interfaces, serves, seed, wakes_at, trust, .. } = setup;
        Desk {
            own: name_of(&interfaces),
            interfaces,
            serves,
            wakes_at,
            buffer: Buffer::new(bounds),
            outbox: Outbox::new(manners, seed),
            ack_seqs,
            limits: Limits::new(0, 0, 0),
            trust,
            auth: None,
            asked: RequestedRoutes::default(),
            asked_for_others: RequestedRoutes::default(),
            named: RequestedRoutes::default(),
            discoveries: 0,
            failures: 0,
        }
    }

    pub(crate) fn with_limits(self, limits: Limits) -> Desk {
        Desk { limits, ..self }
    }

    /// Messages are signed where there are keys. Time stamps begin above `counter`.
    pub(crate) fn signed(self, form: AuthForm, counter: u64) -> Desk {
        let auth = self.trust.keys.clone().map(|keys| Auth::new(keys, form, counter));
        Desk { auth, ..self }
    }

    pub(crate) fn is_asleep(&self, now: Instant) -> bool {
        now < self.wakes_at
    }

    pub(crate) fn is_mine(&self, address: Ipv4Addr) -> bool {
        self.serves.contains(&address) || self.has_address(address)
    }

    /// The address in whose name the node searches for the destination of a packet.
    pub(crate) fn origin(&self, src: IpAddr) -> Ipv4Addr {
        v4(src).filter(|src| self.serves.contains(src)).unwrap_or(self.own)
    }

    /// Returns whether one more message of that neighbour may be read.
    pub(crate) fn may_hear(&mut self, now: Instant, neighbour: Ipv4Addr) -> bool {
        let may = self.limits.heard.take(now, neighbour);
        self.count_limited(may)
    }

    /// Returns whether one more message may be sent because of that neighbour's messages.
    pub(crate) fn may_answer(&mut self, now: Instant, neighbour: Ipv4Addr) -> bool {
        let may = self.limits.answers.take(now, neighbour);
        self.count_limited(may)
    }

    /// Returns whether one more route error may be sent.
    pub(crate) fn may_report(&mut self, now: Instant, cause: Cause) -> bool {
        let may = self.limits.errors.take(now, cause);
        self.count_limited(may)
    }

    /// Returns whether a request is to be processed.
    pub(crate) fn is_new(&mut self, news: RequestNews) -> bool {
        self.count_limited(news != RequestNews::Flood) && news == RequestNews::New
    }

    fn count_limited(&mut self, may: bool) -> bool {
        if !may {
            self.dropped(DropReason::RoutingRateLimited, 0);
        }
        may
    }

    pub(crate) fn is_signed(&self) -> bool {
        self.auth.is_some()
    }

    /// Checks a neighbour's message: its length, and its signature where messages are signed. Returns it if both are
    /// right.
    pub(crate) fn open<'m>(&mut self, now: Instant, control: &ControlMessage<'m>) -> Option<&'m [u8]> {
        let opened = if control.message.len() > self.trust.most_bytes() {
            None
        } else if let Some(auth) = &mut self.auth {
            let (Some(src), Some(dst)) = (v4(control.src), v4(control.dst)) else { return None };
            let envelope = Envelope { src: src.octets(), dst: dst.octets(), ttl: control.hop_limit };
            auth.open(now, &envelope, control.message)
        } else {
            Some(control.message)
        };
        if opened.is_none() {
            self.dropped(DropReason::RoutingRefused, 0);
        }
        opened
    }

    /// The next order. Messages are signed as they leave, so that their time stamps leave in order.
    pub(crate) fn next_order(&mut self, now: Instant) -> Option<RoutingOrder> {
        let order = self.outbox.pop(now)?;
        let Some(auth) = &mut self.auth else { return Some(order) };
        let RoutingOrder::Send { link, to, class: QueueClass::Routing, packet } = order else {
            return Some(order);
        };
        let signed = outbox::rewritten(&packet, |envelope, message| auth.seal(now, envelope, message));
        Some(match signed {
            Some(packet) => RoutingOrder::Send { link, to, class: QueueClass::Routing, packet },
            None => RoutingOrder::Dropped { reason: DropReason::RoutingRefused, id: 0 },
        })
    }

    /// The rank and lane of a packet's destination.
    pub(crate) fn wish(&self, now: Instant, packet: &RoutedPacket<'_>, is_known: bool) -> Wish {
        let is_own = v4(packet.src).is_some_and(|src| self.has_address(src));
        let ends = v4(packet.src).zip(v4(packet.dst));
        let is_named = ends.is_some_and(|pair| self.named.has(now, pair));
        Wish::of(packet.packet, is_own, is_known, is_named)
    }

    /// A packet came in from a neighbour.
    pub(crate) fn note_came(&mut self, now: Instant, src: Ipv4Addr, dst: Ipv4Addr) {
        for (here, there) in [(dst, src), (src, dst)] {
            if self.is_mine(here) {
                self.note_named(now, (here, there));
            }
        }
    }

    /// Notes that a stranger can cause packets from the first address, which is here, to the second one: it has sent a
    /// packet the other way, or in the name of the first.
    fn note_named(&mut self, now: Instant, pair: RequestPair) {
        if !self.named.has(now + NAMED_FOR / 2, pair) {
            self.named.note(now, pair, NAMED_FOR);
        }
    }

    pub(crate) fn has_address(&self, address: Ipv4Addr) -> bool {
        self.interfaces.iter().any(|interface| interface.address == address)
    }

    pub(crate) fn dropped(&mut self, reason: DropReason, id: u64) {
        self.outbox.dropped(reason, id);
    }

    /// Keeps a packet until there is a route.
    pub(crate) fn keep(&mut self, now: Instant, wanted: (Ipv4Addr, Wish), packet: &RoutedPacket<'_>) {
        if let Some((id, reason)) = self.buffer.push(now, wanted, packet.id, packet.packet) {
            self.dropped(reason, id);
        }
    }

    pub(crate) fn drop_waiting(&mut self, dst: Ipv4Addr) {
        for HeldPackets { id, .. } in self.buffer.take(dst) {
            self.dropped(DropReason::NoRoute, id);
        }
    }

    /// The first of the given times, of the ends of packets' waits, and of the times of orders.
    pub(crate) fn next(&self, times: impl IntoIterator<Item = Option<Instant>>) -> Option<Instant> {
        times.into_iter().chain([self.buffer.next(), self.outbox.next()]).flatten().min()
    }

    /// Drops packets that have waited too long.
    pub(crate) fn drop_late(&mut self, now: Instant) {
        while let Some(id) = self.buffer.take_late(now) {
            self.dropped(DropReason::RouteBufferTimeout, id);
        }
    }

    /// Releases the packets for a destination, each later than the one before by `apart`.
    pub(crate) fn release(&mut self, now: Instant, dst: Ipv4Addr, way: (LinkId, Ipv4Addr), apart: Duration) {
        let (link, to) = (way.0, NextHop::Neighbour(way.1.into()));
        for (HeldPackets { packet, .. }, n) in self.buffer.take(dst).into_iter().zip(0..) {
            self.outbox
                .push_at(now + apart * n, RoutingOrder::Send { link, to, class: QueueClass::Data, packet });
        }
    }

    /// Notes a route request: a reply may come within `memory`.
    pub(crate) fn note_asked(&mut self, now: Instant, pair: RequestPair, is_own: bool, memory: Duration) {
        let asked = if is_own { &mut self.asked } else { &mut self.asked_for_others };
        asked.note(now, pair, memory);
    }

    pub(crate) fn was_asked(&self, now: Instant, pair: RequestPair) -> bool {
        self.asked.has(now, pair) || self.asked_for_others.has(now, pair)
    }

    /// The longest message of ours that one packet carries.
    pub(crate) fn most_bytes(&self) -> usize {
        let cost = self.auth.as_ref().map_or(0, |auth| auth.form.cost);
        self.trust.most_bytes().saturating_sub(cost)
    }

    /// Returns whether one packet carries this message; if not, it is counted as refused.
    fn fits(&mut self, message: &[u8]) -> bool {
        let fits = message.len() <= self.most_bytes();
        if !fits {
            self.dropped(DropReason::RoutingRefused, 0);
        }
        fits
    }

    /// Sends a message on every interface, now or later.
    pub(crate) fn tell_everyone(&mut self, at: Option<Instant>, ttl: u8, message: &[u8]) {
        if !self.fits(message) {
            return;
        }
        for interface in &self.interfaces {
            let order = self.outbox.order(interface, MessageReceiver::Everyone, ttl, message);
            match at {
                Some(at) => self.outbox.push_at(at, order),
                None => self.outbox.push(order),
            }
        }
    }

    pub(crate) fn tell_neighbour(&mut self, link: LinkId, to: Ipv4Addr, ttl: u8, message: &[u8]) {
        if !self.fits(message) {
            return;
        }
        if let Some(interface) = self.interfaces.iter().find(|interface| interface.link == link) {
            let order = self.outbox.order(interface, MessageReceiver::Neighbour(to), ttl, message);
            self.outbox.push(order);
        }
    }

    /// Hands the arrivals in that node's message to the connections; a refused message is counted.
    pub(crate) fn tell_arrivals(
        &mut self,
        peer: Ipv4Addr,
        said: Result<Vec<FlowEntry>, DropReason>,
        hops: Option<u8>,
    ) {
        match said {
            Ok(said) => {
                for ((ours, theirs), event) in said {
                    self.outbox.tell(peer, Some((theirs, ours)), event, hops);
                }
            }
            Err(reason) => self.dropped(reason, 0),
        }
    }
}

/// The first interface's address is the node's name.
pub(crate) fn name_of(interfaces: &[Interface]) -> Ipv4Addr {
    interfaces.first().map_or(Ipv4Addr::UNSPECIFIED, |interface| interface.address)
}

/// The neighbour that sent a message straight to the node with the name `own`.
pub(crate) fn sender_of(control: &ControlMessage<'_>, own: Ipv4Addr) -> Result<Ipv4Addr, DropReason> {
    let is_from = |from: &Ipv4Addr| control.from.is_none_or(|sender| sender == IpAddr::V4(*from));
    let from = v4(control.src).filter(is_from).filter(|from| is_host(*from) && *from != own);
    from.ok_or(DropReason::RoutingRefused)
}

/// The protocols here name nodes by IPv4 addresses.
pub(crate) fn v4(address: IpAddr) -> Option<Ipv4Addr> {
    match address {
        IpAddr::V4(v4) => Some(v4),
        IpAddr::V6(_) => None,
    }
}

pub(crate) fn path_of(hops: Option<u8>) -> Path {
    let hops = hops.map(|hops| (hops, HopSource::Routing));
    Path { hops_to_peer: hops, hops_from_peer: hops, ..Path::default() }
}

/// Returns whether a node may have this address.
pub(crate) fn is_host(address: Ipv4Addr) -> bool {
    !(address.is_multicast() || address.is_broadcast() || address.is_unspecified() || address.is_loopback())
}

/// Returns whether an undelivered packet is one of the protocol's own.
pub(crate) fn is_message(packet: &[u8], port: u16) -> bool {
    let Ok(view) = IpView::parse(packet) else { return false };
    let port = port.to_be_bytes();
    view.protocol == protocol::UDP && view.payload.get(2..4) == Some(&port[..])
}
