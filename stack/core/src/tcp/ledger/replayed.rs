//! A ledger without a connection: a log of decisions gives its input.

use super::seat::Seat;
use super::{AckLedger, Cx, Facts, Tally};
use crate::Instant;
use crate::agent::By;
use crate::tcp::decisions::{Seen, What};

/// Deadlines of shadows between two calls. A silence of a year must not take a year.
const MOST_DEADLINES: u32 = 10_000;

impl AckLedger {
    /// Counts the decisions of the live agent too.
    #[must_use]
    pub(crate) fn counted(mut self) -> AckLedger {
        let AckLedger { live, .. } = &mut self;
        live.tally = Some(Box::default());
        self
    }

    /// The counts of the live agent, then of the shadows.
    pub(crate) fn all_tallies(&self) -> impl Iterator<Item = Tally> + '_ {
        self.seats().filter_map(|seat| seat.tally.as_deref().copied())
    }

    /// Consults the shadows at each of their deadlines before that instant. The live agent has its deadlines in the
    /// log, at the instants at which its timer really ran out.
    pub(crate) fn ask_shadows_until(&mut self, cx: &mut Cx<'_>, seen: &Seen, until: Instant) {
        for _ in 0..MOST_DEADLINES {
            let Some(due) = self.shadows_due().filter(|due| *due < until) else { return };
            cx.now = cx.now.max(due);
            self.ask_shadows(cx, &seen.facts());
        }
    }

    fn shadows_due(&self) -> Option<Instant> {
        let ceiling = self.ceiling();
        self.shadows.iter().map(|seat: &Seat| seat.deadline(ceiling)).min()
    }

    /// Repeats a call.
    pub(crate) fn repeat(&mut self, cx: &mut Cx<'_>, seen: &Seen, what: &What) {
        self.merging.has_sack = seen.has_sack;
        self.twice = seen.twice;
        let facts = &seen.facts();
        match what {
            What::Arrived { heard, segments } => {
                self.on_arrival(cx, heard, (*segments).into(), facts);
            }
            What::Due => self.on_deadline(cx, facts),
            What::Forced { kind, why } => self.force(cx, *kind, *why, facts),
            What::Leaves => {
                self.pop(cx, facts);
            }
            What::Rides => {
                self.ride(cx, facts);
            }
            What::Passes => self.settle_shadows(cx, facts),
            What::Ended => self.clear(cx),
        }
    }

    /// A segment carries the number for the shadows alone.
    fn settle_shadows(&mut self, cx: &Cx<'_>, facts: &Facts<'_>) {
        for seat in self.shadows.iter_mut().filter(|seat| seat.owed.segments > 0) {
            seat.settle(cx, By::Piggyback, facts);
        }
    }
}
