//! Goodput over the parameter that the matrix varies: one of an agent above all, then hops.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::super::chart::{Axis, Chart, ShapeNumbers};
use super::super::{View, figure, short};
use super::ratios::WIDTH;
use super::side_by_side;
use crate::findings::{PointFindings, label};
use crate::scenario::point::MatrixPoint;
use crate::statistics::MeanSummary;
use crate::units::{Size, Time};

const HOPS: &str = "topology.hops";
const MOST_CHARTS: usize = 8;

pub(in super::super) fn all(view: &View<'_>) -> String {
    let Some(path) = varied(view) else { return String::new() };
    let name = if path == HOPS { "hops" } else { path.rsplit('.').next().unwrap_or(&path) };
    // Another varying parameter makes a chart of its own for each value.
    let mut charts: BTreeMap<String, Vec<(f64, &PointFindings)>> = BTreeMap::new();
    for found in &view.findings.points {
        let Some(x) = found.point.get(&path).and_then(number) else { continue };
        let mut rest: MatrixPoint = found.point.clone();
        rest.remove(&path);
        charts.entry(short(&rest)).or_default().push((x, found));
    }
    // Unless all of them change with this one.
    if charts.values().all(|points| points.len() == 1) {
        charts = BTreeMap::from([(String::new(), charts.into_values().flatten().collect())]);
    }
    let most = view.findings.points.iter().flat_map(|found| &found.arms).filter_map(|arm| {
        let summary = arm.summary?;
        Some(summary.ci95.map_or(summary.mean, |[_, high]| high))
    });
    let upward = Axis::to_most("kbit/s", most);
    let panels: Vec<_> = charts
        .iter()
        .take(MOST_CHARTS)
        .map(|(rest, points)| format!("<div>{}{}</div>", head(rest), chart(view, name, points, upward)))
        .collect();
    let (arms, shown) = (view.bundle.trial.arms.len(), view.arms_over_time().len());
    let some = if shown < arms {
        format!(
            " Of {arms} arms {shown} are drawn: the baseline, and those that carry most or answer soonest."
        )
    } else {
        String::new()
    };
    let reading = format!(
        "Lines are means over the seeds, bands their 95 % intervals; where bands of two arms are apart, the arms \
         differ at that value of {name}, and where they overlap the table below decides.{some}"
    );
    figure("fig-sweep", &format!("Goodput by {name}"), &side_by_side(&panels), &reading)
}

fn head(rest: &str) -> String {
    if rest.is_empty() { String::new() } else { format!("<h4>{}</h4>", super::super::escape(rest)) }
}

/// The number of a value: a number, a size in bytes, a time in seconds, or the last parameter of a spec.
fn number(value: &Value) -> Option<f64> {
    let Value::String(text) = value else { return value.as_f64() };
    let bytes = text.parse::<Size>().map(|size| size.0 as f64);
    let number = bytes.or_else(|_| text.parse::<Time>().map(|time| time.0.as_secs_f64()));
    number.ok().or_else(|| text.rsplit_once('=')?.1.parse().ok())
}

/// A path with several numbers.
fn varied(view: &View<'_>) -> Option<String> {
    let points = &view.bundle.trial.points;
    let is_varied = |path: &&String| {
        let values: BTreeSet<u64> =
            points.iter().filter_map(|point| number(point.get(*path)?)).map(f64::to_bits).collect();
        values.len() > 1
    };
    let paths: BTreeSet<&String> = points.iter().flat_map(MatrixPoint::keys).collect();
    let is_last = |path: &&String| (!path.starts_with("arms."), *path != HOPS);
    paths.into_iter().filter(is_varied).min_by_key(is_last).cloned()
}

fn chart(view: &View<'_>, name: &str, points: &[(f64, &PointFindings)], upward: Axis<'_>) -> String {
    let mut points = points.to_vec();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (low, high) = (points[0].0, points[points.len() - 1].0);
    let room = (high - low).max(1.0) * 0.04;
    let axis = Axis { label: name, low: low - room, high: high + room };
    let ticks: Vec<f64> = points.iter().map(|(x, _)| *x).collect();
    let arms = view.arms_over_time();
    let names = arms.iter().copied();
    let mut chart = Chart::with_names((WIDTH, 260.0), axis, upward, (&ticks, names));
    let mut named = Vec::new();
    for arm in arms {
        let class = view.class(arm);
        let of = |found: &PointFindings| {
            found.arms.iter().find(|known| known.arm == arm).and_then(|known| known.summary)
        };
        let known: Vec<_> = points.iter().filter_map(|(x, found)| Some((*x, of(found)?))).collect();
        let at = points.iter().filter(|(_, found)| of(found).is_some()).map(|(_, found)| label(&found.point));
        let ends = |nth: usize| -> Vec<(f64, f64)> {
            known.iter().filter_map(|(x, summary)| Some((*x, summary.ci95?[nth]))).collect()
        };
        chart.band(&ends(0), &ends(1), &format!("band {class}"));
        let means: Vec<_> = known.iter().map(|(x, summary)| (*x, summary.mean)).collect();
        chart.stroke(&means, &format!("line {class}"));
        named.extend(means.last().map(|(_, mean)| (*mean, arm, class.clone())));
        for ((x, summary), point) in known.iter().zip(at) {
            chart.numbers.at_point(&point);
            mark(&mut chart, (arm, &format!("mark {class}")), *x, summary);
        }
    }
    chart.names_at_right(&named);
    chart.finish("goodput over what the matrix varies")
}

/// The mark of an arm's mean at a value of what is varied.
fn mark(chart: &mut Chart, (arm, class): (&str, &str), x: f64, summary: &MeanSummary) {
    let title = format!("{arm}: {:.1} kbit/s", summary.mean);
    let mean = ShapeNumbers { title: &title, ..ShapeNumbers::at("mean", class, (x, summary.mean)) };
    chart.dot(&ShapeNumbers { y_ends: summary.ci95, runs: Some(summary.n), ..mean }, 3.5);
}
