//! Runs the ledger of a connection again, by its log.

use std::fmt;

use super::entry::{Begun, Call, Entry, Outcome};
use super::keeper::Keeper;
use crate::Instant;
use crate::agent::ReceiverAgent;
use crate::tcp::config::AckMerge;
use crate::tcp::cx::{Cx, Memory};
use crate::tcp::ledger::AckLedger;
use crate::trace::TraceRing;

pub use crate::tcp::ledger::Tally;

/// One connection. The agent decides again, and other agents watch the same arrivals as its shadows.
pub struct Replay {
    ledger: AckLedger,
    ring: TraceRing,
    last: Option<Call>,
    /// The outcomes of the last call that the log has not shown yet, the next one last.
    expected: Vec<Outcome>,
    arrivals: u64,
    left: u64,
    merged: u64,
    difference: Option<Box<Difference>>,
}

/// The first outcome that is not the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The call.
    pub call: Call,
    /// The outcome in the log; None if the live agent decided nothing more.
    pub live: Option<Outcome>,
    /// The outcome of the replay; None if it decided nothing more.
    pub replayed: Option<Outcome>,
}

impl Replay {
    /// The most agents that may watch.
    pub const MOST_OTHERS: usize = crate::tcp::ledger::SHADOWS;

    /// `live` is the agent of the log's spec, newly made; `others` watch.
    pub fn new(begun: &Begun, live: Box<dyn ReceiverAgent>, others: Vec<Box<dyn ReceiverAgent>>) -> Replay {
        let merge = if begun.merges_reads { AckMerge::Read } else { AckMerge::Off };
        let mut ring = TraceRing::new(0);
        ring.decisions = Some(Box::new(Keeper::Outcomes(Vec::new())));
        Replay {
            ledger: AckLedger::new(live, others, begun.ceiling, merge).counted(),
            ring,
            last: None,
            expected: Vec::new(),
            arrivals: 0,
            left: 0,
            merged: 0,
            difference: None,
        }
    }

    /// Takes the connection's next entry.
    pub fn take(&mut self, entry: &Entry) {
        match entry {
            Entry::Call(call) => {
                self.conclude();
                self.repeat(call);
            }
            Entry::Outcome(outcome) => self.compare(outcome),
            Entry::Begun(_) | Entry::Unknown => {}
        }
    }

    /// The log goes on, so the last call has no more outcomes.
    pub fn conclude(&mut self) {
        if let Some(more) = self.expected.pop() {
            self.expected.clear();
            self.differs(None, Some(more));
        }
    }

    fn repeat(&mut self, call: &Call) {
        let at = self.last.as_ref().map_or(call.at, |last| last.at);
        let Replay { ledger, ring, last, .. } = self;
        let mut cx = Cx { now: at, conn: 0, packet: call.packet, memory: Memory::Plenty, ring };
        if let Some(last) = last {
            ledger.ask_shadows_until(&mut cx, &last.seen, call.at);
        }
        if let Some(Keeper::Outcomes(outcomes)) = cx.ring.decisions.as_deref_mut() {
            outcomes.clear();
        }
        cx.now = call.at;
        ledger.repeat(&mut cx, &call.seen, &call.what);
        if let Some(Keeper::Outcomes(outcomes)) = cx.ring.decisions.as_deref_mut() {
            self.expected.clear();
            self.expected.extend(outcomes.drain(..).rev());
        }
        self.arrivals += call.segments();
        self.last = Some(call.clone());
    }

    fn compare(&mut self, live: &Outcome) {
        self.left += u64::from(matches!(live, Outcome::Left(Some(_))));
        self.merged += u64::from(matches!(live, Outcome::Merged { .. }));
        let replayed = self.expected.pop();
        if replayed.as_ref() != Some(live) {
            self.differs(Some(*live), replayed);
        }
    }

    fn differs(&mut self, live: Option<Outcome>, replayed: Option<Outcome>) {
        if let (None, Some(call)) = (&self.difference, &self.last) {
            self.difference = Some(Box::new(Difference { call: call.clone(), live, replayed }));
        }
    }

    /// Segments that arrived with data.
    pub fn arrivals(&self) -> u64 {
        self.arrivals
    }

    /// ACKs of the live agent that left, alone or on data.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// ACKs of the live agent that went into others.
    pub fn merged(&self) -> u64 {
        self.merged
    }

    /// The time of the last call.
    pub fn until(&self) -> Option<Instant> {
        self.last.as_ref().map(|last| last.at)
    }

    /// The first difference, if there is one.
    pub fn difference(&self) -> Option<&Difference> {
        self.difference.as_deref()
    }

    /// The counts of the live agent, then of the others in their order.
    pub fn tallies(&self) -> impl Iterator<Item = Tally> + '_ {
        self.ledger.all_tallies()
    }
}

impl fmt::Debug for Replay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replay").field("ledger", &self.ledger).finish_non_exhaustive()
    }
}
