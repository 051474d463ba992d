//! Runs over time: windows, sequence numbers and queues over time, a panel for each arm, all with common axes.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use hopwise_air::truncate;

use super::super::chart::{Axis, Chart, RowName, ShapeNumbers, escape};
use super::super::{Series, View, figure};
use super::map;
use crate::findings::label;
use crate::record::Record;
use crate::scenario::point::MatrixPoint;

const SIZE: (f64, f64) = (300.0, 180.0);
/// The width of a chart of all arms.
const WIDE: f64 = 900.0;
const MOST_FLOWS: usize = 3;
/// Columns of a picture of queues.
const COLUMNS: usize = 120;
/// Packets up to which a queue has each of its shades.
const SHADES: [f64; 6] = [0.0, 2.0, 5.0, 10.0, 20.0, 49.0];

/// The runs of a point.
struct PointRuns<'a> {
    view: &'a View<'a>,
    runs: Vec<(&'a str, &'a Record, &'a Series)>,
    until_s: f64,
    /// The number of the point, for the ids of its figures.
    nth: usize,
}

pub(super) fn point(view: &View<'_>, point: &MatrixPoint, nth: usize, is_open: bool) -> String {
    let runs = view.over_time(point);
    let until_s = runs.iter().map(|(_, _, series)| end(series)).fold(0.0, f64::max);
    let shown = PointRuns { view, runs, until_s, nth };
    let mut html = String::new();
    let mut flows = shown.flows();
    let others = flows.split_off(flows.len().min(MOST_FLOWS));
    for (nth, (flow, _)) in flows.iter().enumerate() {
        html.push_str(&shown.sequences(flow));
        // The windows of one flow are enough for a first look.
        let windows = shown.windows(flow);
        if nth == 0 && !view.is_large() {
            html.push_str(&windows);
        } else {
            let _ = write!(html, "<details><summary>Window of {}</summary>{windows}</details>", escape(flow));
        }
    }
    html.push_str(&left_out(&others));
    html.push_str(&shown.queues());
    // Its frames are most of a page.
    if !view.is_large() {
        html.push_str(&map::figure_of(view, &shown.runs, nth));
    }
    if view.bundle.trial.points.len() < 2 {
        return html;
    }
    let open = if is_open { " open" } else { "" };
    format!("<details{open}><summary>{}</summary>{html}</details>\n", escape(&label(point)))
}

/// The last instant that a series has.
pub(super) fn end(series: &Series) -> f64 {
    let nodes = series.whose("airtime:idle");
    nodes.first().and_then(|node| series.line("airtime:idle", node).last()).map_or(0.0, |(at, _)| *at)
}

impl PointRuns<'_> {
    /// The TCP flows with the bytes that they delivered in all arms. The largest come first, and background flows last.
    fn flows(&self) -> Vec<(String, u64)> {
        let names = self.runs.iter().flat_map(|(_, _, series)| series.whose("acked_bytes"));
        let mut flows: BTreeMap<&str, (bool, u64)> = names.map(|name| (name, (false, 0))).collect();
        for row in self.runs.iter().flat_map(|(_, record, _)| &record.result.flows) {
            if let Some((is_background, bytes)) = flows.get_mut(&*row.id) {
                *is_background |= row.background;
                *bytes = bytes.saturating_add(row.bytes_delivered);
            }
        }
        let mut flows: Vec<_> = flows.into_iter().collect();
        flows.sort_by_key(|(_, (is_background, bytes))| (*is_background, std::cmp::Reverse(*bytes)));
        flows.into_iter().map(|(name, (_, bytes))| (name.to_owned(), bytes)).collect()
    }

    /// The time at the beginning that is not counted.
    fn warmup_s(&self) -> f64 {
        let counted = self.runs.iter().map(|(_, record, _)| record.result.counted_s).fold(0.0, f64::max);
        (self.until_s - counted).max(0.0)
    }

    fn chart(&self, upward: Axis<'_>) -> Chart {
        let axis = Axis { label: "seconds", low: 0.0, high: self.until_s };
        let mut chart = Chart::new(SIZE, axis, upward);
        if self.warmup_s() > 0.0 {
            chart.upright(self.warmup_s(), "warmup");
        }
        chart
    }

    /// A panel for each arm.
    fn panels(&self, of: impl Fn(&str, &Series) -> String) -> String {
        self.runs
            .iter()
            .map(|(arm, _, series)| super::panel(self.view, arm, &of(&self.view.class(arm), series)))
            .collect()
    }

    fn windows(&self, flow: &str) -> String {
        let all = self.runs.iter().flat_map(|(_, _, series)| series.line("cwnd_segments", flow));
        let upward = Axis::to_most("segments", all.map(|(_, value)| *value));
        let panels = self.panels(|class, series| {
            let mut chart = self.chart(upward);
            chart.numbers.of("ssthresh");
            let line = |what| self.thin(series.line(what, flow));
            chart.steps(&line("ssthresh_segments"), self.until_s, &format!("thin {class}"));
            chart.numbers.of("cwnd");
            chart.steps(&line("cwnd_segments"), self.until_s, &format!("line {class}"));
            for (at, _) in rises(series.line("timeouts", flow)) {
                chart.upright(at, "timeout");
            }
            chart.finish("congestion window over time")
        });
        // Panels that lie over each other show these axes alone.
        let axes = self.chart(upward).finish_frame();
        let body = format!(
            "{}<div class=\"axes\" aria-hidden=\"true\">{axes}</div>{panels}</div>",
            super::panels(" lines", self.runs.len())
        );
        let reading = "The line is cwnd, the thin dashed one ssthresh, a red line a timeout, the dotted line the end \
                       of the warm-up. Saw-teeth are losses; a window far above what the path holds only fills queues, \
                       and a flat one is not in use: the peer's window or the arm's own limit holds the flow.";
        figure(&format!("fig-cwnd-{}-{flow}", self.nth), &format!("Window of {flow}"), &body, reading)
    }

    /// All arms in one chart: their slopes are what differs.
    fn sequences(&self, flow: &str) -> String {
        let megabytes = |(at, bytes): &(f64, f64)| (*at, bytes / 1e6);
        let lines = |series: &Series, what| {
            self.thin(series.line(what, flow)).iter().map(megabytes).collect::<Vec<_>>()
        };
        let all = self.runs.iter().flat_map(|(_, _, series)| lines(series, "sent_bytes"));
        let upward = Axis::to_most("MB", all.map(|(_, value)| value));
        let across = Axis { label: "seconds", low: 0.0, high: self.until_s };
        let ticks = across.ticks();
        let names = self.runs.iter().map(|(arm, ..)| *arm);
        let mut chart = Chart::with_names((WIDE, 300.0), across, upward, (&ticks, names));
        if self.warmup_s() > 0.0 {
            chart.upright(self.warmup_s(), "warmup");
        }
        let mut ends = Vec::new();
        for (arm, _, series) in &self.runs {
            let class = self.view.class(arm);
            let acked = lines(series, "acked_bytes");
            chart.numbers.of("acknowledged");
            chart.steps(&acked, self.until_s, &format!("line {class}"));
            chart.numbers.of("sent again");
            for (at, _) in rises(series.line("sent_again_segments", flow)) {
                let before = acked[..acked.partition_point(|(then, _)| *then <= at)]
                    .last()
                    .map_or(0.0, |(_, value)| *value);
                chart.dot(&ShapeNumbers::at("dot", &format!("again {class}"), (at, before)), 2.0);
            }
            ends.extend(acked.last().map(|(_, value)| (*value, *arm, class)));
        }
        chart.names_at_right(&ends);
        let reading = "A line is what was acknowledged; its slope is the goodput, a part that stays flat is a stall, \
                       and a red dot marks segments that were sent again. The dotted line is the end of the warm-up.";
        let body = chart.finish("acknowledged bytes over time");
        figure(&format!("fig-seq-{}-{flow}", self.nth), &format!("Progress of {flow}"), &body, reading)
    }

    /// The line, or in a large trial its ends and extremes in each stretch that a screen tells apart. The files of
    /// series have all of it.
    fn thin(&self, line: &[(f64, f64)]) -> Vec<(f64, f64)> {
        const STRETCHES: usize = 200;
        if !self.view.is_large() || line.len() <= 4 * STRETCHES || self.until_s <= 0.0 {
            return line.to_vec();
        }
        let stretch = |at: f64| truncate::to_usize(at.max(0.0) / self.until_s * STRETCHES as f64);
        let mut kept = Vec::new();
        for points in line.chunk_by(|one, next| stretch(one.0) == stretch(next.0)) {
            let by = |order: fn(&f64, &f64) -> std::cmp::Ordering| {
                (0..points.len()).max_by(|one, other| order(&points[*one].1, &points[*other].1))
            };
            let extremes = [by(f64::total_cmp), by(|one, other| other.total_cmp(one))];
            let mut places: Vec<_> = extremes.into_iter().flatten().chain([0, points.len() - 1]).collect();
            places.sort_unstable();
            places.dedup();
            kept.extend(places.into_iter().map(|nth| points[nth]));
        }
        kept
    }

    fn queues(&self) -> String {
        let panels = self.panels(|_, series| self.queue_picture(series));
        let body = format!("{}{panels}</div>", super::panels("", self.runs.len()));
        let shades = ["empty", "1–2", "3–5", "6–10", "11–20", "21–49", "full"];
        let legend: String = shades
            .iter()
            .zip(0..)
            .map(|(label, nth): (_, u8)| super::key((&format!("q{nth}"), label)))
            .collect();
        let reading = "A row is a node, from the first to the last; the stronger the colour, the more packets wait in \
                       its interface queue (the most of each stretch). A full row is the bottleneck.";
        let body = format!("{body}<div class=\"legend\">{legend} packets</div>");
        figure(&format!("fig-queue-{}", self.nth), "Interface queues", &body, reading)
    }

    fn queue_picture<'a>(&self, series: &'a Series) -> String {
        let nodes = series.whose("queue_packets");
        let axis = Axis { label: "seconds", low: 0.0, high: self.until_s };
        let row = (150.0 / nodes.len().max(1) as f64).clamp(3.0, 18.0);
        // There is room for only some of the names.
        let every = truncate::to_usize((10.0 / row).ceil());
        let name = |(nth, node): (usize, &&'a str)| RowName::alone(if nth % every == 0 { node } else { "" });
        let names: Vec<_> = nodes.iter().enumerate().map(name).collect();
        let (mut chart, middles) = Chart::rows(SIZE.0, row, &names, axis);
        let mut paths: BTreeMap<usize, String> = BTreeMap::new();
        for (node, middle) in nodes.iter().zip(middles) {
            let most = most_of_each(series.line("queue_packets", node), self.until_s);
            let mut from = 0;
            while from < COLUMNS {
                let shade = shade(most[from]);
                let same = most[from..].iter().take_while(|packets| self::shade(**packets) == shade).count();
                let at = |column: usize| chart.across(self.until_s * column as f64 / COLUMNS as f64);
                let (left, right) = (at(from), at(from + same));
                if shade > 0 {
                    let path = paths.entry(shade).or_default();
                    let (top, height) = (middle - row / 2.0 + 0.5, row - 1.0);
                    let wide = right - left;
                    let _ = write!(path, "M{left:.1} {top:.1}h{wide:.1}v{height:.1}h-{wide:.1}z");
                }
                let begins = self.until_s * from as f64 / COLUMNS as f64;
                chart.numbers.tell(&ShapeNumbers {
                    title: node,
                    ..ShapeNumbers::at("packets", "", (begins, most[from]))
                });
                from += same;
            }
        }
        for (shade, path) in paths {
            chart.raw(&format!("<path class=\"q{shade}\" d=\"{path}\"/>"));
        }
        chart.finish("queue lengths over time")
    }
}

/// The flows without a figure, and how little they delivered.
fn left_out(flows: &[(String, u64)]) -> String {
    const MOST_NAMED: usize = 12;
    if flows.is_empty() {
        return String::new();
    }
    let amount = |bytes: u64| match bytes {
        0..100_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    };
    let label = |(name, bytes): &(String, u64)| format!("{} ({})", escape(name), amount(*bytes));
    let named: Vec<_> = flows.iter().take(MOST_NAMED).map(label).collect();
    let more = flows.len().saturating_sub(MOST_NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!(
        "<p class=\"left-out\">Shown are the flows that delivered most. Left out: {}{more}; their lines are in the \
         series' files, their figures in records.jsonl.</p>",
        named.join(", ")
    )
}

/// Points at which a counter rises.
fn rises(counter: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut last = 0.0;
    let mut rises = Vec::new();
    for point in counter {
        if point.1 > last {
            rises.push(*point);
        }
        last = point.1;
    }
    rises
}

/// The largest value in each column; a value holds until it changes.
fn most_of_each(line: &[(f64, f64)], until_s: f64) -> [f64; COLUMNS] {
    let mut most = [0.0_f64; COLUMNS];
    if until_s <= 0.0 {
        return most;
    }
    let column = |at: f64| truncate::to_usize(at / until_s * COLUMNS as f64).min(COLUMNS - 1);
    for (nth, (at, value)) in line.iter().enumerate() {
        let next = line.get(nth + 1).map_or(until_s, |next| next.0);
        for most in &mut most[column(*at)..=column(next.max(*at))] {
            *most = most.max(*value);
        }
    }
    most
}

fn shade(packets: f64) -> usize {
    SHADES.iter().take_while(|most| packets > **most).count()
}
