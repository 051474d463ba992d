//! What the peer acknowledges: it moves `snd_una`, measures the path, feeds loss detection, and is told to the
//! sender agents.

use std::time::Duration;

use super::hops;
use super::ingress::{Arrived, Disposition, Step};
use super::sending::WindowNews;
use super::{CloseReason, Connection};
use crate::agent::{Acked, Count, Recovered};
use crate::tcp::cx::Cx;
use crate::tcp::scoreboard::Delivered;
use crate::tcp::timers::Timer;
use crate::trace::{MtuHow, StateName, TraceKind};
use crate::wire::{Flags, HopwiseOption, TcpView};
use crate::{Instant, Seq};

/// One ACK, digested: what loss detection and the agents are told.
#[derive(Clone, Copy, Debug)]
pub(super) struct AckNews {
    /// Sequence space that is newly acknowledged cumulatively.
    pub(super) advanced: u32,
    pub(super) delivered: Delivered,
    pub(super) before: Before,
    /// RFC 5681 §2: says nothing new but that something else arrived.
    pub(super) is_dup: bool,
    /// It carries neither data nor SYN or FIN.
    pub(super) says_only_ack: bool,
    /// What the peer says came twice (RFC 2883).
    pub(super) dsack: Option<(Seq, Seq)>,
    pub(super) ece: bool,
    /// Our timestamp that came back.
    pub(super) echo: Option<u32>,
    pub(super) dup_count: Option<u8>,
    pub(super) rtt: Option<Duration>,
}

/// What was under way before an event.
#[derive(Clone, Copy, Debug)]
pub(super) struct Before {
    /// RFC 6675's pipe.
    pub(super) pipe: Count,
    /// RFC 5681's FlightSize: all that was sent and not cumulatively acknowledged.
    pub(super) outstanding: Count,
}

impl Connection {
    /// Fifth, continued: digests an acceptable ACK.
    pub(super) fn take_ack(&mut self, cx: &mut Cx<'_>, arrived: &Arrived<'_>) -> Step {
        let segment = arrived.segment;
        hops::count(cx, arrived, &self.config, &mut self.receiving, &mut self.path);
        if self.sending.is_beyond_window() {
            // A probe, or what a shrinking window left outside: a peer that answers may keep its window closed for
            // ever (RFC 9293 MUST-37, SHLD-17). What is sent next waits for an answer again.
            self.sending.stop_waiting();
        }
        let window = self.take_window(cx, segment);
        if self.has_no_news(segment) {
            return Step::Next;
        }
        let news = self.digest(cx, segment, window);
        if self.sending.window() == 0 {
            // Whoever says that its window is closed is there: the wait begins anew (MUST-37, SHLD-17).
            self.sending.stop_waiting();
        }
        self.thaw_on(cx, &news);
        let ended = self.judge(cx, &news);
        self.tell_senders(cx, &news, ended);
        self.restart_timers(cx, &news);
        self.step_state(cx)
    }

    /// The newest segment tells the window, unless its field carries the peer's cwnd.
    pub(super) fn take_window(&mut self, cx: &Cx<'_>, segment: &TcpView<'_>) -> WindowNews {
        let agreed = self.opening.agreed();
        if agreed.use_in_window() && !segment.payload.is_empty() {
            self.receiving.take_peer_cwnd(segment.window);
            self.sending.keep_edge(segment.ack);
            return WindowNews::Same;
        }
        let news = self.sending.take_window(segment, agreed);
        if news == WindowNews::Wider {
            self.window_opened(cx.now);
        }
        news
    }

    /// A probe byte that the peer refused goes out again with what follows it, not alone.
    fn window_opened(&mut self, now: Instant) {
        self.timers.disarm(Timer::Persist);
        let has_probe_out = self.ladder().has_probe_out();
        self.urges.forget_window_probes();
        self.urges.window_probe_left();
        if has_probe_out {
            self.sending.take_back(now, self.loss.unbook_window_probe());
            self.timers.disarm(Timer::Retransmit);
        }
    }

    /// Whoever only receives has nothing under way that an ACK could speak of.
    fn has_no_news(&self, segment: &TcpView<'_>) -> bool {
        self.is_at_rest()
            && segment.ack == self.sending.una()
            && segment.options.sack.is_empty()
            && !segment.flags.contains(Flags::ECE)
    }

    fn digest(&mut self, cx: &mut Cx<'_>, segment: &TcpView<'_>, window: WindowNews) -> AckNews {
        let before = self.loss.before();
        let advanced = segment.ack.bytes_since(self.sending.una());
        let (delivered, dsack) = self.loss.take_report(segment, self.space());
        self.stats.dsacks += u32::from(dsack.is_some());
        if advanced > 0 {
            self.advance_una(cx, segment.ack);
        }
        let says_only_ack = segment.payload.is_empty() && !segment.flags.intersects(Flags::SYN | Flags::FIN);
        let is_repeat = segment.ack == self.sending.una() && says_only_ack && window == WindowNews::Same;
        let is_dup = advanced == 0
            && !self.loss.board().is_empty()
            && if self.opening.agreed().sack { delivered.sacked.bytes > 0 } else { is_repeat };
        self.progress.on_acked(cx.now, self.sending.una(), self.sending.nxt(), self.arrived_bytes());
        let echo = segment.options.timestamps.filter(|_| self.opening.agreed().timestamps).map(|ts| ts.echo);
        let dup_count = match segment.options.hopwise {
            Some(HopwiseOption::Notes(notes)) if self.opening.agreed().use_dup_count() => notes.dup_count,
            _ => None,
        };
        let age = echo.map(|echo| self.opening.ts_now(cx.now).wrapping_sub(echo));
        let is_one_timed = self.uses_one_timed();
        let rtt = self.loss.take_samples(cx, &delivered, (segment.ack, age), is_one_timed, &mut self.path);
        if self.mtu.on_acked(self.sending.una()) {
            self.update_mss();
            cx.trace(TraceKind::PathMtu { bytes: self.mtu.size(), how: MtuHow::Probe });
        }
        // On a SYN it says what the peer can do, not that something was marked (RFC 3168 §6.1.1).
        let ece = self.opening.sends_ect()
            && segment.flags.contains(Flags::ECE)
            && !segment.flags.contains(Flags::SYN);
        AckNews { advanced, delivered, before, is_dup, says_only_ack, dsack, ece, echo, dup_count, rtt }
    }

    /// All that the peer is known to have of our payload.
    pub(super) fn arrived_bytes(&self) -> u64 {
        self.stats.bytes_acked + self.loss.board().sacked().bytes
    }

    fn advance_una(&mut self, cx: &Cx<'_>, ack: Seq) {
        self.stats.bytes_acked += u64::from(self.sending.acknowledge(ack));
        if self.sending.catch_up() {
            self.loss.clear_board();
        }
        self.loss.passed(ack);
        self.urges.forget_timeouts_above();
        self.urges.ask_nothing_below();
        self.urges.forget_window_probes();
        if !self.sending.is_idle() {
            self.wait_for_ack(cx.now);
        }
        self.tell_of_room();
    }

    /// The handshake measures the path too, for the receiver as well, unless a SYN was sent twice (Karn).
    #[cold]
    pub(super) fn sample_handshake(&mut self, cx: &mut Cx<'_>, segment: &TcpView<'_>) {
        let echo = segment.options.timestamps.filter(|_| self.opening.agreed().timestamps).map(|ts| ts.echo);
        let echoed = echo.and_then(|echo| self.echoed_rtt(cx.now, echo));
        let sample = match (self.sending.last_sent_at().get(), self.opening.syns_sent()) {
            (Some(sent_at), 1) => Some(cx.now.since(sent_at)),
            (_, 0) => None, // Under a SYN cookie nothing of the SYN-ACK is known.
            _ => echoed,
        };
        let Some(sample) = sample else { return };
        if self.uses_one_timed() {
            // The timer counts timed data alone. What the path takes is known all the same.
            self.path.rtt.min = [self.path.rtt.min, Some(sample)].into_iter().flatten().min();
        } else {
            self.loss.take_rtt(cx, sample, None, &mut self.path);
        }
    }

    /// In whole milliseconds, rounded up: the clock has ticked at most once more than it shows.
    pub(super) fn echoed_rtt(&self, now: Instant, echo: u32) -> Option<Duration> {
        let ticks = self.opening.ts_now(now).wrapping_sub(echo);
        let rtt = Duration::from_millis(u64::from(ticks) + 1);
        (echo != 0 && rtt < MOST_BELIEVABLE).then_some(rtt)
    }

    fn tell_senders(&mut self, cx: &mut Cx<'_>, news: &AckNews, ended: Option<Recovered>) {
        let view = super::send_view(&self.sending, &self.path, &self.loss);
        if news.advanced > 0 || news.delivered.sacked.bytes > 0 {
            let acked = Acked {
                now: cx.now,
                newly: news.delivered.acked,
                sacked: news.delivered.sacked,
                rtt: news.rtt,
                ece: news.ece,
                flight_before: news.before.pipe,
            };
            self.senders.on_acked(&acked, &view);
        }
        if let Some(end) = ended {
            self.end_recovery(cx, end);
        }
    }

    /// RFC 6298 §5.3: what is newly acknowledged restarts the timer; with nothing in flight there is none.
    fn restart_timers(&mut self, cx: &Cx<'_>, news: &AckNews) {
        if self.loss.board().is_empty() {
            if self.sending.is_opened() {
                self.timers.disarm(Timer::Retransmit);
                self.timers.disarm(Timer::TailProbe);
                self.timers.disarm(Timer::Reorder);
                self.timers.disarm(Timer::UserTimeout);
            }
        } else if news.advanced > 0 {
            if self.loss.ack_restarts_timer(self.opening.agreed().sack) {
                self.arm_retransmit(cx.now);
            }
            self.arm_tail_probe(cx.now);
        }
    }

    /// The states that end when our FIN is acknowledged.
    fn step_state(&mut self, cx: &mut Cx<'_>) -> Step {
        let is_fin_acked = self.sending.is_fin_sent()
            && self.sending.una() == self.sending.nxt()
            && self.loss.board().is_empty();
        if !is_fin_acked {
            return Step::Next;
        }
        match self.state {
            StateName::FinWait1 => {
                self.enter(cx, StateName::FinWait2);
                if self.receiving.is_deaf() {
                    self.timers.arm(Timer::Linger, cx.now + self.config.fin_wait_2);
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

/// An echoed timestamp older than this is a peer's error, or an attack on our RTO.
const MOST_BELIEVABLE: Duration = Duration::from_secs(300);

pub(super) fn micros(duration: Duration) -> u32 {
    u32::try_from(duration.as_micros()).unwrap_or(u32::MAX)
}
