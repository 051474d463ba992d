//! The ratio of pairs. Goodputs scatter in proportion to their size, and a log ratio favours no side: where every block
//! has a log, logs decide. Where some block delivered nothing, the ratio of the means does, with Fieller's interval.
//!
//! For a true ratio ρ the differences `arm − ρ·baseline` scatter around 0, and a t test can check this for any ρ.
//! Fieller's interval is all ρ that the test does not refuse. It has no end when the baseline's mean is not surely
//! above 0.

use libm::{exp, log};

use crate::statistics::location::quantile;
use crate::statistics::{ALPHA, Location, Paired};

/// The ratio of the means.
pub(super) fn by_means(pairs: &[(f64, f64)], margin: f64) -> Paired {
    let against = |ratio: f64| -> Option<Location> {
        Location::of(&pairs.iter().map(|(arm, baseline)| arm - ratio * baseline).collect::<Vec<_>>())
    };
    let means = |side: fn(&(f64, f64)) -> f64| Location::of(&pairs.iter().map(side).collect::<Vec<_>>());
    let (Some(arm), Some(baseline)) = (means(|pair| pair.0), means(|pair| pair.1)) else {
        return Paired::default();
    };
    // Two arms that never delivered anything are not known to be equal: both failed.
    let is_dead = arm.mean == 0.0 && baseline.mean == 0.0;
    let low = against(1.0 / (1.0 + margin)).and_then(|location| location.p_above(0.0));
    let high = against(1.0 + margin).and_then(|location| location.p_below(0.0));
    Paired {
        blocks: pairs.len(),
        ratio: (baseline.mean > 0.0).then(|| arm.mean / baseline.mean),
        ci95: interval(pairs, &arm, &baseline),
        p: against(1.0).and_then(|location| location.p_away(0.0)).filter(|_| !is_dead),
        p_equivalence: low.zip(high).map(|(low, high)| low.max(high)).filter(|_| !is_dead),
        logs: None,
    }
}

/// The roots of a square in ρ: (mean of arm − ρ·baseline)² = t² · its squared error.
fn interval(pairs: &[(f64, f64)], arm: &Location, baseline: &Location) -> Option<[f64; 2]> {
    let n = pairs.len() as f64;
    let t = quantile(pairs.len().checked_sub(1)?, 1.0 - ALPHA)?;
    let joint: f64 = pairs.iter().map(|(a, b)| (a - arm.mean) * (b - baseline.mean)).sum();
    let joint = t * t * joint / ((n - 1.0) * n);
    let a = baseline.mean * baseline.mean - t * t * baseline.error? * baseline.error?;
    let b = arm.mean * baseline.mean - joint;
    let c = arm.mean * arm.mean - t * t * arm.error? * arm.error?;
    let root = (b * b - a * c).max(0.0).sqrt();
    (a > 0.0).then(|| [((b - root) / a).max(0.0), (b + root) / a])
}

/// The largest log of a ratio that is no difference, in either direction.
pub(super) fn log_margin(margin: f64) -> f64 {
    log(1.0 + margin)
}

/// The log of each pair's ratio.
pub(super) fn log_ratios(pairs: &[(f64, f64)]) -> Vec<f64> {
    pairs.iter().map(|(arm, baseline)| log(arm / baseline)).collect()
}

/// The ratio by logs, which all pairs must have.
pub(super) fn by_logs(pairs: &[(f64, f64)], margin: f64) -> Paired {
    let Some(location) = Location::of(&log_ratios(pairs)) else { return Paired::default() };
    let bound = log_margin(margin);
    let sides = location.p_above(-bound).zip(location.p_below(bound));
    Paired {
        blocks: location.n,
        ratio: Some(exp(location.mean)),
        ci95: location.interval(1.0 - ALPHA).map(|ends| ends.map(exp)),
        p: location.p_away(0.0),
        p_equivalence: sides.map(|(above, below)| above.max(below)),
        logs: Some(location),
    }
}
