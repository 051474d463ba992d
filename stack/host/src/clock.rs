//! The one place that reads a clock, and what a thread needs that lives by it.

use std::io;
use std::num::NonZeroU64;
use std::time::{Duration, SystemTime};

use hopwise_core::Instant;

use crate::sys;

/// Counts nanoseconds since it was made; copies agree.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    began: std::time::Instant,
    began_wall: SystemTime,
}

impl Clock {
    #[expect(clippy::disallowed_methods, reason = "machines are told the time that is read here")]
    pub fn start() -> Clock {
        Clock { began: std::time::Instant::now(), began_wall: SystemTime::now() }
    }

    /// Never decreases; on Linux this is CLOCK_MONOTONIC.
    pub fn now(&self) -> Instant {
        Instant::ZERO + self.began.elapsed()
    }

    /// The time of day at which the clock was started, after 1970: what captures add to an [`Instant`]. Steps of
    /// the system's clock since then are not followed, so that a capture's times never jump.
    pub fn wall_offset(&self) -> Duration {
        self.began_wall.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
    }
}

/// Lets this thread wake up on time: before all threads that have no deadline, and without the 50 µs that the kernel
/// usually adds. What a machine does not allow is told, and the rest holds.
pub fn live_by_the_clock() -> io::Result<()> {
    rustix::thread::set_current_timer_slack(NonZeroU64::new(1))?;
    sys::schedule_first()
}
