//! An average of the gaps between segments.

use std::time::Duration;

use hopwise_core::agent::Basis;

/// A longer silence counts as this: it says nothing of the path.
const LONGEST_GAP_NS: u64 = 600_000_000_000;

/// An exponentially weighted average of gaps.
#[derive(Clone, Copy, Debug)]
pub(super) struct GapAverage {
    ns: Option<u64>,
    /// The weight of a new gap, in thousandths.
    weight_milli: u64,
}

impl GapAverage {
    /// The average keeps this many thousandths of itself at each gap.
    pub(super) fn new(memory_milli: u32) -> GapAverage {
        GapAverage { ns: None, weight_milli: 1_000 - u64::from(memory_milli) }
    }

    pub(super) fn take(&mut self, gap: Option<Duration>) {
        let Some(gap_ns) = gap.map(nanos) else { return };
        let before = self.ns.unwrap_or(gap_ns);
        self.ns = Some((before * (1_000 - self.weight_milli) + gap_ns * self.weight_milli) / 1_000);
    }

    /// This many thousandths of the average; `None` before the first gap.
    pub(super) fn times_milli(&self, milli: u64) -> Option<Duration> {
        self.ns.map(|ns| Duration::from_nanos(scaled(ns, milli)))
    }

    pub(super) fn basis(&self) -> Option<Basis> {
        self.ns.map(|ns| Basis::MeanGap { us: u32::try_from(ns / 1_000).unwrap_or(u32::MAX) })
    }

    pub(super) fn gauge(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        sink("gap_average_us", self.ns.unwrap_or(0) / 1_000);
    }
}

pub(super) fn nanos(gap: Duration) -> u64 {
    u64::try_from(gap.as_nanos()).unwrap_or(u64::MAX).min(LONGEST_GAP_NS)
}

fn scaled(ns: u64, milli: u64) -> u64 {
    ns.saturating_mul(milli) / 1_000
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn the_first_gap_is_the_average_and_later_ones_count_their_weight() {
        let mut average = GapAverage::new(800);
        assert_eq!(average.times_milli(1_000), None);
        average.take(None);
        assert_eq!(average.times_milli(1_000), None);
        average.take(Some(ms(10)));
        assert_eq!(average.times_milli(1_000), Some(ms(10)));
        average.take(Some(ms(20)));
        assert_eq!(average.times_milli(1_500), Some(ms(18)));
    }

    #[test]
    fn a_gap_of_ages_neither_overflows_nor_counts_for_more_than_minutes() {
        let mut average = GapAverage::new(1);
        average.take(Some(Duration::MAX));
        average.take(Some(Duration::MAX));
        assert_eq!(average.times_milli(1_000), Some(Duration::from_secs(600)));
        assert!(average.times_milli(u64::MAX).is_some());
    }
}
