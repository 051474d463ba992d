//! Reacts to a loss by fast recovery (RFC 6582, 6675, 8985) and by a smaller window. Both are taken back if the loss
//! was none (RFC 3522, 3708).

use super::acks::{AckNews, Before};
use super::loss::Space;
use super::{Outbound, in_32_bits, send_view};
use crate::Instant;
use crate::agent::{Count, Loss, LossKind, Recovered};
use crate::tcp::cx::Cx;
use crate::tcp::recovery::{Phase, Safety};
use crate::tcp::timers::Timer;
use crate::trace::{LostBy, MtuHow, TraceKind};
use crate::wire::OfferFlags;

impl Outbound {
    /// The state of other parts that loss detection may know.
    pub(super) fn space(&self) -> Space {
        let has_sack = self.opening.agreed.sack;
        Space {
            una: self.sending.una,
            nxt: self.sending.nxt,
            mss: self.sending.mss,
            has_sack,
            uses_rack: has_sack && self.config.rack,
            peer_counts: self.opening.agreed.has(OfferFlags::USE_DUP_COUNT),
        }
    }

    /// Weighs one ACK. Returns how a recovery ended, if this ACK ended it.
    pub(super) fn judge(&mut self, cx: &mut Cx<'_>, news: &AckNews) -> Option<Recovered> {
        let space = self.space();
        if space.uses_rack {
            let sent_ts = news.delivered.newest.map(|newest| self.opening.ts_now(newest.sent_at));
            self.loss.note_delivered(cx.now, news, space, sent_ts, self.path.rtt.min);
            if self.loss.passes_calmly(news) {
                self.timers.disarm(Timer::Reorder);
                if cfg!(debug_assertions) {
                    self.check_calm(cx, news, space);
                }
                return None;
            }
        }
        self.judge_by_steps(cx, news, space)
    }

    /// Checks that the steps, which a calm ACK leaves out, change nothing after it. Events for sender agents leave a
    /// trace in `recovery`.
    #[inline(never)]
    fn check_calm(&mut self, cx: &mut Cx<'_>, news: &AckNews, space: Space) {
        let (recovery, timers) = (self.loss.recovery.without_repair(), self.timers.clone());
        let ended = self.judge_by_steps(cx, news, space);
        assert!(ended.is_none(), "a calm ACK ends nothing");
        assert_eq!(self.loss.recovery.without_repair(), recovery, "a calm ACK changes nothing of recovery");
        assert_eq!(self.timers, timers, "a calm ACK moves no timer");
    }

    #[inline(never)]
    fn judge_by_steps(&mut self, cx: &mut Cx<'_>, news: &AckNews, space: Space) -> Option<Recovered> {
        self.react_to_mark(cx, news);
        let has_unsent = self.sending.unsent() > 0;
        if self.config.undo
            && let Some(by) = self.loss.is_denied(news, space, has_unsent)
        {
            cx.trace(TraceKind::Undone(by));
            return Some(Recovered::Undone);
        }
        if news.advanced > 0 {
            self.loss.recovery.dup_acks = 0;
        }
        if self.loss.resolve_tail_probe(news, space.una) {
            self.ask_for_reduction(cx, LossKind::Marked, news.before.outstanding);
        }
        let ended = self.loss.weigh_advance(cx, news, space);
        if ended.is_none() {
            self.weigh_duplicate(cx, news, space);
            // Without SACK a partial ACK is the only sign of the next loss.
            let shows_loss = self.detect(cx, news.before) || !space.has_sack;
            let is_safe = news.advanced > 0 && !shows_loss;
            self.loss.gauge(news, if is_safe { Safety::Safe } else { Safety::Doubtful }, space);
        }
        ended
    }

    /// ECN (RFC 3168 §6.1.2): reacts as to a loss, once a round trip, but without a retransmission.
    fn react_to_mark(&mut self, cx: &mut Cx<'_>, news: &AckNews) {
        // CWR goes with the data at `reduced_at`: until that is acknowledged, the peer continues its echo.
        let is_new_window = self.loss.recovery.reduced_at.is_none_or(|at| at < self.sending.una);
        if !news.ece || !is_new_window || self.loss.recovery.phase != Phase::Open {
            return;
        }
        cx.trace(TraceKind::Marked);
        self.ask_for_reduction(cx, LossKind::Marked, news.before.outstanding);
    }

    /// Reduces the window; the next new data carries CWR. Marks of the data now in flight cause no further reduction
    /// (RFC 3168 §6.1.2).
    #[cold]
    pub(super) fn ask_for_reduction(&mut self, cx: &Cx<'_>, kind: LossKind, flight_before: Count) {
        self.loss.recovery.reduced_at = Some(self.sending.nxt);
        self.sending.cwr = self.opening.sends_ect();
        let view = send_view(&self.sending, &self.path, &self.loss);
        let event = Loss { now: cx.now, kind, flight_before };
        let reduction = self.senders.on_loss(&event, &view);
        self.loss.recovery.ssthresh = reduction.ssthresh;
    }

    fn weigh_duplicate(&mut self, cx: &mut Cx<'_>, news: &AckNews, space: Space) {
        let limited_transmit = self.config.limited_transmit;
        let Some(dup) = self.loss.weigh_duplicate(cx.now, news, space, limited_transmit) else { return };
        let view = send_view(&self.sending, &self.path, &self.loss);
        let asks = self.senders.on_dup_ack(&dup, &view).is_some();
        if asks && self.loss.grant(space) {
            self.enter_fast(cx, news.before, LostBy::Agent);
        }
    }

    /// Looks for lost segments and repairs them. Returns whether there are new losses.
    pub(super) fn detect(&mut self, cx: &mut Cx<'_>, before: Before) -> bool {
        let space = self.space();
        let (by, found) = self.loss.detect(cx, space, &self.path, &mut self.timers);
        if found && !self.is_only_probe_lost(cx.now) && self.loss.recovery.phase == Phase::Open {
            self.enter_fast(cx, before, by);
        }
        found
    }

    /// Returns whether only an MTU probe is lost: a sign of the path's size, not of congestion.
    fn is_only_probe_lost(&mut self, now: Instant) -> bool {
        let Some(probe) = self.mtu.probe else { return false };
        let board = &self.loss.board;
        let lost = board.lost();
        let Some(index) = board.next_lost(self.sending.una) else { return false };
        if board.get(index).seq != probe.seq {
            return false;
        }
        self.mtu.probe_lost();
        self.arm_mtu_probe(now);
        lost.segments == 1
    }

    #[cold]
    fn enter_fast(&mut self, cx: &mut Cx<'_>, before: Before, by: LostBy) {
        self.ask_for_reduction(cx, LossKind::Fast, before.outstanding);
        let space = self.space();
        self.loss.begin_fast(before, self.config.recovery, space);
        // If a timer found the loss, no ACK sets the window. The window of an earlier recovery must neither hold back
        // the first retransmission nor let a burst leave.
        self.loss.regauge(0, Safety::Doubtful, space);
        self.loss.forget_timed();
        self.timers.disarm(Timer::TailProbe);
        self.arm_retransmit(cx.now);
        self.stats.fast_retransmits += 1;
        cx.trace(TraceKind::RecoveryBegan {
            by,
            ssthresh: in_32_bits(self.loss.recovery.ssthresh),
            flight: in_32_bits(before.pipe.bytes),
            point: self.loss.recovery.point,
        });
    }

    /// Ends recovery: everything arrived, or nothing had been lost.
    #[cold]
    pub(super) fn end_recovery(&mut self, cx: &mut Cx<'_>, end: Recovered) {
        let was = self.loss.end(end, self.sending.nxt);
        if end == Recovered::Undone {
            self.stats.undone += 1;
            if self.mtu.acquit() {
                self.path_mtu_changed(cx, MtuHow::Undone);
            }
        } else {
            self.mtu.settle();
        }
        // After a timeout the window grows on from slow start, so agents have nothing to restore.
        if was == Phase::Fast || end == Recovered::Undone {
            let view = send_view(&self.sending, &self.path, &self.loss);
            self.senders.on_recovered(end, &view);
        }
        if was != Phase::Open {
            cx.trace(TraceKind::RecoveryEnded);
        }
    }

    pub(super) fn path_mtu_changed(&mut self, cx: &mut Cx<'_>, how: MtuHow) {
        self.sending.mss = self.opening.full_payload(&self.mtu, &self.config);
        cx.trace(TraceKind::PathMtu { bytes: self.mtu.size(), how });
        if self.mtu.is_below_link() {
            self.arm_mtu_probe(cx.now);
        }
    }

    pub(super) fn arm_mtu_probe(&mut self, now: Instant) {
        self.timers.arm(Timer::MtuProbe, now + self.mtu.retry_after());
    }
}
