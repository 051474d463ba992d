//! The orders of a protocol, due now or later, in the order in which they are carried out.

use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;
use std::time::Duration;

use hopwise_core::agent::PathEvent;
use hopwise_core::random::SplitMix64;
use hopwise_core::trace::DropReason;
use hopwise_core::wire::{IpHeader, IpView, UdpView, protocol, udp};
use hopwise_core::{Instant, LinkId, NextHop, QueueClass};

use super::{Envelope, path_of, v4};
use crate::routing::RoutingOrder;

/// A link of the protocol, and the node's address there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interface {
    /// The node's name for the link.
    pub link: LinkId,
    /// The node's address on it, which its messages have as source.
    pub address: Ipv4Addr,
}

/// Random times.
#[derive(Clone, Debug)]
pub(crate) struct Chance(SplitMix64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Chance {
        Chance(SplitMix64::new(seed))
    }

    /// A random time from zero up to `most`, `most` excluded.
    pub(crate) fn up_to(&mut self, most: Duration) -> Duration {
        let ns = u64::try_from(most.as_nanos()).unwrap_or(u64::MAX);
        Duration::from_nanos(((u128::from(self.0.next_u64()) * u128::from(ns)) >> 64) as u64)
    }

    /// A seed for other draws.
    pub(crate) fn seed(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A random number below `bound`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.0.next_u64()) * u128::from(bound)) >> 64) as u64
    }
}

/// The addressing of a protocol's messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Manners {
    /// The UDP port of both ends.
    pub(crate) port: u16,
    /// The destination of broadcast or multicast messages.
    pub(crate) everyone: Ipv4Addr,
}

#[derive(Debug)]
pub(crate) struct Outbox {
    manners: Manners,
    ready: VecDeque<RoutingOrder>,
    later: BTreeMap<(Instant, u64), RoutingOrder>,
    filed: u64,
    /// Identification field of the last packet.
    packets: u16,
    pub(crate) chance: Chance,
}

impl Outbox {
    pub(crate) fn new(manners: Manners, seed: u64) -> Outbox {
        let chance = Chance::new(seed);
        Outbox { manners, ready: VecDeque::new(), later: BTreeMap::new(), filed: 0, packets: 0, chance }
    }

    pub(crate) fn push(&mut self, order: RoutingOrder) {
        self.ready.push_back(order);
    }

    pub(crate) fn push_at(&mut self, at: Instant, order: RoutingOrder) {
        self.filed += 1;
        self.later.insert((at, self.filed), order);
    }

    pub(crate) fn dropped(&mut self, reason: DropReason, id: u64) {
        self.push(RoutingOrder::Dropped { reason, id });
    }

    /// Sends a whole packet to a neighbour.
    pub(crate) fn send(&mut self, (link, via): (LinkId, Ipv4Addr), class: QueueClass, packet: Vec<u8>) {
        self.push(RoutingOrder::Send { link, to: NextHop::Neighbour(via.into()), class, packet });
    }

    /// Informs connections when a route that they use has become `now`. `reported` is the hop count that they last got.
    pub(crate) fn report_route(&mut self, peer: Ipv4Addr, reported: &mut Option<u8>, now: Option<u8>) {
        let event = match (std::mem::replace(reported, now), now) {
            (None, Some(_)) => PathEvent::RouteFound,
            (Some(_), None) => PathEvent::RouteFailed,
            (Some(before), Some(now)) if before != now => PathEvent::HopsChanged,
            _ => return,
        };
        self.tell(peer, None, event, now);
    }

    /// Hands an event of the path to a peer to the connections with these ports, or to all of them.
    pub(crate) fn tell(
        &mut self,
        peer: Ipv4Addr,
        ports: Option<(u16, u16)>,
        event: PathEvent,
        hops: Option<u8>,
    ) {
        self.push(RoutingOrder::Tell { peer: peer.into(), ports, event, path: path_of(hops) });
    }

    /// Moves due orders to the ready ones, then takes the first ready one.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<RoutingOrder> {
        while let Some(first) = self.later.first_entry()
            && first.key().0 <= now
        {
            self.ready.push_back(first.remove());
        }
        self.ready.pop_front()
    }

    pub(crate) fn next(&self) -> Option<Instant> {
        self.later.first_key_value().map(|((at, _), _)| *at)
    }

    /// A message as a whole packet from the interface's address.
    pub(crate) fn order(
        &mut self,
        from: &Interface,
        to: MessageReceiver,
        ttl: u8,
        message: &[u8],
    ) -> RoutingOrder {
        let (dst, to) = match to {
            MessageReceiver::Everyone => (self.manners.everyone, NextHop::All),
            MessageReceiver::Neighbour(address) => (address, NextHop::Neighbour(address.into())),
        };
        self.packets = self.packets.wrapping_add(1);
        let packet = packet_of((from.address, dst), ttl, self.packets, self.manners.port, message);
        RoutingOrder::Send { link: from.link, to, class: QueueClass::Routing, packet }
    }
}

/// The header of a packet with a message of routing, between two nodes.
fn header_of_message(
    (src, dst): (Ipv4Addr, Ipv4Addr),
    protocol: u8,
    hop_limit: u8,
    id: u16,
) -> IpHeader<'static> {
    // CS6, as network control (RFC 4594 §3.1).
    let dscp = 48;
    let plain = IpHeader::plain(src.into(), dst.into(), protocol);
    IpHeader { hop_limit, dscp, dont_fragment: false, id, ..plain }
}

/// A packet with a message of routing that has an IP protocol of its own.
pub(crate) fn packet_of_header(
    ends: (Ipv4Addr, Ipv4Addr),
    protocol: u8,
    hop_limit: u8,
    id: u16,
    message: &[u8],
) -> Vec<u8> {
    let header = header_of_message(ends, protocol, hop_limit, id);
    let mut packet = Vec::with_capacity(header.len() + message.len());
    header.emit(message.len(), &mut packet);
    packet.extend_from_slice(message);
    packet
}

fn packet_of(ends: (Ipv4Addr, Ipv4Addr), ttl: u8, id: u16, port: u16, message: &[u8]) -> Vec<u8> {
    let header = header_of_message(ends, protocol::UDP, ttl, id);
    let mut packet = Vec::with_capacity(28 + message.len());
    header.emit(8 + message.len(), &mut packet);
    udp::emit(header.src, header.dst, (port, port), message, &mut packet);
    packet
}

/// A packet of ours with another message in it; `None` if `rewrite` gives none.
pub(crate) fn rewritten(
    packet: &[u8],
    rewrite: impl FnOnce(&Envelope, &[u8]) -> Option<Vec<u8>>,
) -> Option<Vec<u8>> {
    let view = IpView::parse(packet).ok()?;
    let (src, dst) = (v4(view.src)?, v4(view.dst)?);
    let udp = UdpView::parse(view.src, view.dst, view.payload).ok()?;
    let envelope = Envelope { src: src.octets(), dst: dst.octets(), ttl: view.hop_limit };
    let message = rewrite(&envelope, udp.payload)?;
    let id = u16::from_be_bytes(*packet.get(4..)?.first_chunk()?);
    Some(packet_of((src, dst), view.hop_limit, id, udp.src_port, &message))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MessageReceiver {
    Everyone,
    Neighbour(Ipv4Addr),
}
