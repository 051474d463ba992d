//! The context of every step of a connection: the time, and the trace.

use super::decisions::{Entry, Outcome};
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

impl Cx<'_> {
    #[inline(always)]
    pub(crate) fn trace(&mut self, kind: TraceKind) {
        self.ring.push(self.now, self.conn, self.packet, kind);
    }

    /// Returns whether the decisions of ledgers are logged.
    #[inline]
    pub(crate) fn logs_decisions(&self) -> bool {
        self.ring.decisions.is_some()
    }

    #[inline]
    pub(crate) fn log_outcome(&mut self, outcome: Outcome) {
        if self.logs_decisions() {
            self.log(Entry::Outcome(outcome));
        }
    }

    #[cold]
    pub(crate) fn log(&mut self, entry: Entry) {
        if let Some(keeper) = &mut self.ring.decisions {
            keeper.push(self.conn, entry);
        }
    }

    pub(crate) fn dropped(&mut self, reason: DropReason) {
        self.trace(TraceKind::Dropped(reason));
    }
}
