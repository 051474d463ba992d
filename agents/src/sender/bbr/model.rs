//! The model of the path: rounds, rate, flight, and what losses do to them (§5.5).

use std::time::Duration;

use hopwise_core::Instant;
use hopwise_core::agent::Loss;

use super::cycle::BbrState;
use super::rate::RateSample;
use super::{AckFacts, BETA, Bbr, HEADROOM, LEAST_SEGMENTS, LOSS_THRESHOLD, MOST_EXTRA};
use crate::sender::window::initial_window;
use crate::truncate;

/// §5.5.1: a round ends with the ACK of data that left after its beginning.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Round {
    next_delivered: u64,
    pub(super) count: u32,
    /// The present ACK ends a round.
    pub(super) has_begun: bool,
}

/// The bounds until the next probe for bandwidth; None is unlimited.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Short {
    /// In bytes per second.
    pub(super) bw: Option<f64>,
    pub(super) inflight: Option<u64>,
}

/// The newest round trip, as far as losses are concerned (§5.5.10.3).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LossRound {
    /// All bytes found lost, up to the last ACK; the count wraps.
    seen: u32,
    /// ACKs that found losses in this round.
    pub(super) events: u32,
    delivered: u64,
    /// The present ACK ends a round.
    pub(super) has_begun: bool,
    pub(super) is_in_round: bool,
    bw_latest: f64,
    pub(super) inflight_latest: u64,
}

impl LossRound {
    /// `ResetCongestionSignals`.
    pub(super) fn reset(&mut self) {
        (self.is_in_round, self.bw_latest, self.inflight_latest) = (false, 0.0, 0);
    }

    fn take(&mut self, sample: &RateSample, delivered: u64) {
        self.bw_latest = self.bw_latest.max(sample.rate);
        self.inflight_latest = self.inflight_latest.max(sample.delivered);
        self.has_begun = sample.prior_delivered >= self.delivered;
        if self.has_begun {
            self.delivered = delivered;
        }
    }

    /// Near the end of an ACK.
    pub(super) fn advance(&mut self, sample: &RateSample) {
        if self.has_begun {
            (self.bw_latest, self.inflight_latest, self.events) = (sample.rate, sample.delivered, 0);
        }
    }
}

/// The state before the last loss (§5.5.11.1).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LossUndo {
    /// The state that the loss ended.
    pub(super) state: Option<BbrState>,
    short: Short,
    longterm: Option<u64>,
}

impl Bbr {
    /// `BBR.bw` in bytes per second.
    pub(super) fn bw(&self) -> f64 {
        let max_bw = self.max_bw.highest();
        self.short.bw.map_or(max_bw, |short| max_bw.min(short))
    }

    fn bytes_in_flight(&self, bw: f64, gain: f64, mss: u64) -> u64 {
        let Some(min_rtt) = self.min_rtt.get() else { return initial_window(self.iw, mss) };
        truncate::to_u64(gain * bw * min_rtt.as_secs_f64())
    }

    /// `BDPMultiple`, in bytes.
    pub(super) fn bdp(&self, gain: f64, mss: u64) -> u64 {
        self.bytes_in_flight(self.bw(), gain, mss)
    }

    /// `QuantizationBudget`: what hosts and offloads keep.
    fn quantized(&self, bytes: u64, mss: u64) -> u64 {
        let more = if self.state == BbrState::Up { 2 * mss } else { 0 };
        bytes.max(3 * self.send_quantum(mss)).max(LEAST_SEGMENTS * mss) + more
    }

    /// `Inflight(1.0)` at this rate.
    pub(super) fn full_pipe(&self, bw: f64, mss: u64) -> u64 {
        self.quantized(self.bytes_in_flight(bw, 1.0, mss), mss)
    }

    /// §5.6.4.2.
    pub(super) fn max_inflight(&self, mss: u64) -> u64 {
        self.quantized(self.bdp(self.state.cwnd_gain(), mss) + self.extra.highest(), mss)
    }

    /// `TargetInflight`.
    pub(super) fn target(&self, mss: u64) -> u64 {
        self.bdp(1.0, mss).min(self.window(mss))
    }

    /// `InflightWithHeadroom`.
    pub(super) fn with_headroom(&self, mss: u64) -> Option<u64> {
        let longterm = self.longterm?;
        let headroom = truncate::to_u64(HEADROOM * longterm as f64).max(mss);
        Some(longterm.saturating_sub(headroom).max(LEAST_SEGMENTS * mss))
    }

    pub(super) fn start_round(&mut self) {
        self.round.next_delivered = self.rates.delivered;
    }

    pub(super) fn update_model(&mut self, ack: &AckFacts) {
        let sample = &ack.sample;
        self.loss.take(sample, self.rates.delivered);
        self.round.has_begun = sample.prior_delivered >= self.round.next_delivered;
        if self.round.has_begun {
            self.start_round();
            self.round.count += 1;
            self.probe.rounds_since_up += 1;
        }
        if sample.rate > 0.0 && (sample.rate >= self.max_bw.highest() || !sample.app_limited) {
            self.max_bw.take(sample.rate);
        }
        if self.loss.has_begun {
            self.adapt_lower_bounds(ack.mss);
            self.loss.is_in_round = false;
        }
        let (bw, cwnd) = (self.bw(), self.window(ack.mss));
        if self.round.has_begun {
            self.extra.end_round(!self.full.ever);
        }
        let expected = |time: Duration| truncate::to_u64(bw * time.as_secs_f64());
        let most = expected(MOST_EXTRA).min(cwnd);
        self.extra.take(ack.now, sample.newly_acked, expected, most);
        if self.round.has_begun {
            self.full.end_round(sample);
        }
    }

    /// `AdaptLowerBoundsFromCongestion`.
    fn adapt_lower_bounds(&mut self, mss: u64) {
        let probes_bandwidth = matches!(self.state, BbrState::Startup | BbrState::Refill | BbrState::Up);
        if probes_bandwidth || !self.loss.is_in_round {
            return;
        }
        let bw = self.short.bw.unwrap_or(self.max_bw.highest());
        let inflight = self.short.inflight.unwrap_or(self.window(mss));
        self.short.bw = Some(self.loss.bw_latest.max(BETA * bw));
        self.short.inflight = Some(self.loss.inflight_latest.max(part(BETA, inflight)));
    }

    /// `HandleLostPacket` for all that was found lost since the last ACK.
    pub(super) fn take_losses(&mut self, ack: &AckFacts, lost_bytes: u32) {
        let newly = u64::from(lost_bytes.wrapping_sub(self.loss.seen));
        self.loss.seen = lost_bytes;
        if newly == 0 {
            return;
        }
        self.note_loss(ack.mss);
        self.loss.events += 1;
        if self.probe.is_sample && is_too_high(&ack.sample) {
            let inflight = (!ack.sample.app_limited).then(|| inflight_at_loss(&ack.sample, newly));
            self.handle_too_high(ack.now, inflight, ack.mss);
        }
    }

    /// A mark (RFC 3168) in a probe is the end of it, and in other states a loss of this round.
    pub(super) fn take_mark(&mut self, loss: &Loss, mss: u64) {
        self.note_loss(mss);
        if self.probe.is_sample {
            self.handle_too_high(loss.now, Some(loss.flight_before.bytes), mss);
        }
    }

    fn note_loss(&mut self, mss: u64) {
        if !self.loss.is_in_round {
            self.loss.delivered = self.rates.delivered;
            self.save_state_upon_loss(mss);
        }
        self.loss.is_in_round = true;
    }

    pub(super) fn save_state_upon_loss(&mut self, mss: u64) {
        self.save_cwnd(mss);
        self.undo = LossUndo { state: None, short: self.short, longterm: self.longterm };
    }

    /// `HandleInflightTooHigh`. A flight that the application limited bounds nothing.
    fn handle_too_high(&mut self, now: Instant, inflight: Option<u64>, mss: u64) {
        self.probe.was_too_high = true;
        self.probe.is_sample = false;
        if let Some(inflight) = inflight {
            self.longterm = Some(inflight.max(part(BETA, self.target(mss))));
        }
        if self.state == BbrState::Up {
            self.undo.state = Some(BbrState::Up);
            self.start_down(now);
        }
    }

    /// `HandleSpuriousLossDetection`; the window is restored with the end of recovery.
    pub(super) fn undo_loss(&mut self) {
        self.loss.is_in_round = false;
        self.full.begin(0.0);
        self.short.bw = wider(self.short.bw, self.undo.short.bw);
        self.short.inflight = wider(self.short.inflight, self.undo.short.inflight);
        self.longterm = wider(self.longterm, self.undo.longterm);
        match self.undo.state.take() {
            Some(BbrState::Startup) if self.state != BbrState::Startup => {
                self.full.ever = false;
                if self.state != BbrState::ProbeRtt {
                    self.state = BbrState::Startup;
                }
            }
            Some(BbrState::Up) if !matches!(self.state, BbrState::Up | BbrState::ProbeRtt) => {
                self.start_refill();
            }
            _ => {}
        }
    }
}

/// `IsInflightTooHigh`.
pub(super) fn is_too_high(sample: &RateSample) -> bool {
    sample.lost as f64 > sample.tx_in_flight as f64 * LOSS_THRESHOLD
}

/// `InflightAtLoss`: the flight at which losses came to the threshold.
pub(super) fn inflight_at_loss(sample: &RateSample, newly_lost: u64) -> u64 {
    let inflight_before = sample.tx_in_flight.saturating_sub(newly_lost);
    let lost_before = sample.lost.saturating_sub(newly_lost);
    let room = LOSS_THRESHOLD * inflight_before as f64 - lost_before as f64;
    inflight_before + truncate::to_u64((room / (1.0 - LOSS_THRESHOLD)).max(0.0))
}

fn part(of_all: f64, bytes: u64) -> u64 {
    truncate::to_u64(of_all * bytes as f64)
}

/// The larger bound; None is unlimited.
fn wider<T: PartialOrd>(a: Option<T>, b: Option<T>) -> Option<T> {
    let (a, b) = (a?, b?);
    Some(if a > b { a } else { b })
}
