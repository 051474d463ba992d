//! Axes of a chart, and the places of values on them.

use hopwise_air::truncate;

/// Position of a value in the picture.
#[derive(Clone, Copy, Debug)]
pub(in crate::report) struct AxisScale {
    pub(super) low: f64,
    pub(super) high: f64,
    pub(in crate::report) from: f64,
    pub(in crate::report) to: f64,
}

impl AxisScale {
    pub(super) fn px(&self, value: f64) -> f64 {
        let span = if self.high > self.low { self.high - self.low } else { 1.0 };
        let at = (value.clamp(self.low, self.high) - self.low) / span;
        self.from + at * (self.to - self.from)
    }

    /// Round values, four to seven of them; none where the ends are no numbers.
    pub(super) fn ticks(&self) -> Vec<f64> {
        let span = self.high - self.low;
        if !span.is_finite() {
            return Vec::new();
        }
        let step = step(span);
        let first = truncate::to_i64((self.low / step).ceil());
        let last = truncate::to_i64((self.high / step + 1e-9).floor());
        (first..=last).take(MOST_TICKS).map(|nth| nth as f64 * step).collect()
    }
}

/// Ends that are no numbers, or far apart, lead to no more than this.
const MOST_TICKS: usize = 16;

/// 1, 2 or 5 times a power of ten, a fifth of the span or so.
fn step(span: f64) -> f64 {
    let mut step = 1e-9;
    for factor in [2.0, 2.5, 2.0].into_iter().cycle() {
        if span / step <= 6.0 {
            break;
        }
        step *= factor;
    }
    step
}

/// Quantity of an axis.
#[derive(Clone, Copy, Debug)]
pub(in crate::report) struct Axis<'a> {
    pub(in crate::report) label: &'a str,
    pub(in crate::report) low: f64,
    pub(in crate::report) high: f64,
}

impl<'a> Axis<'a> {
    /// Round values between its ends.
    pub(in crate::report) fn ticks(&self) -> Vec<f64> {
        AxisScale { low: self.low, high: self.high, from: 0.0, to: 1.0 }.ticks()
    }

    /// An axis from zero to a little more than the largest value.
    pub(in crate::report) fn to_most(label: &'a str, values: impl Iterator<Item = f64>) -> Axis<'a> {
        let most = values.fold(0.0_f64, f64::max);
        Axis { label, low: 0.0, high: if most > 0.0 { most * 1.05 } else { 1.0 } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scale_has_few_ticks_whatever_its_ends_are() {
        let ticks = |low, high| AxisScale { low, high, from: 0.0, to: 1.0 }.ticks();
        assert_eq!(ticks(0.0, 10.0), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        let largest = [1e-300, 1e12, 1.9e19, 1e300, f64::MAX, f64::INFINITY, f64::NAN];
        for (low, high) in
            largest.into_iter().flat_map(|most| [(0.0, most), (most, most * 1.05), (-most, most)])
        {
            assert!(ticks(low, high).len() <= MOST_TICKS, "{low} to {high}");
        }
        assert!((3..=7).contains(&ticks(0.0, 1.9e19).len()));
    }
}
