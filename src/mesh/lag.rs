//! The time that a medium in real time keeps: its priority, and words about a radio that is behind.

use std::time::Duration;

use hopwise_air::Live;
use hopwise_core::{Instant, Machine};
use hopwise_host::live_by_the_clock;

/// The pause between two warnings.
const SAY_EVERY: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub(super) struct Lag {
    say_at: Instant,
}

impl Lag {
    /// Asks for a priority in real time, on this thread.
    pub(super) fn begin() -> Lag {
        if let Err(error) = live_by_the_clock() {
            tracing::warn!(%error, "no real-time priority: on a busy machine the radio falls behind");
        }
        Lag::default()
    }

    /// Says by how much the radios were late at the worst since the last warning, once a second.
    pub(super) fn look<M: Machine>(&mut self, live: &mut Live<M>, now: Instant) {
        if self.say_at > now {
            return;
        }
        let Some(worst) = live.take_worst() else { return };
        let all = live.lateness();
        let (ms, left_out_s) = (worst.as_secs_f64() * 1e3, all.left_out.as_secs_f64());
        tracing::warn!(
            "behind real time by up to {ms:.0} ms ({} times so far, {left_out_s:.1} s left out)",
            all.times
        );
        self.say_at = now + SAY_EVERY;
    }
}
