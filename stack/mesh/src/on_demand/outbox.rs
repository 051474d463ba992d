//! What a protocol wants done, now and later, in the order in which it will be.

use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;
use std::time::Duration;

use hopwise_core::wire::{Ecn, IpHeader, protocol, udp};
use hopwise_core::{Instant, LinkId, NextHop, QueueClass};

use crate::routing::Order;

/// A link that the protocol speaks on, and the node's address there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interface {
    pub link: LinkId,
    pub address: Ipv4Addr,
}

/// Random numbers (SplitMix64): small, and the same everywhere. Nothing secret is made from it.
#[derive(Clone, Debug)]
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Chance {
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
    pub(crate) fn up_to(&mut self, most: Duration) -> Duration {
        let ns = u64::try_from(most.as_nanos()).unwrap_or(u64::MAX);
        Duration::from_nanos(((u128::from(self.next()) * u128::from(ns)) >> 64) as u64)
    }
}

/// How a protocol speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Manners {
    /// UDP's, of both ends.
    pub(crate) port: u16,
    /// Where messages for everyone go.
    pub(crate) everyone: Ipv4Addr,
}

#[derive(Debug)]
pub(crate) struct Outbox {
    manners: Manners,
    ready: VecDeque<Order>,
    later: BTreeMap<(Instant, u64), Order>,
    filed: u64,
    /// Identification fields of what we send.
    packets: u16,
    pub(crate) chance: Chance,
}

impl Outbox {
    pub(crate) fn new(manners: Manners, seed: u64) -> Outbox {
        let chance = Chance::new(seed);
        Outbox { manners, ready: VecDeque::new(), later: BTreeMap::new(), filed: 0, packets: 0, chance }
    }

    pub(crate) fn push(&mut self, order: Order) {
        self.ready.push_back(order);
    }

    pub(crate) fn push_at(&mut self, at: Instant, order: Order) {
        self.filed += 1;
        self.later.insert((at, self.filed), order);
    }

    /// What is due becomes ready, then the first that is ready goes.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<Order> {
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

    /// A message as a whole packet from the node's address there.
    pub(crate) fn order(&mut self, from: &Interface, to: Receiver, ttl: u8, message: &[u8]) -> Order {
        let (dst, to) = match to {
            Receiver::Everyone => (self.manners.everyone, NextHop::All),
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
        let ports = (self.manners.port, self.manners.port);
        udp::emit(from.address.into(), dst.into(), ports, message, &mut packet);
        Order::Send { link: from.link, to, class: QueueClass::Routing, packet }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Receiver {
    Everyone,
    Neighbour(Ipv4Addr),
}
