//! The figures, in the order of the page.

mod air;
mod delay;
mod map;
mod ratios;
mod sweep;
mod time;
mod topology;

use std::fmt::Write as _;

use super::View;
use super::chart::escape;
use super::tables::SWATCH;
use crate::scenario::point::MatrixPoint;

pub(super) use delay::goodput_against_delay;
pub(super) use map::{NodePlaces, WIDTH as MAP_WIDTH, data as map_data, link as map_link};
pub(super) use sweep::all as sweep;
pub(super) use topology::figure_of as topology;

/// The figures of the whole trial.
pub(super) fn overall(view: &View<'_>) -> String {
    [
        ratios::ratios(view),
        ratios::goodputs(view),
        ratios::acks(view),
        ratios::completions(view),
        air::times(view),
        air::loads(view),
    ]
    .concat()
}

/// The begin of a box of that many panels of a kind. Rows of panels are equally long, as far as that is possible.
fn panels(kind: &str, count: usize) -> String {
    const MOST_IN_A_ROW: usize = 4;
    let rows = count.div_ceil(MOST_IN_A_ROW).max(1);
    format!("<div class=\"panels{kind}\" style=\"--row:{}\">", count.div_ceil(rows).max(1))
}

/// A panel of an arm, under its name in its colour.
fn panel(view: &View<'_>, arm: &str, body: &str) -> String {
    format!("<div class=\"panel {}\"><h4>{SWATCH}{}</h4>{body}</div>", view.class(arm), escape(arm))
}

/// An entry of a legend: the class of its swatch, and its label.
fn key((class, label): (&str, &str)) -> String {
    format!("<span class=\"key\"><i class=\"swatch {class}\"></i>{label}</span>")
}

/// A node at its place, with its name below.
pub(super) fn node(svg: &mut String, (x, y): (f64, f64), name: &str) {
    let _ = write!(
        svg,
        "<circle class=\"node\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"5\"/>\
         <text text-anchor=\"middle\" x=\"{x:.1}\" y=\"{:.1}\">{}</text>",
        y + 19.0,
        escape(name)
    );
}

/// Charts of the points of a matrix: side by side where there are several.
fn side_by_side(charts: &[String]) -> String {
    if charts.len() < 2 {
        charts.concat()
    } else {
        format!("{}{}</div>", panels("", charts.len()), charts.concat())
    }
}

/// Rows of a chart in parts of whole points. On paper a chart cannot part, so none is higher than half of a page unless
/// one point is.
fn parts<T>(rows: &[T], point: impl Fn(&T) -> &MatrixPoint) -> Vec<&[T]> {
    const MOST_ROWS: usize = 18;
    let points: Vec<&[T]> = rows.chunk_by(|one, next| point(one) == point(next)).collect();
    // The head of a point is a row, too.
    let highest = points.iter().map(|rows| rows.len() + 1).max().unwrap_or(1);
    let count = points.len().div_ceil((MOST_ROWS / highest).max(1)).max(1);
    let (mut parts, mut rest) = (Vec::new(), rows);
    for some in points.chunks(points.len().div_ceil(count).max(1)) {
        let (part, others) = rest.split_at(some.iter().map(|rows| rows.len()).sum());
        parts.push(part);
        rest = others;
    }
    parts
}

/// The charts of such parts, two in a row.
fn two_in_a_row(charts: &[String]) -> String {
    if charts.len() < 2 {
        return charts.concat();
    }
    let each: String = charts.iter().map(|chart| format!("<div>{chart}</div>")).collect();
    format!("<div class=\"panels parts\" style=\"--row:2\">{each}</div>")
}

/// The figures of single runs over time.
pub(super) fn runs(view: &View<'_>) -> String {
    let (points, _) = view.points_over_time();
    let count = points.len();
    let of = |(nth, point)| time::point(view, point, nth, nth + 1 == count && !view.is_large());
    points.into_iter().enumerate().map(of).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rows_part_between_points_and_evenly() {
        let points: Vec<MatrixPoint> =
            (0..7).map(|nth| MatrixPoint::from([("hops".to_owned(), json!(nth))])).collect();
        let sizes = |points: &[MatrixPoint], arms: usize| {
            let rows: Vec<_> = points.iter().flat_map(|point| vec![point; arms]).collect();
            parts(&rows, |row| row).iter().map(|part| part.len()).collect::<Vec<_>>()
        };
        assert_eq!(sizes(&points[..1], 60), [60], "a point stays whole");
        assert_eq!(sizes(&points[..3], 5), [15]);
        assert_eq!(sizes(&points[..4], 5), [10, 10]);
        assert_eq!(sizes(&points, 5), [15, 15, 5]);
        assert_eq!(sizes(&points[..2], 16), [16, 16]);
        assert_eq!(sizes(&[], 5), [0; 0]);
    }
}
