//! Words about a radio that is behind real time.

use std::time::Duration;

use hopwise_air::Lateness;
use hopwise_core::Instant;

/// The pause between two warnings.
const SAY_EVERY: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub(super) struct Lag {
    say_at: Instant,
}

impl Lag {
    /// It is time for a warning, if there is one.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.say_at <= now
    }

    /// `worst` is the worst since the last warning.
    pub(super) fn say(&mut self, worst: Duration, all: Lateness, now: Instant) {
        let (ms, left_out_s) = (worst.as_secs_f64() * 1e3, all.left_out.as_secs_f64());
        tracing::warn!(
            "behind real time by up to {ms:.0} ms ({} times so far, {left_out_s:.1} s left out)",
            all.times
        );
        self.say_at = now + SAY_EVERY;
    }
}
