//! Takes the entries that ledgers make: into the log, or for a replay.

use super::entry::{Entry, Outcome};
use super::log::DecisionLog;

/// The destination of entries.
#[derive(Debug)]
pub(crate) enum Keeper {
    /// They are written into the log.
    Log(DecisionLog),
    /// The outcomes of one call, for its replay.
    Outcomes(Vec<Outcome>),
}

impl Keeper {
    pub(crate) fn push(&mut self, conn: u32, entry: Entry) {
        match (self, entry) {
            (Keeper::Log(log), entry) => log.push(conn, &entry),
            (Keeper::Outcomes(outcomes), Entry::Outcome(outcome)) => outcomes.push(outcome),
            (Keeper::Outcomes(_), _) => {}
        }
    }
}
