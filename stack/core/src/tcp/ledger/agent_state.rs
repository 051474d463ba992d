//! An agent of the ledger, with its unacknowledged segments.

use super::Facts;
use crate::agent::{AckDecided, AckNote, AckRule, AckVerdict, Arrival, By, Class, Owed, ReceiverAgent};
use crate::tcp::cx::Cx;
use crate::time::nanos;
use crate::trace::TraceKind;
use crate::{Instant, Moment};

pub(super) struct AgentState {
    pub(super) agent: Box<dyn ReceiverAgent>,
    pub(super) owed: Open,
    /// Only for shadows; the connection counts the live agent's ACKs.
    pub(super) tally: Option<Box<Tally>>,
}

/// [`Owed`] in less memory.
#[derive(Clone, Copy, Default)]
pub(super) struct Open {
    pub(super) segments: u32,
    pub(super) bytes: u32,
    since: Moment,
    last_ack: Moment,
    in_order_total: u64,
}

/// The sums of a shadow's decisions.
#[derive(Default)]
pub(super) struct Tally {
    /// ACKs, of whatever cause.
    pub(super) acks: u64,
    /// The total wait of the first segment of each ACK.
    pub(super) held_ns: u64,
}

impl AgentState {
    pub(super) fn new(agent: Box<dyn ReceiverAgent>) -> AgentState {
        AgentState { agent, owed: Open::default(), tally: None }
    }
    #[inline]
    pub(super) fn owed(&self) -> Owed {
        let Open { segments, bytes, since, last_ack, in_order_total } = self.owed;
        Owed { segments, bytes, since: since.get(), last_ack: last_ack.get(), in_order_total }
    }

    /// The state of an agent that watches: its decisions are counted.
    pub(super) fn shadow(agent: Box<dyn ReceiverAgent>) -> AgentState {
        AgentState { tally: Some(Box::default()), ..AgentState::new(agent) }
    }

    pub(super) fn owe_nothing(&mut self) {
        self.owed = Open { in_order_total: self.owed.in_order_total, ..Open::default() };
    }

    pub(super) fn note_arrival(&mut self, arrival: &Arrival) {
        if matches!(arrival.class, Class::InOrder | Class::FillsHole) {
            let owed = &mut self.owed;
            owed.segments += 1;
            owed.bytes = owed.bytes.saturating_add(arrival.bytes);
            if owed.since == Moment::NEVER {
                owed.since = Moment::at(arrival.now);
            }
            owed.in_order_total += 1;
        }
    }

    /// Books an ACK, so that nothing is owed, and informs the agent. The note is from before that.
    pub(super) fn settle(&mut self, cx: &Cx<'_>, by: By, facts: &Facts<'_>) -> AckNote {
        let note = self.agent.note();
        let decided = AckDecided { now: cx.now, by, segments: self.owed.segments, bytes: self.owed.bytes };
        if let Some(tally) = &mut self.tally {
            let held = self.owed.since.get().map_or(0, |since| nanos(cx.now.since(since)));
            tally.acks += 1;
            tally.held_ns = tally.held_ns.saturating_add(held);
        }
        let in_order_total = self.owed.in_order_total;
        self.owed = Open { last_ack: Moment::at(cx.now), in_order_total, ..Open::default() };
        self.agent.on_ack(&decided, &facts.view(self.owed()));
        note
    }

    pub(super) fn shadow_verdict(
        &mut self,
        cx: &mut Cx<'_>,
        nth: usize,
        verdict: AckVerdict,
        facts: &Facts<'_>,
    ) {
        let shadow = u8::try_from(nth).unwrap_or(u8::MAX);
        match verdict {
            AckVerdict::Hold(why) => cx.trace(TraceKind::ShadowHeld { shadow, why }),
            AckVerdict::Now(why) | AckVerdict::Repeat(why) => {
                let by = match (verdict, why.rule) {
                    (AckVerdict::Repeat(_), _) => By::Repeat,
                    (_, AckRule::Ceiling) => By::Forced,
                    _ => By::Agent,
                };
                self.settle(cx, by, facts);
                cx.trace(TraceKind::ShadowAck { shadow, why });
            }
        }
    }

    pub(super) fn deadline(&self, ceiling_us: u32) -> Instant {
        self.deadlines(ceiling_us).1
    }

    /// The agent's own deadline, and the instant at which that or the ceiling ends a hold.
    pub(super) fn deadlines(&self, ceiling_us: u32) -> (Option<Instant>, Instant) {
        let (asked, forced) = (self.agent.deadline(), self.forced_at(ceiling_us));
        (asked, asked.map_or(forced, |asked| asked.min(forced)))
    }

    /// The instant at which the ceiling ends a hold, or never.
    fn forced_at(&self, ceiling_us: u32) -> Instant {
        self.owed.since.get().map_or(Instant::FAR, |since| since.after_micros(ceiling_us))
    }

    pub(super) fn ask_if_due(&mut self, now: Instant, facts: &Facts<'_>) -> Option<AckVerdict> {
        self.agent.deadline().filter(|due| *due <= now)?;
        let verdict = self.agent.on_deadline(now, &facts.view(self.owed()));
        assert!(self.agent.deadline().is_none_or(|next| next > now), "L2: {:?} stays due", self.agent);
        Some(verdict)
    }

    pub(super) fn is_over_ceiling(&self, now: Instant, ceiling_us: u32) -> bool {
        self.forced_at(ceiling_us) <= now
    }
}
