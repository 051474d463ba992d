//! What agents that hold share: one deadline, and an average of the gaps between segments.

use std::time::Duration;

use hopwise_core::Instant;
use hopwise_core::agent::{AckDecided, AckVerdict, Basis, By, Rule, Why};

/// The longest hold that a setting may name: what the ledger allows anyway.
pub(super) const LONGEST_MS: u64 = 490;

/// When held data is acknowledged at the latest, by the agent's own rule.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Hold {
    due: Option<Instant>,
}

impl Hold {
    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Set once: a hold that runs already keeps its end.
    pub(super) fn begin(&mut self, until: Instant) {
        self.due.get_or_insert(until);
    }

    pub(super) fn restart(&mut self, until: Instant) {
        self.due = Some(until);
    }

    pub(super) fn end(&mut self) {
        self.due = None;
    }

    /// Any ACK but a repeat says what was held.
    pub(super) fn on_ack(&mut self, ack: &AckDecided) {
        if ack.by != By::Repeat {
            self.end();
        }
    }

    /// What agents say at a deadline that is nothing but the end of a hold.
    pub(super) fn on_deadline(&mut self, now: Instant, rule: Rule) -> AckVerdict {
        let why = Why::plain(rule);
        if self.take_due(now) { AckVerdict::Now(why) } else { AckVerdict::Hold(why) }
    }

    /// Whether it has run out. It is over then.
    pub(super) fn take_due(&mut self, now: Instant) -> bool {
        self.due.take_if(|due| *due <= now).is_some()
    }
}

/// A longer silence says nothing of the path.
const LONGEST_GAP_NS: u64 = 600_000_000_000;

/// An exponentially weighted average of gaps.
#[derive(Clone, Copy, Debug)]
pub(super) struct GapAverage {
    ns: Option<u64>,
    /// What a new gap counts, in thousandths.
    weight_milli: u64,
}

impl GapAverage {
    pub(super) fn new(weight_milli: u32) -> GapAverage {
        GapAverage { ns: None, weight_milli: u64::from(weight_milli) }
    }

    pub(super) fn take(&mut self, gap: Option<Duration>) {
        let Some(gap_ns) = gap.map(nanos) else { return };
        let before = self.ns.unwrap_or(gap_ns);
        self.ns = Some((before * (1_000 - self.weight_milli) + gap_ns * self.weight_milli) / 1_000);
    }

    /// So many thousandths of the average, or nothing before the first gap.
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
    use crate::testkit::receiver::Seat;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn the_first_gap_is_the_average_and_later_ones_count_their_weight() {
        let mut average = GapAverage::new(200);
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
        let mut average = GapAverage::new(999);
        average.take(Some(Duration::MAX));
        average.take(Some(Duration::MAX));
        assert_eq!(average.times_milli(1_000), Some(Duration::from_secs(600)));
        assert!(average.times_milli(u64::MAX).is_some());
    }

    #[test]
    fn a_hold_is_over_once() {
        let mut hold = Hold::default();
        hold.begin(Instant(5));
        hold.begin(Instant(9));
        assert!(!hold.take_due(Instant(4)));
        assert!(hold.take_due(Instant(5)) && !hold.take_due(Instant(5)));
        hold.restart(Instant(7));
        hold.restart(Instant(8));
        assert_eq!(hold.due(), Some(Instant(8)));
    }

    /// The basis of each hold of segments that come at these times.
    fn basis(spec: &str, at_ms: &[u64]) -> Vec<Option<Basis>> {
        let mut seat = Seat::new(spec);
        let mut found = Vec::new();
        for at in at_ms {
            seat.now = Instant::from_millis(*at);
            if seat.play_line("in").starts_with("hold") {
                found.push(seat.basis());
            }
        }
        found
    }

    #[test]
    fn a_hold_that_gaps_made_names_them_and_one_that_is_as_long_as_may_be_does_not() {
        let mean = |us| Some(Basis::MeanGap { us });
        let shortest = |us| Some(Basis::ShortestGap { us });
        assert_eq!(basis("ada", &[0, 10, 20]), [None, mean(10_000), mean(10_000)]);
        assert_eq!(basis("ada:hold=11ms", &[0, 10]), [None, None]);
        // The first two segments get an ACK at once, since so few wait at the start.
        assert_eq!(basis("daa", &[0, 10, 20, 30, 40]).last(), Some(&mean(10_000)));
        assert_eq!(basis("aad", &[0, 10, 40]), [None, shortest(10_000), shortest(10_000)]);
        assert_eq!(basis("aad:hold=12ms", &[0, 10]), [None, None]);
        assert_eq!(basis("adw:least=5", &[0, 10, 40]), [None, shortest(10_000), shortest(10_000)]);
    }

    #[test]
    fn dca_names_the_mean_gap_at_the_segment_that_began_the_hold() {
        let found = basis("dca", &(0..40).map(|nth| nth * 10).collect::<Vec<_>>());
        assert!(found.contains(&Some(Basis::MeanGap { us: 10_000 })), "{found:?}");
        assert!(basis("dca:hold=1ms", &[0, 10, 20, 30]).iter().all(Option::is_none));
    }
}
