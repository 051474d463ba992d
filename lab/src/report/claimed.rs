//! The picture of a table of claims: the claimed number, and the interval of each reading.

use std::fmt::Write as _;

use super::chart::{Axis, Chart, RowName, escape};
use crate::claims::ClaimOutcome;
use crate::claims::table::{ClaimRow, ReadingLine};
use crate::scenario::Stated;

const WIDTH: f64 = 900.0;
const ROW: f64 = 16.0;
/// Ratios beyond these ends are drawn at the ends.
const ENDS: (f64, f64) = (-100.0, 300.0);
/// A mark's half height.
const HALF: f64 = 5.0;

const STYLE: &str = "<style>text{font:11px sans-serif;fill:#222}.group{font-weight:bold}.grid{stroke:#ddd}\
    .zero{stroke:#888}.claimed{stroke:#000;stroke-width:3}.reproduced{stroke:#1a7f37;fill:#1a7f37}\
    .not-reproduced{stroke:#9a6700;fill:#9a6700}.contradicted{stroke:#cf222e;fill:#cf222e}</style>";

/// A picture of the rows under their papers' own rules: all ratios, and absolute values as a share of the printed one.
/// Empty if there is none.
pub fn picture(rows: &[ClaimRow]) -> String {
    let drawn: Vec<(&ClaimRow, &ReadingLine)> = rows.iter().flat_map(drawn_lines).collect();
    if drawn.is_empty() {
        return String::new();
    }
    let heads: Vec<String> = drawn.iter().map(|(row, _)| format!("{}: {}", row.figure, row.says)).collect();
    let name = |nth: usize| RowName { group: &heads[nth], own: own_name(drawn[nth].1), class: "" };
    let names: Vec<_> = (0..drawn.len()).map(name).collect();
    let percents = drawn.iter().flat_map(|(row, line)| {
        let ends = line.number.ci95.or(line.number.number.map(|number| [number; 2])).unwrap_or([1.0; 2]);
        let [low, high] = ends.map(|end| percent(row, end));
        [low, high, claimed(row)]
    });
    let (least, most) = percents.fold((0.0_f64, 0.0_f64), |(least, most), x| (least.min(x), most.max(x)));
    let room = (most - least) * 0.04;
    let axis = Axis { label: "change in % (black: as claimed)", low: least - room, high: most + room };
    let (mut chart, middles) = Chart::rows(WIDTH, ROW, &names, axis);
    chart.upright(0.0, "zero");
    for ((row, line), middle) in drawn.iter().zip(middles) {
        draw(&mut chart, row, line, middle);
    }
    let svg = chart.finish("Claimed and measured changes, by claim and reading");
    svg.replacen('>', &format!(" xmlns=\"http://www.w3.org/2000/svg\">{STYLE}"), 1)
}

/// The lines of a row's first rules that have a number, if the row states one.
fn drawn_lines(row: &ClaimRow) -> Vec<(&ClaimRow, &ReadingLine)> {
    let is_drawn = !matches!(row.stated, None | Some(Stated::Value(0.0)));
    let lines = row.results.iter().take(1).flat_map(|under| &under.lines);
    lines.filter(|line| is_drawn && line.number.number.is_some()).map(|line| (row, line)).collect()
}

fn own_name(line: &ReadingLine) -> &str {
    if line.reading.is_empty() { "as the file has it" } else { &line.reading }
}

/// A number of a row's kind as a change in percent: of the other arm, or of the printed value.
fn percent(row: &ClaimRow, number: f64) -> f64 {
    let ratio = match row.stated {
        Some(Stated::Value(stated)) => number / stated,
        _ => number,
    };
    ((ratio - 1.0) * 100.0).clamp(ENDS.0, ENDS.1)
}

fn claimed(row: &ClaimRow) -> f64 {
    match row.stated {
        Some(Stated::Ratio(ratio)) => percent(row, ratio),
        _ => 0.0,
    }
}

fn draw(chart: &mut Chart, row: &ClaimRow, line: &ReadingLine, middle: f64) {
    let class = match line.outcome {
        ClaimOutcome::Reproduced => "reproduced",
        ClaimOutcome::NotReproduced => "not-reproduced",
        ClaimOutcome::Contradicted => "contradicted",
    };
    if let Some([low, high]) = line.number.ci95 {
        chart.whisker((percent(row, low), percent(row, high)), middle, class);
    }
    if let Some(number) = line.number.number {
        let title = format!("{}: {}, {}", own_name(line), line.measured, line.outcome);
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
