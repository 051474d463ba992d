//! Random amounts, and the durations of a run. All durations are kept until its end, so that quantiles are exact. The
//! draws for one purpose come in order from a stream of their own: the nth think time does not depend on earlier draws
//! for other purposes.

use std::time::Duration;

use hopwise_air::random::NumberStream;
use hopwise_air::truncate;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default)]
pub(super) struct Delays {
    nanos: Vec<u64>,
}

/// Durations by nearest rank: the shortest that this share of all does not exceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spread {
    /// The number of durations.
    pub count: u64,
    /// Half of all, in nanoseconds.
    pub median_ns: u64,
    /// 95 % of all, in nanoseconds.
    pub p95_ns: u64,
    /// 99 % of all, in nanoseconds.
    pub p99_ns: u64,
}

impl Delays {
    pub(super) fn add(&mut self, took: Duration) {
        self.nanos.push(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
    }

    pub(super) fn count(&self) -> u64 {
        self.nanos.len() as u64
    }

    pub(super) fn total_ns(&self) -> u64 {
        self.nanos.iter().sum()
    }

    pub(super) fn longest_ns(&self) -> u64 {
        self.nanos.iter().copied().max().unwrap_or(0)
    }

    /// None while there is no duration.
    pub(super) fn spread(&self) -> Option<Spread> {
        let mut sorted = self.nanos.clone();
        sorted.sort_unstable();
        let at = |per_cent| nearest_rank(&sorted, per_cent);
        Some(Spread { count: self.count(), median_ns: at(50)?, p95_ns: at(95)?, p99_ns: at(99)? })
    }
}

/// The least of sorted values that this share of them does not exceed.
pub(super) fn nearest_rank<T: Copy>(sorted: &[T], per_cent: usize) -> Option<T> {
    sorted.get((sorted.len() * per_cent).div_ceil(100).checked_sub(1)?).copied()
}

/// An amount that is fixed or drawn: bytes, or nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// Always this amount.
    Fixed(u64),
    /// Exponential, with this mean.
    Mean(u64),
    /// Evenly from the first to the second.
    Between(u64, u64),
}

impl Amount {
    /// No bytes, or no time.
    pub const NONE: Amount = Amount::Fixed(0);

    /// Draws the next amount. A fixed one takes nothing from the stream.
    pub fn draw(self, stream: &mut NumberStream) -> u64 {
        match self {
            Amount::Fixed(amount) => amount,
            Amount::Mean(mean) => truncate::to_u64(mean as f64 * -libm::log(1.0 - stream.unit())),
            Amount::Between(least, most) => least + truncate::to_u64(stream.unit() * (most - least) as f64),
        }
    }
}

#[cfg(test)]
mod tests {
    use hopwise_air::random::Purpose;

    use super::*;

    fn of(millis: impl IntoIterator<Item = u64>) -> Delays {
        let mut delays = Delays::default();
        millis.into_iter().for_each(|ms| delays.add(Duration::from_millis(ms)));
        delays
    }

    #[test]
    fn quantiles_are_durations_that_occurred() {
        let spread = |millis: &[u64]| {
            let spread = of(millis.iter().copied()).spread()?;
            Some([spread.median_ns, spread.p95_ns, spread.p99_ns].map(|ns| ns / 1_000_000))
        };
        assert_eq!(spread(&[]), None);
        assert_eq!(spread(&[7]), Some([7, 7, 7]));
        assert_eq!(spread(&[9, 1]), Some([1, 9, 9]));
        let hundred: Vec<u64> = (1..=100).rev().collect();
        assert_eq!(spread(&hundred), Some([50, 95, 99]));
        let more: Vec<u64> = (1..=101).collect();
        assert_eq!(spread(&more), Some([51, 96, 100]));
    }

    #[test]
    fn sums_are_those_of_all() {
        let delays = of([3, 1, 2]);
        assert_eq!((delays.count(), delays.total_ns(), delays.longest_ns()), (3, 6_000_000, 3_000_000));
    }

    #[test]
    fn drawn_amounts_have_their_mean_and_keep_to_their_bounds() {
        let mut stream = NumberStream::new(1, 0, Purpose::Traffic);
        let mut mean = |amount: Amount| {
            let drawn: Vec<u64> = (0..100_000).map(|_| amount.draw(&mut stream)).collect();
            let [least, most] = [drawn.iter().min(), drawn.iter().max()].map(|bound| *bound.expect("some"));
            (drawn.iter().sum::<u64>() as f64 / drawn.len() as f64, least, most)
        };
        assert_eq!(mean(Amount::Fixed(7)), (7.0, 7, 7));
        let (of_mean, ..) = mean(Amount::Mean(1_000_000));
        assert!((990_000.0..1_010_000.0).contains(&of_mean), "{of_mean}");
        let (between, least, most) = mean(Amount::Between(100, 300));
        assert!((199.0..201.0).contains(&between) && least >= 100 && most <= 300, "{between} {least} {most}");
    }
}
