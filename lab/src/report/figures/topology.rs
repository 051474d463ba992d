//! The nodes and the flows of a trial, as one drawing on top of its page.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::super::chart::escape;
use super::super::{Series, View, figure};
use super::map::{NodePlaces, WIDTH, link, numbers};
use crate::findings::label;
use crate::record::Record;
use crate::scenario::point::MatrixPoint;

/// The nodes at their places, with the wires, the links that carried data and the flows of the first run: what was run.
pub(in super::super) fn figure_of(view: &View<'_>) -> Option<String> {
    let seen = view.points_with_series().first().and_then(|point| view.shown(point).into_iter().next());
    let record = seen.map(|(_, record, _)| record).or(view.bundle.records.first())?;
    let series = seen.map(|(_, _, series)| series);
    let places = if let Some(series) = series { NodePlaces::of(series, WIDTH) } else { chain(record)? };
    let mut svg = format!(
        "<svg class=\"map\" viewBox=\"0 0 {WIDTH} {:.0}\" role=\"img\" aria-label=\"the nodes and the flows\" {}>\
         <defs><marker id=\"arrow\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" \
         orient=\"auto\"><path class=\"head\" d=\"M0 0L8 4L0 8Z\"/></marker></defs>",
        places.height,
        series.map(|series| numbers(&places, series)).unwrap_or_default()
    );
    lines(&mut svg, &places, record, series);
    for (nth, (node, (x, y))) in places.at.iter().enumerate() {
        // Names of close neighbours touch, and names of a crowd tell nothing.
        let name = if places.at.len() > 12 && nth % 2 == 1 || places.at.len() > 40 { "" } else { node };
        super::node(&mut svg, (*x, *y), name);
    }
    svg.push_str("</svg>");
    let reading = format!(
        "The nodes at their places, in grey the links that carried data, and an arrow for each flow (for {MOST_ARROWS} \
         between two nodes at most), as in the first run{}.",
        others(view, record)
    );
    Some(figure("fig-topology", "The nodes and the flows", &svg, &reading))
}

/// The end of the sentence about a drawing that is not of all points: whose it is, and how many differ.
fn others(view: &View<'_>, drawn: &Record) -> String {
    let differs = |point: &&MatrixPoint| {
        view.at_point(point)
            .any(|run| ["topology", "traffic"].iter().any(|key| run.settings[key] != drawn.settings[key]))
    };
    let points = &view.bundle.trial.points;
    match points.iter().filter(differs).count() {
        0 => String::new(),
        1 => format!(", at {}. One other point has other nodes or flows", label(&drawn.point)),
        other => format!(", at {}. {other} other points have other nodes or flows", label(&drawn.point)),
    }
}

/// Wires, links that carried data, and flows.
fn lines(svg: &mut String, places: &NodePlaces, record: &Record, series: Option<&Series>) {
    let ends = |text: &str| text.split_once('>').map(|(a, b)| (a.to_owned(), b.to_owned()));
    for (a, b) in series.into_iter().flat_map(|series| series.whose("wire")).filter_map(ends) {
        link(svg, places, (&a, &b), "wire", 1.5);
    }
    let frames = series.into_iter().flat_map(|series| &series.frames);
    let carried = frames.filter(|frame| frame.kind == "data" && !frame.is_lost);
    let carried: BTreeSet<_> = carried.map(|frame| (frame.from.as_str(), frame.to.as_str())).collect();
    for (a, b) in carried.iter().filter(|(a, b)| a < b || !carried.contains(&(*b, *a))) {
        link(svg, places, (a, b), "link", 2.0);
    }
    let mut flows: BTreeMap<_, Vec<&str>> = BTreeMap::new();
    for flow in &record.result.flows {
        flows.entry((&flow.from, &flow.to)).or_default().push(&flow.id);
    }
    for ((from, to), ids) in flows {
        for (nth, id) in ids.iter().take(MOST_ARROWS).enumerate() {
            arrow(svg, places, (from, to), (nth, id));
        }
    }
}

/// The places of a chain whose nodes no series has.
fn chain(record: &Record) -> Option<NodePlaces> {
    let topology = &record.settings["topology"];
    if topology["kind"].as_str().is_some_and(|kind| kind != "chain") {
        return None;
    }
    let hops = topology["hops"].as_u64().filter(|hops| *hops < 100)?;
    let node = |nth: u64| (format!("n{nth}"), 200.0 * nth as f64, 0.0);
    Some(NodePlaces::within(WIDTH, (0..=hops).map(node).collect(), (Vec::new(), Vec::new())))
}

/// Further flows between two nodes have no arrow.
const MOST_ARROWS: usize = 6;

/// The bow of a flow from one node to another, above the nodes between and above the bows of flows before it.
fn arrow(svg: &mut String, places: &NodePlaces, (from, to): (&str, &str), (nth, id): (usize, &str)) {
    let (Some(a), Some(b)) = (places.at.get(from), places.at.get(to)) else { return };
    let (dx, dy) = (b.0 - a.0, b.1 - a.1);
    let long = dx.hypot(dy).max(1.0);
    // There and back bow to different sides.
    let bow = (long * 0.12).clamp(12.0, 34.0) * (1.0 - nth as f64 / (MOST_ARROWS as f64 + 1.0));
    let middle = (a.0.midpoint(b.0) + dy / long * bow * 2.0, a.1.midpoint(b.1) - dx / long * bow * 2.0);
    let near = |end: (f64, f64)| {
        let (x, y) = (middle.0 - end.0, middle.1 - end.1);
        let long = x.hypot(y).max(1.0);
        (end.0 + x / long * 9.0, end.1 + y / long * 9.0)
    };
    let (start, end) = (near(*a), near(*b));
    let _ = write!(
        svg,
        "<path class=\"flow\" marker-end=\"url(#arrow)\" d=\"M{:.1} {:.1}Q{:.1} {:.1} {:.1} {:.1}\">\
         <title>{}, {} to {}</title></path>",
        start.0,
        start.1,
        middle.0,
        middle.1,
        end.0,
        end.1,
        escape(id),
        escape(from),
        escape(to)
    );
}
