//! What the peer acknowledges: it moves `snd_una`, measures the path, feeds loss detection, and is told to the
//! sender agents.

use std::time::Duration;

use super::ingress::{Arrived, Disposition, Step};
use super::window::WindowNews;
use super::{CloseReason, Connection};
use crate::agent::{Acked, Count, DupAck, Recovered};
use crate::tcp::cx::Cx;
use crate::tcp::recovery::Phase;
use crate::tcp::scoreboard::Delivered;
use crate::tcp::timers::Timer;
use crate::trace::{MtuHow, StateName, TraceKind};
use crate::wire::{Flags, HopwiseOption, TcpView};
use crate::{Instant, Moment, Seq};

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
        self.count_hops(cx, arrived);
        if self.snd.una + self.snd.wnd < self.snd.nxt {
            // A probe, or what a shrinking window left outside: a peer that answers may keep its window closed for
            // ever (RFC 9293 MUST-37, SHLD-17). What is sent next waits for an answer again.
            self.snd.waiting_since = Moment::NEVER;
        }
        let window = self.take_window(cx, segment);
        if self.has_no_news(segment) {
            return Step::Next;
        }
        let news = self.digest(cx, segment, window);
        if self.snd.wnd == 0 {
            // Whoever says that its window is closed is there: the wait begins anew (MUST-37, SHLD-17).
            self.snd.waiting_since = Moment::NEVER;
        }
        self.thaw_on(cx, &news);
        let ended = self.judge(cx, &news);
        self.tell_senders(cx, &news, ended);
        self.restart_timers(cx, &news);
        self.step_state(cx)
    }

    /// Whoever only receives has nothing under way that an ACK could speak of.
    fn has_no_news(&self, segment: &TcpView<'_>) -> bool {
        self.is_at_rest()
            && segment.ack == self.snd.una
            && segment.options.sack.is_empty()
            && !segment.flags.contains(Flags::ECE)
    }

    fn digest(&mut self, cx: &mut Cx<'_>, segment: &TcpView<'_>, window: WindowNews) -> AckNews {
        let before = self.before();
        let mut delivered = Delivered::default();
        let highest_sacked = self.highest_sacked;
        let advanced = segment.ack.bytes_since(self.snd.una);
        self.recovery.on_ack_of(self.snd.una);
        let dsack = self.take_sacks(segment, &mut delivered);
        self.stats.dsacks += u32::from(dsack.is_some());
        if advanced > 0 {
            self.board.ack(segment.ack, highest_sacked, &mut delivered);
            self.advance_una(cx, segment.ack);
        }
        let says_only_ack = segment.payload.is_empty() && !segment.flags.intersects(Flags::SYN | Flags::FIN);
        let is_repeat = segment.ack == self.snd.una && says_only_ack && window == WindowNews::Same;
        let is_dup = advanced == 0
            && !self.board.is_empty()
            && if self.opening.agreed().sack { delivered.sacked.bytes > 0 } else { is_repeat };
        self.progress.on_acked(cx.now, self.snd.una, self.snd.nxt, self.arrived_bytes());
        let echo = segment.options.timestamps.filter(|_| self.opening.agreed().timestamps).map(|ts| ts.echo);
        let dup_count = match segment.options.hopwise {
            Some(HopwiseOption::Notes(notes)) if self.opening.agreed().use_dup_count() => notes.dup_count,
            _ => None,
        };
        let rtt = self.take_samples(cx, &delivered, segment.ack, echo);
        if self.mtu.on_acked(self.snd.una) {
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
        self.stats.bytes_acked + self.board.sacked().bytes
    }

    /// Marks what SACK blocks report. Answers the first block when it is a D-SACK (RFC 2883 §4).
    fn take_sacks(&mut self, segment: &TcpView<'_>, delivered: &mut Delivered) -> Option<(Seq, Seq)> {
        if !self.opening.agreed().sack {
            return None;
        }
        let blocks = &segment.options.sack;
        let dsack = match blocks.as_slice() {
            [first, ..] if first.right <= segment.ack => Some(first),
            [first, second, ..] if second.left <= first.left && first.right <= second.right => Some(first),
            _ => None,
        };
        // Out of order is what arrived after something higher that an earlier ACK told of.
        let highest_before = self.highest_sacked;
        for block in blocks.iter().skip(usize::from(dsack.is_some())) {
            let is_sane =
                block.left < block.right && segment.ack < block.right && block.right <= self.snd.nxt;
            if is_sane && self.snd.una <= block.left {
                self.board.sack(block.left, block.right, highest_before, delivered);
                let highest = self.highest_sacked.map_or(block.right, |highest| highest.max(block.right));
                self.highest_sacked = Some(highest);
            }
        }
        dsack.map(|block| (block.left, block.right))
    }

    fn advance_una(&mut self, cx: &Cx<'_>, ack: Seq) {
        let start = self.buffer_start();
        let data = ack.bytes_since(start).min(self.snd.buffer.len());
        self.snd.buffer.consume(data);
        self.stats.bytes_acked += u64::from(data);
        self.snd.una = ack;
        if self.snd.nxt < ack {
            // Acknowledges a probe byte that was taken back: it had arrived after all.
            self.snd.nxt = ack;
            self.board.clear();
        }
        self.snd.highest_ack = self.snd.highest_ack.max(ack);
        self.snd.urgent_end = self.snd.urgent_end.filter(|end| ack < *end);
        self.recovery.passed(ack);
        self.urges.timeouts_above = 0;
        self.urges.below_highest_ack = false;
        self.urges.window_probes_sent = 0;
        self.highest_sacked = self.highest_sacked.filter(|highest| ack < *highest);
        self.snd.waiting_since = Moment::NEVER;
        if self.snd.una != self.snd.nxt {
            self.wait_for_ack(cx.now);
        }
        self.tell_of_room();
    }

    /// RTO hears of the segment that the ACK waited for, holds and all; agents hear of the newest, which tells the
    /// path. An ACK that covers what was sent again for a loss tells nothing (Karn, RFC 6298 §3); one that covers a
    /// tail probe does, or else a receiver that holds its ACKs would be probed each time. After a needless timeout the
    /// RTO hears of new data first.
    fn take_samples(
        &mut self,
        cx: &mut Cx<'_>,
        delivered: &Delivered,
        ack: Seq,
        echo: Option<u32>,
    ) -> Option<Duration> {
        let is_ambiguous = delivered.covers_resent && self.recovery.phase != Phase::Open;
        let newest = delivered.last_sent.filter(|_| !is_ambiguous);
        let newest = newest.map(|sent_at| cx.now.since(sent_at));
        let for_rto = if self.uses_one_timed() {
            self.take_timed(ack).map(|sent_at| cx.now.since(sent_at))
        } else {
            let oldest = delivered.first_acked.map(|sent_at| cx.now.since(sent_at));
            newest
                .map(|newest| oldest.map_or(newest, |oldest| self.waited_for(cx.now, (newest, oldest), echo)))
        };
        if let Some(sample) = for_rto.filter(|_| !self.recovery.was_delayed) {
            self.take_rtt(cx, sample, newest);
        }
        newest
    }

    /// The one timed segment is acknowledged.
    fn take_timed(&mut self, ack: Seq) -> Option<Instant> {
        let (end, sent_at) = self.snd.timed;
        if ack < end {
            return None;
        }
        self.snd.timed.1 = Moment::NEVER;
        sent_at.get()
    }

    /// The oldest segment that an ACK covers was what it waited for, unless an earlier ACK was lost: the echo tells
    /// (RFC 7323 §4.1), as exactly as its clock ticks.
    fn waited_for(
        &self,
        now: Instant,
        (newest, oldest): (Duration, Duration),
        echo: Option<u32>,
    ) -> Duration {
        let Some(echo) = echo else { return oldest };
        let age_ms = u64::from(self.opening.ts_now(now).wrapping_sub(echo));
        oldest.min(Duration::from_millis(age_ms + 1)).max(newest)
    }

    /// `path`: a sample that leaves out what the peer waited, where there is one.
    fn take_rtt(&mut self, cx: &mut Cx<'_>, sample: Duration, path: Option<Duration>) {
        self.rtt.on_sample(cx.now, sample);
        let min = [path, self.path.rtt.min, Some(sample)].into_iter().flatten().min();
        self.path.rtt = crate::agent::Rtt { min, latest: path.or(Some(sample)), ..self.rtt.as_path_rtt() };
        cx.trace(TraceKind::Rtt {
            sample_us: micros(sample),
            srtt_us: micros(self.rtt.smoothed().unwrap_or_default()),
            rto_us: micros(self.rtt.rto()),
        });
    }

    /// The handshake measures the path too, for the receiver as well, unless a SYN was sent twice (Karn).
    #[cold]
    pub(super) fn sample_handshake(&mut self, cx: &mut Cx<'_>, segment: &TcpView<'_>) {
        let echo = segment.options.timestamps.filter(|_| self.opening.agreed().timestamps).map(|ts| ts.echo);
        let echoed = echo.and_then(|echo| self.echoed_rtt(cx.now, echo));
        let sample = match (self.snd.last_sent_at.get(), self.opening.syns_sent()) {
            (Some(sent_at), 1) => Some(cx.now.since(sent_at)),
            (_, 0) => None, // Under a SYN cookie nothing of the SYN-ACK is known.
            _ => echoed,
        };
        let Some(sample) = sample else { return };
        if self.uses_one_timed() {
            // The timer counts timed data alone. What the path takes is known all the same.
            self.path.rtt.min = [self.path.rtt.min, Some(sample)].into_iter().flatten().min();
        } else {
            self.take_rtt(cx, sample, None);
        }
    }

    /// In whole milliseconds, rounded up: the clock has ticked at most once more than it shows.
    pub(super) fn echoed_rtt(&self, now: Instant, echo: u32) -> Option<Duration> {
        let ticks = self.opening.ts_now(now).wrapping_sub(echo);
        let rtt = Duration::from_millis(u64::from(ticks) + 1);
        (echo != 0 && rtt < MOST_BELIEVABLE).then_some(rtt)
    }

    fn tell_senders(&mut self, cx: &mut Cx<'_>, news: &AckNews, ended: Option<Recovered>) {
        let view = super::send_view(&self.snd, &self.path, &self.board, &self.recovery);
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
        if self.board.is_empty() {
            if self.snd.opened {
                self.timers.disarm(Timer::Retransmit);
                self.timers.disarm(Timer::TailProbe);
                self.timers.disarm(Timer::Reorder);
                self.timers.disarm(Timer::UserTimeout);
            }
        } else if news.advanced > 0 {
            if self.ack_restarts_timer() {
                self.arm_retransmit(cx.now);
            }
            self.arm_tail_probe(cx.now);
        }
    }

    /// The states that end when our FIN is acknowledged.
    fn step_state(&mut self, cx: &mut Cx<'_>) -> Step {
        let is_fin_acked = self.snd.fin_sent && self.snd.una == self.snd.nxt && self.board.is_empty();
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

    pub(super) fn dup_ack(&self, now: Instant, news: &AckNews) -> DupAck {
        DupAck {
            now,
            seen: self.recovery.dup_acks,
            dup_count: news.dup_count,
            newly_sacked: news.delivered.sacked,
        }
    }
}

/// An echoed timestamp older than this is a peer's error, or an attack on our RTO.
const MOST_BELIEVABLE: Duration = Duration::from_secs(300);

pub(super) fn micros(duration: Duration) -> u32 {
    u32::try_from(duration.as_micros()).unwrap_or(u32::MAX)
}
