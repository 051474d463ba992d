//! Comparisons that may be looked at after every block: a trial can stop when it is sure.
//!
//! A fixed-size interval that is looked at after every block errs far more often than its 5 %. Here the interval is a
//! confidence sequence: with 95 % it holds the true ratio after *every* block. The number of looks and the reason to
//! stop do not matter. It inverts the Bayes factor of the t test with a normal prior on mean/deviation (mixture
//! sequential probability ratio test of Robbins and Lai). When the arms are equal, this factor is a martingale of the
//! scale-free data.
//!
//! Assumed: the blocks' log ratios are independent and scatter normally around one mean, with an unknown deviation.
//! `tests/peeking.rs` looks at every block and checks that false verdicts stay below 5 %, also where goodputs are
//! skewed. A block that delivered nothing has no log: such a comparison stays undecided.

use libm::{exp, log, pow};

use super::ratio::{log_margin, log_ratios};
use super::words::LookSchedule;
use super::{
    ALPHA, Comparison, ComparisonVerdict, GOODPUT, Location, Paired, Question, Samples, found, judge,
};

/// Variance of mean/deviation under the prior. Differences between agents are several deviations of a block's ratio. A
/// wide prior finds such differences within a few blocks; small differences then need about 5 blocks more.
const PRIOR: f64 = 10.0;

/// Like [`super::compare`], for a look after every block.
pub fn watch(baseline: &Samples, others: &[Samples], margin: f64) -> Vec<Comparison> {
    watch_all(&[Question { figure: GOODPUT, baseline, others }], margin)
}

/// Like [`super::compare_all`], for a look after every block.
pub(crate) fn watch_all(questions: &[Question<'_>], margin: f64) -> Vec<Comparison> {
    judge(&found(questions, |pairs| paired(pairs, margin)), margin, LookSchedule::AfterEveryBlock)
}

/// True if every comparison has its verdict.
pub fn is_sure(comparisons: &[Comparison]) -> bool {
    comparisons.iter().all(|comparison| comparison.verdict != ComparisonVerdict::Undecided)
}

fn paired(pairs: &[(f64, f64)], margin: f64) -> Paired {
    let has_logs = pairs.iter().all(|(arm, baseline)| *arm > 0.0 && *baseline > 0.0);
    if pairs.is_empty() || !has_logs {
        return Paired { blocks: pairs.len(), ..Paired::default() };
    }
    let ratios = log_ratios(pairs);
    let bound = log_margin(margin);
    let mut p = 1.0_f64;
    // A refused value stays refused: intervals are cut with all earlier ones.
    let (mut low, mut high) = (f64::NEG_INFINITY, f64::INFINITY);
    for location in Location::of_each_beginning(&ratios).skip(1) {
        p = p.min(p_after(&location));
        if let Some(half) = half_width(&location) {
            low = low.max(location.mean - half);
            high = high.min(location.mean + half);
        }
    }
    let mean = ratios.iter().sum::<f64>() / ratios.len() as f64;
    let is_bounded = low.is_finite() && high.is_finite();
    // An interval that lies within the margin refuses every larger ratio at 5 %; p has no meaning beyond that.
    let is_within = is_bounded && low > -bound && high < bound;
    Paired {
        blocks: ratios.len(),
        ratio: Some(exp(mean)),
        ci95: is_bounded.then(|| [exp(low.min(high)), exp(high.max(low))]),
        p: (ratios.len() > 1).then_some(p),
        p_equivalence: is_bounded.then_some(if is_within { ALPHA } else { 1.0 }),
        logs: None,
    }
}

/// The inverse of the Bayes factor against equal arms: small ones are rare, at any time, by Ville's inequality.
fn p_after(location: &Location) -> f64 {
    let Some(error) = location.error else { return 1.0 };
    if error == 0.0 {
        return if location.mean == 0.0 { 1.0 } else { 0.0 };
    }
    let (n, t) = (location.n as f64, location.mean / error);
    let (freedom, widened) = (n - 1.0, 1.0 + n * PRIOR);
    let plain = log(1.0 + t * t / freedom);
    let spread = log(1.0 + t * t / (freedom * widened));
    exp(0.5 * log(widened) - n / 2.0 * (plain - spread)).min(1.0)
}

/// The distance from the mean at which the Bayes factor first reaches 1/5 %; none while there are too few blocks.
fn half_width(location: &Location) -> Option<f64> {
    let n = location.n as f64;
    let (freedom, widened) = (n - 1.0, 1.0 + n * PRIOR);
    let reach = pow(widened / (ALPHA * ALPHA), 1.0 / n);
    let squared = freedom * (reach - 1.0) / (1.0 - reach / widened);
    (reach < widened).then(|| squared.sqrt() * location.error.unwrap_or(f64::INFINITY))
}
