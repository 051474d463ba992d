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
    Column,
}

impl Regime {
    fn other(self) -> Regime {
        match self {
            Regime::Whole => Regime::Column,
            Regime::Column => Regime::Whole,
        }
    }
}

/// Up to so many hops every station hears every other, so that a column brings nothing.
const SHORT_HOPS: u8 = 3;
/// The change from one regime to the other shows nothing of either.
const SETTLE: Duration = Duration::from_millis(500 * BLOCK.as_secs());
/// A trial in which the gap is still sought goes on for so long. A regime that was kept is left no earlier.
const MOST_SEEKING: Duration = Duration::from_secs(4 * BLOCK.as_secs());
/// The longest time until the next trial.
const MOST_WAIT: Duration = Duration::from_secs(512);

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Trial {
    regime: Regime,
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

impl Trial {
    pub(super) fn regime(&self) -> Regime {
        self.regime
    }

    /// The aggregate is known, so that either regime can be had.
    pub(super) fn begin(&mut self, now: Instant, hops: Option<u8>) {
        *self = Trial { wait: 2 * BLOCK, since: Some(now), ..Trial::default() };
        self.due = hops.is_none_or(|hops| hops > SHORT_HOPS).then(|| now + BLOCK);
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
        if !self.is_tried {
            let smoothed = if own > 0.0 { (own + rate) / 2.0 } else { rate };
            self.set_rate(smoothed);
            let is_worse =
                smoothed < other / WORTH && self.since.is_some_and(|since| now.since(since) > MOST_SEEKING);
            if self.due.is_some_and(|due| due <= now) || is_worse {
                self.is_tried = true;
                self.turn(now);
            }
            return;
        }
        self.set_rate(rate);
        let is_better = match self.regime {
            Regime::Column => rate > WORTH * other,
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
        let [whole, column] = self.rates;
        if regime == Regime::Whole { [whole, column] } else { [column, whole] }
    }

    fn set_rate(&mut self, rate: f64) {
        self.rates[usize::from(self.regime == Regime::Column)] = rate;
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
