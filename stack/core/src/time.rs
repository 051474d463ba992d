//! Time of machines: nanoseconds since the run began, given by the driver.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};
use std::time::Duration;

/// A point in time. Never read from a clock here: 584 years fit, and arithmetic saturates at [`Instant::FAR`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(pub u64);

impl Instant {
    /// The beginning of the run.
    pub const ZERO: Instant = Instant(0);
    /// Later than any event: "never".
    pub const FAR: Instant = Instant(u64::MAX);

    /// Microseconds since the beginning of the run.
    pub const fn from_micros(us: u64) -> Instant {
        Instant(us.saturating_mul(1_000))
    }

    /// Milliseconds since the beginning of the run.
    pub const fn from_millis(ms: u64) -> Instant {
        Instant(ms.saturating_mul(1_000_000))
    }

    /// Seconds since the beginning of the run.
    pub const fn from_secs(s: u64) -> Instant {
        Instant(s.saturating_mul(1_000_000_000))
    }

    /// The time from `earlier` to this instant; zero if `earlier` is later.
    pub const fn since(self, earlier: Instant) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// The whole milliseconds from `earlier` to this instant, at most 49 days.
    pub(crate) fn millis_since(self, earlier: Instant) -> u32 {
        u32::try_from(self.0.saturating_sub(earlier.0) / 1_000_000).unwrap_or(u32::MAX)
    }

    /// The instant that many microseconds later.
    pub(crate) const fn after_micros(self, us: u32) -> Instant {
        Instant(self.0.saturating_add(us as u64 * 1_000))
    }

    /// The instant that many milliseconds later.
    pub(crate) const fn after_millis(self, ms: u32) -> Instant {
        Instant(self.0.saturating_add(ms as u64 * 1_000_000))
    }

    /// Whole milliseconds since the beginning of the run, rounded down.
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000_000
    }

    /// The same as 32 bits, which wrap after 49 days: the clock of timestamps.
    pub(crate) const fn millis_u32(self) -> u32 {
        crate::narrow::low_u32(self.as_millis())
    }
}

/// An instant or never, as small as an instant: connections and their agents hold many of them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Moment(u64);

impl Moment {
    /// Before every instant, like `None`.
    pub const NEVER: Moment = Moment(0);

    /// This instant.
    pub const fn at(instant: Instant) -> Moment {
        Moment(instant.0.saturating_add(1))
    }

    /// The instant, if there is one.
    pub const fn get(self) -> Option<Instant> {
        if self.0 == 0 { None } else { Some(Instant(self.0 - 1)) }
    }
}

impl fmt::Debug for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

impl Add<Duration> for Instant {
    type Output = Instant;

    fn add(self, rhs: Duration) -> Instant {
        Instant(self.0.saturating_add(nanos(rhs)))
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, rhs: Duration) {
        *self = *self + rhs;
    }
}

impl Sub<Duration> for Instant {
    type Output = Instant;

    fn sub(self, rhs: Duration) -> Instant {
        Instant(self.0.saturating_sub(nanos(rhs)))
    }
}

/// Seconds with nine decimals, as traces print it.
impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Instant::FAR {
            return f.write_str("never");
        }
        write!(f, "{}.{:09}", self.0 / 1_000_000_000, self.0 % 1_000_000_000)
    }
}

/// The duration in nanoseconds, at most 584 years. [`Duration::as_nanos`] computes in 128 bits, which no machine has.
pub const fn nanos(duration: Duration) -> u64 {
    duration.as_secs().saturating_mul(1_000_000_000).saturating_add(duration.subsec_nanos() as u64)
}

/// The duration in whole microseconds, `u64::MAX` for a longer one.
pub fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// The duration in whole milliseconds, `u64::MAX` for a longer one.
pub fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The duration in whole microseconds, at most 71 minutes.
pub(crate) fn micros_u32(duration: Duration) -> u32 {
    u32::try_from(nanos(duration) / 1_000).unwrap_or(u32::MAX)
}

/// Prints a time as `12.345 ms`.
#[derive(Clone, Copy, Debug)]
pub struct Millis(u128);

impl Millis {
    /// Of a duration.
    pub fn of(time: Duration) -> Millis {
        Millis(time.as_micros())
    }

    /// Of microseconds.
    pub fn of_micros(micros: u32) -> Millis {
        Millis(micros.into())
    }
}

impl fmt::Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03} ms", self.0 / 1000, self.0 % 1000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn far_stays_far_whatever_is_added() {
        assert_eq!(Instant::FAR + Duration::from_secs(1), Instant::FAR);
        assert_eq!(Instant(5).since(Instant(9)), Duration::ZERO);
    }

    #[test]
    fn prints_seconds_with_nine_decimals() {
        assert_eq!(Instant::from_micros(1_500_001).to_string(), "1.500001000");
    }
}
