//! The figures, in the order of the page.

mod air;
mod delay;
mod map;
mod ratios;
mod sweep;
mod time;
mod topology;

use super::View;

pub(super) use map::data as map_data;
pub(super) use topology::figure_of as topology;

/// The figures of the whole trial.
pub(super) fn overall(view: &View<'_>) -> String {
    [
        ratios::ratios(view),
        ratios::goodputs(view),
        sweep::all(view),
        delay::goodput_against_delay(view),
        ratios::acks(view),
        air::times(view),
        air::loads(view),
    ]
    .concat()
}

/// The figures of single runs over time.
pub(super) fn runs(view: &View<'_>) -> String {
    let (points, _) = view.points_over_time();
    let count = points.len();
    let of = |(nth, point)| time::point(view, point, nth, nth + 1 == count);
    points.into_iter().enumerate().map(of).collect()
}
