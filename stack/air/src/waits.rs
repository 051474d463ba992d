//! The waits of packets, in memory that does not grow with their number.

use hopwise_core::narrow::as_usize;

use crate::airtime::AirLoad;

/// Waits of fewer microseconds have a bucket of their own each.
const EXACT: u64 = 64;
/// The buckets of each doubling after that: a bucket is no wider than 1/32 of its values.
const EACH: u64 = 32;

/// A number of waits: their mean is exact, and a quantile lies within 1/64 of the true one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WaitHistogram {
    buckets: Vec<u32>,
    count: u64,
    total_ns: u64,
}

impl WaitHistogram {
    #[inline]
    pub(crate) fn add(&mut self, ns: u64) {
        let bucket = bucket(ns / 1_000);
        if bucket >= self.buckets.len() {
            self.buckets.resize(bucket + 1, 0);
        }
        self.buckets[bucket] += 1;
        self.count += 1;
        self.total_ns += ns;
    }

    /// Adds all waits of `others`.
    pub fn join(&mut self, others: &WaitHistogram) {
        if self.buckets.len() < others.buckets.len() {
            self.buckets.resize(others.buckets.len(), 0);
        }
        self.buckets.iter_mut().zip(&others.buckets).for_each(|(sum, count)| *sum += count);
        self.count += others.count;
        self.total_ns += others.total_ns;
    }

    /// The number of waits.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// None while there is no wait.
    pub fn mean_ns(&self) -> Option<f64> {
        (self.count > 0).then(|| self.total_ns as f64 / self.count as f64)
    }

    /// The wait that this percentage does not exceed, by nearest rank.
    pub fn quantile_ns(&self, per_cent: u64) -> Option<f64> {
        let rank = (self.count * per_cent).div_ceil(100).max(1);
        let mut before = 0;
        let place = self.buckets.iter().position(|count| {
            before += u64::from(*count);
            before >= rank
        });
        place.map(|place| middle_us(place as u64) * 1e3)
    }
}

/// The waits of a station's packets, from the queue of its machine until they are first on the air.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueWaits([WaitHistogram; AirLoad::ALL.len()]);

impl QueueWaits {
    #[inline]
    pub(crate) fn add(&mut self, load: AirLoad, ns: u64) {
        self.0[load as usize].add(ns);
    }

    /// The waits of packets of this kind.
    pub fn of(&self, load: AirLoad) -> &WaitHistogram {
        &self.0[load as usize]
    }
}

fn bucket(us: u64) -> usize {
    if us < EXACT {
        return as_usize(us);
    }
    let doublings = u64::from(us.ilog2()) - u64::from(EXACT.ilog2());
    let within = (us >> (doublings + 1)) - EACH;
    as_usize(EXACT + doublings * EACH + within)
}

/// The middle of a bucket.
fn middle_us(bucket: u64) -> f64 {
    if bucket < EXACT {
        return bucket as f64 + 0.5;
    }
    let (doublings, within) = ((bucket - EXACT) / EACH, (bucket - EXACT) % EACH);
    let width = 1_u64 << (doublings + 1);
    ((EACH + within) * width) as f64 + width as f64 / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_wait_has_the_bucket_whose_middle_is_near_it() {
        let mut last = 0;
        for us in (0..5_000).chain((0..40).map(|nth| 3 << nth)).chain([u64::MAX / 1_000]) {
            let place = bucket(us);
            let away = (middle_us(place as u64) - us as f64).abs();
            assert!(away <= (us as f64 / 64.0).max(0.5), "{us}: {away}");
            assert!(place >= last || us == 3, "{us}");
            last = place;
        }
    }

    #[test]
    fn means_are_exact_and_quantiles_near() {
        let mut waits = WaitHistogram::default();
        assert_eq!((waits.mean_ns(), waits.quantile_ns(95)), (None, None));
        (1..=1_000_u64).rev().for_each(|ms| waits.add(ms * 1_000_000));
        assert_eq!((waits.count(), waits.mean_ns()), (1_000, Some(500.5e6)));
        for (per_cent, wanted) in [(1, 10e6), (50, 500e6), (95, 950e6), (100, 1e9)] {
            let found = waits.quantile_ns(per_cent).expect("a wait");
            assert!((found / wanted - 1.0).abs() < 1.0 / 60.0, "{per_cent} %: {found}");
        }
        let mut more = WaitHistogram::default();
        more.add(5_000_000_000);
        waits.join(&more);
        assert_eq!(waits.count(), 1_001);
        assert!(waits.quantile_ns(100).is_some_and(|longest| longest > 4.9e9));
    }
}
