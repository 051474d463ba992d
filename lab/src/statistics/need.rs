//! The number of blocks that would decide an undecided comparison, if the true ratio and its scatter are those seen.
//!
//! A large difference needs few more blocks, and so do arms that are all but equal. A ratio at the middle of the margin
//! needs most. The number is the smallest with which a trial of such arms has a verdict in 80 % of cases, a difference
//! or none. The true ratio is unknown: if the seen one owes much to chance, the number does too.

use super::location::{cumulative, quantile};
use super::{ALPHA, Location};

/// The largest number that is advised.
const MOST: usize = 10_000;
/// Share of trials that this many blocks decide.
const POWER: f64 = 0.8;

/// `bound` is the margin's log, `among` the number of arms that Holm's correction counts this one among.
pub(super) fn blocks(location: &Location, bound: f64, among: usize) -> Option<usize> {
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
        blocks(&location, bound, 1)
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
}
