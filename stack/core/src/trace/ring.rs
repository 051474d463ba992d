//! The bounded ring of events that a machine owns and its driver drains.

use super::{DropReason, TraceEvent, TraceKind};
use crate::Instant;

/// Keeps the newest events and counts what it had to forget; counts every drop whether or not it keeps events.
#[derive(Debug)]
pub struct TraceRing {
    /// Grows up to `capacity`; from then on the oldest gives way.
    events: Vec<TraceEvent>,
    /// The oldest, once the ring is full; 0 before.
    oldest: usize,
    capacity: usize,
    forgotten: u64,
    drops: [u64; DropReason::ALL.len()],
}

impl TraceRing {
    /// A ring for `capacity` events; with 0 only drops are counted.
    pub fn new(capacity: usize) -> TraceRing {
        TraceRing {
            events: Vec::with_capacity(capacity),
            oldest: 0,
            capacity,
            forgotten: 0,
            drops: [0; DropReason::ALL.len()],
        }
    }

    #[inline]
    pub fn push(&mut self, now: Instant, conn: u32, packet: u64, kind: TraceKind) {
        if let TraceKind::Dropped(reason) = kind {
            self.drops[reason as usize] += 1;
        }
        let event = TraceEvent { now, conn, packet, kind };
        if self.events.len() < self.capacity {
            self.events.push(event);
        } else if let Some(oldest) = self.events.get_mut(self.oldest) {
            *oldest = event;
            self.oldest = if self.oldest + 1 == self.capacity { 0 } else { self.oldest + 1 };
            self.forgotten += 1;
        }
    }

    pub fn drain(&mut self, sink: &mut dyn FnMut(&TraceEvent)) {
        let (newer, older) = self.events.split_at(self.oldest);
        older.iter().chain(newer).for_each(sink);
        self.events.clear();
        self.oldest = 0;
    }

    /// How often a packet was dropped for this reason.
    pub fn drops(&self, reason: DropReason) -> u64 {
        self.drops[reason as usize]
    }

    /// Events that were overwritten before anyone read them.
    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_newest_and_counts_the_rest() {
        let mut ring = TraceRing::new(2);
        for reason in [DropReason::Truncated, DropReason::Paws, DropReason::Paws] {
            ring.push(Instant::ZERO, 1, 0, TraceKind::Dropped(reason));
        }
        let mut seen = Vec::new();
        ring.drain(&mut |event| seen.push(event.kind));
        assert_eq!(seen, [TraceKind::Dropped(DropReason::Paws); 2]);
        assert_eq!((ring.forgotten(), ring.drops(DropReason::Truncated)), (1, 1));
    }

    #[test]
    fn events_come_out_in_the_order_they_went_in_however_often_the_ring_went_round() {
        let mut ring = TraceRing::new(3);
        for count in [1, 3, 5, 6, 7, 2] {
            for packet in 0..count {
                ring.push(Instant::ZERO, 1, packet, TraceKind::RecoveryEnded);
            }
            let mut seen = Vec::new();
            ring.drain(&mut |event| seen.push(event.packet));
            assert_eq!(seen, (count.saturating_sub(3)..count).collect::<Vec<_>>());
        }
        assert_eq!(ring.forgotten(), 2 + 3 + 4);
    }

    #[test]
    fn a_ring_without_room_still_counts_drops() {
        let mut ring = TraceRing::new(0);
        ring.push(Instant::ZERO, 1, 0, TraceKind::Dropped(DropReason::Paws));
        ring.drain(&mut |event| panic!("{event:?} was kept"));
        assert_eq!((ring.forgotten(), ring.drops(DropReason::Paws)), (0, 1));
    }
}
