//! Datagrams at a rate, as their receiver sees them: the number that arrived, the time that each took, and the change
//! of this time from one to the next. The sender alone decides which of them are measured, by its own clock.

use std::collections::BTreeSet;

use hopwise_core::Instant;

use super::delays::nearest_rank;

/// A datagram begins with its number and, in nanoseconds of its sender's clock, the time at which it left.
pub(super) const STAMP_BYTES: usize = 16;

/// The beginning of a datagram. One that is not measured left [at no time](Instant::FAR).
pub(super) fn stamp(number: u64, left: Instant) -> [u8; STAMP_BYTES] {
    (u128::from(number) << 64 | u128::from(left.0)).to_be_bytes()
}

#[derive(Debug, Default)]
pub(super) struct Arrivals {
    /// The numbers of the datagrams that arrived: a copy is no arrival.
    numbers: BTreeSet<u64>,
    /// Arrival less leaving, each by its own clock, in nanoseconds.
    transits: Vec<i64>,
    /// The jitter now, and the sum of it after each arrival.
    jitter_ns: (f64, f64),
}

impl Arrivals {
    pub(super) fn add(&mut self, now: Instant, start: [u8; STAMP_BYTES]) {
        let [number, left] = [0, 8].map(|at| u64::from_be_bytes(std::array::from_fn(|nth| start[at + nth])));
        if left == Instant::FAR.0 || !self.numbers.insert(number) {
            return;
        }
        let transit = now.0.wrapping_sub(left).cast_signed();
        if let Some(before) = self.transits.last() {
            self.jitter_ns.0 += (transit.abs_diff(*before) as f64 - self.jitter_ns.0) / 16.0;
            self.jitter_ns.1 += self.jitter_ns.0;
        }
        self.transits.push(transit);
    }

    /// The number of arrivals. From the second on also, in milliseconds, the mean jitter, and the mean, the median and
    /// the 95 % quantile of the transits: they have the difference of the two clocks in them.
    pub(super) fn seen(&self) -> (u64, Option<[f64; 4]>) {
        let mut sorted = self.transits.clone();
        sorted.sort_unstable();
        let (count, sum) = (sorted.len() as f64, sorted.iter().map(|ns| *ns as f64).sum::<f64>());
        let rank = |per_cent| nearest_rank(&sorted, per_cent).map_or(0.0, |ns| ns as f64);
        let times = [self.jitter_ns.1 / (count - 1.0), sum / count, rank(50), rank(95)];
        (sorted.len() as u64, (count > 1.0).then(|| times.map(|ns| ns / 1e6)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a receiver saw of datagrams: each with its number, and the milliseconds of leaving and arrival.
    fn seen(datagrams: &[(u64, u64, u64)]) -> (u64, Option<[f64; 4]>) {
        let mut arrivals = Arrivals::default();
        for (number, left, came) in datagrams {
            arrivals.add(Instant::from_millis(*came), stamp(*number, Instant::from_millis(*left)));
        }
        arrivals.seen()
    }

    #[test]
    fn jitter_is_that_of_rfc_3550_by_hand() {
        // Transits of 5, 21, 5, 13 ms change by 16, 16 and 8. J is 1, then 1 + 15/16, then 1.9375 + 6.0625/16.
        let (count, times) = seen(&[(0, 100, 105), (1, 120, 141), (2, 140, 145), (3, 160, 173)]);
        let [jitter, mean, median, p95] = times.expect("four");
        assert!((jitter - (1.0 + 1.937_5 + 2.316_406_25) / 3.0).abs() < 1e-9, "{jitter}");
        assert_eq!((count, mean, median, p95), (4, 11.0, 5.0, 21.0));
        // Two that change places: D is of neighbours in their order of arrival. J is 0, then 32/16.
        let [swapped, ..] = seen(&[(0, 100, 110), (2, 140, 150), (1, 120, 162)]).1.expect("three");
        assert!((swapped - 1.0).abs() < 1e-9, "{swapped}");
    }

    #[test]
    fn another_clock_moves_the_delays_and_no_jitter() {
        let behind =
            |by: u64| seen(&[(0, 500, 505 - by), (1, 520, 541 - by), (2, 540, 545 - by)]).1.expect("three");
        let (one, other) = (behind(0), behind(400));
        assert_eq!(one[0], other[0]);
        assert!((one[1] - other[1] - 400.0).abs() < 1e-9 && other[2] == -395.0, "{one:?} {other:?}");
    }

    #[test]
    fn copies_and_datagrams_that_are_not_measured_are_no_arrivals() {
        let mut arrivals = Arrivals::default();
        for (number, left) in [(0, Instant::FAR), (1, Instant::ZERO), (1, Instant::ZERO)] {
            arrivals.add(Instant::from_millis(7), stamp(number, left));
        }
        assert_eq!(arrivals.seen(), (1, None), "one alone has no neighbour");
        arrivals.add(Instant::from_millis(9), stamp(2, Instant::ZERO));
        assert_eq!(arrivals.seen().1.map(|[_, mean, ..]| mean), Some(8.0));
    }
}
