//! `bbr`: paces at the rate that the path delivers, and keeps little more in flight than the path holds.
//!
//! Source: draft-ietf-ccwg-bbr-06 (BBRv3); section numbers are the draft's.
//!
//! Rule: the highest delivery rate of two cycles and the shortest round trip of ten seconds model the path. Startup
//! doubles the rate until it brings no more, Drain empties the queue. Then a cycle goes on. It sends slower (DOWN), as
//! quickly as the path delivers (CRUISE), fills the pipe (REFILL) and tries a quarter more (UP). Every five seconds,
//! unless a shorter round trip came by itself, ProbeRTT halves the flight for 200 ms.
//! More than 2 % of a flight lost while it probes bounds the flight for a long time. Losses at other times bound rate
//! and flight until the next probe, at 0.7 of them or at what was delivered last.
//!
//! Deviations: the handshake's round trip is left out of the shortest, since slow radios carry its short packets
//! quicker than data. Losses are judged with the next ACK, by the flight of the newest segment that it delivers, and
//! not one by one. They are judged by their share without SACK, too. ECN's marks, which the draft leaves open, count as
//! losses. The least bundle is one segment, and not two: slow radios gain nothing by bursts. Bursts of ACKs add at most
//! what the rate delivers in 100 ms to the window, as in Linux: over slow hops it would feed on its own queue. In fast
//! recovery PRR narrows the window further. Choices that the draft wants at random follow from the connection's first
//! sequence number, so that a run can be repeated byte for byte.

mod cycle;
pub(super) mod filter;
mod model;
mod rate;
#[cfg(test)]
mod tests;

use std::time::Duration;

use hopwise_core::Instant;
use hopwise_core::agent::{
    Acked, Allowance, CWND_GAUGE, Loss, LossKind, Recovered, Recovering, Reduction, SendView, SenderAgent,
    Sent,
};
use hopwise_core::ignores;
use hopwise_core::random::SplitMix64;

use self::cycle::{AckPhase, BandwidthProbe, BbrState, ProbeRtt};
use self::filter::{ExtraAcked, FullPipe, MinRtt, TwoWindows};
use self::model::{LossRound, LossUndo, Round, Short};
use self::rate::{RateSample, RateSampler};
use super::window::{initial_window, is_without_flight, mss_of};
use crate::descriptor::{Descriptor, Make};
use crate::param::{Form, params};
use crate::truncate;

params! {
    /// initial window
    iw: u32 = Form::count("segments", 1, 1_000).is(10),
}

pub(crate) static DESCRIPTOR: Descriptor = Descriptor {
    name: "bbr",
    rule: "paces at the rate that the path delivers, with little more in flight than the path holds",
    source: "draft-ietf-ccwg-bbr-06 (BBRv3)",
    params: Params::TABLE,
    shorthand: None,
    make: Make::Owner(|args| Box::new(Bbr { iw: Params::of(args).iw, ..Bbr::default() })),
};

/// The share of lost data that is too much (`LossThresh`).
const LOSS_THRESHOLD: f64 = 0.02;
/// The part that a loss leaves at least (`Beta`).
const BETA: f64 = 0.7;
/// The part of the long-term bound that is left to others (`Headroom`).
const HEADROOM: f64 = 0.15;
/// The least window, in segments (`MinPipeCwnd`).
const LEAST_SEGMENTS: u64 = 4;
/// Paces a hundredth below the path's rate (`PacingMarginPercent`).
const MARGIN: f64 = 0.99;
/// The most that leaves as one bundle.
const MOST_QUANTUM: u64 = 65_536;
/// The time whose bytes the window gets at most for ACKs that come in bursts.
pub(super) const MOST_EXTRA: Duration = Duration::from_millis(100);
/// The round trip that the first pacing rate assumes without a sample.
const FIRST_RTT: Duration = Duration::from_millis(1);

#[derive(Debug, Default)]
pub(crate) struct Bbr {
    iw: u32,
    rates: RateSampler,
    state: BbrState,
    ack_phase: AckPhase,
    round: Round,
    max_bw: TwoWindows<f64>,
    min_rtt: MinRtt,
    extra: ExtraAcked,
    full: FullPipe,
    /// Bounds until the next probe for bandwidth.
    short: Short,
    /// `inflight_longterm` in bytes; None is unlimited.
    longterm: Option<u64>,
    loss: LossRound,
    probe: BandwidthProbe,
    probe_rtt: ProbeRtt,
    undo: LossUndo,
    /// None until the first segment.
    cwnd: Option<u64>,
    prior_cwnd: u64,
    /// Bytes per second; None until the first segment.
    pacing: Option<f64>,
    next_send: Instant,
    in_recovery: bool,
    idle_restart: bool,
    syn_was_lost: bool,
    random: SplitMix64,
}

/// One ACK, as the steps of the model see it.
#[derive(Clone, Copy, Debug)]
struct AckFacts {
    now: Instant,
    mss: u64,
    flight: u64,
    rtt: Option<Duration>,
    sample: RateSample,
    is_cwnd_limited: bool,
    in_fast_recovery: bool,
}

impl Bbr {
    /// With the first segment or ACK: the peer's MSS and the handshake's round trip are known.
    fn begin(&mut self, now: Instant, view: &SendView<'_>) {
        if self.cwnd.is_none() {
            self.cwnd = Some(self.window(mss_of(view)));
            self.random = SplitMix64::new(u64::from(view.snd_una.0));
            self.extra.restart(now);
        }
        if self.pacing.is_none() && view.path.rtt.smoothed.is_some() {
            self.pacing = Some(self.pacing_rate(view));
        }
    }

    fn window(&self, mss: u64) -> u64 {
        self.cwnd.unwrap_or_else(|| if self.syn_was_lost { mss } else { initial_window(self.iw, mss) })
    }

    /// In bytes per second (§5.6.2).
    fn pacing_rate(&self, view: &SendView<'_>) -> f64 {
        self.pacing.unwrap_or_else(|| {
            let rtt = view.path.rtt.smoothed.unwrap_or(FIRST_RTT).max(Duration::from_micros(1));
            let initial = initial_window(self.iw, mss_of(view));
            BbrState::Startup.pacing_gain() * initial as f64 / rtt.as_secs_f64()
        })
    }

    fn set_pacing(&mut self, gain: f64) {
        let rate = gain * self.bw() * MARGIN;
        if rate > 0.0 && (self.full.ever || self.pacing.is_none_or(|old| rate > old)) {
            self.pacing = Some(rate);
        }
    }

    /// §5.6.3, in bytes.
    fn send_quantum(&self, mss: u64) -> u64 {
        truncate::to_u64(self.pacing.unwrap_or(0.0) / 1_000.0).min(MOST_QUANTUM).max(mss)
    }

    /// §5.6.4.6.
    fn set_cwnd(&mut self, ack: &AckFacts) {
        let mss = ack.mss;
        let most = self.max_inflight(mss);
        let grown = self.window(mss).saturating_add(ack.sample.newly_acked);
        let cwnd = if self.full.ever {
            grown.min(most)
        } else if self.window(mss) < most || self.rates.delivered < initial_window(self.iw, mss) {
            grown
        } else {
            self.window(mss)
        };
        self.cwnd = Some(self.bounded(cwnd.max(LEAST_SEGMENTS * mss), mss));
    }

    /// §5.6.4.5 and §5.6.4.7.
    fn bounded(&self, cwnd: u64, mss: u64) -> u64 {
        let least = LEAST_SEGMENTS * mss;
        let longterm = match self.state {
            BbrState::Startup | BbrState::Drain => None,
            BbrState::Down | BbrState::Refill | BbrState::Up => self.longterm,
            BbrState::Cruise | BbrState::ProbeRtt => self.with_headroom(mss),
        };
        let cap = [longterm, self.short.inflight].into_iter().flatten().min().unwrap_or(u64::MAX);
        let cwnd = cwnd.min(cap.max(least));
        if self.state == BbrState::ProbeRtt { cwnd.min(self.probe_rtt_cwnd(mss)) } else { cwnd }
    }

    /// §5.6.4.4.
    fn save_cwnd(&mut self, mss: u64) {
        let cwnd = self.window(mss);
        let is_modulated = self.in_recovery || self.state == BbrState::ProbeRtt;
        self.prior_cwnd = if is_modulated { self.prior_cwnd.max(cwnd) } else { cwnd };
    }

    fn restore_cwnd(&mut self, mss: u64) {
        self.cwnd = Some(self.window(mss).max(self.prior_cwnd));
    }

    fn end_recovery(&mut self, mss: u64) {
        self.in_recovery = false;
        self.restore_cwnd(mss);
        let cwnd = self.window(mss);
        let cwnd = if self.full.ever { cwnd.min(self.max_inflight(mss)) } else { cwnd };
        self.cwnd = Some(self.bounded(cwnd, mss));
    }
}

impl SenderAgent for Bbr {
    ignores!(tune, on_dup_ack, on_path, note);

    hopwise_core::needs!(rtt);

    fn on_sent(&mut self, sent: &Sent, view: &SendView<'_>) {
        self.begin(sent.now, view);
        if view.flight.bytes <= sent.carried.bytes && self.rates.is_limited() {
            self.restart_from_idle(sent.now, mss_of(view));
        }
        self.rates.on_sent(sent, view);
        let takes_s = sent.carried.bytes as f64 / self.pacing_rate(view).max(1.0);
        let takes = Duration::from_nanos(truncate::to_u64(takes_s * 1e9));
        self.next_send = self.next_send.max(sent.now) + takes;
    }

    fn on_acked(&mut self, acked: &Acked, view: &SendView<'_>) {
        self.begin(acked.now, view);
        let mss = mss_of(view);
        if self.in_recovery && view.recovering.is_none() {
            self.end_recovery(mss);
        }
        let is_cwnd_limited = !view.app_limited && acked.flight_before.bytes + mss > self.window(mss);
        let Some(sample) = self.rates.on_acked(acked, view, self.min_rtt.get()) else { return };
        let ack = AckFacts {
            now: acked.now,
            mss,
            flight: view.flight.bytes,
            rtt: acked.rtt,
            sample,
            is_cwnd_limited,
            in_fast_recovery: matches!(view.recovering, Some(Recovering::Fast { .. })),
        };
        self.take_losses(&ack, view.lost_bytes);
        self.update_model(&ack);
        self.update_state(&ack);
        self.set_pacing(self.state.pacing_gain());
        self.set_cwnd(&ack);
    }

    fn on_loss(&mut self, loss: &Loss, view: &SendView<'_>) -> Option<Reduction> {
        let mss = mss_of(view);
        if is_without_flight(loss) {
            self.syn_was_lost |= self.cwnd.is_none();
            self.cwnd = self.cwnd.map(|_| mss);
            return Some(Reduction { ssthresh: initial_window(self.iw, mss).max(2 * mss) });
        }
        self.begin(loss.now, view);
        let before = self.window(mss);
        match loss.kind {
            LossKind::Marked => self.take_mark(loss, mss),
            LossKind::Fast | LossKind::Timeout { .. } => {
                self.save_state_upon_loss(mss);
                self.in_recovery = true;
            }
        }
        if let LossKind::Timeout { .. } = loss.kind {
            self.cwnd = Some(mss);
        }
        Some(Reduction { ssthresh: before.max(2 * mss) })
    }

    fn on_recovered(&mut self, end: Recovered, view: &SendView<'_>) {
        if end == Recovered::Undone {
            self.undo_loss();
        }
        self.end_recovery(mss_of(view));
    }

    fn narrow(&self, _: Instant, view: &SendView<'_>, so_far: Allowance) -> Allowance {
        let mss = mss_of(view);
        let quantum = u32::try_from(self.send_quantum(mss)).unwrap_or(u32::MAX);
        so_far.narrowed(self.window(mss).max(mss), self.next_send, quantum)
    }

    fn gauges(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        if let Some(cwnd) = self.cwnd {
            sink(CWND_GAUGE, cwnd);
        }
        sink("bandwidth_bytes_per_s", truncate::to_u64(self.bw()));
        sink("pacing_bytes_per_s", truncate::to_u64(self.pacing.unwrap_or(0.0)));
        let min_rtt_us = self.min_rtt.get().map_or(0, |rtt| rtt.as_micros());
        sink("min_rtt_us", u64::try_from(min_rtt_us).unwrap_or(u64::MAX));
        sink("state", self.state.number());
    }
}

#[cfg(test)]
mod cases {
    use std::time::Duration;

    use hopwise_core::Instant;
    use hopwise_core::agent::{LossKind, Recovered};

    use crate::testkit::sender::Bench;

    const RTT: Duration = Duration::from_millis(100);

    #[test]
    fn the_first_window_leaves_in_a_third_of_a_round_trip() {
        let mut bench = Bench::new("bbr").with_rtt(RTT);
        assert_eq!(bench.allowed_segments(), 10);
        bench.send(1);
        // 100 ms / (2.77 × 10).
        assert_eq!(bench.allowed().new_from, Instant::ZERO + Duration::from_nanos(3_610_108));
        assert_eq!(bench.allowed().resend_from, bench.allowed().new_from);
        assert_eq!(Bench::new("bbr:iw=4").with_rtt(RTT).allowed_segments(), 4);
    }

    #[test]
    fn a_timeout_leaves_one_segment_and_a_lost_syn_too() {
        let mut bench = Bench::new("bbr").with_rtt(RTT);
        bench.fill();
        bench.lose(LossKind::Timeout { nth: 1 });
        assert_eq!(bench.allowed_segments(), 1);
        bench.recover(Recovered::Undone);
        assert_eq!(bench.allowed_segments(), 10);
        let mut bench = Bench::new("bbr").with_rtt(RTT);
        bench.lose(LossKind::Timeout { nth: 1 });
        assert_eq!(bench.allowed_segments(), 1);
    }

    #[test]
    fn segments_that_grow_beyond_the_window_still_leave() {
        let mut bench = Bench::new("bbr").with_rtt(RTT);
        bench.mss = 500;
        bench.fill();
        bench.lose(LossKind::Timeout { nth: 1 });
        bench.mss = 1_000;
        assert_eq!(bench.allowed_segments(), 1);
    }
}
