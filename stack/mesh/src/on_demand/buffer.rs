//! Packets that wait for a route, bounded in number and in time. At the bound the oldest goes first. With shared room,
//! it is the oldest of the lane and the destination that have most of it.

use std::collections::VecDeque;
use std::net::Ipv4Addr;
use std::time::Duration;

use hopwise_core::Instant;
use hopwise_core::trace::DropReason;

use super::rank::{Wish, most_crowded};

/// The largest number of packets that wait for routes, and their longest wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BufferBounds {
    pub(crate) packets: u32,
    pub(crate) time: Duration,
    /// Each lane has a share, each destination within it too, and lower ranks give way.
    pub(crate) is_shared: bool,
}

#[derive(Debug)]
pub(crate) struct HeldPackets {
    pub(crate) dst: Ipv4Addr,
    pub(crate) id: u64,
    pub(crate) packet: Vec<u8>,
    wish: Wish,
    until: Instant,
}

#[derive(Debug)]
pub(crate) struct Buffer {
    waiting: VecDeque<HeldPackets>,
    bounds: BufferBounds,
}

impl Buffer {
    pub(crate) fn new(bounds: BufferBounds) -> Buffer {
        Buffer { waiting: VecDeque::new(), bounds: BufferBounds { packets: bounds.packets.max(1), ..bounds } }
    }

    /// Returns the packet that had to make room, if one had to.
    #[must_use]
    pub(crate) fn push(
        &mut self,
        now: Instant,
        (dst, wish): (Ipv4Addr, Wish),
        id: u64,
        packet: &[u8],
    ) -> Option<(u64, DropReason)> {
        let until = now + self.bounds.time;
        self.waiting.push_back(HeldPackets { dst, id, packet: packet.to_vec(), wish, until });
        let is_full = self.waiting.len() > self.bounds.packets as usize;
        let gone = if is_full { self.waiting.remove(self.victim(now)) } else { None };
        gone.map(|gone| {
            let is_late = gone.until <= now;
            let reason = if is_late { DropReason::RouteBufferTimeout } else { DropReason::RouteBufferFull };
            (gone.id, reason)
        })
    }

    /// The packet that gives way: one that is late anyway, or the oldest of the largest part of the lowest rank.
    fn victim(&self, now: Instant) -> usize {
        let is_late = self.waiting.front().is_some_and(|oldest| oldest.until <= now);
        if !self.bounds.is_shared || is_late {
            return 0;
        }
        let lowest = self.waiting.iter().map(|waiting| waiting.wish.rank).min();
        let of_lowest = |(_, waiting): &(usize, &HeldPackets)| Some(waiting.wish.rank) == lowest;
        let of_lowest: Vec<_> = self.waiting.iter().enumerate().filter(of_lowest).collect();
        let place = |(_, waiting): &(usize, &HeldPackets)| {
            let [source, is_named, protocol, port, last] = waiting.wish.lane.0;
            [source, is_named, protocol, port, last, waiting.dst.to_bits()]
        };
        let places: Vec<_> = of_lowest.iter().map(place).collect();
        most_crowded(&places).map_or(0, |nth| of_lowest[nth].0)
    }

    pub(crate) fn has(&self, dst: Ipv4Addr) -> bool {
        self.waiting.iter().any(|waiting| waiting.dst == dst)
    }

    /// The best wish among the packets that wait for that destination.
    pub(crate) fn wish(&self, dst: Ipv4Addr) -> Option<Wish> {
        let of_it = self.waiting.iter().filter(|waiting| waiting.dst == dst);
        of_it.map(|waiting| waiting.wish).max_by_key(|wish| wish.rank)
    }

    /// Takes all packets for this destination, in their order.
    pub(crate) fn take(&mut self, dst: Ipv4Addr) -> Vec<HeldPackets> {
        if !self.has(dst) {
            return Vec::new();
        }
        let (taken, kept) = self.waiting.drain(..).partition(|waiting| waiting.dst == dst);
        self.waiting = kept;
        Vec::from(taken)
    }

    /// Takes the next packet that has waited too long. They stand in the order of their time.
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
    use super::super::rank::Lane;
    use super::super::rank::Rank;
    use super::*;

    const BOUNDS: BufferBounds = BufferBounds { packets: 2, time: Duration::from_secs(30), is_shared: false };

    fn ids(taken: &[HeldPackets]) -> Vec<u64> {
        taken.iter().map(|waiting| waiting.id).collect()
    }

    #[test]
    fn the_oldest_makes_room_and_each_waits_its_time() {
        let address = Ipv4Addr::new(10, 0, 0, 9);
        let mut buffer = Buffer::new(BOUNDS);
        let at = Instant::from_secs;
        assert_eq!(buffer.push(at(0), (address, Wish::SURE), 1, b"a"), None);
        assert_eq!(buffer.push(at(1), (address, Wish::SURE), 2, b"b"), None);
        let full = Some((1, DropReason::RouteBufferFull));
        assert_eq!(buffer.push(at(2), (address, Wish::SURE), 3, b"c"), full);
        assert_eq!(buffer.next(), Some(at(31)));
        assert_eq!(buffer.take_late(at(30)), None);
        assert_eq!(buffer.take_late(at(31)), Some(2));
        assert_eq!(buffer.take(Ipv4Addr::new(10, 0, 0, 8)).len(), 0);
        assert_eq!(ids(&buffer.take(address)), [3]);
    }

    #[test]
    fn a_destination_that_takes_all_the_room_makes_room_for_others_and_answers_do_before() {
        let address = |n| Ipv4Addr::new(10, 0, 0, n);
        let mut buffer = Buffer::new(BufferBounds { packets: 4, is_shared: true, ..BOUNDS });
        let mut push = |n, rank, id| {
            buffer
                .push(Instant::ZERO, (address(n), Wish { rank, lane: Lane::OTHERS }), id, b"")
                .map(|gone| gone.0)
        };
        assert_eq!([1, 2, 3, 4].map(|id| push(9, Rank::Sure, id)), [None; 4]);
        assert_eq!(push(8, Rank::Sure, 5), Some(1), "the other one has all of it");
        assert_eq!(push(7, Rank::Answer, 6), Some(6), "no room for those");
        assert_eq!(push(8, Rank::Sure, 7), Some(2));
        assert_eq!(push(8, Rank::Sure, 8), Some(5), "now this one has the most");
        assert_eq!(ids(&buffer.take(address(8))), [7, 8]);
        assert_eq!(ids(&buffer.take(address(9))), [3, 4]);
        let mut push = |n, rank, id| {
            buffer
                .push(Instant::ZERO, (address(n), Wish { rank, lane: Lane::OTHERS }), id, b"")
                .map(|gone| gone.0)
        };
        assert_eq!([1, 2, 3].map(|n| push(n, Rank::Answer, n.into())), [None; 3]);
        assert_eq!([4, 5, 6].map(|n| push(9, Rank::Sure, n)), [None, Some(1), Some(2)]);
        let lane = |port| Wish { rank: Rank::Sure, lane: Lane([1, 0, 17, port, 0]) };
        let mut lanes = Buffer::new(BufferBounds { packets: 4, is_shared: true, ..BOUNDS });
        let mut push =
            |n, port, id| lanes.push(Instant::ZERO, (address(n), lane(port)), id, b"").map(|gone| gone.0);
        assert_eq!([1, 2, 3, 4].map(|n| push(n, 1 + u32::from(n > 1), n.into())), [None; 4]);
        assert_eq!([5, 6, 7].map(|n| push(n, 2, n.into())), [2, 3, 4].map(Some), "one lane has the most");
        let rank = |n| buffer.wish(address(n)).map(|wish| wish.rank);
        assert_eq!([9, 3, 8].map(rank), [Some(Rank::Sure), Some(Rank::Answer), None]);
    }
}
