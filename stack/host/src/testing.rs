//! A link in memory for unit tests: what is sent comes back.

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;

use hopwise_core::endpoint::Neighbours;
use hopwise_core::{Instant, LinkEvent, Transmit};

use crate::counters::{LinkCounters, Tally};
use crate::link::{Arrived, Link, Received, Sent};

#[derive(Debug)]
pub(crate) struct Loop {
    /// Packets that it takes before it is full.
    pub(crate) room: usize,
    pub(crate) packets: VecDeque<Vec<u8>>,
    pub(crate) tally: Tally,
}

impl Default for Loop {
    fn default() -> Loop {
        Loop { room: usize::MAX, packets: VecDeque::new(), tally: Tally::new() }
    }
}

impl Link for Loop {
    fn name(&self) -> &'static str {
        "loop"
    }

    fn mtu(&self) -> u16 {
        1500
    }

    fn neighbours(&self) -> Neighbours {
        Neighbours::Implied
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn receive(&mut self, _now: Instant, into: &mut [u8]) -> Received {
        let Some(packet) = self.packets.pop_front() else { return Received::Nothing };
        into[..packet.len()].copy_from_slice(&packet);
        self.tally.received.count(packet.len());
        Received::Packet(Arrived::new(packet.len()))
    }

    fn transmit(&mut self, _now: Instant, _transmit: &Transmit, packet: &[u8]) -> Sent {
        if self.packets.len() >= self.room {
            return Sent::Full;
        }
        self.tally.sent.count(packet.len());
        self.packets.push_back(packet.to_vec());
        Sent::Taken
    }

    fn flush(&mut self, _now: Instant) {}

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn handle_timeout(&mut self, _now: Instant) {}

    fn drain_events(&mut self, _sink: &mut dyn FnMut(&LinkEvent<'_>)) {}

    fn counters(&self) -> LinkCounters {
        self.tally.show("loop")
    }
}

/// Packets of 100 bytes that can be told apart.
pub(crate) mod numbered {
    use hopwise_core::{NextHop, QueueClass, Transmit};

    pub(crate) fn packet(number: u32) -> Vec<u8> {
        let mut packet = vec![0x45; 100];
        packet[..4].copy_from_slice(&number.to_be_bytes());
        packet
    }

    pub(crate) fn number(packet: &[u8]) -> u32 {
        u32::from_be_bytes([packet[0], packet[1], packet[2], packet[3]])
    }

    pub(crate) fn transmit(number: u32) -> Transmit {
        Transmit { to: NextHop::Link, class: QueueClass::Data, segment_bytes: None, id: u64::from(number) }
    }
}
