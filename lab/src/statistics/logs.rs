//! The paired ratio by logs: goodputs scatter in proportion to their size, and a log ratio has no favourite side.

use libm::{exp, log};

use super::{ALPHA, Location, Paired};

/// The largest log of a ratio that is no difference, in either direction.
pub(super) fn bound(margin: f64) -> f64 {
    log(1.0 + margin)
}

pub(super) fn ratios(pairs: &[(f64, f64)]) -> Vec<f64> {
    pairs.iter().map(|(arm, baseline)| log(arm / baseline)).collect()
}

pub(super) fn paired(pairs: &[(f64, f64)], margin: f64) -> Paired {
    let Some(location) = Location::of(&ratios(pairs)) else { return Paired::default() };
    let bound = bound(margin);
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
