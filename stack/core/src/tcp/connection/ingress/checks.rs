//! The checks of RFC 9293 §3.10.7.4, with the hardening of RFC 5961 and PAWS (RFC 7323 §5).

use super::{Answer, Arrived, Connection, Disposition, Step};
use crate::tcp::connection::{CloseReason, Origin};
use crate::tcp::cx::Cx;
use crate::tcp::timers::Timer;
use crate::trace::{DropReason, StateName};
use crate::wire::{Flags, TcpView};

impl Connection {
    /// First: is the segment in the window, and not an old duplicate?
    pub(super) fn check_seq(&mut self, cx: &mut Cx<'_>, arrived: &Arrived<'_>) -> Step {
        let segment = arrived.segment;
        if let Some(step) = self.check_repeated_syn(segment).or_else(|| self.check_successor(cx, segment)) {
            return step;
        }
        if let Some(step) = self.check_paws(cx, arrived) {
            return step;
        }
        if self.receiving.is_acceptable(segment) {
            return Step::Next;
        }
        if segment.flags.contains(Flags::RST) {
            return Step::Drop(DropReason::OutOfWindow);
        }
        if self.state == StateName::TimeWait && segment.flags.contains(Flags::FIN) {
            self.timers.arm(Timer::Linger, cx.now + 2 * self.config.msl);
        }
        if segment.payload.is_empty() && !segment.flags.contains(Flags::FIN) {
            return Step::Answer(DropReason::OutOfWindow, Answer::Limited);
        }
        // Data or FIN that comes again: our ACK of it was lost.
        self.receiving.note_old_duplicate(arrived, self.opening.agreed(), &mut self.stats);
        Step::Answer(DropReason::OutOfWindow, Answer::Always)
    }

    /// In SYN-RECEIVED the peer's SYN may come again, or its half of a simultaneous open.
    fn check_repeated_syn(&mut self, segment: &TcpView<'_>) -> Option<Step> {
        let is_again = self.state == StateName::SynReceived
            && segment.flags.contains(Flags::SYN)
            && !segment.flags.contains(Flags::RST)
            && segment.seq == self.receiving.irs();
        if !is_again {
            return None;
        }
        self.opening.take_syn_again(segment.flags);
        if segment.flags.contains(Flags::ACK) {
            return Some(Step::Next); // check_syn lets it pass, and its ACK counts.
        }
        self.urges.set_syn(true);
        Some(Step::Drop(DropReason::SynInConnection))
    }

    /// TIME-WAIT gives way to a SYN that cannot be an old duplicate, whose number lies far from the window in
    /// general (RFC 6191, RFC 9293 SHLD-4).
    fn check_successor(&mut self, cx: &mut Cx<'_>, segment: &TcpView<'_>) -> Option<Step> {
        let is_syn = segment.flags.contains(Flags::SYN) && !segment.flags.intersects(Flags::RST | Flags::ACK);
        if self.state != StateName::TimeWait
            || !is_syn
            || !self.receiving.is_surely_new(segment, self.opening.agreed())
        {
            return None;
        }
        self.finish(cx, CloseReason::Finished);
        Some(Step::End(Disposition::Reopen))
    }

    fn check_paws(&mut self, cx: &Cx<'_>, arrived: &Arrived<'_>) -> Option<Step> {
        let segment = arrived.segment;
        if !self.opening.agreed().timestamps || segment.flags.contains(Flags::RST) {
            return None;
        }
        let Some(timestamps) = segment.options.timestamps else {
            // RFC 7323 §3.2: once agreed, on every segment. A SYN is of another life, and is told of this one.
            let is_syn = segment.flags.contains(Flags::SYN);
            return (!is_syn).then_some(Step::Drop(DropReason::Paws));
        };
        if self.receiving.is_old_timestamp(cx.now, timestamps.value) {
            self.receiving.note_old_duplicate(arrived, self.opening.agreed(), &mut self.stats);
            let answer = if segment.payload.is_empty() { Answer::Limited } else { Answer::Always };
            return Some(Step::Answer(DropReason::Paws, answer));
        }
        None
    }

    /// Second: RST. Only the exact next number is believed (RFC 5961 §3.2).
    pub(super) fn check_rst(&mut self, cx: &mut Cx<'_>, arrived: &Arrived<'_>) -> Step {
        let segment = arrived.segment;
        if !segment.flags.contains(Flags::RST) {
            return Step::Next;
        }
        if segment.seq != self.receiving.nxt() {
            return Step::Answer(DropReason::RstNotExact, Answer::Limited);
        }
        match (self.state, self.opening.origin()) {
            (StateName::SynReceived, Origin::Passive) => {
                self.finish(cx, CloseReason::Reset);
                return Step::End(Disposition::Forget);
            }
            (StateName::SynReceived, Origin::Active) => self.finish(cx, CloseReason::Refused),
            // Everything that was sent has been acknowledged: the peer merely skipped the courtesies.
            (StateName::TimeWait, _) => self.finish(cx, CloseReason::Finished),
            _ => self.finish(cx, CloseReason::Reset),
        }
        Step::End(Disposition::Done)
    }

    /// Fourth: SYN (the third check, security, is empty). Challenged, never believed (RFC 5961 §4.2).
    pub(super) fn check_syn(&mut self, _: &mut Cx<'_>, arrived: &Arrived<'_>) -> Step {
        let segment = arrived.segment;
        if !segment.flags.contains(Flags::SYN) {
            return Step::Next;
        }
        let is_other_half = self.state == StateName::SynReceived
            && segment.seq == self.receiving.irs()
            && segment.flags.contains(Flags::ACK);
        if is_other_half {
            return Step::Next;
        }
        Step::Answer(DropReason::SynInConnection, Answer::Limited)
    }

    /// Fifth: is the ACK about something that we sent, and not too old (RFC 5961 §5.2)?
    pub(super) fn check_ack(&mut self, cx: &mut Cx<'_>, arrived: &Arrived<'_>) -> Step {
        let segment = arrived.segment;
        if !segment.flags.contains(Flags::ACK) {
            return Step::Drop(DropReason::NoAck);
        }
        if self.state == StateName::SynReceived {
            if !(self.sending.una() < segment.ack && segment.ack <= self.sending.nxt()) {
                cx.dropped(DropReason::AckOfUnsent);
                return Step::End(Disposition::Refuse);
            }
            self.establish(cx, segment);
        }
        if self.sending.max() < segment.ack {
            return Step::Answer(DropReason::AckOfUnsent, Answer::Limited);
        }
        if self.sending.is_too_old(segment.ack) {
            return Step::Answer(DropReason::AckTooOld, Answer::Limited);
        }
        // Only now is the segment believed to be the peer's: a stranger's timestamp would silence it for good.
        self.receiving.take_timestamp(cx.now, segment, self.opening.agreed());
        if self.opening.take_source_route(arrived.source_route) {
            self.update_mss();
        }
        if self.state == StateName::TimeWait { self.check_late(cx, segment) } else { Step::Next }
    }

    /// After its FIN the peer has nothing left to send: whatever takes a number, or is ahead of us, shows that it has
    /// not understood where we are (RFC 9293 §3.10.7.4).
    #[cold]
    fn check_late(&mut self, cx: &Cx<'_>, segment: &TcpView<'_>) -> Step {
        if segment.flags.contains(Flags::FIN) {
            self.timers.arm(Timer::Linger, cx.now + 2 * self.config.msl);
        }
        if segment.seq == self.receiving.nxt() && segment.sequence_len() == 0 {
            return Step::Next;
        }
        Step::Answer(DropReason::DataAfterClose, Answer::Limited)
    }
}
