//! Round trips on both sides of a base station, measured by passing timestamps.

use std::time::Duration;

use hopwise_core::Instant;
use hopwise_core::agent::Rtt;
use hopwise_core::wire::Timestamps;

/// The sample in progress of one direction: a TSval and its time. One at a time is enough, and costs no memory.
#[derive(Debug, Default)]
pub(super) struct SampleInProgress {
    under_way: Option<(u32, Instant)>,
    pub(super) rtt: Rtt,
}

impl SampleInProgress {
    /// Notes a departing TSval; returns whether its echo is now awaited.
    fn went(&mut self, now: Instant, value: u32) -> bool {
        let begins = self.under_way.is_none();
        if begins {
            self.under_way = Some((value, now));
        }
        begins
    }

    /// Takes an echo. An echo of a later value also ends the wait, without a sample.
    fn came(&mut self, now: Instant, echo: u32) -> Option<Duration> {
        let (value, at) = self.under_way?;
        if (echo.wrapping_sub(value) as i32) < 0 {
            return None;
        }
        self.under_way = None;
        if echo != value {
            return None;
        }
        let sample = now.since(at);
        take(&mut self.rtt, sample);
        Some(sample)
    }
}

/// RFC 6298 §2.
fn take(rtt: &mut Rtt, sample: Duration) {
    match rtt.smoothed {
        None => {
            rtt.smoothed = Some(sample);
            rtt.variance = sample / 2;
        }
        Some(smoothed) => {
            rtt.variance = (3 * rtt.variance + smoothed.abs_diff(sample)) / 4;
            rtt.smoothed = Some((7 * smoothed + sample) / 8);
        }
    }
    rtt.latest = Some(sample);
    rtt.min = Some(rtt.min.map_or(sample, |min| min.min(sample)));
}

/// The round trips of both sides, and their sum as the fixed end sees it.
#[derive(Debug, Default)]
pub(super) struct SideRoundTrips {
    to_fixed: SampleInProgress,
    pub(super) to_mobile: SampleInProgress,
    pub(super) whole: Rtt,
}

impl SideRoundTrips {
    /// Returns whether it echoes the value that [`on_mobile`](RoundTrips::on_mobile) noted.
    pub(super) fn on_fixed(&mut self, now: Instant, timestamps: Timestamps) -> bool {
        let is_answer = self.to_fixed.came(now, timestamps.echo).is_some();
        self.to_mobile.went(now, timestamps.value);
        is_answer
    }

    /// Returns whether its echo is awaited from now on.
    pub(super) fn on_mobile(&mut self, now: Instant, timestamps: Timestamps) -> bool {
        if let Some(sample) = self.to_mobile.came(now, timestamps.echo) {
            take(&mut self.whole, sample + self.to_fixed.rtt.latest.unwrap_or_default());
        }
        self.to_fixed.went(now, timestamps.value)
    }

    /// A packet that waits at the base station makes no sample.
    pub(super) fn pause(&mut self) {
        self.to_fixed.under_way = None;
        self.to_mobile.under_way = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamps(value: u32, echo: u32) -> Timestamps {
        Timestamps { value, echo }
    }

    #[test]
    fn the_whole_round_trip_is_the_sum_of_both_parts() {
        let mut trips = SideRoundTrips::default();
        let at = Instant::from_millis;
        assert!(trips.on_mobile(at(0), stamps(500, 90)));
        assert!(trips.on_fixed(at(30), stamps(100, 500)));
        assert!(!trips.on_fixed(at(31), stamps(101, 500)));
        trips.on_mobile(at(50), stamps(520, 100));
        assert_eq!(trips.to_mobile.rtt.smoothed, Some(Duration::from_millis(20)));
        assert_eq!(trips.whole.latest, Some(Duration::from_millis(50)));
        assert_eq!(trips.whole.variance, Duration::from_millis(25));
    }

    #[test]
    fn an_echo_that_is_older_or_newer_is_no_sample() {
        let mut probe = SampleInProgress::default();
        probe.went(Instant::ZERO, u32::MAX);
        assert_eq!(probe.came(Instant::from_millis(5), u32::MAX - 1), None);
        assert_eq!(probe.came(Instant::from_millis(9), 3), None);
        assert_eq!(probe.came(Instant::from_millis(9), 3), None);
        probe.went(Instant::from_millis(10), 4);
        assert_eq!(probe.came(Instant::from_millis(19), 4), Some(Duration::from_millis(9)));
    }
}
