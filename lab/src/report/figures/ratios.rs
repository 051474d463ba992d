//! Results of every arm, run by run and against the baseline.

use super::super::chart::{Axis, Chart, ShapeNumbers, number};
use super::super::{FigureRow, View, figure};
use super::{parts, two_in_a_row};
use crate::findings::label;
use crate::metric::{self, Metric, acks_per_segment};
use crate::record::Record;
use crate::statistics::{Better, ComparisonVerdict, Figure, MeanSummary, change, summarize};

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
    // Findings and rows have the points in one order.
    let arms = view.bundle.trial.arms.len();
    let compared = |(nth, row): (usize, &'_ FigureRow<'_>)| {
        let comparison = view.findings.points.get(nth / arms)?.comparison(row.arm, of)?;
        Some((comparison.ratio?, comparison.ci95, comparison.verdict))
    };
    let found: Vec<_> = rows
        .iter()
        .enumerate()
        .filter_map(|place| compared(place).map(|(ratio, ci95, verdict)| (place.1, ratio, ci95, verdict)))
        .collect();
    if found.is_empty() {
        return String::new();
    }
    let margin = view.bundle.trial.margin;
    let ends = found.iter().flat_map(|(_, ratio, ci95, _)| ci95.unwrap_or([*ratio, *ratio]));
    let ends: Vec<f64> = ends.chain([1.0 - 2.0 * margin, 1.0 + 2.0 * margin]).collect();
    let low = ends.iter().copied().fold(f64::INFINITY, f64::min);
    let high = ends.iter().copied().fold(0.0, f64::max).min(MOST_RATIO);
    let what = title(of);
    let label = format!("{what} over the baseline's");
    let axis = Axis { label: &label, low: (low - 0.02).max(0.0), high: high + 0.02 };
    let charts: Vec<_> =
        parts(&found, |(row, ..)| row.point).iter().map(|part| part_of_ratios(view, part, axis)).collect();
    let id = if of.is_goodput() { "fig-ratios".to_owned() } else { format!("fig-ratios-{}", of.name) };
    let title = capital(&format!("{what} against the baseline"));
    figure(&id, &title, &two_in_a_row(&charts), &reading(view, of))
}

fn title(of: &Figure) -> String {
    metric::named(of.name).map_or(of.name.to_owned(), Metric::title)
}

/// The text with a capital at its beginning.
fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

/// An arm at a point, its ratio, the interval, the verdict.
type Ratio<'a> = (&'a FigureRow<'a>, f64, Option<[f64; 2]>, ComparisonVerdict);

fn part_of_ratios(view: &View<'_>, found: &[Ratio<'_>], axis: Axis<'_>) -> String {
    let margin = view.bundle.trial.margin;
    let names: Vec<_> = found.iter().map(|(row, ..)| row.name()).collect();
    let (mut chart, middles) = Chart::rows(WIDTH, ROW, &names, axis);
    let height = chart.y.from - chart.y.to;
    chart.bar((1.0 / (1.0 + margin), 1.0 + margin), (8.0, height), "zone", ("", "within the margin"));
    chart.upright(1.0, "one");
    for ((row, ratio, ci95, verdict), middle) in found.iter().zip(middles) {
        let class = view.class(row.arm);
        chart.numbers.at_point(&label(row.point));
        if let Some([low, high]) = ci95 {
            chart.whisker((*low, *high), middle, &format!("whisker {class}"));
        }
        let title = format!("{}: {}, {verdict}", row.title(), change(*ratio));
        let class = format!("mark {class}");
        let told = ShapeNumbers { x: Some(*ratio), x_ends: *ci95, title: &title, ..ShapeNumbers::default() };
        put(&mut chart, &ShapeNumbers { shape: "ratio", class: &class, ..told }, (middle, 5.0));
    }
    chart.finish("ratios with intervals")
}

fn reading(view: &View<'_>, of: &Figure) -> String {
    let baseline = &view.bundle.trial.arms[0];
    let sides = match (of.is_goodput(), of.better) {
        (true, _) => format!("Right of 1 an arm carried more than {baseline}, left of 1 it carried less."),
        (false, Better::More) => sides(baseline, of, ["better", "worse"]),
        (false, Better::Less) => sides(baseline, of, ["worse", "better"]),
    };
    format!(
        "{sides} Whiskers are 95 % intervals of the ratio. If a whisker lies inside the shaded margin of {} %, the arm \
         surely makes no difference.",
        number(view.bundle.trial.margin * 100.0)
    )
}

fn sides(baseline: &str, of: &Figure, [right, left]: [&str; 2]) -> String {
    let name = title(of);
    format!(
        "Right of 1 an arm's {name} is larger than that of {baseline}, which is {right}. Left of 1 it is smaller, \
         which is {left}."
    )
}

/// Draws the dot of a value at a height, and keeps its numbers.
fn put(chart: &mut Chart, told: &ShapeNumbers<'_>, (height, radius): (f64, f64)) {
    chart.numbers.tell(told);
    let at = (chart.across(told.x.unwrap_or_default()), height);
    chart.spot(at, radius, told.class, told.title);
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

/// The time in which requests and transfers were complete.
pub(super) fn completions(view: &View<'_>) -> String {
    let name = "completion_p95_s";
    let of = |record: &Record| (metric::named(name)?.of)(&record.result);
    let reading = "A small dot is one run: 95 % of its requests and transfers took no longer. The large dot is the \
                   mean of the runs, whiskers its 95 % interval. Further left is sooner.";
    strips(view, "fig-completions", "Completion times", "95 % completion time, s", &of, reading)
}

fn strips<'a>(
    view: &'a View<'_>,
    id: &str,
    title: &str,
    label: &str,
    of: &dyn Fn(&Record) -> Option<f64>,
    reading: &str,
) -> String {
    let known = |row: FigureRow<'a>| {
        let runs: Vec<_> = view.runs(row.point, row.arm).filter_map(|r| Some((r.seed, of(r)?))).collect();
        let summary = summarize(&runs.iter().map(|(_, value)| *value).collect::<Vec<_>>());
        Strip { row, runs, summary }
    };
    let strips: Vec<_> = view.rows().into_iter().map(known).collect();
    let ends = strips.iter().filter_map(|strip| strip.summary);
    let ends = ends.flat_map(|summary| summary.ci95.unwrap_or([summary.mean; 2]));
    let all: Vec<_> = strips.iter().flat_map(|s| &s.runs).map(|(_, value)| *value).chain(ends).collect();
    if all.is_empty() {
        return String::new();
    }
    let axis = Axis::to_most(label, all.into_iter());
    let chart = |part: &&[Strip<'_>]| part_of_strips(view, part, axis, title);
    let charts: Vec<_> = parts(&strips, |strip| strip.row.point).iter().map(chart).collect();
    figure(id, title, &two_in_a_row(&charts), reading)
}

/// The runs of an arm at a point, by seed.
struct Strip<'a> {
    row: FigureRow<'a>,
    runs: Vec<(u64, f64)>,
    summary: Option<MeanSummary>,
}

fn part_of_strips(view: &View<'_>, strips: &[Strip<'_>], axis: Axis<'_>, what: &str) -> String {
    let names: Vec<_> = strips.iter().map(|strip| strip.row.name()).collect();
    let (mut chart, middles) = Chart::rows(WIDTH, ROW, &names, axis);
    for (Strip { row, runs, summary }, middle) in strips.iter().zip(middles) {
        let (class, name) = (view.class(row.arm), row.title());
        let [run, mark] = ["run", "mark"].map(|kind| format!("{kind} {class}"));
        chart.numbers.at_point(&label(row.point));
        // Runs with nearly equal values would hide each other on one height.
        for (nth, (seed, value)) in runs.iter().enumerate() {
            let height = ((nth as f64 + 0.5) / runs.len() as f64 - 0.5) * RUNS_HIGH - RUNS_ABOVE;
            let title = format!("{name}, seed {seed}: {}", number(*value));
            let of = ShapeNumbers { shape: "run", class: &run, title: &title, ..ShapeNumbers::default() };
            let told = ShapeNumbers { x: Some(*value), seed: Some(*seed), ..of };
            put(&mut chart, &told, (middle + height, 1.6));
        }
        let Some(summary) = summary else { continue };
        let below = middle + MEAN_BELOW;
        if let Some([low, high]) = summary.ci95 {
            chart.whisker((low, high), below, &format!("whisker {class}"));
        }
        let title = format!("{name}: mean {}", number(summary.mean));
        let of = ShapeNumbers { shape: "mean", class: &mark, title: &title, ..ShapeNumbers::default() };
        let told = ShapeNumbers { x: Some(summary.mean), x_ends: summary.ci95, runs: Some(summary.n), ..of };
        put(&mut chart, &told, (below, 3.5));
    }
    chart.finish(what)
}
