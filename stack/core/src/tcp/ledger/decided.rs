//! A decided ACK, and how one takes over the news of another.

use super::{AckKind, Stretch};
use crate::Seq;
use crate::agent::AckNote;
use crate::tcp::cx::Cx;
use crate::trace::TraceKind;

/// A decided ACK. It keeps the number of the decision, unless it leaves with SACK blocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DecidedAck {
    pub(crate) number: Seq,
    /// The number at the decision.
    pub(crate) decided: Seq,
    /// The timestamp of the earliest segment that it is the first to acknowledge (RFC 7323 §4.3), if there is one.
    pub(crate) echo: Option<u32>,
    pub(crate) note: AckNote,
    pub(crate) kind: AckKind,
    /// A segment that came twice: this ACK alone reports it (RFC 2883 §4).
    pub(crate) twice: Option<Stretch>,
    /// The stretch above the number that its segment is part of: it is reported first (RFC 2018 §4).
    pub(crate) part_of: Option<Stretch>,
    /// The read in which it was decided; 32 bits suffice to tell neighbours apart.
    pub(super) read: u32,
    /// The ledger's decision number, counted from 1.
    pub(crate) nth: u16,
}

impl DecidedAck {
    pub(crate) fn is_repeat(&self) -> bool {
        self.kind == AckKind::Repeat
    }

    pub(super) fn goes_into(&self, cx: &mut Cx<'_>, other: &DecidedAck) {
        cx.trace(TraceKind::AckMerged { number: self.number, decision: self.nth, into: other.nth });
    }

    /// Merges an older ACK into this one: its segments have waited longest, and its D-SACK stays.
    pub(super) fn take_over(&mut self, older: &DecidedAck) {
        self.echo = earlier(self.echo, older.echo);
        self.twice = self.twice.or(older.twice);
    }

    /// Returns whether it was decided for news that only SACK blocks carry.
    pub(super) fn is_for_blocks(&self) -> bool {
        self.twice.is_some() || self.part_of.is_some()
    }

    /// Returns whether it reports more than the current number. A repeat is a deliberate copy.
    pub(super) fn has_news(&self, rcv_nxt: Seq) -> bool {
        let is_above = self.part_of.is_some_and(|(_, end)| rcv_nxt < end);
        self.kind == AckKind::Repeat || self.twice.is_some() || is_above
    }
}

/// The earlier of two timestamps of the peer.
pub(super) fn earlier(one: Option<u32>, other: Option<u32>) -> Option<u32> {
    let is_earlier = |a: u32, b: u32| (a.wrapping_sub(b) as i32) < 0;
    [one, other].into_iter().flatten().reduce(|a, b| if is_earlier(a, b) { a } else { b })
}
