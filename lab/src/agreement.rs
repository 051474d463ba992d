//! Worlds that ran the same trial, arm by arm: whether they agree, and what was measured beside it.
//!
//! The first world is the reference. Runs of one seed share radios, channel and traffic in every world, and are
//! compared in pairs. An arm that only some worlds can run is compared where it ran.

mod causes;
mod table;

use std::fmt::Write as _;

use serde::{Serialize, Serializer};

pub use causes::{DifferenceCause, ExtraCost};

use crate::findings::{label, samples};
use crate::metric::{self, acks_per_segment, sum};
use crate::record::{Record, Trial};
use crate::result::RunResult;
use crate::scenario::point::MatrixPoint;
use crate::statistics::{Better, Comparison, ComparisonVerdict, Figure, GOODPUT, MeanSummary, Samples};
use crate::statistics::{compare_all, questions, summarize};

/// Worlds agree on an arm if a figure that decides, such as its goodput, differs surely by less than this share.
pub const WITHIN: f64 = 0.05;

/// The trial of one world.
#[derive(Clone, Debug)]
pub struct InWorld {
    /// The plan of the trial.
    pub trial: Trial,
    /// All runs of that trial in this world.
    pub records: Vec<Record>,
}

/// The comparison of one trial's worlds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Agreement {
    /// The scenario of the trial.
    pub scenario: String,
    /// The reference first.
    pub worlds: Vec<String>,
    /// The share by which an arm may differ.
    pub within: f64,
    /// The comparison at each point of the trial.
    pub points: Vec<AtPoint>,
}

/// The comparison at one point.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AtPoint {
    /// The values that make this point.
    pub point: MatrixPoint,
    /// Each arm by itself.
    pub arms: Vec<OfArm>,
    /// The arms from best to worst, for each world and each figure that decides.
    pub orders: Vec<ArmOrder>,
    /// Pairs of arms of which one world says surely the opposite of another.
    pub contradictions: Vec<Contradiction>,
    #[serde(skip)]
    figures: Vec<Figure>,
}

/// One arm in all its worlds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OfArm {
    /// The name of the arm.
    pub arm: String,
    /// The worlds that ran the arm.
    pub worlds: Vec<WorldMeans>,
    /// Each of these worlds against the first of them, figure by figure.
    pub comparisons: Vec<Comparison>,
    /// The costs beside each sure difference of more than `within`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<DifferenceCause>,
}

/// The figures of an arm in one world, as means over its runs; absent where the world does not know one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WorldMeans {
    /// The name of the world.
    pub world: String,
    /// The goodput in kbit/s.
    pub goodput_kbps: Option<MeanSummary>,
    /// The other figures that decide.
    #[serde(serialize_with = "as_object", skip_serializing_if = "Vec::is_empty")]
    pub figures: Vec<(&'static str, Option<MeanSummary>)>,
    /// The means of what was measured beside the figures, by name.
    #[serde(serialize_with = "as_object")]
    pub beside: Vec<(&'static str, Option<f64>)>,
    /// The same with their intervals.
    #[serde(skip)]
    summaries: Vec<Option<MeanSummary>>,
}

/// The arms of a world from the best to the worst, by their means. Only arms that every world ran are in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ArmOrder {
    /// The name of the world.
    pub world: String,
    /// None for goodput.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub figure: Option<&'static str>,
    /// The arms, the best one first.
    pub arms: Vec<String>,
}

/// Two arms that two worlds put in opposite orders, both surely.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Contradiction {
    /// None for goodput.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub figure: Option<&'static str>,
    /// The better one in the first world, and the worse one.
    pub faster: String,
    /// The worse one in the first world.
    pub slower: String,
    /// The world that has them in this order, and the one that has them in the other.
    pub world: String,
    /// The world with the opposite order.
    pub elsewhere: String,
}

/// A figure of a run; none where its world does not know it.
struct CostCounter {
    name: &'static str,
    /// The head of its column.
    head: &'static str,
    of: fn(&RunResult) -> Option<f64>,
    /// The words for something that costs goodput and time; none for what rather follows from them.
    cost: Option<&'static str>,
    /// The time by which something was late: 0 in virtual time, which is not measured.
    is_lateness: bool,
}

impl CostCounter {
    const fn new(name: &'static str, head: &'static str, of: fn(&RunResult) -> Option<f64>) -> CostCounter {
        CostCounter { name, head, of, cost: None, is_lateness: false }
    }

    const fn costing(self, words: &'static str) -> CostCounter {
        CostCounter { cost: Some(words), ..self }
    }

    const fn of_lateness(self) -> CostCounter {
        CostCounter { is_lateness: true, ..self }
    }
}

/// Figures that may explain a difference. Queues that are full, frames that are given up and needless waits all cost
/// goodput, as does the airtime of all but TCP: `other_airtime_s` is the part that is none of those before it. Our TCP
/// has `rtt_median_ms` in every world; the kernel's has `rtt_ms` alone.
const BESIDE: [CostCounter; 14] = [
    CostCounter::new("acks_per_segment", "ACKs/segment", acks_per_segment).costing("ACKs for each segment"),
    CostCounter::new("segments_retransmitted", "resent", |run| sum(run, |flow| flow.segments_retransmitted))
        .costing("segments sent again"),
    CostCounter::new("timeouts", "timeouts", |run| sum(run, |flow| flow.timeouts.map(u64::from)))
        .costing("timeouts"),
    CostCounter::new("queue_drops", "queue drops", |run| run.air.queue_drops.map(|drops| drops as f64))
        .costing("packets lost to full queues"),
    CostCounter::new("retry_drops", "given up", |run| run.air.retry_drops.map(|drops| drops as f64))
        .costing("packets given up"),
    CostCounter::new("collisions", "collisions", |run| {
        run.air.collisions.map(|collisions| collisions as f64)
    })
    .costing("collisions"),
    CostCounter::new("beacon_airtime_s", "beacons, s", |run| run.air.beacon_airtime_s)
        .costing("seconds of beacons"),
    CostCounter::new("arp_airtime_s", "ARP, s", |run| run.air.arp_airtime_s).costing("seconds of ARP"),
    CostCounter::new("routing_airtime_s", "routing, s", |run| run.air.routing_airtime_s)
        .costing("seconds of routing messages"),
    CostCounter::new("other_airtime_s", "other air, s", other_airtime_s).costing("seconds of other packets"),
    CostCounter::new("rtt_median_ms", "median RTT, ms", |run| of_metric(run, "rtt_median_ms")),
    CostCounter::new("rtt_ms", "mean RTT, ms", |run| of_metric(run, "rtt_ms")),
    CostCounter::new("air_late_ms", "air late, ms", |run| run.live.as_ref().map(|live| live.air_late_ms))
        .costing("milliseconds by which radios were late")
        .of_lateness(),
    CostCounter::new("programs_late_ms", "programs late, ms", |run| {
        run.live.as_ref().map(|live| live.programs_late_ms)
    })
    .costing("milliseconds by which programs were late")
    .of_lateness(),
];

/// An object whose members are the figures that are known.
fn as_object<T: Copy + Serialize, S: Serializer>(
    figures: &[(&'static str, Option<T>)],
    to: S,
) -> Result<S::Ok, S::Error> {
    to.collect_map(figures.iter().filter_map(|(name, known)| Some((name, (*known)?))))
}

/// The name of a figure where it is shown.
fn shown_name(figure: &Figure) -> Option<&'static str> {
    (!figure.is_goodput()).then_some(figure.name)
}

/// The airtime of what is neither TCP nor of a known kind. Older records know no kinds.
fn other_airtime_s(run: &RunResult) -> Option<f64> {
    let air = &run.air;
    let kinds = [air.beacon_airtime_s, air.arp_airtime_s, air.routing_airtime_s];
    let known_s = air.data_airtime_s? + air.ack_airtime_s? + kinds.into_iter().flatten().sum::<f64>();
    Some((air.airtime_s? - known_s).max(0.0))
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
    fn of(worlds: &[InWorld], point: &MatrixPoint) -> AtPoint {
        let mut names: Vec<&String> = Vec::new();
        for arm in worlds.iter().flat_map(|world| &world.trial.arms) {
            if !names.contains(&arm) {
                names.push(arm);
            }
        }
        let in_all = |arm: &&String| worlds.iter().all(|world| world.trial.arms.contains(arm));
        let common: Vec<&String> = names.iter().copied().filter(in_all).collect();
        let figures = worlds.first().map(|world| world.trial.figures()).unwrap_or_default();
        let orders = figures.iter().flat_map(|figure| {
            let common = &common;
            worlds.iter().map(move |world| world.order(point, figure, common))
        });
        let contradictions =
            figures.iter().flat_map(|figure| contradictions(worlds, (point, figure), &common)).collect();
        AtPoint {
            point: point.clone(),
            arms: names.iter().map(|arm| OfArm::of(worlds, (point, &figures), arm)).collect(),
            orders: orders.collect(),
            contradictions,
            figures,
        }
    }
}

impl OfArm {
    fn of(worlds: &[InWorld], (point, figures): (&MatrixPoint, &[Figure]), arm: &str) -> OfArm {
        let ran: Vec<&InWorld> =
            worlds.iter().filter(|world| world.trial.arms.iter().any(|a| a == arm)).collect();
        let of_world = |figure: &Figure, world: &&InWorld| Samples {
            arm: format!("{arm} in {}", world.trial.world),
            ..world.samples(point, figure, arm)
        };
        let of_figure = |figure: &Figure| ran.iter().map(|world| of_world(figure, world)).collect();
        let samples: Vec<Vec<Samples>> = figures.iter().map(of_figure).collect();
        let worlds: Vec<_> = ran.iter().map(|world| world.measured((point, figures), arm)).collect();
        let comparisons = compare_all(&questions(figures, &samples), WITHIN);
        let causes = causes(&comparisons, &worlds);
        OfArm { arm: arm.to_owned(), worlds, comparisons, causes }
    }
}

/// Each figure's comparisons are of all worlds but the first, in their order.
fn causes(comparisons: &[Comparison], worlds: &[WorldMeans]) -> Vec<DifferenceCause> {
    let Some((reference, others)) = worlds.split_first() else { return Vec::new() };
    let compared = comparisons.iter().zip(others.iter().cycle());
    compared.filter_map(|(comparison, world)| DifferenceCause::of(comparison, world, reference)).collect()
}

impl InWorld {
    fn records(&self, point: &MatrixPoint, arm: &str) -> impl Iterator<Item = &Record> {
        self.records.iter().filter(move |record| record.arm == arm && record.point == *point)
    }

    fn samples(&self, point: &MatrixPoint, figure: &Figure, arm: &str) -> Samples {
        samples(arm, figure, &self.records(point, arm).collect::<Vec<_>>())
    }

    fn mean(&self, point: &MatrixPoint, figure: &Figure, arm: &str) -> Option<MeanSummary> {
        let Samples { values, .. } = self.samples(point, figure, arm);
        summarize(&values.into_iter().map(|(_, value)| value).collect::<Vec<_>>())
    }

    fn measured(&self, (point, figures): (&MatrixPoint, &[Figure]), arm: &str) -> WorldMeans {
        let others = figures.iter().filter(|figure| !figure.is_goodput());
        let mean = |of: fn(&RunResult) -> Option<f64>| {
            let values: Vec<f64> = self.records(point, arm).filter_map(|record| of(&record.result)).collect();
            summarize(&values)
        };
        let summaries: Vec<_> = BESIDE.iter().map(|counter| mean(counter.of)).collect();
        WorldMeans {
            world: self.trial.world.clone(),
            goodput_kbps: self.mean(point, &GOODPUT, arm),
            figures: others.map(|figure| (figure.name, self.mean(point, figure, arm))).collect(),
            beside: BESIDE
                .iter()
                .zip(&summaries)
                .map(|(counter, found)| (counter.name, found.map(|found| found.mean)))
                .collect(),
            summaries,
        }
    }

    fn order(&self, point: &MatrixPoint, figure: &Figure, arms: &[&String]) -> ArmOrder {
        // An arm without the figure comes last.
        let rank = |arm: &&&String| {
            let mean = self.mean(point, figure, arm).map(|found| found.mean);
            match figure.better {
                Better::More => -mean.unwrap_or(0.0),
                Better::Less => mean.unwrap_or(f64::INFINITY),
            }
        };
        let mut arms: Vec<&&String> = arms.iter().collect();
        arms.sort_by(|one, other| rank(one).total_cmp(&rank(other)));
        let arms = arms.into_iter().map(|arm| (*arm).clone()).collect();
        ArmOrder { world: self.trial.world.clone(), figure: shown_name(figure), arms }
    }

    /// True if this world's blocks show that the first arm is faster, or better in another figure.
    fn is_better(&self, (point, figure): (&MatrixPoint, &Figure), (arm, other): (&str, &str)) -> bool {
        let samples = [other, arm].map(|arm| self.samples(point, figure, arm)).to_vec();
        let found = compare_all(&questions(&[*figure], &[samples]), self.trial.margin);
        found.first().is_some_and(|found| {
            matches!(found.verdict, ComparisonVerdict::Faster | ComparisonVerdict::Better)
        })
    }
}

fn contradictions(worlds: &[InWorld], at: (&MatrixPoint, &Figure), arms: &[&String]) -> Vec<Contradiction> {
    let mut found = Vec::new();
    for (nth, world) in worlds.iter().enumerate() {
        for elsewhere in &worlds[nth + 1..] {
            for (faster, slower) in pairs(arms) {
                if world.is_better(at, (faster, slower)) && elsewhere.is_better(at, (slower, faster)) {
                    let [world, elsewhere] = [world, elsewhere].map(|world| world.trial.world.clone());
                    let (figure, faster, slower) = (shown_name(at.1), faster.clone(), slower.clone());
                    found.push(Contradiction { figure, faster, slower, world, elsewhere });
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
