//! The ACK ledger: stands between the receiver agent and the wire, and owns the MUSTs.
//!
//! It has one seat for the live agent and one for each shadow. Each seat counts what it has not acknowledged, so
//! a shadow judges what *it* would have left open, not what the live agent did. A decided ACK is frozen (number,
//! timestamp echo, note) and waits in a short queue until the link has room.
//!
//! Invariants
//! - L1: in-order data is acknowledged at the latest `ceiling` after the first unacknowledged segment arrived,
//!   whatever the agent says (RFC 9293 MUST-40).
//! - L2: after `on_deadline` an agent's deadline lies in the future; else it would be asked for ever.
//! - L3: at most [`QUEUE`] ACKs wait.

mod seat;

use std::fmt;
use std::time::Duration;

use super::config::AckMerge;
use super::cx::Cx;
use crate::agent::{
    AckNote, AckVerdict, Arrival, By, Class, Needs, Owed, Path, ReceiverAgent, RecvView, Rule, Why,
};
use crate::trace::TraceKind;
use crate::{Instant, Moment, Seq};

use seat::{Seat, Tally};

/// ACKs that may wait for the link at a time.
pub(crate) const QUEUE: usize = 8;
/// Agents that may watch a connection beside the live one.
pub(crate) const SHADOWS: usize = 8;

/// What the connection knows at an arrival and the agents may see.
#[derive(Clone, Copy)]
pub(crate) struct Facts<'a> {
    pub(crate) path: &'a Path,
    pub(crate) peer_cwnd: Option<u16>,
    pub(crate) mss: u32,
    pub(crate) advertised: u32,
    pub(crate) holes: u32,
    /// Goes out as the ACK's number.
    pub(crate) rcv_nxt: Seq,
    /// Goes out as its timestamp echo.
    pub(crate) ts_recent: u32,
}

/// An ACK that was decided and has not left: number, echo and note are those of the decision.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DecidedAck {
    pub(crate) number: Seq,
    pub(crate) echo: u32,
    pub(crate) note: AckNote,
    pub(crate) kind: AckKind,
    /// The read it was decided in; 32 bits tell neighbours apart, and eight of these are kept.
    read: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AckKind {
    /// Says that data arrived in order; the newest of these may ride on a data segment.
    InOrder,
    /// A duplicate ACK or a forced answer: each must be seen, so it goes alone.
    Duplicate,
    Repeat,
}

/// News for the seats, of a segment or of several that a link joined.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Heard {
    pub(crate) class: Class,
    pub(crate) bytes: u32,
    /// The share of each segment but the last, which has what is left.
    pub(crate) each: u32,
    pub(crate) push: bool,
    pub(crate) ce: bool,
    pub(crate) rate_asked: Option<u8>,
    pub(crate) told: Option<u8>,
    pub(crate) rtt: Option<Duration>,
}

pub(crate) struct AckLedger {
    live: Seat,
    shadows: Box<[Seat]>,
    /// On the heap, since most connections are idle at most times.
    queue: Vec<DecidedAck>,
    last_arrival: Moment,
    last_in_order: Moment,
    ceiling_us: u32,
    merge: AckMerge,
    /// Second full-sized segments left open, against SHLD-19.
    seconds_held: u32,
    /// When a seat wants to be asked, or the ceiling ends a hold: the earliest of all, kept because it is asked for
    /// after every packet and changes after few.
    due: Instant,
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
            live: Seat::new(agent),
            shadows: shadows.into_iter().map(Seat::shadow).collect(),
            queue: Vec::new(),
            last_arrival: Moment::NEVER,
            last_in_order: Moment::NEVER,
            ceiling_us: u32::try_from(ceiling.as_micros()).unwrap_or(u32::MAX),
            merge,
            seconds_held: 0,
            due: Instant::FAR,
        }
    }

    /// What the live agent asks the peer for. A shadow may ask for what binds nobody: it obeys no request and counts no
    /// duplicates, so that it must not have the peer believe so.
    pub(crate) fn needs(&self) -> Needs {
        let watching = |needs: Needs| Needs { dup_count: false, rate_request: false, told: false, ..needs };
        let shadows = self.shadows.iter().map(|seat| watching(seat.agent.needs()));
        shadows.fold(self.live.agent.needs(), Needs::union)
    }

    /// Data arrived as `count` segments of one read; the gap is shared out evenly.
    pub(crate) fn on_arrival(&mut self, cx: &mut Cx<'_>, heard: &Heard, count: u32, facts: &Facts<'_>) {
        let share_of = |last: Instant| match cx.now.since(last) {
            gap if count <= 1 => gap,
            gap => gap / count,
        };
        let (gap, gap_in_order) =
            (self.last_arrival.get().map(share_of), self.last_in_order.get().map(share_of));
        let advances = matches!(heard.class, Class::InOrder | Class::FillsHole);
        let mut to_come = heard.bytes;
        for nth in 0..count {
            let is_last = nth + 1 == count;
            let bytes = if is_last { to_come } else { heard.each.min(to_come) };
            to_come -= bytes;
            // An ACK decided in the middle of a read names the segment that it is for; the same number twice
            // would look like a duplicate ACK.
            let ahead = if advances { to_come } else { 0 };
            let facts = Facts { rcv_nxt: facts.rcv_nxt - ahead, ..*facts };
            let arrival = Arrival {
                now: cx.now,
                class: heard.class,
                bytes,
                gap,
                gap_in_order,
                push: heard.push && is_last,
                ce: heard.ce,
                rate_asked: heard.rate_asked.filter(|_| is_last),
                told: heard.told.map(|told| told.saturating_add(clamp_u8(count - 1 - nth))),
                rtt: heard.rtt.filter(|_| nth == 0),
            };
            self.on_segment(cx, &arrival, &facts);
        }
        self.last_arrival = Moment::at(cx.now);
        if advances {
            self.last_in_order = Moment::at(cx.now);
        }
        self.file_deadline();
    }

    fn on_segment(&mut self, cx: &mut Cx<'_>, arrival: &Arrival, facts: &Facts<'_>) {
        for (nth, seat) in self.shadows.iter_mut().enumerate() {
            seat.note_arrival(arrival);
            let verdict = seat.agent.on_arrival(arrival, &facts.view(seat.owed()));
            seat.shadow_verdict(cx, nth, verdict, facts);
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
                cx.trace(TraceKind::AckHeld { why });
                let owed = &self.live.owed;
                // Counted when the second segment, and every second one after it, is left open.
                if owed.segments >= 2 && owed.segments.is_multiple_of(2) && owed.bytes >= 2 * facts.mss {
                    self.seconds_held += 1;
                    cx.trace(TraceKind::SecondHeld { count: self.seconds_held });
                }
            }
        }
    }

    /// Earliest instant at which a seat wants to be asked, or the ceiling ends a hold; or never.
    pub(crate) fn deadline(&self) -> Instant {
        self.due
    }

    fn ceiling(&self) -> Duration {
        Duration::from_micros(self.ceiling_us.into())
    }

    /// To be called after agents were: their deadlines change with what they hear, and with nothing else.
    fn file_deadline(&mut self) {
        let ceiling = self.ceiling();
        self.due = self.live.deadline(ceiling);
        for seat in &self.shadows {
            self.due = self.due.min(seat.deadline(ceiling));
        }
    }

    /// Asks every seat that is due.
    pub(crate) fn on_deadline(&mut self, cx: &mut Cx<'_>, facts: &Facts<'_>) {
        let ceiling = self.ceiling();
        for (nth, seat) in self.shadows.iter_mut().enumerate() {
            if let Some(verdict) = seat.ask_if_due(cx.now, facts) {
                seat.shadow_verdict(cx, nth, verdict, facts);
            }
            if seat.is_over_ceiling(cx.now, ceiling) {
                seat.shadow_verdict(cx, nth, AckVerdict::Now(Why::plain(Rule::Ceiling)), facts);
            }
        }
        if let Some(verdict) = self.live.ask_if_due(cx.now, facts) {
            self.live_verdict(cx, verdict, AckKind::InOrder, facts);
        }
        if self.live.is_over_ceiling(cx.now, ceiling) {
            let note = self.live.settle(cx, By::Forced, facts);
            let why = Why::plain(Rule::Ceiling);
            self.enqueue(cx, AckKind::InOrder, By::Forced, why, note, facts);
        }
        self.file_deadline();
    }

    /// An ACK that no agent may withhold: SYN, FIN, out-of-window segments, probes, a window that reopens.
    pub(crate) fn force(&mut self, cx: &mut Cx<'_>, kind: AckKind, why: Why, facts: &Facts<'_>) {
        for seat in &mut self.shadows {
            seat.settle(cx, By::Forced, facts);
        }
        let note = self.live.settle(cx, By::Forced, facts);
        self.enqueue(cx, kind, By::Forced, why, note, facts);
        self.file_deadline();
    }

    /// A segment leaves and carries `facts.rcv_nxt`: whoever still owed an ACK has given it. Answers the note
    /// that goes with it, or nothing when no ACK was due.
    pub(crate) fn ride(&mut self, cx: &mut Cx<'_>, facts: &Facts<'_>) -> Option<DecidedAck> {
        let waiting = self.queue.iter().rposition(|ack| ack.kind == AckKind::InOrder);
        let waiting = waiting.map(|at| self.queue.remove(at));
        if self.seats().all(|seat| seat.owed.segments == 0) {
            return waiting;
        }
        for seat in self.shadows.iter_mut().filter(|seat| seat.owed.segments > 0) {
            seat.settle(cx, By::Piggyback, facts);
        }
        let ride = if self.live.owed.segments == 0 { waiting } else { Some(self.settle_riding(cx, facts)) };
        self.file_deadline();
        ride
    }

    fn settle_riding(&mut self, cx: &mut Cx<'_>, facts: &Facts<'_>) -> DecidedAck {
        let note = self.live.settle(cx, By::Piggyback, facts);
        let why = Why::plain(Rule::Forced);
        cx.trace(TraceKind::AckDecided { number: facts.rcv_nxt, by: By::Piggyback, why });
        DecidedAck::new(cx, AckKind::InOrder, note, facts)
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
        cx.trace(TraceKind::AckDecided { number: facts.rcv_nxt, by, why });
        let ack = DecidedAck::new(cx, kind, note, facts);
        if let Some(last) = self.queue.last_mut()
            && (last.kind, kind) == (AckKind::InOrder, AckKind::InOrder)
            // A FIN behind its data is one segment, and gets one ACK (RFC 9293 §3.10.7.4).
            && (self.merge == AckMerge::Read || by == By::Forced && last.read == ack.read)
        {
            cx.trace(TraceKind::AckMerged { number: last.number });
            *last = ack;
            return;
        }
        if self.queue.len() == QUEUE {
            let oldest = self.queue.iter().position(|ack| ack.kind == AckKind::InOrder).unwrap_or(0);
            let merged = self.queue.remove(oldest);
            cx.trace(TraceKind::AckMerged { number: merged.number });
        }
        if self.queue.capacity() == 0 {
            self.queue.reserve_exact(QUEUE);
        }
        self.queue.push(ack);
    }

    /// Whether the ACK at the head must not wait for data to ride on: it is not the newest in-order one.
    pub(crate) fn goes_alone(&self) -> bool {
        match self.queue.as_slice() {
            [] => false,
            [only] => only.kind != AckKind::InOrder,
            _ => true,
        }
    }

    /// Whether a segment that leaves has an ACK to take along, or settles what a shadow would owe.
    pub(crate) fn is_owing(&self) -> bool {
        self.is_waiting() || self.seats().any(|seat| seat.owed.segments > 0)
    }

    pub(crate) fn is_waiting(&self) -> bool {
        !self.queue.is_empty()
    }

    pub(crate) fn pop(&mut self) -> Option<DecidedAck> {
        (!self.queue.is_empty()).then(|| self.queue.remove(0))
    }

    /// Gives the heap back while nothing waits.
    pub(crate) fn relax(&mut self) {
        if self.queue.is_empty() {
            self.queue = Vec::new();
        }
    }

    pub(crate) fn allocated(&self) -> usize {
        self.queue.capacity() * size_of::<DecidedAck>()
    }

    /// The connection ended: nothing is owed to anyone.
    pub(crate) fn clear(&mut self) {
        self.queue.clear();
        for seat in self.shadows.iter_mut().chain([&mut self.live]) {
            seat.owe_nothing();
        }
        self.due = Instant::FAR;
    }

    pub(crate) fn owed(&self) -> Owed {
        self.live.owed()
    }

    pub(crate) fn seconds_held(&self) -> u32 {
        self.seconds_held
    }

    /// ACKs that each shadow would have sent.
    pub(crate) fn shadow_acks(&self) -> impl Iterator<Item = u64> + '_ {
        self.tallies().map(|tally| tally.acks)
    }

    /// What the first segments of those would have waited, in all.
    pub(crate) fn shadow_holds(&self) -> impl Iterator<Item = Duration> + '_ {
        self.tallies().map(|tally| Duration::from_nanos(tally.held_ns))
    }

    fn tallies(&self) -> impl Iterator<Item = &Tally> {
        self.shadows.iter().filter_map(|seat| seat.tally.as_deref())
    }

    pub(crate) fn gauges(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        self.live.agent.gauges(sink);
    }

    fn seats(&self) -> impl Iterator<Item = &Seat> {
        std::iter::once(&self.live).chain(&self.shadows)
    }
}

impl fmt::Debug for AckLedger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AckLedger")
            .field("agent", &self.live.agent)
            .field("owed", &self.live.owed())
            .field("queue", &self.queue)
            .finish_non_exhaustive()
    }
}

impl<'a> Facts<'a> {
    fn view(&self, owed: Owed) -> RecvView<'a> {
        RecvView {
            owed,
            path: self.path,
            peer_cwnd: self.peer_cwnd,
            mss: self.mss,
            advertised: self.advertised,
            holes: self.holes,
        }
    }
}

impl DecidedAck {
    pub(crate) fn is_repeat(&self) -> bool {
        self.kind == AckKind::Repeat
    }

    fn new(cx: &Cx<'_>, kind: AckKind, note: AckNote, facts: &Facts<'_>) -> DecidedAck {
        DecidedAck { number: facts.rcv_nxt, echo: facts.ts_recent, note, kind, read: cx.packet as u32 }
    }
}

fn clamp_u8(value: u32) -> u8 {
    u8::try_from(value).unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests;
