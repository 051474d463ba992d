//! The most likely cause of a difference between two worlds, of all that was measured beside it.

use serde::Serialize;

use super::{BESIDE, Measured, WITHIN};
use crate::statistics::{Comparison, Summary, Verdict};

/// Why a world differs surely in an arm, and by more than worlds that agree may.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cause {
    /// The figure that differs; none for goodput.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub figure: Option<String>,
    /// The two worlds: the one that is worse, and the other.
    pub world: String,
    pub elsewhere: String,
    /// The cost that the worse one has more of; none if nothing that was measured explains it.
    pub found: Option<Found>,
}

/// A cost that one world has more of, by the means of both.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Found {
    pub measured: &'static str,
    pub mean: f64,
    pub elsewhere: f64,
    #[serde(skip)]
    words: &'static str,
}

impl Cause {
    /// None if the worlds do not surely differ by more than worlds that agree may.
    pub(super) fn of(comparison: &Comparison, this: &Measured, reference: &Measured) -> Option<Cause> {
        let (worse, better) = match comparison.verdict {
            Verdict::Slower | Verdict::Worse => (this, reference),
            Verdict::Faster | Verdict::Better => (reference, this),
            Verdict::NoDifference | Verdict::Undecided => return None,
        };
        comparison.ratio.filter(|ratio| (ratio - 1.0).abs() > WITHIN)?;
        Some(Cause {
            figure: comparison.figure.clone(),
            world: worse.world.clone(),
            elsewhere: better.world.clone(),
            found: most(worse, better),
        })
    }

    /// For example "The most likely cause for dca: more collisions in netns (132.0 against 40.0 in sim)."
    pub(super) fn sentence(&self, arm: &str) -> String {
        let Cause { world, elsewhere, found, .. } = self;
        let Some(Found { mean, elsewhere: other, words, .. }) = found else {
            return format!("The cause for {arm}: nothing that was measured explains it.");
        };
        let means = format!("{mean:.1} against {other:.1} in {elsewhere}");
        format!("The most likely cause for {arm}: more {words} in {world} ({means}).")
    }
}

/// The cost of which the worse world has surely more, and more by the largest share.
fn most(worse: &Measured, better: &Measured) -> Option<Found> {
    let both = BESIDE.iter().zip(worse.summaries.iter().zip(&better.summaries));
    let surely_more = both.filter_map(|(counter, (here, there))| {
        let (words, here, there) = (counter.cost?, (*here)?, (*there)?);
        is_above(&here, &there).then_some(Found {
            measured: counter.name,
            mean: here.mean,
            elsewhere: there.mean,
            words,
        })
    });
    let share = |found: &Found| (found.mean - found.elsewhere) / found.mean;
    surely_more.filter(|found| share(found) > WITHIN).max_by(|one, other| share(one).total_cmp(&share(other)))
}

/// Intervals that do not meet.
fn is_above(here: &Summary, there: &Summary) -> bool {
    matches!((here.ci95, there.ci95), (Some([low, _]), Some([_, high])) if low > high)
}
