//! What every step of a connection is handed besides the connection: the time, and where to write what happened.

use crate::Instant;
use crate::trace::{DropReason, TraceKind, TraceRing};

/// How much of the memory for buffers an endpoint has left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Memory {
    #[default]
    Plenty,
    /// No limit of a buffer is raised any more.
    Tight,
    /// No buffer grows beyond 4 KiB, and windows promise no more than buffers have.
    Spent,
}

/// What each buffer of a connection may hold however scarce memory is, so that none stands still for ever.
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

impl Cx<'_> {
    pub(crate) fn trace(&mut self, kind: TraceKind) {
        self.ring.push(self.now, self.conn, self.packet, kind);
    }

    pub(crate) fn dropped(&mut self, reason: DropReason) {
        self.trace(TraceKind::Dropped(reason));
    }
}
