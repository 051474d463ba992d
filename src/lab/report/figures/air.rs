//! Where the radios' time went.

use super::super::chart::{Axis, Chart};
use super::super::{Row, View, figure};
use super::ratios::WIDTH;

/// What `sim::series` calls them, and what people do.
const KINDS: [(&str, &str); 9] = [
    ("sends-data", "sends data"),
    ("sends-ack", "sends MAC ACKs"),
    ("sends-rts", "sends RTS"),
    ("sends-cts", "sends CTS"),
    ("receives", "receives"),
    ("overhears", "overhears others"),
    ("noise", "hears noise"),
    ("collision", "hears a collision"),
    ("idle", "idle"),
];

pub(super) fn times(view: &View<'_>) -> String {
    let mut rows = Vec::new();
    for point in view.points_shown() {
        for (arm, _, series) in view.shown(point) {
            let seconds = KINDS.map(|(kind, _)| {
                let what = format!("airtime:{kind}");
                series.whose(&what).iter().filter_map(|node| series.last(&what, node)).sum::<f64>()
            });
            if seconds.iter().sum::<f64>() > 0.0 {
                rows.push((Row { point, arm, group: view.group(point) }, seconds));
            }
        }
    }
    if rows.is_empty() {
        return String::new();
    }
    let names: Vec<_> = rows.iter().map(|(row, _)| row.name()).collect();
    let axis = Axis { label: "% of all radios' time", low: 0.0, high: 100.0 };
    let (mut chart, middles) = Chart::rows(WIDTH, 24.0, &names, axis);
    for ((row, seconds), middle) in rows.iter().zip(middles) {
        let name = row.title();
        let whole: f64 = seconds.iter().sum();
        let mut from = 0.0;
        for (nth, (share, (_, told))) in seconds.iter().zip(KINDS).enumerate() {
            let to = from + 100.0 * share / whole;
            let title = format!("{name}: {told} {:.1} % ({share:.1} s)", to - from);
            chart.bar((from, to), (middle - 8.0, 16.0), &format!("kind k{nth}"), &title);
            from = to;
        }
    }
    let legend: String = KINDS
        .iter()
        .enumerate()
        .map(|(nth, (_, told))| format!("<span class=\"key\"><i class=\"swatch k{nth}\"></i>{told}</span>"))
        .collect();
    let body = format!("{}<div class=\"legend\">{legend}</div>", chart.finish("shares of the radios' time"));
    let reading = "All radios of an arm's first run together. What an arm saves in ACKs shows as less sending and less \
                   overhearing; what is left idle next to a collision share that grew is time lost to backing off.";
    figure("fig-airtime", "Airtime by kind", &body, reading)
}
