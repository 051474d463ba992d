//! What every step of a connection is handed besides the connection: the time, and where to write what happened.

use crate::Instant;
use crate::trace::{DropReason, TraceKind, TraceRing};

pub(crate) struct Cx<'a> {
    pub(crate) now: Instant,
    /// The connection's number in traces.
    pub(crate) conn: u32,
    /// Running number of the packet being handled, or the id of the one being sent.
    pub(crate) packet: u64,
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
