//! Decides which segment leaves next: a ladder of rungs, each of which plans a segment or none. [`emit`](super::emit)
//! writes the segment; the end of this file books it.

mod bundle;
mod plan;
mod rungs;

pub(crate) use bundle::{Left, LinkHelp};
pub(super) use plan::{SegmentPlan, What};

use super::signals::RELAX_AFTER;
use super::{CloseReason, Connection, in_32_bits, send_view};
use crate::agent::{Allowance, Count, Sent, SentKind};
use crate::narrow::as_u16;
use crate::tcp::cx::{Cx, Memory};
use crate::tcp::ledger::DecidedAck;
use crate::tcp::progress::HeldBy;
use crate::tcp::recovery::TailProbe;
use crate::tcp::timers::Timer;
use crate::trace::{SentWhat, StateName, TraceKind};
use crate::wire::Flags;
use crate::{Instant, Seq};

impl Connection {
    /// Writes the next segment's packet to `out`, if there is one. Call it until it returns [`Left::Nothing`], or a
    /// packet that is the last for now.
    pub(crate) fn poll_transmit(&mut self, cx: &mut Cx<'_>, link: &LinkHelp, out: &mut Vec<u8>) -> Left {
        let left = self.transmit(cx, link, out);
        if left.is_last() {
            self.settle(cx);
        }
        self.check();
        left
    }

    fn transmit(&mut self, cx: &mut Cx<'_>, link: &LinkHelp, out: &mut Vec<u8>) -> Left {
        if self.has_nothing_to_send() {
            return Left::Nothing;
        }
        let allowance = self.allowance_now(cx.now);
        let allowed = allowance.as_ref();
        let plan = self.out.next_segment(cx.now, allowed, link, &self.receiving.ledger);
        let Some(plan) = plan else { return Left::Nothing };
        let plan = match (allowed, link.most_bytes) {
            (Some(allowed), Some(most_bytes)) => self.out.bundled(plan, allowed, most_bytes),
            _ => plan,
        };
        self.prepare(&plan);
        let ack = self.ack_for(cx, &plan);
        self.out.write_segment(&mut self.receiving, cx, (&plan, ack.as_ref()), allowed, link, out);
        self.commit(cx, &plan, ack.as_ref(), allowed);
        plan.left(link, self.has_nothing_to_send())
    }

    /// The agents' allowance. At rest, no agent is consulted.
    fn allowance_now(&self, now: Instant) -> Option<Allowance> {
        (!self.is_at_rest()).then(|| self.out.allowance(now))
    }

    /// The place of a segment's bytes, valid until they are acknowledged or more is written.
    pub(crate) fn payload_at(&self, seq: Seq, len: u32) -> (&[u8], &[u8]) {
        self.out.sending.payload_at(seq, len)
    }

    /// Returns whether `poll_transmit` may be skipped. If so, its bookkeeping at rest is done here.
    pub(crate) fn falls_silent(&mut self, now: Instant) -> bool {
        let is_silent = self.is_at_rest() && !self.receiving.ledger.is_waiting() && !self.out.urges.any();
        if is_silent {
            self.settle_at_rest(now);
        }
        is_silent
    }

    /// Returns whether no rung of the ladder has a reason to send: the usual state after a segment has left.
    fn has_nothing_to_send(&self) -> bool {
        self.out.sending.has_sent_all()
            && self.out.loss.board.lost().segments == 0
            && !self.receiving.ledger.is_waiting()
            && !self.out.urges.any()
    }

    /// Returns whether nothing of ours is in flight or waits to be sent.
    pub(super) fn is_at_rest(&self) -> bool {
        self.out.loss.board.is_empty() && self.out.sending.has_sent_all()
    }

    /// The ACK that the segment carries: a decided one, or the current state.
    fn ack_for(&mut self, cx: &mut Cx<'_>, plan: &SegmentPlan) -> Option<DecidedAck> {
        if !plan.flags.contains(Flags::ACK) {
            return None;
        }
        let leaves_alone = plan.what == What::Ack;
        if !leaves_alone && (!self.receiving.ledger.is_owing() || plan.carries_cwnd(&self.out.opening)) {
            return None;
        }
        self.receiving.pop_ack(cx, leaves_alone, self.out.around())
    }
}

/// Books a segment that has left, and arms timers when nothing may leave.
impl Connection {
    /// Splits a segment for retransmission if it is larger than the path now carries.
    fn prepare(&mut self, plan: &SegmentPlan) {
        if let What::Again { index, .. } | What::TailProbeAgain { index } = plan.what
            && plan.len < self.out.loss.board.get(index as usize).payload_len()
        {
            self.out.loss.board.split(index as usize, plan.len);
        }
    }

    fn commit(
        &mut self,
        cx: &mut Cx<'_>,
        plan: &SegmentPlan,
        ack: Option<&DecidedAck>,
        allowed: Option<&Allowance>,
    ) {
        self.trace_sent(cx, plan, ack, allowed);
        match plan.what {
            What::Reset => self.out.urges.rst = false,
            What::Syn => self.commit_syn(cx, plan.flags),
            What::Ack => self.out.stats.acks_sent += 1,
            What::Again { index, kind } => self.commit_again(cx, plan, index, kind),
            What::New => self.commit_new(cx, plan),
            What::MtuProbe { size } => {
                let len = u16::try_from(plan.len).unwrap_or(u16::MAX);
                self.out.mtu.probe_sent(plan.seq, len, size);
                self.commit_new(cx, plan);
            }
            What::WindowProbe => self.commit_window_probe(cx, plan),
            What::KeepAlive => self.out.urges.keep_alive = false,
            What::TailProbe => self.commit_tail_probe(cx, plan, None),
            What::TailProbeAgain { index } => self.commit_tail_probe(cx, plan, Some(index)),
        }
        if plan.len > 0 {
            self.out.stats.segments_sent += u64::from(plan.segments());
            self.out.stats.bytes_sent += u64::from(plan.len);
        }
    }

    fn trace_sent(
        &mut self,
        cx: &mut Cx<'_>,
        plan: &SegmentPlan,
        ack: Option<&DecidedAck>,
        allowed: Option<&Allowance>,
    ) {
        let decision = ack.map_or(0, |ack| ack.nth);
        if plan.what == What::Ack {
            let repeat = ack.is_some_and(DecidedAck::is_repeat);
            self.out.stats.acks_repeated += u64::from(repeat);
            let nxt = self.receiving.nxt;
            let (number, decided) = ack.map_or((nxt, nxt), |ack| (ack.number, ack.decided));
            cx.trace(TraceKind::AckSent { number, decided, repeat, decision });
            return;
        }
        let is_bare = plan.what == What::New && plan.len == 0;
        cx.trace(TraceKind::Sent {
            seq: plan.seq,
            ack: self.receiving.nxt,
            len: plan.len,
            segments: as_u16(plan.segments() as usize),
            flags: plan.flags.0,
            what: if is_bare { SentWhat::Control } else { plan.what.traced() },
            flight: in_32_bits(self.out.loss.flight().bytes),
            allowed: allowed.map_or(u32::MAX, |allowed| in_32_bits(allowed.flight_bytes)),
            decision,
        });
    }

    #[cold]
    fn commit_syn(&mut self, cx: &Cx<'_>, flags: Flags) {
        self.out.urges.syn = false;
        self.out.opening.syn_left(flags);
        self.out.sending.syn_left();
        self.out.sending.note_sent(cx.now);
        if self.out.timers.deadline(Timer::Retransmit).is_none() {
            self.out.arm_retransmit(cx.now);
        }
    }

    fn commit_new(&mut self, cx: &mut Cx<'_>, plan: &SegmentPlan) {
        let fin = plan.flags.contains(Flags::FIN);
        let was_empty = self.out.loss.board.is_empty();
        if self.out.opening.uses_one_timed(&self.out.config) && plan.len > 0 {
            self.out.loss.time(cx.now, plan.seq + plan.each);
        }
        let end = plan.seq + plan.len;
        self.out.loss.book_new(cx.now, (plan.seq, end), (plan.segments(), plan.each), fin);
        self.out.sending.new_left(end + u32::from(fin));
        self.out.progress.on_sent(cx.now, plan.seq, self.out.loss.arrived(self.out.stats.bytes_acked));
        self.out.sending.app_limited = false;
        self.out.urges.window_probe = false;
        if plan.flags.contains(Flags::CWR) {
            self.out.sending.cwr = false;
        }
        self.out.loss.new_data_left();
        self.note_left(cx, plan, SentKind::New);
        if was_empty || self.out.timers.deadline(Timer::Retransmit).is_none() {
            self.out.arm_retransmit(cx.now);
        }
        self.out.arm_tail_probe(cx.now);
        if fin {
            self.fin_left(cx);
        }
    }

    /// For every segment sent: PRR counts it, the agents see it, the user timeout begins.
    fn note_left(&mut self, cx: &mut Cx<'_>, plan: &SegmentPlan, kind: SentKind) {
        self.out.loss.count_left(plan.len);
        self.out.sending.note_sent(cx.now);
        self.out.wait_for_ack(cx.now);
        self.arm_relax(cx);
        let carried = Count { segments: plan.segments(), bytes: u64::from(plan.len) };
        let view = send_view(&self.out.sending, &self.out.path, &self.out.loss);
        self.out.senders.on_sent(&Sent { now: cx.now, carried, kind }, &view);
    }

    /// Arms the timer once; when it runs out, the handler checks whether the connection is quiet.
    pub(super) fn arm_relax(&mut self, cx: &Cx<'_>) {
        if self.out.timers.deadline(Timer::Relax).is_none() {
            self.out.timers.arm(Timer::Relax, cx.now + RELAX_AFTER);
        }
    }

    #[cold]
    fn fin_left(&mut self, cx: &mut Cx<'_>) {
        self.out.sending.fin_sent = true;
        match self.out.state {
            StateName::CloseWait => self.enter(cx, StateName::LastAck),
            _ => self.enter(cx, StateName::FinWait1),
        }
    }

    #[cold]
    fn commit_again(&mut self, cx: &mut Cx<'_>, plan: &SegmentPlan, index: u32, kind: SentKind) {
        for nth in 0..plan.segments() {
            self.book_again(cx.now, (index + nth) as usize);
        }
        self.out.urges.ask_nothing_below();
        if kind == SentKind::Probe {
            self.out.urges.frozen_probe = false;
        }
        self.out.stats.segments_retransmitted += u64::from(plan.segments());
        self.note_left(cx, plan, kind);
        if self.out.is_frozen() {
            return;
        }
        if self.out.timers.deadline(Timer::Retransmit).is_none() {
            self.out.arm_retransmit(cx.now);
        }
        // Outside of recovery it was retransmitted because of its size, so its ACK is a full round trip away.
        self.out.arm_tail_probe(cx.now);
    }

    fn book_again(&mut self, now: Instant, index: usize) {
        let seq = self.out.loss.book_again(now, index, self.out.sending.una, self.out.opening.ts_now(now));
        if self.out.mtu.on_resent(seq) {
            self.out.arm_mtu_probe(now);
        }
    }

    #[cold]
    fn commit_window_probe(&mut self, cx: &mut Cx<'_>, plan: &SegmentPlan) {
        self.out.urges.window_probe = false;
        if plan.seq == self.out.sending.nxt {
            self.out.loss.board.push(plan.seq, plan.len, false, cx.now);
            self.out.sending.new_left(plan.seq + plan.len);
        } else if plan.len > 0 {
            self.out.loss.board.resent(self.out.loss.board.len() - 1, cx.now);
        }
        self.out.stats.window_probes += 1;
        self.note_left(cx, plan, SentKind::Probe);
        self.arm_persist(cx.now);
    }

    #[cold]
    fn commit_tail_probe(&mut self, cx: &mut Cx<'_>, plan: &SegmentPlan, again: Option<u32>) {
        self.out.urges.tail_probe = false;
        match again {
            Some(index) => self.commit_again(cx, plan, index, SentKind::Probe),
            None => self.commit_new(cx, plan),
        }
        self.out.loss.recovery.tail_probe =
            Some(TailProbe { end: self.out.sending.nxt, was_resent: again.is_some() });
        self.out.stats.tail_probes += 1;
        self.out.timers.disarm(Timer::TailProbe);
        self.out.arm_retransmit(cx.now);
    }

    /// Is called if no further segment leaves: gives the cause a timer (C3), and judges the agents' window.
    #[inline(never)]
    fn settle(&mut self, cx: &mut Cx<'_>) {
        let allowance = self.allowance_now(cx.now);
        let Some(allowed) = allowance.as_ref() else { return self.settle_at_rest(cx.now) };
        if self.closed == Some(CloseReason::Finished) || !self.out.state.is_synchronized() {
            return;
        }
        self.out.urges.tail_probe = self.out.urges.tail_probe && !self.out.loss.board.is_empty();
        self.note_limits(cx, allowed);
        self.tell_of_room();
        if self.out.is_blocked_by_window() {
            if self.out.timers.deadline(Timer::Persist).is_none() {
                self.arm_persist(cx.now);
            }
        } else {
            self.out.timers.disarm(Timer::Persist);
        }
        self.arm_pace(cx, allowed);
    }

    fn settle_at_rest(&mut self, now: Instant) {
        self.out.progress.hold(now, HeldBy::Rest);
        self.out.urges.tail_probe = false;
        self.out.sending.app_limited = true;
        self.out.timers.disarm(Timer::Persist);
        self.out.timers.disarm(Timer::Pace);
    }

    fn note_limits(&mut self, cx: &mut Cx<'_>, allowed: &Allowance) {
        let flight = self.out.loss.flight().bytes;
        let has_room = flight + u64::from(self.out.sending.mss) <= allowed.flight_bytes;
        // Data that pacing holds back counts against the agents, not against the application.
        let lacks_data = self.out.sending.unsent() == 0 && !self.owes_word_of_room();
        let is_held_elsewhere = lacks_data || self.out.sending.usable_window() < self.out.sending.mss;
        let is_limited = has_room && is_held_elsewhere && self.out.loss.board.lost().segments == 0;
        self.out.sending.app_limited = is_limited;
        self.out.progress.hold(cx.now, self.held_by(has_room));
        if is_limited {
            self.out.progress.lacked_data();
        }
        if self.out.sending.note_allowed(allowed.flight_bytes) {
            if cx.memory == Memory::Plenty {
                self.out.sending.tune_buffer(self.out.config.send_buffer.max);
            }
            cx.trace(TraceKind::Window {
                allowed: in_32_bits(allowed.flight_bytes),
                flight: in_32_bits(flight),
            });
        }
    }

    fn held_by(&self, agents_allow_more: bool) -> HeldBy {
        if !agents_allow_more {
            HeldBy::Path
        } else if self.out.sending.unsent() > 0
            && self.out.sending.usable_window() < self.out.sending.mss.min(self.out.sending.unsent())
        {
            HeldBy::Window
        } else if self.out.sending.unsent() == 0 && self.events.wants_room && self.send_room() == 0 {
            HeldBy::Buffer
        } else {
            HeldBy::Path
        }
    }

    fn arm_pace(&mut self, cx: &Cx<'_>, allowed: &Allowance) {
        let resend_waits = self.out.loss.board.lost().segments > 0;
        let new_waits = self.out.sending.unsent() > 0 && !self.out.waits_for_turn();
        let until = [(resend_waits, allowed.resend_from), (new_waits, self.out.new_from(allowed))]
            .into_iter()
            .filter(|(waits, _)| *waits)
            .map(|(_, from)| self.out.paced_until(from))
            .filter(|until| *until > cx.now)
            .min();
        match until {
            Some(until) => self.out.timers.arm(Timer::Pace, until),
            None => self.out.timers.disarm(Timer::Pace),
        }
    }
}
