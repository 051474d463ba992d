//! Statements of papers, compared with runs: reproduced, not reproduced, or contradicted, each with the measured value.

pub mod plans;

use std::fmt;

use super::metric;
use super::record::Record;
use super::statistics::{MARGIN, Paired, change, paired};
use crate::scenario::point::Point;
use crate::scenario::{Bound, Claim, Measure, Over};

/// Result of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The measured ratio lies within the claim's tolerance.
    Reproduced,
    /// The measured ratio lies outside of the tolerance.
    NotReproduced,
    /// The whole interval contradicts the claim by more than the margin.
    Contradicted,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Outcome::Reproduced => "reproduced",
            Outcome::NotReproduced => "not reproduced",
            Outcome::Contradicted => "contradicted",
        })
    }
}

/// A claim after its comparison with runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// The verdict.
    pub outcome: Outcome,
    /// The ratio of the two arms, over pairs of blocks.
    pub measured: Paired,
    /// Point of the largest ratio, if the claim is about that.
    pub point: Option<Point>,
    /// The reason for the verdict, in words.
    pub why: String,
}

/// Compares a claim with the records of all its points; `baseline` is the other arm if the claim names none.
pub fn judge(claim: &Claim, baseline: &str, records: &[Record]) -> Judged {
    let against = claim.against.as_deref().unwrap_or(baseline);
    let mut points: Vec<&Point> = Vec::new();
    for record in records {
        let is_meant = claim
            .at
            .iter()
            .all(|(path, values)| record.point.get(path).is_some_and(|value| values.contains(value)));
        if is_meant && !points.contains(&&record.point) {
            points.push(&record.point);
        }
    }
    let of = |point: &Point, arm: &str, block: u32| {
        let mut runs = records.iter().filter(|r| r.point == *point && r.arm == arm && r.block == block);
        runs.next().and_then(|record| value(claim.measure, record))
    };
    let mut blocks: Vec<u32> = records.iter().map(|record| record.block).collect();
    blocks.sort_unstable();
    blocks.dedup();
    let pairs_at = |point: &Point| -> Vec<(f64, f64)> {
        blocks.iter().filter_map(|b| Some((of(point, &claim.arm, *b)?, of(point, against, *b)?))).collect()
    };
    let by_point: Vec<_> = points.iter().map(|point| (*point, pairs_at(point))).collect();
    let (measured, point) = match claim.over {
        Over::Mean => (paired(&means(&by_point), MARGIN), None),
        Over::Most => {
            let each = by_point.iter().map(|(point, pairs)| (paired(pairs, MARGIN), Some((*point).clone())));
            let best = each.max_by(|a, b| a.0.ratio.unwrap_or(0.0).total_cmp(&b.0.ratio.unwrap_or(0.0)));
            best.unwrap_or_default()
        }
    };
    let (outcome, why) = outcome(claim, &measured);
    Judged { outcome, measured, point, why }
}

/// Block by block, the geometric mean over the points, or the plain mean if a value is zero.
fn means(by_point: &[(&Point, Vec<(f64, f64)>)]) -> Vec<(f64, f64)> {
    let count = by_point.len() as f64;
    let blocks = by_point.iter().map(|(_, pairs)| pairs.len()).min().unwrap_or(0);
    let mean = |values: &[f64]| {
        if values.iter().all(|value| *value > 0.0) {
            libm::exp(values.iter().map(|value| libm::log(*value)).sum::<f64>() / count)
        } else {
            values.iter().sum::<f64>() / count
        }
    };
    let block = |nth: usize| {
        let side = |of: fn(&(f64, f64)) -> f64| {
            mean(&by_point.iter().map(|(_, pairs)| of(&pairs[nth])).collect::<Vec<_>>())
        };
        (side(|pair| pair.0), side(|pair| pair.1))
    };
    (0..blocks).map(block).collect()
}

fn value(measure: Measure, record: &Record) -> Option<f64> {
    let run = &record.result;
    match measure {
        Measure::Goodput => Some(run.total.goodput_kbps),
        Measure::AcksPerSegment => metric::acks_per_segment(run),
        Measure::SentAgain => metric::sum(run, |flow| flow.segments_retransmitted),
        Measure::SentNeedlessly => metric::received_again(run),
        Measure::Timeouts => metric::sum(run, |flow| flow.timeouts.map(u64::from)),
    }
}

fn outcome(claim: &Claim, measured: &Paired) -> (Outcome, String) {
    let Some(ratio) = measured.ratio else {
        return (Outcome::NotReproduced, "there is nothing to compare with".to_owned());
    };
    let tolerance = f64::from(claim.tolerance.0) / 1e6;
    let (low, high) = (claim.ratio - tolerance, claim.ratio + tolerance);
    let is_met = match claim.bound {
        Bound::About => (low..=high).contains(&ratio),
        Bound::AtLeast => ratio >= low,
        Bound::AtMost => ratio <= high,
    };
    let [from, to] = measured.ci95.unwrap_or([0.0, f64::INFINITY]);
    if is_met {
        return match is_sure(claim, (low, high), (from, to)) {
            true => (Outcome::Reproduced, "within what is claimed".to_owned()),
            false => (Outcome::NotReproduced, "it would fit, but is not sure".to_owned()),
        };
    }
    // An opposite must exceed the margin.
    let (less, more) = (to < low.min(1.0 / (1.0 + MARGIN)), from > high.max(1.0 + MARGIN));
    let is_opposite = if claim.ratio > 1.0 {
        to < 1.0 / (1.0 + MARGIN)
    } else if claim.ratio < 1.0 {
        from > 1.0 + MARGIN
    } else {
        match claim.bound {
            Bound::About => less || more,
            Bound::AtLeast => less,
            Bound::AtMost => more,
        }
    };
    if is_opposite {
        let is_null = claim.ratio == 1.0;
        let why = if is_null { "there surely is a difference" } else { "the opposite holds" };
        return (Outcome::Contradicted, why.to_owned());
    }
    let gain = claim.ratio > 1.0;
    let is_there = if gain { from > 1.0 } else { to < 1.0 };
    let why = if claim.ratio == 1.0 {
        "a difference, though not surely beyond the tolerance".to_owned()
    } else if !is_there {
        "no sure difference".to_owned()
    } else if (ratio > claim.ratio) == gain {
        "the effect is there, and larger than claimed".to_owned()
    } else {
        "the effect is there, but smaller than claimed".to_owned()
    };
    (Outcome::NotReproduced, why)
}

/// True if the interval leaves no room for the opposite of the claim.
fn is_sure(claim: &Claim, (low, high): (f64, f64), (from, to): (f64, f64)) -> bool {
    match claim.bound {
        Bound::AtLeast => from >= low.min(1.0),
        Bound::AtMost => to <= high.max(1.0),
        Bound::About if claim.ratio > 1.0 => from > 1.0,
        Bound::About if claim.ratio < 1.0 => to < 1.0,
        Bound::About => from >= low - (1.0 - low) && to <= high + (high - 1.0),
    }
}

/// Text of the claim, for people.
pub fn claimed(claim: &Claim) -> String {
    let bound = match claim.bound {
        Bound::About if claim.ratio == 1.0 => return "the same".to_owned(),
        Bound::AtLeast if claim.ratio == 1.0 => return "no less".to_owned(),
        Bound::AtMost if claim.ratio == 1.0 => return "no more".to_owned(),
        Bound::About => "",
        Bound::AtLeast => "at least ",
        Bound::AtMost => "at most ",
    };
    let most = if claim.over == Over::Most { "up to " } else { "" };
    format!("{most}{bound}{}", change(claim.ratio))
}

/// Text of the measured value, for people.
pub fn measured(judged: &Judged) -> String {
    let Some(ratio) = judged.measured.ratio else { return "nothing".to_owned() };
    let ends = judged.measured.ci95;
    let ends = ends.map_or(String::new(), |[low, high]| format!(" ({} to {})", change(low), change(high)));
    let at = judged.point.as_ref().filter(|point| !point.is_empty());
    let at = at.map_or(String::new(), |point| format!(" at {}", super::findings::label(point)));
    format!("{}{ends}{at}", change(ratio))
}

#[cfg(test)]
mod tests;
