//! An arriving segment: RFC 9293 §3.10.7 as a list of named steps.
//!
//! Each step checks one thing and decides whether the next one is due. `acks.rs` digests the peer's ACKs.

mod predicted;
mod step;

use super::receiving::Around;
use super::sending::WindowNews;
use super::{CloseReason, Connection, Origin, Outbound, hops};
use crate::agent::{AckRule, Why};
use crate::narrow::{as_u16, as_u32};
use crate::tcp::cx::Cx;
use crate::tcp::ledger::AckKind;
use crate::tcp::timers::Timer;
use crate::trace::{DropReason, StateName, TraceKind};
use crate::wire::{Ecn, Flags, OfferFlags, SourceRoute, TcpView};
use crate::{Instant, Moment};

use predicted::is_predicted;
pub(crate) use step::Disposition;
pub(super) use step::{Answer, Step};

type StepFn = fn(&mut Connection, &mut Cx<'_>, &Arrived<'_>) -> Step;

/// RFC 9293 §3.10.7.4, in its order.
const STEPS: [StepFn; 8] = [
    Connection::check_seq,
    Connection::check_rst,
    Connection::check_syn,
    Connection::check_ack,
    Connection::take_ack,
    Connection::take_urgent,
    Connection::take_data,
    Connection::take_fin,
];

impl Connection {
    pub(crate) fn handle_segment(&mut self, cx: &mut Cx<'_>, arrived: &Arrived<'_>) -> Disposition {
        let segment = arrived.segment;
        self.out.stats.segments_received += u64::from(arrived.segments());
        self.receiving.last_arrival = Moment::at(cx.now);
        self.arm_relax(cx);
        cx.trace(TraceKind::Received {
            seq: segment.seq,
            ack: segment.ack,
            len: as_u32(segment.payload.len()),
            segments: as_u16(arrived.segments() as usize),
            flags: segment.flags.0,
        });
        let agreed = &self.out.opening.agreed;
        let disposition = if is_predicted(arrived, self.out.state, &self.receiving, &self.out.sending, agreed)
        {
            self.take_predicted(cx, arrived)
        } else {
            self.handle_unpredicted(cx, arrived)
        };
        self.check();
        disposition
    }

    /// Takes a predicted segment by the steps that are left.
    #[inline]
    fn take_predicted(&mut self, cx: &mut Cx<'_>, arrived: &Arrived<'_>) -> Disposition {
        #[cfg(debug_assertions)]
        for check in &STEPS[..predicted::CHECKS] {
            assert_eq!(check(self, cx, arrived), Step::Next, "F1");
        }
        self.receiving.take_timestamp(cx.now, arrived.segment, &self.out.opening.agreed);
        let step = match self.take_ack(cx, arrived) {
            Step::Next => self.take_data(cx, arrived),
            other => other,
        };
        if step != Step::Next {
            return self.conclude(cx, step);
        }
        self.note_alive(cx);
        Disposition::Done
    }

    #[inline(never)]
    fn handle_unpredicted(&mut self, cx: &mut Cx<'_>, arrived: &Arrived<'_>) -> Disposition {
        match self.out.state {
            StateName::Closed => Disposition::Refuse,
            StateName::SynSent => self.handle_in_syn_sent(cx, arrived),
            _ => self.handle_synchronized(cx, arrived),
        }
    }

    fn handle_synchronized(&mut self, cx: &mut Cx<'_>, arrived: &Arrived<'_>) -> Disposition {
        for step in STEPS {
            match step(self, cx, arrived) {
                Step::Next => {}
                other => return self.conclude(cx, other),
            }
        }
        self.note_alive(cx);
        Disposition::Done
    }

    #[cold]
    fn conclude(&mut self, cx: &mut Cx<'_>, step: Step) -> Disposition {
        match step {
            Step::Next => Disposition::Done,
            Step::Drop(reason) => {
                cx.dropped(reason);
                Disposition::Done
            }
            Step::Answer(reason, answer) => {
                cx.dropped(reason);
                self.answer(cx, answer);
                Disposition::Done
            }
            Step::End(disposition) => disposition,
        }
    }

    #[cold]
    fn answer(&mut self, cx: &mut Cx<'_>, answer: Answer) {
        if answer == Answer::Limited && !self.out.urges.pay_for_answer(cx.now) {
            cx.dropped(DropReason::AnswerRateLimited);
            return;
        }
        self.force_ack(cx, AckKind::Duplicate, Why::plain(AckRule::Forced));
    }
}

/// The checks, with the hardening of RFC 5961 and PAWS (RFC 7323 §5).
impl Connection {
    /// First: is the segment in the window, and not an old duplicate?
    fn check_seq(&mut self, cx: &mut Cx<'_>, arrived: &Arrived<'_>) -> Step {
        let segment = arrived.segment;
        if segment.flags.contains(Flags::SYN)
            && let Some(step) = self.check_repeated_syn(segment).or_else(|| self.check_successor(cx, segment))
        {
            return step;
        }
        let agreed = &self.out.opening.agreed;
        if let Some(step) = self.receiving.check_paws(cx.now, arrived, agreed, &mut self.out.stats) {
            return step;
        }
        if self.receiving.is_acceptable(segment) {
            return Step::Next;
        }
        self.refuse_seq(cx, arrived)
    }

    /// The segment lies outside of the window.
    #[cold]
    fn refuse_seq(&mut self, cx: &mut Cx<'_>, arrived: &Arrived<'_>) -> Step {
        let segment = arrived.segment;
        if segment.flags.contains(Flags::RST) {
            return Step::Drop(DropReason::OutOfWindow);
        }
        if self.out.state == StateName::TimeWait && segment.flags.contains(Flags::FIN) {
            self.out.timers.arm(Timer::Linger, cx.now + 2 * self.out.config.msl);
        }
        if segment.payload.is_empty() && !segment.flags.contains(Flags::FIN) {
            return Step::Answer(DropReason::OutOfWindow, Answer::Limited);
        }
        // Data or a FIN that came again: our ACK of it was lost.
        self.receiving.note_old_duplicate(arrived, &self.out.opening.agreed, &mut self.out.stats);
        Step::Answer(DropReason::OutOfWindow, Answer::Always)
    }

    /// In SYN-RECEIVED the peer's SYN may come again, as may its half of a simultaneous open.
    #[cold]
    fn check_repeated_syn(&mut self, segment: &TcpView<'_>) -> Option<Step> {
        let is_again = self.out.state == StateName::SynReceived
            && segment.flags.contains(Flags::SYN)
            && !segment.flags.contains(Flags::RST)
            && segment.seq == self.receiving.irs;
        if !is_again {
            return None;
        }
        self.out.opening.take_syn_again(segment.flags);
        if segment.flags.contains(Flags::ACK) {
            return Some(Step::Next); // check_syn lets it pass, and its ACK counts.
        }
        self.out.urges.syn = true;
        Some(Step::Drop(DropReason::SynInConnection))
    }

    /// TIME-WAIT gives way to a SYN that cannot be an old duplicate. Its number usually lies far from the window (RFC
    /// 6191, RFC 9293 SHLD-4).
    #[cold]
    fn check_successor(&mut self, cx: &mut Cx<'_>, segment: &TcpView<'_>) -> Option<Step> {
        let is_syn = segment.flags.contains(Flags::SYN) && !segment.flags.intersects(Flags::RST | Flags::ACK);
        if self.out.state != StateName::TimeWait
            || !is_syn
            || !self.receiving.is_surely_new(segment, &self.out.opening.agreed)
        {
            return None;
        }
        self.finish(cx, CloseReason::Finished);
        Some(Step::End(Disposition::Reopen))
    }

    /// Second: RST. Only the exact next number is believed (RFC 5961 §3.2).
    fn check_rst(&mut self, cx: &mut Cx<'_>, arrived: &Arrived<'_>) -> Step {
        let segment = arrived.segment;
        if !segment.flags.contains(Flags::RST) {
            return Step::Next;
        }
        self.take_rst(cx, segment)
    }

    #[cold]
    fn take_rst(&mut self, cx: &mut Cx<'_>, segment: &TcpView<'_>) -> Step {
        if segment.seq != self.receiving.nxt {
            return Step::Answer(DropReason::RstNotExact, Answer::Limited);
        }
        match (self.out.state, self.out.opening.origin) {
            (StateName::SynReceived, Origin::Passive) => {
                self.finish(cx, CloseReason::Reset);
                return Step::End(Disposition::Forget);
            }
            (StateName::SynReceived, Origin::Active) => self.finish(cx, CloseReason::Refused),
            // All sent data has been acknowledged: the peer merely ends TIME-WAIT early.
            (StateName::TimeWait, _) => self.finish(cx, CloseReason::Finished),
            _ => self.finish(cx, CloseReason::Reset),
        }
        Step::End(Disposition::Done)
    }

    /// Fourth: SYN (the third check, security, is empty). It is challenged, never believed (RFC 5961 §4.2).
    fn check_syn(&mut self, _: &mut Cx<'_>, arrived: &Arrived<'_>) -> Step {
        let segment = arrived.segment;
        if !segment.flags.contains(Flags::SYN) {
            return Step::Next;
        }
        let is_other_half = self.out.state == StateName::SynReceived
            && segment.seq == self.receiving.irs
            && segment.flags.contains(Flags::ACK);
        if is_other_half {
            return Step::Next;
        }
        Step::Answer(DropReason::SynInConnection, Answer::Limited)
    }

    /// Fifth: does the ACK cover sent data, and is it not too old (RFC 5961 §5.2)?
    fn check_ack(&mut self, cx: &mut Cx<'_>, arrived: &Arrived<'_>) -> Step {
        let segment = arrived.segment;
        if !segment.flags.contains(Flags::ACK) {
            return Step::Drop(DropReason::NoAck);
        }
        if self.out.state == StateName::SynReceived {
            if !(self.out.sending.una < segment.ack && segment.ack <= self.out.sending.nxt) {
                return refuse_ack(cx);
            }
            self.establish(cx, segment);
        }
        if self.out.sending.max < segment.ack {
            return Step::Answer(DropReason::AckOfUnsent, Answer::Limited);
        }
        if self.out.sending.is_too_old(segment.ack) {
            return Step::Answer(DropReason::AckTooOld, Answer::Limited);
        }
        // Only here is the segment known to be the peer's: a forged timestamp would silence the peer for good.
        self.receiving.take_timestamp(cx.now, segment, &self.out.opening.agreed);
        if self.out.opening.take_source_route(arrived.source_route) {
            self.update_mss();
        }
        if self.out.state == StateName::TimeWait { self.check_late(cx, segment) } else { Step::Next }
    }

    /// After the peer's FIN, a segment that takes a number or is ahead of us shows a disagreement (RFC 9293 §3.10.7.4).
    #[cold]
    fn check_late(&mut self, cx: &Cx<'_>, segment: &TcpView<'_>) -> Step {
        if segment.flags.contains(Flags::FIN) {
            self.out.timers.arm(Timer::Linger, cx.now + 2 * self.out.config.msl);
        }
        if segment.seq == self.receiving.nxt && segment.sequence_len() == 0 {
            return Step::Next;
        }
        Step::Answer(DropReason::DataAfterClose, Answer::Limited)
    }
}

#[cold]
fn refuse_ack(cx: &mut Cx<'_>) -> Step {
    cx.dropped(DropReason::AckOfUnsent);
    Step::End(Disposition::Refuse)
}

/// The ACK; [`acks`](super::acks) digests it.
impl Connection {
    /// Fifth, continued: digests an acceptable ACK.
    fn take_ack(&mut self, cx: &mut Cx<'_>, arrived: &Arrived<'_>) -> Step {
        let segment = arrived.segment;
        if self.receiving.take_hop_limit(arrived) {
            hops::count(cx, arrived, &self.out.config, &mut self.out.path);
        }
        if self.out.sending.is_beyond_window() {
            // Stops waiting after a probe, or for data that a shrinking window left outside. A peer that answers may
            // keep its window closed for ever (RFC 9293 MUST-37, SHLD-17). The next segment sent starts the wait again.
            self.out.sending.stop_waiting();
        }
        let window = self.take_window(cx, segment);
        if self.has_no_news(segment) {
            return Step::Next;
        }
        let mut news = self.out.news(segment);
        self.out.digest(cx, segment, window, &mut news);
        if self.out.is_frozen() {
            self.thaw_on(cx, &news);
        }
        let ended = self.out.judge(cx, &news);
        self.out.tell_senders(cx, &news, ended);
        self.out.restart_timers(cx, &news);
        if news.advanced > 0 {
            self.tell_of_room();
        }
        if self.out.sending.wnd == 0 {
            // A peer that reports a closed window is alive: the wait starts anew (MUST-37, SHLD-17).
            self.out.sending.stop_waiting();
        }
        self.step_state(cx)
    }

    /// The newest segment gives the window, unless its field carries the peer's cwnd.
    pub(super) fn take_window(&mut self, cx: &Cx<'_>, segment: &TcpView<'_>) -> WindowNews {
        let agreed = &self.out.opening.agreed;
        if agreed.has(OfferFlags::USE_IN_WINDOW) && !segment.payload.is_empty() {
            self.receiving.peer_cwnd = Some(segment.window);
            self.out.sending.keep_edge(segment.ack);
            return WindowNews::Same;
        }
        let news = self.out.sending.take_window(segment, agreed);
        if news == WindowNews::Wider {
            self.window_opened(cx.now);
        }
        news
    }

    /// A probe byte that the peer refused goes out again together with the data after it.
    fn window_opened(&mut self, now: Instant) {
        self.out.timers.disarm(Timer::Persist);
        let has_probe_out = self.out.has_probe_out();
        self.out.urges.window_probes_sent = 0;
        self.out.urges.window_probe = false;
        if has_probe_out {
            self.out.sending.take_back(now, self.out.loss.board.unsend_last().map(|byte| byte.seq));
            self.out.timers.disarm(Timer::Retransmit);
        }
    }

    /// Returns whether an ACK is without news: nothing is in flight, and it has no new number, no SACK block, no ECE.
    fn has_no_news(&self, segment: &TcpView<'_>) -> bool {
        self.is_at_rest()
            && segment.ack == self.out.sending.una
            && segment.options.sack.is_empty()
            && !segment.flags.contains(Flags::ECE)
    }

    /// Leaves the states that end when our FIN is acknowledged.
    fn step_state(&mut self, cx: &mut Cx<'_>) -> Step {
        let is_fin_acked = self.out.sending.fin_sent
            && self.out.sending.una == self.out.sending.nxt
            && self.out.loss.board.is_empty();
        if !is_fin_acked {
            return Step::Next;
        }
        self.end_on_acked_fin(cx)
    }

    #[cold]
    fn end_on_acked_fin(&mut self, cx: &mut Cx<'_>) -> Step {
        match self.out.state {
            StateName::FinWait1 => {
                self.enter(cx, StateName::FinWait2);
                if self.receiving.is_deaf {
                    self.out.timers.arm(Timer::Linger, cx.now + self.out.config.fin_wait_2);
                }
                Step::Next
            }
            StateName::Closing => {
                self.enter_time_wait(cx);
                Step::Next
            }
            StateName::LastAck => {
                self.finish(cx, CloseReason::Finished);
                Step::End(Disposition::Done)
            }
            _ => Step::Next,
        }
    }
}

/// The data; [`receiving`](super::receiving) takes it.
impl Connection {
    /// Sixth: URG.
    fn take_urgent(&mut self, _: &mut Cx<'_>, arrived: &Arrived<'_>) -> Step {
        let segment = arrived.segment;
        if segment.flags.contains(Flags::URG) && !self.out.state.peer_has_closed() {
            self.events.urgent |= self.receiving.take_urgent(segment);
        }
        Step::Next
    }

    pub(super) fn take_data(&mut self, cx: &mut Cx<'_>, arrived: &Arrived<'_>) -> Step {
        let segment = arrived.segment;
        self.receiving.take_ecn_mark(cx, arrived, &self.out.opening.agreed);
        self.receiving.take_notes(segment, &self.out.opening.agreed);
        if segment.payload.is_empty() {
            return Step::Next;
        }
        let rtt = self.receiving.hear_echo(cx.now, segment, &self.out.opening, &mut self.out.path);
        let rtt = rtt.filter(|_| self.out.loss.board.is_empty());
        if self.out.state.peer_has_closed() {
            return Step::Drop(DropReason::DataAfterClose);
        }
        if self.receiving.is_deaf {
            return self.refuse_data(cx);
        }
        let Outbound { opening, path, sending, stats, .. } = &mut self.out;
        path.data_arrivals = path.data_arrivals.wrapping_add(1);
        let around = Around { agreed: &opening.agreed, path, mss: sending.mss };
        self.events.readable |= self.receiving.take_payload(cx, arrived, rtt, around, stats);
        Step::Next
    }

    /// Refuses data for an application that has gone: an ACK would claim that the application has it (SHLD-3).
    #[cold]
    fn refuse_data(&mut self, cx: &mut Cx<'_>) -> Step {
        cx.dropped(DropReason::DataAfterClose);
        self.out.urges.rst = true;
        self.finish(cx, CloseReason::Aborted);
        Step::End(Disposition::Done)
    }

    /// Eighth: the FIN of this segment, or an earlier one that waited for the data before it.
    pub(super) fn take_fin(&mut self, cx: &mut Cx<'_>, arrived: &Arrived<'_>) -> Step {
        self.receiving.place_fin(arrived.segment);
        if self.receiving.fin != Some(self.receiving.nxt) || self.out.state.peer_has_closed() {
            self.receiving.answer_early_fin(cx, arrived.segment, self.out.around());
            return Step::Next;
        }
        self.take_next_fin(cx)
    }

    #[cold]
    fn take_next_fin(&mut self, cx: &mut Cx<'_>) -> Step {
        self.receiving.take_fin();
        self.events.peer_closed = true;
        self.events.readable = true;
        self.unmet().trace_never_asked(cx);
        self.force_ack(cx, AckKind::InOrder, Why::plain(AckRule::Forced));
        match self.out.state {
            StateName::FinWait1 => self.enter(cx, StateName::Closing),
            StateName::FinWait2 => self.enter_time_wait(cx),
            _ => self.enter(cx, StateName::CloseWait),
        }
        Step::Next
    }

    /// Only 2 MSL are left to wait (MUST-13), without need for the buffers.
    #[cold]
    pub(super) fn enter_time_wait(&mut self, cx: &mut Cx<'_>) {
        self.enter(cx, StateName::TimeWait);
        for timer in Timer::ALL {
            self.out.timers.disarm(timer);
        }
        self.out.timers.arm(Timer::Linger, cx.now + 2 * self.out.config.msl);
        self.out.sending.buffer.relax();
        self.out.loss.board.relax();
        self.receiving.ledger.relax();
        if self.closed.is_none() {
            self.events.closed = true;
        }
    }
}

// A segment that arrives.

/// A segment with the fields of its packet that matter.
#[derive(Debug)]
pub(crate) struct Arrived<'a> {
    pub(crate) segment: &'a TcpView<'a>,
    pub(crate) ecn: Ecn,
    /// The hop limit on arrival.
    pub(crate) hop_limit: u8,
    /// The crossings of the link that it came over.
    pub(crate) crossings: u8,
    /// Payload bytes per segment when the link coalesced several.
    pub(crate) segment_bytes: Option<u16>,
    /// The reverse route, if the packet came by a source route.
    pub(crate) source_route: Option<&'a SourceRoute>,
}

impl Arrived<'_> {
    /// The number of segments that came as one; a segment without payload counts too.
    pub(crate) fn segments(&self) -> u32 {
        segments_in(as_u32(self.segment.payload.len()), self.segment_bytes)
    }
}

pub(crate) fn segments_in(bytes: u32, segment_bytes: Option<u16>) -> u32 {
    segment_bytes.map_or(1, |each| bytes.div_ceil(u32::from(each).max(1))).max(1)
}
