//! `report.html`: the findings of a trial, as one file. It needs no network, and only the map's motion needs a script.
//!
//! Equal records and captures give equal bytes: host, clock, cost and the order of the runs have no influence. Figures
//! are drawn here as SVG. All arms share their axes, and can be laid over each other.

mod bundle;
mod chart;
mod claimed;
mod delays;
mod figures;
mod mesh;
mod page;
mod pictures;
mod premise;
mod queues;
mod results;
mod room;
mod series;
mod subject;
mod tables;

use std::collections::{BTreeMap, BTreeSet};

pub use bundle::{Bundle, ReadError, open};
pub use chart::escape;
pub use claimed::picture as picture_of_claims;
pub use pictures::pictures;
pub use premise::picture as picture_of_premises;
pub use series::{FrameRow, Series, TimeLine};

use super::findings::{Findings, RunsByCell, by_cell, label, of_cell};
use super::record::Record;
use super::world;
use crate::scenario::point::MatrixPoint;
use chart::RowName;

/// The whole file.
pub fn html(bundle: &Bundle) -> String {
    page::whole(&View::of(bundle))
}

/// Data that figures are drawn from.
pub(crate) struct View<'a> {
    bundle: &'a Bundle,
    findings: Findings,
    cells: RunsByCell<'a>,
    /// The places of the arms, the baseline first.
    arms: BTreeMap<&'a str, usize>,
    /// The arms whose flows the kernel's TCP carried.
    kernels: BTreeSet<&'a str>,
}

/// An arm at a point, as a figure's row.
struct FigureRow<'a> {
    point: &'a MatrixPoint,
    arm: &'a str,
    group: String,
    class: String,
}

impl FigureRow<'_> {
    fn name(&self) -> RowName<'_> {
        RowName { group: &self.group, own: self.arm, class: &self.class }
    }

    /// The row's title, shown to a user who points at it.
    fn title(&self) -> String {
        if self.group.is_empty() { self.arm.to_owned() } else { format!("{}, {}", self.arm, self.group) }
    }
}

/// Points whose runs are shown over time, and arms: of more arms some are chosen.
const MOST_POINTS: usize = 4;
const MOST_ARMS: usize = 8;

/// A trial with more arms at points is shown by its heat map first, and its other figures are folded.
const MOST_ROWS: usize = 64;

impl View<'_> {
    fn of(bundle: &Bundle) -> View<'_> {
        let findings = Findings::of(&bundle.trial, &bundle.records);
        let arms = bundle.trial.arms.iter().enumerate().rev().map(|(nth, arm)| (&**arm, nth)).collect();
        let of_kernel = bundle.records.iter().filter(|record| {
            record.result.flows.iter().any(|flow| world::is_kernel_receiver(&flow.receiver))
        });
        let kernels = of_kernel.map(|record| &*record.arm).collect();
        View { bundle, findings, cells: by_cell(&bundle.records), arms, kernels }
    }

    /// The classes of an arm's elements; the baseline is the first.
    fn class(&self, arm: &str) -> String {
        page::class(self.arms.get(arm).copied().unwrap_or(0))
    }

    /// True if the kernel's TCP carried the arm's flows.
    fn is_kernels(&self, arm: &str) -> bool {
        self.kernels.contains(arm)
    }

    /// Arms at points, in the order of the tables.
    fn rows(&self) -> Vec<FigureRow<'_>> {
        let trial = &self.bundle.trial;
        let row = |point, arm| FigureRow { point, arm, group: self.group(point), class: self.class(arm) };
        trial.points.iter().flat_map(|point| trial.arms.iter().map(move |arm| row(point, arm))).collect()
    }

    /// True if the arms at all points are more than a reader looks through.
    fn is_large(&self) -> bool {
        self.bundle.trial.points.len() * self.bundle.trial.arms.len() > MOST_ROWS
    }

    /// The body below a summary, folded in a large trial and open in a small one.
    fn folded(&self, summary: &str, body: &str) -> String {
        match (body.is_empty(), self.is_large()) {
            (true, _) => String::new(),
            (_, false) => body.to_owned(),
            (_, true) => format!("<details><summary>{}</summary>{body}</details>\n", escape(summary)),
        }
    }

    /// Heading of the rows of a point.
    fn group(&self, point: &MatrixPoint) -> String {
        if self.bundle.trial.points.len() < 2 { String::new() } else { short(point) }
    }

    fn runs<'b>(&'b self, point: &MatrixPoint, arm: &'b str) -> impl Iterator<Item = &'b Record> {
        of_cell(&self.cells, point, arm).iter().copied()
    }

    /// The runs of all arms.
    fn at_point<'b>(&'b self, point: &'b MatrixPoint) -> impl Iterator<Item = &'b Record> {
        self.bundle.trial.arms.iter().flat_map(move |arm| self.runs(point, arm))
    }

    /// For each arm, its first block's run that has a series.
    fn shown(&self, point: &MatrixPoint) -> Vec<(&str, &Record, &Series)> {
        let first = |arm| {
            let mut runs = self.runs(point, arm);
            runs.find_map(|record| Some((arm, record, self.bundle.series.get(&record.id)?)))
        };
        self.bundle.trial.arms.iter().map(String::as_str).filter_map(first).collect()
    }

    /// The arms that are shown over time: all, or of many the baseline and the arms that carry most or answer soonest.
    fn arms_over_time(&self) -> Vec<&str> {
        let arms = &self.bundle.trial.arms;
        if arms.len() <= MOST_ARMS {
            return arms.iter().map(String::as_str).collect();
        }
        let mut chosen: Vec<&str> = arms.iter().take(1).map(String::as_str).collect();
        let points = &self.findings.points;
        let best = points.iter().flat_map(|point| [point.carries_most(), point.answers_soonest()]);
        for arm in best.flatten().map(|arm| arm.arm.as_str()) {
            if !chosen.contains(&arm) && chosen.len() < MOST_ARMS {
                chosen.push(arm);
            }
        }
        chosen
    }

    /// The runs of a point that are shown over time.
    fn over_time(&self, point: &MatrixPoint) -> Vec<(&str, &Record, &Series)> {
        let chosen = self.arms_over_time();
        self.shown(point).into_iter().filter(|(arm, ..)| chosen.contains(arm)).collect()
    }

    /// The points whose runs have series.
    fn points_with_series(&self) -> Vec<&MatrixPoint> {
        self.bundle.trial.points.iter().filter(|point| !self.shown(point).is_empty()).collect()
    }

    /// The points that are shown over time, and the points for which there is no room; the first and the last are
    /// shown.
    fn points_over_time(&self) -> (Vec<&MatrixPoint>, Vec<&MatrixPoint>) {
        let with = self.points_with_series();
        if with.len() <= MOST_POINTS {
            return (with, Vec::new());
        }
        let last = with.len() - 1;
        let is_shown = |nth: usize| (0..MOST_POINTS).any(|kept| kept * last / (MOST_POINTS - 1) == nth);
        let (shown, left): (Vec<_>, Vec<_>) =
            with.into_iter().enumerate().partition(|(nth, _)| is_shown(*nth));
        let points = |of: Vec<(usize, _)>| of.into_iter().map(|(_, point)| point).collect();
        (points(shown), points(left))
    }
}

/// The values of a point without the folders of their paths.
fn short(point: &MatrixPoint) -> String {
    let bare =
        point.iter().map(|(path, value)| (path.rsplit('.').next().unwrap_or(path).to_owned(), value.clone()));
    label(&bare.collect())
}

/// A figure with the sentence that explains it. Its name may come from a series.
fn figure(id: &str, title: &str, body: &str, reading: &str) -> String {
    format!(
        "<figure id=\"{}\"><h3>{}</h3>{body}<figcaption>{}</figcaption></figure>\n",
        escape(id),
        escape(title),
        escape(reading)
    )
}

#[cfg(test)]
pub(crate) mod tests;
