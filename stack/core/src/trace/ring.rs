//! The bounded ring of events that a machine owns and its driver drains.

use std::collections::VecDeque;

use super::{DropReason, TraceEvent, TraceKind};
use crate::Instant;

/// Keeps the newest events and counts what it had to forget; counts every drop whether or not it keeps events.
#[derive(Debug)]
pub struct TraceRing {
    events: VecDeque<TraceEvent>,
    capacity: usize,
    forgotten: u64,
    drops: [u64; DropReason::ALL.len()],
}

impl TraceRing {
    /// A ring for `capacity` events; with 0 only drops are counted.
    pub fn new(capacity: usize) -> TraceRing {
        TraceRing {
            events: VecDeque::with_capacity(capacity),
            capacity,
            forgotten: 0,
            drops: [0; DropReason::ALL.len()],
        }
    }

    pub fn push(&mut self, now: Instant, conn: u32, packet: u64, kind: TraceKind) {
        if let TraceKind::Dropped(reason) = kind {
            self.drops[reason as usize] += 1;
        }
        if self.capacity == 0 {
            return;
        }
        if self.events.len() == self.capacity {
            self.events.pop_front();
            self.forgotten += 1;
        }
        self.events.push_back(TraceEvent { now, conn, packet, kind });
    }

    pub fn drain(&mut self, sink: &mut dyn FnMut(&TraceEvent)) {
        for event in self.events.drain(..) {
            sink(&event);
        }
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
}
