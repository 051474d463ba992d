//! The tables of reasons, of parameters in force and of all runs.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::View;
use super::chart::escape;
use crate::explain::{self, BaselineSide, PointReasons, Reason};
use crate::findings::{MetricMeans, label};
use crate::metric;
use crate::record::Record;
use crate::result::FlowRow;
use crate::scenario::point::MatrixPoint;
use crate::scenario::settings::flatten;

/// Runs beyond these stand in records.jsonl alone.
const MOST_RUNS: usize = 1_000;
/// Cells of parameters by arms. A scenario of thousands of nodes has fewer, and a page of more cannot be opened.
const MOST_PARAMETERS: usize = 500_000;
/// A table of more runs is folded.
const MOST_OPEN_RUNS: usize = 60;

/// The attribute of cells for which narrow screens have no room.
pub(super) const ASIDE: &str = " class=\"aside\"";

/// A mark in the arm's colour in every figure.
pub(super) const SWATCH: &str = "<i class=\"swatch\"></i>";

/// The row of an arm: its name in its colour, and its cells.
pub(super) fn arm_row(view: &View<'_>, arm: &str, cells: &str) -> String {
    format!("<tr class=\"{}\"><th>{SWATCH}{}</th>{cells}</tr>", view.class(arm), escape(arm))
}

/// The row above the rows of a point, over this number of columns; empty for the only point of a trial.
pub(super) fn point_row(point: &MatrixPoint, columns: usize) -> String {
    if point.is_empty() {
        return String::new();
    }
    format!("<tr><th colspan=\"{columns}\" class=\"point\">{}</th></tr>", escape(&label(point)))
}

/// A sentence in HTML, whose lines never end between a number and its `%`.
pub(super) fn prose(text: &str) -> String {
    escape(text).replace(" %", "&nbsp;%")
}

/// The reasons why arms carried more or less, point by point.
pub(super) fn reasons(view: &View<'_>) -> String {
    let points = explain::reasons(&view.findings, &view.bundle.records);
    let (count, is_matrix) = (points.len(), points.len() > 1);
    let mut html = String::new();
    for (nth, why) in points.into_iter().enumerate().filter(|(_, why)| !why.reasons.is_empty()) {
        let table = reasons_of(view, &why);
        if is_matrix {
            let open = if nth + 1 == count && !view.is_large() { " open" } else { "" };
            let label = escape(&label(why.point));
            let _ = write!(html, "<details{open}><summary>{label}</summary>{table}</details>");
        } else {
            html.push_str(&table);
        }
    }
    if html.is_empty() { "<p>Nothing that the runs count tells the arms apart.</p>".to_owned() } else { html }
}

/// A row for each arm, the baseline first. A cell apart from the baseline's has the colour of its side.
fn reasons_of(view: &View<'_>, why: &PointReasons<'_>) -> String {
    let heads: String =
        why.reasons.iter().map(|reason| format!("<th>{}</th>", escape(reason.title))).collect();
    let mut html = format!(
        "<div class=\"scroll\"><table class=\"why\"><thead><tr><th>arm</th>{heads}</tr></thead><tbody>"
    );
    for (nth, arm) in why.arms.iter().enumerate() {
        let cell = |reason: &Reason| {
            let (text, side) = &reason.cells[nth];
            let class = match side {
                BaselineSide::Alike if nth > 0 => " class=\"alike\"",
                BaselineSide::Alike | BaselineSide::Apart => "",
                BaselineSide::Better => " class=\"better\"",
                BaselineSide::Worse => " class=\"worse\"",
            };
            format!("<td{class}>{text}</td>")
        };
        let cells: String = why.reasons.iter().map(cell).collect();
        html.push_str(&arm_row(view, &arm.arm, &cells));
    }
    html + "</tbody></table></div>"
}

/// Every path of the settings with its values, arm by arm where they differ.
pub(super) fn parameters(view: &View<'_>) -> String {
    let arms = &view.bundle.trial.arms;
    let mut paths: BTreeMap<String, BTreeMap<&str, BTreeSet<String>>> = BTreeMap::new();
    for record in &view.bundle.records {
        // A section without entries, such as the parameters of an agent that has none, is no value.
        for (path, value) in flatten(&record.settings).into_iter().filter(|(_, value)| value != "{}") {
            paths.entry(path).or_default().entry(&record.arm).or_default().insert(value);
        }
    }
    // Settings that all arms share are folded: they are most of them.
    let (mut apart, mut same, mut folded) = (String::new(), String::new(), 0);
    let rows = MOST_PARAMETERS / arms.len().max(1);
    let joined = |values: &BTreeSet<String>| values.iter().cloned().collect::<Vec<_>>().join(" | ");
    for (path, by_arm) in paths.iter().take(rows) {
        let cells: Vec<_> = arms.iter().map(|arm| by_arm.get(arm.as_str()).map(joined)).collect();
        let is_alike = cells.windows(2).all(|pair| pair[0] == pair[1]);
        let is_one = is_alike && by_arm.values().all(|values| values.len() == 1);
        folded += usize::from(is_one);
        let html = if is_one { &mut same } else { &mut apart };
        let _ = write!(html, "<tr><th>{}</th>", escape(path));
        if is_alike {
            let value = cells.first().cloned().flatten().unwrap_or_default();
            let _ = write!(html, "<td class=\"same\" colspan=\"{}\">{}</td>", arms.len(), shown(&value));
        } else {
            for cell in cells {
                let _ = write!(html, "<td>{}</td>", shown(&cell.unwrap_or_default()));
            }
        }
        html.push_str("</tr>");
    }
    let table = |rows: &str| {
        let heads: String = arms.iter().map(|arm| format!("<th>{}</th>", escape(arm))).collect();
        format!(
            "<div class=\"scroll\"><table class=\"parameters\"><thead><tr><th>path</th>{heads}</tr></thead>\
             <tbody>{rows}</tbody></table></div>\n"
        )
    };
    let first = if apart.is_empty() { String::new() } else { table(&apart) };
    let left_out = paths.len().saturating_sub(rows);
    let more = match left_out {
        0 => String::new(),
        count => format!("<p>{count} more paths stand in records.jsonl.</p>"),
    };
    format!(
        "{first}<details><summary>{folded} with one value everywhere</summary>{}</details>{more}\n",
        table(&same)
    )
}

/// A value that is empty is a dash, so that it does not look forgotten.
fn shown(value: &str) -> String {
    if value.is_empty() { "–".to_owned() } else { escape(value) }
}

/// Columns of a run, with their heads.
type RunColumn = (&'static str, fn(&Record) -> String);

const COLUMNS: [RunColumn; 15] = [
    ("seed", |run| run.seed.to_string()),
    ("arm", |run| escape(&run.arm)),
    ("kbit/s", |run| format!("{:.1}", run.result.total.goodput_kbps)),
    ("Jain", |run| {
        if metric::shares(&run.result) > 1 { format!("{:.3}", run.result.total.jain) } else { String::new() }
    }),
    ("round trip<br>ms (95 %)", |run| MetricMeans::of(&[run]).round_trips()),
    ("mean RTT<br>ms", |run| MetricMeans::of(&[run]).shown("rtt_ms", 0)),
    ("segments", |run| sum(run, |flow| flow.segments_sent)),
    ("sent again", |run| sum(run, |flow| flow.segments_retransmitted)),
    ("time\u{ad}outs", |run| sum(run, |flow| flow.timeouts.map(u64::from))),
    ("ACKs", |run| sum(run, |flow| flow.acks_sent)),
    ("frames", |run| count(run.result.air.frames_sent)),
    ("collisions", |run| count(run.result.air.collisions)),
    ("given up", |run| count(run.result.air.retry_drops)),
    ("queue full", |run| count(run.result.air.queue_drops)),
    ("airtime s", |run| run.result.air.airtime_s.map_or(String::new(), |seconds| format!("{seconds:.1}"))),
];

fn sum(run: &Record, of: fn(&FlowRow) -> Option<u64>) -> String {
    metric::sum(&run.result, of).map_or(String::new(), |sum| format!("{sum:.0}"))
}

fn count(counter: Option<u64>) -> String {
    counter.map_or(String::new(), |counter| counter.to_string())
}

/// A row for each run; columns of which no run knows anything are left out.
pub(super) fn runs(view: &View<'_>) -> String {
    let records = &view.bundle.records;
    let is_known = |(_, of): &&RunColumn| records.iter().any(|run| !of(run).is_empty());
    let columns: Vec<_> = COLUMNS.iter().filter(is_known).collect();
    let has_points = view.bundle.trial.points.iter().any(|point| !point.is_empty());
    let point_head = if has_points { "<th>point</th>" } else { "" };
    let heads: String = columns.iter().map(|(head, _)| format!("<th>{head}</th>")).collect();
    let mut html = format!(
        "<div class=\"scroll\"><table class=\"runs\"><thead><tr>{point_head}{heads}</tr></thead><tbody>"
    );
    for record in records.iter().take(MOST_RUNS) {
        html.push_str("<tr>");
        if has_points {
            let _ = write!(html, "<td>{}</td>", escape(&label(&record.point)));
        }
        html.extend(columns.iter().map(|(_, of)| format!("<td>{}</td>", of(record))));
        html.push_str("</tr>");
    }
    html.push_str("</tbody></table></div>");
    if records.len() > MOST_RUNS {
        let _ = write!(html, "<p>{} more runs stand in records.jsonl.</p>", records.len() - MOST_RUNS);
    }
    let summary = format!("{} runs", records.len());
    if records.len() > MOST_OPEN_RUNS {
        format!("<details><summary>{summary}</summary>{html}</details>")
    } else {
        html
    }
}
