//! The calls of the ledger and their outcomes, as the decision log gets them.

use super::{AckLedger, Cx, DecidedAck, Facts};
use crate::tcp::decisions::{Call, Entry, Outcome, Seen, What};

impl AckLedger {
    /// A segment leaves and carries `facts.rcv_nxt`, which settles all ACKs that are owed. Returns the ACK that rides
    /// on it, or None if no ACK was due.
    pub(crate) fn ride(&mut self, cx: &mut Cx<'_>, facts: &Facts<'_>) -> Option<DecidedAck> {
        self.log_call(cx, What::Rides, facts);
        let ack = self.take_along(cx, facts);
        log_left(cx, ack.as_ref());
        ack
    }

    /// The ACK that leaves alone now. With SACK blocks it acknowledges all data so far, as the blocks do.
    pub(crate) fn pop(&mut self, cx: &mut Cx<'_>, facts: &Facts<'_>) -> Option<DecidedAck> {
        self.log_call(cx, What::Leaves, facts);
        let ack = self.take_alone(cx, facts);
        log_left(cx, ack.as_ref());
        ack
    }

    /// A segment leaves that carries the number, and no agent owes anything.
    pub(crate) fn pass(&self, cx: &mut Cx<'_>, facts: &Facts<'_>) {
        self.log_call(cx, What::Passes, facts);
    }

    /// Ends the ledger with the connection: no ACK is owed any more.
    pub(crate) fn clear(&mut self, cx: &mut Cx<'_>) {
        if cx.logs_decisions() {
            cx.log(Entry::Call(Call { at: cx.now, packet: 0, seen: Seen::default(), what: What::Ended }));
        }
        self.owe_nothing();
    }

    /// Logs a call, before anything of it is done.
    #[inline]
    pub(super) fn log_call(&self, cx: &mut Cx<'_>, what: What, facts: &Facts<'_>) {
        if cx.logs_decisions() {
            self.log_with_all_seen(cx, what, facts);
        }
    }

    #[cold]
    fn log_with_all_seen(&self, cx: &mut Cx<'_>, what: What, facts: &Facts<'_>) {
        let facts = facts.with_path(facts.path.clone());
        let seen = Seen { facts, has_sack: self.merging.has_sack, twice: self.twice };
        cx.log(Entry::Call(Call { at: cx.now, packet: cx.packet, seen, what }));
    }
}

#[inline]
fn log_left(cx: &mut Cx<'_>, ack: Option<&DecidedAck>) {
    if cx.logs_decisions() {
        cx.log_outcome(Outcome::Left(ack.map(DecidedAck::left)));
    }
}
