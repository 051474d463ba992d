//! The answer of a trial in a few sentences: what to deploy, where that is asked; which arm carries most, which answers
//! soonest, and how sure that is.

use std::collections::BTreeMap;

use super::{ArmFindings, Findings, PointFindings, ends, label};
use crate::metric;
use crate::statistics::{Comparison, ComparisonVerdict, Figure, GOODPUT, change};

/// The points, and the arms, up to which sentences tell each gain. A table has more of them.
const MOST_TOLD: usize = 4;

impl Findings {
    /// The answer; empty where fewer than two arms have a run.
    pub fn answer(&self) -> Vec<String> {
        let advised = self.points.iter().filter_map(|point| match (&point.advice, point.point.is_empty()) {
            (Some(advice), false) => Some(format!("{}: {advice}", label(&point.point))),
            (advice, _) => advice.clone(),
        });
        let answer = match &self.points[..] {
            [only] => self.at(only),
            points => self.over(points),
        };
        advised.chain(answer).collect()
    }

    fn at(&self, point: &PointFindings) -> Vec<String> {
        let known = || point.arms.iter().filter(|arm| arm.summary.is_some());
        let (Some(most), 2..) = (point.carries_most(), known().count()) else { return Vec::new() };
        let (Some(baseline), Some(kbps)) = (point.arms.first(), most.summary) else { return Vec::new() };
        let beside = match point.comparison(&most.arm, &GOODPUT) {
            Some(found) => gain(found),
            None if most.arm == baseline.arm => beside_all(point),
            None => String::new(),
        };
        let beside = if beside.is_empty() { beside } else { format!(", {beside}") };
        let mut said = vec![format!("{} carries most: {:.1} kbit/s{beside}.", most.arm, kbps.mean)];
        said.extend(self.soonest(point, most));
        said
    }

    /// The arm with the least delay, and what that costs in goodput.
    fn soonest(&self, point: &PointFindings, most: &ArmFindings) -> Option<String> {
        let metric = metric::named(self.delay?)?;
        let soonest = point.answers_soonest()?;
        let figure = Figure { better: metric.better?, name: metric.name, unit: metric.unit() };
        let digits = if metric.unit() == "ms" { 0 } else { 2 };
        let shown = |arm: &ArmFindings| Some(format!("{:.digits$}", arm.delay?.mean));
        let is_both = soonest.arm == most.arm;
        // The arm to compare with: the baseline, or the arm that carries most.
        let other = if is_both { point.arms.first()? } else { most };
        let (of, beside) = (shown(soonest)?, shown(other)?);
        let verdict = point.comparison(&soonest.arm, &figure).map_or("", |found| match found.verdict {
            ComparisonVerdict::Undecided => " (undecided)",
            _ => "",
        });
        let head = if is_both { "It also answers".to_owned() } else { format!("{} answers", soonest.arm) };
        let cost = match (soonest.summary, most.summary) {
            (Some(its), Some(most)) if !is_both && most.mean > 0.0 => {
                match format!("{:.1}", 100.0 * (1.0 - its.mean / most.mean)) {
                    none if none == "0.0" => " It carries as much.".to_owned(),
                    percent => format!(" It carries {percent} % less."),
                }
            }
            _ => String::new(),
        };
        let instead = if soonest.arm == other.arm {
            String::new()
        } else {
            format!(" instead of {beside} with {}", other.arm)
        };
        Some(format!("{head} soonest: {} {of} {}{instead}{verdict}.{cost}", metric.title(), metric.unit()))
    }

    /// The same over the points of a matrix: how often each arm is the best, and how many comparisons are decided.
    fn over(&self, points: &[PointFindings]) -> Vec<String> {
        let mut said = Vec::new();
        let mut tell = |of: fn(&PointFindings) -> Option<&ArmFindings>, does: &str, by: &str| {
            let mut times: BTreeMap<&str, usize> = BTreeMap::new();
            points.iter().filter_map(of).for_each(|arm| *times.entry(&arm.arm).or_default() += 1);
            let mut times: Vec<_> = times.into_iter().collect();
            times.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
            let Some(((first, count), others)) = times.split_first() else { return };
            let others: String = others.iter().map(|(arm, count)| format!(", {arm} at {count}")).collect();
            let share = if *count == points.len() { "each".to_owned() } else { count.to_string() };
            said.push(format!("{first} {does} at {share} of {} points{others}{by}.", points.len()));
        };
        tell(PointFindings::carries_most, "carries most", "");
        let by = self
            .delay
            .and_then(metric::named)
            .map_or(String::new(), |metric| format!(" ({})", metric.title()));
        tell(PointFindings::answers_soonest, "answers soonest", &by);
        said.extend(gains_by_point(points));
        let all = || points.iter().flat_map(|point| &point.comparisons);
        let open = all().filter(|found| found.verdict == ComparisonVerdict::Undecided).count();
        let baseline = points.first().and_then(|point| point.arms.first()).map_or("", |arm| arm.arm.as_str());
        if all().count() > 0 {
            said.push(format!("{open} of {} comparisons with {baseline} are undecided.", all().count()));
        }
        said
    }
}

/// The gain in goodput of each arm over the baseline at each point, a sentence an arm; none where they would be long.
fn gains_by_point(points: &[PointFindings]) -> Vec<String> {
    let first = &points[0].arms;
    if points.len() > MOST_TOLD || first.len() > MOST_TOLD {
        return Vec::new();
    }
    let of_arm = |arm: &ArmFindings| {
        let at = |point: &PointFindings| {
            let found = point.comparison(&arm.arm, &GOODPUT)?;
            Some(format!("{} at {} ({})", change(found.ratio?), label(&point.point), found.verdict.name()))
        };
        let told: Vec<_> = points.iter().filter_map(at).collect();
        let baseline = &first.first()?.arm;
        (!told.is_empty()).then(|| format!("{} against {baseline}: {}.", arm.arm, told.join(", ")))
    };
    first.iter().filter_map(of_arm).collect()
}

/// The baseline carries most. An arm that is not surely slower may carry as much.
fn beside_all(point: &PointFindings) -> String {
    let goodput = point.comparisons.iter().filter(|found| found.is_of(&GOODPUT));
    let open = goodput.filter(|found| found.verdict != ComparisonVerdict::Slower);
    match open.map(|found| found.arm.as_str()).collect::<Vec<_>>().join(" and ") {
        none if none.is_empty() => "more than any other arm".to_owned(),
        arms => format!("but {arms} may carry as much"),
    }
}

fn mean(summary: Option<crate::statistics::MeanSummary>) -> f64 {
    summary.map_or(0.0, |summary| summary.mean)
}

impl PointFindings {
    /// The arm with the most goodput.
    pub(crate) fn carries_most(&self) -> Option<&ArmFindings> {
        let known = self.arms.iter().filter(|arm| arm.summary.is_some());
        // The first of equals counts.
        known.rev().max_by(|one, other| mean(one.summary).total_cmp(&mean(other.summary)))
    }

    /// The arm with the least delay.
    pub(crate) fn answers_soonest(&self) -> Option<&ArmFindings> {
        let known = self.arms.iter().filter(|arm| arm.delay.is_some());
        known.min_by(|one, other| mean(one.delay).total_cmp(&mean(other.delay)))
    }
}

/// The gain over the baseline, and how sure it is.
pub(super) fn gain(found: &Comparison) -> String {
    let Some(ratio) = found.ratio else { return String::new() };
    let interval = found.ci95.map_or(String::new(), |both| format!("95 % interval {}", ends(both)));
    let sure = match found.verdict {
        ComparisonVerdict::NoDifference => "no difference",
        ComparisonVerdict::Undecided => "undecided",
        _ => "",
    };
    let known: Vec<_> = [interval, sure.to_owned()].into_iter().filter(|part| !part.is_empty()).collect();
    let known = if known.is_empty() { String::new() } else { format!(" ({})", known.join(", ")) };
    format!("{} against {}{known}", change(ratio), found.against)
}
