//! A timer runs out. Each deadline may come early, late or twice; what is not due does nothing.

use std::time::Duration;

use super::receiving::Around;
use super::{CloseReason, Connection};
use crate::tcp::cx::Cx;
use crate::tcp::timers::Timer;
use crate::trace::{MtuHow, StateName, TraceKind};
use crate::{Instant, Moment};

/// Probes of a closed window are never further apart than this (RFC 9293 §3.8.6.1 lets them back off).
const PERSIST_MOST: Duration = Duration::from_secs(60);
/// With an RTO of 200 ms this takes a quarter of an hour.
const MOST_PROBES_OF_NOBODY: u8 = 23;
/// Whatever the application asks for, asking more often would be a flood, and without a pause never end.
const SHORTEST_KEEP_ALIVE: Duration = Duration::from_millis(10);
/// After this long without an event the buffers give their memory back.
pub(super) const RELAX_AFTER: Duration = Duration::from_secs(1);

impl Connection {
    pub(crate) fn handle_timeout(&mut self, cx: &mut Cx<'_>) {
        if self.receiving.ledger().deadline() <= cx.now {
            let around = Around::new(&self.opening, &self.path, self.sending.mss());
            self.receiving.on_deadline(cx, around);
        }
        while let Some(timer) = self.timers.expired(cx.now) {
            self.timers.disarm(timer);
            self.on_timer(cx, timer);
        }
        self.check();
    }

    fn on_timer(&mut self, cx: &mut Cx<'_>, timer: Timer) {
        match timer {
            Timer::Retransmit => self.on_retransmit_timer(cx),
            Timer::TailProbe => self.on_tail_probe_due(cx.now),
            Timer::Reorder => {
                let before = self.loss.before();
                self.detect(cx, before);
            }
            Timer::Persist => self.on_persist_timer(cx),
            Timer::Pace => {} // It only wakes the sender: what may leave is asked anew.
            Timer::KeepAlive => self.on_keep_alive_timer(cx),
            Timer::UserTimeout => self.on_user_timeout(cx),
            Timer::Linger => self.finish(cx, CloseReason::Finished),
            Timer::Frozen => self.on_frozen_timer(cx.now),
            Timer::MtuProbe => self.mtu.retry(),
            Timer::Relax => self.relax(cx.now),
        }
    }

    fn on_retransmit_timer(&mut self, cx: &mut Cx<'_>) {
        match self.state {
            StateName::SynSent | StateName::SynReceived => {
                self.stats.timeouts += 1;
                let nth = self.loss.count_timeout();
                cx.trace(TraceKind::Timeout { nth, rto_us: super::acks::micros(self.rto()) });
                self.note_struggle(nth);
                self.loss.back_off_syn();
                self.urges.set_syn(true);
                self.arm_retransmit(cx.now);
            }
            _ if !self.loss.board().is_empty() => self.on_retransmission_timeout(cx),
            _ => {}
        }
    }

    /// RFC 9293 §3.8.6.1: the window is closed and something waits: ask, at growing intervals, for as long as the
    /// peer answers (MUST-36, MUST-37) or, once the application has left, so often at most: nobody else would ever end
    /// it, and a peer could keep as many as it likes (RFC 6429 §3).
    fn on_persist_timer(&mut self, cx: &mut Cx<'_>) {
        if !self.ladder().is_blocked_by_window() {
            return;
        }
        if self.receiving.is_deaf() && self.urges.window_probes_sent() >= MOST_PROBES_OF_NOBODY {
            self.give_up(cx);
            return;
        }
        self.urges.probe_window();
        self.arm_persist(cx.now);
    }

    /// First after an RTO (SHLD-29), then twice as long each time (SHLD-30).
    #[cold]
    pub(super) fn arm_persist(&mut self, now: Instant) {
        let doublings = u32::from(self.urges.window_probes_sent().min(10));
        let wait = (self.loss.rtt().base_rto() * (1 << doublings)).min(PERSIST_MOST);
        self.timers.arm(Timer::Persist, now + wait);
    }

    fn on_keep_alive_timer(&mut self, cx: &mut Cx<'_>) {
        let Some(keep_alive) = self.options().keep_alive else { return };
        if !matches!(self.state, StateName::Established | StateName::CloseWait) {
            return;
        }
        if !self.loss.board().is_empty() || self.sending.unsent() > 0 {
            // Data under way asks the same question (MUST-26: only when idle).
            self.arm_keep_alive(cx.now, keep_alive.idle);
            return;
        }
        if self.urges.keep_alives_sent() >= keep_alive.probes {
            self.give_up(cx);
            return;
        }
        self.urges.send_keep_alive();
        self.arm_keep_alive(cx.now, keep_alive.interval);
    }

    pub(super) fn arm_keep_alive(&mut self, now: Instant, wait: Duration) {
        self.timers.arm(Timer::KeepAlive, now + wait.max(SHORTEST_KEEP_ALIVE));
    }

    /// From now on, unless something is waited for already.
    pub(super) fn wait_for_ack(&mut self, now: Instant) {
        if self.sending.waiting_since() == Moment::NEVER {
            self.sending.wait_from(now);
            self.timers.arm(Timer::UserTimeout, now + self.patience());
        }
    }

    /// R2 of RFC 9293 §3.8.3: nothing that we sent has been acknowledged for too long.
    fn on_user_timeout(&mut self, cx: &mut Cx<'_>) {
        let Some(since) = self.sending.waiting_since().get() else { return };
        let due = since + self.patience();
        if due <= cx.now {
            self.give_up(cx);
        } else {
            self.timers.arm(Timer::UserTimeout, due);
        }
    }

    /// How long to wait for an acknowledgment before giving up; three minutes at least for a SYN (MUST-23).
    pub(super) fn patience(&self) -> Duration {
        if self.state.is_synchronized() { self.options().user_timeout } else { self.config.syn_timeout }
    }

    fn give_up(&mut self, cx: &mut Cx<'_>) {
        self.urges.set_reset(self.state.is_synchronized());
        self.finish(cx, CloseReason::TimedOut);
    }

    /// A segment that keeps vanishing may be too large for a path that does not say so.
    pub(super) fn suspect_mtu(&mut self, cx: &mut Cx<'_>, nth: u32) {
        let Some(front) = self.loss.board().front() else { return };
        let size = self.opening.packet_of(front.payload_len());
        // Outside a window that shrank it was refused, whatever the path carries: then it was answered.
        let was_answered = self.sending.last_sent_at() < self.receiving.last_arrival();
        let was_refused = self.sending.window() < front.payload_len() && was_answered;
        if !was_refused && self.mtu.on_timeout_of(size, nth) {
            self.path_mtu_changed(cx, MtuHow::BlackHole);
        }
    }

    pub(super) fn path_mtu_changed(&mut self, cx: &mut Cx<'_>, how: MtuHow) {
        self.update_mss();
        cx.trace(TraceKind::PathMtu { bytes: self.mtu.size(), how });
        if self.mtu.is_below_link() {
            self.arm_mtu_probe(cx.now);
        }
    }

    pub(super) fn arm_mtu_probe(&mut self, now: Instant) {
        self.timers.arm(Timer::MtuProbe, now + self.mtu.retry_after());
    }

    fn relax(&mut self, now: Instant) {
        let quiet_since = self.sending.last_sent_at().max(self.receiving.last_arrival());
        if let Some(since) = quiet_since.get()
            && now.since(since) < RELAX_AFTER
        {
            self.timers.arm(Timer::Relax, since + RELAX_AFTER);
            return;
        }
        self.sending.relax();
        self.receiving.relax();
        self.loss.relax();
    }
}
