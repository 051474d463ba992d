//! The nodes' places and the frames on the air. A script plays them: the whole run in steps, and stretches of it frame
//! by frame, slowly.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use hopwise_air::truncate;
use serde_json::{Value, json};

use super::super::chart::escape;
use super::super::{Series, View, figure};
use super::time;
use crate::record::Record;

pub(in super::super) const WIDTH: f64 = 300.0;
/// The width of maps of flat scenes, such as chains. They stand below each other.
const WIDE: f64 = 900.0;
const ROOM: f64 = 28.0;
/// The least and the greatest height of a map.
const HEIGHTS: (f64, f64) = (110.0, 340.0);

type ShownRuns<'a> = [(&'a str, &'a Record, &'a Series)];

/// The number of steps of a whole run.
const STEPS: usize = 100;
/// A map with more nodes or wires would be a blot, and its script's input larger than a page.
const MOST_NODES: usize = 2000;

/// The nodes' places in the picture, which all arms share.
pub(in super::super) struct NodePlaces {
    pub(super) width: f64,
    pub(in super::super) height: f64,
    /// The places at the end.
    pub(in super::super) at: BTreeMap<String, (f64, f64)>,
    /// From metres to the picture: the length of a metre, and the place of 0, 0.
    scale: f64,
    origin: (f64, f64),
}

impl NodePlaces {
    pub(super) fn of(series: &Series, width: f64) -> NodePlaces {
        let mut metres: Vec<(String, f64, f64)> = Vec::new();
        let nodes = series.whose("x_m");
        if nodes.len().max(series.whose("wire").len()) > MOST_NODES {
            return NodePlaces::within(width, metres, (Vec::new(), Vec::new()));
        }
        for node in nodes {
            let (Some(x), Some(y)) = (series.last("x_m", node), series.last("y_m", node)) else { continue };
            metres.push((node.to_owned(), x, y));
        }
        place_wired(series, &mut metres);
        // Moving nodes stay within the picture all the time.
        let way = |what: &'static str| -> Vec<f64> {
            let lines = series.whose(what).into_iter().map(move |node| series.line(what, node));
            lines.flatten().map(|(_, metres)| *metres).collect()
        };
        NodePlaces::within(width, metres, (way("x_m"), way("y_m")))
    }

    /// The places in a map of its own.
    fn of_map(series: &Series) -> NodePlaces {
        let narrow = NodePlaces::of(series, WIDTH);
        if narrow.height > HEIGHTS.0 { narrow } else { NodePlaces::of(series, WIDE) }
    }

    fn is_wide(&self) -> bool {
        self.width > WIDTH
    }

    pub(in super::super) fn within(
        width: f64,
        metres: Vec<(String, f64, f64)>,
        (ways_x, ways_y): (Vec<f64>, Vec<f64>),
    ) -> NodePlaces {
        let span = |last: Vec<f64>, ways: Vec<f64>| {
            let all = || last.iter().chain(&ways).copied();
            let (low, high) = (all().fold(f64::INFINITY, f64::min), all().fold(f64::NEG_INFINITY, f64::max));
            (low, (high - low).max(1.0))
        };
        let (left, wide) = span(metres.iter().map(|node| node.1).collect(), ways_x);
        let (bottom, high) = span(metres.iter().map(|node| node.2).collect(), ways_y);
        let scale = ((width - 2.0 * ROOM) / wide).min((HEIGHTS.1 - 2.0 * ROOM) / high);
        let height = (high * scale + 2.0 * ROOM).max(HEIGHTS.0);
        let (over_x, over_y) = ((width - wide * scale) / 2.0, (height - high * scale) / 2.0);
        let origin = (over_x - left * scale, height - over_y + bottom * scale);
        let mut places = NodePlaces { width, height, at: BTreeMap::new(), scale, origin };
        places.at = metres.into_iter().map(|(node, x, y)| (node, places.place(x, y))).collect();
        places
    }

    /// The place in the picture; north is up.
    fn place(&self, x: f64, y: f64) -> (f64, f64) {
        (self.origin.0 + x * self.scale, self.origin.1 - y * self.scale)
    }
}

/// A node without a radio stands west of the one that its wire leads to.
fn place_wired(series: &Series, metres: &mut Vec<(String, f64, f64)>) {
    for wire in series.whose("wire") {
        let Some((a, b)) = wire.split_once('>') else { continue };
        let known = |name: &str| metres.iter().find(|(node, ..)| node == name).map(|(_, x, y)| (*x, *y));
        match (known(a), known(b)) {
            (None, Some((x, y))) => metres.push((a.to_owned(), x - 200.0, y)),
            (Some((x, y)), None) => metres.push((b.to_owned(), x - 200.0, y)),
            _ => {}
        }
    }
}

/// A map for each arm; a line's width shows the number of data frames.
pub(super) fn figure_of(view: &View<'_>, runs: &ShownRuns<'_>, nth: usize) -> String {
    if runs.iter().all(|(_, _, series)| series.frames.is_empty()) {
        return String::new();
    }
    let mut html = format!(
        "<div class=\"player\" data-point=\"{nth}\" hidden><button type=\"button\">play</button>\
         <select aria-label=\"what is played\"></select>\
         <input type=\"range\" min=\"0\" max=\"1000\" value=\"0\" aria-label=\"time\"><output>0 ms</output></div>"
    );
    let all: Vec<_> = runs.iter().map(|(_, _, series)| NodePlaces::of_map(series)).collect();
    if all.iter().all(|places| places.at.is_empty()) {
        return String::new();
    }
    let is_wide = all.iter().any(NodePlaces::is_wide);
    html.push_str(&if is_wide { super::panels(" wide", 1) } else { super::panels("", runs.len()) });
    for ((arm, _, series), places) in runs.iter().zip(&all) {
        html.push_str(&super::panel(view, arm, &still(series, places)));
    }
    html.push_str("</div>");
    let kinds = [("rts", "RTS"), ("cts", "CTS"), ("data", "data"), ("ack", "MAC ACK"), ("lost", "collision")];
    let keys = kinds.map(|(kind, label)| super::key((&format!("f-{kind}"), label))).concat();
    let _ = write!(html, "<div class=\"legend\">{keys}</div>");
    let reading = "At rest the map sums up the stretches of the first run whose frames were kept. The more data frames \
                   a link had, the wider its grey line. The more frames for a node were lost, the larger its red ring. \
                   The whole run plays in steps: discs grow with what a node sent in a step, red rings with what was \
                   lost there, and a node's colour with its queue. A stretch plays every frame, slowly.";
    figure(&format!("fig-map-{nth}"), "The air", &html, reading)
}

fn still(series: &Series, places: &NodePlaces) -> String {
    let mut svg = format!(
        "<svg class=\"map\" viewBox=\"0 0 {} {:.0}\" role=\"img\" aria-label=\"map of the nodes\" {}>",
        places.width,
        places.height,
        numbers(places, series)
    );
    let mut data: BTreeMap<(&str, &str), u32> = BTreeMap::new();
    let mut lost: BTreeMap<&str, u32> = BTreeMap::new();
    for frame in &series.frames {
        if frame.is_lost {
            *lost.entry(&frame.to).or_default() += 1;
        } else if frame.kind == "data" {
            let ends =
                if frame.from < frame.to { (&frame.from, &frame.to) } else { (&frame.to, &frame.from) };
            *data.entry((ends.0, ends.1)).or_default() += 1;
        }
    }
    for wire in series.whose("wire") {
        if let Some((a, b)) = wire.split_once('>') {
            link(&mut svg, places, (a, b), "wire", 1.5);
        }
    }
    let most = data.values().copied().max().unwrap_or(1);
    for (ends, count) in &data {
        link(&mut svg, places, *ends, "link", 1.0 + 7.0 * f64::from(*count) / f64::from(most));
    }
    for (node, (x, y)) in &places.at {
        if let Some(count) = lost.get(node.as_str()) {
            let radius = 8.0 + f64::from(*count).sqrt();
            let _ = write!(
                svg,
                "<circle class=\"lost\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius:.1}\">\
                 <title>{count} lost</title></circle>"
            );
        }
        // Names of close neighbours touch: every second one stands above.
        let is_odd = node.bytes().last().is_some_and(|digit| digit % 2 == 1);
        // The discs of a run that is played have room above the names of a wide map.
        let under = match (places.is_wide(), is_odd && places.at.len() > 12) {
            (true, _) => 34,
            (false, true) => -10,
            (false, false) => 19,
        };
        let _ = write!(
            svg,
            "<g class=\"at\" transform=\"translate({x:.1} {y:.1})\"><circle class=\"node\" r=\"5\"/>\
             <text text-anchor=\"middle\" y=\"{under}\">{}</text></g>",
            escape(node)
        );
    }
    svg + "<g class=\"air\"></g></svg>"
}

/// The places, and the frames that each node sent and lost in the stretches, for readers who take them away.
pub(super) fn numbers(places: &NodePlaces, series: &Series) -> String {
    let mut text = String::new();
    let mut counts: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for frame in &series.frames {
        counts.entry(&frame.from).or_default().0 += 1;
        counts.entry(&frame.to).or_default().1 += usize::from(frame.is_lost);
    }
    for node in places.at.keys() {
        let (sent, lost) = counts.get(node.as_str()).copied().unwrap_or_default();
        let _ = writeln!(text, "node||{sent}|{lost}|{}: frames sent, frames lost to others", escape(node));
    }
    format!("data-numbers=\"{text}\"")
}

pub(in super::super) fn link(
    svg: &mut String,
    places: &NodePlaces,
    (a, b): (&str, &str),
    class: &str,
    width: f64,
) {
    let (Some(from), Some(to)) = (places.at.get(a), places.at.get(b)) else { return };
    let _ = write!(
        svg,
        "<line class=\"{class}\" stroke-width=\"{width:.1}\" x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\"/>",
        from.0, from.1, to.0, to.1
    );
}

/// The input of the script for each point: the end of the run's steps, and the stretches. For each arm it holds the
/// nodes' places in the picture and their counts step by step. A frame has its time, its length, from, to (-1: to all),
/// kind, lost. Times are in microseconds.
pub(in super::super) fn data(view: &View<'_>) -> String {
    let points = if view.is_large() { Vec::new() } else { view.points_over_time().0 };
    let each = points.into_iter().map(|point| {
        let runs = view.over_time(point);
        let end_s = runs.iter().map(|(_, _, series)| end(series)).fold(0.0, f64::max);
        let stretches = runs.iter().map(|(_, _, series)| stretches(series)).max_by_key(Vec::len);
        let arms: Vec<Value> = runs.iter().map(|(_, _, series)| arm(series, end_s)).collect();
        json!({ "end_us": micros(end_s), "stretches": stretches, "arms": arms })
    });
    // The data must not end the script that holds it.
    Value::from(each.collect::<Vec<_>>()).to_string().replace('<', "\\u003c")
}

/// The run's end; 0 without counts, as from older versions: the whole run can then not be played.
fn end(series: &Series) -> f64 {
    if series.whose("frames_sent").is_empty() { 0.0 } else { time::end(series) }
}

/// The beginnings and ends of the stretches whose frames were kept.
fn stretches(series: &Series) -> Vec<[i64; 2]> {
    let stretches = series.line("stretch", "all").iter();
    let stretches: Vec<_> =
        stretches.map(|(at, lasts_us)| [micros(*at), micros(*at) + truncate::to_i64(*lasts_us)]).collect();
    if !stretches.is_empty() {
        return stretches;
    }
    // Trials of older versions have one stretch, without a row of its own.
    let at = || series.frames.iter().map(|frame| micros(frame.at_s));
    at().min().zip(at().max()).map(|(from, to)| [from, to]).into_iter().collect()
}

fn arm(series: &Series, end_s: f64) -> Value {
    let places = NodePlaces::of_map(series);
    let numbers: BTreeMap<&str, i64> = places.at.keys().map(String::as_str).zip(0..).collect();
    let number = |name: &str| numbers.get(name).copied().unwrap_or(-1);
    let kinds = ["rts", "cts", "data", "ack"];
    let frames = series.frames.iter().map(|frame| {
        let kind = kinds.iter().position(|kind| *kind == frame.kind).unwrap_or(0);
        json!([
            micros(frame.at_s),
            truncate::to_i64(frame.lasts_us),
            number(&frame.from),
            number(&frame.to),
            kind,
            i32::from(frame.is_lost)
        ])
    });
    let nodes = places.at.iter().map(|(name, (x, y))| {
        let mut node = json!({ "at": [x.round(), y.round()] });
        if end_s > 0.0 {
            let by_step = |what: &str| steps(end_s, |at| series.at(what, name, at).unwrap_or(0.0));
            node["sent"] = grown(&by_step("frames_sent")).into();
            node["lost"] = grown(&by_step("frames_lost")).into();
            node["queue"] = by_step("queue_packets").into_iter().map(truncate::to_i64).collect();
        }
        if end_s > 0.0 && ["x_m", "y_m"].iter().any(|what| series.line(what, name).len() > 1) {
            node["way"] = way(series, &places, name, end_s);
        }
        node
    });
    json!({ "nodes": nodes.collect::<Vec<_>>(), "frames": frames.collect::<Vec<_>>() })
}

/// A value at the end of every step.
fn steps<T>(end_s: f64, of: impl FnMut(f64) -> T) -> Vec<T> {
    (1..=STEPS).map(|step| end_s * step as f64 / STEPS as f64).map(of).collect()
}

/// The growth of a count in every step.
fn grown(counts: &[f64]) -> Vec<i64> {
    let before = std::iter::once(&0.0).chain(counts);
    counts.iter().zip(before).map(|(count, before)| truncate::to_i64(count - before)).collect()
}

/// The place of a node at the end of every step.
fn way(series: &Series, places: &NodePlaces, name: &str, end_s: f64) -> Value {
    let metres = |what: &str, at: f64| series.at(what, name, at).unwrap_or_default();
    let at = steps(end_s, |at| places.place(metres("x_m", at), metres("y_m", at)));
    at.into_iter().map(|(x, y)| json!([x.round(), y.round()])).collect()
}

fn micros(seconds: f64) -> i64 {
    truncate::to_i64((seconds * 1e6).round())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crowd_of_nodes_or_wires_has_no_map() {
        let places = |nodes: usize, wires: usize| {
            let rows = (0..nodes).map(|nth| format!("x_m,n{nth},0,{nth}\ny_m,n{nth},0,0\n"));
            let rows = rows.chain((0..wires).map(|nth| format!("wire,n0>w{nth},0,1\n")));
            let text = rows.fold("what,who,at_s,value\n".to_owned(), |text, row| text + &row);
            let (series, _) = Series::parse_within(&text, usize::MAX).expect("a series");
            NodePlaces::of(&series, WIDTH).at.len()
        };
        assert_eq!(places(MOST_NODES, 0), MOST_NODES);
        assert_eq!(places(2, 3), 5);
        assert_eq!((places(MOST_NODES + 1, 0), places(2, MOST_NODES + 1)), (0, 0));
    }
}
