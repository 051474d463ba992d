//! A mean with its standard error, and its conclusions by Student's t distribution.

use statrs::distribution::{ContinuousCDF, StudentsT};

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
