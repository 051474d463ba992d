//! The rungs. Each looks at one reason to send and changes nothing.

use std::time::Duration;

use super::{LinkHelp, SegmentPlan, What};
use crate::Instant;
use crate::agent::{Allowance, SentKind, Turn};
use crate::narrow::as_u32;
use crate::tcp::connection::Outbound;
use crate::tcp::ledger::AckLedger;
use crate::tcp::recovery::{Frto, Gauge, Phase};
use crate::tcp::timers::Timer;
use crate::trace::StateName;
use crate::wire::{Flags, OfferFlags};

/// Pacing never holds a segment longer than this, or an RTO if that is longer.
const PACE_MOST: Duration = Duration::from_secs(1);

impl Outbound {
    /// The ladder, top rung first. `allowed` is the agents' allowance; None if the connection is at rest.
    pub(super) fn next_segment(
        &self,
        now: Instant,
        allowed: Option<&Allowance>,
        link: &LinkHelp,
        ledger: &AckLedger,
    ) -> Option<SegmentPlan> {
        let is_urged = self.urges.any();
        if is_urged && let Some(plan) = self.plan_reset().or_else(|| self.plan_syn()) {
            return Some(plan);
        }
        if !self.state.is_synchronized() {
            // Even before the handshake is over, an unacceptable segment gets an answer.
            let answers = self.state == StateName::SynReceived && ledger.is_waiting();
            return answers.then(|| self.plan_ack());
        }
        // An owed ACK rides on a segment that leaves now. If none may leave, the ACK goes alone.
        if ledger.goes_alone() || self.opening.agreed.has(OfferFlags::TELL_IN_WINDOW) && ledger.is_waiting() {
            return Some(self.plan_ack());
        }
        let data = allowed.and_then(|allowed| {
            self.plan_retransmission(now, allowed).or_else(|| self.plan_new_data(now, allowed, link))
        });
        if data.is_some() {
            return data;
        }
        let request = self
            .plan_fin()
            .or_else(|| if is_urged { self.plan_probe().or_else(|| self.plan_keep_alive()) } else { None });
        request.or_else(|| ledger.is_waiting().then(|| self.plan_ack()))
    }

    #[cold]
    fn plan_reset(&self) -> Option<SegmentPlan> {
        self.urges
            .rst
            .then(|| SegmentPlan::bare(What::Reset, self.sending.number_in_window(), Flags::RST | Flags::ACK))
    }

    #[cold]
    fn plan_syn(&self) -> Option<SegmentPlan> {
        if !self.urges.syn || !self.state.is_opening() {
            return None;
        }
        let is_reply = self.state == StateName::SynReceived;
        let flags = self.opening.syn_flags(is_reply, self.loss.recovery.timeouts, &self.config);
        Some(SegmentPlan::bare(What::Syn, self.sending.iss, flags))
    }

    fn plan_ack(&self) -> SegmentPlan {
        SegmentPlan::bare(What::Ack, self.sending.number_in_window(), Flags::ACK)
    }

    /// Retransmits lost segments, the lowest first.
    fn plan_retransmission(&self, now: Instant, allowed: &Allowance) -> Option<SegmentPlan> {
        if self.urges.frozen_probe && !self.loss.board.is_empty() {
            return Some(self.plan_again(0, SentKind::Probe));
        }
        if self.is_frozen() || matches!(self.loss.recovery.frto, Frto::SecondAck { .. }) {
            return None;
        }
        let index = self.next_to_resend()?;
        let kind = match self.loss.recovery.phase {
            Phase::AfterTimeout => SentKind::AfterTimeout,
            Phase::Open | Phase::Fast => SentKind::Resent,
        };
        let plan = self.plan_again(index, kind);
        let flight = self.loss.flight().bytes;
        let fits = flight == 0 || flight + u64::from(plan.len) <= allowed.flight_bytes || self.inflates();
        if !fits || !self.has_credit() || self.is_held_until(allowed.resend_from, now) {
            return None;
        }
        Some(plan)
    }

    /// RFC 6582 §3.2 steps 3 and 5: a third duplicate or a partial ACK shows a loss. The lost segment leaves at once,
    /// even with a full window.
    fn inflates(&self) -> bool {
        matches!(self.loss.recovery.gauge(), Some(Gauge::Inflate(_)))
    }

    /// Sends nothing below highest_ack again. If nothing is lost above it, the segment there goes again (after a
    /// timeout).
    fn next_to_resend(&self) -> Option<usize> {
        let above = self.loss.board.next_lost(self.sending.highest_ack);
        if above.is_none() && self.urges.asks_below_highest_ack() {
            return self.loss.board.at_or_before(self.sending.highest_ack);
        }
        above
    }

    #[cold]
    fn plan_again(&self, index: usize, kind: SentKind) -> SegmentPlan {
        let segment = self.loss.board.get(index);
        let len = segment.payload_len().min(self.sending.mss);
        let is_whole = len == segment.payload_len();
        let mut flags = Flags::ACK;
        if segment.fin && is_whole {
            flags |= Flags::FIN;
        }
        if len > 0 {
            flags |= Flags::PSH;
        }
        SegmentPlan {
            what: What::Again { index: as_u32(index), kind },
            seq: segment.seq,
            len,
            each: len,
            flags,
        }
    }

    fn plan_new_data(&self, now: Instant, allowed: &Allowance, link: &LinkHelp) -> Option<SegmentPlan> {
        if !self.state.may_send_data() || self.is_frozen() || self.sending.fin_sent {
            return None;
        }
        let unsent = self.sending.unsent();
        if unsent == 0 {
            return None;
        }
        if self.urges.tail_probe {
            return self.new_data(unsent.min(self.sending.mss), What::TailProbe);
        }
        let is_held = self.waits_for_turn() || self.is_held_until(self.new_from(allowed), now);
        if is_held || !self.has_credit() || self.is_resending() {
            return None;
        }
        if let Some(plan) = self.plan_mtu_probe(unsent, allowed) {
            return Some(plan);
        }
        let len = unsent.min(self.sending.mss).min(self.sending.usable_window());
        let flight = self.loss.flight().bytes;
        let fits = flight == 0 || flight + u64::from(len) <= allowed.flight_bytes;
        if len == 0 || !fits || !self.is_worth_sending(len, unsent) {
            return None;
        }
        self.new_data(len, What::New).filter(|plan| !self.waits_for_more(plan, allowed, link))
    }

    /// True if the application has announced more and the present data fills neither a packet nor the buffer. With a
    /// full buffer no more could come. F-RTO's new segments never wait.
    fn waits_for_more(&self, plan: &SegmentPlan, allowed: &Allowance, link: &LinkHelp) -> bool {
        if !self.sending.more_comes
            || self.sending.fin_wanted
            || self.asks_with_new_data()
            || self.is_urgent()
        {
            return false;
        }
        self.sending.unsent() < self.full_packet(plan, allowed, link).min(self.sending.buffer.limit())
    }

    fn new_data(&self, len: u32, what: What) -> Option<SegmentPlan> {
        let len = len.min(self.sending.usable_window());
        if len == 0 {
            return None;
        }
        let mut flags = Flags::ACK;
        if len == self.sending.unsent() {
            flags |= self.flags_of_the_last(len);
        }
        if self.sending.cwr {
            flags |= Flags::CWR;
        }
        Some(SegmentPlan { what, seq: self.sending.nxt, len, each: len, flags })
    }

    /// The flags of a segment that ends with our last byte. PSH: the peer need not wait for more (MUST-61). `len`
    /// counts all bytes that leave.
    pub(super) fn flags_of_the_last(&self, len: u32) -> Flags {
        // A FIN takes a sequence number, which must fit the window too.
        let has_fin = self.sending.fin_wanted && len < self.sending.usable_window();
        if has_fin { Flags::PSH | Flags::FIN } else { Flags::PSH }
    }

    /// Returns whether small segments wait for an ACK (RFC 9293 §3.7.4).
    pub(super) fn uses_nagle(&self) -> bool {
        self.changed_options.as_deref().map_or(self.config.nagle, |changed| changed.nagle)
    }

    /// Sender's silly-window avoidance (RFC 9293 §3.8.6.2.1) and Nagle's rule (§3.7.4).
    fn is_worth_sending(&self, len: u32, unsent: u32) -> bool {
        if len >= self.sending.mss {
            return true;
        }
        let is_all = len == unsent;
        let may_be_short = self.sending.is_idle() || !self.uses_nagle();
        if is_all && (may_be_short || self.sending.fin_wanted || self.is_urgent()) {
            return true;
        }
        len >= self.sending.max_wnd / 2 && may_be_short
    }

    /// Returns whether unsent data is urgent: it waits for no ACK and for no more data.
    fn is_urgent(&self) -> bool {
        self.sending.urgent_end.is_some_and(|end| self.sending.nxt < end)
    }

    fn plan_mtu_probe(&self, unsent: u32, allowed: &Allowance) -> Option<SegmentPlan> {
        let size = self.mtu.wanted_probe()?;
        self.plan_mtu_probe_of(size, unsent, allowed)
    }

    #[cold]
    fn plan_mtu_probe_of(&self, size: u16, unsent: u32, allowed: &Allowance) -> Option<SegmentPlan> {
        let len = self.opening.payload_of(size).min(u32::from(self.config.segment_bytes));
        let may_leave = len > self.sending.mss
            && unsent >= len
            && self.sending.usable_window() >= len
            && self.loss.recovery.phase == Phase::Open
            && self.loss.flight().bytes + u64::from(len) <= allowed.flight_bytes;
        if may_leave { self.new_data(len, What::MtuProbe { size }) } else { None }
    }

    fn plan_fin(&self) -> Option<SegmentPlan> {
        let may_leave = self.is_fin_due() && self.sending.usable_window() > 0 && !self.is_frozen();
        may_leave.then(|| SegmentPlan::bare(What::New, self.sending.nxt, Flags::ACK | Flags::FIN))
    }

    /// Returns whether all data has left, but the FIN has not.
    fn is_fin_due(&self) -> bool {
        self.sending.fin_wanted
            && !self.sending.fin_sent
            && self.sending.unsent() == 0
            && self.state.may_send_data()
    }

    #[cold]
    fn plan_probe(&self) -> Option<SegmentPlan> {
        if self.urges.tail_probe && !self.loss.board.is_empty() && !self.is_frozen() {
            let index = self.loss.board.len() - 1;
            let again = self.plan_again(index, SentKind::Probe);
            return Some(SegmentPlan { what: What::TailProbeAgain { index: as_u32(index) }, ..again });
        }
        if !self.urges.window_probe || !self.state.is_synchronized() {
            return None;
        }
        if self.sending.usable_window() > 0 {
            // Overrides silly-window avoidance: otherwise both ends could wait for ever.
            return self.new_data(self.sending.unsent().min(self.sending.mss), What::New);
        }
        let probe = |seq, len, flags| SegmentPlan {
            what: What::WindowProbe,
            seq,
            len,
            each: len,
            flags: Flags::ACK | flags,
        };
        if self.has_probe_out() {
            Some(probe(self.sending.una, 1, Flags::PSH))
        } else if self.sending.unsent() > 0 {
            Some(probe(self.sending.nxt, 1, Flags::PSH))
        } else {
            // Only a FIN waits. A probe with an acknowledged number gets an answer just as one beyond the window does.
            self.is_fin_due().then(|| probe(self.sending.nxt - 1, 0, Flags::default()))
        }
    }

    /// One number below the expected one, without data: a live peer must answer (SHLD-12).
    #[cold]
    fn plan_keep_alive(&self) -> Option<SegmentPlan> {
        self.urges.keep_alive.then(|| SegmentPlan::bare(What::KeepAlive, self.sending.nxt - 1, Flags::ACK))
    }

    /// The compatible profile lets only a few segments leave for each ACK.
    fn has_credit(&self) -> bool {
        match self.loss.recovery.gauge() {
            Some(Gauge::Inflate(inflate)) => inflate.may_send(),
            _ => true,
        }
    }

    /// F-RTO's two new segments (RFC 5682 §2.1) leave before lost data, which waits for their ACKs. They need no turn,
    /// and leave as soon as retransmissions may.
    fn asks_with_new_data(&self) -> bool {
        matches!(self.loss.recovery.frto, Frto::SecondAck { new_left: 1.. })
    }

    /// Returns whether lost data goes first. Only F-RTO sends two new segments before it (RFC 5682 §2.1).
    fn is_resending(&self) -> bool {
        match self.loss.recovery.frto {
            Frto::SecondAck { new_left } => new_left == 0,
            _ => self.next_to_resend().is_some(),
        }
    }

    pub(super) fn new_from(&self, allowed: &Allowance) -> Instant {
        if self.asks_with_new_data() { allowed.resend_from } else { allowed.new_from }
    }

    /// New data waits while another flow has the turn.
    pub(super) fn waits_for_turn(&self) -> bool {
        self.sending.turn == Some(Turn::Waiting) && !self.asks_with_new_data()
    }

    fn is_held_until(&self, from: Instant, now: Instant) -> bool {
        now < from && now < self.paced_until(from)
    }

    /// Pacing may space segments, but must not starve a connection.
    pub(super) fn paced_until(&self, from: Instant) -> Instant {
        let since = self.sending.last_sent_at.get().unwrap_or(Instant::ZERO);
        from.min(since + self.loss.rtt.rto().max(PACE_MOST))
    }

    /// Returns whether data or a FIN waits, only a probe is in flight, and the window holds it back.
    pub(crate) fn is_blocked_by_window(&self) -> bool {
        let waits = self.sending.unsent() > 0 || self.has_probe_out() || self.is_fin_due();
        if !waits {
            return false;
        }
        let is_quiet = self.loss.board.is_empty() || self.has_probe_out();
        let wanted = self.sending.mss.min(self.sending.unsent().max(1));
        is_quiet && self.state.may_send_data() && self.sending.usable_window() < wanted
    }

    /// Returns whether a window probe is out alone: the byte at `snd_una`, with nothing after it.
    pub(crate) fn has_probe_out(&self) -> bool {
        self.urges.window_probes_sent > 0
            && self
                .loss
                .board
                .back()
                .is_some_and(|last| last.len == 1 && last.seq == self.sending.una && !last.fin)
    }

    pub(crate) fn is_frozen(&self) -> bool {
        self.timers.is_armed(Timer::Frozen)
    }
}
