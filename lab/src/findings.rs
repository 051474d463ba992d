//! Findings from a trial's records: each arm's goodput at every point, compared with the baseline.
//! Points are questions of their own: Holm's correction is over the arms of one.

use std::fmt::Write as _;

use super::metric::METRICS;
use super::record::{Record, Trial};
use super::statistics::{Comparison, Samples, Summary, change, compare, summarize, watch};
use crate::scenario::point::plain;
use crate::scenario::point::{Point, Stop};

#[derive(Clone, Debug, PartialEq)]
pub struct Findings {
    pub points: Vec<PointFindings>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct PointFindings {
    pub point: Point,
    /// The arms in the trial's order, the baseline first.
    pub arms: Vec<ArmFindings>,
    /// The comparisons of all arms with the baseline.
    pub comparisons: Vec<Comparison>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ArmFindings {
    pub samples: Samples,
    /// The statistics of the arm; none while there is no run.
    pub summary: Option<Summary>,
    /// Means of the agent's other measures.
    pub beside: Beside,
}

/// Means of the arm; none while there is no run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Beside {
    pub acks_per_segment: Option<f64>,
    pub segments_retransmitted: Option<f64>,
    pub timeouts: Option<f64>,
}

impl Beside {
    fn of(records: &[&Record]) -> Beside {
        let mean = |name: &str| {
            let metric = METRICS.iter().find(|metric| metric.name == name)?;
            let values: Vec<f64> = records.iter().filter_map(|record| (metric.of)(&record.result)).collect();
            Some(summarize(&values)?.mean)
        };
        Beside {
            acks_per_segment: mean("acks_per_segment"),
            segments_retransmitted: mean("segments_retransmitted"),
            timeouts: mean("timeouts"),
        }
    }
}

impl Findings {
    /// Statistics of the goodputs.
    pub fn of(trial: &Trial, records: &[Record]) -> Findings {
        Findings::by(trial, records, &|record| Some(record.result.total.goodput_kbps))
    }

    /// Statistics of any figure of a run that is not below zero.
    pub fn by(trial: &Trial, records: &[Record], value: &dyn Fn(&Record) -> Option<f64>) -> Findings {
        let at = |point: &Point| {
            let arms: Vec<_> =
                trial.arms.iter().map(|arm| ArmFindings::of(arm, point, records, value)).collect();
            let samples: Vec<_> = arms.iter().map(|arm| arm.samples.clone()).collect();
            let comparisons = match (samples.split_first(), trial.stop) {
                (None, _) => Vec::new(),
                (Some((baseline, others)), Stop::AllSeeds) => compare(baseline, others, trial.margin),
                (Some((baseline, others)), Stop::WhenSure) => watch(baseline, others, trial.margin),
            };
            PointFindings { point: point.clone(), arms, comparisons }
        };
        Findings { points: trial.points.iter().map(at).collect() }
    }

    /// The findings as text: a table for each point, and its sentences.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for point in &self.points {
            if !point.point.is_empty() {
                let _ = writeln!(text, "{}", label(&point.point));
            }
            text.push_str(&point.table());
            for comparison in &point.comparisons {
                let _ = writeln!(text, "{}", comparison.sentence);
            }
            text.push('\n');
        }
        text
    }
}

impl ArmFindings {
    fn of(
        arm: &str,
        point: &Point,
        records: &[Record],
        value: &dyn Fn(&Record) -> Option<f64>,
    ) -> ArmFindings {
        let mine: Vec<_> =
            records.iter().filter(|record| record.arm == arm && record.point == *point).collect();
        let values: Vec<_> = mine.iter().filter_map(|record| Some((record.block, value(record)?))).collect();
        let summary = summarize(&values.iter().map(|(_, value)| *value).collect::<Vec<_>>());
        ArmFindings { samples: Samples { arm: arm.to_owned(), values }, summary, beside: Beside::of(&mine) }
    }
}

impl PointFindings {
    pub fn comparison(&self, arm: &str) -> Option<&Comparison> {
        self.comparisons.iter().find(|comparison| comparison.arm == arm)
    }

    fn table(&self) -> String {
        let against = self.arms.first().map_or("", |arm| arm.samples.arm.as_str());
        let mut rows = vec![
            [
                "arm",
                "kbit/s",
                "95 % interval",
                "runs",
                "ACKs/segment",
                "resent",
                "timeouts",
                &format!("against {against}"),
                "95 % interval",
                "verdict",
            ]
            .map(str::to_owned)
            .to_vec(),
        ];
        for arm in &self.arms {
            let name = &arm.samples.arm;
            let (mean, interval, runs) = cells(arm.summary.as_ref());
            let comparison = self.comparison(name);
            let ratio = comparison.and_then(|c| c.ratio).map_or(String::new(), change);
            let ends = comparison.and_then(|c| c.ci95);
            let ends =
                ends.map_or(String::new(), |[low, high]| format!("{} to {}", change(low), change(high)));
            let verdict = comparison.map_or("(baseline)".to_owned(), |c| c.verdict.to_string());
            let Beside { acks_per_segment, segments_retransmitted, timeouts } = arm.beside;
            let shown = |mean: Option<f64>, digits: usize| {
                mean.map_or(String::new(), |mean| format!("{mean:.digits$}"))
            };
            let acks = shown(acks_per_segment, 2);
            let (resent, timeouts) = (shown(segments_retransmitted, 1), shown(timeouts, 1));
            rows.push(vec![name.clone(), mean, interval, runs, acks, resent, timeouts, ratio, ends, verdict]);
        }
        columns(&rows)
    }
}

/// A summary as its mean, interval and number of runs.
pub fn cells(summary: Option<&Summary>) -> (String, String, String) {
    let Some(summary) = summary else { return ("none".to_owned(), String::new(), "0".to_owned()) };
    let interval = summary.ci95.map_or(String::new(), |[low, high]| format!("{low:.1} to {high:.1}"));
    (format!("{:.1}", summary.mean), interval, summary.n.to_string())
}

/// The paths that a point sets, with their values.
pub fn label(point: &Point) -> String {
    let set = point.iter().map(|(path, value)| format!("{path} = {}", plain(value)));
    set.collect::<Vec<_>>().join(", ")
}

/// Lines with the first and the last column to the left, figures to the right.
pub(crate) fn columns(rows: &[Vec<String>]) -> String {
    let count = rows.first().map_or(0, Vec::len);
    let width = |nth: usize| rows.iter().map(|row| row[nth].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..count).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let cell = |(nth, cell): (usize, &String)| {
            let width = widths[nth];
            if nth == 0 || nth + 1 == count { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        };
        let line: Vec<_> = row.iter().enumerate().map(cell).collect();
        let _ = writeln!(text, "{}", line.join("  ").trim_end());
    }
    text
}

#[cfg(test)]
mod tests;
