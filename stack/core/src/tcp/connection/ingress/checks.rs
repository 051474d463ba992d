//! The checks of RFC 9293 §3.10.7.4, with the hardening of RFC 5961 and PAWS (RFC 7323 §5).

use std::time::Duration;

use super::data::first_byte;
use super::{Answer, Arrived, Connection, Disposition, Step};
use crate::tcp::connection::{CloseReason, Origin};
use crate::tcp::cx::Cx;
use crate::tcp::timers::Timer;
use crate::trace::{DropReason, StateName};
use crate::wire::{Flags, TcpView};
use crate::{Instant, Seq};

/// An old timestamp says nothing after so long a silence: its clock may have wrapped (RFC 7323 §5.5).
const PAWS_IDLE: Duration = Duration::from_secs(24 * 24 * 3600);

/// Ticks that a timestamp may be behind: two segments that leave at the turn of a tick may overtake each other. No
/// clock may tick often enough for numbers to wrap within one (RFC 7323 §5.4).
const PAWS_GRACE: i32 = 1;

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
        if self.is_acceptable(segment) {
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
        self.note_old_duplicate(arrived);
        Step::Answer(DropReason::OutOfWindow, Answer::Always)
    }

    /// In SYN-RECEIVED the peer's SYN may come again, or its half of a simultaneous open.
    fn check_repeated_syn(&mut self, segment: &TcpView<'_>) -> Option<Step> {
        let is_again = self.state == StateName::SynReceived
            && segment.flags.contains(Flags::SYN)
            && !segment.flags.contains(Flags::RST)
            && segment.seq == self.rcv.irs;
        if !is_again {
            return None;
        }
        self.opening.take_syn_again(segment.flags);
        if segment.flags.contains(Flags::ACK) {
            return Some(Step::Next); // check_syn lets it pass, and its ACK counts.
        }
        self.urges.syn = true;
        Some(Step::Drop(DropReason::SynInConnection))
    }

    /// TIME-WAIT gives way to a SYN that cannot be an old duplicate, whose number lies far from the window in
    /// general (RFC 6191, RFC 9293 SHLD-4).
    fn check_successor(&mut self, cx: &mut Cx<'_>, segment: &TcpView<'_>) -> Option<Step> {
        let is_syn = segment.flags.contains(Flags::SYN) && !segment.flags.intersects(Flags::RST | Flags::ACK);
        if self.state != StateName::TimeWait || !is_syn || !self.is_surely_new(segment) {
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
        let is_old = (timestamps.value.wrapping_sub(self.rcv.ts_recent) as i32) < -PAWS_GRACE;
        if is_old && !self.is_timestamp_stale(cx.now) {
            self.note_old_duplicate(arrived);
            let answer = if segment.payload.is_empty() { Answer::Limited } else { Answer::Always };
            return Some(Step::Answer(DropReason::Paws, answer));
        }
        None
    }

    /// The four cases of RFC 9293 §3.4. A zero window still lets ACK, RST and URG through (MUST-66), so a
    /// segment that begins exactly where we are is looked at; its data finds no room.
    fn is_acceptable(&self, segment: &TcpView<'_>) -> bool {
        let (seq, len) = (segment.seq, segment.sequence_len());
        let (nxt, edge) = (self.rcv.nxt, self.rcv.edge);
        if seq == nxt {
            return true;
        }
        let in_window = |number: Seq| nxt <= number && number < edge;
        in_window(seq) || (len > 0 && in_window(seq + (len - 1)))
    }

    pub(super) fn take_timestamp(&mut self, cx: &Cx<'_>, segment: &TcpView<'_>) {
        if segment.seq <= self.rcv.last_ack_decided
            && let Some(value) = self.timestamp_of(cx, segment)
        {
            self.rcv.ts_recent = value;
            self.rcv.ts_recent_at = cx.now;
        }
    }

    /// The segment's time stamp, if TS.Recent may become it.
    pub(super) fn timestamp_of(&self, cx: &Cx<'_>, segment: &TcpView<'_>) -> Option<u32> {
        let value = segment.options.timestamps.filter(|_| self.opening.agreed().timestamps)?.value;
        let is_newer = (value.wrapping_sub(self.rcv.ts_recent) as i32) >= 0;
        (is_newer || self.is_timestamp_stale(cx.now)).then_some(value)
    }

    fn is_timestamp_stale(&self, now: Instant) -> bool {
        now.since(self.rcv.ts_recent_at) > PAWS_IDLE
    }

    /// Data that we have seen already: the peer learns of it by D-SACK (RFC 2883).
    #[cold]
    pub(super) fn note_old_duplicate(&mut self, arrived: &Arrived<'_>) {
        let segment = arrived.segment;
        let len = segment.payload.len() as u32;
        let first = first_byte(segment);
        let end = first + len;
        if len == 0 || end > self.rcv.nxt {
            return;
        }
        self.stats.segments_duplicate += u64::from(arrived.segments());
        if self.opening.agreed().sack {
            self.ledger.came_twice((first, end));
        }
    }

    /// Second: RST. Only the exact next number is believed (RFC 5961 §3.2).
    pub(super) fn check_rst(&mut self, cx: &mut Cx<'_>, arrived: &Arrived<'_>) -> Step {
        let segment = arrived.segment;
        if !segment.flags.contains(Flags::RST) {
            return Step::Next;
        }
        if segment.seq != self.rcv.nxt {
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
            && segment.seq == self.rcv.irs
            && segment.flags.contains(Flags::ACK);
        if is_other_half {
            return Step::Next;
        }
        Step::Answer(DropReason::SynInConnection, Answer::Limited)
    }

    /// RFC 6191 §2.
    #[cold]
    fn is_surely_new(&self, syn: &TcpView<'_>) -> bool {
        match syn.options.timestamps {
            Some(timestamps) if self.opening.agreed().timestamps => {
                let ahead = timestamps.value.wrapping_sub(self.rcv.ts_recent) as i32;
                ahead > 0 || (ahead == 0 && self.rcv.nxt < syn.seq)
            }
            _ => self.rcv.nxt < syn.seq,
        }
    }

    /// Fifth: is the ACK about something that we sent, and not too old (RFC 5961 §5.2)?
    pub(super) fn check_ack(&mut self, cx: &mut Cx<'_>, arrived: &Arrived<'_>) -> Step {
        let segment = arrived.segment;
        if !segment.flags.contains(Flags::ACK) {
            return Step::Drop(DropReason::NoAck);
        }
        if self.state == StateName::SynReceived {
            if !(self.snd.una < segment.ack && segment.ack <= self.snd.nxt) {
                cx.dropped(DropReason::AckOfUnsent);
                return Step::End(Disposition::Refuse);
            }
            self.establish(cx, segment);
        }
        if self.snd.max < segment.ack {
            return Step::Answer(DropReason::AckOfUnsent, Answer::Limited);
        }
        if segment.ack < self.snd.una - self.snd.max_wnd {
            return Step::Answer(DropReason::AckTooOld, Answer::Limited);
        }
        // Only now is the segment believed to be the peer's: a stranger's timestamp would silence it for good.
        self.take_timestamp(cx, segment);
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
        if segment.seq == self.rcv.nxt && segment.sequence_len() == 0 {
            return Step::Next;
        }
        Step::Answer(DropReason::DataAfterClose, Answer::Limited)
    }
}
