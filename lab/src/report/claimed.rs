//! The picture of a table of claims: the claimed number, and the interval of each reading.

use std::fmt::Write as _;

use super::chart::{Axis, Chart, RowName, escape};
use crate::claims::table::ClaimRow;
use crate::claims::{MeasuredClaim, Reading};
use crate::scenario::Stated;

const WIDTH: f64 = 900.0;
const ROW: f64 = 16.0;
/// Ratios beyond these ends are drawn at the ends.
const ENDS: (f64, f64) = (-100.0, 300.0);
/// A mark's half height.
const HALF: f64 = 5.0;

const STYLE: &str = "<style>text{font:11px sans-serif;fill:#222}.group{font-weight:bold}.grid{stroke:#ddd}\
    .zero,.undecided{stroke:#888;fill:#888}.claimed{stroke:#000;stroke-width:3}.reproduced{stroke:#1a7f37;fill:#1a7f37}\
    .not-reproduced{stroke:#9a6700;fill:#9a6700}.contradicted{stroke:#cf222e;fill:#cf222e}</style>";

/// A picture of the rows under their papers' own rules: all ratios, and absolute values as a share of the printed one.
/// Empty if there is none.
pub fn picture(rows: &[ClaimRow]) -> String {
    let drawn: Vec<(&ClaimRow, &Reading)> = rows.iter().flat_map(drawn_readings).collect();
    if drawn.is_empty() {
        return String::new();
    }
    let heads: Vec<String> = drawn.iter().map(|(row, _)| format!("{}: {}", row.figure, row.says)).collect();
    let own: Vec<String> = drawn.iter().map(|(_, reading)| own_name(reading)).collect();
    let name = |nth: usize| RowName { group: &heads[nth], own: &own[nth], class: "" };
    let names: Vec<_> = (0..drawn.len()).map(name).collect();
    let percents = drawn.iter().flat_map(|(row, reading)| {
        let MeasuredClaim { number, ci95, .. } = reading.judged.measured;
        let ends = ci95.or(number.map(|number| [number; 2])).unwrap_or([1.0; 2]);
        let [low, high] = ends.map(|end| percent(row, end));
        [low, high, claimed(row)]
    });
    let (least, most) = percents.fold((0.0_f64, 0.0_f64), |(least, most), x| (least.min(x), most.max(x)));
    let room = (most - least) * 0.04;
    let axis = Axis { label: "change in % (black: as claimed)", low: least - room, high: most + room };
    let (mut chart, middles) = Chart::rows(WIDTH, ROW, &names, axis);
    chart.upright(0.0, "zero");
    for ((row, reading), middle) in drawn.iter().zip(middles) {
        draw(&mut chart, row, reading, middle);
    }
    let svg = chart.finish("Claimed and measured changes, by claim and reading");
    svg.replacen('>', &format!(" xmlns=\"http://www.w3.org/2000/svg\">{STYLE}"), 1)
}

/// The readings of a row's first rules that have a number, if the row states one.
fn drawn_readings(row: &ClaimRow) -> Vec<(&ClaimRow, &Reading)> {
    let is_drawn = !matches!(row.stated, None | Some(Stated::Value(0.0)));
    let readings = row.results.iter().take(1).flat_map(|under| &under.readings);
    let drawn = readings.filter(|reading| is_drawn && reading.judged.measured.number.is_some());
    drawn.map(|reading| (row, reading)).collect()
}

/// The name of a reading in pictures.
pub(super) fn own_name(reading: &Reading) -> String {
    if reading.choices.is_empty() { "as the file has it".to_owned() } else { reading.name() }
}

/// A number of a row's kind as a change in percent: of the other arm, or of the printed value.
fn percent(row: &ClaimRow, number: f64) -> f64 {
    let ratio = if let Some(Stated::Value(stated)) = row.stated { number / stated } else { number };
    // A ratio that is claimed beyond an end has the end behind it.
    let beyond = if let Some(Stated::Ratio(stated)) = row.stated { (stated - 1.0) * 150.0 } else { 0.0 };
    ((ratio - 1.0) * 100.0).clamp(ENDS.0, ENDS.1.max(beyond))
}

fn claimed(row: &ClaimRow) -> f64 {
    if let Some(Stated::Ratio(ratio)) = row.stated { percent(row, ratio) } else { 0.0 }
}

fn draw(chart: &mut Chart, row: &ClaimRow, reading: &Reading, middle: f64) {
    let (MeasuredClaim { number, ci95, .. }, outcome) = (reading.judged.measured, reading.judged.outcome);
    let class = &outcome.to_string().replace(' ', "-");
    if let Some([low, high]) = ci95 {
        chart.whisker((percent(row, low), percent(row, high)), middle, class);
    }
    if let Some(number) = number {
        let title = format!("{}: {}, {outcome}", own_name(reading), reading.measured);
        let x = chart.across(percent(row, number));
        chart.spot((x, middle), 3.0, class, &title);
    }
    let x = chart.across(claimed(row));
    let mut mark = String::new();
    let _ = write!(
        mark,
        "<line class=\"claimed\" x1=\"{x:.1}\" y1=\"{:.1}\" x2=\"{x:.1}\" y2=\"{:.1}\"><title>{}</title></line>",
        middle - HALF,
        middle + HALF,
        escape(&row.claimed)
    );
    chart.raw(&mark);
}
