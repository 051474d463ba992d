//! The context of every step of a connection: the time, and the trace.

use crate::Instant;
use crate::trace::{DropReason, TraceKind, TraceRing};

/// The state of the endpoint's memory for buffers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Memory {
    /// Buffers grow as they need.
    #[default]
    Plenty,
    /// No buffer's limit grows any more.
    Tight,
    /// No buffer grows beyond 4 KiB, and windows promise no more than the buffers have.
    Spent,
}

/// The bytes that each buffer of a connection may hold even if memory is spent, so that no connection stands still.
pub(crate) const LEAST_BYTES: u32 = 4096;

pub(crate) struct Cx<'a> {
    pub(crate) now: Instant,
    /// The connection's number in traces.
    pub(crate) conn: u32,
    /// Running number of the packet being handled, or the id of the one being sent.
    pub(crate) packet: u64,
    pub(crate) memory: Memory,
    pub(crate) ring: &'a mut TraceRing,
}

impl<'a> Cx<'a> {
    pub(crate) fn new(
        now: Instant,
        conn: u32,
        packet: u64,
        memory: Memory,
        ring: &'a mut TraceRing,
    ) -> Cx<'a> {
        Cx { now, conn, packet, memory, ring }
    }

    #[inline(always)]
    pub(crate) fn trace(&mut self, kind: TraceKind) {
        self.ring.push(self.now, self.conn, self.packet, kind);
    }

    pub(crate) fn dropped(&mut self, reason: DropReason) {
        self.trace(TraceKind::Dropped(reason));
    }
}
