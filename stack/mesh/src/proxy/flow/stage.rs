//! The stage of a flow: whether both ends have spoken, and whether it has ended.

use hopwise_core::Instant;
use hopwise_core::agent::Side;

use super::Flow;
use crate::proxy::read::Read;

impl Flow {
    /// As far as can be known: one end may still send for as long as it likes after the other's FIN. Kept packets are
    /// still to be sent.
    pub(in crate::proxy) fn has_ended(&self) -> bool {
        (self.was_reset || self.has_finished == [true; 2]) && self.kept_packets() == 0
    }

    /// Returns whether both sides were seen and the agent can serve it.
    pub(in crate::proxy) fn earns_a_lasting_entry(&self) -> bool {
        self.has_spoken == [true; 2] && self.is_attended()
    }

    /// Returns whether both ends have spoken and the flow has not ended.
    pub(in crate::proxy) fn is_under_way(&self) -> bool {
        self.has_spoken == [true; 2] && !self.has_ended()
    }

    /// Notes the SYN that passed before the flow was in the table.
    pub(in crate::proxy) fn begin(&mut self, now: Instant, from: Side, syn: &Read<'_>) {
        self.has_spoken[from as usize] |= self.facts.see(now, from, syn).is_some();
    }
}
