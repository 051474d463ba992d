//! The costs that may explain a difference between two worlds, of all that the runs measured.

use serde::Serialize;

use super::{BESIDE, CostCounter, WITHIN, WorldMeans};
use crate::statistics::{Comparison, ComparisonVerdict, MeanSummary};

/// Programs and radios in real time are always a little late. Less than this is not told as a cost.
const LATE_MS: f64 = 2.0;

/// The costs that go with a sure difference, larger than worlds that agree may have.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DifferenceCause {
    /// The figure that differs; none for goodput.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub figure: Option<String>,
    /// The two worlds: the one that is worse, and the other.
    pub world: String,
    /// The world with the better figure.
    pub elsewhere: String,
    /// The costs of which the worse one has surely more; none if nothing that was measured explains it. They have no
    /// order: counts of different things do not compare.
    pub found: Vec<ExtraCost>,
}

/// A cost of which one world has more, by the means of both.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ExtraCost {
    /// The name of the cost, as [`WorldMeans::beside`](super::Measured::beside) has it.
    pub measured: &'static str,
    /// Its mean in the worse world, in the unit of that name.
    pub mean: f64,
    /// Its mean in the other world.
    pub elsewhere: f64,
    #[serde(skip)]
    words: &'static str,
}

impl DifferenceCause {
    /// None if the worlds do not surely differ by more than worlds that agree may.
    pub(super) fn of(
        comparison: &Comparison,
        this: &WorldMeans,
        reference: &WorldMeans,
    ) -> Option<DifferenceCause> {
        let (worse, better) = match comparison.verdict {
            ComparisonVerdict::Slower | ComparisonVerdict::Worse => (this, reference),
            ComparisonVerdict::Faster | ComparisonVerdict::Better => (reference, this),
            ComparisonVerdict::NoDifference | ComparisonVerdict::Undecided => return None,
        };
        comparison.ratio.filter(|ratio| (ratio - 1.0).abs() > WITHIN)?;
        let both = BESIDE.iter().zip(worse.summaries.iter().zip(&better.summaries));
        Some(DifferenceCause {
            figure: comparison.figure.clone(),
            world: worse.world.clone(),
            elsewhere: better.world.clone(),
            found: both.filter_map(|(counter, (here, there))| found(counter, *here, *there)).collect(),
        })
    }

    /// For example "Costs of which netns has surely more for dca: collisions (132.0 against 40.0 in sim)."
    pub(super) fn sentence(&self, arm: &str) -> String {
        let DifferenceCause { world, elsewhere, found, .. } = self;
        let told = |found: &ExtraCost, of: &str| {
            let ExtraCost { words, mean, elsewhere, .. } = found;
            format!("{words} ({mean:.1} against {elsewhere:.1}{of})")
        };
        let Some((first, others)) = found.split_first() else {
            return format!("Nothing that was measured explains why {arm} is worse in {world}.");
        };
        let first = told(first, &format!(" in {elsewhere}"));
        let costs: Vec<_> = [first].into_iter().chain(others.iter().map(|found| told(found, ""))).collect();
        format!("Costs of which {world} has surely more for {arm}: {}.", costs.join(", "))
    }
}

/// The cost, if the worse world has surely more of it, and more by a share that counts.
fn found(
    counter: &CostCounter,
    worse: Option<MeanSummary>,
    better: Option<MeanSummary>,
) -> Option<ExtraCost> {
    let (words, worse) = (counter.cost?, worse?);
    let elsewhere = match better {
        Some(better) => {
            (is_above(&worse, &better) && worse.mean > better.mean * (1.0 + WITHIN)).then_some(better.mean)
        }
        // Virtual time is never late.
        None if counter.is_lateness => Some(0.0),
        None => None,
    }?;
    let is_little = counter.is_lateness && worse.mean < LATE_MS;
    (!is_little).then_some(ExtraCost { measured: counter.name, mean: worse.mean, elsewhere, words })
}

/// Intervals that do not meet.
fn is_above(here: &MeanSummary, there: &MeanSummary) -> bool {
    matches!((here.ci95, there.ci95), (Some([low, _]), Some([_, high])) if low > high)
}
