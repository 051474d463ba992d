//! Delay, reordering, bursts and fairness over time as numbers, folded: not every trial asks for them.

use std::fmt::Write as _;

use super::View;
use super::chart::escape;
use super::tables::{arm_row, point_row};
use crate::metric::{self, Metric};
use crate::statistics::digits;

/// The metrics and their heads.
const METRICS: [(&str, &str); 11] = [
    ("rtt_median_ms", "RTT, half<br>ms"),
    ("rtt_p95_ms", "RTT, 95 %<br>ms"),
    ("rtt_p99_ms", "RTT, 99 %<br>ms"),
    ("probe_median_ms", "probe, half<br>ms"),
    ("probe_p95_ms", "probe, 95 %<br>ms"),
    ("completion_median_s", "done, half<br>s"),
    ("completion_p95_s", "done, 95 %<br>s"),
    ("out_of_order_share", "share above<br>a hole"),
    ("burst_mean", "burst, mean<br>segments"),
    ("burst_longest", "burst, longest<br>segments"),
    ("jain_over_time", "Jain<br>over time"),
];

/// A row for each arm at each point with the means of its runs; nothing where no run knows any of the metrics.
pub(super) fn table(view: &View<'_>) -> String {
    let records = &view.bundle.records;
    // One flow shares with no other.
    let has_shares = records.iter().any(|run| metric::shares(&run.result) > 1);
    let is_known = |metric: &Metric| {
        let is_shown = metric.name != "jain_over_time" || has_shares;
        is_shown && records.iter().any(|run| (metric.of)(&run.result).is_some())
    };
    let known = METRICS.iter().filter_map(|(name, head)| Some((metric::named(name)?, *head)));
    let known: Vec<_> = known.filter(|(metric, _)| is_known(metric)).collect();
    if known.is_empty() {
        return String::new();
    }
    let mut html = "<details id=\"delays\"><summary>Delay, reordering and bursts</summary><p class=\"lead\">Means \
                    over the runs. Under the pointer a head says more, and its name is a column of records.csv.</p>\
                    <div class=\"scroll\"><table class=\"delays\"><thead><tr><th>arm</th>"
        .to_owned();
    for (metric, head) in &known {
        let _ = write!(html, "<th title=\"{}: {}\">{head}</th>", metric.name, escape(metric.says));
    }
    html.push_str("</tr></thead>");
    for point in &view.findings.points {
        let _ = write!(html, "<tbody>{}", point_row(&point.point, known.len() + 1));
        for arm in &point.arms {
            let cell = |(metric, _): &(&Metric, _)| {
                let means = point.arms.iter().filter_map(|arm| arm.means.of_metric(metric.name));
                let digits = digits(means.fold(0.0, f64::max));
                format!("<td>{}</td>", arm.means.shown(metric.name, digits))
            };
            let cells: String = known.iter().map(cell).collect();
            html.push_str(&arm_row(view, &arm.arm, &cells));
        }
        html.push_str("</tbody>");
    }
    html + "</table></div></details>\n"
}
