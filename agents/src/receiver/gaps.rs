//! The gaps between segments: their average, and the shortest of them with the timer that `adw` and `aad` make of it.

use std::time::Duration;

use hopwise_core::Instant;
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

fn nanos(gap: Duration) -> u64 {
    u64::try_from(gap.as_nanos()).unwrap_or(u64::MAX).min(LONGEST_GAP_NS)
}

fn scaled(ns: u64, milli: u64) -> u64 {
    ns.saturating_mul(milli) / 1_000
}

/// A shorter gap only says that segments shared a read, not how fast the path is.
const SHORTEST_NS: u64 = 50_000;
/// A gap is slow from three times the shortest on.
const SLOW: u64 = 3;

/// The slowness of a gap against the shortest one: 1 − θ as a fraction of two whole numbers. It has θ = (r + 2)/3 with
/// r = (base − gap)/base, and from three bases on r is −2. Hence 1 − θ = gap/(3·base), at most 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slowness {
    gap_ns: u64,
    slow_ns: u64,
}

impl Slowness {
    /// This fraction of `bytes`.
    pub(super) fn of(self, bytes: u32) -> u32 {
        let share = u64::from(bytes) * self.gap_ns / self.slow_ns;
        u32::try_from(share).unwrap_or(bytes).min(bytes)
    }
}

/// The shortest gap between in-order segments, and the slowness of the newest gap.
#[derive(Debug)]
pub(super) struct QuickGaps {
    /// The shortest gap is forgotten after this time, if at all.
    memory: Option<Duration>,
    base_ns: Option<u64>,
    /// The time from which on `base_ns` counts.
    since: Instant,
    newest: Option<Slowness>,
}

impl QuickGaps {
    pub(super) fn new(memory: Option<Duration>) -> QuickGaps {
        QuickGaps { memory, base_ns: None, since: Instant::ZERO, newest: None }
    }

    pub(super) fn take(&mut self, now: Instant, gap: Option<Duration>) {
        let Some(gap) = gap else { return };
        let gap_ns = nanos(gap).max(SHORTEST_NS);
        if self.memory.is_some_and(|memory| now.since(self.since) >= memory) {
            self.base_ns = None;
        }
        if self.base_ns.is_none() {
            self.since = now;
        }
        let base_ns = self.base_ns.unwrap_or(gap_ns).min(gap_ns);
        self.base_ns = Some(base_ns);
        let slow_ns = SLOW * base_ns;
        self.newest = Some(Slowness { gap_ns: gap_ns.min(slow_ns), slow_ns });
    }

    /// The slowness of the newest gap.
    pub(super) fn slowness(&self) -> Option<Slowness> {
        self.newest
    }

    /// The timer: 3·(¾ base + ¼ gap).
    pub(super) fn timer(&self, gap: Option<Duration>) -> Option<Duration> {
        let base_ns = self.base_ns?;
        let gap_ns = gap.map_or(base_ns, |gap| nanos(gap).max(SHORTEST_NS));
        Some(Duration::from_nanos((9 * base_ns + 3 * gap_ns) / 4))
    }

    pub(super) fn basis(&self) -> Option<Basis> {
        self.base_ns.map(|ns| Basis::ShortestGap { us: u32::try_from(ns / 1_000).unwrap_or(u32::MAX) })
    }

    pub(super) fn gauge(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        sink("shortest_gap_us", self.base_ns.unwrap_or(0) / 1_000);
    }
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

    #[test]
    fn slowness_is_a_third_at_the_shortest_gap_and_whole_from_three_of_them_on() {
        let mut gaps = QuickGaps::new(None);
        assert_eq!(gaps.slowness(), None);
        let mut slowness = |gap| {
            gaps.take(Instant::ZERO, gap);
            gaps.slowness().expect("a gap").of(900)
        };
        assert_eq!(slowness(Some(ms(10))), 300);
        assert_eq!(slowness(Some(ms(15))), 450);
        assert_eq!(slowness(Some(ms(29))), 870);
        assert_eq!((slowness(Some(ms(30))), slowness(Some(ms(500)))), (900, 900));
        assert_eq!(slowness(Some(ms(5))), 300);
        assert_eq!(slowness(Some(Duration::ZERO)), 300, "50 µs at least");
        assert_eq!(slowness(Some(Duration::from_micros(100))), 600);
    }

    #[test]
    fn the_timer_is_three_times_a_mean_that_leans_on_the_shortest_gap() {
        let mut gaps = QuickGaps::new(None);
        assert_eq!(gaps.timer(Some(ms(1))), None);
        gaps.take(Instant::ZERO, Some(ms(10)));
        assert_eq!(gaps.timer(Some(ms(10))), Some(ms(30)));
        gaps.take(Instant::ZERO, Some(ms(20)));
        assert_eq!(gaps.timer(Some(ms(20))), Some(Duration::from_micros(37_500)));
    }

    #[test]
    fn the_shortest_gap_is_forgotten_after_a_second_where_it_is_to_be() {
        let [mut lasting, mut passing] = [None, Some(ms(1_000))].map(QuickGaps::new);
        for gaps in [&mut lasting, &mut passing] {
            gaps.take(Instant::from_millis(10), Some(ms(1)));
            gaps.take(Instant::from_millis(1_009), Some(ms(20)));
            assert_eq!(gaps.slowness().expect("a gap").of(900), 900);
            gaps.take(Instant::from_millis(1_010), Some(ms(20)));
        }
        assert_eq!(lasting.slowness().expect("a gap").of(900), 900);
        assert_eq!(passing.slowness().expect("a gap").of(900), 300);
    }
}
