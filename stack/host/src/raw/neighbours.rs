//! The neighbours on an Ethernet: known addresses, open requests, and packets that wait. It does no I/O.
//!
//! Invariants
//! - N1: at most [`MOST`] neighbours are known and [`HELD`] packets wait for each.
//! - N2: packets wait only for a neighbour whose address is requested.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use hopwise_core::{Instant, Transmit};

use super::ethernet::Mac;

const MOST: usize = 1024;
const HELD: usize = 8;
/// RFC 4861 §10: one request a second, three in all.
const ASK_EVERY: Duration = Duration::from_secs(1);
const MOST_QUESTIONS: u8 = 3;
/// The time for which a reply is trusted. Then an address in use is requested again.
const FRESH: Duration = Duration::from_secs(30);

#[derive(Debug, Default)]
pub(super) struct NeighbourTable {
    known: BTreeMap<IpAddr, NeighbourEntry>,
    questions: Vec<NeighbourQuestion>,
    failures: Vec<(IpAddr, Transmit, Vec<u8>)>,
    given_up: u64,
}

#[derive(Debug)]
struct NeighbourEntry {
    mac: Option<Mac>,
    confirmed_at: Instant,
    /// We had a packet for it.
    is_used: bool,
    /// Requests since the last reply, and the time of the next request or of giving up.
    asked: u8,
    due: Option<Instant>,
    held: Vec<(Transmit, Vec<u8>)>,
}

/// A request to send, to one host or to all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NeighbourQuestion {
    pub(super) about: IpAddr,
    pub(super) to: Option<Mac>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NeighbourAnswer {
    At(Mac),
    Sought,
}

impl NeighbourEntry {
    fn unknown(now: Instant) -> NeighbourEntry {
        NeighbourEntry { mac: None, confirmed_at: now, is_used: false, asked: 0, due: None, held: Vec::new() }
    }
}

impl NeighbourTable {
    /// The address of a neighbour. An old one is used while it is requested again.
    pub(super) fn find(&mut self, now: Instant, to: IpAddr) -> NeighbourAnswer {
        let Some(neighbour) = self.known.get_mut(&to) else { return NeighbourAnswer::Sought };
        neighbour.is_used = true;
        let Some(mac) = neighbour.mac else { return NeighbourAnswer::Sought };
        if now.since(neighbour.confirmed_at) > FRESH && neighbour.due.is_none() {
            neighbour.asked = 0;
            neighbour.due = Some(now);
            self.handle_timeout(now);
        }
        NeighbourAnswer::At(mac)
    }

    /// The known address, without a request.
    pub(super) fn address_of(&self, to: IpAddr) -> Option<Mac> {
        self.known.get(&to)?.mac
    }

    /// Keeps a packet until its neighbour is found. Returns whether there was room.
    pub(super) fn hold(&mut self, now: Instant, to: IpAddr, transmit: &Transmit, packet: &[u8]) -> bool {
        if !self.known.contains_key(&to) {
            self.make_room();
            self.known
                .insert(to, NeighbourEntry { is_used: true, due: Some(now), ..NeighbourEntry::unknown(now) });
        }
        let Some(neighbour) = self.known.get_mut(&to) else { return false };
        let has_room = neighbour.held.len() < HELD;
        if has_room {
            neighbour.held.push((*transmit, packet.to_vec()));
        }
        self.handle_timeout(now);
        has_room
    }

    /// Removes the neighbour that was confirmed longest ago (N1); its packets fail. Those that merely asked go first: a
    /// stranger can ask in many names.
    fn make_room(&mut self) {
        if self.known.len() < MOST {
            return;
        }
        let oldest =
            self.known.iter().min_by_key(|(_, neighbour)| (neighbour.is_used, neighbour.confirmed_at));
        if let Some(address) = oldest.map(|(address, _)| *address) {
            self.give_up(address);
        }
    }

    /// Learns an address from a message. A question to us adds a neighbour. Other messages, and answers that nobody
    /// awaits, change known neighbours alone (RFC 826, RFC 4861 §7.2.5). Returns the packets that waited.
    pub(super) fn learn(
        &mut self,
        now: Instant,
        who: IpAddr,
        mac: Mac,
        asks_us: bool,
    ) -> Vec<(Transmit, Vec<u8>)> {
        if who.is_unspecified() || who.is_multicast() {
            return Vec::new();
        }
        if !self.known.contains_key(&who) {
            if !asks_us {
                return Vec::new();
            }
            self.make_room();
        }
        let neighbour = self.known.entry(who).or_insert_with(|| NeighbourEntry::unknown(now));
        (neighbour.mac, neighbour.confirmed_at) = (Some(mac), now);
        (neighbour.asked, neighbour.due) = (0, None);
        std::mem::take(&mut neighbour.held)
    }

    /// The neighbour with this address; `None` if several have it.
    pub(super) fn named(&self, mac: Mac) -> Option<IpAddr> {
        let mut named = self.known.iter().filter(|(_, neighbour)| neighbour.mac == Some(mac));
        let first = named.next().map(|(address, _)| *address);
        first.filter(|_| named.next().is_none())
    }

    /// Confirms a neighbour's address, since a packet came from it.
    pub(super) fn confirm(&mut self, now: Instant, who: IpAddr, mac: Mac) {
        if let Some(neighbour) = self.known.get_mut(&who)
            && neighbour.mac == Some(mac)
        {
            neighbour.confirmed_at = now;
            (neighbour.asked, neighbour.due) = (0, None);
        }
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.known.values().filter_map(|neighbour| neighbour.due).min()
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        let mut lost = Vec::new();
        for (address, neighbour) in &mut self.known {
            if neighbour.due.is_none_or(|due| due > now) {
                continue;
            }
            if neighbour.asked == MOST_QUESTIONS {
                lost.push(*address);
                continue;
            }
            neighbour.asked += 1;
            neighbour.due = Some(now + ASK_EVERY);
            // The first request about an old address goes to that address alone.
            let to = neighbour.mac.filter(|_| neighbour.asked == 1);
            self.questions.push(NeighbourQuestion { about: *address, to });
        }
        for address in lost {
            self.give_up(address);
        }
    }

    fn give_up(&mut self, address: IpAddr) {
        let Some(neighbour) = self.known.remove(&address) else { return };
        self.given_up += neighbour.held.len() as u64;
        self.failures
            .extend(neighbour.held.into_iter().map(|(transmit, packet)| (address, transmit, packet)));
    }

    pub(super) fn next_question(&mut self, _now: Instant) -> Option<NeighbourQuestion> {
        self.questions.pop()
    }

    /// Takes the number of packets that were given up since the last call.
    pub(super) fn take_given_up(&mut self) -> u64 {
        std::mem::take(&mut self.given_up)
    }

    pub(super) fn drain_failures(&mut self, mut sink: impl FnMut(IpAddr, Transmit, &[u8])) {
        for (to, transmit, packet) in self.failures.drain(..) {
            sink(to, transmit, &packet);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::numbered;

    const MAC: Mac = [2; 6];

    fn peer() -> IpAddr {
        "10.0.0.2".parse().unwrap()
    }

    fn held(neighbours: &mut NeighbourTable, now: Instant, number: u32) -> bool {
        neighbours.hold(now, peer(), &numbered::transmit(number), &numbered::packet(number))
    }

    #[test]
    fn packets_wait_for_the_answer_and_leave_in_order() {
        let mut neighbours = NeighbourTable::default();
        let now = Instant::from_secs(1);
        assert_eq!(neighbours.find(now, peer()), NeighbourAnswer::Sought);
        assert!(held(&mut neighbours, now, 0) && held(&mut neighbours, now, 1));
        assert_eq!(neighbours.next_question(now), Some(NeighbourQuestion { about: peer(), to: None }));
        assert_eq!(neighbours.next_question(now), None);
        let leaving = neighbours.learn(now, peer(), MAC, true);
        let numbers: Vec<_> = leaving.iter().map(|(_, packet)| numbered::number(packet)).collect();
        assert_eq!(numbers, [0, 1]);
        assert_eq!(neighbours.find(now, peer()), NeighbourAnswer::At(MAC));
        assert_eq!(neighbours.poll_timeout(), None);
    }

    #[test]
    fn after_three_questions_packets_are_handed_back() {
        let mut neighbours = NeighbourTable::default();
        let mut now = Instant::from_secs(1);
        held(&mut neighbours, now, 7);
        let mut questions = 0;
        while let Some(at) = neighbours.poll_timeout() {
            questions += usize::from(neighbours.next_question(now).is_some());
            now = at;
            neighbours.handle_timeout(now);
        }
        assert_eq!((questions, neighbours.take_given_up()), (3, 1));
        let mut failed = Vec::new();
        neighbours.drain_failures(|to, transmit, _| failed.push((to, transmit.id)));
        assert_eq!(failed, [(peer(), 7)]);
        assert_eq!(now, Instant::from_secs(4));
    }

    #[test]
    fn no_more_than_a_few_packets_wait() {
        let mut neighbours = NeighbourTable::default();
        let now = Instant::from_secs(1);
        let taken = (0..20).filter(|number| held(&mut neighbours, now, *number)).count();
        assert_eq!(taken, HELD);
    }

    #[test]
    fn what_strangers_tell_everyone_adds_nobody_but_moves_who_is_known() {
        let mut neighbours = NeighbourTable::default();
        let now = Instant::from_secs(1);
        neighbours.learn(now, peer(), MAC, false);
        assert_eq!(neighbours.find(now, peer()), NeighbourAnswer::Sought);
        neighbours.learn(now, peer(), MAC, true);
        neighbours.learn(now, peer(), [4; 6], false);
        assert_eq!(neighbours.find(now, peer()), NeighbourAnswer::At([4; 6]));
    }

    #[test]
    fn an_old_answer_is_used_while_it_is_asked_for_again() {
        let mut neighbours = NeighbourTable::default();
        neighbours.learn(Instant::from_secs(1), peer(), MAC, true);
        let later = Instant::from_secs(60);
        assert_eq!(neighbours.find(later, peer()), NeighbourAnswer::At(MAC));
        assert_eq!(neighbours.next_question(later), Some(NeighbourQuestion { about: peer(), to: Some(MAC) }));
        neighbours.confirm(later, peer(), MAC);
        assert_eq!(neighbours.poll_timeout(), None);
    }

    #[test]
    fn the_table_is_bounded() {
        let mut neighbours = NeighbourTable::default();
        for number in 0..3000_u32 {
            let who = IpAddr::from((0x0a00_0001 + number).to_be_bytes());
            neighbours.learn(Instant::from_secs(u64::from(number)), who, MAC, true);
        }
        assert_eq!(neighbours.known.len(), MOST);
    }

    #[test]
    fn those_that_merely_asked_make_room_before_those_that_are_used_or_awaited() {
        let mut neighbours = NeighbourTable::default();
        let (now, used) = (Instant::from_secs(1), "10.0.0.3".parse().expect("an address"));
        neighbours.learn(now, used, MAC, true);
        neighbours.find(now, used);
        held(&mut neighbours, now, 0);
        for number in 0..3000_u32 {
            let who = IpAddr::from((0x0a01_0001 + number).to_be_bytes());
            neighbours.learn(Instant::from_secs(2 + u64::from(number)), who, MAC, true);
        }
        assert_eq!((neighbours.known.len(), neighbours.address_of(used)), (MOST, Some(MAC)));
        assert_eq!(neighbours.learn(now, peer(), MAC, false).len(), 1, "its packet still waits");
    }
}
