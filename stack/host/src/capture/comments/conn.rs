//! The state of one connection, as far as the trace shows it. Its outgoing packets get their comments here.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::time::Duration;

use super::must::Must;
use super::{ACK, Comment, ConnNames, SYN, in_words};
use hopwise_core::Millis;
use hopwise_core::agent::{AckRule, Basis, By, Why};
use hopwise_core::trace::{LostBy, SentWhat, TraceKind};
use hopwise_core::{Instant, Seq};

/// The most decided ACKs that have not left; the ledger lets 64 wait. Any more will never leave: their connection has
/// ended, or the trace has a gap.
const MOST_DECIDED: usize = 96;

#[derive(Debug, Default)]
pub(super) struct Conn {
    pub(super) names: ConnNames,
    /// The number of look-ups of the names: hops are known only after some packets.
    pub(super) asked: u8,
    decided: VecDeque<Decision>,
    held_since: Option<Instant>,
    /// The packet whose ACK was last withheld.
    pub(super) held_last: Option<u64>,
    /// The base of the peer's relative numbers.
    base: Option<Seq>,
    /// The expected number, as far as the trace shows it.
    pub(super) expected: Option<Seq>,
    /// The highest number that the peer has acknowledged.
    acknowledged: Option<Seq>,
    /// Stretches of data above holes.
    pub(super) stretches: u32,
    /// The packet whose mark our ACKs echo.
    pub(super) marked: Option<u64>,
    pub(super) lost_by: Option<LostBy>,
}

/// A decided ACK.
#[derive(Clone, Copy, Debug)]
pub(super) struct Decision {
    number: Seq,
    /// Its number among the connection's decisions.
    nth: u16,
    by: By,
    why: Why,
    must: Option<Must>,
    /// The place of its data, unless the data was in order.
    place: Option<&'static str>,
    /// The packet that it answers.
    answers: Option<u64>,
    held: Option<Duration>,
    /// The number of earlier decisions merged into it.
    merged: u32,
}

impl Decision {
    pub(super) fn new((number, nth): (Seq, u16), by: By, why: Why) -> Decision {
        Decision { number, nth, by, why, must: None, place: None, answers: None, held: None, merged: 0 }
    }

    /// Adds the answered packet, the MUST and the place of the data.
    pub(super) fn on(
        self,
        answers: Option<u64>,
        must: Option<Must>,
        place: Option<&'static str>,
    ) -> Decision {
        Decision { answers, must, place, ..self }
    }

    fn reason(&self, receiver: &str) -> String {
        let Decision { by, why, .. } = self;
        match by {
            By::Agent => format!("{receiver} decided it, {why}"),
            By::Repeat => format!("{receiver} repeats it, {why}"),
            By::Forced => match self.must {
                Some(Must { name, clause }) => {
                    format!("the protocol demands it, {name} ({clause}), whatever {receiver} says")
                }
                None => format!("the protocol demands it, {why}, whatever {receiver} says"),
            },
            By::Piggyback => "it rides on data that leaves anyway".to_owned(),
        }
    }

    /// The reason, with the arrival's place if that made the agent answer, and with the wait until it left.
    fn as_it_leaves(&self, receiver: &str) -> String {
        let mut text = self.reason(receiver);
        // Writing to a String cannot fail.
        if let Some(place) =
            self.place.filter(|_| self.why.rule == AckRule::NotInOrder && self.by != By::Forced)
        {
            let _ = write!(text, " ({place})");
        }
        if let Some(held) = self.held {
            let _ = write!(text, ", {} after the first segment it held", Millis::of(held));
        }
        if self.merged > 0 {
            let _ =
                write!(text, ", in place of {} more that were decided before it could leave", self.merged);
        }
        text
    }
}

impl Conn {
    pub(super) fn new(names: ConnNames) -> Conn {
        Conn { names, ..Conn::default() }
    }

    /// Takes a number of the peer. The number of its SYN replaces any earlier base.
    pub(super) fn see_number(&mut self, base: Seq, is_syn: bool) {
        if is_syn || self.base.is_none() {
            self.base = Some(base);
        }
    }

    /// The number of bytes that `ack` newly acknowledges.
    pub(super) fn newly_acknowledged(&mut self, ack: Seq) -> u32 {
        let before = self.acknowledged.unwrap_or(ack);
        self.acknowledged = Some(before.max(ack));
        ack.bytes_since(before)
    }

    fn relative(&mut self, number: Seq) -> u32 {
        number.0.wrapping_sub(self.base.get_or_insert(number - 1).0)
    }

    fn expect(&mut self, number: Seq) {
        self.expected = Some(self.expected.map_or(number, |expected| expected.max(number)));
    }

    pub(super) fn hold(&mut self, now: Instant, packet: Option<u64>, end: Option<Seq>) {
        self.held_since.get_or_insert(now);
        if packet.is_some() {
            self.held_last = packet;
        }
        if let Some(end) = end {
            self.expect(end);
        }
    }

    pub(super) fn withheld(&self, why: Why, due_us: u32, basis: Option<Basis>) -> String {
        let mut text = format!("ACK withheld by {}: {why}", self.names.receiver);
        if due_us != u32::MAX {
            // Writing to a String cannot fail.
            let _ = write!(text, ", for {} at most", Millis::of_micros(due_us));
        }
        if let Some(basis) = basis {
            let _ = write!(text, ", by {basis}");
        }
        self.add_rule(&mut text);
        text
    }

    /// Adds a decision. Returns its comment.
    pub(super) fn decide(&mut self, now: Instant, decision: Decision) -> String {
        let held = self.held_since.take().map(|since| now.since(since));
        self.held_last = None;
        self.expect(decision.number);
        if self.decided.len() == MOST_DECIDED {
            self.decided.pop_front();
        }
        let mut text =
            format!("ACK {}: {}", self.relative(decision.number), decision.reason(&self.names.receiver));
        self.decided.push_back(Decision { held, ..decision });
        self.add_rule(&mut text);
        text
    }

    /// The decision behind an ACK that leaves.
    fn decision(&mut self, nth: u16) -> Option<Decision> {
        // Numbers start again after 65535, and an older decision may have been dropped here.
        let place = self.decided.iter().rposition(|decided| decided.nth == nth)?;
        self.decided.remove(place)
    }

    /// Merges the first decision into the other.
    pub(super) fn merge(&mut self, gone: u16, into: u16) {
        let Some(gone) = self.decision(gone) else { return };
        if let Some(teller) = self.decided.iter_mut().rfind(|decided| decided.nth == into) {
            teller.merged += 1 + gone.merged;
            teller.held = teller.held.max(gone.held);
        }
    }

    /// The comment on an ACK of `number`, by that decision.
    pub(super) fn on_ack(&mut self, number: Seq, decision: u16, repeat: bool) -> Comment {
        let decision = self.decision(decision);
        let relative = self.relative(number);
        let mut text = match decision {
            None => format!("ACK {relative}: in answer to a segment"),
            Some(decision) => {
                let head = if repeat { "duplicate ACK" } else { "ACK" };
                format!("{head} {relative}: {}", decision.as_it_leaves(&self.names.receiver))
            }
        };
        self.add_rest(&mut text);
        Comment { text, answers: decision.and_then(|decision| decision.answers), echoes: self.marked }
    }

    pub(super) fn on_sent(&mut self, sent: &TraceKind) -> Comment {
        let TraceKind::Sent { ack, len, segments, flags, what, flight, allowed, decision, .. } = *sent else {
            return Comment::default();
        };
        if flags & ACK != 0 {
            self.see_number(ack - 1, false);
        }
        let mut text = self.sent(len, segments, what);
        if what != SentWhat::Control && allowed != u32::MAX {
            let senders = &self.names.senders;
            let _ = write!(text, ": {senders} allows {allowed} bytes in flight, {flight} were");
        }
        let decision = self.decision(decision);
        if let Some(decision) = decision {
            let reason = decision.as_it_leaves(&self.names.receiver);
            let _ = write!(text, "; with ACK {}: {reason}", self.relative(ack));
        }
        self.add_rest(&mut text);
        let echoes = self.marked.filter(|_| flags & SYN == 0);
        Comment { text, answers: decision.and_then(|decision| decision.answers), echoes }
    }

    fn sent(&self, len: u32, segments: u16, what: SentWhat) -> String {
        let much =
            if segments > 1 { format!("{len} bytes in {segments} segments") } else { format!("{len} bytes") };
        match (what, self.lost_by) {
            (SentWhat::New, _) => format!("{much}, new"),
            (SentWhat::Resent, Some(by)) => {
                format!("{much}, sent again in fast recovery, lost by {}", in_words(by))
            }
            (SentWhat::Resent, None) => format!("{much}, sent again"),
            (SentWhat::AfterTimeout, _) => format!("{much}, sent again after a timeout"),
            (SentWhat::Probe, _) => format!("{much}, a probe"),
            (SentWhat::TailProbe, _) => format!("{much}, a probe for the loss of the window's tail"),
            (SentWhat::Control, _) => "opens or ends the connection".to_owned(),
        }
    }

    fn add_rest(&self, text: &mut String) {
        if let Some(hops) = self.names.hops {
            let _ = write!(text, "; {hops} hops");
        }
        self.add_rule(text);
    }

    fn add_rule(&self, text: &mut String) {
        if let Some(rule) = &self.names.rule {
            let _ = write!(text, "; agents by {rule}");
        }
    }
}
