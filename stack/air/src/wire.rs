//! Wires between two machines: a rate, a delay, both directions at once. The machines hold the queues.

use std::collections::VecDeque;
use std::time::Duration;

use hopwise_core::LinkId;

/// A wire, and the machines at its ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WireConfig {
    /// The two machines, each with its own name for the wire.
    pub ends: [(u32, LinkId); 2],
    /// Its rate in each direction.
    pub bits_per_second: u64,
    /// The time from the last bit's departure to the arrival of the packet.
    pub delay: Duration,
}

#[derive(Debug)]
pub(crate) struct Wire {
    pub(crate) config: WireConfig,
    directions: [Direction; 2],
}

#[derive(Debug, Default)]
struct Direction {
    /// When the last bit of the current packet leaves.
    sends_until: u64,
    /// Packets on their way; a wire keeps their order.
    under_way: VecDeque<Vec<u8>>,
}

impl Wire {
    pub(crate) fn new(config: WireConfig) -> Wire {
        Wire { config, directions: [Direction::default(), Direction::default()] }
    }

    pub(crate) fn has_room(&self, end: usize, now: u64) -> bool {
        self.directions[end].sends_until <= now
    }

    /// Sends from an end; returns when there is room again, and when the packet arrives.
    pub(crate) fn send(&mut self, end: usize, now: u64, packet: Vec<u8>) -> (u64, u64) {
        let bits = packet.len() as u64 * 8;
        let until = now + bits * 1_000_000_000 / self.config.bits_per_second.max(1);
        let direction = &mut self.directions[end];
        direction.sends_until = until;
        direction.under_way.push_back(packet);
        (until, until + u64::try_from(self.config.delay.as_nanos()).unwrap_or(u64::MAX))
    }

    /// The packet that arrives at the other end.
    pub(crate) fn arrive(&mut self, end: usize) -> Option<Vec<u8>> {
        self.directions[end].under_way.pop_front()
    }
}
