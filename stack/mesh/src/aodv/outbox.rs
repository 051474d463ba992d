//! What a protocol wants done, now and later, in the order in which it will be.

use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;
use std::time::Duration;

use hopwise_core::wire::{Ecn, IpHeader, protocol, udp};
use hopwise_core::{Instant, LinkId, NextHop, QueueClass};

use super::PORT;
use super::messages::Message;
use crate::routing::Order;

/// A link that the protocol speaks on, and the node's address there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interface {
    pub link: LinkId,
    pub address: Ipv4Addr,
}

/// Random numbers (SplitMix64): small, and the same everywhere. Nothing secret is made from it.
#[derive(Clone, Debug)]
pub(super) struct Chance(u64);

impl Chance {
    pub(super) fn new(seed: u64) -> Chance {
        Chance(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From nothing to `most`, without it.
    pub(super) fn up_to(&mut self, most: Duration) -> Duration {
        let ns = u64::try_from(most.as_nanos()).unwrap_or(u64::MAX);
        Duration::from_nanos(((u128::from(self.next()) * u128::from(ns)) >> 64) as u64)
    }
}

#[derive(Debug)]
pub(super) struct Outbox {
    ready: VecDeque<Order>,
    later: BTreeMap<(Instant, u64), Order>,
    filed: u64,
    /// Identification fields of what we send.
    packets: u16,
    pub(super) chance: Chance,
}

impl Outbox {
    pub(super) fn new(seed: u64) -> Outbox {
        let chance = Chance::new(seed);
        Outbox { ready: VecDeque::new(), later: BTreeMap::new(), filed: 0, packets: 0, chance }
    }

    pub(super) fn push(&mut self, order: Order) {
        self.ready.push_back(order);
    }

    pub(super) fn push_at(&mut self, at: Instant, order: Order) {
        self.filed += 1;
        self.later.insert((at, self.filed), order);
    }

    /// What is due becomes ready, then the first that is ready goes.
    pub(super) fn pop(&mut self, now: Instant) -> Option<Order> {
        while let Some(first) = self.later.first_entry()
            && first.key().0 <= now
        {
            self.ready.push_back(first.remove());
        }
        self.ready.pop_front()
    }

    pub(super) fn next(&self) -> Option<Instant> {
        self.later.first_key_value().map(|((at, _), _)| *at)
    }

    /// A message as a whole packet from the node's address there.
    pub(super) fn order(&mut self, from: &Interface, to: Receiver, ttl: u8, message: &[u8]) -> Order {
        let (dst, to) = match to {
            Receiver::Everyone => (Ipv4Addr::BROADCAST, NextHop::All),
            Receiver::Neighbour(address) => (address, NextHop::Neighbour(address.into())),
        };
        self.packets = self.packets.wrapping_add(1);
        let header = IpHeader {
            src: from.address.into(),
            dst: dst.into(),
            protocol: protocol::UDP,
            hop_limit: ttl,
            ecn: Ecn::NotEct,
            // CS6, as network control (RFC 4594 §3.1).
            dscp: 48,
            dont_fragment: false,
            id: self.packets,
            source_route: None,
        };
        let mut packet = Vec::with_capacity(28 + message.len());
        header.emit(8 + message.len(), &mut packet);
        udp::emit(from.address.into(), dst.into(), (PORT, PORT), message, &mut packet);
        Order::Send { link: from.link, to, class: QueueClass::Routing, packet }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Receiver {
    Everyone,
    Neighbour(Ipv4Addr),
}

/// A message, and what follows it.
pub(super) fn bytes_of(message: &Message, extensions: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    message.emit(&mut bytes);
    bytes.extend(extensions);
    bytes
}
