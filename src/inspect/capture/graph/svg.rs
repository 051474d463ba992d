//! The graph as an SVG. By hand, as the charts of reports: each shape has its own title for the pointer.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use hopwise_lab::plain;
use hopwise_lab::report::escape;

use super::points::{Ack, Data, Points};

const WIDTH: f64 = 1_200.0;
const HEIGHT: f64 = 700.0;
const LEFT: f64 = 90.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 50.0;
const LEGEND_ROW: f64 = 18.0;
const TICKS: u32 = 8;
/// Colours that most people tell apart (Okabe and Ito); rules beyond share the last.
const COLOURS: [&str; 7] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#444444"];
/// A page has classes of its own, beside which the graph stands.
const STYLE: &str = "\
.sequence{max-width:none}.sequence text{font:12px sans-serif;fill:#222}.sequence .data{stroke:#777;stroke-width:1.5}\
.sequence .again{stroke:#c00;stroke-width:2}.sequence .ack{fill:none;stroke:#999}\
.sequence .window{fill:none;stroke:#bb9;stroke-dasharray:4 3}.sequence .sack{stroke:#849;stroke-width:2}\
.sequence .axis{stroke:#222}.sequence .grid{stroke:#ddd}";

/// The places of times and bytes.
struct Scale {
    from: (f64, f64),
    to: (f64, f64),
}

impl Scale {
    fn of(points: &Points) -> Scale {
        let ((first, low), (last, high)) = (points.begins(), points.ends());
        let (low, high) = (to_f64(low), to_f64(high));
        let (first, last) = (first.as_secs_f64(), last.as_secs_f64());
        // A point alone has a width as well.
        Scale { from: (first, low), to: (last.max(first + 1e-6), high.max(low + 1.0)) }
    }

    fn x(&self, at: Duration) -> f64 {
        self.across(at.as_secs_f64())
    }

    fn across(&self, seconds: f64) -> f64 {
        LEFT + (seconds - self.from.0) / (self.to.0 - self.from.0) * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, byte: u64) -> f64 {
        self.up(to_f64(byte))
    }

    fn up(&self, bytes: f64) -> f64 {
        HEIGHT - BOTTOM - (bytes - self.from.1) / (self.to.1 - self.from.1) * (HEIGHT - TOP - BOTTOM)
    }
}

#[expect(clippy::cast_precision_loss, reason = "a place in a picture")]
fn to_f64(bytes: u64) -> f64 {
    bytes as f64
}

/// The whole file.
pub(super) fn text(points: &Points) -> String {
    let (scale, colours) = (Scale::of(points), colours(points));
    let rows = colours.len() + usize::from(colours.is_empty());
    let height = HEIGHT + LEGEND_ROW * to_f64(u64::try_from(rows).unwrap_or(0));
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"sequence\" viewBox=\"0 0 {WIDTH} {height}\" \
         role=\"img\" aria-label=\"time-sequence graph\">\n\
         <style>{STYLE}</style>\n<rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#fff\"/>\n"
    );
    axes(&mut text, points, &scale);
    steps(&mut text, points, &scale);
    points.data.iter().for_each(|one| data(&mut text, one, &scale));
    points.acks.iter().for_each(|ack| mark(&mut text, ack, &scale, &colours));
    legend(&mut text, points, &colours);
    text.push_str("</svg>\n");
    text
}

fn put(text: &mut String, line: std::fmt::Arguments<'_>) {
    // Writing to a String does not fail.
    let _ = text.write_fmt(line);
    text.push('\n');
}

/// Comments are others' to choose.
fn safe(words: &str) -> String {
    escape(&plain::line(words))
}

/// A colour for each rule, by how often it decided.
fn colours(points: &Points) -> BTreeMap<&str, (&'static str, usize)> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for reason in points.acks.iter().filter_map(|ack| ack.reason.as_ref()) {
        *counts.entry(&reason.rule).or_default() += 1;
    }
    let mut rules: Vec<_> = counts.into_iter().collect();
    rules.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let colour = |nth: usize| COLOURS[nth.min(COLOURS.len() - 1)];
    rules.into_iter().enumerate().map(|(nth, (rule, count))| (rule, (colour(nth), count))).collect()
}

fn axes(text: &mut String, points: &Points, scale: &Scale) {
    let ((from, to), (right, low)) = (points.flow, (WIDTH - RIGHT, HEIGHT - BOTTOM));
    let title = safe(&format!("{from} to {to}, seen at {}", points.interface));
    put(text, format_args!("<text x=\"{LEFT}\" y=\"18\">{title}</text>"));
    for nth in 0..=TICKS {
        let share = f64::from(nth) / f64::from(TICKS);
        let seconds = scale.from.0 + share * (scale.to.0 - scale.from.0);
        let bytes = scale.from.1 + share * (scale.to.1 - scale.from.1);
        let (x, y) = (scale.across(seconds), scale.up(bytes));
        put(text, format_args!("<path class=\"grid\" d=\"M{x:.1} {TOP}V{low}M{LEFT} {y:.1}H{right}\"/>"));
        let at = low + 16.0;
        put(text, format_args!("<text x=\"{x:.1}\" y=\"{at}\" text-anchor=\"middle\">{seconds:.4}</text>"));
        let at = LEFT - 6.0;
        put(text, format_args!("<text x=\"{at}\" y=\"{y:.1}\" text-anchor=\"end\">{bytes:.0}</text>"));
    }
    put(text, format_args!("<path class=\"axis\" fill=\"none\" d=\"M{LEFT} {TOP}V{low}H{right}\"/>"));
    let (middle, at) = (f64::midpoint(LEFT, right), low + 36.0);
    put(
        text,
        format_args!("<text x=\"{middle}\" y=\"{at}\" text-anchor=\"middle\">seconds; bytes upwards</text>"),
    );
}

/// The stairs of ACKs, and those of the window.
fn steps(text: &mut String, points: &Points, scale: &Scale) {
    let stairs = |of: &dyn Fn(&Ack) -> Option<u64>| {
        let mut path = String::new();
        for (ack, byte) in points.acks.iter().filter_map(|ack| Some((ack, of(ack)?))) {
            let (x, y) = (scale.x(ack.at), scale.y(byte));
            let _ =
                if path.is_empty() { write!(path, "M{x:.1} {y:.1}") } else { write!(path, "H{x:.1}V{y:.1}") };
        }
        path
    };
    for (class, path) in [("ack", stairs(&|ack| Some(ack.to))), ("window", stairs(&|ack| ack.window))] {
        if !path.is_empty() {
            put(text, format_args!("<path class=\"{class}\" d=\"{path}\"/>"));
        }
    }
}

fn data(text: &mut String, data: &Data, scale: &Scale) {
    let class = if data.is_again { "again" } else { "data" };
    let (x, low, high) = (scale.x(data.at), scale.y(data.from), scale.y(data.to));
    let said = data.said.as_deref().map_or(String::new(), |said| format!(": {}", safe(said)));
    let Data { frame, from, to, .. } = data;
    put(
        text,
        format_args!(
            "<path class=\"{class}\" d=\"M{x:.1} {low:.1}V{high:.1}\"><title>frame {frame}, bytes {from} to \
             {}{said}</title></path>",
            to - 1
        ),
    );
}

fn mark(text: &mut String, ack: &Ack, scale: &Scale, colours: &BTreeMap<&str, (&'static str, usize)>) {
    let (x, y) = (scale.x(ack.at), scale.y(ack.to));
    for (left, right) in &ack.sacks {
        let (low, high) = (scale.y(*left), scale.y(*right));
        put(text, format_args!("<path class=\"sack\" d=\"M{x:.1} {low:.1}V{high:.1}\"/>"));
    }
    let of_rule = ack.reason.as_ref().and_then(|reason| colours.get(reason.rule.as_str()));
    let colour = of_rule.map_or("#999", |(colour, _)| *colour);
    let said = match &ack.reason {
        Some(reason) => safe(&reason.said),
        None => format!("ACK up to {}; no reason is recorded", ack.to),
    };
    let frame = ack.frame;
    put(
        text,
        format_args!(
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\"><title>frame {frame}: \
             {said}</title></circle>"
        ),
    );
}

fn legend(text: &mut String, points: &Points, colours: &BTreeMap<&str, (&'static str, usize)>) {
    let mut rules: Vec<_> = colours.iter().collect();
    rules.sort_by_key(|(_, (_, count))| std::cmp::Reverse(*count));
    let mut y = HEIGHT;
    for (rule, (colour, count)) in rules {
        let (x, at) = (LEFT + 10.0, y - 4.0);
        put(text, format_args!("<circle cx=\"{LEFT}\" cy=\"{at}\" r=\"4\" fill=\"{colour}\"/>"));
        put(text, format_args!("<text x=\"{x}\" y=\"{y}\">{count} ACKs: {}</text>", safe(rule)));
        y += LEGEND_ROW;
    }
    if colours.is_empty() {
        let count = points.acks.len();
        put(text, format_args!("<text x=\"{LEFT}\" y=\"{y}\">{count} ACKs without a recorded reason</text>"));
    }
}
