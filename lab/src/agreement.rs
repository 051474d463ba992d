//! Worlds that ran the same trial, arm by arm: whether they agree, and what was measured beside it.
//!
//! The first world is the reference. Runs of one seed share radios, channel and traffic in every world, and are
//! compared in pairs. An arm that only some worlds can run is compared where it ran.

use std::fmt::Write as _;

use serde::{Serialize, Serializer};

use crate::findings::{columns, label};
use crate::metric::{self, acks_per_segment, sum};
use crate::record::{Record, Trial};
use crate::result::RunResult;
use crate::scenario::point::Point;
use crate::statistics::{Comparison, Samples, Summary, Verdict, change, compare, summarize};

/// Worlds agree on an arm if its goodput differs surely by less than this share.
pub const WITHIN: f64 = 0.05;

/// The trial of one world.
#[derive(Clone, Debug)]
pub struct InWorld {
    pub trial: Trial,
    pub records: Vec<Record>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Agreement {
    pub scenario: String,
    /// The reference first.
    pub worlds: Vec<String>,
    /// The share by which an arm may differ.
    pub within: f64,
    pub points: Vec<AtPoint>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AtPoint {
    pub point: Point,
    pub arms: Vec<OfArm>,
    pub orders: Vec<Order>,
    /// Pairs of arms of which one world says surely the opposite of another.
    pub contradictions: Vec<Contradiction>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OfArm {
    pub arm: String,
    /// The worlds that ran the arm.
    pub worlds: Vec<Measured>,
    /// Each of these worlds against the first of them.
    pub comparisons: Vec<Comparison>,
}

/// The figures of an arm in one world, as means over its runs; absent where the world does not know one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measured {
    pub world: String,
    pub goodput_kbps: Option<Summary>,
    #[serde(serialize_with = "as_object")]
    pub beside: Vec<(&'static str, Option<f64>)>,
}

/// The arms of a world from the fastest to the slowest, by their means. Only arms that every world ran are in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Order {
    pub world: String,
    pub arms: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Contradiction {
    pub faster: String,
    pub slower: String,
    /// The world that has them in this order, and the one that has them in the other.
    pub world: String,
    pub elsewhere: String,
}

/// A figure of a run; none where its world does not know it.
struct Figure {
    name: &'static str,
    of: fn(&RunResult) -> Option<f64>,
}

/// Figures that may explain a difference. Queues that are full, frames that are given up and needless waits all cost
/// goodput; `other_airtime_s` is that of ARP, routing and beacons. Our TCP has
/// `rtt_median_ms` in every world; the kernel's has `rtt_ms` alone.
const BESIDE: [Figure; 11] = [
    Figure { name: "acks_per_segment", of: acks_per_segment },
    Figure { name: "segments_retransmitted", of: |run| sum(run, |flow| flow.segments_retransmitted) },
    Figure { name: "timeouts", of: |run| sum(run, |flow| flow.timeouts.map(u64::from)) },
    Figure { name: "queue_drops", of: |run| run.air.queue_drops.map(|drops| drops as f64) },
    Figure { name: "retry_drops", of: |run| run.air.retry_drops.map(|drops| drops as f64) },
    Figure { name: "collisions", of: |run| run.air.collisions.map(|collisions| collisions as f64) },
    Figure { name: "other_airtime_s", of: other_airtime_s },
    Figure { name: "rtt_median_ms", of: |run| of_metric(run, "rtt_median_ms") },
    Figure { name: "rtt_ms", of: |run| of_metric(run, "rtt_ms") },
    Figure { name: "air_late_ms", of: |run| run.live.as_ref().map(|live| live.air_late_ms) },
    Figure { name: "programs_late_ms", of: |run| run.live.as_ref().map(|live| live.programs_late_ms) },
];

/// The same figures, as the heads of a table.
const HEADS: [&str; BESIDE.len()] = [
    "ACKs/segment",
    "resent",
    "timeouts",
    "queue drops",
    "given up",
    "collisions",
    "other air, s",
    "median RTT, ms",
    "mean RTT, ms",
    "air late, ms",
    "programs late, ms",
];

/// An object whose members are the figures that are known.
fn as_object<S: Serializer>(figures: &[(&'static str, Option<f64>)], to: S) -> Result<S::Ok, S::Error> {
    to.collect_map(figures.iter().filter_map(|(name, mean)| Some((name, (*mean)?))))
}

/// The airtime of all but TCP.
fn other_airtime_s(run: &RunResult) -> Option<f64> {
    let tcp_s = run.air.data_airtime_s? + run.air.ack_airtime_s?;
    Some((run.air.airtime_s? - tcp_s).max(0.0))
}

fn of_metric(run: &RunResult, name: &str) -> Option<f64> {
    (metric::named(name)?.of)(run)
}

impl Agreement {
    /// The trials are of one scenario, the reference first.
    pub fn of(worlds: &[InWorld]) -> Agreement {
        let first = worlds.first().map(|first| &first.trial);
        let points = first.map_or(&[][..], |trial| &trial.points).iter();
        Agreement {
            scenario: first.map_or_else(String::new, |trial| trial.scenario.clone()),
            worlds: worlds.iter().map(|world| world.trial.world.clone()).collect(),
            within: WITHIN,
            points: points.map(|point| AtPoint::of(worlds, point)).collect(),
        }
    }

    /// The agreement as one line.
    pub fn json(&self) -> String {
        serde_json::to_string(self).expect("nothing in it but texts and numbers")
    }

    /// The agreement as a table and sentences for each point.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for at in &self.points {
            if !at.point.is_empty() {
                let _ = writeln!(text, "{}", label(&at.point));
            }
            text.push_str(&at.table());
            at.sentences(&mut text);
            text.push('\n');
        }
        text
    }
}

impl AtPoint {
    fn of(worlds: &[InWorld], point: &Point) -> AtPoint {
        let mut names: Vec<&String> = Vec::new();
        for arm in worlds.iter().flat_map(|world| &world.trial.arms) {
            if !names.contains(&arm) {
                names.push(arm);
            }
        }
        let in_all = |arm: &&String| worlds.iter().all(|world| world.trial.arms.contains(arm));
        let common: Vec<&String> = names.iter().copied().filter(in_all).collect();
        AtPoint {
            point: point.clone(),
            arms: names.iter().map(|arm| OfArm::of(worlds, point, arm)).collect(),
            orders: worlds.iter().map(|world| world.order(point, &common)).collect(),
            contradictions: contradictions(worlds, point, &common),
        }
    }

    fn table(&self) -> String {
        let reference = self.orders.first().map_or("", |order| order.world.as_str());
        let against = format!("against {reference}");
        let heads = ["arm", "world", "kbit/s", "95 % interval", "runs", &against, "95 % interval", "verdict"];
        let mut rows = vec![heads.map(str::to_owned).to_vec()];
        let mut beside = vec![["arm", "world"].iter().chain(&HEADS).map(|head| (*head).to_owned()).collect()];
        for of_arm in &self.arms {
            rows.extend(of_arm.worlds.iter().map(|measured| of_arm.row(measured)));
            beside.extend(of_arm.worlds.iter().map(|measured| of_arm.row_beside(measured)));
        }
        format!("{}\nMeans of what was measured beside it:\n{}\n", columns(&rows), columns(&beside))
    }

    fn sentences(&self, text: &mut String) {
        for comparison in self.arms.iter().flat_map(|arm| &arm.comparisons) {
            let _ = writeln!(text, "{}", comparison.sentence);
        }
        for Order { world, arms } in self.orders.iter().filter(|order| order.arms.len() > 1) {
            let _ = writeln!(text, "Order in {world}, by means: {}.", arms.join(", "));
        }
        for Contradiction { faster, slower, world, elsewhere } in &self.contradictions {
            let _ = writeln!(text, "{faster} is faster than {slower} in {world}, and slower in {elsewhere}.");
        }
        if self.orders.len() > 1 && self.contradictions.is_empty() {
            let _ = writeln!(text, "No two arms are surely in another order.");
        }
    }
}

impl OfArm {
    fn of(worlds: &[InWorld], point: &Point, arm: &str) -> OfArm {
        let ran: Vec<&InWorld> =
            worlds.iter().filter(|world| world.trial.arms.iter().any(|a| a == arm)).collect();
        let samples = |world: &&InWorld| Samples {
            arm: format!("{arm} in {}", world.trial.world),
            ..world.samples(point, arm)
        };
        let samples: Vec<Samples> = ran.iter().map(samples).collect();
        let comparisons = samples
            .split_first()
            .map(|(reference, others)| compare(reference, others, WITHIN))
            .unwrap_or_default();
        let measured = ran.iter().map(|world| world.measured(point, arm)).collect();
        OfArm { arm: arm.to_owned(), worlds: measured, comparisons }
    }

    fn row(&self, measured: &Measured) -> Vec<String> {
        let place = self.worlds.iter().position(|other| other.world == measured.world);
        let comparison = place.and_then(|place| self.comparisons.get(place.checked_sub(1)?));
        let (mean, interval, runs) = crate::findings::cells(measured.goodput_kbps.as_ref());
        let ends = comparison.and_then(|found| found.ci95);
        let mut row = vec![self.arm.clone(), measured.world.clone(), mean, interval, runs];
        row.push(comparison.and_then(|found| found.ratio).map_or(String::new(), change));
        row.push(ends.map_or(String::new(), |[low, high]| format!("{} to {}", change(low), change(high))));
        row.push(comparison.map_or(String::new(), |found| agrees(found.verdict).to_owned()));
        row
    }

    fn row_beside(&self, measured: &Measured) -> Vec<String> {
        let shown = |mean: Option<f64>| mean.map_or(String::new(), |mean| format!("{mean:.1}"));
        let means = measured.beside.iter().map(|(_, mean)| shown(*mean));
        [self.arm.clone(), measured.world.clone()].into_iter().chain(means).collect()
    }
}

/// The verdict between two worlds.
fn agrees(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::NoDifference => "agrees",
        Verdict::Undecided => "undecided",
        Verdict::Faster => "faster",
        Verdict::Slower => "slower",
    }
}

impl InWorld {
    fn records(&self, point: &Point, arm: &str) -> impl Iterator<Item = &Record> {
        self.records.iter().filter(move |record| record.arm == arm && record.point == *point)
    }

    fn samples(&self, point: &Point, arm: &str) -> Samples {
        let values = self.records(point, arm).map(|record| (record.block, record.result.total.goodput_kbps));
        Samples { arm: arm.to_owned(), values: values.collect() }
    }

    fn measured(&self, point: &Point, arm: &str) -> Measured {
        let mean = |of: fn(&RunResult) -> Option<f64>| {
            let values: Vec<f64> = self.records(point, arm).filter_map(|record| of(&record.result)).collect();
            summarize(&values)
        };
        Measured {
            world: self.trial.world.clone(),
            goodput_kbps: mean(|run| Some(run.total.goodput_kbps)),
            beside: BESIDE
                .iter()
                .map(|metric| (metric.name, mean(metric.of).map(|found| found.mean)))
                .collect(),
        }
    }

    fn order(&self, point: &Point, arms: &[&String]) -> Order {
        let mean = |arm: &&&String| self.measured(point, arm).goodput_kbps.map_or(0.0, |found| found.mean);
        let mut arms: Vec<&&String> = arms.iter().collect();
        arms.sort_by(|one, other| mean(other).total_cmp(&mean(one)));
        Order { world: self.trial.world.clone(), arms: arms.into_iter().map(|arm| (*arm).clone()).collect() }
    }

    /// True if this world's blocks show that the first arm is faster.
    fn is_faster(&self, point: &Point, (arm, other): (&str, &str)) -> bool {
        let found = compare(&self.samples(point, other), &[self.samples(point, arm)], self.trial.margin);
        found.first().is_some_and(|found| found.verdict == Verdict::Faster)
    }
}

fn contradictions(worlds: &[InWorld], point: &Point, arms: &[&String]) -> Vec<Contradiction> {
    let mut found = Vec::new();
    for (nth, world) in worlds.iter().enumerate() {
        for elsewhere in &worlds[nth + 1..] {
            for (faster, slower) in pairs(arms) {
                if world.is_faster(point, (faster, slower)) && elsewhere.is_faster(point, (slower, faster)) {
                    let [world, elsewhere] = [world, elsewhere].map(|world| world.trial.world.clone());
                    let (faster, slower) = (faster.clone(), slower.clone());
                    found.push(Contradiction { faster, slower, world, elsewhere });
                }
            }
        }
    }
    found
}

/// All pairs of two arms, in both orders.
fn pairs<'a>(arms: &'a [&String]) -> impl Iterator<Item = (&'a String, &'a String)> {
    let others = move |arm: &'a String| {
        arms.iter().copied().filter(move |other| *other != arm).map(move |other| (arm, other))
    };
    arms.iter().copied().flat_map(others)
}

#[cfg(test)]
mod tests;
