//! The state machine (§5.3).

use std::time::Duration;

use hopwise_core::Instant;

use super::model::is_too_high;
use super::{AckFacts, Bbr, LEAST_SEGMENTS};

/// §5.3.1.3: the number of ACKs with losses in a round that ends Startup.
const STARTUP_LOSSES: u32 = 6;
/// The rounds after which Drain ends whatever is in flight.
const DRAIN_ROUNDS: u32 = 3;
/// The most rounds between two probes, so that standard senders get their share.
const MOST_ROUNDS: u64 = 63;
const PROBE_RTT_TIME: Duration = Duration::from_millis(200);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum BbrState {
    #[default]
    Startup,
    Drain,
    Down,
    Cruise,
    Refill,
    Up,
    ProbeRtt,
}

impl BbrState {
    pub(super) fn pacing_gain(self) -> f64 {
        match self {
            BbrState::Startup => 2.77,
            BbrState::Drain => 0.5,
            BbrState::Down => 0.9,
            BbrState::Cruise | BbrState::Refill | BbrState::ProbeRtt => 1.0,
            BbrState::Up => 1.25,
        }
    }

    pub(super) fn cwnd_gain(self) -> f64 {
        match self {
            BbrState::Up => 2.25,
            BbrState::ProbeRtt => 0.5,
            _ => 2.0,
        }
    }

    fn is_probe_bw(self) -> bool {
        matches!(self, BbrState::Down | BbrState::Cruise | BbrState::Refill | BbrState::Up)
    }

    /// For gauges.
    pub(super) fn number(self) -> u64 {
        match self {
            BbrState::Startup => 0,
            BbrState::Drain => 1,
            BbrState::Down => 2,
            BbrState::Cruise => 3,
            BbrState::Refill => 4,
            BbrState::Up => 5,
            BbrState::ProbeRtt => 6,
        }
    }
}

/// The part of the cycle in which the data of these ACKs was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum AckPhase {
    #[default]
    Init,
    Refilling,
    Starting,
    Feedback,
    Stopping,
}

/// The probes for bandwidth.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BandwidthProbe {
    cycle_began: Instant,
    wait: Duration,
    pub(super) rounds_since_up: u32,
    up_rounds: u32,
    up_acked: u64,
    /// The bytes for which the long-term bound grows by a segment; None while it does not.
    acked_per_segment: Option<u64>,
    /// ACKs tell of data that was sent in a probe.
    pub(super) is_sample: bool,
    /// The last probe lost too much.
    pub(super) was_too_high: bool,
    was_precautionary: bool,
    drain_began: u32,
}

/// §5.3.4.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ProbeRtt {
    /// The flight is low enough; the probe ends at this time.
    ends_at: Option<Instant>,
    is_round_over: bool,
}

impl Bbr {
    pub(super) fn update_state(&mut self, ack: &AckFacts) {
        self.check_startup_done(ack);
        self.check_drain_done(ack);
        self.update_cycle(ack);
        let is_due = self.min_rtt.take(ack.now, ack.rtt);
        self.check_probe_rtt(ack, is_due);
        self.loss.advance(&ack.sample);
    }

    fn check_startup_done(&mut self, ack: &AckFacts) {
        if self.state != BbrState::Startup {
            return;
        }
        let loses_much = self.loss.has_begun
            && ack.in_fast_recovery
            && self.loss.events >= STARTUP_LOSSES
            && is_too_high(&ack.sample);
        if loses_much {
            self.undo.state = Some(BbrState::Startup);
            self.full.ever = true;
            self.longterm = Some(self.bdp(1.0, ack.mss).max(self.loss.inflight_latest));
        }
        if self.full.ever {
            self.state = BbrState::Drain;
            self.probe.drain_began = self.round.count;
        }
    }

    fn check_drain_done(&mut self, ack: &AckFacts) {
        if self.state != BbrState::Drain {
            return;
        }
        let is_empty = ack.flight <= self.full_pipe(self.bw(), ack.mss);
        if is_empty || self.round.count > self.probe.drain_began + DRAIN_ROUNDS {
            self.start_down(ack.now);
        }
    }

    pub(super) fn start_down(&mut self, now: Instant) {
        self.loss.reset();
        self.probe.acked_per_segment = None;
        // §5.3.3.8: both bounds of the wait differ from probe to probe, so that flows do not probe together.
        let random = self.random.next_u64();
        self.probe.rounds_since_up = u32::from(random & 1 == 1);
        self.probe.wait = Duration::from_secs(2) + Duration::from_micros((random >> 1) % 1_000_000);
        self.probe.cycle_began = now;
        self.ack_phase = AckPhase::Stopping;
        self.start_round();
        self.state = BbrState::Down;
    }

    pub(super) fn start_refill(&mut self) {
        self.short = super::Short::default();
        (self.probe.up_rounds, self.probe.up_acked) = (0, 0);
        self.probe.was_precautionary = false;
        self.ack_phase = AckPhase::Refilling;
        self.start_round();
        self.state = BbrState::Refill;
    }

    fn start_up(&mut self, ack: &AckFacts) {
        self.ack_phase = AckPhase::Starting;
        self.start_round();
        self.full.begin(ack.sample.rate);
        self.state = BbrState::Up;
        self.raise_slope(ack.mss);
    }

    /// `UpdateProbeBWCyclePhase`.
    fn update_cycle(&mut self, ack: &AckFacts) {
        if !self.full.ever || self.adapt_long_term(ack) {
            return;
        }
        let state = self.state;
        match state {
            BbrState::Down if self.is_time_to_probe(ack) => self.start_refill(),
            BbrState::Down if self.is_time_to_cruise(ack) => self.state = BbrState::Cruise,
            BbrState::Cruise if self.is_time_to_probe(ack) => self.start_refill(),
            BbrState::Refill if self.round.has_begun => {
                self.probe.is_sample = true;
                self.start_up(ack);
            }
            BbrState::Up if self.is_time_to_go_down(ack) => {
                self.probe.was_too_high = false;
                self.start_down(ack.now);
            }
            _ => {}
        }
    }

    /// `AdaptLongTermModel`. Returns whether the state changed.
    fn adapt_long_term(&mut self, ack: &AckFacts) -> bool {
        let round_began = self.round.has_begun;
        if self.ack_phase == AckPhase::Starting && round_began {
            self.ack_phase = AckPhase::Feedback;
        }
        if self.ack_phase == AckPhase::Stopping && round_began {
            self.probe.is_sample = false;
            self.ack_phase = AckPhase::Init;
            if self.state.is_probe_bw() && !ack.sample.app_limited {
                self.max_bw.advance();
            }
            if self.state.is_probe_bw() && self.probe.was_precautionary && !self.probe.was_too_high {
                self.start_refill();
                return true;
            }
        }
        if let Some(longterm) = self.longterm
            && !is_too_high(&ack.sample)
        {
            self.longterm = Some(longterm.max(ack.sample.tx_in_flight));
            if self.state == BbrState::Up {
                self.raise_long_term(ack);
            }
        }
        false
    }

    /// `ProbeInflightLongtermUpward`.
    fn raise_long_term(&mut self, ack: &AckFacts) {
        let (Some(longterm), Some(per_segment)) = (self.longterm, self.probe.acked_per_segment) else {
            return;
        };
        if !ack.is_cwnd_limited || self.window(ack.mss) < longterm {
            return;
        }
        self.probe.up_acked += ack.sample.newly_acked;
        let segments = self.probe.up_acked / per_segment;
        self.probe.up_acked -= segments * per_segment;
        self.longterm = Some(longterm + segments * ack.mss);
        if self.round.has_begun {
            self.raise_slope(ack.mss);
        }
    }

    /// `RaiseInflightLongtermSlope`.
    fn raise_slope(&mut self, mss: u64) {
        let segments_this_round = 1_u64 << self.probe.up_rounds;
        self.probe.up_rounds = (self.probe.up_rounds + 1).min(30);
        self.probe.acked_per_segment = Some((self.window(mss) / segments_this_round).max(mss));
    }

    fn is_time_to_probe(&self, ack: &AckFacts) -> bool {
        let rounds = (self.target(ack.mss) / ack.mss).min(MOST_ROUNDS);
        ack.now > self.probe.cycle_began + self.probe.wait || u64::from(self.probe.rounds_since_up) >= rounds
    }

    fn is_time_to_cruise(&self, ack: &AckFacts) -> bool {
        let leaves_room = self.with_headroom(ack.mss).is_none_or(|most| ack.flight <= most);
        leaves_room && ack.flight <= self.full_pipe(self.max_bw.highest(), ack.mss)
    }

    fn is_time_to_go_down(&mut self, ack: &AckFacts) -> bool {
        if self.probe.was_too_high && self.longterm.is_some_and(|longterm| ack.flight >= longterm) {
            self.probe.was_precautionary = true;
            return true;
        }
        if ack.is_cwnd_limited && self.longterm.is_some_and(|longterm| self.window(ack.mss) >= longterm) {
            self.full.begin(ack.sample.rate);
            return false;
        }
        self.full.now
    }

    /// `ProbeRTTCwnd`.
    pub(super) fn probe_rtt_cwnd(&self, mss: u64) -> u64 {
        self.bdp(BbrState::ProbeRtt.cwnd_gain(), mss).max(LEAST_SEGMENTS * mss)
    }

    fn check_probe_rtt(&mut self, ack: &AckFacts, is_due: bool) {
        if self.state != BbrState::ProbeRtt && is_due && !self.idle_restart {
            self.save_cwnd(ack.mss);
            self.state = BbrState::ProbeRtt;
            self.probe_rtt = ProbeRtt::default();
            self.ack_phase = AckPhase::Stopping;
            self.start_round();
        }
        if self.state == BbrState::ProbeRtt {
            self.handle_probe_rtt(ack);
        }
        self.idle_restart &= ack.sample.delivered == 0;
    }

    fn handle_probe_rtt(&mut self, ack: &AckFacts) {
        // Slow samples of this state tell nothing of the path.
        self.rates.mark_limited(ack.flight);
        if self.probe_rtt.ends_at.is_none() {
            if ack.flight <= self.probe_rtt_cwnd(ack.mss) {
                self.probe_rtt = ProbeRtt { ends_at: Some(ack.now + PROBE_RTT_TIME), is_round_over: false };
                self.start_round();
            }
            return;
        }
        self.probe_rtt.is_round_over |= self.round.has_begun;
        if self.probe_rtt.is_round_over {
            self.check_probe_rtt_done(ack.now, ack.mss);
        }
    }

    fn check_probe_rtt_done(&mut self, now: Instant, mss: u64) {
        if self.probe_rtt.ends_at.is_none_or(|at| now <= at) {
            return;
        }
        self.min_rtt.probed(now);
        self.restore_cwnd(mss);
        self.short = super::Short::default();
        if self.full.ever {
            self.start_down(now);
            self.state = BbrState::Cruise;
        } else {
            self.state = BbrState::Startup;
        }
    }

    /// §5.4: an idle flow goes on at the rate of its model.
    pub(super) fn restart_from_idle(&mut self, now: Instant, mss: u64) {
        self.idle_restart = true;
        self.extra.restart(now);
        if self.state.is_probe_bw() {
            self.set_pacing(1.0);
        } else if self.state == BbrState::ProbeRtt {
            self.check_probe_rtt_done(now, mss);
        }
    }
}
