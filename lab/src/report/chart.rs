//! Charts as SVG text. The caller fixes the scales: charts of several arms lie over each other.
//!
//! By hand: crates for charts bring fonts and renderers, and none keeps two themes and a printed page in one file.

mod axis;
mod names;
mod numbers;

use std::fmt::Write as _;

pub(super) use axis::Axis;
use axis::AxisScale;
pub(super) use names::SHAPES;
use numbers::Numbers;
pub(super) use numbers::ShapeNumbers;

/// Room for labels: left, right, top, bottom.
const LEFT: f64 = 46.0;
const RIGHT: f64 = 10.0;
const TOP: f64 = 8.0;
const BOTTOM: f64 = 34.0;

/// The width of a character in a row's name; few are wider.
const CHARACTER: f64 = 6.2;

/// A shorter bar would have no width in a tenth of a unit.
const SHORTEST_BAR: f64 = 0.05;

/// The most letters of a name right of a line.
const LONGEST_NAME: usize = 18;

/// The name of a row, and its group's name; empty where it stands alone.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowName<'a> {
    pub(super) group: &'a str,
    pub(super) own: &'a str,
    /// The classes of the row's arm: its name goes with its marks when the arm is switched off.
    pub(super) class: &'a str,
}

impl<'a> RowName<'a> {
    pub(super) fn alone(own: &'a str) -> RowName<'a> {
        RowName { group: "", own, class: "" }
    }
}

#[derive(Debug)]
pub(super) struct Chart {
    width: f64,
    height: f64,
    x: AxisScale,
    pub(super) y: AxisScale,
    /// Axes with their ticks and titles: charts that lie over each other show one chart's axes.
    frame: String,
    body: String,
    /// Shapes that lie over all other shapes.
    over: String,
    pub(super) numbers: Numbers,
}

impl Chart {
    pub(super) fn new(size: (f64, f64), x: Axis<'_>, y: Axis<'_>) -> Chart {
        let mut chart = Chart::bare(size, x, y);
        chart.ticks_across(&chart.x.ticks());
        chart
    }

    fn empty((width, height): (f64, f64), (x, y): (AxisScale, AxisScale)) -> Chart {
        let [frame, body, over] = [const { String::new() }; 3];
        Chart { width, height, x, y, frame, body, over, numbers: Numbers::default() }
    }

    fn bare((width, height): (f64, f64), x: Axis<'_>, y: Axis<'_>) -> Chart {
        let across = AxisScale { low: x.low, high: x.high, from: LEFT, to: width - RIGHT };
        let up = AxisScale { low: y.low, high: y.high, from: height - BOTTOM, to: TOP };
        let mut chart = Chart::empty((width, height), (across, up));
        for tick in up.ticks() {
            let at = up.px(tick);
            chart.rule((LEFT, at), (width - RIGHT, at), "grid");
            chart.text((LEFT - 5.0, at + 3.5), "end", &number(tick));
        }
        chart.frame_of(x.label, y.label);
        chart.frame = std::mem::take(&mut chart.body);
        chart
    }

    fn ticks_across(&mut self, ticks: &[f64]) {
        for tick in ticks {
            self.text((self.x.px(*tick), self.height - BOTTOM + 14.0), "middle", &number(*tick));
        }
        self.frame.push_str(&std::mem::take(&mut self.body));
    }

    /// A chart with the given ticks, and with room for names right of its lines.
    pub(super) fn with_names<'a>(
        (width, height): (f64, f64),
        x: Axis<'_>,
        y: Axis<'_>,
        (ticks, names): (&[f64], impl Iterator<Item = &'a str>),
    ) -> Chart {
        let longest = names.map(|name| name.chars().count()).max().unwrap_or(0).min(LONGEST_NAME);
        let room = longest as f64 * CHARACTER + 8.0;
        let mut chart = Chart::bare((width - room, height), x, y);
        chart.width = width;
        chart.ticks_across(ticks);
        chart
    }

    /// Rows with names instead of a vertical axis, under the names of their groups. Returns the rows' middles.
    pub(super) fn rows(width: f64, row: f64, names: &[RowName<'_>], x: Axis<'_>) -> (Chart, Vec<f64>) {
        let longest = names.iter().map(|name| name.own.chars().count()).max().unwrap_or(0);
        let left = (longest as f64 * CHARACTER + 12.0).clamp(LEFT, width * 0.45);
        let heads = (0..names.len()).filter(|nth| begins_group(names, *nth)).count();
        let height = TOP + row * (names.len() + heads) as f64 + BOTTOM;
        let across = AxisScale { low: x.low, high: x.high, from: left, to: width - RIGHT };
        let up = AxisScale { low: 0.0, high: 1.0, from: height - BOTTOM, to: TOP };
        let mut chart = Chart::empty((width, height), (across, up));
        for tick in across.ticks() {
            let at = across.px(tick);
            chart.rule((at, TOP), (at, height - BOTTOM), "grid");
            chart.text((at, height - BOTTOM + 14.0), "middle", &number(tick));
        }
        let (mut middles, mut middle) = (Vec::new(), TOP + row / 2.0);
        for (nth, name) in names.iter().enumerate() {
            if begins_group(names, nth) {
                chart.name((2.0, middle + 4.5), ("start", "group"), name.group, width - 4.0);
                middle += row;
            }
            chart.name((left - 6.0, middle + 3.5), ("end", name.class), name.own, left - 8.0);
            middles.push(middle);
            middle += row;
        }
        chart.label_below(x.label);
        (chart, middles)
    }

    /// Draws a row's name or a group's, over other shapes. A longer name is cut, and shown in full to a user who points
    /// at it.
    fn name(&mut self, (x, y): (f64, f64), (anchor, class): (&str, &str), name: &str, room: f64) {
        let fits = hopwise_air::truncate::to_usize((room / CHARACTER).max(1.0));
        let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
        let (text, title) = if name.chars().count() <= fits {
            (escape(name), String::new())
        } else {
            let cut: String = name.chars().take(fits - 1).collect();
            (format!("{}…", escape(cut.trim_end())), format!("<title>{}</title>", escape(name)))
        };
        let _ = write!(
            self.over,
            "<text{class} text-anchor=\"{anchor}\" x=\"{x:.1}\" y=\"{y:.1}\">{title}{text}</text>"
        );
    }

    fn frame_of(&mut self, below: &str, beside: &str) {
        let (bottom, right) = (self.height - BOTTOM, self.width - RIGHT);
        self.rule((LEFT, bottom), (right, bottom), "axis");
        self.label_below(below);
        let middle = TOP.midpoint(bottom);
        let _ = write!(
            self.body,
            "<text class=\"label\" text-anchor=\"middle\" transform=\"translate(11 {middle:.1}) rotate(-90)\">{}\
             </text>",
            escape(beside)
        );
    }

    fn label_below(&mut self, label: &str) {
        let middle = self.x.from.midpoint(self.x.to);
        let _ = write!(
            self.body,
            "<text class=\"label\" text-anchor=\"middle\" x=\"{middle:.1}\" y=\"{:.1}\">{}</text>",
            self.height - 5.0,
            escape(label)
        );
    }

    fn rule(&mut self, from: (f64, f64), to: (f64, f64), class: &str) {
        let _ = write!(
            self.body,
            "<line class=\"{class}\" x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\"/>",
            from.0, from.1, to.0, to.1
        );
    }

    /// Writes a text at a place in the picture.
    pub(super) fn text(&mut self, (x, y): (f64, f64), anchor: &str, text: &str) {
        let _ = write!(
            self.body,
            "<text text-anchor=\"{anchor}\" x=\"{x:.1}\" y=\"{y:.1}\">{}</text>",
            escape(text)
        );
    }

    pub(super) fn at(&self, (x, y): (f64, f64)) -> (f64, f64) {
        (self.x.px(x), self.y.px(y))
    }

    pub(super) fn across(&self, x: f64) -> f64 {
        self.x.px(x)
    }

    fn tell_places(&mut self, shape: &str, class: &str, places: &[(f64, f64)]) {
        places.iter().for_each(|place| self.numbers.tell(&ShapeNumbers::at(shape, class, *place)));
    }

    pub(super) fn line(&mut self, points: &[(f64, f64)], class: &str) {
        self.tell_places("line", class, points);
        self.stroke(points, class);
    }

    /// Draws a line whose numbers another shape has.
    pub(super) fn stroke(&mut self, points: &[(f64, f64)], class: &str) {
        let path = path(points.iter().map(|point| self.at(*point)));
        let _ = write!(self.body, "<path class=\"{class}\" d=\"{path}\"/>");
    }

    /// A value that holds until the next one.
    pub(super) fn steps(&mut self, points: &[(f64, f64)], until: f64, class: &str) {
        let mut corners = Vec::with_capacity(points.len() * 2 + 1);
        for (nth, point) in points.iter().enumerate() {
            corners.push(*point);
            corners.push((points.get(nth + 1).map_or(until, |next| next.0), point.1));
        }
        let path = path(corners.iter().map(|point| self.at(*point)));
        let _ = write!(self.body, "<path class=\"{class}\" d=\"{path}\"/>");
        self.tell_places("step", class, points);
    }

    /// Area between two lines over one list of places.
    pub(super) fn band(&mut self, low: &[(f64, f64)], high: &[(f64, f64)], class: &str) {
        let around = low.iter().chain(high.iter().rev()).map(|point| self.at(*point));
        let path = path(around.collect::<Vec<_>>().into_iter());
        let _ = write!(self.body, "<path class=\"{class}\" d=\"{path}Z\"/>");
    }

    /// Draws a dot at its numbers, and keeps these.
    pub(super) fn dot(&mut self, told: &ShapeNumbers<'_>, radius: f64) {
        self.numbers.tell(told);
        if let (Some(x), Some(y)) = (told.x, told.y) {
            self.spot(self.at((x, y)), radius, told.class, told.title);
        }
    }

    /// Draws a dot at a place in the picture, in the shape of its class.
    pub(super) fn spot(&mut self, at: (f64, f64), radius: f64, class: &str, title: &str) {
        let title =
            if title.is_empty() { String::new() } else { format!("<title>{}</title>", escape(title)) };
        self.body.push_str(&names::mark(at, radius, class, &title));
    }

    /// Keeps the numbers of a horizontal bar, and draws it at a height in the picture if it is long enough to be seen.
    /// Its title says `whose` it is. The numbers have columns for that.
    pub(super) fn bar(
        &mut self,
        (from, to): (f64, f64),
        (top, height): (f64, f64),
        class: &str,
        (whose, title): (&str, &str),
    ) {
        let (x, x_ends) = (Some(to - from), Some([from, to]));
        self.numbers.tell(&ShapeNumbers { shape: "bar", class, x, x_ends, title, ..ShapeNumbers::default() });
        let (left, width) = (self.x.px(from), self.x.px(to) - self.x.px(from));
        if width >= SHORTEST_BAR {
            let _ = write!(
                self.body,
                "<rect class=\"{class}\" x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" \
                 height=\"{height:.1}\"><title>{}{}</title></rect>",
                escape(whose),
                escape(title)
            );
        }
    }

    /// Draws an interval, whose numbers the row of its mean has.
    pub(super) fn whisker(&mut self, (from, to): (f64, f64), middle: f64, class: &str) {
        let (left, right) = (self.x.px(from), self.x.px(to));
        self.rule((left, middle), (right, middle), class);
        for end in [left, right] {
            self.rule((end, middle - 4.0), (end, middle + 4.0), class);
        }
    }

    /// Draws a vertical line.
    pub(super) fn upright(&mut self, x: f64, class: &str) {
        let (at, top, bottom) = (self.x.px(x), self.y.to, self.y.from);
        self.rule((at, top), (at, bottom), class);
    }

    /// Adds elements that this file does not know.
    pub(super) fn raw(&mut self, svg: &str) {
        self.body.push_str(svg);
    }

    /// Ends the chart; screen readers read `what`.
    pub(super) fn finish(self, what: &str) -> String {
        format!(
            "<svg viewBox=\"0 0 {:.0} {:.0}\" role=\"img\" aria-label=\"{}\" data-numbers=\"{}\"><g class=\"frame\">{}\
             </g>{}{}</svg>",
            self.width,
            self.height,
            escape(what),
            escape(&self.numbers.text),
            self.frame,
            self.body,
            self.over
        )
    }

    /// Ends a chart that has nothing but its axes.
    pub(super) fn finish_frame(self) -> String {
        format!(
            "<svg viewBox=\"0 0 {:.0} {:.0}\" aria-hidden=\"true\">{}</svg>",
            self.width, self.height, self.frame
        )
    }
}

/// True if a row is the first of a group that has a name.
fn begins_group(names: &[RowName<'_>], nth: usize) -> bool {
    let group = names[nth].group;
    !group.is_empty() && (nth == 0 || names[nth - 1].group != group)
}

/// A path with a tenth of a unit, which is finer than any screen.
fn path(points: impl Iterator<Item = (f64, f64)>) -> String {
    let mut path = String::new();
    let mut last = String::new();
    for (x, y) in points {
        let point = format!("{x:.1} {y:.1}");
        if point != last {
            let _ = write!(path, "{}{point}", if path.is_empty() { 'M' } else { 'L' });
            last = point;
        }
    }
    path
}

/// A tick's number, with the digits that it needs.
pub(super) fn number(value: f64) -> String {
    let text = if value.abs() >= 1e4 { format!("{:.0}k", value / 1e3) } else { format!("{value:.4}") };
    if !text.contains('.') {
        return text;
    }
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.replace('-', "−") }
}

/// Escapes a text between tags or quotes. No letter of it turns what stands behind it.
pub fn escape(text: &str) -> String {
    let text = crate::plain::text(text);
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
