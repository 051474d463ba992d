//! Airtime of the radios.

use super::super::chart::{Axis, Chart};
use super::super::{FigureRow, View, figure};
use super::ratios::WIDTH;
use super::two_in_a_row;
use crate::findings::label;

/// The names in `sim::series`, the labels for people, and their colours.
const KINDS: [(&str, &str, &str); 10] = [
    ("sends-data", "sends data", "k0"),
    ("sends-tcp-ack", "sends TCP ACKs", "k9"),
    ("sends-ack", "sends MAC ACKs", "k1"),
    ("sends-rts", "sends RTS", "k2"),
    ("sends-cts", "sends CTS", "k3"),
    ("receives", "receives", "k4"),
    ("overhears", "overhears others", "k5"),
    ("noise", "hears noise", "k6"),
    ("collision", "hears a collision", "k7"),
    ("idle", "idle", "k8"),
];

/// The loads that radios send for, and their colours.
const LOADS: [(&str, &str); 3] = [("TCP's data", "k0"), ("TCP's ACKs", "k9"), ("the rest", "k6")];

pub(super) fn times(view: &View<'_>) -> String {
    let mut rows = Vec::new();
    for point in view.points_with_series() {
        for (arm, _, series) in view.shown(point) {
            let seconds = KINDS.map(|(kind, ..)| {
                let what = format!("airtime:{kind}");
                series.whose(&what).iter().filter_map(|node| series.last(&what, node)).sum::<f64>()
            });
            if seconds.iter().sum::<f64>() > 0.0 {
                // Bars are of all arms, whichever are switched off: so are their names.
                let (group, class) = (view.group(point), String::new());
                rows.push((FigureRow { point, arm, group, class }, seconds));
            }
        }
    }
    if rows.is_empty() {
        return String::new();
    }
    let axis = Axis { label: "% of all radios' time", low: 0.0, high: 100.0 };
    let kinds = KINDS.map(|(_, label, class)| (label, class));
    let shares = rows.into_iter().map(|(row, seconds)| {
        let whole: f64 = seconds.iter().sum();
        let label = seconds.map(|s| format!("{:.1} % ({s:.1} s)", 100.0 * s / whole));
        (row, seconds.map(|s| 100.0 * s / whole), label)
    });
    let body = stacked(view, &shares.collect::<Vec<_>>(), kinds, axis, "shares of the radios' time");
    let reading = "All radios of an arm's first run together. Time that an arm saves in ACKs carries more data, so \
                   sending need not shrink. Radios that are idle more, while collisions grow, lose the time to \
                   backing off. The CSV also has kinds whose bars are too short to be seen.";
    figure("fig-airtime", "Airtime by kind", &body, reading)
}

/// The airtime by load in the mean run.
pub(super) fn loads(view: &View<'_>) -> String {
    let mean = |row: &FigureRow<'_>| {
        let airs = view.runs(row.point, row.arm).map(|record| record.result.air);
        let each: Option<Vec<[f64; 3]>> = airs
            .map(|air| {
                let (data_s, ack_s) = (air.data_airtime_s?, air.ack_airtime_s?);
                Some([data_s, ack_s, (air.airtime_s? - data_s - ack_s).max(0.0)])
            })
            .collect();
        let each = each.filter(|each| !each.is_empty())?;
        let of = |nth: usize| each.iter().map(|one| one[nth]).sum::<f64>() / each.len() as f64;
        Some(std::array::from_fn::<f64, 3, _>(of))
    };
    let known = view.rows().into_iter().filter_map(|row| Some((mean(&row)?, row)));
    let rows: Vec<_> =
        known.map(|(seconds, row)| (row, seconds, seconds.map(|s| format!("{s:.1} s a run")))).collect();
    if rows.is_empty() {
        return String::new();
    }
    let axis =
        Axis::to_most("seconds of sending in a run", rows.iter().map(|(_, seconds, _)| seconds.iter().sum()));
    let body = stacked(view, &rows, LOADS, axis, "airtime by what was sent");
    let reading = "All radios' sending in the mean run, hop by hop: each packet counts with its RTS, CTS and MAC ACK. \
                   What ACKs leave of the air, data can have; the rest is routing's and UDP's.";
    figure("fig-loads", "Airtime for data and for ACKs", &body, reading)
}

/// Bars of several parts, each with its caption, and the legend below.
fn stacked<const N: usize>(
    view: &View<'_>,
    rows: &[(FigureRow<'_>, [f64; N], [String; N])],
    parts: [(&str, &str); N],
    axis: Axis<'_>,
    what: &str,
) -> String {
    let chart = |rows: &&[(FigureRow<'_>, [f64; N], [String; N])]| {
        let names: Vec<_> = rows.iter().map(|(row, ..)| row.name()).collect();
        let (mut chart, middles) = Chart::rows(WIDTH, 24.0, &names, axis);
        for ((row, values, labels), middle) in rows.iter().zip(middles) {
            let (mut from, whose) = (0.0, format!("{}: ", row.title()));
            chart.numbers.at_point(&label(row.point));
            for ((value, label), (part, class)) in values.iter().zip(labels).zip(parts) {
                let (title, class) =
                    (format!("{part} {label}"), format!("kind {class} {}", view.class(row.arm)));
                chart.bar((from, from + value), (middle - 8.0, 16.0), &class, (&whose, &title));
                from += value;
            }
        }
        chart.finish(what)
    };
    let charts: Vec<_> = super::parts(rows, |(row, ..)| row.point).iter().map(chart).collect();
    let keys = parts.map(|(part, class)| super::key((class, part))).concat();
    format!("{}<div class=\"legend\">{keys}</div>", two_in_a_row(&charts))
}
