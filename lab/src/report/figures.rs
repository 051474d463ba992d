//! The figures, in the order of the page.

mod air;
mod delay;
mod map;
mod ratios;
mod sweep;
mod time;
mod topology;

use super::View;

pub(super) use map::{Places, WIDTH as MAP_WIDTH, data as map_data, link as map_link};
pub(super) use topology::figure_of as topology;

/// The figures of the whole trial.
pub(super) fn overall(view: &View<'_>) -> String {
    [
        ratios::ratios(view),
        ratios::goodputs(view),
        sweep::all(view),
        ratios::acks(view),
        delay::goodput_against_delay(view),
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

/// Charts of the points of a matrix: side by side where there are several.
fn side_by_side(charts: &[String]) -> String {
    if charts.len() < 2 {
        charts.concat()
    } else {
        format!("{}{}</div>", panels("", charts.len()), charts.concat())
    }
}

/// The figures of single runs over time.
pub(super) fn runs(view: &View<'_>) -> String {
    let (points, _) = view.points_over_time();
    let count = points.len();
    let of = |(nth, point)| time::point(view, point, nth, nth + 1 == count);
    points.into_iter().enumerate().map(of).collect()
}
