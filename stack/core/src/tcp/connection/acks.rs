//! Handles the peer's ACKs: they move `snd_una`, measure the path, feed loss detection, and go to the sender agents.

use std::time::Duration;

use super::sending::WindowNews;
use super::{Outbound, send_view};
use crate::Seq;
use crate::agent::{Acked, Count, Recovered};
use crate::tcp::cx::Cx;
use crate::tcp::scoreboard::Delivered;
use crate::tcp::timers::Timer;
use crate::trace::{MtuHow, TraceKind};
use crate::wire::{Flags, HopwiseOption, OfferFlags, TcpView};

/// One ACK, digested for loss detection and for the agents.
#[derive(Clone, Copy, Debug)]
pub(super) struct AckNews {
    /// Newly acknowledged sequence space (cumulative).
    pub(super) advanced: u32,
    pub(super) delivered: Delivered,
    pub(super) before: Before,
    /// A duplicate ACK (RFC 5681 §2): its only news is that another segment arrived.
    pub(super) is_dup: bool,
    /// It carries neither data nor SYN or FIN.
    pub(super) says_only_ack: bool,
    /// The range that the peer reports as received twice (RFC 2883).
    pub(super) dsack: Option<(Seq, Seq)>,
    pub(super) ece: bool,
    /// The echo of our timestamp.
    pub(super) echo: Option<u32>,
    pub(super) dup_count: Option<u8>,
    pub(super) rtt: Option<Duration>,
}

impl AckNews {
    /// Returns whether its only news is that data has arrived.
    pub(super) fn shows_arrival_alone(&self) -> bool {
        self.advanced > 0 && self.dsack.is_none() && !self.ece
    }
}

/// The data in flight before an event.
#[derive(Clone, Copy, Debug)]
pub(super) struct Before {
    /// RFC 6675's pipe.
    pub(super) pipe: Count,
    /// RFC 5681's FlightSize: all data that was sent and not cumulatively acknowledged.
    pub(super) outstanding: Count,
}

/// The receive side and the program's calls have no part in this.
impl Outbound {
    /// The news before the ACK is digested.
    #[inline]
    pub(super) fn news(&self, segment: &TcpView<'_>) -> AckNews {
        AckNews {
            advanced: segment.ack.bytes_since(self.sending.una),
            delivered: Delivered::default(),
            before: self.loss.before(),
            is_dup: false,
            says_only_ack: segment.payload.is_empty() && !segment.flags.intersects(Flags::SYN | Flags::FIN),
            dsack: None,
            ece: false,
            echo: None,
            dup_count: None,
            rtt: None,
        }
    }

    /// Digests an ACK in the place of its [`news`](Outbound::news), which is too large to be moved at each step.
    pub(super) fn digest(
        &mut self,
        cx: &mut Cx<'_>,
        segment: &TcpView<'_>,
        window: WindowNews,
        news: &mut AckNews,
    ) {
        news.dsack = self.loss.take_report(segment, self.space(), &mut news.delivered);
        self.stats.dsacks += u32::from(news.dsack.is_some());
        if news.advanced > 0 {
            self.advance_una(cx, segment.ack);
        }
        let is_repeat = segment.ack == self.sending.una && news.says_only_ack && window == WindowNews::Same;
        news.is_dup = news.advanced == 0
            && !self.loss.board.is_empty()
            && if self.opening.agreed.sack { news.delivered.sacked.bytes > 0 } else { is_repeat };
        let arrived = self.loss.arrived(self.stats.bytes_acked);
        self.progress.on_acked(cx.now, self.sending.una, self.sending.nxt, arrived);
        news.echo = segment.options.timestamps.filter(|_| self.opening.agreed.timestamps).map(|ts| ts.echo);
        news.dup_count = match segment.options.hopwise {
            Some(HopwiseOption::Notes(notes)) if self.opening.agreed.has(OfferFlags::USE_DUP_COUNT) => {
                notes.dup_count
            }
            _ => None,
        };
        let age = news.echo.map(|echo| self.opening.ts_now(cx.now).wrapping_sub(echo));
        let is_one_timed = self.opening.uses_one_timed(&self.config);
        news.rtt =
            self.loss.take_samples(cx, &news.delivered, (segment.ack, age), is_one_timed, &mut self.path);
        if self.mtu.on_acked(self.sending.una) {
            self.sending.mss = self.opening.full_payload(&self.mtu, &self.config);
            cx.trace(TraceKind::PathMtu { bytes: self.mtu.size(), how: MtuHow::Probe });
        }
        // On a SYN, ECE announces a capability and no mark (RFC 3168 §6.1.1).
        news.ece = self.opening.sends_ect()
            && segment.flags.contains(Flags::ECE)
            && !segment.flags.contains(Flags::SYN);
    }

    fn advance_una(&mut self, cx: &Cx<'_>, ack: Seq) {
        self.stats.bytes_acked += u64::from(self.sending.acknowledge(ack));
        if self.sending.catch_up() {
            self.loss.board.clear();
        }
        self.loss.passed(ack);
        self.urges.forget_timeouts_above();
        self.urges.ask_nothing_below();
        self.urges.window_probes_sent = 0;
        if !self.sending.is_idle() {
            self.wait_for_ack(cx.now);
        }
    }

    /// Measures the path by the handshake, also for the receiver, unless a SYN was sent twice (Karn).
    #[cold]
    pub(super) fn sample_handshake(&mut self, cx: &mut Cx<'_>, segment: &TcpView<'_>) {
        let echo = segment.options.timestamps.filter(|_| self.opening.agreed.timestamps).map(|ts| ts.echo);
        let echoed = echo.and_then(|echo| self.opening.echoed_rtt(cx.now, echo));
        let sample = match (self.sending.last_sent_at.get(), self.opening.syns_sent) {
            (Some(sent_at), 1) => Some(cx.now.since(sent_at)),
            (_, 0) => None, // With a SYN cookie no SYN-ACK is remembered.
            _ => echoed,
        };
        let Some(sample) = sample else { return };
        if self.opening.uses_one_timed(&self.config) {
            // The timer counts timed data only, but this sample still measures the path.
            self.path.rtt.min = [self.path.rtt.min, Some(sample)].into_iter().flatten().min();
        } else {
            self.loss.take_rtt(cx, sample, None, &mut self.path);
        }
    }

    pub(super) fn tell_senders(&mut self, cx: &mut Cx<'_>, news: &AckNews, ended: Option<Recovered>) {
        let view = send_view(&self.sending, &self.path, &self.loss);
        if news.advanced > 0 || news.delivered.sacked.bytes > 0 {
            let acked = Acked {
                now: cx.now,
                newly: news.delivered.acked,
                sacked: news.delivered.sacked,
                rtt: news.rtt,
                newest_sent_at: news.delivered.newest.map(|newest| newest.sent_at),
                ece: news.ece,
                flight_before: news.before.pipe,
            };
            self.senders.on_acked(&acked, &view);
        }
        if let Some(end) = ended {
            self.end_recovery(cx, end);
        }
    }

    /// RFC 6298 §5.3: a newly acknowledged segment restarts the timer. With nothing in flight no timer runs.
    pub(super) fn restart_timers(&mut self, cx: &Cx<'_>, news: &AckNews) {
        if self.loss.board.is_empty() {
            if self.sending.opened {
                self.timers.disarm(Timer::Retransmit);
                self.timers.disarm(Timer::TailProbe);
                self.timers.disarm(Timer::Reorder);
                self.sending.stop_waiting();
            }
        } else if news.advanced > 0 {
            if self.loss.ack_restarts_timer(self.opening.agreed.sack) {
                self.arm_retransmit(cx.now);
            }
            self.arm_tail_probe(cx.now);
        }
    }
}
