//! How long a round trip takes, and how long to wait for an ACK before sending again (RFC 6298).

use std::time::Duration;

use crate::Instant;
use crate::agent::Rtt;

/// After a lost SYN the first data waits at least this long (RFC 6298 §5.7).
const AFTER_SYN_TIMEOUT_NS: u64 = 3_000_000_000;
/// Longer samples count as this (18 minutes), so that sums of them fit whatever a peer echoes.
const LONGEST_SAMPLE_NS: u64 = 1 << 40;
/// Finer sharing of one round trip among samples would round every change to nothing.
const MOST_SHARING_SHIFT: u32 = 10;
/// With ticks, an RTO doubled so often shows that the estimate is of another path: the next sample replaces it.
const BACKOFF_FORGETS: u8 = 4;
/// 2^42 µs is beyond every ceiling.
const MOST_BACKOFF: u8 = 42;

/// How round trips are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RttMode {
    /// In nanoseconds; `granularity` is RFC 6298's G.
    Modern { granularity: Duration },
    /// As ns-2 and BSD did: in whole ticks of a clock whose first tick ends `tick - phase` after the run began,
    /// with SRTT kept in eighths and RTTVAR in quarters of a tick.
    Ticks { tick: Duration, phase: Duration },
}

/// `initial` holds until the first sample. Kept in whole microseconds, at most 71 minutes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RtoBounds {
    pub(crate) min: Duration,
    pub(crate) max: Duration,
    pub(crate) initial: Duration,
}

#[derive(Clone, Copy, Debug)]
enum Clock {
    Nanoseconds { granularity: u32 },
    Ticks { tick_ns: u32, phase_ns: u32 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    Nothing,
    Estimate,
    /// There is an estimate, but the next sample starts afresh.
    Stale,
}

/// SRTT, RTTVAR and the RTO that follows from them, with its back-off kept apart.
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
    factor: u8,
    /// The RTO is doubled this often.
    backoff: u8,
    known: Known,
}

const _: () = assert!(size_of::<RttEstimator>() <= 64);

impl RttEstimator {
    pub(crate) fn new(mode: RttMode, bounds: RtoBounds) -> RttEstimator {
        let (clock, shortest) = match mode {
            RttMode::Modern { granularity } => {
                (Clock::Nanoseconds { granularity: short_nanos(granularity) }, granularity)
            }
            RttMode::Ticks { tick, phase } => {
                assert!(!tick.is_zero(), "a clock that ticks");
                (Clock::Ticks { tick_ns: short_nanos(tick), phase_ns: short_nanos(phase) }, tick * 2)
            }
        };
        RttEstimator {
            srtt: 0,
            rttvar: 0,
            latest_ns: 0,
            min_ns: u64::MAX,
            base_ns: nanos(bounds.initial),
            clock,
            floor_us: micros(bounds.min.max(shortest)).max(1),
            ceiling_us: micros(bounds.max),
            factor: 1,
            backoff: 0,
            known: Known::Nothing,
        }
    }

    /// Every RTO is multiplied by this after the floor, and before the ceiling; 0 counts as 1.
    pub(crate) fn set_factor(&mut self, factor: u8) {
        self.factor = factor.max(1);
    }

    /// A round trip of `rtt` ended now, over a segment that was sent once (Karn) or that a timestamp tells
    /// apart. Ends the back-off.
    pub(crate) fn on_sample(&mut self, now: Instant, rtt: Duration) {
        self.on_sample_among(now, rtt, 1);
    }

    /// The same where about `samples_per_rtt` are taken in each round trip: each counts for its share, so that
    /// the estimate remembers as far back as with one (RFC 7323 appendix G). Ticks know no sharing.
    pub(crate) fn on_sample_among(&mut self, now: Instant, rtt: Duration, samples_per_rtt: u32) {
        let rtt_ns = nanos(rtt).clamp(1, LONGEST_SAMPLE_NS);
        match self.clock {
            Clock::Nanoseconds { granularity } => {
                let sharing = samples_per_rtt.max(1).next_power_of_two().trailing_zeros();
                self.take_nanoseconds(rtt_ns, u64::from(granularity), sharing.min(MOST_SHARING_SHIFT));
            }
            Clock::Ticks { tick_ns, phase_ns } => {
                let tick_ns = u64::from(tick_ns);
                let sent = now.0.saturating_sub(rtt_ns).saturating_add(u64::from(phase_ns));
                self.take_ticks((rtt_ns + sent % tick_ns) / tick_ns, tick_ns);
            }
        }
        self.latest_ns = rtt_ns;
        self.min_ns = self.min_ns.min(rtt_ns);
        self.known = Known::Estimate;
        self.backoff = 0;
    }

    fn take_nanoseconds(&mut self, rtt_ns: u64, granularity: u64, sharing: u32) {
        if self.known == Known::Estimate {
            self.rttvar = towards(self.rttvar, self.srtt.abs_diff(rtt_ns), 2 + sharing);
            self.srtt = towards(self.srtt, rtt_ns, 3 + sharing);
        } else {
            (self.srtt, self.rttvar) = (rtt_ns, rtt_ns / 2);
        }
        self.base_ns = self.srtt + granularity.max(4 * self.rttvar);
    }

    fn take_ticks(&mut self, ticks: u64, tick_ns: u64) {
        let ticks = ticks.max(1);
        if self.known == Known::Estimate {
            let srtt = self.srtt >> 3;
            self.srtt = (self.srtt + ticks - srtt).max(1);
            self.rttvar = (self.rttvar + ticks.abs_diff(srtt) - (self.rttvar >> 2)).max(1);
        } else {
            (self.srtt, self.rttvar) = (ticks << 3, ticks << 1);
        }
        self.base_ns = ((self.srtt + (self.rttvar << 3)) >> 3) * tick_ns;
    }

    /// The RTO ran out: it doubles, until it reaches its ceiling.
    pub(crate) fn on_timeout(&mut self) {
        if self.rto() < self.ceiling() {
            self.backoff += 1;
        }
        let ticks = matches!(self.clock, Clock::Ticks { .. });
        if ticks && self.backoff >= BACKOFF_FORGETS && self.known == Known::Estimate {
            self.known = Known::Stale;
        }
    }

    /// The handshake is over and its SYN had timed out: the RTO is at least 3 s until the next sample
    /// (RFC 6298 §5.7).
    pub(crate) fn after_syn_timeout(&mut self) {
        self.base_ns = self.base_ns.max(AFTER_SYN_TIMEOUT_NS);
        self.backoff = 0;
    }

    /// How often the RTO is doubled.
    pub(crate) fn backoff(&self) -> u8 {
        self.backoff
    }

    pub(crate) fn reset_backoff(&mut self) {
        self.backoff = 0;
    }

    /// Takes timeouts back that proved spurious: `backoff` is what [`backoff`](RttEstimator::backoff) said
    /// before them.
    pub(crate) fn restore_backoff(&mut self, backoff: u8) {
        self.backoff = backoff.min(MOST_BACKOFF);
    }

    /// How long to wait for an ACK.
    pub(crate) fn rto(&self) -> Duration {
        self.doubled(self.backoff)
    }

    /// The same as if no timeout had happened.
    pub(crate) fn base_rto(&self) -> Duration {
        self.doubled(0)
    }

    fn doubled(&self, times: u8) -> Duration {
        let floored = self.base_ns.max(u64::from(self.floor_us) * 1_000);
        let scaled = floored.saturating_mul(u64::from(self.factor)).saturating_mul(1 << times);
        Duration::from_nanos(scaled).min(self.ceiling())
    }

    fn ceiling(&self) -> Duration {
        Duration::from_micros(self.ceiling_us.into())
    }

    /// SRTT; `None` before the first sample.
    pub(crate) fn smoothed(&self) -> Option<Duration> {
        let srtt_ns = match self.clock {
            Clock::Nanoseconds { .. } => self.srtt,
            Clock::Ticks { tick_ns, .. } => self.srtt * u64::from(tick_ns) / 8,
        };
        self.once_known(srtt_ns)
    }

    /// RTTVAR; zero before the first sample.
    pub(crate) fn variance(&self) -> Duration {
        Duration::from_nanos(match self.clock {
            Clock::Nanoseconds { .. } => self.rttvar,
            Clock::Ticks { tick_ns, .. } => self.rttvar * u64::from(tick_ns) / 4,
        })
    }

    /// The newest sample, exact in every mode.
    pub(crate) fn latest(&self) -> Option<Duration> {
        self.once_known(self.latest_ns)
    }

    /// The smallest sample since the connection began, or since [`restart_min`](RttEstimator::restart_min).
    pub(crate) fn min(&self) -> Option<Duration> {
        Some(self.min_ns).filter(|ns| *ns != u64::MAX).map(Duration::from_nanos)
    }

    /// The path is another one: what was shortest on the old one says nothing.
    pub(crate) fn restart_min(&mut self) {
        self.min_ns = u64::MAX;
    }

    /// What agents are shown.
    pub(crate) fn as_path_rtt(&self) -> Rtt {
        Rtt { latest: self.latest(), smoothed: self.smoothed(), variance: self.variance(), min: self.min() }
    }

    fn once_known(&self, ns: u64) -> Option<Duration> {
        (self.known != Known::Nothing).then_some(Duration::from_nanos(ns))
    }
}

/// `from`, moved by 1/2^`shift` of the way to `to`.
fn towards(from: u64, to: u64, shift: u32) -> u64 {
    if to >= from { from + ((to - from) >> shift) } else { from - ((from - to) >> shift) }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn short_nanos(duration: Duration) -> u32 {
    u32::try_from(duration.as_nanos()).unwrap_or(u32::MAX)
}

fn micros(duration: Duration) -> u32 {
    u32::try_from(duration.as_micros()).unwrap_or(u32::MAX)
}
