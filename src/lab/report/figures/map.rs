//! Where the nodes are, and the last frames of the run on the air; a script lets them play, slowly.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Value, json};

use super::super::chart::escape;
use super::super::{Series, View, figure};
use crate::lab::record::Record;

const WIDTH: f64 = 300.0;
const ROOM: f64 = 28.0;
/// A map is at least and at most so high.
const HEIGHTS: (f64, f64) = (110.0, 340.0);

type Runs<'a> = [(&'a str, &'a Record, &'a Series)];

/// The nodes' places in the picture, which are the same in every arm's.
struct Places {
    height: f64,
    at: BTreeMap<String, (f64, f64)>,
}

impl Places {
    fn of(series: &Series) -> Places {
        let mut metres: Vec<(String, f64, f64)> = Vec::new();
        for node in series.whose("x_m") {
            let (Some(x), Some(y)) = (series.last("x_m", node), series.last("y_m", node)) else { continue };
            metres.push((node.to_owned(), x, y));
        }
        place_wired(series, &mut metres);
        let span = |of: fn(&(String, f64, f64)) -> f64| {
            let low = metres.iter().map(of).fold(f64::INFINITY, f64::min);
            let high = metres.iter().map(of).fold(f64::NEG_INFINITY, f64::max);
            (low, (high - low).max(1.0))
        };
        let ((left, wide), (top, high)) = (span(|node| node.1), span(|node| node.2));
        let scale = ((WIDTH - 2.0 * ROOM) / wide).min((HEIGHTS.1 - 2.0 * ROOM) / high);
        let height = (high * scale + 2.0 * ROOM).max(HEIGHTS.0);
        let (over_x, over_y) = ((WIDTH - wide * scale) / 2.0, (height - high * scale) / 2.0);
        let place = |(node, x, y): (String, f64, f64)| {
            // North is up.
            (node, (over_x + (x - left) * scale, height - over_y - (y - top) * scale))
        };
        Places { height, at: metres.into_iter().map(place).collect() }
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

/// A map for each arm, with lines as wide as data frames were many.
pub(super) fn figure_of(view: &View<'_>, runs: &Runs<'_>, nth: usize) -> String {
    if runs.iter().all(|(_, _, series)| series.frames.is_empty()) {
        return String::new();
    }
    let mut html = format!(
        "<div class=\"player\" data-point=\"{nth}\" hidden><button type=\"button\">play</button>\
         <input type=\"range\" min=\"0\" max=\"1000\" value=\"0\" aria-label=\"time\"><output>0 ms</output></div>\
         <div class=\"panels\">"
    );
    for (arm, _, series) in runs {
        let class = view.class(arm);
        let _ = write!(
            html,
            "<div class=\"panel {class}\"><h4>{}{}</h4>{}</div>",
            super::super::tables::SWATCH,
            escape(arm),
            still(series)
        );
    }
    html.push_str("</div>");
    let key = |(kind, told)| format!("<span class=\"key\"><i class=\"swatch f-{kind}\"></i>{told}</span>");
    let kinds = [("rts", "RTS"), ("cts", "CTS"), ("data", "data"), ("ack", "MAC ACK"), ("lost", "collision")];
    let _ = write!(html, "<div class=\"legend\">{}</div>", kinds.map(key).concat());
    let reading = "The last half second of the first run: grey lines are as wide as data frames were many, and red \
                   rings count frames lost to others at their addressee. The button sends every frame again, slowly.";
    figure(&format!("fig-map-{nth}"), "The air at the end", &html, reading)
}

fn still(series: &Series) -> String {
    let places = Places::of(series);
    let mut svg = format!(
        "<svg class=\"map\" viewBox=\"0 0 {WIDTH} {:.0}\" role=\"img\" aria-label=\"map of the nodes\">",
        places.height
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
            link(&mut svg, &places, (a, b), "wire", 1.5);
        }
    }
    let most = data.values().copied().max().unwrap_or(1);
    for (ends, count) in &data {
        link(&mut svg, &places, *ends, "link", 1.0 + 7.0 * f64::from(*count) / f64::from(most));
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
        let _ = write!(svg, "<circle class=\"node\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"5\"/>");
        // Beside each other, names of neighbours touch: every second one stands above.
        let is_odd = node.bytes().last().is_some_and(|digit| digit % 2 == 1);
        let under = if is_odd && places.at.len() > 12 { y - 10.0 } else { y + 19.0 };
        let _ =
            write!(svg, "<text text-anchor=\"middle\" x=\"{x:.1}\" y=\"{under:.1}\">{}</text>", escape(node));
    }
    svg + "<g class=\"air\"></g></svg>"
}

fn link(svg: &mut String, places: &Places, (a, b): (&str, &str), class: &str, width: f64) {
    let (Some(from), Some(to)) = (places.at.get(a), places.at.get(b)) else { return };
    let _ = write!(
        svg,
        "<line class=\"{class}\" stroke-width=\"{width:.1}\" x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\"/>",
        from.0, from.1, to.0, to.1
    );
}

/// What the script plays: for each point and arm the nodes' places in the picture and the frames, in microseconds from
/// the first one on: when, how long, from, to (-1: to all), kind, lost.
pub(in super::super) fn data(view: &View<'_>) -> String {
    let points = view.points_shown();
    let each = points.into_iter().map(|point| {
        let runs = view.shown(point);
        let frames = || runs.iter().flat_map(|(_, _, series)| &series.frames);
        let first = frames().map(|frame| frame.at_s).fold(f64::INFINITY, f64::min);
        let last = frames().map(|frame| frame.at_s).fold(0.0, f64::max);
        let arms: Vec<Value> = runs.iter().map(|(_, _, series)| arm(series, first)).collect();
        json!({ "span_us": micros((last - first).max(0.0)), "arms": arms })
    });
    // Nothing in it may end the script that holds it.
    Value::from(each.collect::<Vec<_>>()).to_string().replace('<', "\\u003c")
}

fn arm(series: &Series, first: f64) -> Value {
    let places = Places::of(series);
    let names: Vec<&String> = places.at.keys().collect();
    let number = |name: &str| names.iter().position(|known| *known == name).map_or(-1, |nth| nth as i64);
    let kinds = ["rts", "cts", "data", "ack"];
    let frames = series.frames.iter().map(|frame| {
        let kind = kinds.iter().position(|kind| *kind == frame.kind).unwrap_or(0);
        json!([
            micros(frame.at_s - first),
            frame.lasts_us as i64,
            number(&frame.from),
            number(&frame.to),
            kind,
            i32::from(frame.is_lost)
        ])
    });
    let at = places.at.values().map(|(x, y)| json!([x.round(), y.round()]));
    json!({ "nodes": at.collect::<Vec<_>>(), "frames": frames.collect::<Vec<_>>() })
}

fn micros(seconds: f64) -> i64 {
    (seconds * 1e6).round() as i64
}
