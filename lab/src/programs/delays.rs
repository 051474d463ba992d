//! Durations of a run. All are kept until its end, so that quantiles are exact.

use std::time::Duration;

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
        let at =
            |per_cent: usize| sorted.get((sorted.len() * per_cent).div_ceil(100).checked_sub(1)?).copied();
        Some(Spread { count: self.count(), median_ns: at(50)?, p95_ns: at(95)?, p99_ns: at(99)? })
    }
}

#[cfg(test)]
mod tests {
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
}
