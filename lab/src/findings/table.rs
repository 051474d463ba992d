//! Findings as tables: the arms of a point, and the means of all points together. Undecided arms of a table stand in
//! one line below it: their sentences differ in nothing that the table does not have.

use crate::findings::{
    ArmFindings, DELAY_AND_FAIRNESS, INTERVALS, MeansCell, PointFindings, cells, columns, ends, label,
};
use crate::metric::{self, Metric};
use crate::plain::without_least;
use crate::statistics::{Comparison, ComparisonVerdict, Figure, GOODPUT, change};

/// A column with its cells below its head.
struct TableColumn {
    head: String,
    cells: Vec<String>,
    /// Its turn to go where the terminal is too narrow; none for one that stays.
    goes: Option<u8>,
}

/// A table as lines, and the heads of the columns that it had no room for.
pub(super) struct FittedTable {
    pub(super) text: String,
    pub(super) left_out: Vec<String>,
}

/// The arms of a point with their comparisons, at most that wide where columns can be left out.
pub(super) fn of_point(point: &PointFindings, width: Option<usize>) -> FittedTable {
    fitting(all_columns(point), point.arms.len(), width)
}

/// The arms of a point in one of the other figures that decide.
pub(super) fn of_figure(point: &PointFindings, figure: &Figure, width: Option<usize>) -> FittedTable {
    let digits = point.digits(figure);
    let cells = |arm: &ArmFindings| cells(arm.means.summary(figure.name).as_ref(), digits);
    let mut all = vec![
        column(point, "arm", None, |arm| arm.arm.clone()),
        column(point, figure.unit, None, |arm| cells(arm).0),
        column(point, INTERVALS[0], Some(1), |arm| cells(arm).1),
        column(point, "runs", Some(0), |arm| cells(arm).2),
    ];
    all.extend(comparisons(point, figure));
    fitting(all, point.arms.len(), width)
}

/// The columns as lines, without the least of them where they are too wide.
fn fitting(mut shown: Vec<TableColumn>, arms: usize, width: Option<usize>) -> FittedTable {
    // A column without any value tells nothing.
    shown.retain(|column| column.goes.is_none() || column.cells.iter().any(|cell| !cell.is_empty()));
    let is_too_wide = |shown: &[TableColumn]| width.is_some_and(|width| wide(shown) > width);
    let left_out = without_least(&mut shown, |column| column.goes, is_too_wide);
    let left_out = left_out.into_iter().map(|column| column.head).collect();
    let row = |nth: Option<usize>| {
        let cell = |column: &TableColumn| nth.map_or(&column.head, |nth| &column.cells[nth]).clone();
        shown.iter().map(cell).collect::<Vec<_>>()
    };
    let rows: Vec<_> = std::iter::once(row(None)).chain((0..arms).map(|nth| row(Some(nth)))).collect();
    FittedTable { text: columns(&rows), left_out }
}

/// The width of a table of these columns.
fn wide(columns: &[TableColumn]) -> usize {
    let of = |column: &TableColumn| {
        let cells = column.cells.iter().chain([&column.head]);
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    columns.iter().map(|column| of(column) + 2).sum::<usize>().saturating_sub(2)
}

/// A column of one figure for each arm.
fn column(
    point: &PointFindings,
    head: &str,
    goes: Option<u8>,
    of: impl Fn(&ArmFindings) -> String,
) -> TableColumn {
    TableColumn { head: head.to_owned(), goes, cells: point.best_first().into_iter().map(of).collect() }
}

fn all_columns(point: &PointFindings) -> Vec<TableColumn> {
    let means = |head: &str, goes, of: MeansCell| column(point, head, Some(goes), |arm| of(&arm.means));
    let cells = |arm: &ArmFindings| cells(arm.summary.as_ref(), 1);
    // The cost in delay stays longest.
    let turn = |nth: usize| u8::try_from(9_usize.saturating_sub(nth)).unwrap_or_default();
    let mut all = vec![
        column(point, "arm", None, |arm| arm.arm.clone()),
        column(point, "kbit/s", None, |arm| cells(arm).0),
        column(point, INTERVALS[0], Some(1), |arm| cells(arm).1),
        column(point, "runs", Some(0), |arm| cells(arm).2),
    ];
    all.extend(DELAY_AND_FAIRNESS.iter().enumerate().map(|(nth, (head, of))| means(head, turn(nth), *of)));
    all.extend([
        means("ACKs/segment", 4, |means| means.shown("acks_per_segment", 2)),
        means("resent", 3, |means| means.shown("segments_retransmitted", 1)),
        means("timeouts", 2, |means| means.shown("timeouts", 1)),
    ]);
    if point.figures.contains(&GOODPUT) {
        all.extend(comparisons(point, &GOODPUT));
    } else {
        // The last column stands to the left.
        all.push(column(point, "", None, |_| String::new()));
    }
    all
}

/// The arms compared with the first one.
fn comparisons(point: &PointFindings, figure: &Figure) -> [TableColumn; 3] {
    let against = point.arms.first().map_or("", |arm| arm.arm.as_str());
    let found = |arm: &ArmFindings| point.comparison(&arm.arm, figure);
    let of = |arm: &ArmFindings, of: fn(&Comparison) -> Option<String>| {
        found(arm).and_then(of).unwrap_or_default()
    };
    [
        column(point, &format!("against {against}"), None, |arm| of(arm, |found| found.ratio.map(change))),
        column(point, INTERVALS[1], Some(8), |arm| of(arm, |found| found.ci95.map(ends))),
        column(point, "verdict", None, |arm| found(arm).map_or("(baseline)".to_owned(), verdict)),
    ]
}

/// The verdict, with the p-value where the interval alone would let one expect another.
fn verdict(found: &Comparison) -> String {
    match found.p_holm {
        Some(p) if found.verdict == ComparisonVerdict::Undecided && found.is_apart_alone() => {
            format!("{}, p = {p:.3}", found.verdict)
        }
        _ => found.verdict.to_string(),
    }
}

/// A matrix in one table: the arms' means, with a row for each point.
pub(super) fn of_points(points: &[PointFindings]) -> String {
    let arms = points.first().map_or(&[][..], |point| &point.arms);
    let names = arms.iter().map(|arm| arm.arm.clone());
    let head = std::iter::once("kbit/s".to_owned()).chain(names).chain([String::new()]).collect();
    let row = |point: &PointFindings| {
        let means = point.arms.iter().map(|arm| cells(arm.summary.as_ref(), 1).0);
        // The last column of a table stands to the left, and means do not.
        std::iter::once(label(&point.point)).chain(means).chain([String::new()]).collect()
    };
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(points.iter().map(row)).collect();
    columns(&rows)
}

/// The comparisons that need a sentence each, and a line for every figure with several undecided arms.
pub(super) fn folded<'a>(
    point: &PointFindings,
    said: impl Iterator<Item = &'a Comparison>,
) -> (Vec<&'a Comparison>, Vec<String>) {
    let mut alone: Vec<&Comparison> = said.collect();
    let mut lines = Vec::new();
    for figure in &point.figures {
        let is_open = |found: &&Comparison| found.is_of(figure) && found.is_open();
        let open: Vec<_> = alone.iter().copied().filter(is_open).collect();
        if !open.is_empty() {
            lines.push(line(figure, &open));
            alone.retain(|found| !is_open(found));
        }
    }
    (alone, lines)
}

fn line(figure: &Figure, open: &[&Comparison]) -> String {
    let title = metric::named(figure.name).map_or(figure.name.to_owned(), Metric::title);
    let within = if figure.is_goodput() { String::new() } else { format!(" in {title}") };
    let mut is_told = false;
    let arm = |found: &&Comparison| match found.need {
        None => found.arm.clone(),
        Some(need) if is_told => format!("{} ({need})", found.arm),
        Some(need) => {
            is_told = true;
            format!("{} (about {need} blocks would do, were this the true ratio)", found.arm)
        }
    };
    format!("undecided{within}: {}", open.iter().map(arm).collect::<Vec<_>>().join(", "))
}
