//! What is lost, and what follows: fast recovery (RFC 6582, 6675, 8985), timeouts (RFC 6298, 5682), tail loss
//! probes (RFC 8985 §7), and taking it all back when the loss was none (RFC 3522, 3708).

use std::time::Duration;

use super::acks::{AckNews, Before, micros};
use super::{Connection, in_32_bits, send_view};
use crate::agent::{Count, Loss, LossKind, Recovered};
use crate::tcp::config::RecoveryStyle;
use crate::tcp::cx::Cx;
use crate::tcp::recovery::{Certainty, Frto, Gauge, Inflate, Phase, Prr, Safety};
use crate::tcp::scoreboard::{Newest, SegmentState};
use crate::tcp::timers::Timer;
use crate::trace::{LostBy, MtuHow, TraceKind, UndoneBy};
use crate::{Instant, Moment};

/// Retransmissions after which the application and the path are told (RFC 9293 §3.8.3, R1).
const R1: u32 = 3;
/// A tail probe without any RTT sample waits this long (RFC 8985 §7.2).
const PROBE_WITHOUT_RTT: Duration = Duration::from_secs(1);
/// What a lone segment's probe adds for a peer that delays its ACK (RFC 8985 §7.2).
const MAX_ACK_DELAY: Duration = Duration::from_millis(200);

impl Connection {
    /// Weighs one ACK. Answers how a recovery ended, when this ACK ended it.
    pub(super) fn judge(&mut self, cx: &mut Cx<'_>, news: &AckNews) -> Option<Recovered> {
        if self.uses_rack() {
            let newest = news.delivered.newest.filter(|newest| !self.is_first_copy(newest, news.echo));
            self.recovery.rack.on_delivered(cx.now, newest, news.delivered.reordered, self.path.rtt.min);
        }
        self.react_to_mark(cx, news);
        if let Some(by) = self.is_denied(news) {
            cx.trace(TraceKind::Undone(by));
            return Some(Recovered::Undone);
        }
        if news.advanced > 0 {
            self.recovery.dup_acks = 0;
        }
        self.resolve_tail_probe(cx, news);
        let ended = self.weigh_advance(cx, news);
        if ended.is_none() {
            self.weigh_duplicate(cx, news);
            // Without SACK a partial ACK is all that tells of the next loss.
            let shows_loss = self.detect(cx, news.before) || !self.opening.agreed().sack;
            let is_safe = news.advanced > 0 && !shows_loss;
            self.gauge(news, if is_safe { Safety::Safe } else { Safety::Doubtful });
        }
        ended
    }

    /// What was sent again and is answered with an older timestamp had arrived the first time: when it was sent last
    /// says nothing of the others (RFC 8985 §6.2 step 2). Above a hole the echo is that of the last segment in order
    /// (RFC 7323 §4.3), and tells nothing.
    fn is_first_copy(&self, newest: &Newest, echo: Option<u32>) -> bool {
        let sent_at = self.opening.ts_now(newest.sent_at);
        let is_older = |echo: u32| (echo.wrapping_sub(sent_at) as i32) < 0;
        newest.was_resent && newest.end <= self.snd.una && echo.is_some_and(is_older)
    }

    /// ECN (RFC 3168 §6.1.2): once a round trip, as though something had been lost, but nothing is sent again.
    fn react_to_mark(&mut self, cx: &mut Cx<'_>, news: &AckNews) {
        // CWR goes with what begins at `reduced_at`: until that is acknowledged the peer goes on echoing.
        let is_new_window = self.recovery.reduced_at.is_none_or(|at| at < self.snd.una);
        if !news.ece || !is_new_window || self.recovery.phase != Phase::Open {
            return;
        }
        cx.trace(TraceKind::Marked);
        self.ask_for_reduction(cx, LossKind::Marked, news.before.outstanding);
    }

    /// Whatever reduces the window, CWR says so with the next new data, and marks of what is in flight now ask for
    /// nothing more (RFC 3168 §6.1.2).
    #[cold]
    pub(super) fn ask_for_reduction(&mut self, cx: &Cx<'_>, kind: LossKind, flight_before: Count) {
        self.recovery.reduced_at = Some(self.snd.nxt);
        self.snd.cwr = self.opening.sends_ect();
        let view = send_view(&self.snd, &self.path, &self.board, &self.recovery);
        let reduction = self.senders.on_loss(&Loss { now: cx.now, kind, flight_before }, &view);
        self.recovery.ssthresh = reduction.ssthresh;
    }

    pub(super) fn before(&self) -> Before {
        let (flight, lost, sacked) = (self.board.flight(), self.board.lost(), self.board.sacked());
        let outstanding = Count {
            segments: flight.segments + lost.segments + sacked.segments,
            bytes: flight.bytes + lost.bytes + sacked.bytes,
        };
        Before { pipe: self.flight(), outstanding }
    }

    /// Does this ACK show that the last loss was none?
    fn is_denied(&mut self, news: &AckNews) -> Option<UndoneBy> {
        if !self.config.undo {
            return None;
        }
        if let Some(twice) = news.dsack {
            self.recovery.rack.on_dsack(self.snd.una, self.snd.nxt);
            if self.recovery.undo().is_some_and(|undo| undo.is_denied_by_dsack(twice)) {
                return Some(UndoneBy::Dsack);
            }
        }
        let is_recovering = self.recovery.phase != Phase::Open;
        if is_recovering
            && news.advanced > 0
            && let (Some(echo), Some(undo)) = (news.echo, self.recovery.undo())
            && undo.is_denied_by_echo(self.snd.una, echo)
        {
            return Some(UndoneBy::Timestamps);
        }
        self.step_frto(news)
    }

    fn step_frto(&mut self, news: &AckNews) -> Option<UndoneBy> {
        match self.recovery.frto {
            Frto::Off => None,
            Frto::FirstAck
                if news.advanced > 0 && self.snd.una < self.recovery.point && self.unsent() > 0 =>
            {
                self.recovery.frto = Frto::SecondAck { new_left: 2 };
                None
            }
            Frto::SecondAck { new_left } if news.advanced > 0 && new_left < 2 => Some(UndoneBy::Frto),
            Frto::SecondAck { new_left: 2 } if !news.is_dup => None,
            Frto::SecondAck { .. } if news.is_dup => {
                // The loss was one. One of the new segments has arrived, and makes room for the next old one (step 3a).
                self.recovery.frto = Frto::Off;
                let in_flight = self.board.flight().segments;
                self.recovery.assumed_arrived = in_flight.saturating_sub(1).min(1);
                None
            }
            _ => {
                self.recovery.frto = Frto::Off;
                None
            }
        }
    }

    fn weigh_advance(&mut self, cx: &mut Cx<'_>, news: &AckNews) -> Option<Recovered> {
        if news.advanced == 0 {
            return None;
        }
        let segments = news.delivered.acked.segments;
        let covers_point = self.recovery.point <= self.snd.una;
        match self.recovery.phase {
            Phase::Open => {
                self.recovery.assumed_arrived = 0;
                self.recovery.timeouts = 0;
                None
            }
            Phase::Fast | Phase::AfterTimeout if covers_point => Some(Recovered::Full),
            Phase::AfterTimeout => {
                self.recovery.assumed_arrived = 0;
                self.recovery.timeouts = 0;
                None
            }
            Phase::Fast => {
                // A partial ACK: the segment it stops at is lost too (RFC 6582 §3.2).
                self.recovery.partial_acks += 1;
                let assumed = self.recovery.assumed_arrived;
                self.recovery.assumed_arrived = assumed.saturating_sub(segments.saturating_sub(1));
                if !self.opening.agreed().sack && self.board.mark_first_lost() {
                    cx.trace(TraceKind::Lost { segments: 1, by: LostBy::PartialAck });
                }
                let mss = u64::from(self.snd.mss);
                if let Some(Gauge::Inflate(inflate)) = self.recovery.gauge_mut() {
                    inflate.on_partial_ack(news.delivered.acked.bytes, mss);
                }
                cx.trace(TraceKind::Window {
                    allowed: in_32_bits(self.recovery.window),
                    flight: self.flight().bytes as u32,
                });
                None
            }
        }
    }

    fn weigh_duplicate(&mut self, cx: &mut Cx<'_>, news: &AckNews) {
        // Where the peer counts, an ACK that is no duplicate may be the first to tell of a hole: those before it
        // were lost.
        let tells_of_hole = news.dup_count.is_some_and(|count| count > 0) && !self.board.is_empty();
        if !news.is_dup && !tells_of_hole {
            return;
        }
        if news.is_dup {
            self.count_duplicate();
        }
        let dup = self.dup_ack(cx.now, news);
        let view = send_view(&self.snd, &self.path, &self.board, &self.recovery);
        let asks = self.senders.on_dup_ack(&dup, &view).is_some();
        let is_new_window = self.recovery.asked_at.is_none_or(|at| at <= self.snd.una);
        if asks && is_new_window && self.recovery.phase == Phase::Open {
            self.recovery.asked_at = Some(self.snd.nxt);
            self.board.mark_first_lost();
            self.enter_fast(cx, news.before, LostBy::Agent);
        }
    }

    fn count_duplicate(&mut self) {
        self.recovery.dup_acks += 1;
        let mss = u64::from(self.snd.mss);
        match self.recovery.gauge_mut() {
            Some(Gauge::Inflate(inflate)) => inflate.on_dup_ack(mss),
            _ if !self.opening.agreed().sack => self.assume_one_arrived(),
            _ => {}
        }
    }

    /// A duplicate ACK without SACK stands for one segment that left the network: all of them in recovery (as
    /// RFC 9937 counts), the first two outside of it (limited transmit, RFC 3042).
    fn assume_one_arrived(&mut self) {
        let most = self.board.flight().segments.saturating_sub(1);
        let limit = match self.recovery.phase {
            Phase::Open if !self.config.limited_transmit => 0,
            Phase::Open => u32::from(self.dup_threshold).saturating_sub(1),
            Phase::AfterTimeout => 0,
            Phase::Fast => u32::MAX,
        };
        if self.recovery.assumed_arrived < most.min(limit) {
            self.recovery.assumed_arrived += 1;
        }
    }

    /// Looks for lost segments by the rule in force: time (RACK), SACKed bytes above, or duplicate ACKs. Answers
    /// whether there are any that were not known to be.
    pub(super) fn detect(&mut self, cx: &mut Cx<'_>, before: Before) -> bool {
        let (lost_before, sacked) = (self.board.lost().segments, self.board.sacked().segments);
        let (by, found) = if self.uses_rack() {
            (LostBy::Rack, self.detect_by_time(cx.now))
        } else if self.opening.agreed().sack {
            (LostBy::Sack, sacked > 0 && self.board.mark_lost_by_sack(self.dup_threshold, self.snd.mss))
        } else {
            // RFC 6582 §3.2 step 1: not for duplicates that our own resends caused.
            let is_due = self.recovery.phase == Phase::Open && self.recovery.point < self.snd.una;
            let are_enough = self.recovery.dup_acks >= u32::from(self.dup_threshold);
            (LostBy::DupAcks, is_due && are_enough && self.board.mark_first_lost())
        };
        if found {
            let segments = self.board.lost().segments.saturating_sub(lost_before);
            cx.trace(TraceKind::Lost { segments, by });
        }
        if found && !self.is_only_probe_lost(cx.now) && self.recovery.phase == Phase::Open {
            self.enter_fast(cx, before, by);
        }
        found
    }

    pub(super) fn uses_rack(&self) -> bool {
        self.opening.agreed().sack && self.config.rack
    }

    fn detect_by_time(&mut self, now: Instant) -> bool {
        let enough_sacked = self.board.sacked().segments >= u32::from(self.dup_threshold);
        let certain = if self.recovery.phase != Phase::Open || enough_sacked {
            Certainty::Enough
        } else {
            Certainty::Little
        };
        let rack = &self.recovery.rack;
        let newest = rack.newest().copied().filter(|newest| self.board.may_show_loss(newest));
        let Some(newest) = newest else {
            self.timers.disarm(Timer::Reorder);
            return false;
        };
        let window = rack.window(certain, self.path.rtt.min, self.path.rtt.smoothed);
        let (found, wait) = self.board.mark_lost_by_time(now, &newest, rack.rtt() + window);
        match wait {
            Some(wait) => self.timers.arm(Timer::Reorder, now + wait),
            None => self.timers.disarm(Timer::Reorder),
        }
        found
    }

    /// A larger segment than the path was known to carry is lost: that is news of its size, not of congestion.
    fn is_only_probe_lost(&mut self, now: Instant) -> bool {
        let Some(probe) = self.mtu.probe() else { return false };
        let lost = self.board.lost();
        let Some(index) = self.board.next_lost(self.snd.una) else { return false };
        if self.board.get(index).seq != probe.seq {
            return false;
        }
        self.mtu.probe_lost();
        self.arm_mtu_probe(now);
        lost.segments == 1
    }

    /// PRR must not wait for bytes that were SACKed before: they are not delivered once more (RFC 9937 §6.1).
    #[cold]
    pub(super) fn enter_fast(&mut self, cx: &mut Cx<'_>, before: Before, by: LostBy) {
        self.ask_for_reduction(cx, LossKind::Fast, before.outstanding);
        let mss = u64::from(self.snd.mss);
        let recovery = &mut self.recovery;
        recovery.point = self.snd.nxt;
        recovery.tail_probe = None;
        recovery.partial_acks = 0;
        let gauge = match self.config.recovery {
            RecoveryStyle::Prr => Gauge::Prr(Prr::begin(before.pipe.bytes)),
            RecoveryStyle::Inflate { per_ack } => {
                recovery.assumed_arrived = 0;
                Gauge::Inflate(Inflate::begin(recovery.dup_acks, mss, per_ack))
            }
        };
        recovery.begin_fast(gauge);
        // When a timer found the loss no ACK comes along to set the window: the one of an earlier recovery must
        // neither hold the first resend back nor let a burst out.
        self.regauge(0, Safety::Doubtful);
        self.snd.timed.1 = Moment::NEVER;
        self.timers.disarm(Timer::TailProbe);
        self.arm_retransmit(cx.now);
        self.stats.fast_retransmits += 1;
        cx.trace(TraceKind::RecoveryBegan {
            by,
            ssthresh: in_32_bits(self.recovery.ssthresh),
            flight: in_32_bits(before.pipe.bytes),
            point: self.recovery.point,
        });
    }

    /// How much may be in flight until the next ACK.
    fn gauge(&mut self, news: &AckNews, safety: Safety) {
        if self.recovery.phase != Phase::Fast {
            return;
        }
        let delivered = match (self.opening.agreed().sack, news.is_dup, news.advanced > 0) {
            (true, ..) => news.delivered.bytes(),
            (false, true, _) | (false, _, true) => u64::from(self.snd.mss),
            _ => 0,
        };
        // What delivers nothing, such as the peer's own data, lets nothing out (packet conservation).
        if delivered > 0 {
            self.regauge(delivered, safety);
        }
    }

    fn regauge(&mut self, delivered: u64, safety: Safety) {
        let has_sack = self.opening.agreed().sack;
        let (pipe, mss) = (self.flight().bytes, u64::from(self.snd.mss));
        let ssthresh = self.recovery.ssthresh;
        let Some(gauge) = self.recovery.gauge_mut() else { return };
        self.recovery.window = match gauge {
            Gauge::Prr(prr) => {
                let delivered = if has_sack { delivered } else { delivered.min(prr.undelivered()) };
                prr.on_ack(delivered, safety, pipe, ssthresh, mss)
            }
            Gauge::Inflate(inflate) => inflate.window(ssthresh, pipe, mss),
        };
    }

    /// Without SACK a recovery mends one hole a round trip; only its first partial ACK restarts the timer, so that
    /// slow start ends a long one ("impatient", RFC 6582 §3.2 and §4).
    pub(super) fn ack_restarts_timer(&self) -> bool {
        self.opening.agreed().sack || self.recovery.phase != Phase::Fast || self.recovery.partial_acks == 1
    }

    /// Recovery is over: everything arrived, or nothing had been lost.
    #[cold]
    pub(super) fn end_recovery(&mut self, cx: &mut Cx<'_>, end: Recovered) {
        let was = self.recovery.phase;
        self.recovery.phase = Phase::Open;
        self.recovery.assumed_arrived = 0;
        self.recovery.dup_acks = 0;
        self.recovery.timeouts = 0;
        self.recovery.frto = Frto::Off;
        if let Some(undo) = self.recovery.undo() {
            undo.keep_until(self.snd.nxt);
            if end == Recovered::Undone {
                undo.close();
            }
        }
        if end == Recovered::Undone {
            self.board.unmark_lost();
            self.learn_from_needless_timeout();
            self.stats.undone += 1;
            if self.mtu.acquit() {
                self.path_mtu_changed(cx, MtuHow::Undone);
            }
        } else {
            self.mtu.settle();
        }
        if was == Phase::Fast {
            self.recovery.rack.on_recovered(end);
        }
        // After a timeout the window grows on from where slow start has brought it: nothing to hand back.
        if was == Phase::Fast || end == Recovered::Undone {
            let view = send_view(&self.snd, &self.path, &self.board, &self.recovery);
            self.senders.on_recovered(end, &view);
        }
        if was != Phase::Open {
            cx.trace(TraceKind::RecoveryEnded);
        }
    }

    /// RFC 6298 §5.4 to 5.6: send the first unacknowledged segment again, and wait twice as long.
    #[cold]
    pub(super) fn on_retransmission_timeout(&mut self, cx: &mut Cx<'_>) {
        let rto = self.rto();
        self.recovery.timeouts += 1;
        let nth = self.recovery.timeouts;
        self.stats.timeouts += 1;
        cx.trace(TraceKind::Timeout { nth, rto_us: micros(rto) });
        self.note_struggle(nth);
        self.suspect_mtu(cx, nth);
        self.reset_for_timeout(nth);
        self.ask_for_reduction(cx, LossKind::Timeout { nth }, self.before().outstanding);
        self.back_off();
        self.lower_highest_ack();
        self.arm_retransmit(cx.now);
    }

    fn reset_for_timeout(&mut self, nth: u32) {
        // A first segment that is SACKed but not acknowledged: the peer threw it away (RFC 2018 §8).
        if self.board.front().is_some_and(|front| front.state == SegmentState::Sacked) {
            self.board.forget_sacks();
            self.highest_sacked = None;
        }
        self.board.mark_all_lost();
        let may_be_spurious = nth == 1 && self.recovery.phase == Phase::Open;
        let recovery = &mut self.recovery;
        recovery.frto = if may_be_spurious && self.config.undo && !self.opening.agreed().timestamps {
            Frto::FirstAck
        } else {
            Frto::Off
        };
        // Within a fast recovery the first resend that counts is that recovery's.
        recovery.undo_timeout(nth == 1 && recovery.phase != Phase::Fast);
        recovery.phase = Phase::AfterTimeout;
        recovery.point = self.snd.nxt;
        recovery.dup_acks = 0;
        recovery.assumed_arrived = 0;
        recovery.tail_probe = None;
        self.snd.timed.1 = Moment::NEVER;
        self.timers.disarm(Timer::TailProbe);
        self.timers.disarm(Timer::Reorder);
    }

    /// RFC 4015: the RTO stays doubled until new data measures the path, then is at least what that sample asks for.
    /// A receiver that waits for more than may be sent would else be timed out for every ACK.
    fn learn_from_needless_timeout(&mut self) {
        if self.recovery.undo().is_none_or(|undo| !undo.has_timed_out()) {
            return;
        }
        self.recovery.was_delayed = true;
        self.rtt.on_needless_timeout();
        if self.rto_held > 0 && self.rtt.backoff() == 0 {
            // Held as it was, there would never be a sample.
            self.rtt.on_timeout();
        }
    }

    pub(super) fn back_off(&mut self) {
        if self.recovery.timeouts > self.rto_held.into() {
            self.rtt.on_timeout();
        }
    }

    pub(super) fn note_struggle(&mut self, nth: u32) {
        if nth == R1 && self.options().report_errors {
            self.events.struggling = true;
        }
    }

    /// When to send a tail loss probe: later than an ACK could take, earlier than the RTO.
    pub(super) fn arm_tail_probe(&mut self, now: Instant) {
        let is_quiet = self.recovery.phase == Phase::Open
            && self.recovery.tail_probe.is_none()
            && self.board.sacked().segments == 0;
        if !self.uses_rack() || !is_quiet || self.board.is_empty() {
            self.timers.disarm(Timer::TailProbe);
            return;
        }
        let mut wait = self.path.rtt.smoothed.map_or(PROBE_WITHOUT_RTT, |srtt| 2 * srtt);
        if self.board.flight().segments <= 1 {
            wait += MAX_ACK_DELAY;
        }
        let rto_at = self.timers.deadline(Timer::Retransmit).unwrap_or_else(|| now + self.rto());
        self.timers.arm(Timer::TailProbe, (now + wait).min(rto_at));
    }

    pub(super) fn on_tail_probe_due(&mut self, now: Instant) {
        if self.recovery.phase == Phase::Open && self.recovery.tail_probe.is_none() && !self.board.is_empty()
        {
            self.urges.tail_probe = true;
            self.arm_retransmit(now);
        }
    }

    /// RFC 8985 §7.4: a probe that repaired a loss hides it from the window; reduce as though it had been seen. The
    /// ACK that covers the probe does not tell: it may be the first copy's, with the D-SACK still to come.
    fn resolve_tail_probe(&mut self, cx: &mut Cx<'_>, news: &AckNews) {
        let Some(probe) = self.recovery.tail_probe.filter(|probe| probe.end <= self.snd.una) else { return };
        let came_twice = news.dsack.is_some() || (news.advanced == 0 && news.says_only_ack);
        let is_more_acked = probe.end < self.snd.una;
        if probe.was_resent && !came_twice && !is_more_acked {
            return;
        }
        self.recovery.tail_probe = None;
        if probe.was_resent && !came_twice && self.recovery.phase == Phase::Open {
            self.ask_for_reduction(cx, LossKind::Marked, news.before.outstanding);
        }
    }
}
