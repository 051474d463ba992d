//! Findings as tables: the arms of a point, and the means of all points together.

use super::{BESIDE, Beside, PointFindings, cells, columns, label};
use crate::statistics::{Comparison, Verdict, change};

/// A column with its cells below its head.
struct Column {
    head: String,
    cells: Vec<String>,
    /// Its turn to go where the terminal is too narrow; none for one that stays.
    goes: Option<u8>,
}

/// The arms of a point with their comparisons, at most that wide where columns can be left out.
pub(super) fn of_point(point: &PointFindings, width: Option<usize>) -> String {
    let mut shown = all_columns(point);
    // A column without any value tells nothing.
    shown.retain(|column| column.goes.is_none() || column.cells.iter().any(|cell| !cell.is_empty()));
    while width.is_some_and(|width| wide(&shown) > width) {
        let turns = shown.iter().enumerate().filter_map(|(nth, column)| Some((column.goes?, nth)));
        let Some((_, nth)) = turns.min() else { break };
        shown.remove(nth);
    }
    let row = |nth: Option<usize>| {
        let cell = |column: &Column| nth.map_or(&column.head, |nth| &column.cells[nth]).clone();
        shown.iter().map(cell).collect::<Vec<_>>()
    };
    let rows: Vec<_> =
        std::iter::once(row(None)).chain((0..point.arms.len()).map(|nth| row(Some(nth)))).collect();
    columns(&rows)
}

/// The width of a table of these columns.
fn wide(columns: &[Column]) -> usize {
    let of = |column: &Column| {
        let cells = column.cells.iter().chain([&column.head]);
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    columns.iter().map(|column| of(column) + 2).sum::<usize>().saturating_sub(2)
}

fn all_columns(point: &PointFindings) -> Vec<Column> {
    let against = point.arms.first().map_or("", |arm| arm.samples.arm.as_str());
    let arms = || point.arms.iter();
    let column = |head: &str, goes, cells: Vec<String>| Column { head: head.to_owned(), goes, cells };
    let figures: Vec<_> = arms().map(|arm| cells(arm.summary.as_ref())).collect();
    let beside = |of: fn(&Beside) -> String| arms().map(|arm| of(&arm.beside)).collect::<Vec<_>>();
    let compared = |of: &dyn Fn(&Comparison) -> Option<String>| -> Vec<String> {
        arms().map(|arm| point.comparison(&arm.samples.arm).and_then(of).unwrap_or_default()).collect()
    };
    let verdict = |arm: &super::ArmFindings| {
        point.comparison(&arm.samples.arm).map_or("(baseline)".to_owned(), verdict)
    };
    let mut all = vec![
        column("arm", None, arms().map(|arm| arm.samples.arm.clone()).collect()),
        column("kbit/s", None, figures.iter().map(|(mean, ..)| mean.clone()).collect()),
        column("95 % interval", Some(6), figures.iter().map(|(_, interval, _)| interval.clone()).collect()),
        column("runs", Some(5), figures.iter().map(|(.., runs)| runs.clone()).collect()),
    ];
    all.extend(BESIDE.iter().map(|(head, of)| column(head, Some(3), beside(*of))));
    all.extend([
        column("ACKs/segment", Some(2), beside(|of| shown(of.acks_per_segment, 2))),
        column("resent", Some(1), beside(|of| shown(of.segments_retransmitted, 1))),
        column("timeouts", Some(0), beside(|of| shown(of.timeouts, 1))),
        column(&format!("against {against}"), None, compared(&|found| found.ratio.map(change))),
        column("95 % interval", None, compared(&|found| found.ci95.map(ends))),
        column("verdict", None, arms().map(verdict).collect()),
    ]);
    all
}

fn shown(mean: Option<f64>, digits: usize) -> String {
    mean.map_or(String::new(), |mean| format!("{mean:.digits$}"))
}

fn ends([low, high]: [f64; 2]) -> String {
    format!("{} to {}", change(low), change(high))
}

/// The verdict, with the p-value where the interval alone would let one expect another.
fn verdict(found: &Comparison) -> String {
    match found.p_holm {
        Some(p) if found.verdict == Verdict::Undecided && found.is_apart_alone() => {
            format!("{}, p = {p:.3}", found.verdict)
        }
        _ => found.verdict.to_string(),
    }
}

/// A matrix in one table: the arms' means, with a row for each point.
pub(super) fn of_points(points: &[PointFindings]) -> String {
    let arms = points.first().map_or(&[][..], |point| &point.arms);
    let names = arms.iter().map(|arm| arm.samples.arm.clone());
    let head = std::iter::once("kbit/s".to_owned()).chain(names).chain([String::new()]).collect();
    let row = |point: &PointFindings| {
        let means = point.arms.iter().map(|arm| cells(arm.summary.as_ref()).0);
        // The last column of a table stands to the left, and means do not.
        std::iter::once(label(&point.point)).chain(means).chain([String::new()]).collect()
    };
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(points.iter().map(row)).collect();
    columns(&rows)
}
