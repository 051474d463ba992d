//! A ledger without a connection: a log of decisions gives its input.

use super::{AckLedger, Cx, Tally};
use crate::tcp::decisions::{Seen, What};

impl AckLedger {
    /// Counts the decisions of the live agent too.
    #[must_use]
    pub(crate) fn counted(mut self) -> AckLedger {
        self.live.tally = Some(Box::default());
        self
    }

    /// The counts of the live agent, then of the shadows.
    pub(crate) fn all_tallies(&self) -> impl Iterator<Item = Tally> + '_ {
        std::iter::once(&self.live).chain(&self.shadows).filter_map(|state| state.tally.as_deref().copied())
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
}
