//! The agents that watch: when they are consulted, and what is counted of them.

use std::time::Duration;

use super::{AckLedger, Cx, Facts, Tally};
use crate::Instant;
use crate::agent::{AckRule, AckVerdict, By, Why};
use crate::tcp::decisions::Seen;

/// Deadlines of shadows between two calls. A silence of a year must not take a year.
const MOST_DEADLINES: u32 = 10_000;

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

    /// Consults the shadows at each of their deadlines before that instant. The live agent has its deadlines in the
    /// log, at the instants at which its timer really ran out.
    pub(crate) fn ask_shadows_until(&mut self, cx: &mut Cx<'_>, seen: &Seen, until: Instant) {
        let ceiling_us = self.ceiling_us;
        for _ in 0..MOST_DEADLINES {
            let due = self.shadows.iter().map(|agent| agent.deadline(ceiling_us)).min();
            let Some(due) = due.filter(|due| *due < until) else { return };
            cx.now = cx.now.max(due);
            self.ask_shadows(cx, &seen.facts());
        }
    }

    /// A segment carries the number for the shadows alone.
    pub(super) fn settle_shadows(&mut self, cx: &Cx<'_>, facts: &Facts<'_>) {
        for agent in self.shadows.iter_mut().filter(|agent| agent.owed.segments > 0) {
            agent.settle(cx, By::Piggyback, facts);
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
