//! The interface to a stack under measurement: two ends of one connection, and packets that pass between them.

use std::collections::VecDeque;

/// The client is A, the server B.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    A,
    B,
}

impl End {
    pub(crate) fn other(self) -> End {
        match self {
            End::A => End::B,
            End::B => End::A,
        }
    }
}

/// A connection in virtual time, with which both stacks work.
pub(crate) trait Pair {
    /// Lets time go on.
    fn wait_us(&mut self, us: u64);
    /// Opens the connection, or the next one after it was closed.
    fn open(&mut self);
    /// Closes it from both sides, A first, and waits until both ends have forgotten it.
    fn close(&mut self);
    /// Writes until there is no room.
    fn write(&mut self, end: End, data: &[u8]) -> usize;
    /// Reads what is there and fits.
    fn read(&mut self, end: End, out: &mut [u8]) -> usize;
    /// Handles all packets that wait for this end.
    fn take(&mut self, end: End);
    /// Puts this end's next packet before the other, if there is one.
    fn give_one(&mut self, end: End) -> bool;
    /// Puts all packets of this end before the other.
    fn give(&mut self, end: End) {
        while self.give_one(end) {}
    }
    /// The number of full-sized segments that have passed until now.
    fn full_segments(&self) -> u64;
}

/// Checksums are computed and verified by both ends, or by neither.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sums {
    On,
    Off,
}

/// When in-order data is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Acks {
    /// ACKs for every second segment, or after a while.
    Delayed,
    Immediate,
}

/// The largest packet that the wire takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packets {
    Segments,
    /// Bundles of up to 64 KiB of segments, which the wire hands to the other end as they are.
    Bundles,
}

/// Payload of a full segment, for both stacks.
pub(crate) const SEGMENT_BYTES: usize = 1460;
/// The largest packet of several segments.
pub(crate) const BUNDLE_BYTES: usize = 65_535;
/// The size of send and receive buffers, for both.
pub(crate) const BUFFER_BYTES: usize = 64 << 10;

/// A packet, and the length of a bundle's segments.
#[derive(Debug)]
pub(crate) struct Arriving {
    pub(crate) packet: Vec<u8>,
    pub(crate) segment_bytes: Option<u16>,
}

/// Packets on their way to an end, and buffers for reuse.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    packets: VecDeque<Arriving>,
    spare: Vec<Vec<u8>>,
    full_segments: u64,
}

impl Queue {
    pub(crate) fn spare(&mut self) -> Vec<u8> {
        self.spare.pop().unwrap_or_default()
    }

    pub(crate) fn keep(&mut self, spare: Vec<u8>) {
        self.spare.push(spare);
    }

    pub(crate) fn put(&mut self, packet: Vec<u8>, segment_bytes: Option<u16>) {
        // Headers are far from making up a segment.
        self.full_segments += (packet.len() / SEGMENT_BYTES) as u64;
        self.packets.push_back(Arriving { packet, segment_bytes });
    }

    pub(crate) fn next(&mut self) -> Option<Arriving> {
        self.packets.pop_front()
    }

    pub(crate) fn full_segments(&self) -> u64 {
        self.full_segments
    }
}

/// Lets both ends send all their packets.
pub(crate) fn settle(pair: &mut impl Pair) {
    for _ in 0..8 {
        for end in [End::A, End::B] {
            pair.give(end);
            pair.take(end.other());
        }
    }
}
