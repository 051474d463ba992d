//! Packets that wait for a route: bounded in number and in time, the oldest goes first.

use std::collections::VecDeque;
use std::net::Ipv4Addr;
use std::time::Duration;

use hopwise_core::Instant;
use hopwise_core::trace::DropReason;

#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) dst: Ipv4Addr,
    pub(crate) id: u64,
    pub(crate) packet: Vec<u8>,
    until: Instant,
}

#[derive(Debug)]
pub(crate) struct Buffer {
    waiting: VecDeque<Waiting>,
    most: usize,
    time: Duration,
}

impl Buffer {
    pub(crate) fn new(most: u32, time: Duration) -> Buffer {
        Buffer { waiting: VecDeque::new(), most: most.max(1) as usize, time }
    }

    /// Answers which packet had to make room, if one had to.
    #[must_use]
    pub(crate) fn push(
        &mut self,
        now: Instant,
        dst: Ipv4Addr,
        id: u64,
        packet: &[u8],
    ) -> Option<(u64, DropReason)> {
        let oldest = if self.waiting.len() >= self.most { self.waiting.pop_front() } else { None };
        let until = now + self.time;
        self.waiting.push_back(Waiting { dst, id, packet: packet.to_vec(), until });
        oldest.map(|oldest| {
            let is_late = oldest.until <= now;
            let reason = if is_late { DropReason::RouteBufferTimeout } else { DropReason::RouteBufferFull };
            (oldest.id, reason)
        })
    }

    pub(crate) fn has(&self, dst: Ipv4Addr) -> bool {
        self.waiting.iter().any(|waiting| waiting.dst == dst)
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

    #[test]
    fn the_oldest_makes_room_and_each_waits_its_time() {
        let address = Ipv4Addr::new(10, 0, 0, 9);
        let mut buffer = Buffer::new(2, Duration::from_secs(30));
        let at = Instant::from_secs;
        assert_eq!(buffer.push(at(0), address, 1, b"a"), None);
        assert_eq!(buffer.push(at(1), address, 2, b"b"), None);
        assert_eq!(buffer.push(at(2), address, 3, b"c"), Some((1, DropReason::RouteBufferFull)));
        assert_eq!(buffer.next(), Some(at(31)));
        assert_eq!(buffer.take_late(at(30)), None);
        assert_eq!(buffer.take_late(at(31)), Some(2));
        assert_eq!(buffer.take(Ipv4Addr::new(10, 0, 0, 8)).len(), 0);
        assert_eq!(buffer.take(address).iter().map(|waiting| waiting.id).collect::<Vec<_>>(), [3]);
    }
}
