//! The reasons why arms carried more or less than the baseline, from the runs' counters: a table with a row for each
//! quantity and a cell for each arm, the baseline's first.
//!
//! A run's goodput is the share of the air in use, divided by the air that a segment takes. The quantities behind these
//! two are ACKs, collisions, retransmissions and timeouts. Round trips, bursts and order are no reasons, but the price.

use super::findings::{ArmFindings, Findings, PointFindings, by_cell, columns, of_cell};
use super::record::{Record, Trial};
use super::statistics::{GOODPUT, change};
use crate::scenario::point::MatrixPoint;

/// A smaller change is none.
const LEAST: f64 = 0.05;

/// A quantity of an arm's mean run.
struct ReasonQuantity {
    title: &'static str,
    of: fn(&RunTotals) -> f64,
    /// Values below this in both arms are alike.
    floor: f64,
    /// True if less of it is better; none if neither side is.
    less: Option<bool>,
    digits: usize,
}

/// The mean run of an arm. A counter that a run does not tell is NaN, and so is what follows from it.
#[derive(Clone, Copy, Debug, Default)]
struct RunTotals {
    runs: f64,
    segments: f64,
    sent_again: f64,
    timeouts: f64,
    /// ACKs for each segment, as in the trial's table.
    acks_per_segment: f64,
    collisions: f64,
    given_up: f64,
    queue_drops: f64,
    airtime_s: f64,
    ack_airtime_s: f64,
    route_failures: f64,
    burst_mean: f64,
    out_of_order_share: f64,
}

impl RunTotals {
    fn of(arm: &ArmFindings, runs: &[&Record]) -> RunTotals {
        let mean = |name: &str| arm.means.of_metric(name).unwrap_or(f64::NAN);
        let mut totals = RunTotals {
            acks_per_segment: mean("acks_per_segment"),
            burst_mean: mean("burst_mean"),
            out_of_order_share: mean("out_of_order_share"),
            ..RunTotals::default()
        };
        for record in runs {
            let (result, air) = (&record.result, &record.result.air);
            for flow in result.flows.iter().filter(|flow| !flow.background) {
                totals.segments += number(flow.segments_sent);
                totals.sent_again += number(flow.segments_retransmitted);
                totals.timeouts += number(flow.timeouts.map(u64::from));
            }
            totals.runs += 1.0;
            totals.collisions += number(air.collisions);
            totals.given_up += number(air.retry_drops);
            totals.queue_drops += number(air.queue_drops);
            totals.airtime_s += air.airtime_s.unwrap_or(f64::NAN);
            totals.ack_airtime_s += air.ack_airtime_s.unwrap_or(f64::NAN);
            totals.route_failures += number(result.routing.route_failures);
        }
        totals
    }

    /// The number of new segments.
    fn new_segments(&self) -> f64 {
        (self.segments - self.sent_again).max(1.0)
    }
}

fn number(counter: Option<u64>) -> f64 {
    counter.map_or(f64::NAN, |counter| counter as f64)
}

/// The quantities in the order of their rows.
const QUANTITIES: [ReasonQuantity; 12] = [
    less("ACKs a segment", |run| run.acks_per_segment, 0.02, 2),
    less("air for a new segment, ms", |run| 1e3 * run.airtime_s / run.new_segments(), 0.0, 1),
    less("air for its ACKs, ms", |run| 1e3 * run.ack_airtime_s / run.new_segments(), 0.1, 1),
    ReasonQuantity {
        less: None,
        ..less("all radios' sending, s a run", |run| run.airtime_s / run.runs.max(1.0), 0.0, 1)
    },
    less("collisions, of 100 segments", |run| 100.0 * run.collisions / run.new_segments(), 1.0, 0),
    less("segments sent again, %", |run| 100.0 * run.sent_again / run.segments.max(1.0), 0.5, 1),
    less("timeouts in a run", |run| run.timeouts / run.runs.max(1.0), 1.0, 1),
    less("radios gave up, of 1000", |run| 1e3 * run.given_up / run.new_segments(), 5.0, 0),
    less("full queues lost, of 1000", |run| 1e3 * run.queue_drops / run.new_segments(), 5.0, 0),
    less("broken routes in a run", |run| run.route_failures / run.runs.max(1.0), 1.0, 1),
    less("mean burst, segments", |run| run.burst_mean, 1.0, 1),
    less("segments above a hole, %", |run| 100.0 * run.out_of_order_share, 0.5, 1),
];

const fn less(title: &'static str, of: fn(&RunTotals) -> f64, floor: f64, digits: usize) -> ReasonQuantity {
    ReasonQuantity { title, of, floor, less: Some(true), digits }
}

/// The side on which an arm's figure lies, seen from the baseline's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BaselineSide {
    /// As far as it is printed, or too near to matter.
    Alike,
    /// Apart, and neither side is better.
    Apart,
    /// Apart on the better side.
    Better,
    /// Apart on the worse side.
    Worse,
}

/// A quantity of all arms: its name, and for each arm the figure and its side.
#[derive(Clone, Debug)]
pub struct Reason {
    /// The name with its unit.
    pub title: &'static str,
    /// Figures as they are printed, empty where the arm does not tell it.
    pub cells: Vec<(String, BaselineSide)>,
}

/// The reasons at a point. Quantities in which no arm is apart from the baseline are left out.
#[derive(Clone, Debug)]
pub struct PointReasons<'a> {
    /// The point.
    pub point: &'a MatrixPoint,
    /// The baseline, then the other arms, the best first.
    pub arms: Vec<&'a ArmFindings>,
    /// The quantities.
    pub reasons: Vec<Reason>,
}

/// The reasons at every point.
pub fn reasons<'a>(findings: &'a Findings, records: &[Record]) -> Vec<PointReasons<'a>> {
    let cells = by_cell(records);
    let at = |found: &'a PointFindings| {
        let mut arms = found.best_first();
        let baseline = |arm: &&ArmFindings| found.arms.first().is_some_and(|first| first.arm == arm.arm);
        arms.sort_by_key(|arm| !baseline(arm));
        let totals: Vec<_> =
            arms.iter().map(|arm| RunTotals::of(arm, of_cell(&cells, &found.point, &arm.arm))).collect();
        let reasons = QUANTITIES.iter().filter_map(|quantity| quantity.reason(&totals)).collect();
        PointReasons { point: &found.point, arms, reasons }
    };
    findings.points.iter().map(at).collect()
}

impl ReasonQuantity {
    fn reason(&self, totals: &[RunTotals]) -> Option<Reason> {
        let figures: Vec<f64> = totals.iter().map(self.of).collect();
        let baseline = *figures.first()?;
        let shown =
            |figure: f64| if figure.is_nan() { String::new() } else { format!("{figure:.*}", self.digits) };
        let cells: Vec<_> =
            figures.iter().map(|figure| (shown(*figure), self.side(*figure, baseline))).collect();
        let is_apart = cells.iter().any(|(_, side)| *side != BaselineSide::Alike);
        is_apart.then_some(Reason { title: self.title, cells })
    }

    /// Figures are apart if they also are as they are printed: 20 packets and 19 are alike. A figure that an arm does
    /// not tell is NaN, and apart from none.
    fn side(&self, this: f64, that: f64) -> BaselineSide {
        let moved = |this: f64, that: f64| (this - that).abs() / this.max(that).max(f64::MIN_POSITIVE);
        let digits = self.digits;
        let [first, second] =
            [this, that].map(|figure| format!("{figure:.digits$}").parse().unwrap_or(f64::NAN));
        let is_apart =
            moved(this, that) >= LEAST && moved(first, second) > LEAST && this.max(that) >= self.floor;
        match (is_apart, self.less) {
            (false, _) => BaselineSide::Alike,
            (true, None) => BaselineSide::Apart,
            (true, Some(less)) if (this < that) == less => BaselineSide::Better,
            (true, Some(_)) => BaselineSide::Worse,
        }
    }
}

/// The tables of all points as text, in blocks of arms that are no wider; each block begins with the baseline. The last
/// lines of a point say what agents did without.
pub fn text(trial: &Trial, records: &[Record], width: Option<usize>) -> String {
    let findings = Findings::of(trial, records);
    let each = reasons(&findings, records).into_iter().zip(&findings.points).map(|(why, found)| {
        let at = if why.point.is_empty() { String::new() } else { super::findings::label(why.point) + "\n" };
        let lacks: String =
            found.arms.iter().flat_map(|arm| &arm.lacks).map(|said| format!("{said}\n")).collect();
        format!("{at}{}{lacks}", why.text(found, width))
    });
    each.collect::<Vec<_>>().join("\n")
}

impl PointReasons<'_> {
    fn text(&self, found: &PointFindings, width: Option<usize>) -> String {
        let rows = self.rows(found);
        let wide = |nth: usize| rows.iter().map(|row| row[nth].chars().count()).max().unwrap_or(0) + 2;
        let fixed = wide(0) + wide(1);
        let (mut blocks, mut used) = (vec![Vec::new()], fixed);
        for nth in 2..=self.arms.len() {
            if width.is_some_and(|width| used + wide(nth) > width + 2) && blocks.last() != Some(&Vec::new()) {
                blocks.push(Vec::new());
                used = fixed;
            }
            used += wide(nth);
            blocks.last_mut().expect("one at least").push(nth);
        }
        let block = |arms: &Vec<usize>| {
            let of = |row: &Vec<String>| {
                let cells = [0, 1].iter().chain(arms).map(|nth| row[*nth].clone());
                cells.chain([String::new()]).collect()
            };
            columns(&rows.iter().map(of).collect::<Vec<_>>())
        };
        blocks.iter().map(block).collect::<Vec<_>>().join("\n")
    }

    /// Goodput, the gain and round trips, and the reasons below them.
    fn rows(&self, found: &PointFindings) -> Vec<Vec<String>> {
        let row = |title: &str, of: &dyn Fn(&ArmFindings) -> Option<String>| -> Vec<String> {
            let cells = self.arms.iter().map(|arm| of(arm).unwrap_or_default());
            std::iter::once(title.to_owned()).chain(cells).collect()
        };
        let kbps = |arm: &ArmFindings| Some(format!("{:.1}", arm.summary?.mean));
        let gain = |arm: &ArmFindings| found.comparison(&arm.arm, &GOODPUT)?.ratio.map(change);
        let against = format!("against {}", found.arms.first().map_or("", |arm| arm.arm.as_str()));
        let ms = |name: &'static str| move |arm: &ArmFindings| Some(arm.means.shown(name, 0));
        let reason = |reason: &Reason| {
            let cells = reason.cells.iter().map(|(cell, _)| cell.clone());
            std::iter::once(reason.title.to_owned()).chain(cells).collect()
        };
        let head = row("", &|arm| Some(arm.arm.clone()));
        let measured = [
            row("goodput, kbit/s", &kbps),
            row(&against, &gain),
            row("median round trip, ms", &ms("rtt_median_ms")),
            row("95 % round trip, ms", &ms("rtt_p95_ms")),
            row("mean smoothed round trip, ms", &ms("rtt_ms")),
        ];
        let is_known = |row: &Vec<String>| row[1..].iter().any(|cell| !cell.is_empty());
        let measured = measured.into_iter().filter(is_known);
        std::iter::once(head).chain(measured).chain(self.reasons.iter().map(reason)).collect()
    }
}

#[cfg(test)]
mod tests;
