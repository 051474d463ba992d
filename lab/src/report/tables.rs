//! The tables: results, parameters in force, all runs.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::View;
use super::chart::escape;
use crate::explain;
use crate::findings::{cells, label};
use crate::metric;
use crate::record::Record;
use crate::result::FlowRow;
use crate::settings::flatten;
use crate::statistics::change;

/// Runs beyond these stand in records.jsonl alone.
const MOST_RUNS: usize = 1_000;

pub(super) fn results(view: &View<'_>) -> String {
    let against = view.bundle.trial.arms.first().map_or("", String::as_str);
    let mut html = format!(
        "<div class=\"scroll\"><table class=\"results\"><thead><tr><th>arm</th><th>goodput<br>kbit/s</th>\
         <th>95 % interval</th><th>runs</th><th>against<br>{}</th><th>95 % interval</th><th>p</th><th>verdict</th>\
         </tr></thead>",
        escape(against)
    );
    for point in &view.findings.points {
        html.push_str("<tbody>");
        if !point.point.is_empty() {
            let _ = write!(
                html,
                "<tr><th colspan=\"8\" class=\"point\">{}</th></tr>",
                escape(&label(&point.point))
            );
        }
        for arm in &point.arms {
            let name = &arm.samples.arm;
            let (mean, interval, runs) = cells(arm.summary.as_ref());
            let comparison = point.comparison(name);
            let cell =
                |text: Option<String>| text.map_or("<td></td>".to_owned(), |t| format!("<td>{t}</td>"));
            let ends = comparison.and_then(|c| c.ci95);
            let verdict = comparison.map_or(("baseline", "baseline"), |c| {
                let name = c.verdict.name();
                (name, if name == "no difference" { "none" } else { name })
            });
            let _ = write!(
                html,
                "<tr class=\"{}\"><th>{}{}</th><td><b>{mean}</b></td><td>{interval}</td><td>{runs}</td>{}{}{}\
                 <td><span class=\"verdict {}\">{}</span></td></tr>",
                view.class(name),
                SWATCH,
                escape(name),
                cell(comparison.and_then(|c| c.ratio).map(change)),
                cell(ends.map(|[low, high]| format!("{} to {}", change(low), change(high)))),
                cell(comparison.and_then(|c| c.p_holm).map(probability)),
                verdict.1,
                verdict.0
            );
        }
        html.push_str("</tbody>");
    }
    html + "</table></div>\n"
}

/// A mark in the arm's colour in every figure.
pub(super) const SWATCH: &str = "<i class=\"swatch\"></i>";

fn probability(p: f64) -> String {
    if p < 0.001 { "&lt; 0.001".to_owned() } else { format!("{p:.3}") }
}

pub(super) fn sentences(view: &View<'_>) -> String {
    let mut html = String::new();
    for point in &view.findings.points {
        if !point.point.is_empty() {
            let _ = write!(html, "<h3>{}</h3>", escape(&label(&point.point)));
        }
        html.push_str("<ul class=\"sentences\">");
        for comparison in &point.comparisons {
            let class = view.class(&comparison.arm);
            let _ = write!(html, "<li class=\"{class}\">{SWATCH}{}</li>", escape(&comparison.sentence));
        }
        html.push_str("</ul>");
    }
    html
}

/// The reasons why arms were faster or slower.
pub(super) fn reasons(view: &View<'_>) -> String {
    let mut html = String::new();
    for (point, arms) in explain::sentences(&view.bundle.trial, &view.bundle.records) {
        if !point.is_empty() {
            let _ = write!(html, "<h3>{}</h3>", escape(&label(point)));
        }
        html.push_str("<ul class=\"sentences\">");
        for (arm, sentence) in arms {
            let class = view.class(&arm);
            let _ = write!(html, "<li class=\"{class}\">{SWATCH}{}</li>", escape(&sentence));
        }
        html.push_str("</ul>");
    }
    html
}

/// Every path of the settings with its values, arm by arm where they differ.
pub(super) fn parameters(view: &View<'_>) -> String {
    let arms = &view.bundle.trial.arms;
    let mut paths: BTreeMap<String, BTreeMap<&str, BTreeSet<String>>> = BTreeMap::new();
    for record in &view.bundle.records {
        for (path, value) in flatten(&record.settings) {
            paths.entry(path).or_default().entry(&record.arm).or_default().insert(value);
        }
    }
    let joined = |values: &BTreeSet<String>| values.iter().cloned().collect::<Vec<_>>().join(" | ");
    let mut html = String::from("<div class=\"scroll\"><table class=\"parameters\"><thead><tr><th>path</th>");
    for arm in arms {
        let _ = write!(html, "<th>{}</th>", escape(arm));
    }
    html.push_str("</tr></thead><tbody>");
    for (path, by_arm) in &paths {
        let cells: Vec<_> = arms.iter().map(|arm| by_arm.get(arm.as_str()).map(joined)).collect();
        let _ = write!(html, "<tr><th>{}</th>", escape(path));
        if cells.windows(2).all(|pair| pair[0] == pair[1]) {
            let value = cells.first().cloned().flatten().unwrap_or_default();
            let _ = write!(html, "<td class=\"same\" colspan=\"{}\">{}</td>", arms.len(), escape(&value));
        } else {
            for cell in cells {
                let _ = write!(html, "<td>{}</td>", escape(&cell.unwrap_or_default()));
            }
        }
        html.push_str("</tr>");
    }
    html + "</tbody></table></div>\n"
}

pub(super) fn runs(view: &View<'_>) -> String {
    let records = &view.bundle.records;
    let has_points = view.bundle.trial.points.iter().any(|point| !point.is_empty());
    let point_head = if has_points { "<th>point</th>" } else { "" };
    let mut html = format!(
        "<div class=\"scroll\"><table class=\"runs\"><thead><tr>{point_head}<th>seed</th><th>arm</th><th>kbit/s</th>\
         <th>Jain</th><th>segments</th><th>sent again</th><th>time­outs</th><th>ACKs</th><th>frames</th>\
         <th>collisions</th><th>given up</th><th>queue full</th><th>airtime s</th></tr></thead><tbody>"
    );
    for record in records.iter().take(MOST_RUNS) {
        if has_points {
            let _ = write!(html, "<tr><td>{}</td>", escape(&label(&record.point)));
        } else {
            html.push_str("<tr>");
        }
        html.push_str(&run(record));
    }
    html.push_str("</tbody></table></div>");
    if records.len() > MOST_RUNS {
        let _ = write!(html, "<p>{} more runs stand in records.jsonl.</p>", records.len() - MOST_RUNS);
    }
    html
}

fn run(record: &Record) -> String {
    let (result, air) = (&record.result, &record.result.air);
    let shown =
        |figure: Option<f64>, digits| figure.map_or("-".to_owned(), |figure| format!("{figure:.digits$}"));
    let sum = |of: fn(&FlowRow) -> Option<u64>| shown(metric::sum(result, of), 0);
    let count = |counter: Option<u64>| shown(counter.map(|counter| counter as f64), 0);
    let cells = [
        record.seed.to_string(),
        escape(&record.arm),
        format!("{:.1}", result.total.goodput_kbps),
        format!("{:.3}", result.total.jain),
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
    let cells = cells.map(|cell| format!("<td>{cell}</td>"));
    cells.concat() + "</tr>"
}
