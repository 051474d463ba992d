//! The agents that watch: when they are consulted, and what is counted of them.

use std::time::Duration;

use super::agent_state::Tally;
use super::{AckLedger, Cx, Facts};
use crate::agent::{AckRule, AckVerdict, Why};

impl AckLedger {
    /// Consults every shadow that is due.
    pub(super) fn ask_shadows(&mut self, cx: &mut Cx<'_>, facts: &Facts<'_>) {
        let ceiling_us = self.ceiling_us;
        for (nth, agent) in self.shadows.iter_mut().enumerate() {
            if let Some(verdict) = agent.ask_if_due(cx.now, facts) {
                agent.shadow_verdict(cx, nth, verdict, facts);
            }
            if agent.is_over_ceiling(cx.now, ceiling_us) {
                agent.shadow_verdict(cx, nth, AckVerdict::Now(Why::plain(AckRule::Ceiling)), facts);
            }
        }
    }

    /// ACKs that each shadow would have sent.
    pub(crate) fn shadow_acks(&self) -> impl Iterator<Item = u64> + '_ {
        self.tallies().map(|tally| tally.acks)
    }

    /// The total time that the first segments of these ACKs would have waited.
    pub(crate) fn shadow_holds(&self) -> impl Iterator<Item = Duration> + '_ {
        self.tallies().map(|tally| Duration::from_nanos(tally.held_ns))
    }

    fn tallies(&self) -> impl Iterator<Item = &Tally> {
        self.shadows.iter().filter_map(|agent| agent.tally.as_deref())
    }
}
