//! The packets that leave a base station, in one queue for each side, and the trace.

mod queue;

use hopwise_core::agent::{Because, Side};
use hopwise_core::trace::{DropReason, TraceKind, TraceRing};
use hopwise_core::{Instant, Seq};

use queue::Queue;

/// The largest number of spare buffers for later packets.
const SPARE: usize = 256;
/// The bytes that may always wait for a link.
const LEAST_BYTES: usize = 16 << 20;

/// A packet that leaves as soon as its link is polled.
#[derive(Debug)]
pub(super) struct Leaving {
    pub(super) id: u64,
    /// It has not waited, and a router would put it even into a full queue.
    pub(super) is_passing: bool,
    /// Its flow, if a newer pure ACK of it may take this one's place.
    pub(super) replaceable: Option<u32>,
    pub(super) packet: Vec<u8>,
}

#[derive(Debug)]
pub(super) struct Outbox {
    to_fixed: Queue,
    to_mobile: Queue,
    /// The largest number of packets, and of their bytes, that wait for each link.
    most_queued: usize,
    most_bytes: usize,
    pub(super) trace: TraceRing,
    spare: Vec<Vec<u8>>,
    ids: u64,
    /// Packets of followed flows that neither end can have sent.
    pub(super) unfit: u64,
    /// The number of times that memory, or one flow's part of it, was too small.
    pub(super) overflows: u64,
    /// Waiting packets that gave way to those of other mobiles.
    pub(super) pushed_out: u64,
}

impl Outbox {
    /// As many bytes as may be kept may wait for a link: all kept packets can leave at once.
    pub(super) fn new(most_queued: usize, most_kept_bytes: usize, trace_events: usize) -> Outbox {
        Outbox {
            to_fixed: Queue::default(),
            to_mobile: Queue::default(),
            most_queued,
            most_bytes: most_kept_bytes.max(LEAST_BYTES),
            trace: TraceRing::new(trace_events),
            spare: Vec::new(),
            ids: 0,
            unfit: 0,
            overflows: 0,
            pushed_out: 0,
        }
    }

    pub(super) fn next_id(&mut self) -> u64 {
        self.ids += 1;
        self.ids
    }

    pub(super) fn copy(&mut self, packet: &[u8]) -> Vec<u8> {
        let mut copy = self.spare.pop().unwrap_or_default();
        copy.clear();
        copy.extend_from_slice(packet);
        copy
    }

    pub(super) fn recycle(&mut self, buffer: Vec<u8>) {
        if self.spare.len() < SPARE {
            self.spare.push(buffer);
        }
    }

    pub(super) fn queue(&mut self, to: Side) -> &mut Queue {
        match to {
            Side::Fixed => &mut self.to_fixed,
            Side::Mobile => &mut self.to_mobile,
        }
    }

    pub(super) fn send(&mut self, now: Instant, to: Side, leaving: Leaving) {
        let (most_queued, most_bytes) = (self.most_queued, self.most_bytes);
        let queue = self.queue(to);
        if queue.len() >= most_queued || queue.bytes() + leaving.packet.len() > most_bytes {
            self.dropped(now, 0, leaving.id, DropReason::QueueFull);
            self.recycle(leaving.packet);
            return;
        }
        self.queue(to).push(leaving);
    }

    /// Sends a packet untouched and at once.
    pub(super) fn pass(&mut self, now: Instant, to: Side, id: u64, packet: &[u8]) {
        let packet = self.copy(packet);
        self.send(now, to, Leaving { id, is_passing: true, replaceable: None, packet });
    }

    /// Takes the place of the flow's last waiting pure ACK, or the end of the queue.
    pub(super) fn replace(&mut self, now: Instant, flow: u32, to: Side, id: u64, packet: &[u8]) {
        let mut packet = self.copy(packet);
        if let Some(replaced) = self.queue(to).replace_last_of(flow, id, &mut packet) {
            self.dropped(now, flow, replaced, DropReason::Replaced);
            self.recycle(packet);
            return;
        }
        self.send(now, to, Leaving { id, is_passing: false, replaceable: Some(flow), packet });
    }

    pub(super) fn dropped(&mut self, now: Instant, flow: u32, id: u64, reason: DropReason) {
        self.trace.push(now, flow, id, TraceKind::Dropped(reason));
    }

    pub(super) fn note(&mut self, now: Instant, flow: u32, id: u64, kind: TraceKind) {
        self.trace.push(now, flow, id, kind);
    }
}

/// The trace's label for a packet that is kept or released.
#[derive(Clone, Copy, Debug)]
pub(super) struct Label {
    pub(super) from: Side,
    pub(super) number: Seq,
    pub(super) len: u32,
    pub(super) because: Because,
}

impl Label {
    pub(super) fn kept(self) -> TraceKind {
        let Label { from, number, len, because } = self;
        TraceKind::Kept { from, number, len, because }
    }

    pub(super) fn released(self) -> TraceKind {
        let Label { from, number, len, because } = self;
        TraceKind::Released { from, number, len, because }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_bytes_wait_for_a_link_than_a_bound_and_the_other_link_has_its_own() {
        let (now, most) = (Instant::ZERO, LEAST_BYTES + 1_000);
        let mut out = Outbox::new(65_536, most, 10);
        for id in 0..1_000 {
            out.pass(now, Side::Mobile, id, &[0; 60_000]);
            assert!(out.queue(Side::Mobile).bytes() <= most);
        }
        let waiting = most / 60_000;
        assert_eq!(out.queue(Side::Mobile).len(), waiting);
        assert_eq!(out.trace.drops(DropReason::QueueFull), 1_000 - waiting as u64);
        out.pass(now, Side::Fixed, 1_000, &[0; 60_000]);
        assert_eq!(out.queue(Side::Fixed).len(), 1);
        // A packet that leaves makes room for one.
        assert!(out.queue(Side::Mobile).pop().is_some());
        out.pass(now, Side::Mobile, 1_001, &[0; 60_000]);
        assert_eq!(out.queue(Side::Mobile).len(), waiting);
    }
}
