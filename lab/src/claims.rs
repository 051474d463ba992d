//! Statements of papers, compared with runs: reproduced, not reproduced, contradicted, or undecided, each with the
//! measured value.
//!
//! The interval decides. A claim is reproduced if its interval lies wholly within what is claimed, and undecided if
//! only a part does: then the runs are too few. Bounds of papers and printed numbers have this one rule. More runs are
//! worth their time only where they are likely to decide (`may_be_decided`).
//!
//! A claim is judged once for each combination of the settings that its paper leaves open (`readings`). Blocks are the
//! unit of confidence in all of them.
//!
//! A statement may compare two ratios: "long chains gain more than short ones" is the ratio of two arms at the points
//! `at`, divided by that at the points `per_at`. Each block has one such number, from its runs at both. The interval is
//! therefore computed over blocks, as for any other ratio, and nothing that a block's runs share is counted twice. A
//! block in which some run has 0 has no such number. The claim then has none either.

pub mod plans;
mod readings;
pub mod table;

use std::collections::BTreeMap;

use serde_json::Value;

use super::metric;
use super::record::Record;
use super::statistics::{MARGIN, MeanSummary, Paired, change, paired, summarize};
use crate::scenario::point::MatrixPoint;
use crate::scenario::{Bound, Claim, Measure, PointCombination, Premise, Stated};
pub use readings::{JointVerdict, Reading, ReadingChoice, choices, readings};
pub use table::{claimed, measured, rests_on};

/// The most runs of a line under its paper's rules, by seeds.
pub const MOST_SEEDS: u32 = 40;

hopwise_core::named! {
    /// Result of a claim.
    pub enum ClaimOutcome {
        /// The whole interval lies within what is claimed.
        Reproduced = "reproduced",
        /// The interval lies partly within what is claimed: too few runs.
        Undecided = "undecided",
        /// The whole interval lies outside.
        NotReproduced = "not reproduced",
        /// The whole interval contradicts the claim by more than the margin.
        Contradicted = "contradicted",
    }
}

impl ClaimOutcome {
    /// The outcome of numbers that an interval holds, where the claim allows numbers from `low` to `high`.
    fn of((low, high): (f64, f64), [from, to]: [f64; 2]) -> ClaimOutcome {
        if low <= from && to <= high {
            ClaimOutcome::Reproduced
        } else if to < low || high < from {
            ClaimOutcome::NotReproduced
        } else {
            ClaimOutcome::Undecided
        }
    }
}

/// A claim after its comparison with runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// The verdict.
    pub outcome: ClaimOutcome,
    /// The number that was measured.
    pub measured: MeasuredClaim,
    /// Point of the largest value, if the claim is about that.
    pub point: Option<MatrixPoint>,
    /// The reason for the verdict, in words.
    pub why: String,
}

/// Measurement of the number that a claim states: a ratio of two arms, or the value of one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MeasuredClaim {
    /// The number; none if no block has one.
    pub number: Option<f64>,
    /// The ends of its 95 % interval.
    pub ci95: Option<[f64; 2]>,
    /// The number of blocks.
    pub blocks: usize,
}

/// The values of a measure, by point, arm and block.
struct ClaimValues<'a> {
    measure: Measure,
    records: &'a [&'a Record],
    blocks: Vec<u32>,
}

impl<'a> ClaimValues<'a> {
    fn new(measure: Measure, records: &'a [&'a Record]) -> ClaimValues<'a> {
        let mut blocks: Vec<u32> = records.iter().map(|record| record.block).collect();
        blocks.sort_unstable();
        blocks.dedup();
        ClaimValues { measure, records, blocks }
    }

    /// The points that have one of the given values at each path.
    fn points(&self, at: &BTreeMap<String, Vec<Value>>) -> Vec<&'a MatrixPoint> {
        let mut points: Vec<&MatrixPoint> = Vec::new();
        for record in self.records {
            if is_meant(&record.point, at) && !points.contains(&&record.point) {
                points.push(&record.point);
            }
        }
        points
    }

    fn of(&self, point: &MatrixPoint, arm: &str, block: u32) -> Option<f64> {
        let mut runs = self.records.iter().filter(|r| r.point == *point && r.arm == arm && r.block == block);
        runs.next().and_then(|record| value(self.measure, record))
    }

    fn all(&self, point: &MatrixPoint, arm: &str) -> Vec<f64> {
        self.blocks.iter().filter_map(|block| self.of(point, arm, *block)).collect()
    }

    fn pairs(
        &self,
        (point, arm): (&MatrixPoint, &str),
        (other, against): (&MatrixPoint, &str),
    ) -> Vec<(f64, f64)> {
        let pair = |block: &u32| Some((self.of(point, arm, *block)?, self.of(other, against, *block)?));
        self.blocks.iter().filter_map(pair).collect()
    }

    /// A block's means over these points, each with the other arm's mean; none if a run is missing.
    fn in_block(
        &self,
        points: &[(&MatrixPoint, Option<&MatrixPoint>)],
        (arm, against): (&str, &str),
        block: u32,
    ) -> Option<(f64, f64)> {
        let pair = |(own, other): &(&MatrixPoint, Option<&MatrixPoint>)| {
            Some((self.of(own, arm, block)?, self.of((*other)?, against, block)?))
        };
        let pairs = points.iter().map(pair).collect::<Option<Vec<_>>>()?;
        let by_point: Vec<_> = points.iter().zip(pairs).map(|((own, _), pair)| (*own, vec![pair])).collect();
        means(&by_point).first().copied()
    }

    /// The point with the largest mean of an arm, among points that differ from `point` only in the paths of `at`.
    fn best(
        &self,
        point: &MatrixPoint,
        arm: &str,
        at: &BTreeMap<String, Vec<Value>>,
    ) -> Option<&'a MatrixPoint> {
        let rest = |point: &MatrixPoint| {
            let mut rest = point.clone();
            rest.retain(|path, _| !at.contains_key(path));
            rest
        };
        let mean = |point: &MatrixPoint| summarize(&self.all(point, arm)).map_or(0.0, |summary| summary.mean);
        let alike = self.points(at).into_iter().filter(|other| rest(other) == rest(point));
        alike.max_by(|a, b| mean(a).total_cmp(&mean(b)))
    }
}

fn is_meant(point: &MatrixPoint, at: &BTreeMap<String, Vec<Value>>) -> bool {
    at.iter().all(|(path, values)| point.get(path).is_some_and(|value| values.contains(value)))
}

/// True if the claim needs runs of that arm at that point; `baseline` is the other arm if the claim names none.
pub fn needs(claim: &Claim, baseline: &str, (point, arm): (&MatrixPoint, &str)) -> bool {
    let against = claim.against.as_deref().unwrap_or(baseline);
    let is_premise = |premise: &Premise| premise.arm == arm;
    let is_arm = arm == claim.arm
        || claim.ratio.is_some() && arm == against
        || claim.premise.as_ref().is_some_and(is_premise);
    let is_beside = |at: &BTreeMap<_, _>| !at.is_empty() && is_meant(point, at);
    is_arm && (is_meant(point, &claim.at) || is_beside(&claim.per_at) || is_beside(&claim.against_at))
}

/// Compares a claim with the records of all its points; `baseline` is the other arm if the claim names none.
fn judge(claim: &Claim, baseline: &str, records: &[&Record]) -> Judged {
    let values = ClaimValues::new(claim.measure, records);
    match claim.stated() {
        Stated::Ratio(_) => judge_ratio(claim, baseline, &values),
        Stated::Value(_) => judge_value(claim, &values),
    }
}

fn judge_ratio<'a>(claim: &Claim, baseline: &str, values: &ClaimValues<'a>) -> Judged {
    let against = claim.against.as_deref().unwrap_or(baseline);
    let couples = |at: &BTreeMap<String, Vec<Value>>| {
        let points = values.points(at).into_iter();
        let couple = |own: &'a MatrixPoint| match claim.against_at.is_empty() {
            true => (own, Some(own)),
            false => (own, values.best(own, against, &claim.against_at)),
        };
        points.map(couple).collect::<Vec<_>>()
    };
    let own = couples(&claim.at);
    let by_point = || {
        let pairs = |(own, other): &(&'a MatrixPoint, Option<&'a MatrixPoint>)| {
            let pairs = other.map(|other| values.pairs((own, &claim.arm), (other, against)));
            (*own, pairs.unwrap_or_default())
        };
        own.iter().map(pairs).collect::<Vec<_>>()
    };
    let (measured, point) = match claim.over {
        PointCombination::Mean if !claim.per_at.is_empty() => {
            let per = couples(&claim.per_at);
            let side = |of: &[_], block| values.in_block(of, (&claim.arm, against), block);
            let block = |block: &u32| Some((side(&own, *block)?, side(&per, *block)?));
            (paired(&quotients(values.blocks.iter().filter_map(block)), MARGIN), None)
        }
        PointCombination::Mean => (paired(&means(&by_point()), MARGIN), None),
        PointCombination::Most | PointCombination::Least => {
            let each = by_point().into_iter();
            let each = each.map(|(point, pairs)| (paired(&pairs, MARGIN), Some(point.clone())));
            let ratio = |of: &Paired| of.ratio;
            extreme(claim.over, each, ratio)
        }
    };
    let Paired { ratio: number, ci95, blocks, .. } = measured;
    let measured = MeasuredClaim { number, ci95, blocks };
    let (outcome, why) = judge_number(claim, &measured);
    Judged { outcome, measured, point, why }
}

/// The ratio of two ratios in each block, as the products of its four values; none if one of them is 0.
fn quotients(blocks: impl Iterator<Item = ((f64, f64), (f64, f64))>) -> Vec<(f64, f64)> {
    let quotients: Vec<_> = blocks.map(|((own, other), (per, by))| (own * by, other * per)).collect();
    let has_all = quotients.iter().all(|(above, below)| *above > 0.0 && *below > 0.0);
    if has_all { quotients } else { Vec::new() }
}

/// The value of one arm.
fn judge_value(claim: &Claim, values: &ClaimValues<'_>) -> Judged {
    let points = values.points(&claim.at);
    let by_point: Vec<_> = points.iter().map(|point| (*point, values.all(point, &claim.arm))).collect();
    let mean_of = |nth: usize| by_point.iter().map(|(_, of)| of[nth]).sum::<f64>() / by_point.len() as f64;
    let blocks = by_point.iter().map(|(_, of)| of.len()).min().unwrap_or(0);
    let (summary, point) = match claim.over {
        PointCombination::Mean => (summarize(&(0..blocks).map(mean_of).collect::<Vec<_>>()), None),
        PointCombination::Most | PointCombination::Least => {
            let each = by_point.iter().map(|(point, of)| (summarize(of), Some((*point).clone())));
            extreme(claim.over, each, |of| of.as_ref().map(|summary| summary.mean))
        }
    };
    let measured = summary.map_or_else(MeasuredClaim::default, |MeanSummary { mean, ci95, n }| {
        MeasuredClaim { number: Some(mean), ci95, blocks: n }
    });
    let (outcome, why) = judge_number(claim, &measured);
    Judged { outcome, measured, point, why }
}

/// The point with the largest number, or with the smallest; a point without one only if none has any.
fn extreme<T: Default>(
    over: PointCombination,
    each: impl Iterator<Item = (T, Option<MatrixPoint>)>,
    number: impl Fn(&T) -> Option<f64>,
) -> (T, Option<MatrixPoint>) {
    let rank = |of: &(T, Option<MatrixPoint>)| match (over, number(&of.0)) {
        (PointCombination::Least, Some(number)) => -number,
        (_, Some(number)) => number,
        (_, None) => f64::NEG_INFINITY,
    };
    each.max_by(|a, b| rank(a).total_cmp(&rank(b))).unwrap_or_default()
}

/// Block by block, the geometric mean over the points, or the plain mean if a value is zero.
fn means(by_point: &[(&MatrixPoint, Vec<(f64, f64)>)]) -> Vec<(f64, f64)> {
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
        Measure::Segments => metric::sum(run, |flow| flow.segments_sent),
        Measure::Acks => metric::sum(run, |flow| flow.acks_sent),
        Measure::AcksPerSegment => metric::acks_per_segment(run),
        Measure::SentAgain => metric::sum(run, |flow| flow.segments_retransmitted),
        Measure::SentNeedlessly => metric::received_again(run),
        Measure::Timeouts => metric::sum(run, |flow| flow.timeouts.map(u64::from)),
        Measure::TimeoutsInOutages => metric::sum(run, |flow| flow.timeouts_in_outages.map(u64::from)),
        Measure::RttMedian => metric::named("rtt_median_ms").and_then(|median| (median.of)(run)),
        Measure::SegmentsLost => metric::segments_lost(run),
        Measure::AcksLost => metric::acks_lost(run),
        Measure::AcksLostPerSegmentLost => metric::acks_lost_per_segment_lost(run),
    }
}

/// The mean of what the claim rests on, over its points and all runs that have it.
fn premise(claim: &Claim, records: &[&Record]) -> Option<f64> {
    let Premise { arm, measure } = claim.premise.as_ref()?;
    let values = ClaimValues::new(*measure, records);
    let all: Vec<f64> =
        values.points(&claim.at).into_iter().flat_map(|point| values.all(point, arm)).collect();
    summarize(&all).map(|summary| summary.mean)
}

/// Smallest and largest number that a bound allows around what is stated.
fn allowed(bound: Bound, stated: f64, tolerance: f64) -> (f64, f64) {
    match bound {
        Bound::About => (stated - tolerance, stated + tolerance),
        Bound::AtLeast => (stated - tolerance, f64::INFINITY),
        Bound::AtMost => (f64::NEG_INFINITY, stated + tolerance),
    }
}

/// The outcome of a claim whose number an interval holds.
fn outcome_of(claim: &Claim, ends: [f64; 2]) -> ClaimOutcome {
    let tolerance = f64::from(claim.tolerance().0) / 1e6;
    let allowed = match claim.stated() {
        Stated::Value(stated) => allowed(claim.bound, stated, stated * tolerance),
        Stated::Ratio(stated) => allowed(claim.bound, stated, tolerance),
    };
    ClaimOutcome::of(allowed, ends)
}

/// True if the most seeds would decide an undecided claim, were mean and scatter as seen so far: the ends of the
/// interval come nearer to the mean with the root of the number of runs. One run shows no scatter.
pub fn may_be_decided(claim: &Claim, MeasuredClaim { number, ci95, blocks }: &MeasuredClaim) -> bool {
    let share = (*blocks as f64 / f64::from(MOST_SEEDS)).sqrt();
    let narrowed = number.zip(*ci95).map(|(number, ends)| ends.map(|end| number + share * (end - number)));
    share < 1.0 && narrowed.is_none_or(|ends| outcome_of(claim, ends) != ClaimOutcome::Undecided)
}

/// The outcome of a claim by the number that was measured for it, and the reason in words.
pub fn judge_number(claim: &Claim, measured: &MeasuredClaim) -> (ClaimOutcome, String) {
    let Some(number) = measured.number else {
        return (ClaimOutcome::NotReproduced, "there is nothing to compare with".to_owned());
    };
    let ends = measured.ci95.unwrap_or([f64::NEG_INFINITY, f64::INFINITY]);
    let of = outcome_of(claim, ends);
    let (of, why): (_, String) = match claim.stated() {
        // No value is below 0: a mean above 0 tells that 0 is not the value.
        Stated::Value(0.0) if number > 0.0 && claim.bound != Bound::AtLeast => {
            (ClaimOutcome::NotReproduced, "another figure than what is printed".into())
        }
        // A value is never contradicted: it hangs on more than what a paper sets.
        Stated::Value(stated) => (of, format!("{} of what is printed", change(number / stated))),
        Stated::Ratio(stated) => {
            let is_opposite = of == ClaimOutcome::NotReproduced && is_opposite((claim.bound, stated), ends);
            let of = if is_opposite { ClaimOutcome::Contradicted } else { of };
            (of, why_of_ratio((of, stated), (number, ends)).to_owned())
        }
    };
    let is_in_tendency = match (claim.bound, claim.stated()) {
        (Bound::About, _) | (_, Stated::Value(_)) => false,
        (Bound::AtLeast, _) => number > 1.0,
        (Bound::AtMost, _) => number < 1.0,
    };
    let tendency = if is_in_tendency { "in tendency, " } else { "" };
    match of {
        ClaimOutcome::Reproduced => (of, "within what is claimed".to_owned()),
        ClaimOutcome::Undecided => {
            let is_left = measured.blocks < MOST_SEEDS as usize && !may_be_decided(claim, measured);
            let also = if is_left { format!(", and would with {MOST_SEEDS} seeds") } else { String::new() };
            (of, format!("{tendency}the interval goes beyond what is claimed{also}"))
        }
        ClaimOutcome::NotReproduced | ClaimOutcome::Contradicted => (of, format!("{tendency}{why}")),
    }
}

/// True if the whole interval says the opposite of the ratio by more than the margin.
fn is_opposite((bound, stated): (Bound, f64), [from, to]: [f64; 2]) -> bool {
    let is_no_less = stated > 1.0 || stated == 1.0 && bound != Bound::AtMost;
    let is_no_more = stated < 1.0 || stated == 1.0 && bound != Bound::AtLeast;
    is_no_less && to < 1.0 / (1.0 + MARGIN) || is_no_more && from > 1.0 + MARGIN
}

/// The reason why a ratio is not what is claimed.
fn why_of_ratio((of, stated): (ClaimOutcome, f64), (ratio, [from, to]): (f64, [f64; 2])) -> &'static str {
    let gain = stated > 1.0;
    let is_there = if gain { from > 1.0 } else { to < 1.0 };
    match of {
        ClaimOutcome::Contradicted if stated == 1.0 => "there surely is a difference",
        ClaimOutcome::Contradicted => "the opposite holds",
        _ if stated == 1.0 => "a difference, though not surely beyond the margin",
        _ if !is_there => "no sure difference",
        _ if (ratio > stated) == gain => "the effect is there, and larger than claimed",
        _ => "the effect is there, but smaller than claimed",
    }
}

#[cfg(test)]
mod tests;
