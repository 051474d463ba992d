//! A mean with its standard error, and its conclusions by Student's t distribution: p-values, Holm's correction of
//! them, and the number of blocks that would decide.

use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::statistics::ALPHA;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Location {
    pub(super) n: usize,
    pub(super) mean: f64,
    /// The standard error of the mean; unknown from one value.
    pub(super) error: Option<f64>,
}

impl Location {
    pub(super) fn of(values: &[f64]) -> Option<Location> {
        let n = values.len();
        if n == 0 {
            return None;
        }
        let mean = values.iter().sum::<f64>() / n as f64;
        let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
        let error = (n > 1).then(|| (squares / ((n - 1) * n) as f64).sqrt());
        Some(Location { n, mean, error })
    }

    /// The locations of the first value, of the first two, and so on, each from the one before it (Welford, 1962).
    pub(super) fn of_each_beginning(values: &[f64]) -> impl Iterator<Item = Location> {
        let mut squares = 0.0;
        let mut before = 0.0;
        values.iter().zip(1..).map(move |(value, n)| {
            let mean = before + (value - before) / n as f64;
            squares += (value - before) * (value - mean);
            before = mean;
            let error = (n > 1).then(|| (squares / ((n - 1) * n) as f64).sqrt());
            Location { n, mean, error }
        })
    }

    /// The p-value of these values if the true mean is at most `at`; twice the smaller one is the two-sided p-value.
    pub(super) fn p_above(&self, at: f64) -> Option<f64> {
        let (error, away) = (self.error?, self.mean - at);
        if error > 0.0 {
            return Some(student(self.n - 1)?.sf(away / error));
        }
        // Values without any scatter leave no doubt, unless they lie at that very place.
        Some(if away > 0.0 {
            0.0
        } else if away < 0.0 {
            1.0
        } else {
            0.5
        })
    }

    /// The same if it is at least `at`.
    pub(super) fn p_below(&self, at: f64) -> Option<f64> {
        Location { mean: -self.mean, ..*self }.p_above(-at)
    }

    /// The same if it is `at`.
    pub(super) fn p_away(&self, at: f64) -> Option<f64> {
        Some((2.0 * self.p_above(at)?.min(self.p_below(at)?)).min(1.0))
    }

    pub(super) fn interval(&self, confidence: f64) -> Option<[f64; 2]> {
        let half = quantile(self.n.checked_sub(1)?, confidence)? * self.error?;
        Some([self.mean - half, self.mean + half])
    }
}

fn student(freedom: usize) -> Option<StudentsT> {
    StudentsT::new(0.0, 1.0, freedom as f64).ok()
}

/// The probability that a mean lies below this many errors above the true one.
pub(super) fn cumulative(freedom: usize, errors: f64) -> Option<f64> {
    Some(student(freedom)?.cdf(errors))
}

/// The number of errors around the mean within which the true one lies with this confidence.
pub(super) fn quantile(freedom: usize, confidence: f64) -> Option<f64> {
    Some(student(freedom)?.inverse_cdf(0.5 + confidence / 2.0))
}

/// Holm's correction: of several comparisons at once, at most 5 % find a difference that none has. Corrects in the
/// order given; a comparison without p takes no part.
pub(super) fn holm(ps: &[Option<f64>]) -> Vec<Option<f64>> {
    let mut known: Vec<(usize, f64)> =
        ps.iter().enumerate().filter_map(|(index, p)| Some((index, (*p)?))).collect();
    known.sort_by(|a, b| a.1.total_cmp(&b.1));
    let (count, mut least) = (known.len(), 0.0_f64);
    let mut corrected = vec![None; ps.len()];
    for (rank, (index, p)) in known.into_iter().enumerate() {
        least = least.max((p * (count - rank) as f64).min(1.0));
        corrected[index] = Some(least);
    }
    corrected
}

/// The largest number that is advised.
const MOST: usize = 10_000;
/// Share of trials that this many blocks decide.
const POWER: f64 = 0.8;

/// The number of blocks that would decide an undecided comparison, if its true ratio and scatter are the seen ones.
///
/// A large difference needs few more blocks, and so do arms that are all but equal. A ratio at the middle of the margin
/// needs most. The number is the smallest with which a trial of such arms has a verdict in 80 % of cases, a difference
/// or none. The true ratio is unknown: if the seen one owes much to chance, the number does too.
///
/// `bound` is the margin's log, `among` the number of arms that Holm's correction counts this one among.
pub(super) fn blocks_needed(location: &Location, bound: f64, among: usize) -> Option<usize> {
    let scatter = location.error? * (location.n as f64).sqrt();
    let decides = |n: usize| power(location.mean, scatter / (n as f64).sqrt(), n, (bound, among)) >= POWER;
    let (mut too_few, mut enough) = (location.n, location.n + 1);
    while !decides(enough) {
        if enough >= MOST {
            return None;
        }
        (too_few, enough) = (enough, (2 * enough).min(MOST));
    }
    while enough - too_few > 1 {
        let middle = too_few.midpoint(enough);
        if decides(middle) { enough = middle } else { too_few = middle }
    }
    Some(enough)
}

/// The probability of a verdict with this many blocks of arms with this true log ratio, if their mean has that error.
fn power(mean: f64, error: f64, n: usize, (bound, among): (f64, usize)) -> f64 {
    let freedom = n - 1;
    let quantile = |confidence: f64| quantile(freedom, confidence).unwrap_or(f64::INFINITY);
    // Means up to here are within the margin; means from there on are apart from 1. Between the two there is no
    // verdict.
    let within = bound - quantile(1.0 - 2.0 * ALPHA) * error;
    let apart = quantile(1.0 - ALPHA / among as f64) * error;
    let below = |at: f64| cumulative(freedom, (at - mean) / error).unwrap_or_default();
    let between = |low: f64, high: f64| (below(high) - below(low)).max(0.0);
    match within {
        within if within >= apart => 1.0,
        within if within <= 0.0 => 1.0 - between(-apart, apart),
        within => 1.0 - between(within, apart) - between(-apart, -within),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// The number of blocks for a true log ratio and the scatter of its blocks.
    pub(in crate::statistics) fn for_truth(mean: f64, scatter: f64, bound: f64) -> Option<usize> {
        // As if two blocks had shown just that.
        let location = Location { n: 2, mean, error: Some(scatter / 2.0_f64.sqrt()) };
        blocks_needed(&location, bound, 1)
    }

    #[test]
    fn a_large_difference_needs_fewer_blocks_than_one_within_the_margin() {
        let bound = 1.03_f64.ln();
        let need = |ratio: f64| for_truth(ratio.ln(), 0.05, bound).expect("not too many");
        assert!(need(1.2) < need(1.1) && need(1.1) < need(1.05) && need(1.05) < need(1.02));
        assert!(need(1.0) < need(1.015), "what is equal is sooner known than what is halfway to the margin");
        assert_eq!(need(1.1), need(1.0 / 1.1), "either way");
        assert_eq!(for_truth(0.015, 2.0, bound), None, "more than anybody runs");
    }

    #[test]
    fn each_beginning_has_the_location_of_its_values() {
        let values = [0.25, -1.5, 0.125, 7.0, 7.0, -0.03];
        let each: Vec<_> = Location::of_each_beginning(&values).collect();
        assert_eq!(each.len(), values.len());
        for (n, found) in (1..).zip(each) {
            let wanted = Location::of(&values[..n]).expect("some values");
            let near = |one: f64, other: f64| (one - other).abs() < 1e-12;
            assert!(found.n == n && near(found.mean, wanted.mean), "{found:?}");
            assert!(found.error.is_some() == (n > 1), "{found:?}");
            assert!(near(found.error.unwrap_or(0.0), wanted.error.unwrap_or(0.0)), "{found:?}");
        }
        let equal = Location::of_each_beginning(&[0.1; 7]).last().expect("seven");
        assert_eq!((equal.mean, equal.error), (0.1, Some(0.0)));
    }
}
