//! The time of day beside the clock of rows, which never jumps.

use std::time::Duration;

use hopwise_host::Clock;

use super::nanos;

/// Two readings of clocks that lie further apart were interrupted.
const AT_ONCE: Duration = Duration::from_millis(1);
const MOST_READINGS: u32 = 10;

/// The time of day at which a clock showed zero. It changes when somebody sets the time of day.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wall {
    /// Nanoseconds since 1970.
    pub(super) zero_ns: u64,
    /// A change by more than that counts.
    bound_ns: u64,
}

impl Wall {
    /// Steps of half an interval or less move no row.
    pub(super) fn new(clock: &Clock, every_ns: u64) -> Wall {
        Wall { zero_ns: at_zero(clock), bound_ns: every_ns / 2 }
    }

    /// Returns whether somebody has set the time of day since the last call.
    pub(super) fn was_set(&mut self, clock: &Clock) -> bool {
        self.moves_to(at_zero(clock))
    }

    fn moves_to(&mut self, zero_ns: u64) -> bool {
        let was_set = zero_ns.abs_diff(self.zero_ns) > self.bound_ns;
        if was_set {
            self.zero_ns = zero_ns;
        }
        was_set
    }
}

fn at_zero(clock: &Clock) -> u64 {
    let mut found = 0;
    for _ in 0..MOST_READINGS {
        let before = clock.now();
        let wall = Clock::wall();
        let after = clock.now();
        found = nanos(wall).saturating_sub(after.0);
        if after.since(before) < AT_ONCE {
            break;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jump_counts_once_in_either_direction_and_a_small_step_does_not() {
        let hour_ns = 3_600_000_000_000;
        let mut wall = Wall { zero_ns: 2 * hour_ns, bound_ns: 50_000_000 };
        let times = [2 * hour_ns + 40_000_000, hour_ns, hour_ns, 3 * hour_ns, 3 * hour_ns - 1];
        let jumps = times.map(|zero_ns| wall.moves_to(zero_ns));
        assert_eq!((jumps, wall.zero_ns), ([false, true, false, true, false], 3 * hour_ns));
        let (clock, mut wall) = (Clock::start(), Wall::new(&Clock::start(), u64::MAX));
        assert!(!wall.was_set(&clock) && wall.zero_ns > 0);
    }
}
