//! Signals that reach a connection, apart from segments and calls of the program. A timer runs out, ICMP reports an
//! error (RFC 5927), or routing freezes a connection or reports an arrival (`elfn`, TCP-pgy).
//!
//! A deadline may come early, late or twice; a timer that is not due does nothing. News of the path never ends an
//! established connection, and never moves `snd_una`.

use std::sync::Arc;
use std::time::Duration;

use super::acks::AckNews;
use super::ends::End;
use super::{CloseReason, Connection, Outbound, hops};
use crate::agent::{Count, LossKind, Path, PathEvent, PathReaction};
use crate::tcp::cx::Cx;
use crate::tcp::recovery::Phase;
use crate::tcp::timers::Timer;
use crate::time::micros_u32;
use crate::trace::{DropReason, MtuHow, StateName, TraceKind};
use crate::wire::IcmpKind;
use crate::{Instant, LinkFacts, Seq};

/// The longest interval of probes of a closed window (RFC 9293 §3.8.6.1 lets them back off).
const PERSIST_MOST: Duration = Duration::from_secs(60);
/// The most probes once the application has left: a quarter of an hour with an RTO of 200 ms.
const MOST_PROBES_OF_NOBODY: u8 = 23;
/// The shortest interval, whatever the application sets. Faster probes would be a flood, and without a pause they would
/// never end.
const SHORTEST_KEEP_ALIVE: Duration = Duration::from_millis(10);
/// The time without an event after which the buffers free memory.
pub(super) const RELAX_AFTER: Duration = Duration::from_secs(1);
/// Faster probing than this would be a flood.
const SHORTEST_PROBE: Duration = Duration::from_millis(10);

/// The number of retransmissions after which application and path get a report (RFC 9293 §3.8.3, R1).
const R1: u32 = 3;

/// Timers that run out.
impl Connection {
    /// Returns whether something was due.
    pub(crate) fn handle_timeout(&mut self, cx: &mut Cx<'_>) -> bool {
        let mut was_due = self.receiving.ledger.due <= cx.now;
        if was_due {
            self.receiving.on_deadline(cx, self.out.around());
        }
        while let Some(timer) = self.out.timers.expired(cx.now) {
            self.out.timers.disarm(timer);
            self.on_timer(cx, timer);
            was_due = true;
        }
        self.check();
        was_due
    }

    fn on_timer(&mut self, cx: &mut Cx<'_>, timer: Timer) {
        match timer {
            Timer::Retransmit => self.on_retransmit_timer(cx),
            Timer::TailProbe => self.on_tail_probe_due(cx.now),
            Timer::Reorder => {
                let before = self.out.loss.before();
                self.out.detect(cx, before);
            }
            Timer::Persist => self.on_persist_timer(cx),
            Timer::Pace => {} // It only wakes the sender, which then checks what may leave.
            Timer::KeepAlive => self.on_keep_alive_timer(cx),
            Timer::UserTimeout => self.on_user_timeout(cx),
            Timer::Linger => self.finish(cx, CloseReason::Finished),
            Timer::Frozen => self.on_frozen_timer(cx.now),
            Timer::MtuProbe => self.out.mtu.retry(),
            Timer::Relax => self.relax(cx.now),
        }
    }

    fn on_retransmit_timer(&mut self, cx: &mut Cx<'_>) {
        match self.out.state {
            StateName::SynSent | StateName::SynReceived => {
                self.count_timeout(cx);
                // On an unknown path no agent may repeat a SYN faster (RFC 6298 §5.5).
                self.out.loss.rtt.on_timeout();
                self.out.urges.syn = true;
                self.out.arm_retransmit(cx.now);
            }
            _ if self.may_go_on() => self.go_on(cx),
            _ if !self.out.loss.board.is_empty() => self.on_retransmission_timeout(cx),
            _ => {}
        }
    }

    /// RFC 6298 §5.4 to 5.6: retransmits the first unacknowledged segment and doubles the wait.
    #[cold]
    fn on_retransmission_timeout(&mut self, cx: &mut Cx<'_>) {
        let nth = self.count_timeout(cx);
        self.suspect_mtu(cx, nth);
        let may_use_frto = self.out.config.undo && !self.out.opening.agreed.timestamps;
        self.take_all_as_lost(nth, may_use_frto);
        let outstanding = self.out.loss.before().outstanding;
        self.out.ask_for_reduction(cx, LossKind::Timeout { nth }, outstanding);
        self.out.loss.back_off();
        self.lower_highest_ack();
        self.out.arm_retransmit(cx.now);
    }

    /// Returns whether an agent takes all data as acknowledged, and a full segment of new data could leave.
    fn may_go_on(&self) -> bool {
        let Outbound { sending, urges, .. } = &self.out;
        urges.takes_as_acknowledged
            && sending.una < sending.highest_ack
            && sending.highest_ack == sending.nxt
            && self.out.state.may_send_data()
            && !sending.fin_sent
            && sending.unsent().min(sending.wnd) >= sending.mss
    }

    /// Goes on with new data from one segment. No segment goes again, and neither RTO nor ssthresh changes.
    #[cold]
    fn go_on(&mut self, cx: &mut Cx<'_>) {
        let nth = self.count_timeout(cx);
        // Lost data needs no room in flight, and does not go again below highest_ack.
        self.take_all_as_lost(nth, false);
        self.out.urges.ask_nothing_below();
        self.out.sending.count_window_from_highest_ack();
        self.out.ask_for_reduction(cx, LossKind::Timeout { nth }, Count::default());
        self.out.arm_retransmit(cx.now);
    }

    /// Returns the number of timeouts in a row, this one included.
    fn count_timeout(&mut self, cx: &mut Cx<'_>) -> u32 {
        self.out.loss.recovery.timeouts += 1;
        let nth = self.out.loss.recovery.timeouts;
        self.out.stats.timeouts += 1;
        cx.trace(TraceKind::Timeout { nth, rto_us: micros_u32(self.out.rto()) });
        self.note_struggle(nth);
        nth
    }

    fn take_all_as_lost(&mut self, nth: u32, may_use_frto: bool) {
        self.out.loss.lose_all(nth, self.out.sending.nxt, may_use_frto);
        self.out.timers.disarm(Timer::TailProbe);
        self.out.timers.disarm(Timer::Reorder);
    }

    fn note_struggle(&mut self, nth: u32) {
        if nth == R1 && self.options().report_errors {
            self.events.struggling = true;
        }
    }

    fn on_tail_probe_due(&mut self, now: Instant) {
        let recovery = &self.out.loss.recovery;
        let is_due = recovery.phase == Phase::Open && recovery.tail_probe.is_none();
        if is_due && !self.out.loss.board.is_empty() {
            self.out.urges.tail_probe = true;
            self.out.arm_retransmit(now);
        }
    }

    /// Probes a closed window while data waits (RFC 9293 §3.8.6.1), at growing intervals, as long as the peer answers
    /// (MUST-36, MUST-37). Once the application has left, the number of probes is bounded. Otherwise a peer could keep
    /// any number of connections alive (RFC 6429 §3).
    fn on_persist_timer(&mut self, cx: &mut Cx<'_>) {
        if !self.out.is_blocked_by_window() {
            return;
        }
        if self.receiving.is_deaf && self.out.urges.window_probes_sent >= MOST_PROBES_OF_NOBODY {
            self.give_up(cx);
            return;
        }
        self.out.urges.probe_window();
        self.arm_persist(cx.now);
    }

    /// Waits one RTO at first (SHLD-29), then twice as long each time (SHLD-30).
    #[cold]
    pub(super) fn arm_persist(&mut self, now: Instant) {
        let doublings = u32::from(self.out.urges.window_probes_sent.min(10));
        let wait = (self.out.loss.rtt.base_rto() * (1 << doublings)).min(PERSIST_MOST);
        self.out.timers.arm(Timer::Persist, now + wait);
    }

    /// The peer lives: keep-alives start again.
    pub(super) fn note_alive(&mut self, cx: &Cx<'_>) {
        let Some(keep_alive) = self.keep_alive() else { return };
        self.out.urges.keep_alives_sent = 0;
        if self.out.state == StateName::Established || self.out.state == StateName::CloseWait {
            self.arm_keep_alive(cx.now, keep_alive.idle);
        }
    }

    fn on_keep_alive_timer(&mut self, cx: &mut Cx<'_>) {
        let Some(keep_alive) = self.keep_alive() else { return };
        if !matches!(self.out.state, StateName::Established | StateName::CloseWait) {
            return;
        }
        if !self.out.loss.board.is_empty() || self.out.sending.unsent() > 0 {
            // Data in flight tests the peer as well (MUST-26: only when idle).
            self.arm_keep_alive(cx.now, keep_alive.idle);
            return;
        }
        if self.out.urges.keep_alives_sent >= keep_alive.probes {
            self.give_up(cx);
            return;
        }
        self.out.urges.send_keep_alive();
        self.arm_keep_alive(cx.now, keep_alive.interval);
    }

    pub(super) fn arm_keep_alive(&mut self, now: Instant, wait: Duration) {
        self.out.timers.arm(Timer::KeepAlive, now + wait.max(SHORTEST_KEEP_ALIVE));
    }

    /// R2 of RFC 9293 §3.8.3: an acknowledgment is overdue for too long.
    fn on_user_timeout(&mut self, cx: &mut Cx<'_>) {
        let Some(since) = self.out.sending.waiting_since.get() else { return };
        let due = since + self.out.patience();
        if due <= cx.now {
            self.give_up(cx);
        } else {
            self.out.timers.arm(Timer::UserTimeout, due);
        }
    }

    fn give_up(&mut self, cx: &mut Cx<'_>) {
        self.out.urges.rst = self.out.state.is_synchronized();
        self.finish(cx, CloseReason::TimedOut);
    }

    /// Suspects that a segment lost several times is too large for a path that reports no error.
    fn suspect_mtu(&mut self, cx: &mut Cx<'_>, nth: u32) {
        let Some(front) = self.out.loss.board.front() else { return };
        let size = self.out.opening.packet_of(front.payload_len());
        // Data outside a window that shrank was refused, whatever the path carries; the peer then answered.
        let was_answered = self.out.sending.last_sent_at < self.receiving.last_arrival;
        let was_refused = self.out.sending.wnd < front.payload_len() && was_answered;
        if !was_refused && self.out.mtu.on_timeout_of(size, nth) {
            self.out.path_mtu_changed(cx, MtuHow::BlackHole);
        }
    }

    fn relax(&mut self, now: Instant) {
        let quiet_since = self.out.sending.last_sent_at.max(self.receiving.last_arrival);
        if let Some(since) = quiet_since.get()
            && now.since(since) < RELAX_AFTER
        {
            self.out.timers.arm(Timer::Relax, since + RELAX_AFTER);
            return;
        }
        self.out.sending.buffer.relax();
        self.receiving.relax();
        self.out.loss.relax();
    }
}

/// News of the path.
impl Connection {
    /// Takes an ICMP error that quotes a segment of ours. It counts as advice if the quoted number is in flight (RFC
    /// 5927 §4.1), which a blind attacker has to guess.
    pub(crate) fn handle_icmp(
        &mut self,
        cx: &mut Cx<'_>,
        kind: IcmpKind,
        quoted: Seq,
        lowered_mtu: Option<u16>,
    ) {
        let is_in_flight = self.out.sending.una <= quoted && quoted < self.out.sending.max;
        if !is_in_flight || self.out.state == StateName::Closed {
            cx.dropped(DropReason::IcmpUnverified);
            return;
        }
        let error = match kind {
            IcmpKind::PacketTooBig { .. } => return self.lower_mtu(cx, lowered_mtu),
            // Source quench adds nothing to a loss (RFC 6633, MUST-55).
            IcmpKind::SourceQuench => return,
            IcmpKind::Unreachable { code } => (3, code),
            IcmpKind::TimeExceeded { code } => (11, code),
            IcmpKind::ParameterProblem { code, .. } => (12, code),
        };
        let is_v4 = self.out.opening.remote().ip.is_ipv4();
        self.note_icmp(cx, error, matches!((is_v4, error), (true, (3, 2 | 3)) | (false, (3, 4))));
    }

    /// Handles an unanswered address resolution of the next hop. Only our own link can report it, so it ends an attempt
    /// to open (RFC 5461 §4.1).
    pub(crate) fn handle_undelivered(&mut self, cx: &mut Cx<'_>) {
        const HOST_UNREACHABLE: (u8, u8) = (3, 1);
        self.note_icmp(cx, HOST_UNREACHABLE, true);
    }

    /// "No such protocol or port" ends an attempt to open (SHLD-26). All other errors are passed on as soft errors
    /// (MUST-56, RFC 5461).
    fn note_icmp(&mut self, cx: &mut Cx<'_>, error: (u8, u8), is_hard: bool) {
        cx.trace(TraceKind::IcmpError { kind: error.0, code: error.1 });
        if is_hard && self.out.state == StateName::SynSent {
            self.finish(cx, CloseReason::Unreachable);
        } else if self.options().report_errors {
            self.events.icmp = Some(error);
        }
    }

    /// Retransmits larger segments in smaller pieces at once, and leaves cwnd alone (RFC 1191 §6.5).
    fn lower_mtu(&mut self, cx: &mut Cx<'_>, lowered: Option<u16>) {
        let Some(size) = lowered.filter(|size| *size >= smallest_mtu(self.out.opening.remote())) else {
            cx.dropped(DropReason::IcmpUnverified);
            return;
        };
        if self.out.mtu.on_icmp(size) {
            self.out.path_mtu_changed(cx, MtuHow::Icmp);
            // A router has dropped everything larger than it carries, even packets that stay above our floor.
            let carried = self.out.opening.carried_by(self.out.mtu.pmtu).min(self.out.sending.mss);
            self.out.loss.board.mark_larger_lost(carried);
        }
    }

    pub(crate) fn path_mtu(&self) -> u16 {
        self.out.mtu.pmtu
    }

    /// The time of the last arrival, and `rcv_nxt`, if data has come.
    pub(crate) fn received(&self) -> Option<(Instant, Seq)> {
        let last = self.receiving.last_arrival.get()?;
        (self.out.stats.bytes_received > 0).then_some((last, self.receiving.nxt))
    }

    /// Takes an event of routing.
    pub(crate) fn handle_path(&mut self, cx: &mut Cx<'_>, event: &PathEvent, path: &Path) {
        if !hops::route(cx, path, &mut self.out.path) {
            self.receiving.hop_limit = None; // The next segment counts hops anew.
        }
        self.out.path.link_bps = path.link_bps;
        if !self.out.state.is_synchronized() {
            return;
        }
        let view = super::send_view(&self.out.sending, &self.out.path, &self.out.loss);
        for reaction in self.out.senders.on_path(event, &view) {
            match reaction {
                PathReaction::None => {}
                PathReaction::Freeze { probe_every } => self.freeze(cx, probe_every),
                PathReaction::RaiseHighestAck(seq) => self.raise_highest_ack(cx, seq),
                PathReaction::TakeAsAcknowledged(seq) => {
                    self.out.urges.takes_as_acknowledged = true;
                    self.raise_highest_ack(cx, seq);
                }
            }
        }
        if *event == PathEvent::RouteFound && self.out.is_frozen() {
            self.out.urges.frozen_probe = true;
        }
    }

    /// Takes the facts about our own link on the way to the peer.
    pub(crate) fn set_link(&mut self, link: Option<Arc<LinkFacts>>) {
        self.out.path.link = link;
    }

    fn freeze(&mut self, cx: &mut Cx<'_>, probe_every: Duration) {
        if self.out.loss.board.is_empty() {
            return; // Without data in flight, there is no timeout to prevent.
        }
        if !self.out.is_frozen() {
            cx.trace(TraceKind::Frozen);
        }
        for timer in [Timer::Retransmit, Timer::TailProbe, Timer::Reorder, Timer::Persist] {
            self.out.timers.disarm(timer);
        }
        self.out.urges.probe_every_us = micros_u32(probe_every.max(SHORTEST_PROBE));
        self.out.timers.arm(Timer::Frozen, cx.now + self.out.urges.probe_every());
    }

    fn on_frozen_timer(&mut self, now: Instant) {
        self.out.urges.frozen_probe = true;
        self.out.timers.arm(Timer::Frozen, now + self.out.urges.probe_every());
    }

    /// Any acceptable ACK shows that the path is back; the RTO stays as before.
    #[cold]
    pub(super) fn thaw_on(&mut self, cx: &mut Cx<'_>, news: &AckNews) {
        if news.advanced == 0 && !news.is_dup {
            return;
        }
        self.out.timers.disarm(Timer::Frozen);
        self.out.urges.frozen_probe = false;
        cx.trace(TraceKind::Thawed);
        if !self.out.loss.board.is_empty() && !self.out.has_probe_out() {
            self.out.arm_retransmit(cx.now);
        }
    }

    /// Counts only within the data in flight; it gives no sample and no growth.
    fn raise_highest_ack(&mut self, cx: &mut Cx<'_>, seq: Seq) {
        if self.out.sending.raise_highest_ack(seq) {
            self.out.urges.forget_timeouts_above();
            cx.trace(TraceKind::HighestAckRaised { to: seq });
        }
    }

    /// After a first timeout, a segment above the raised number or the last one below goes again. After a second, the
    /// raised number is dropped. Otherwise a lost last ACK would leave both sides waiting for ever.
    fn lower_highest_ack(&mut self) {
        let highest_ack = self.out.sending.highest_ack;
        if highest_ack <= self.out.sending.una {
            return;
        }
        let has_lost_above = self.out.loss.board.next_lost(highest_ack).is_some();
        if self.out.urges.doubts_highest_ack(has_lost_above) {
            self.out.sending.lower_highest_ack();
        }
    }
}

fn smallest_mtu(remote: &End) -> u16 {
    if remote.ip.is_ipv4() { 68 } else { 1280 }
}
