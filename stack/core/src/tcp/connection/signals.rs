//! Signals reach a connection besides segments and the calls of its program. A timer runs out, ICMP reports an error
//! (RFC 5927), or routing freezes a connection or says what has arrived (`elfn`, TCP-pgy).
//!
//! A deadline may come early, late or twice; what is not due does nothing. Nothing that is heard of the path ends an
//! established connection, or moves `snd_una`.

use std::time::Duration;

use super::acks::{AckNews, micros};
use super::ends::End;
use super::receiving::Around;
use super::sending::Sending;
use super::{CloseReason, Connection, hops};
use crate::agent::{LossKind, Path, PathEvent, PathReaction};
use crate::tcp::cx::Cx;
use crate::tcp::recovery::Phase;
use crate::tcp::timers::{Timer, Timers};
use crate::trace::{DropReason, MtuHow, StateName, TraceKind};
use crate::wire::IcmpKind;
use crate::{Instant, Moment, Seq};

/// Probes of a closed window are never further apart than this (RFC 9293 §3.8.6.1 lets them back off).
const PERSIST_MOST: Duration = Duration::from_secs(60);
/// With an RTO of 200 ms this takes a quarter of an hour.
const MOST_PROBES_OF_NOBODY: u8 = 23;
/// Whatever the application asks for, asking more often would be a flood, and without a pause never end.
const SHORTEST_KEEP_ALIVE: Duration = Duration::from_millis(10);
/// After this long without an event the buffers give their memory back.
pub(super) const RELAX_AFTER: Duration = Duration::from_secs(1);
/// Faster probing than this would be a flood.
const SHORTEST_PROBE: Duration = Duration::from_millis(10);

/// Retransmissions after which the application and the path are told (RFC 9293 §3.8.3, R1).
const R1: u32 = 3;

/// A timer runs out.
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
                self.feedback().detect(cx, before);
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
                cx.trace(TraceKind::Timeout { nth, rto_us: micros(self.rto()) });
                self.note_struggle(nth);
                self.loss.back_off_syn();
                self.urges.set_syn(true);
                self.arm_retransmit(cx.now);
            }
            _ if !self.loss.board().is_empty() => self.on_retransmission_timeout(cx),
            _ => {}
        }
    }

    /// RFC 6298 §5.4 to 5.6: send the first unacknowledged segment again, and wait twice as long.
    #[cold]
    fn on_retransmission_timeout(&mut self, cx: &mut Cx<'_>) {
        let rto = self.rto();
        let nth = self.loss.count_timeout();
        self.stats.timeouts += 1;
        cx.trace(TraceKind::Timeout { nth, rto_us: micros(rto) });
        self.note_struggle(nth);
        self.suspect_mtu(cx, nth);
        let may_use_frto = self.config.undo && !self.opening.agreed().timestamps;
        self.loss.lose_all(nth, self.sending.nxt(), may_use_frto);
        self.timers.disarm(Timer::TailProbe);
        self.timers.disarm(Timer::Reorder);
        let outstanding = self.loss.before().outstanding;
        self.feedback().ask_for_reduction(cx, LossKind::Timeout { nth }, outstanding);
        self.loss.back_off();
        self.lower_highest_ack();
        self.arm_retransmit(cx.now);
    }

    fn note_struggle(&mut self, nth: u32) {
        if nth == R1 && self.options().report_errors {
            self.events.struggling = true;
        }
    }

    fn on_tail_probe_due(&mut self, now: Instant) {
        let recovery = self.loss.recovery();
        let is_due = recovery.phase == Phase::Open && recovery.tail_probe.is_none();
        if is_due && !self.loss.board().is_empty() {
            self.urges.set_tail_probe(true);
            self.arm_retransmit(now);
        }
    }

    /// The window is closed and data waits (RFC 9293 §3.8.6.1): probes ask for room at growing intervals, as long as
    /// the peer answers (MUST-36, MUST-37). Once the application has left, their number is bounded. A peer could
    /// otherwise keep as many connections as it likes (RFC 6429 §3).
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
        let patience = self.patience();
        wait_for_ack(now, patience, &mut self.sending, &mut self.timers);
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
    fn suspect_mtu(&mut self, cx: &mut Cx<'_>, nth: u32) {
        let Some(front) = self.loss.board().front() else { return };
        let size = self.opening.packet_of(front.payload_len());
        // Outside a window that shrank it was refused, whatever the path carries: then it was answered.
        let was_answered = self.sending.last_sent_at() < self.receiving.last_arrival();
        let was_refused = self.sending.window() < front.payload_len() && was_answered;
        if !was_refused && self.mtu.on_timeout_of(size, nth) {
            self.feedback().path_mtu_changed(cx, MtuHow::BlackHole);
        }
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

/// The path is heard of.
impl Connection {
    /// An ICMP error quotes a segment of ours. It is advice, when the quoted number is one in flight (RFC 5927
    /// §4.1): a blind attacker has to guess it.
    pub(crate) fn handle_icmp(
        &mut self,
        cx: &mut Cx<'_>,
        kind: IcmpKind,
        quoted: Seq,
        lowered_mtu: Option<u16>,
    ) {
        let is_in_flight = self.sending.una() <= quoted && quoted < self.sending.max();
        if !is_in_flight || self.state == StateName::Closed {
            cx.dropped(DropReason::IcmpUnverified);
            return;
        }
        match kind {
            IcmpKind::PacketTooBig { .. } => self.lower_mtu(cx, lowered_mtu),
            // Source quench says nothing that loss does not (RFC 6633, MUST-55).
            IcmpKind::SourceQuench => {}
            IcmpKind::Unreachable { code } => {
                cx.trace(TraceKind::IcmpError { kind: 3, code });
                let is_hard =
                    self.opening.remote().is_ipv4() && matches!(code, 2 | 3) || self.is_v6_port(code);
                self.note_icmp(cx, (3, code), is_hard);
            }
            IcmpKind::TimeExceeded { code } => {
                cx.trace(TraceKind::IcmpError { kind: 11, code });
                self.note_icmp(cx, (11, code), false);
            }
            IcmpKind::ParameterProblem { code, .. } => {
                cx.trace(TraceKind::IcmpError { kind: 12, code });
                self.note_icmp(cx, (12, code), false);
            }
        }
    }

    /// Nobody answers for the next hop's address. Only our own link can say so, and so it is believed where an attempt
    /// to open is still waiting (RFC 5461 §4.1).
    pub(crate) fn handle_undelivered(&mut self, cx: &mut Cx<'_>) {
        const HOST_UNREACHABLE: (u8, u8) = (3, 1);
        let (kind, code) = HOST_UNREACHABLE;
        cx.trace(TraceKind::IcmpError { kind, code });
        self.note_icmp(cx, HOST_UNREACHABLE, true);
    }

    fn is_v6_port(&self, code: u8) -> bool {
        self.opening.remote().is_ipv6() && code == 4
    }

    /// "No such protocol or port" ends an attempt to open (SHLD-26); everything else is passed on as a soft error
    /// (MUST-56, RFC 5461).
    fn note_icmp(&mut self, cx: &mut Cx<'_>, error: (u8, u8), is_hard: bool) {
        if is_hard && self.state == StateName::SynSent {
            self.finish(cx, CloseReason::Unreachable);
        } else if self.options().report_errors {
            self.events.icmp = Some(error);
        }
    }

    /// What is too large is sent again in smaller pieces at once, and cwnd is left alone (RFC 1191 §6.5).
    fn lower_mtu(&mut self, cx: &mut Cx<'_>, lowered: Option<u16>) {
        let Some(size) = lowered.filter(|size| *size >= smallest_mtu(self.opening.remote())) else {
            cx.dropped(DropReason::IcmpUnverified);
            return;
        };
        if self.mtu.on_icmp(size) {
            self.feedback().path_mtu_changed(cx, MtuHow::Icmp);
            // A router has dropped everything larger than it carries, even what we do not make smaller.
            self.loss.lose_larger(self.opening.carried_by(self.mtu.told()).min(self.sending.mss()));
        }
    }

    pub(crate) fn path_mtu(&self) -> u16 {
        self.mtu.told()
    }

    /// `rcv_nxt`, if in-order data came within the last `window`.
    pub(crate) fn received_since(&self, now: Instant, window: Duration) -> Option<Seq> {
        let is_recent = self.receiving.last_arrival().get().is_some_and(|at| now.since(at) <= window);
        (is_recent && self.stats.bytes_received > 0).then_some(self.receiving.nxt())
    }

    /// Routing speaks.
    pub(crate) fn handle_path(&mut self, cx: &mut Cx<'_>, event: &PathEvent, path: &Path) {
        if hops::route(cx, path, &mut self.path) == hops::Known::Nothing {
            self.receiving.forget_hop_limit(); // The next segment tells.
        }
        self.path.link_bps = path.link_bps;
        if !self.state.is_synchronized() {
            return;
        }
        let view = super::send_view(&self.sending, &self.path, &self.loss);
        for reaction in self.senders.on_path(event, &view) {
            match reaction {
                PathReaction::None => {}
                PathReaction::Freeze { probe_every } => self.freeze(cx, probe_every),
                PathReaction::RaiseHighestAck(seq) => self.raise_highest_ack(cx, seq),
            }
        }
        if *event == PathEvent::RouteFound && self.timers.is_armed(Timer::Frozen) {
            self.urges.set_frozen_probe(true);
        }
    }

    fn freeze(&mut self, cx: &mut Cx<'_>, probe_every: Duration) {
        if self.loss.board().is_empty() {
            return; // Nothing is under way that a timeout could punish.
        }
        if !self.timers.is_armed(Timer::Frozen) {
            cx.trace(TraceKind::Frozen);
        }
        for timer in [Timer::Retransmit, Timer::TailProbe, Timer::Reorder, Timer::Persist] {
            self.timers.disarm(timer);
        }
        self.urges.set_probe_every(micros(probe_every.max(SHORTEST_PROBE)));
        self.timers.arm(Timer::Frozen, cx.now + self.urges.probe_every());
    }

    fn on_frozen_timer(&mut self, now: Instant) {
        self.urges.set_frozen_probe(true);
        self.timers.arm(Timer::Frozen, now + self.urges.probe_every());
    }

    /// Any acceptable ACK shows that the path is back; the RTO is what it was.
    pub(super) fn thaw_on(&mut self, cx: &mut Cx<'_>, news: &AckNews) {
        if !self.timers.is_armed(Timer::Frozen) || (news.advanced == 0 && !news.is_dup) {
            return;
        }
        self.timers.disarm(Timer::Frozen);
        self.urges.set_frozen_probe(false);
        cx.trace(TraceKind::Thawed);
        if !self.loss.board().is_empty() && !self.ladder().has_probe_out() {
            self.arm_retransmit(cx.now);
        }
    }

    /// Believed only within what is in flight; nothing is sampled and nothing grows by it.
    fn raise_highest_ack(&mut self, cx: &mut Cx<'_>, seq: Seq) {
        if self.sending.raise_highest_ack(seq) {
            self.urges.forget_timeouts_above();
            cx.trace(TraceKind::HighestAckRaised { to: seq });
        }
    }

    /// After a timeout: once, something above or the last segment below asks; if that stays unanswered the raised
    /// number is given up, else a lost last ACK would leave both sides waiting for ever.
    fn lower_highest_ack(&mut self) {
        let highest_ack = self.sending.highest_ack();
        if highest_ack <= self.sending.una() {
            return;
        }
        let has_lost_above = self.loss.board().next_lost(highest_ack).is_some();
        if self.urges.doubts_highest_ack(has_lost_above) {
            self.sending.lower_highest_ack();
        }
    }
}

fn smallest_mtu(remote: &End) -> u16 {
    if remote.is_ipv4() { 68 } else { 1280 }
}

/// From now on, unless something is waited for already.
pub(super) fn wait_for_ack(now: Instant, patience: Duration, sending: &mut Sending, timers: &mut Timers) {
    if sending.waiting_since() == Moment::NEVER {
        sending.wait_from(now);
        timers.arm(Timer::UserTimeout, now + patience);
    }
}
