//! The tables: results, parameters in force, all runs.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::View;
use super::chart::escape;
use crate::explain;
use crate::findings::{ArmFindings, BESIDE, Beside, PointFindings, cells, cells_of, heading, label};
use crate::metric;
use crate::record::Record;
use crate::result::FlowRow;
use crate::settings::flatten;
use crate::statistics::{Figure, GOODPUT, change};

/// Runs beyond these stand in records.jsonl alone.
const MOST_RUNS: usize = 1_000;

/// The place of the mean round trip among the cells of a run.
const MEAN_RTT: usize = 5;

/// The arms' means, and a table more for each other figure that decides.
pub(super) fn results(view: &View<'_>) -> String {
    let figures = view.bundle.trial.figures();
    let others = figures.iter().filter(|figure| !figure.is_goodput());
    let tables =
        others.map(|figure| format!("<h3>{}</h3>{}", escape(&heading(figure)), of_figure(view, figure)));
    goodputs(view, figures.contains(&GOODPUT)) + &tables.collect::<String>()
}

fn goodputs(view: &View<'_>, decides: bool) -> String {
    let arms = || view.findings.points.iter().flat_map(|point| &point.arms);
    let is_known = |of: fn(&Beside) -> String| arms().any(|arm| !of(&arm.beside).is_empty());
    let beside: Vec<_> = BESIDE.into_iter().filter(|(_, of)| is_known(*of)).collect();
    let heads: String =
        beside.iter().map(|(head, _)| format!("<th class=\"beside\">{}</th>", escape(head))).collect();
    let compared = if decides { compared_heads(view) } else { String::new() };
    let count = if decides { 8 } else { 4 } + beside.len();
    let head = format!(
        "<th>arm</th><th>goodput<br>kbit/s</th><th{ASIDE}>95 % interval</th><th{ASIDE}>runs</th>{heads}{compared}"
    );
    table(view, (&head, count), |point, arm| {
        let beside = beside
            .iter()
            .map(|(_, of)| format!("<td class=\"beside\">{}</td>", of(&arm.beside)))
            .collect::<String>();
        let compared = if decides { comparison(point, arm, &GOODPUT) } else { String::new() };
        (cells(arm.summary.as_ref()), beside + &compared)
    })
}

fn of_figure(view: &View<'_>, figure: &Figure) -> String {
    let head = format!(
        "<th>arm</th><th>{}<br>{}</th><th{ASIDE}>95 % interval</th><th{ASIDE}>runs</th>{}",
        escape(figure.name),
        escape(figure.unit),
        compared_heads(view)
    );
    table(view, (&head, 8), |point, arm| {
        (cells_of(point.summary(arm, figure).as_ref()), comparison(point, arm, figure))
    })
}

/// The heads of a comparison's cells.
fn compared_heads(view: &View<'_>) -> String {
    let against = escape(view.bundle.trial.arms.first().map_or("", String::as_str));
    format!(
        "<th>against<br>{against}</th><th{ASIDE}>95 % interval</th><th{ASIDE}>p<br>(Holm)</th><th>verdict</th>"
    )
}

/// A table with a row for each arm at each point: mean, interval and runs, and the cells after them.
fn table(
    view: &View<'_>,
    (head, count): (&str, usize),
    of: impl Fn(&PointFindings, &ArmFindings) -> ((String, String, String), String),
) -> String {
    let mut html = format!("<div class=\"scroll\"><table class=\"results\"><thead><tr>{head}</tr></thead>");
    for point in &view.findings.points {
        html.push_str("<tbody>");
        if !point.point.is_empty() {
            let label = escape(&label(&point.point));
            let _ = write!(html, "<tr><th colspan=\"{count}\" class=\"point\">{label}</th></tr>");
        }
        // The kernel's TCP has no agents: its arms stand apart, below ours.
        let (kernels, ours): (Vec<_>, Vec<_>) = point.arms.iter().partition(|arm| view.is_kernels(&arm.arm));
        let row = |arm: &ArmFindings| {
            let ((mean, interval, runs), rest) = of(point, arm);
            let (class, name) = (view.class(&arm.arm), escape(&arm.arm));
            let cells =
                format!("<td><b>{mean}</b></td><td{ASIDE}>{interval}</td><td{ASIDE}>{runs}</td>{rest}");
            format!("<tr class=\"{class}\"><th>{SWATCH}{name}</th>{cells}</tr>")
        };
        html.extend(ours.into_iter().map(row));
        if !kernels.is_empty() {
            let _ = write!(html, "<tr><th colspan=\"{count}\" class=\"point\">the kernel's TCP</th></tr>");
        }
        html.extend(kernels.into_iter().map(row));
        html.push_str("</tbody>");
    }
    html + "</table></div>\n"
}

/// The cells of an arm's comparison with the baseline.
fn comparison(point: &PointFindings, arm: &ArmFindings, figure: &Figure) -> String {
    let found = point.comparison(&arm.arm, figure);
    let cell = |class: &str, text: Option<String>| format!("<td{class}>{}</td>", text.unwrap_or_default());
    let ends = found.and_then(|found| found.ci95);
    let (verdict, class) = found.map_or(("baseline", "baseline"), |found| {
        let name = found.verdict.name();
        (name, if name == "no difference" { "none" } else { name })
    });
    format!(
        "{}{}{}<td><span class=\"verdict {class}\">{verdict}</span></td>",
        cell("", found.and_then(|found| found.ratio).map(change)),
        cell(ASIDE, ends.map(|[low, high]| format!("{} to {}", change(low), change(high)))),
        cell(ASIDE, found.and_then(|found| found.p_holm).map(probability)),
    )
}

/// The attribute of cells for which narrow screens have no room.
const ASIDE: &str = " class=\"aside\"";

/// A mark in the arm's colour in every figure.
pub(super) const SWATCH: &str = "<i class=\"swatch\"></i>";

fn probability(p: f64) -> String {
    if p < 0.001 { "&lt; 0.001".to_owned() } else { format!("{p:.3}") }
}

/// A sentence in HTML, whose lines never end between a number and its `%`.
fn prose(text: &str) -> String {
    escape(text).replace(" %", "&nbsp;%")
}

pub(super) fn sentences(view: &View<'_>) -> String {
    let mut html = String::new();
    for point in &view.findings.points {
        let said: Vec<_> = view.findings.said(point).collect();
        let is_said = !said.is_empty() || point.arms.iter().any(|arm| !arm.lacks.is_empty());
        if !point.point.is_empty() && is_said {
            let _ = write!(html, "<h3>{}</h3>", escape(&label(&point.point)));
        }
        html.push_str("<ul class=\"sentences\">");
        for comparison in said {
            let class = view.class(&comparison.arm);
            let _ = write!(html, "<li class=\"{class}\">{SWATCH}{}</li>", prose(&comparison.sentence));
        }
        for arm in &point.arms {
            let class = view.class(&arm.arm);
            let row = |lacks: &String| format!("<li class=\"{class}\">{SWATCH}{}</li>", prose(lacks));
            html.extend(arm.lacks.iter().map(row));
        }
        html.push_str("</ul>");
        html.extend(point.correction().map(|said| format!("<p>{}</p>", prose(&said))));
    }
    html
}

/// The reasons why arms were faster or slower.
pub(super) fn reasons(view: &View<'_>) -> String {
    let mut html = String::new();
    let points = explain::sentences(&view.bundle.trial, &view.bundle.records);
    let (count, is_matrix) = (points.len(), points.len() > 1);
    for (nth, (point, arms)) in points.into_iter().enumerate() {
        if is_matrix {
            let open = if nth + 1 == count { " open" } else { "" };
            let _ = write!(html, "<details{open}><summary>{}</summary>", escape(&label(point)));
        }
        html.push_str("<ul class=\"sentences\">");
        for (arm, sentence) in arms {
            let class = view.class(&arm);
            let _ = write!(html, "<li class=\"{class}\">{SWATCH}{}</li>", prose(&sentence));
        }
        html.push_str(if is_matrix { "</ul></details>" } else { "</ul>" });
    }
    html
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
    let joined = |values: &BTreeSet<String>| values.iter().cloned().collect::<Vec<_>>().join(" | ");
    for (path, by_arm) in &paths {
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
    format!(
        "{first}<details><summary>{folded} with one value everywhere</summary>{}</details>\n",
        table(&same)
    )
}

/// A value that is empty is a dash, so that it does not look forgotten.
fn shown(value: &str) -> String {
    if value.is_empty() { "–".to_owned() } else { escape(value) }
}

pub(super) fn runs(view: &View<'_>) -> String {
    let records = &view.bundle.records;
    let has_points = view.bundle.trial.points.iter().any(|point| !point.is_empty());
    let point_head = if has_points { "<th>point</th>" } else { "" };
    // The world `sim` does not look at smoothed round trips.
    let has_mean = records.iter().any(|record| record.result.flows.iter().any(|flow| flow.rtt_ms.is_some()));
    let mean_head = if has_mean { "<th>mean RTT<br>ms</th>" } else { "" };
    let mut html = format!(
        "<div class=\"scroll\"><table class=\"runs\"><thead><tr>{point_head}<th>seed</th><th>arm</th><th>kbit/s</th>\
         <th>Jain</th><th>round trip<br>ms (95 %)</th>{mean_head}<th>segments</th><th>sent again</th>\
         <th>time­outs</th><th>ACKs</th><th>frames</th>\
         <th>collisions</th><th>given up</th><th>queue full</th><th>airtime s</th></tr></thead><tbody>"
    );
    for record in records.iter().take(MOST_RUNS) {
        if has_points {
            let _ = write!(html, "<tr><td>{}</td>", escape(&label(&record.point)));
        } else {
            html.push_str("<tr>");
        }
        html.push_str(&run(record, has_mean));
    }
    html.push_str("</tbody></table></div>");
    if records.len() > MOST_RUNS {
        let _ = write!(html, "<p>{} more runs stand in records.jsonl.</p>", records.len() - MOST_RUNS);
    }
    html
}

fn run(record: &Record, has_mean: bool) -> String {
    let (result, air, beside) = (&record.result, &record.result.air, Beside::of(&[record]));
    let shown =
        |figure: Option<f64>, digits| figure.map_or("-".to_owned(), |figure| format!("{figure:.digits$}"));
    let sum = |of: fn(&FlowRow) -> Option<u64>| shown(metric::sum(result, of), 0);
    let count = |counter: Option<u64>| shown(counter.map(|counter| counter as f64), 0);
    let cells = [
        record.seed.to_string(),
        escape(&record.arm),
        format!("{:.1}", result.total.goodput_kbps),
        format!("{:.3}", result.total.jain),
        beside.round_trips(),
        sum(|flow| flow.segments_sent),
        sum(|flow| flow.segments_retransmitted),
        sum(|flow| flow.timeouts.map(u64::from)),
        sum(|flow| flow.acks_sent),
        count(air.frames_sent),
        count(air.collisions),
        count(air.retry_drops),
        count(air.queue_drops),
        shown(air.airtime_s, 1),
    ];
    let mut cells = Vec::from(cells);
    if has_mean {
        cells.insert(MEAN_RTT, beside.mean_round_trip());
    }
    let cells = cells.iter().map(|cell| format!("<td>{cell}</td>"));
    cells.collect::<String>() + "</tr>"
}
