//! The one place that reads a clock, and the settings of a thread that depends on it.

use std::io;
use std::num::NonZeroU64;
#[cfg(test)]
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use hopwise_core::Instant;

use crate::sys;

/// Counts nanoseconds since it was started; copies agree.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    began: std::time::Instant,
    began_wall: SystemTime,
    /// The nanoseconds that a clock of tests shows in place of the system's time.
    #[cfg(test)]
    set_to: Option<&'static AtomicU64>,
}

impl Clock {
    /// A clock that shows zero now.
    #[expect(clippy::disallowed_methods, reason = "machines are told the time that is read here")]
    pub fn start() -> Clock {
        Clock {
            began: std::time::Instant::now(),
            began_wall: SystemTime::now(),
            #[cfg(test)]
            set_to: None,
        }
    }

    /// A clock that shows zero until a test [advances](Clock::advance) it. A test whose result depends on the time that
    /// a turn takes must not depend on the machine's speed.
    #[cfg(test)]
    pub(crate) fn stopped() -> Clock {
        Clock { set_to: Some(Box::leak(Box::default())), ..Clock::start() }
    }

    /// Lets time pass on a stopped clock and all its copies.
    #[cfg(test)]
    pub(crate) fn advance(&self, by: Duration) {
        let set_to = self.set_to.expect("a stopped clock");
        set_to.fetch_add(by.as_nanos().try_into().expect("less than 500 years"), Ordering::Relaxed);
    }

    /// Never decreases; on Linux this is CLOCK_MONOTONIC.
    pub fn now(&self) -> Instant {
        #[cfg(test)]
        if let Some(set_to) = self.set_to {
            return Instant::ZERO + Duration::from_nanos(set_to.load(Ordering::Relaxed));
        }
        Instant::ZERO + self.began.elapsed()
    }

    /// The time of day now, since 1970, with all steps of the system's clock.
    #[expect(clippy::disallowed_methods, reason = "machines are told the time that is read here")]
    pub fn wall() -> Duration {
        SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
    }

    /// The time of day at which the clock was started, since 1970. Captures add it to an [`Instant`]. It ignores later
    /// steps of the system's clock: a capture's times never jump.
    pub fn wall_offset(&self) -> Duration {
        self.began_wall.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
    }
}

/// Makes this thread wake up on time: before all threads without a deadline, and without the usual 50 µs of the kernel.
/// An error names the setting that failed; a setting that worked stays.
pub fn live_by_the_clock() -> io::Result<()> {
    rustix::thread::set_current_timer_slack(NonZeroU64::new(1))?;
    sys::schedule_first()
}
