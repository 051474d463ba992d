//! Packets go from machines to their radios.

use hopwise_core::narrow::as_u32;
use hopwise_core::queue::{Beside, Category, Spent};
use hopwise_core::{Instant, LinkEvent, LinkId, Machine, NextHop, Payload, Transmit};

use super::hands::RadioPacket;
use super::{RadioNews, RadioWorld};
use crate::airtime::AirLoad;
use crate::dcf::{AggregateRoom, EVERYONE, Offered, PacketOutcome};
use crate::phy::Rate;

/// Appends a further packet to a buffer, and returns its id.
pub type MoreOf<M> = fn(&mut M, Instant, LinkId, &Beside, &mut Vec<u8>) -> Option<u64>;

/// Appends the next packet of a category to a buffer. The radio holds this number of packets already.
pub type CategoryOf<M> = fn(&mut M, Instant, LinkId, (Category, usize), &mut Vec<u8>) -> Option<Transmit>;

/// Tells a machine how much time a packet has taken that it gave to a link.
pub type SpentOf<M> = fn(&mut M, LinkId, &Spent);

impl<M: Machine> RadioWorld<M> {
    /// Tells the machine of a packet what it has cost.
    pub(super) fn tell_spent(&mut self, (n, number): (usize, u32), rate: Rate, tries: u32) {
        let Some(tell) = self.spent else { return };
        let held = self.hands[n].of(number);
        if !held.is_arp && held.to.is_some() {
            let spent = Spent { id: held.id, tries, estimate: self.dcf.estimate(rate) };
            tell(&mut self.machines[n], self.stations[n].radio, &spent);
        }
    }

    /// Tells a machine of packets that were lost before any frame carried them.
    pub(super) fn tell_lost(&mut self, n: usize, ids: &[u64]) {
        let Some(tell) = self.spent else { return };
        for id in ids {
            let spent = Spent { id: *id, tries: 0, estimate: self.dcf.estimate(self.dcf.rate()) };
            tell(&mut self.machines[n], self.stations[n].radio, &spent);
        }
    }

    pub(super) fn serve_radio(&mut self, n: usize) {
        if self.categories.is_none() {
            return self.serve_category(n, Category::BestEffort);
        }
        Category::ALL.into_iter().for_each(|category| self.serve_category(n, category));
    }

    fn serve_category(&mut self, n: usize, category: Category) {
        while self.dcf.has_room_in(as_u32(n), category) {
            // ARP goes at best effort.
            let asked = self.resolver.as_mut().filter(|_| category == Category::BestEffort);
            if let Some(packet) = asked.and_then(|resolver| resolver.next(n)) {
                let unused = std::mem::replace(&mut self.hands[n].next, packet);
                self.hands[n].put_away(unused);
            } else if !self.take_from_machine(n, category) {
                return;
            }
            if let (Some(resolver), Some(to)) = (&self.resolver, self.hands[n].next.to)
                && !resolver.knows(n, to)
            {
                let held = self.hands[n].take_next();
                self.ask_for(n, to, held);
                continue;
            }
            self.offer(n, category);
        }
        if self.dcf.is_aggregating() {
            self.fill_aggregate(n, category);
        }
    }

    /// Takes further packets while the radio has one, as long as there is room and the machine has some.
    #[inline(never)]
    fn fill_aggregate(&mut self, n: usize, category: Category) {
        while let Some(room) = self.dcf.room_for_more_in(as_u32(n), category) {
            if !self.take_more(n, category, room) {
                return;
            }
        }
    }

    /// Takes a further packet for the aggregate that a radio prepares; returns whether there was one.
    fn take_more(&mut self, n: usize, category: Category, room: AggregateRoom) -> bool {
        let (now, link) = (Instant(self.now), self.stations[n].radio);
        let Some(to) = self.hands[n].name_of(room.to) else { return false };
        let (bytes, held) = (self.stations[n].framing.with_header(room.bytes), self.hands[n].len());
        let more = Beside { category, to, bytes, held };
        let mut packet = self.hands[n].spare.empty();
        let Some(id) = (self.more)(&mut self.machines[n], now, link, &more, &mut packet) else {
            self.hands[n].spare.keep(packet);
            return false;
        };
        let payload = self.stations[n].framing.payload(&packet);
        let queued_at = (self.queued_at)(&self.machines[n]).map(|at| at.0);
        let load = (self.loads)(payload);
        let offered = Offered { to: room.to, bytes: as_u32(payload.len()), load, queued_at, category };
        let number = self.dcf.give_more(self.now, as_u32(n), offered);
        let (to, station) = (Some(to), Some(room.to));
        self.hands[n].hold(RadioPacket { packet, to, station, id, queued_at, is_arp: false, number });
        true
    }

    /// Gives the packet at hand to its machine's radio, which has room.
    fn offer(&mut self, n: usize, category: Category) {
        let held = &self.hands[n].next;
        let Some(to) = held.station else {
            self.refuse(n);
            return;
        };
        let payload = self.stations[n].framing.payload(&held.packet);
        let load = if held.is_arp { AirLoad::Arp } else { (self.loads)(payload) };
        let offered = Offered { to, bytes: as_u32(payload.len()), load, queued_at: held.queued_at, category };
        let number = self.dcf.give(self.now, as_u32(n), offered);
        self.hands[n].hold_next(number);
    }

    /// Takes the machine's next packet of a category in hand; returns whether there was one.
    fn take_from_machine(&mut self, n: usize, category: Category) -> bool {
        let (now, link) = (Instant(self.now), self.stations[n].radio);
        let (machine, hands) = (&mut self.machines[n], &mut self.hands[n]);
        let held = hands.len();
        hands.next.packet.clear();
        let taken = match self.categories {
            Some(poll) => poll(machine, now, link, (category, held), &mut hands.next.packet),
            None => machine.poll_transmit(now, link, Payload::Inline, &mut hands.next.packet),
        };
        let Some(transmit) = taken else { return false };
        let (to, station) = match transmit.to {
            NextHop::Neighbour(address) => hands.resolve(address, &self.by_address),
            NextHop::All | NextHop::Link => (None, Some(EVERYONE)),
        };
        let next = &mut hands.next;
        (next.to, next.station) = (to, station);
        (next.id, next.is_arp) = (transmit.id, false);
        next.queued_at = (self.queued_at)(machine).map(|at| at.0);
        true
    }

    /// No station has the address: no ACK would come.
    #[inline(never)]
    fn refuse(&mut self, n: usize) {
        let held = self.hands[n].take_next();
        self.unresolved += 1;
        let (station, rate) = (as_u32(n), self.dcf.rate());
        if let Some(sink) = &mut self.radio {
            let (id, outcome) = (held.id, PacketOutcome::GivenUp);
            sink(&RadioNews::Done { station, id, outcome, rate, tries: 1 });
        }
        if let Some(to) = held.to {
            let event = LinkEvent::NotDelivered { to, id: held.id, packet: &held.packet };
            self.machines[n].handle_link_event(Instant(self.now), self.stations[n].radio, &event);
        }
        self.hands[n].put_away(held);
    }
}
