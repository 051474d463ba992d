//! Goodput against delay: an arm that holds ACKs or fills queues may buy the one with the other.

use super::super::chart::{Axis, Chart, escape, number};
use super::super::{View, figure};
use super::ratios::WIDTH;
use crate::findings::ArmFindings;
use crate::metric;
use crate::scenario::point::Point;
use crate::statistics::{Summary, summarize};

const MOST_CHARTS: usize = 6;

/// An arm's goodput and its median round trip, over its runs.
struct At<'a> {
    arm: &'a ArmFindings,
    kbps: Summary,
    rtt_ms: Summary,
}

pub(super) fn goodput_against_delay(view: &View<'_>) -> String {
    let points = &view.findings.points;
    let known: Vec<(&Point, Vec<At<'_>>)> = points
        .iter()
        .map(|point| {
            (&point.point, point.arms.iter().filter_map(|arm| at(view, &point.point, arm)).collect())
        })
        .filter(|(_, arms): &(_, Vec<_>)| !arms.is_empty())
        .collect();
    if known.is_empty() {
        return String::new();
    }
    let high = |summary: &Summary| summary.ci95.map_or(summary.mean, |[_, high]| high);
    let all = || known.iter().flat_map(|(_, arms)| arms);
    let across = Axis::to_most("median round trip, ms", all().map(|at| high(&at.rtt_ms)));
    let upward = Axis::to_most("kbit/s", all().map(|at| high(&at.kbps)));
    let panel = |(point, arms): &(&Point, Vec<At<'_>>)| {
        let head = view.group(point);
        let head = if head.is_empty() { head } else { format!("<h4>{}</h4>", escape(&head)) };
        format!("<div>{head}{}</div>", chart(view, arms, (across, upward)))
    };
    let panels: String = known.iter().take(MOST_CHARTS).map(panel).collect();
    let left = known.len().saturating_sub(MOST_CHARTS);
    let left =
        if left > 0 { format!(" Left out for want of room: {left} more points.") } else { String::new() };
    let reading = format!(
        "A dot is an arm's mean over its runs, the cross the 95 % intervals of both. Higher carried more, further left \
         answered sooner; an arm above and left of another is better in both.{left}"
    );
    figure("fig-delay", "Goodput against round trips", &panels, &reading)
}

fn at<'a>(view: &View<'_>, point: &Point, arm: &'a ArmFindings) -> Option<At<'a>> {
    let rtt = metric::named("rtt_median_ms")?;
    let each: Vec<f64> = view.runs(point, &arm.samples.arm).filter_map(|run| (rtt.of)(&run.result)).collect();
    Some(At { arm, kbps: arm.summary?, rtt_ms: summarize(&each)? })
}

fn chart(view: &View<'_>, arms: &[At<'_>], (across, upward): (Axis<'_>, Axis<'_>)) -> String {
    let mut chart = Chart::new((WIDTH, 260.0), across, upward);
    let mut dots = Vec::new();
    for At { arm, kbps, rtt_ms } in arms {
        let name = &arm.samples.arm;
        let class = view.class(name);
        let (x, y) = (rtt_ms.mean, kbps.mean);
        if let Some([low, high]) = rtt_ms.ci95 {
            chart.line(&[(low, y), (high, y)], &format!("line {class}"));
        }
        if let Some([low, high]) = kbps.ci95 {
            chart.line(&[(x, low), (x, high)], &format!("line {class}"));
        }
        let title = format!("{name}: {} kbit/s, {} ms", number(y), number(x));
        chart.dot((x, y), 5.0, &format!("mark {class}"), &title);
        dots.push(((x, y), name.as_str(), class));
    }
    chart.names_beside(&dots);
    chart.finish("goodput against the median round trip")
}
