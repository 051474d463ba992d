//! The packets that leave a base station, in one queue for each side, and the trace.

mod queue;

use hopwise_core::agent::{Because, Side};
use hopwise_core::trace::{DropReason, TraceKind, TraceRing};
use hopwise_core::{Instant, Seq};

use queue::Queue;

/// The largest number of spare buffers for later packets.
const SPARE: usize = 256;

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
    most_queued: usize,
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
    pub(super) fn new(most_queued: usize, trace_events: usize) -> Outbox {
        Outbox {
            to_fixed: Queue::default(),
            to_mobile: Queue::default(),
            most_queued,
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
        if self.queue(to).len() >= self.most_queued {
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
        if let Some(older) = self.queue(to).last_of(flow) {
            std::mem::swap(&mut older.packet, &mut packet);
            let replaced = std::mem::replace(&mut older.id, id);
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
