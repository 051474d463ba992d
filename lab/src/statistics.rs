//! Conclusions of a trial and their certainty: means with intervals, paired comparisons, verdicts. It knows no records.
//!
//! Arms are compared block by block, since a block's arms share their channel, mobility and traffic. A comparison is
//! the ratio of two arms: the mean of the blocks' log ratios, with Student's t interval on the logs (`ratio.rs`).
//! `tests/coverage.rs` simulates a bootstrap as well, and shows the reason for t. A block that delivered nothing has no
//! log; the ratio of the means with Fieller's interval takes its place.
//!
//! The verdict, in this order: "no difference" if the ratio lies within the margin by two one-sided tests at 5 % each.
//! Then "faster" or "slower" if the arms differ by a paired t test at 5 % after Holm's correction over all arms.
//! Otherwise "undecided". A "no difference" has its 5 % for each comparison, since it is a claim of its own.
//!
//! Any [`Figure`] of a run may take the place of goodput, or be compared as well: it is then "better" or
//! "worse". Holm's correction is over all arms and figures that are asked for at once.

mod location;
mod ratio;
mod sequential;
mod words;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use location::Location;
pub(crate) use sequential::watch_all;
pub use sequential::{is_sure, watch};
pub use words::change;

/// A ratio between 1/(1 + margin) and 1 + margin is no difference unless a trial sets another margin.
pub const MARGIN: f64 = 0.03;
/// Share of verdicts that may be wrong.
const ALPHA: f64 = 0.05;

/// The values of one arm in each block; a block stands once, and one that failed is left out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Samples {
    /// The name of the arm.
    pub arm: String,
    /// Each block's number with its value.
    pub values: Vec<(u32, f64)>,
}

/// A mean, and the 95 % interval of the true one if runs scatter normally; unknown from one value.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeanSummary {
    /// The mean of the values.
    pub mean: f64,
    /// The ends of the 95 % interval.
    pub ci95: Option<[f64; 2]>,
    /// The number of values.
    pub n: usize,
}

hopwise_core::named! {
    /// The conclusion from a comparison.
    #[derive(Serialize, Deserialize)]
    pub enum ComparisonVerdict {
        /// Surely more goodput than the baseline.
        #[serde(rename = "faster")]
        Faster = "faster",
        /// Surely less goodput than the baseline.
        #[serde(rename = "slower")]
        Slower = "slower",
        /// In a figure other than goodput.
        #[serde(rename = "better")]
        Better = "better",
        /// In a figure other than goodput, on the other side.
        #[serde(rename = "worse")]
        Worse = "worse",
        /// Surely within the margin.
        #[serde(rename = "no difference")]
        NoDifference = "no difference",
        /// The blocks allow none of the other conclusions.
        #[serde(rename = "undecided")]
        Undecided = "undecided",
    }
}

/// One arm against the baseline; `None` for values that the blocks do not give.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The name of the arm.
    pub arm: String,
    /// The name of the baseline.
    pub against: String,
    /// The name of the figure; none for goodput.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub figure: Option<String>,
    /// The number of blocks in which both arms have a value.
    pub blocks: usize,
    /// The ratio of this arm to the baseline.
    pub ratio: Option<f64>,
    /// The ends of the ratio's 95 % interval.
    pub ci95: Option<[f64; 2]>,
    /// p-value of the blocks if the arms were equal.
    pub p: Option<f64>,
    /// The same, corrected for the number of arms and figures.
    pub p_holm: Option<f64>,
    /// p-value of the blocks if the arms differed by the margin or more.
    pub p_equivalence: Option<f64>,
    /// The conclusion.
    pub verdict: ComparisonVerdict,
    /// The conclusion in words, with ratio and interval.
    pub sentence: String,
    /// The number of blocks that would decide, were the seen ratio the true one.
    #[serde(skip)]
    pub need: Option<usize>,
}

/// The values of all arms in one figure.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The figure that is compared.
    pub figure: Figure,
    /// The values of the arm that all other arms are compared with.
    pub baseline: &'a Samples,
    /// The values of the other arms.
    pub others: &'a [Samples],
}

/// The questions of figures, each with the values of all arms, the baseline's first.
pub fn questions<'a>(figures: &[Figure], samples: &'a [Vec<Samples>]) -> Vec<Question<'a>> {
    let one = |(figure, arms): (&Figure, &'a Vec<Samples>)| {
        let (baseline, others) = arms.split_first()?;
        Some(Question { figure: *figure, baseline, others })
    };
    figures.iter().zip(samples).filter_map(one).collect()
}

impl Comparison {
    /// True if it is of that figure.
    pub fn is_of(&self, figure: &Figure) -> bool {
        self.figure.as_deref().unwrap_or(GOODPUT.name) == figure.name
    }

    /// True if it is sure, so that its ratio, its interval and its verdict say it all.
    pub fn is_plain(&self) -> bool {
        self.verdict != ComparisonVerdict::Undecided && self.ratio.is_some() && self.ci95.is_some()
    }

    /// True if blocks have a ratio and do not decide: all such sentences are alike.
    pub(crate) fn is_open(&self) -> bool {
        self.verdict == ComparisonVerdict::Undecided && self.ratio.is_some() && self.blocks > 1
    }

    /// True if the interval excludes equality; the interval is of this comparison alone, without a correction for
    /// further ones.
    pub(crate) fn is_apart_alone(&self) -> bool {
        self.ci95.is_some_and(|[low, high]| low > 1.0 || high < 1.0)
    }
}

/// The ratio that pairs of values, (arm, baseline), give.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Paired {
    /// The number of pairs.
    pub blocks: usize,
    /// The ratio of the arm to the baseline.
    pub ratio: Option<f64>,
    /// The ends of the ratio's 95 % interval.
    pub ci95: Option<[f64; 2]>,
    /// p-value of the blocks if the arms were equal.
    pub p: Option<f64>,
    /// p-value of the blocks if the arms differed by the margin or more.
    pub p_equivalence: Option<f64>,
    /// The location of the blocks' log ratios, if all have one and are looked at once.
    logs: Option<Location>,
}

impl Paired {
    /// The ends of the ratio's interval with this confidence; none unless all pairs have a log.
    pub fn interval(&self, confidence: f64) -> Option<[f64; 2]> {
        Some(self.logs?.interval(confidence)?.map(libm::exp))
    }
}

/// Returns whether a value is a measurement: negative values, infinities and NaN are left out.
fn is_sound(value: f64) -> bool {
    value.is_finite() && value >= 0.0
}

/// `None` when no value is sound.
pub fn summarize(values: &[f64]) -> Option<MeanSummary> {
    let sound: Vec<f64> = values.iter().copied().filter(|value| is_sound(*value)).collect();
    let location = Location::of(&sound)?;
    let ci95 = location.interval(1.0 - ALPHA).map(|[low, high]| [low.max(0.0), high]);
    Some(MeanSummary { mean: location.mean, ci95, n: location.n })
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
        ratio::by_logs(pairs, margin)
    } else {
        ratio::by_means(pairs, margin)
    }
}

/// Compares each arm's goodput with the baseline's, in the order given.
pub fn compare(baseline: &Samples, others: &[Samples], margin: f64) -> Vec<Comparison> {
    compare_all(&[Question { figure: GOODPUT, baseline, others }], margin)
}

/// Compares each arm with the baseline in each figure: figure by figure, the arms in the order given.
pub(crate) fn compare_all(questions: &[Question<'_>], margin: f64) -> Vec<Comparison> {
    judge(&found(questions, |pairs| paired(pairs, margin)), margin, words::LookSchedule::Once)
}

/// An arm and the baseline in a figure.
struct ArmPair<'a> {
    figure: Figure,
    names: words::ArmNames<'a>,
    /// The means of the arm and of the baseline, over the blocks that both have.
    means: Option<[f64; 2]>,
    paired: Paired,
}

fn found<'a>(questions: &[Question<'a>], paired: impl Fn(&[(f64, f64)]) -> Paired) -> Vec<ArmPair<'a>> {
    let mean = |values: &mut dyn Iterator<Item = f64>| Some(Location::of(&values.collect::<Vec<_>>())?.mean);
    let one = |question: &Question<'a>, arm: &'a Samples| {
        let pairs = pairs(question.baseline, arm);
        let (mut of_arm, mut of_baseline) =
            (pairs.iter().map(|(arm, _)| *arm), pairs.iter().map(|(_, baseline)| *baseline));
        ArmPair {
            figure: question.figure,
            names: words::ArmNames { arm: &arm.arm, against: &question.baseline.arm },
            means: mean(&mut of_arm).zip(mean(&mut of_baseline)).map(|(arm, baseline)| [arm, baseline]),
            paired: paired(&pairs),
        }
    };
    questions.iter().flat_map(|question| question.others.iter().map(|arm| one(question, arm))).collect()
}

/// Turns the blocks' ratios into verdicts and sentences.
fn judge(found: &[ArmPair<'_>], margin: f64, looks: words::LookSchedule) -> Vec<Comparison> {
    let corrected = location::holm(&found.iter().map(|found| found.paired.p).collect::<Vec<_>>());
    // Holm's correction counts a comparison among all comparisons that are no surer than it.
    let among = |p: Option<f64>| {
        found.iter().filter(|other| other.paired.p.is_some() && other.paired.p >= p).count().max(1)
    };
    let need =
        |paired: &Paired| location::blocks_needed(&paired.logs?, ratio::log_margin(margin), among(paired.p));
    let each = found.iter().zip(corrected).map(|(one, p_holm)| {
        let paired = &one.paired;
        let verdict = verdict(paired, p_holm, one.figure);
        let need = (verdict == ComparisonVerdict::Undecided).then(|| need(paired)).flatten();
        let sure = words::Sure { p_holm, need, comparisons: found.len(), margin, looks };
        Comparison {
            arm: one.names.arm.to_owned(),
            against: one.names.against.to_owned(),
            figure: (!one.figure.is_goodput()).then(|| one.figure.name.to_owned()),
            blocks: paired.blocks,
            ratio: paired.ratio,
            ci95: paired.ci95,
            p: paired.p,
            p_holm,
            p_equivalence: paired.p_equivalence,
            verdict,
            sentence: words::sentence(one, verdict, &sure),
            need,
        }
    });
    each.collect()
}

fn verdict(paired: &Paired, p_holm: Option<f64>, figure: Figure) -> ComparisonVerdict {
    if paired.p_equivalence.is_some_and(|p| p <= ALPHA) {
        return ComparisonVerdict::NoDifference;
    }
    let has_more = match (p_holm, paired.ratio) {
        (Some(p), Some(ratio)) if p <= ALPHA && ratio != 1.0 => ratio > 1.0,
        // Without a ratio the baseline has nothing of it, and this arm something.
        (Some(p), None) if p <= ALPHA => true,
        _ => return ComparisonVerdict::Undecided,
    };
    match (figure.is_goodput(), has_more == (figure.better == Better::More)) {
        (true, true) => ComparisonVerdict::Faster,
        (true, false) => ComparisonVerdict::Slower,
        (false, true) => ComparisonVerdict::Better,
        (false, false) => ComparisonVerdict::Worse,
    }
}

#[cfg(test)]
mod tests;

// The figure that arms are compared by.

/// The side of a figure that is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// The larger value is better.
    More,
    /// The smaller value is better.
    Less,
}

impl Better {
    /// The word in files.
    pub const fn name(self) -> &'static str {
        match self {
            Better::More => "more",
            Better::Less => "less",
        }
    }
}

/// A figure of a run, as comparisons name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Figure {
    /// The name in results.
    pub name: &'static str,
    /// Empty for shares and counts.
    pub unit: &'static str,
    /// The side that is better.
    pub better: Better,
}

/// The figure of a trial that names no other one.
pub(crate) const GOODPUT: Figure = Figure { name: "goodput_kbps", unit: "kbit/s", better: Better::More };

impl Figure {
    /// Returns whether it is the figure of trials that name none.
    pub(crate) fn is_goodput(&self) -> bool {
        *self == GOODPUT
    }

    /// A value with its unit.
    pub fn with_unit(&self, value: f64) -> String {
        let value = shown(value);
        if self.unit.is_empty() { value } else { format!("{value} {}", self.unit) }
    }
}

/// A value with four digits.
pub fn shown(value: f64) -> String {
    format!("{value:.*}", digits(value))
}

/// The digits behind the point with which the largest value of a column has four digits: the column then aligns.
pub fn digits(most: f64) -> usize {
    match most.abs() {
        large if large >= 1000.0 => 0,
        large if large >= 100.0 => 1,
        some if some >= 10.0 => 2,
        _ => 3,
    }
}
