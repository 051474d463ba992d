//! Packets that wait for a route: bounded in number and in time. The oldest goes first, and where destinations share
//! the room, the oldest of the one that has most of it.

use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;
use std::time::Duration;

use hopwise_core::Instant;
use hopwise_core::trace::DropReason;

use super::rank::Rank;

/// Packets that may wait for routes, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Room {
    pub(crate) packets: u32,
    pub(crate) time: Duration,
    /// Each destination has a share, and doubtful ones give way.
    pub(crate) is_shared: bool,
}

#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) dst: Ipv4Addr,
    pub(crate) id: u64,
    pub(crate) packet: Vec<u8>,
    rank: Rank,
    until: Instant,
}

#[derive(Debug)]
pub(crate) struct Buffer {
    waiting: VecDeque<Waiting>,
    room: Room,
}

impl Buffer {
    pub(crate) fn new(room: Room) -> Buffer {
        Buffer { waiting: VecDeque::new(), room: Room { packets: room.packets.max(1), ..room } }
    }

    /// Answers which packet had to make room, if one had to.
    #[must_use]
    pub(crate) fn push(
        &mut self,
        now: Instant,
        (dst, rank): (Ipv4Addr, Rank),
        id: u64,
        packet: &[u8],
    ) -> Option<(u64, DropReason)> {
        let until = now + self.room.time;
        self.waiting.push_back(Waiting { dst, id, packet: packet.to_vec(), rank, until });
        let is_full = self.waiting.len() > self.room.packets as usize;
        let gone = if is_full { self.waiting.remove(self.victim(now)) } else { None };
        gone.map(|gone| {
            let is_late = gone.until <= now;
            let reason = if is_late { DropReason::RouteBufferTimeout } else { DropReason::RouteBufferFull };
            (gone.id, reason)
        })
    }

    /// The packet that gives way: it is late anyway, or the oldest of the destination with most of the lowest rank.
    fn victim(&self, now: Instant) -> usize {
        let is_late = self.waiting.front().is_some_and(|oldest| oldest.until <= now);
        if !self.room.is_shared || is_late {
            return 0;
        }
        let lowest = self.waiting.iter().map(|waiting| waiting.rank).min().unwrap_or(Rank::Sure);
        let of_lowest = |waiting: &&Waiting| waiting.rank == lowest;
        let mut held: BTreeMap<Ipv4Addr, usize> = BTreeMap::new();
        self.waiting.iter().filter(of_lowest).for_each(|waiting| *held.entry(waiting.dst).or_default() += 1);
        let most = held.values().max().copied();
        let gives_way = |waiting: &Waiting| waiting.rank == lowest && held.get(&waiting.dst).copied() == most;
        self.waiting.iter().position(gives_way).unwrap_or(0)
    }

    pub(crate) fn has(&self, dst: Ipv4Addr) -> bool {
        self.waiting.iter().any(|waiting| waiting.dst == dst)
    }

    /// The highest rank of what waits for that destination.
    pub(crate) fn rank(&self, dst: Ipv4Addr) -> Rank {
        let of_it = self.waiting.iter().filter(|waiting| waiting.dst == dst);
        of_it.map(|waiting| waiting.rank).max().unwrap_or(Rank::Doubtful)
    }

    /// All that wait for this destination, in their order.
    pub(crate) fn take(&mut self, dst: Ipv4Addr) -> Vec<Waiting> {
        if !self.has(dst) {
            return Vec::new();
        }
        let (taken, kept) = self.waiting.drain(..).partition(|waiting| waiting.dst == dst);
        self.waiting = kept;
        Vec::from(taken)
    }

    /// Those that have waited too long. They stand in the order of their time.
    pub(crate) fn take_late(&mut self, now: Instant) -> Option<u64> {
        if self.waiting.front().is_some_and(|oldest| oldest.until <= now) {
            return self.waiting.pop_front().map(|oldest| oldest.id);
        }
        None
    }

    pub(crate) fn next(&self) -> Option<Instant> {
        self.waiting.front().map(|oldest| oldest.until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: Room = Room { packets: 2, time: Duration::from_secs(30), is_shared: false };

    fn ids(taken: &[Waiting]) -> Vec<u64> {
        taken.iter().map(|waiting| waiting.id).collect()
    }

    #[test]
    fn the_oldest_makes_room_and_each_waits_its_time() {
        let address = Ipv4Addr::new(10, 0, 0, 9);
        let mut buffer = Buffer::new(ROOM);
        let at = Instant::from_secs;
        assert_eq!(buffer.push(at(0), (address, Rank::Sure), 1, b"a"), None);
        assert_eq!(buffer.push(at(1), (address, Rank::Sure), 2, b"b"), None);
        let full = Some((1, DropReason::RouteBufferFull));
        assert_eq!(buffer.push(at(2), (address, Rank::Sure), 3, b"c"), full);
        assert_eq!(buffer.next(), Some(at(31)));
        assert_eq!(buffer.take_late(at(30)), None);
        assert_eq!(buffer.take_late(at(31)), Some(2));
        assert_eq!(buffer.take(Ipv4Addr::new(10, 0, 0, 8)).len(), 0);
        assert_eq!(ids(&buffer.take(address)), [3]);
    }

    #[test]
    fn a_destination_that_takes_all_the_room_makes_room_for_others_and_doubtful_ones_do_before() {
        let address = |n| Ipv4Addr::new(10, 0, 0, n);
        let mut buffer = Buffer::new(Room { packets: 4, is_shared: true, ..ROOM });
        let mut push =
            |n, rank, id| buffer.push(Instant::ZERO, (address(n), rank), id, b"").map(|gone| gone.0);
        assert_eq!([1, 2, 3, 4].map(|id| push(9, Rank::Sure, id)), [None; 4]);
        assert_eq!(push(8, Rank::Sure, 5), Some(1), "the other one has all of it");
        assert_eq!(push(7, Rank::Doubtful, 6), Some(6), "no room for those");
        assert_eq!(push(8, Rank::Sure, 7), Some(2));
        assert_eq!(push(8, Rank::Sure, 8), Some(5), "now this one has the most");
        assert_eq!(ids(&buffer.take(address(8))), [7, 8]);
        assert_eq!(ids(&buffer.take(address(9))), [3, 4]);
        let mut push =
            |n, rank, id| buffer.push(Instant::ZERO, (address(n), rank), id, b"").map(|gone| gone.0);
        assert_eq!([1, 2, 3].map(|n| push(n, Rank::Doubtful, n.into())), [None; 3]);
        assert_eq!([4, 5, 6].map(|n| push(9, Rank::Sure, n)), [None, Some(1), Some(2)]);
        assert_eq!((buffer.rank(address(9)), buffer.rank(address(3))), (Rank::Sure, Rank::Doubtful));
    }
}
