//! Conclusions of a trial and their certainty: means with intervals, paired comparisons, verdicts. It knows no records.
//!
//! Arms are compared block by block, since a block's arms share their channel, mobility and traffic. A comparison is
//! the ratio of two arms: the mean of the blocks' log ratios, with Student's t interval on the logs (`logs.rs`).
//! `tests/coverage.rs` simulates a bootstrap as well, and shows the reason for t. A block that delivered nothing has no
//! log; the ratio of the means with Fieller's interval takes its place (`fieller.rs`).
//!
//! The verdict, in this order: "no difference" if the ratio lies within the margin by two one-sided tests at 5 % each.
//! Then "faster" or "slower" if the arms differ by a paired t test at 5 % after Holm's correction over all arms.
//! Otherwise "undecided". A "no difference" has its 5 % for each comparison, since it is a claim of its own.

mod fieller;
mod holm;
mod location;
mod logs;
mod need;
mod sequential;
mod words;

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use location::Location;
pub use sequential::{is_sure, watch};
pub use words::change;

/// A ratio between 1/(1 + margin) and 1 + margin is no difference unless a trial says otherwise.
pub const MARGIN: f64 = 0.03;
/// Share of verdicts that may be wrong.
const ALPHA: f64 = 0.05;

/// The values of one arm in each block; a block stands once, and one that failed is left out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Samples {
    pub arm: String,
    pub values: Vec<(u32, f64)>,
}

/// A mean, and the 95 % interval of the true one if runs scatter normally; unknown from one value.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    pub mean: f64,
    pub ci95: Option<[f64; 2]>,
    pub n: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    #[serde(rename = "faster")]
    Faster,
    #[serde(rename = "slower")]
    Slower,
    #[serde(rename = "no difference")]
    NoDifference,
    #[serde(rename = "undecided")]
    Undecided,
}

impl Verdict {
    pub const fn name(self) -> &'static str {
        match self {
            Verdict::Faster => "faster",
            Verdict::Slower => "slower",
            Verdict::NoDifference => "no difference",
            Verdict::Undecided => "undecided",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// One arm against the baseline; `None` for values that the blocks do not give.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    pub arm: String,
    pub against: String,
    /// The number of blocks in which both arms have a value.
    pub blocks: usize,
    /// The ratio of this arm to the baseline.
    pub ratio: Option<f64>,
    pub ci95: Option<[f64; 2]>,
    /// p-value of the blocks if the arms were equal.
    pub p: Option<f64>,
    /// The same, corrected for the number of arms.
    pub p_holm: Option<f64>,
    /// p-value of the blocks if the arms differed by the margin or more.
    pub p_equivalence: Option<f64>,
    pub verdict: Verdict,
    pub sentence: String,
}

impl Comparison {
    /// True if the interval excludes equality; it is that of this comparison alone, without a correction for others.
    pub fn is_apart_alone(&self) -> bool {
        self.ci95.is_some_and(|[low, high]| low > 1.0 || high < 1.0)
    }
}

/// The ratio that pairs of values, (arm, baseline), give.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Paired {
    pub blocks: usize,
    pub ratio: Option<f64>,
    pub ci95: Option<[f64; 2]>,
    pub p: Option<f64>,
    pub p_equivalence: Option<f64>,
    /// The location of the blocks' log ratios, if all have one and are looked at once.
    logs: Option<Location>,
}

/// Returns whether a value is a measurement: negative values, infinities and NaN are left out.
fn is_sound(value: f64) -> bool {
    value.is_finite() && value >= 0.0
}

/// `None` when no value is sound.
pub fn summarize(values: &[f64]) -> Option<Summary> {
    let sound: Vec<f64> = values.iter().copied().filter(|value| is_sound(*value)).collect();
    let location = Location::of(&sound)?;
    let ci95 = location.interval(1.0 - ALPHA).map(|[low, high]| [low.max(0.0), high]);
    Some(Summary { mean: location.mean, ci95, n: location.n })
}

/// The blocks in which both have a sound value, in order of their numbers.
fn pairs(baseline: &Samples, arm: &Samples) -> Vec<(f64, f64)> {
    let by_block = |samples: &Samples| {
        let sound = samples.values.iter().copied().filter(|(_, value)| is_sound(*value));
        sound.rev().collect::<BTreeMap<u32, f64>>()
    };
    let baseline = by_block(baseline);
    let both = by_block(arm).into_iter().filter_map(|(block, value)| Some((value, *baseline.get(&block)?)));
    both.collect()
}

/// The ratio of pairs of (arm, baseline); values are sound.
pub fn paired(pairs: &[(f64, f64)], margin: f64) -> Paired {
    if pairs.iter().all(|(arm, baseline)| *arm > 0.0 && *baseline > 0.0) {
        logs::paired(pairs, margin)
    } else {
        fieller::paired(pairs, margin)
    }
}

/// Compares each arm with the baseline, in the order given.
pub fn compare(baseline: &Samples, others: &[Samples], margin: f64) -> Vec<Comparison> {
    let found = others.iter().map(|arm| paired(&pairs(baseline, arm), margin)).collect();
    judge(baseline, others, margin, found, words::Looks::Once)
}

/// Turns the blocks' ratios into verdicts and sentences.
fn judge(
    baseline: &Samples,
    others: &[Samples],
    margin: f64,
    found: Vec<Paired>,
    looks: words::Looks,
) -> Vec<Comparison> {
    let corrected = holm::corrected(&found.iter().map(|paired| paired.p).collect::<Vec<_>>());
    // Holm's correction counts an arm among those that are no surer than it.
    let among =
        |p: Option<f64>| found.iter().filter(|other| other.p.is_some() && other.p >= p).count().max(1);
    let need = |paired: &Paired| need::blocks(&paired.logs?, logs::bound(margin), among(paired.p));
    let each = others.iter().zip(&found).zip(corrected);
    each.map(|((arm, paired), p_holm)| {
        let verdict = verdict(paired, p_holm);
        let need = (verdict == Verdict::Undecided).then(|| need(paired)).flatten();
        let names = words::Names { arm: &arm.arm, against: &baseline.arm };
        Comparison {
            arm: arm.arm.clone(),
            against: baseline.arm.clone(),
            blocks: paired.blocks,
            ratio: paired.ratio,
            ci95: paired.ci95,
            p: paired.p,
            p_holm,
            p_equivalence: paired.p_equivalence,
            verdict,
            sentence: words::sentence(names, paired, (p_holm, need, found.len()), verdict, margin, looks),
        }
    })
    .collect()
}

fn verdict(paired: &Paired, p_holm: Option<f64>) -> Verdict {
    if paired.p_equivalence.is_some_and(|p| p <= ALPHA) {
        return Verdict::NoDifference;
    }
    match (p_holm, paired.ratio) {
        (Some(p), Some(ratio)) if p <= ALPHA && ratio > 1.0 => Verdict::Faster,
        // Without a ratio the baseline delivered nothing, and this arm something.
        (Some(p), None) if p <= ALPHA => Verdict::Faster,
        (Some(p), Some(ratio)) if p <= ALPHA && ratio < 1.0 => Verdict::Slower,
        _ => Verdict::Undecided,
    }
}

#[cfg(test)]
mod tests;
