//! Address resolution on the air, before a station sends to a neighbour.

use std::collections::VecDeque;
use std::net::IpAddr;

use hopwise_core::narrow::as_u32;
use hopwise_core::{Instant, LinkEvent, Machine};

use super::hands::RadioPacket;
use super::{RadioWorld, WorldEvent};
use crate::arp::{self, ASK_EVERY_NS, ArpMessage, ArpTable, Operation, PendingPacket, Resolution};
use crate::dcf::{EVERYONE, MacRules};

/// Each station's ARP table, and the radios' ARP packets, which go before all data.
#[derive(Debug)]
pub(super) struct Resolver {
    tables: Vec<ArpTable>,
    outboxes: Vec<VecDeque<RadioPacket>>,
    most_held: usize,
    /// Packets dropped in favour of later packets for their neighbour.
    pub(super) lost: u64,
}

impl Resolver {
    /// ns-2 keeps one packet for each neighbour that is sought; present stacks keep a few.
    pub(super) fn new(stations: usize, rules: MacRules) -> Resolver {
        let most_held = if rules == MacRules::Ns2 { 1 } else { 8 };
        let empty = |_| VecDeque::new();
        Resolver {
            tables: (0..stations).map(|_| ArpTable::default()).collect(),
            outboxes: (0..stations).map(empty).collect(),
            most_held,
            lost: 0,
        }
    }

    /// An ARP packet, which a station sends before its machine's next packet.
    pub(super) fn next(&mut self, n: usize) -> Option<RadioPacket> {
        self.outboxes[n].pop_front()
    }

    pub(super) fn knows(&self, n: usize, who: IpAddr) -> bool {
        self.tables[n].knows(who)
    }
}

impl<M: Machine> RadioWorld<M> {
    /// The packet at hand is for a neighbour whose address is not known: it waits.
    #[inline(never)]
    pub(super) fn ask_for(&mut self, n: usize, who: IpAddr, held: RadioPacket) {
        let now = self.now;
        let Some(resolver) = &mut self.resolver else { return };
        let RadioPacket { packet, id, queued_at, .. } = held;
        let packet = PendingPacket { id, queued_at, packet };
        let (found, lost) = resolver.tables[n].hold(now, who, packet, resolver.most_held);
        resolver.lost += lost.len() as u64;
        self.tell_lost(n, &lost);
        if found == Resolution::Ask {
            self.say(n, Operation::Request, who, None);
            self.file(now + ASK_EVERY_NS, WorldEvent::Unanswered { station: as_u32(n) });
        }
    }

    fn say(&mut self, n: usize, operation: Operation, to: IpAddr, station: Option<u32>) {
        let (IpAddr::V4(sender), IpAddr::V4(target)) = (self.stations[n].address, to) else { return };
        let mut packet = Vec::new();
        arp::write(&ArpMessage { operation, sender, target }, as_u32(n), station, &mut packet);
        let station = Some(station.unwrap_or(EVERYONE));
        let held = RadioPacket { packet, station, is_arp: true, ..RadioPacket::default() };
        if let Some(resolver) = &mut self.resolver {
            resolver.outboxes[n].push_back(held);
        }
    }

    /// An ARP request or reply has come.
    #[inline(never)]
    pub(super) fn hear_arp(&mut self, from: u32, n: usize, said: Option<ArpMessage>) {
        let (Some(said), Some(resolver)) = (said, &mut self.resolver) else { return };
        let (sender, target) = (IpAddr::V4(said.sender), IpAddr::V4(said.target));
        let is_for_us = target == self.stations[n].address;
        for PendingPacket { id, queued_at, packet } in resolver.tables[n].learn(sender, is_for_us) {
            let (to, station) = (Some(sender), Some(from));
            let held = RadioPacket { packet, to, station, id, queued_at, ..RadioPacket::default() };
            resolver.outboxes[n].push_back(held);
        }
        if is_for_us && said.operation == Operation::Request {
            self.say(n, Operation::Reply, sender, Some(from));
        }
        self.serve(n);
    }

    /// No reply has come for a second.
    pub(super) fn ask_again(&mut self, n: usize) {
        let now = self.now;
        let Some(resolver) = &mut self.resolver else { return };
        let (again, lost) = resolver.tables[n].overdue(now);
        for who in again {
            self.say(n, Operation::Request, who, None);
            self.file(now + ASK_EVERY_NS, WorldEvent::Unanswered { station: as_u32(n) });
        }
        for (to, waiting) in lost {
            for PendingPacket { id, packet, .. } in waiting {
                self.unresolved += 1;
                let event = LinkEvent::NotDelivered { to, id, packet: &packet };
                self.machines[n].handle_link_event(Instant(now), self.stations[n].radio, &event);
            }
        }
        self.serve(n);
    }
}
