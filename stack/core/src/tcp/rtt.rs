//! Estimates round trips, and the wait for an ACK before a retransmission (RFC 6298).

use std::time::Duration;

use crate::Instant;
use crate::agent::Rtt;
use crate::tcp::config::{RtoConfig, RttMeasure};
use crate::time::{micros_u32, nanos};

/// After a lost SYN the first data waits at least this long (RFC 6298 §5.7).
const AFTER_SYN_TIMEOUT_NS: u64 = 3_000_000_000;
/// Longer samples count as this (18 minutes), so that sums fit whatever a peer echoes.
const LONGEST_SAMPLE_NS: u64 = 1 << 40;
/// In ticks, an RTO that doubled so often shows that the path has changed: the next sample replaces the estimate.
const BACKOFF_FORGETS: u8 = 4;

/// RFC 6298's G.
const GRANULARITY_NS: u64 = 1_000_000;

#[derive(Clone, Copy, Debug)]
enum Clock {
    Nanoseconds,
    /// As in ns-2 and BSD. The clock's first tick ends `tick - phase` after the run began.
    Ticks {
        tick_ns: u32,
        phase_ns: u32,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    Nothing,
    Estimate,
    /// There is an estimate, but the next sample replaces it.
    Stale,
    /// A timeout was needless: the next sample is a lower bound (RFC 4015).
    TooShort,
}

/// SRTT, RTTVAR and the resulting RTO, with its back-off kept apart.
#[derive(Debug)]
pub(crate) struct RttEstimator {
    /// Nanoseconds, or eighths of a tick.
    srtt: u64,
    /// Nanoseconds, or quarters of a tick.
    rttvar: u64,
    latest_ns: u64,
    /// `u64::MAX` until there is a sample.
    min_ns: u64,
    /// The RTO before floor, factor, back-off and ceiling.
    base_ns: u64,
    clock: Clock,
    floor_us: u32,
    ceiling_us: u32,
    pub(crate) factor: u8,
    /// The number of doublings of the RTO.
    pub(crate) backoff: u8,
    known: Known,
    /// The number of samples, modulo 256.
    samples: u8,
}

const _: () = assert!(size_of::<RttEstimator>() <= 64);

impl RttEstimator {
    pub(crate) fn new(config: &RtoConfig, phase_permille: u32) -> RttEstimator {
        let (clock, shortest) = match config.measure {
            RttMeasure::EveryAck => (Clock::Nanoseconds, Duration::from_nanos(GRANULARITY_NS)),
            RttMeasure::OneTimed { tick } => {
                assert!(!tick.is_zero(), "a clock that ticks");
                let phase_ns = short_nanos(tick * phase_permille / 1000);
                (Clock::Ticks { tick_ns: short_nanos(tick), phase_ns }, tick * 2)
            }
        };
        RttEstimator {
            srtt: 0,
            rttvar: 0,
            latest_ns: 0,
            min_ns: u64::MAX,
            base_ns: nanos(config.initial),
            clock,
            floor_us: micros_u32(config.min.max(shortest)).max(1),
            // A timer without length would run out at the same instant for ever.
            ceiling_us: micros_u32(config.max).max(1),
            factor: 1,
            backoff: 0,
            known: Known::Nothing,
            samples: 0,
        }
    }

    /// Takes a round trip of `rtt` that ends now. Its segment was sent once (Karn), or a timestamp tells the copies
    /// apart. Ends the back-off.
    pub(crate) fn on_sample(&mut self, now: Instant, rtt: Duration) {
        let rtt_ns = nanos(rtt).clamp(1, LONGEST_SAMPLE_NS);
        match self.clock {
            Clock::Nanoseconds => self.take_nanoseconds(rtt_ns),
            Clock::Ticks { tick_ns, phase_ns } => {
                let tick_ns = u64::from(tick_ns);
                let sent = now.0.saturating_sub(rtt_ns).saturating_add(u64::from(phase_ns));
                self.take_ticks((rtt_ns + sent % tick_ns) / tick_ns, tick_ns);
            }
        }
        self.latest_ns = rtt_ns;
        self.min_ns = self.min_ns.min(rtt_ns);
        self.known = Known::Estimate;
        self.samples = self.samples.wrapping_add(1);
        self.backoff = 0;
    }

    fn take_nanoseconds(&mut self, rtt_ns: u64) {
        match self.known {
            Known::Estimate => {
                self.rttvar = towards(self.rttvar, self.srtt.abs_diff(rtt_ns), 2);
                self.srtt = towards(self.srtt, rtt_ns, 3);
            }
            Known::TooShort => self.raise((rtt_ns, rtt_ns / 2), 2 * GRANULARITY_NS),
            Known::Nothing | Known::Stale => (self.srtt, self.rttvar) = (rtt_ns, rtt_ns / 2),
        }
        self.base_ns = self.srtt + GRANULARITY_NS.max(4 * self.rttvar);
    }

    fn take_ticks(&mut self, ticks: u64, tick_ns: u64) {
        let ticks = ticks.max(1);
        match self.known {
            Known::Estimate => {
                let srtt = self.srtt >> 3;
                self.srtt = (self.srtt + ticks - srtt).max(1);
                self.rttvar = (self.rttvar + ticks.abs_diff(srtt) - (self.rttvar >> 2)).max(1);
            }
            Known::TooShort => self.raise((ticks << 3, ticks << 1), 2 << 3),
            Known::Nothing | Known::Stale => (self.srtt, self.rttvar) = (ticks << 3, ticks << 1),
        }
        self.base_ns = ((self.srtt + (self.rttvar << 3)) >> 3) * tick_ns;
    }

    /// RFC 4015's last step: never below the old value plus two ticks.
    fn raise(&mut self, (srtt, rttvar): (u64, u64), two_ticks: u64) {
        self.srtt = srtt.max(self.srtt + two_ticks);
        self.rttvar = rttvar.max(self.rttvar);
    }

    /// Doubles the RTO after a timeout, up to its ceiling.
    pub(crate) fn on_timeout(&mut self) {
        if self.doubled_ns(self.backoff) < u64::from(self.ceiling_us) * 1_000 {
            self.backoff += 1;
        }
        let ticks = matches!(self.clock, Clock::Ticks { .. });
        if ticks && self.backoff >= BACKOFF_FORGETS && self.known == Known::Estimate {
            self.known = Known::Stale;
        }
    }

    /// A timeout was needless. The back-off stays until the next sample, which raises the estimate (RFC 4015).
    pub(crate) fn on_needless_timeout(&mut self) {
        if self.known == Known::Estimate {
            self.known = Known::TooShort;
        }
    }

    /// The handshake is over, but its SYN had timed out: the RTO is at least 3 s until the next sample (RFC 6298 §5.7).
    pub(crate) fn after_syn_timeout(&mut self) {
        self.base_ns = self.base_ns.max(AFTER_SYN_TIMEOUT_NS);
        self.backoff = 0;
    }

    /// The time to wait for an ACK.
    pub(crate) fn rto(&self) -> Duration {
        self.doubled(self.backoff)
    }

    /// The RTO without any back-off.
    pub(crate) fn base_rto(&self) -> Duration {
        self.doubled(0)
    }

    /// The instant at which an RTO that begins now runs out.
    pub(crate) fn expiry(&self, now: Instant) -> Instant {
        Instant(now.0.saturating_add(self.doubled_ns(self.backoff)))
    }

    fn doubled(&self, times: u8) -> Duration {
        Duration::from_nanos(self.doubled_ns(times))
    }

    fn doubled_ns(&self, times: u8) -> u64 {
        let floored = self.base_ns.max(u64::from(self.floor_us) * 1_000);
        let scaled = floored.saturating_mul(u64::from(self.factor)).saturating_mul(1 << times);
        scaled.min(u64::from(self.ceiling_us) * 1_000)
    }

    /// SRTT; `None` before the first sample.
    pub(crate) fn smoothed(&self) -> Option<Duration> {
        let srtt_ns = match self.clock {
            Clock::Nanoseconds => self.srtt,
            Clock::Ticks { tick_ns, .. } => self.srtt * u64::from(tick_ns) / 8,
        };
        self.once_known(srtt_ns)
    }

    /// RTTVAR; zero before the first sample.
    pub(crate) fn variance(&self) -> Duration {
        Duration::from_nanos(match self.clock {
            Clock::Nanoseconds => self.rttvar,
            Clock::Ticks { tick_ns, .. } => self.rttvar * u64::from(tick_ns) / 4,
        })
    }

    /// The newest sample, exact in every mode.
    pub(crate) fn latest(&self) -> Option<Duration> {
        self.once_known(self.latest_ns)
    }

    /// The newest sample and its number modulo 256, which tells it from an equal one before it.
    pub(crate) fn newest(&self) -> Option<(Duration, u8)> {
        Some((self.latest()?, self.samples))
    }

    /// The smallest sample since the connection began.
    pub(crate) fn min(&self) -> Option<Duration> {
        Some(self.min_ns).filter(|ns| *ns != u64::MAX).map(Duration::from_nanos)
    }

    /// The values that agents see.
    pub(crate) fn as_path_rtt(&self) -> Rtt {
        Rtt { latest: self.latest(), smoothed: self.smoothed(), variance: self.variance(), min: self.min() }
    }

    fn once_known(&self, ns: u64) -> Option<Duration> {
        (self.known != Known::Nothing).then_some(Duration::from_nanos(ns))
    }
}

/// Moves `from` towards `to` by 1/2^`shift` of the distance.
fn towards(from: u64, to: u64, shift: u32) -> u64 {
    if to >= from { from + ((to - from) >> shift) } else { from - ((from - to) >> shift) }
}

fn short_nanos(duration: Duration) -> u32 {
    u32::try_from(nanos(duration)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn modern(min_ms: u64) -> RttEstimator {
        let (min, max, initial, measure) = (ms(min_ms), ms(60_000), ms(1000), RttMeasure::EveryAck);
        RttEstimator::new(&RtoConfig { min, max, initial, measure }, 0)
    }

    fn ticking(phase_ms: u32) -> RttEstimator {
        let measure = RttMeasure::OneTimed { tick: ms(10) };
        let config = RtoConfig { min: ms(200), max: ms(60_000), initial: ms(3000), measure };
        RttEstimator::new(&config, phase_ms * 100)
    }

    fn sample(estimator: &mut RttEstimator, rtt_ms: u64) {
        estimator.on_sample(Instant::from_secs(100), ms(rtt_ms));
    }

    #[test]
    fn before_any_sample_the_initial_rto_holds_and_nothing_is_known() {
        let estimator = modern(1);
        assert_eq!(estimator.rto(), ms(1000));
        assert_eq!((estimator.smoothed(), estimator.latest(), estimator.min()), (None, None, None));
        assert_eq!(ticking(0).rto(), ms(3000));
    }

    #[test]
    fn a_ceiling_of_nothing_still_lets_time_pass() {
        let (zero, measure) = (Duration::ZERO, RttMeasure::EveryAck);
        let estimator = RttEstimator::new(&RtoConfig { min: zero, max: zero, initial: zero, measure }, 0);
        assert!(estimator.rto() > Duration::ZERO);
    }

    #[test]
    fn first_and_later_samples_follow_rfc_6298() {
        let mut estimator = modern(1);
        sample(&mut estimator, 80);
        assert_eq!((estimator.smoothed(), estimator.variance()), (Some(ms(80)), ms(40)));
        assert_eq!(estimator.rto(), ms(80 + 4 * 40));
        sample(&mut estimator, 160);
        // RTTVAR = 3/4 40 + 1/4 |80 - 160|, with the SRTT of before; SRTT = 7/8 80 + 1/8 160.
        assert_eq!((estimator.smoothed(), estimator.variance()), (Some(ms(90)), ms(50)));
        assert_eq!(estimator.rto(), ms(90 + 4 * 50));
        assert_eq!((estimator.latest(), estimator.min()), (Some(ms(160)), Some(ms(80))));
    }

    #[test]
    fn equal_samples_are_told_apart_by_their_numbers() {
        let mut estimator = modern(1);
        assert_eq!(estimator.newest(), None);
        for nth in [1, 2] {
            sample(&mut estimator, 80);
            assert_eq!(estimator.newest(), Some((ms(80), nth)));
        }
        (0..255).for_each(|_| sample(&mut estimator, 80));
        assert_eq!(estimator.newest(), Some((ms(80), 1)), "they are counted modulo 256");
    }

    #[test]
    fn a_steady_rtt_keeps_the_granularity_above_it() {
        let mut estimator = modern(1);
        for _ in 0..200 {
            sample(&mut estimator, 50);
        }
        assert_eq!(estimator.rto(), ms(51));
    }

    #[test]
    fn timeouts_double_up_to_the_ceiling_and_a_sample_ends_that() {
        let mut estimator = modern(200);
        sample(&mut estimator, 10);
        let mut seen = Vec::new();
        for _ in 0..12 {
            seen.push(estimator.rto().as_millis());
            estimator.on_timeout();
        }
        assert_eq!(seen, [200, 400, 800, 1600, 3200, 6400, 12_800, 25_600, 51_200, 60_000, 60_000, 60_000]);
        assert_eq!((estimator.backoff, estimator.base_rto()), (9, ms(200)));
        sample(&mut estimator, 10);
        assert_eq!((estimator.backoff, estimator.rto()), (0, ms(200)));
    }

    #[test]
    fn after_a_needless_timeout_the_next_sample_is_the_least_that_is_believed() {
        for (rtt_ms, srtt_ms, rttvar_ms) in [(300, 300, 150), (60, 102, 50)] {
            let mut estimator = modern(200);
            sample(&mut estimator, 100);
            estimator.on_timeout();
            estimator.on_needless_timeout();
            assert_eq!(estimator.rto(), ms(600), "doubled until then");
            sample(&mut estimator, rtt_ms);
            assert_eq!((estimator.smoothed(), estimator.variance()), (Some(ms(srtt_ms)), ms(rttvar_ms)));
            assert_eq!(estimator.rto(), ms(srtt_ms + 4 * rttvar_ms));
            sample(&mut estimator, srtt_ms);
            assert_eq!(estimator.smoothed(), Some(ms(srtt_ms)), "and the others are averaged as ever");
        }
    }

    #[test]
    fn ticks_are_raised_after_a_needless_timeout_too() {
        let mut estimator = ticking(0);
        sample(&mut estimator, 300);
        estimator.on_needless_timeout();
        sample(&mut estimator, 100);
        assert_eq!((estimator.srtt, estimator.rttvar), (240 + 16, 60));
    }

    #[test]
    fn the_factor_multiplies_after_the_floor() {
        let mut estimator = modern(200);
        estimator.factor = 5;
        sample(&mut estimator, 10);
        assert_eq!(estimator.rto(), ms(1000));
        estimator.on_timeout();
        assert_eq!((estimator.rto(), estimator.base_rto()), (ms(2000), ms(1000)));
    }

    #[test]
    fn after_a_lost_syn_data_waits_three_seconds_until_the_next_sample() {
        let mut estimator = modern(200);
        estimator.on_timeout();
        estimator.on_timeout();
        estimator.after_syn_timeout();
        assert_eq!(estimator.rto(), ms(3000));
        sample(&mut estimator, 10);
        estimator.after_syn_timeout();
        assert_eq!(estimator.rto(), ms(3000), "even if the SYN's answer gave a sample");
        sample(&mut estimator, 10);
        assert_eq!(estimator.rto(), ms(200));
    }

    #[test]
    fn a_tick_counts_when_it_ends_within_the_round_trip() {
        // Sent at 105 ms, back at 132 ms: the ticks at 110, 120 and 130 ms lie between.
        let mut estimator = ticking(0);
        estimator.on_sample(Instant::from_millis(132), ms(27));
        assert_eq!(estimator.smoothed(), Some(ms(30)));
        // With phase 7 ms the ticks end at 113 and 123 ms.
        let mut estimator = ticking(7);
        estimator.on_sample(Instant::from_millis(132), ms(27));
        assert_eq!(estimator.smoothed(), Some(ms(20)));
        assert_eq!(estimator.latest(), Some(ms(27)));
    }

    #[test]
    fn ticks_are_smoothed_in_whole_eighths_and_quarters() {
        let mut estimator = ticking(0);
        sample(&mut estimator, 300);
        assert_eq!((estimator.srtt, estimator.rttvar, estimator.base_ns), (240, 60, 900_000_000));
        sample(&mut estimator, 500);
        // SRTT 240 + (50 - 30); RTTVAR 60 + (20 - 15); the RTO is (260 + 8 * 65) / 8 = 97.5 ticks, cut to 97.
        assert_eq!((estimator.srtt, estimator.rttvar, estimator.rto()), (260, 65, ms(970)));
    }

    #[test]
    fn a_round_trip_within_one_tick_counts_as_one() {
        let mut estimator = ticking(0);
        estimator.on_sample(Instant::from_millis(105), ms(3));
        assert_eq!((estimator.smoothed(), estimator.rto()), (Some(ms(10)), ms(200)));
    }

    #[test]
    fn with_ticks_the_fourth_timeout_makes_the_next_sample_the_first() {
        let mut estimator = ticking(0);
        sample(&mut estimator, 300);
        for (timeouts, known) in [(3, Known::Estimate), (1, Known::Stale)] {
            (0..timeouts).for_each(|_| estimator.on_timeout());
            assert_eq!(estimator.known, known);
        }
        assert_eq!(estimator.smoothed(), Some(ms(300)), "agents keep the old one meanwhile");
        sample(&mut estimator, 1000);
        assert_eq!((estimator.smoothed(), estimator.variance()), (Some(ms(1000)), ms(500)));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn the_rto_stays_within_its_bounds_whatever_is_measured(
            steps in prop::collection::vec((any::<u64>(), any::<u64>(), any::<bool>()), 1..50),
            bounds in any::<(u64, u64, u64)>(),
            ticks: bool,
        ) {
            let [min, max, initial] = [bounds.0, bounds.1, bounds.2].map(Duration::from_nanos);
            let measure =
                if ticks { RttMeasure::OneTimed { tick: ms(10) } } else { RttMeasure::EveryAck };
            let mut estimator = RttEstimator::new(&RtoConfig { min, max, initial, measure }, 300);
            let top = Duration::from_micros(micros_u32(max).into());
            let bottom = Duration::from_micros(micros_u32(min).into()).min(top);
            for (now, rtt, timeout) in steps {
                if timeout {
                    estimator.on_timeout();
                } else {
                    estimator.on_sample(Instant(now), Duration::from_nanos(rtt));
                }
                prop_assert!(estimator.rto() >= bottom && estimator.rto() <= top);
                prop_assert!(estimator.base_rto() <= estimator.rto());
                prop_assert!(estimator.min() <= estimator.latest());
            }
        }
    }
}
