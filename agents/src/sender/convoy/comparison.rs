//! The choice between the two regimes: a block of each in turn, at times that grow apart.

use std::time::Duration;

use hopwise_core::Instant;

use super::constants::{BLOCK, PATIENCE, WORTH};

/// The way in which bursts follow each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Regime {
    /// One whole aggregate, its ACK, the next one.
    #[default]
    Whole,
    /// Two fifths of an aggregate at a gap.
    Paced,
}

impl Regime {
    fn other(self) -> Regime {
        match self {
            Regime::Whole => Regime::Paced,
            Regime::Paced => Regime::Whole,
        }
    }
}

/// Up to so many hops one whole aggregate at a time fills the air, so that paced bursts bring nothing.
const SHORT_HOPS: u8 = 3;
/// The change from one regime to the other shows nothing of either.
const SETTLE: Duration = Duration::from_millis(500 * BLOCK.as_secs());
/// A trial in which the gap is still sought goes on for so long. A regime that was kept is left no earlier.
const MOST_SEEKING: Duration = Duration::from_secs(4 * BLOCK.as_secs());
/// The longest time until the next trial.
const MOST_WAIT: Duration = Duration::from_secs(512);

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Comparison {
    pub(super) regime: Regime,
    is_tried: bool,
    /// The goodput of either regime in its last blocks, in bytes per second; 0 before the first one.
    rates: [f64; 2],
    /// The time of the next trial.
    due: Option<Instant>,
    wait: Duration,
    /// The beginning of the regime under way, and of its block.
    since: Option<Instant>,
    block: Option<Instant>,
    bytes: u64,
}

impl Comparison {
    /// The aggregate is known, so that either regime can be had.
    pub(super) fn begin(&mut self, now: Instant, hops: Option<u8>) {
        *self = Comparison { wait: 2 * BLOCK, since: Some(now), ..Comparison::default() };
        self.due = hops.is_none_or(|hops| hops > SHORT_HOPS).then(|| now + BLOCK);
    }

    /// Returns whether no trial is to come: over so few hops whole bursts fill the air.
    pub(super) fn is_untried(&self) -> bool {
        self.since.is_some() && self.due.is_none()
    }

    /// A wire behind few hops leaves the air idle.
    pub(super) fn begin_over_wire(&mut self) {
        self.due = self.since.map(|since| since + BLOCK);
    }

    /// Data has arrived. `is_seeking` is true while the regime under way does not show yet what it can carry.
    pub(super) fn on_bytes(&mut self, now: Instant, bytes: u64, is_seeking: bool) {
        let Some(since) = self.since else { return };
        let spent = now.since(since);
        if spent < SETTLE || is_seeking && spent < MOST_SEEKING {
            return;
        }
        let Some(block) = self.block else {
            // Blocks last from one ACK to another, however few these are.
            self.block = Some(now);
            return;
        };
        self.bytes += bytes;
        let took = now.since(block);
        if took >= BLOCK {
            let rate = self.bytes as f64 / took.as_secs_f64();
            (self.block, self.bytes) = (Some(now), 0);
            self.on_block(now, rate);
        }
    }

    fn on_block(&mut self, now: Instant, rate: f64) {
        let [own, other] = self.rates_by(self.regime);
        // A rate that still rises shows nothing yet, and the first block has none before it.
        let is_rising = rate > WORTH * own;
        let smoothed = if is_rising || self.is_tried { rate } else { (own + rate) / 2.0 };
        self.rates[usize::from(self.regime == Regime::Paced)] = smoothed;
        let is_old = self.since.is_some_and(|since| now.since(since) > MOST_SEEKING);
        if !self.is_tried {
            let is_due = self.due.is_some_and(|due| due <= now) && !is_rising;
            if is_due || is_old && smoothed < other / WORTH {
                self.is_tried = true;
                self.turn(now);
            }
            return;
        }
        if is_rising {
            return;
        }
        let is_better = match self.regime {
            Regime::Paced => rate > WORTH * other,
            Regime::Whole => WORTH * rate > other,
        };
        self.is_tried = false;
        self.wait = (self.wait * PATIENCE).min(MOST_WAIT);
        self.due = Some(now + self.wait);
        if !is_better {
            self.turn(now);
        }
    }

    /// The goodput of this regime in its last blocks, and of the other one; 0 if it was never tried.
    fn rates_by(&self, regime: Regime) -> [f64; 2] {
        let [whole, paced] = self.rates;
        if regime == Regime::Whole { [whole, paced] } else { [paced, whole] }
    }

    fn turn(&mut self, now: Instant) {
        self.regime = self.regime.other();
        (self.since, self.block, self.bytes) = (Some(now), None, 0);
    }

    /// The data ran out: a block with a hole in it shows nothing.
    pub(super) fn on_break(&mut self) {
        (self.block, self.bytes) = (None, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A path of many hops on which whole bursts carry 1000 bytes a second, and paced ones are tried now.
    fn in_trial() -> (Comparison, Instant) {
        let (mut comparison, mut now) = (Comparison::default(), Instant::ZERO);
        comparison.begin(now, Some(8));
        carry(&mut comparison, &mut now, 15, 1_000);
        assert_eq!(comparison.regime, Regime::Whole, "the first second has none before it");
        carry(&mut comparison, &mut now, 10, 1_000);
        assert_eq!(comparison.regime, Regime::Paced);
        (comparison, now)
    }

    /// So many tenths of a second go by at this goodput.
    fn carry(comparison: &mut Comparison, now: &mut Instant, tenths: u32, bytes_per_s: u64) {
        for _ in 0..tenths {
            *now += Duration::from_millis(100);
            comparison.on_bytes(*now, bytes_per_s / 10, false);
        }
    }

    #[test]
    fn a_goodput_that_still_rises_is_not_judged() {
        let (mut comparison, mut now) = in_trial();
        carry(&mut comparison, &mut now, 15, 500);
        for bytes_per_s in [800, 1_100, 1_100] {
            assert_eq!(comparison.regime, Regime::Paced);
            carry(&mut comparison, &mut now, 10, bytes_per_s);
        }
        carry(&mut comparison, &mut now, 100, 1_100);
        assert_eq!(comparison.regime, Regime::Paced, "it carries a tenth more");
    }

    #[test]
    fn a_steady_goodput_that_is_no_better_is_left() {
        let (mut comparison, mut now) = in_trial();
        carry(&mut comparison, &mut now, 25, 1_040);
        assert_eq!(comparison.regime, Regime::Whole);
        carry(&mut comparison, &mut now, 200, 1_000);
        assert_eq!(comparison.regime, Regime::Whole, "the next trial comes after 32 s");
    }
}
