//! The ACK ledger: it stands between the receiver agent and the wire, and enforces the MUSTs.
//!
//! It has one state for the live agent and one for each shadow. Each state counts its own unacknowledged segments, so a
//! shadow judges what *it* would have left open. A decided ACK waits in a short queue until the link has room;
//! `waiting` fixes its content at that time.
//!
//! Invariants
//! - L1: in-order data is acknowledged at the latest `ceiling` after the first unacknowledged segment arrived, whatever
//!   the agent decides (RFC 9293 MUST-40).
//! - L2: after `on_deadline` an agent's deadline lies in the future; else the endpoint would call it for ever.
//! - L3: at most [`QUEUE`] ACKs wait, and eight times as many where each reports another range by SACK blocks.
//! - L4: an ACK with SACK blocks carries the number of the instant at which it leaves; no other waiting ACK repeats it.

mod agent_state;
mod decided;
mod reads;
mod shadows;
mod waiting;

use std::time::Duration;

use super::config::AckMerge;
use super::cx::Cx;
use crate::agent::{
    AckNote, AckRule, AckVerdict, Arrival, Basis, By, Class, Needs, Owed, ReceiverAgent, RecvView, Why,
};
use crate::narrow::low_u32;
use crate::time::micros_u32;
use crate::trace::TraceKind;
use crate::{Instant, Moment, Seq};

use agent_state::AgentState;
pub(crate) use decided::DecidedAck;
use decided::earlier;
use waiting::{Merging, Waiting};

/// ACKs that may wait for the link at a time.
pub(crate) const QUEUE: usize = 8;
/// Agents that may watch a connection beside the live one.
pub(crate) const SHADOWS: usize = 8;

pub(crate) struct AckLedger {
    live: AgentState,
    shadows: Box<[AgentState]>,
    waiting: Waiting,
    /// A duplicate range; the next decided ACK reports it.
    pub(crate) twice: Option<Stretch>,
    last_arrival: Moment,
    last_in_order: Moment,
    ceiling_us: u32,
    pub(crate) merging: Merging,
    /// Second full-sized segments left open, against SHLD-19.
    pub(crate) seconds_held: u32,
    /// The number of the last decision.
    decisions: u16,
    /// The earliest instant at which an agent has a deadline or the ceiling ends a hold. It is kept, because it is read
    /// after every packet and changes after few.
    pub(crate) due: Instant,
}

impl AckLedger {
    pub(crate) fn new(
        agent: Box<dyn ReceiverAgent>,
        shadows: Vec<Box<dyn ReceiverAgent>>,
        ceiling: Duration,
        merge: AckMerge,
    ) -> AckLedger {
        assert!(shadows.len() <= SHADOWS, "a connection has at most {SHADOWS} shadows");
        AckLedger {
            live: AgentState::new(agent),
            shadows: shadows.into_iter().map(AgentState::shadow).collect(),
            waiting: Waiting::default(),
            twice: None,
            last_arrival: Moment::NEVER,
            last_in_order: Moment::NEVER,
            ceiling_us: u32::try_from(ceiling.as_micros()).unwrap_or(u32::MAX),
            merging: Merging { merge, has_sack: false },
            seconds_held: 0,
            decisions: 0,
            due: Instant::FAR,
        }
    }

    /// The features that the live agent wants from the peer, and the harmless ones of shadows. A shadow obeys no
    /// request and counts no duplicates, so the peer must not expect it to.
    pub(crate) fn needs(&self) -> Needs {
        let watching = |needs: Needs| Needs { dup_count: false, ack_rate: false, ack_after: false, ..needs };
        let shadows = self.shadows.iter().map(|state| watching(state.agent.needs()));
        shadows.fold(self.live.agent.needs(), Needs::union)
    }

    /// Data arrived as `count` segments of one read, `each` of that payload but the last, which has the rest. The gap
    /// before the read is shared evenly. Returns the number of the last decision, if there was one.
    pub(crate) fn on_arrival(
        &mut self,
        cx: &mut Cx<'_>,
        read: &Arrival,
        (count, each): (u32, u32),
        facts: &Facts<'_>,
    ) -> Option<Seq> {
        let [gap, gap_in_order] =
            [self.last_arrival, self.last_in_order].map(|last| share_of_gap(cx.now, last, count));
        let advances = matches!(read.class, Class::InOrder | Class::FillsHole);
        if let Some(stretch) = facts.part_of {
            self.waiting.join(cx, stretch);
        }
        let mut whole = Arrival { gap, gap_in_order, ..*read };
        let decided = if count == 1 {
            whole.ack_request = whole.ack_request.and_then(|asked| asked.with_behind(0));
            self.on_segment(cx, &whole, facts);
            (self.live.owed.segments == 0).then_some(facts.rcv_nxt)
        } else {
            self.on_segments(cx, &whole, (count, each), facts)
        };
        self.last_arrival = Moment::at(cx.now);
        if advances {
            self.last_in_order = Moment::at(cx.now);
        }
        self.file_deadline();
        decided
    }

    fn on_segment(&mut self, cx: &mut Cx<'_>, arrival: &Arrival, facts: &Facts<'_>) {
        for (nth, state) in self.shadows.iter_mut().enumerate() {
            state.note_arrival(arrival);
            let verdict = state.agent.on_arrival(arrival, &facts.view(state.owed()));
            state.shadow_verdict(cx, nth, verdict, facts);
        }
        self.live.note_arrival(arrival);
        let verdict = self.live.agent.on_arrival(arrival, &facts.view(self.live.owed()));
        let kind = match arrival.class {
            Class::InOrder | Class::FillsHole => AckKind::InOrder,
            Class::OutOfOrder | Class::Duplicate => AckKind::Duplicate,
        };
        self.live_verdict(cx, verdict, kind, facts);
    }

    fn live_verdict(&mut self, cx: &mut Cx<'_>, verdict: AckVerdict, kind: AckKind, facts: &Facts<'_>) {
        match verdict {
            AckVerdict::Now(why) => {
                let note = self.live.settle(cx, By::Agent, facts);
                self.enqueue(cx, kind, By::Agent, why, note, facts);
            }
            AckVerdict::Repeat(why) => {
                let note = self.live.settle(cx, By::Repeat, facts);
                self.enqueue(cx, AckKind::Repeat, By::Repeat, why, note, facts);
            }
            AckVerdict::Hold(why) => {
                let (due_us, basis) = self.outlook(cx, facts);
                cx.trace(TraceKind::AckHeld { why, due_us, basis });
                let owed = &self.live.owed;
                // Counts every second segment that is left open.
                if owed.segments >= 2 && owed.segments.is_multiple_of(2) && owed.bytes >= 2 * facts.view.mss {
                    self.seconds_held += 1;
                    cx.trace(TraceKind::SecondHeld { count: self.seconds_held });
                }
            }
        }
    }

    /// The time until the live agent or the ceiling ends a hold, and the agent's basis for it. Both are computed only
    /// while the trace is kept.
    fn outlook(&self, cx: &Cx<'_>, facts: &Facts<'_>) -> (u32, Option<Basis>) {
        if !cx.ring.is_kept() {
            return (u32::MAX, None);
        }
        let (asked, due) = self.live.deadlines(self.ceiling_us);
        let due_us = micros_u32(due.since(cx.now));
        let is_the_agents = asked == Some(due);
        let basis = is_the_agents.then(|| self.live.agent.basis(cx.now, &facts.view(self.live.owed())));
        (due_us, basis.flatten())
    }

    /// Must be called after each call of the agents: only then may their deadlines change.
    fn file_deadline(&mut self) {
        self.due = self.live.deadline(self.ceiling_us);
        for state in &self.shadows {
            self.due = self.due.min(state.deadline(self.ceiling_us));
        }
    }

    /// Consults every agent that is due.
    pub(crate) fn on_deadline(&mut self, cx: &mut Cx<'_>, facts: &Facts<'_>) {
        self.ask_shadows(cx, facts);
        if let Some(verdict) = self.live.ask_if_due(cx.now, facts) {
            self.live_verdict(cx, verdict, AckKind::InOrder, facts);
        }
        if self.live.is_over_ceiling(cx.now, self.ceiling_us) {
            let note = self.live.settle(cx, By::Forced, facts);
            let why = Why::plain(AckRule::Ceiling);
            self.enqueue(cx, AckKind::InOrder, By::Forced, why, note, facts);
        }
        self.file_deadline();
    }

    /// Sends an ACK that no agent may withhold: SYN, FIN, out-of-window segments, probes, a window that reopens.
    pub(crate) fn force(&mut self, cx: &mut Cx<'_>, kind: AckKind, why: Why, facts: &Facts<'_>) {
        for state in &mut self.shadows {
            state.settle(cx, By::Forced, facts);
        }
        let note = self.live.settle(cx, By::Forced, facts);
        self.enqueue(cx, kind, By::Forced, why, note, facts);
        self.file_deadline();
    }

    /// A segment leaves and carries `facts.rcv_nxt`, which settles all ACKs that are owed. Returns the ACK that rides
    /// on it, or None if no ACK was due.
    pub(crate) fn ride(&mut self, cx: &mut Cx<'_>, facts: &Facts<'_>) -> Option<DecidedAck> {
        if !self.is_waiting() {
            return self.settle_what_is_owed(cx, facts);
        }
        self.ride_beside_waiting(cx, facts)
    }

    #[inline(never)]
    fn ride_beside_waiting(&mut self, cx: &mut Cx<'_>, facts: &Facts<'_>) -> Option<DecidedAck> {
        let waiting = self.waiting.take_newest_in_order();
        let Some(ride) = self.settle_what_is_owed(cx, facts) else { return waiting };
        Some(match waiting {
            Some(older) => {
                older.goes_into(cx, &ride);
                DecidedAck { echo: earlier(older.echo, ride.echo), twice: older.twice.or(ride.twice), ..ride }
            }
            None => ride,
        })
    }

    /// Settles all ACKs through a segment that leaves now. Returns the ACK that the live agent still owed.
    fn settle_what_is_owed(&mut self, cx: &mut Cx<'_>, facts: &Facts<'_>) -> Option<DecidedAck> {
        if !self.is_anyone_owing() {
            return None;
        }
        for state in self.shadows.iter_mut().filter(|state| state.owed.segments > 0) {
            state.settle(cx, By::Piggyback, facts);
        }
        let owed = (self.live.owed.segments > 0).then(|| self.settle_riding(cx, facts));
        self.file_deadline();
        owed
    }

    fn settle_riding(&mut self, cx: &mut Cx<'_>, facts: &Facts<'_>) -> DecidedAck {
        let note = self.live.settle(cx, By::Piggyback, facts);
        self.decided(cx, AckKind::InOrder, (By::Piggyback, Why::plain(AckRule::Forced)), note, facts)
    }

    fn enqueue(
        &mut self,
        cx: &mut Cx<'_>,
        kind: AckKind,
        by: By,
        why: Why,
        note: AckNote,
        facts: &Facts<'_>,
    ) {
        let ack = self.decided(cx, kind, (by, why), note, facts);
        self.waiting.push(cx, ack, by, self.merging);
    }
    #[inline]
    fn decided(
        &mut self,
        cx: &mut Cx<'_>,
        kind: AckKind,
        (by, why): (By, Why),
        note: AckNote,
        facts: &Facts<'_>,
    ) -> DecidedAck {
        // 0 means no decision.
        self.decisions = self.decisions.wrapping_add(1).max(1);
        cx.trace(TraceKind::AckDecided { number: facts.rcv_nxt, decision: self.decisions, by, why });
        DecidedAck {
            number: facts.rcv_nxt,
            decided: facts.rcv_nxt,
            echo: (facts.last_decided < facts.rcv_nxt).then_some(facts.ts_recent),
            note,
            kind,
            twice: self.twice.take(),
            part_of: facts.part_of.filter(|_| kind == AckKind::Duplicate),
            read: low_u32(cx.packet),
            nth: self.decisions,
        }
    }

    /// Returns whether the ACK at the head must not wait for data: it is not the newest in-order one.
    pub(crate) fn goes_alone(&self) -> bool {
        match self.waiting.as_slice() {
            [] => false,
            [only] => only.kind != AckKind::InOrder,
            _ => true,
        }
    }

    /// Returns whether a leaving segment takes an ACK along, or settles one that a shadow owes.
    pub(crate) fn is_owing(&self) -> bool {
        self.is_waiting() || self.is_anyone_owing()
    }

    pub(crate) fn is_waiting(&self) -> bool {
        !self.waiting.as_slice().is_empty()
    }

    /// The ACK that leaves alone now. With SACK blocks it acknowledges all data so far, as the blocks do.
    pub(crate) fn pop(&mut self, cx: &mut Cx<'_>, facts: &Facts<'_>) -> Option<DecidedAck> {
        let mut ack = self.waiting.pop(cx, self.merging, facts)?;
        if ack.number == facts.rcv_nxt
            && self.live.owed.segments > 0
            && let Some(owed) = self.settle_what_is_owed(cx, facts)
        {
            owed.goes_into(cx, &ack);
            ack.note = owed.note;
            ack.echo = earlier(ack.echo, owed.echo);
            ack.twice = ack.twice.or(owed.twice);
        }
        Some(ack)
    }

    /// Frees the heap while no ACK waits.
    pub(crate) fn relax(&mut self) {
        self.waiting.relax();
    }

    pub(crate) fn allocated(&self) -> usize {
        self.waiting.allocated()
    }

    /// Ends the ledger with the connection: no ACK is owed any more.
    pub(crate) fn clear(&mut self) {
        self.waiting.clear();
        for state in self.shadows.iter_mut().chain([&mut self.live]) {
            state.owe_nothing();
        }
        self.due = Instant::FAR;
    }

    pub(crate) fn owed(&self) -> Owed {
        self.live.owed()
    }

    pub(crate) fn gauges(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        self.live.agent.gauges(sink);
    }
    fn is_anyone_owing(&self) -> bool {
        self.live.owed.segments > 0 || self.shadows.iter().any(|state| state.owed.segments > 0)
    }
}

/// The time since then, shared evenly by the segments of a read.
fn share_of_gap(now: Instant, last: Moment, count: u32) -> Option<Duration> {
    last.get().map(|last| match now.since(last) {
        gap if count <= 1 => gap,
        gap => gap / count,
    })
}

#[cfg(test)]
mod tests;

// The input of the ledger: the state of its connection, arrivals, and reasons to answer.

/// The first number of a range, and the first number beyond it.
pub(crate) type Stretch = (Seq, Seq);

/// The reason for an ACK, as far as it decides which segment may carry it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AckKind {
    /// Acknowledges data in order; the newest of these may ride on a data segment.
    InOrder,
    /// A duplicate ACK or a forced answer. Each must be seen, so it leaves alone.
    Duplicate,
    Repeat,
}

/// The connection's state at an arrival.
#[derive(Clone, Copy)]
pub(crate) struct Facts<'a> {
    /// What agents see of it, but for the segments that each of them owes.
    pub(crate) view: RecvView<'a>,
    /// Goes out as the ACK's number.
    pub(crate) rcv_nxt: Seq,
    /// The number of the last decision.
    pub(crate) last_decided: Seq,
    /// The timestamp echo of an ACK that acknowledges more than that number.
    pub(crate) ts_recent: u32,
    /// The timestamp of a read: the echo of ACKs decided behind the first one in it.
    pub(crate) timestamp: Option<u32>,
    /// The stretch above a hole to which arriving data now belongs. None where no SACK block may report it.
    pub(crate) part_of: Option<Stretch>,
}

impl<'a> Facts<'a> {
    fn view(&self, owed: Owed) -> RecvView<'a> {
        RecvView { owed, ..self.view }
    }
}
