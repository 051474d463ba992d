//! The picture of claims that rest on something: the measured change over what each rests on.

use std::fmt::Write as _;

use super::chart::{Axis, Chart, ShapeNumbers, escape};
use super::claimed::own_name;
use crate::claims::Reading;
use crate::claims::table::ClaimRow;
use crate::plain::cut;
use crate::scenario::Stated;

const SIZE: (f64, f64) = (720.0, 420.0);
/// The place of the first claim's name, and the height of each.
const NAMES: (f64, f64) = (60.0, 22.0);
const NAME: f64 = 15.0;
/// The most letters of a claim's name.
const LONGEST: usize = 100;

const STYLE: &str = "<style>text{font:11px sans-serif;fill:#222}.grid{stroke:#ddd}.zero{stroke:#888}\
    path{fill:none}.c0{stroke:#0969da;fill:#0969da}.c1{stroke:#bc4c00;fill:#bc4c00}\
    .c2{stroke:#1a7f37;fill:#1a7f37}.c3{stroke:#8250df;fill:#8250df}path.c0,path.c1,path.c2,path.c3{fill:none}\
    text.c0,text.c1,text.c2,text.c3{stroke:none}</style>";
/// Colours of claims, which begin anew after the last one.
const COLOURS: usize = 4;

/// A change of a claim under one reading and one set of rules, in percent, and the place over which it stands.
struct Dot<'a> {
    row: usize,
    rules: &'a str,
    reading: &'a Reading,
    over: f64,
    change: f64,
}

/// A picture of the rows that rest on something, under all rules. Empty if there is none.
pub fn picture(rows: &[ClaimRow]) -> String {
    let resting: Vec<&ClaimRow> = rows.iter().filter(|row| is_drawn(row)).collect();
    let dots: Vec<Dot<'_>> = resting.iter().enumerate().flat_map(|(nth, row)| dots(nth, row)).collect();
    let Some(on) = resting.first().and_then(|row| row.premise.as_deref()).filter(|_| !dots.is_empty()) else {
        return String::new();
    };
    let claimed = resting.iter().filter_map(|row| claimed(row));
    let ends = dots.iter().flat_map(|dot| ends(dot.reading).into_iter().chain([dot.change]));
    let (low, high) =
        ends.chain(claimed).fold((0.0_f64, 0.0_f64), |(low, high), y| (low.min(y), high.max(y)));
    // The names have room above all dots.
    let room = (high - low).max(1.0) * (0.06 + 0.05 * resting.len() as f64);
    let y =
        Axis { label: "change in % (dashes: as claimed)", low: low - (high - low) * 0.06, high: high + room };
    let mut chart = Chart::new(SIZE, Axis::to_most(on, dots.iter().map(|dot| dot.over)), y);
    let right = dots.iter().fold(0.0_f64, |most, dot| most.max(dot.over));
    chart.line(&[(0.0, 0.0), (right, 0.0)], "zero");
    for (nth, row) in resting.iter().enumerate() {
        name(&mut chart, nth, row, right);
    }
    dots.iter().for_each(|dot| draw(&mut chart, dot));
    let svg = chart.finish("Measured changes over what the claims rest on");
    svg.replacen('>', &format!(" xmlns=\"http://www.w3.org/2000/svg\">{STYLE}"), 1)
}

fn is_drawn(row: &ClaimRow) -> bool {
    row.premise.is_some() && matches!(row.stated, Some(Stated::Ratio(_)))
}

fn dots(row: usize, of: &ClaimRow) -> impl Iterator<Item = Dot<'_>> {
    let readings = of.results.iter().flat_map(|under| under.readings.iter().map(move |of| (under.rules, of)));
    readings.filter_map(move |(rules, reading)| {
        let change = percent(reading.judged.measured.number?);
        Some(Dot { row, rules, reading, over: reading.premise?, change })
    })
}

fn percent(ratio: f64) -> f64 {
    (ratio - 1.0) * 100.0
}

fn ends(reading: &Reading) -> Vec<f64> {
    reading.judged.measured.ci95.map_or_else(Vec::new, |ends| ends.map(percent).to_vec())
}

fn claimed(row: &ClaimRow) -> Option<f64> {
    if let Some(Stated::Ratio(ratio)) = row.stated { Some(percent(ratio)) } else { None }
}

fn class(nth: usize) -> String {
    format!("c{}", nth % COLOURS)
}

/// A claim's words in its colour, and a line of dashes at what it states.
fn name(chart: &mut Chart, nth: usize, row: &ClaimRow, right: f64) {
    let (x, y) = (NAMES.0, NAMES.1 + NAME * nth as f64);
    let (class, text) = (class(nth), escape(&cut(&format!("{}: {}", row.figure, row.says), LONGEST)));
    let mut drawn = String::new();
    let _ = write!(drawn, "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\">{text}</text>");
    if let Some(at) = claimed(row) {
        let ((left, y), (right, _)) = (chart.at((0.0, at)), chart.at((right, at)));
        let _ = write!(
            drawn,
            "<line class=\"{class}\" stroke-dasharray=\"4 4\" x1=\"{left:.1}\" y1=\"{y:.1}\" x2=\"{right:.1}\" \
             y2=\"{y:.1}\"/>"
        );
    }
    chart.raw(&drawn);
}

fn draw(chart: &mut Chart, dot: &Dot<'_>) {
    let (class, at) = (class(dot.row), (dot.over, dot.change));
    if let [low, high] = ends(dot.reading)[..] {
        chart.line(&[(dot.over, low), (dot.over, high)], &class);
    }
    let title = format!("{}, {}: {}", dot.rules, own_name(dot.reading), dot.reading.measured);
    chart.dot(&ShapeNumbers { title: &title, ..ShapeNumbers::at("dot", &class, at) }, 3.5);
}
