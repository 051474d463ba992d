//! Results of every arm, run by run and against the baseline.

use super::super::chart::{Axis, Chart, number};
use super::super::{Row, View, figure};
use crate::metric::acks_per_segment;
use crate::record::Record;
use crate::statistics::{Figure, Summary, change, summarize};

pub(super) const WIDTH: f64 = 440.0;
const ROW: f64 = 24.0;
/// The height over which the runs of a row are spread, and its middle above the row's.
const RUNS_HIGH: f64 = 11.0;
const RUNS_ABOVE: f64 = 4.5;
/// The place of their mean below the row's middle.
const MEAN_BELOW: f64 = 6.0;
/// A ratio beyond this is drawn at the edge.
const MOST_RATIO: f64 = 10.0;

/// Each arm's ratio to the baseline in the figures that decide.
pub(super) fn ratios(view: &View<'_>) -> String {
    view.bundle.trial.figures().iter().map(|of| ratios_of(view, of)).collect()
}

/// Each arm's ratio in a figure, with its interval and the margin.
fn ratios_of(view: &View<'_>, of: &Figure) -> String {
    let rows = view.rows();
    let compared = |row: &'_ Row<'_>| {
        let found = view.findings.points.iter().find(|found| found.point == *row.point)?;
        let comparison = found.comparison(row.arm, of)?;
        Some((comparison.ratio?, comparison.ci95, comparison.verdict))
    };
    let found: Vec<_> = rows
        .iter()
        .filter_map(|row| compared(row).map(|(ratio, ci95, verdict)| (row, ratio, ci95, verdict)))
        .collect();
    if found.is_empty() {
        return String::new();
    }
    let margin = view.bundle.trial.margin;
    let ends = found.iter().flat_map(|(_, ratio, ci95, _)| ci95.unwrap_or([*ratio, *ratio]));
    let ends: Vec<f64> = ends.chain([1.0 - 2.0 * margin, 1.0 + 2.0 * margin]).collect();
    let low = ends.iter().copied().fold(f64::INFINITY, f64::min);
    let high = ends.iter().copied().fold(0.0, f64::max).min(MOST_RATIO);
    let names: Vec<_> = found.iter().map(|(row, ..)| row.name()).collect();
    let what = if of.is_goodput() { "goodput" } else { of.name };
    let label = format!("{what} over the baseline's");
    let axis = Axis { label: &label, low: (low - 0.02).max(0.0), high: high + 0.02 };
    let (mut chart, middles) = Chart::rows(WIDTH, ROW, &names, axis);
    let height = chart.inner_height();
    chart.bar((1.0 / (1.0 + margin), 1.0 + margin), (8.0, height), "zone", "within the margin");
    chart.raw(&one_line(chart.across(1.0), height));
    for ((row, ratio, ci95, verdict), middle) in found.iter().zip(middles) {
        let class = view.class(row.arm);
        if let Some([low, high]) = ci95 {
            chart.whisker((*low, *high), middle, &format!("whisker {class}"));
        }
        let title = format!("{}: {}, {verdict}", row.title(), change(*ratio));
        put(&mut chart, ("ratio", *ratio, f64::NAN), (middle, 5.0), &format!("mark {class}"), &title);
    }
    let id = if of.is_goodput() { "fig-ratios".to_owned() } else { format!("fig-ratios-{}", of.name) };
    figure(&id, "Against the baseline", &chart.finish("ratios with intervals"), &reading(view, of))
}

fn reading(view: &View<'_>, of: &Figure) -> String {
    let right = match of.is_goodput() {
        true => "an arm carried more than".to_owned(),
        false => format!("an arm has more {}, of which {} is better, than", of.name, of.better.name()),
    };
    format!(
        "Right of 1 {right} {}, left of it less; whiskers are 95 % intervals of the ratio, and an arm \
         whose whisker lies inside the shaded margin of {} % surely makes no difference.",
        view.bundle.trial.arms[0],
        number(view.bundle.trial.margin * 100.0)
    )
}

/// Draws the dot of a value at a height, and keeps the value with its kind and another number.
fn put(
    chart: &mut Chart,
    (kind, value, other): (&str, f64, f64),
    (height, radius): (f64, f64),
    class: &str,
    title: &str,
) {
    chart.tell(kind, class, (value, other), title);
    chart.spot((chart.across(value), height), radius, class, title);
}

fn one_line(x: f64, height: f64) -> String {
    format!("<line class=\"one\" x1=\"{x:.1}\" y1=\"8\" x2=\"{x:.1}\" y2=\"{:.1}\"/>", 8.0 + height)
}

/// Every run as a dot, with the mean and its interval.
pub(super) fn goodputs(view: &View<'_>) -> String {
    let of = |record: &Record| Some(record.result.total.goodput_kbps);
    let reading = "A small dot is one run, the large dot their mean, whiskers its 95 % interval; the runs of a row \
                   stand below each other by seed. Runs of one seed shared channel and traffic, which is why arms are \
                   compared seed by seed and not by these whiskers.";
    strips(view, "fig-goodput", "Goodput of every run", "kbit/s", &of, reading)
}

/// Pure ACKs for each data segment that was sent.
pub(super) fn acks(view: &View<'_>) -> String {
    let of = |record: &Record| acks_per_segment(&record.result);
    let reading =
        "1 means an ACK for every segment; the further left, the fewer ACKs compete with data for the air.";
    strips(view, "fig-acks", "ACKs for each segment", "pure ACKs / data segments", &of, reading)
}

fn strips(
    view: &View<'_>,
    id: &str,
    title: &str,
    label: &str,
    of: &dyn Fn(&Record) -> Option<f64>,
    reading: &str,
) -> String {
    let rows = view.rows();
    let values: Vec<Vec<(u64, f64)>> = rows
        .iter()
        .map(|row| view.runs(row.point, row.arm).filter_map(|r| Some((r.seed, of(r)?))).collect())
        .collect();
    let summaries: Vec<Option<Summary>> =
        values.iter().map(|values| summarize(&values.iter().map(|(_, v)| *v).collect::<Vec<_>>())).collect();
    let ends = summaries.iter().flatten().flat_map(|s| s.ci95.unwrap_or([s.mean, s.mean]));
    let all = values.iter().flatten().map(|(_, value)| *value).chain(ends);
    let names: Vec<_> = rows.iter().map(Row::name).collect();
    let (mut chart, middles) = Chart::rows(WIDTH, ROW, &names, Axis::to_most(label, all));
    for ((row, middle), (values, summary)) in rows.iter().zip(middles).zip(values.iter().zip(&summaries)) {
        let (class, name) = (view.class(row.arm), row.title());
        // Runs that came to nearly the same would hide each other on one height.
        for (nth, (seed, value)) in values.iter().enumerate() {
            let height = ((nth as f64 + 0.5) / values.len() as f64 - 0.5) * RUNS_HIGH - RUNS_ABOVE;
            let title = format!("{name}, seed {seed}: {}", number(*value));
            let told = ("run", *value, *seed as f64);
            put(&mut chart, told, (middle + height, 1.6), &format!("run {class}"), &title);
        }
        let Some(summary) = summary else { continue };
        let below = middle + MEAN_BELOW;
        if let Some([low, high]) = summary.ci95 {
            chart.whisker((low, high), below, &format!("whisker {class}"));
        }
        let title = format!("{name}: mean {}", number(summary.mean));
        let told = ("mean", summary.mean, summary.n as f64);
        put(&mut chart, told, (below, 3.5), &format!("mark {class}"), &title);
    }
    figure(id, title, &chart.finish(title), reading)
}
