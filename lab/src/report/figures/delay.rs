//! Goodput against delay: an arm that holds ACKs or fills queues may buy the one with the other.

use super::super::chart::{Axis, Chart, Told, escape, number};
use super::super::{View, figure};
use super::ratios::WIDTH;
use super::side_by_side;
use crate::findings::{ArmFindings, PointFindings, label};
use crate::metric::{self, Metric};
use crate::scenario::point::Point;
use crate::statistics::{Summary, summarize};

const MOST_CHARTS: usize = 6;

/// A metric of round trips, and its name in the figure.
struct Measure {
    metric: &'static str,
    says: &'static str,
}

/// The first one is shown unless another one has more arms: the kernel's TCP tells the mean alone.
const MEASURES: [Measure; 2] = [
    Measure { metric: "rtt_median_ms", says: "median round trip" },
    Measure { metric: "rtt_ms", says: "mean smoothed round trip" },
];

/// An arm's goodput and its round trip, over its runs.
struct At<'a> {
    arm: &'a ArmFindings,
    kbps: Summary,
    rtt_ms: Summary,
}

type AtPoint<'a> = (&'a Point, Vec<At<'a>>);

pub(super) fn goodput_against_delay(view: &View<'_>) -> String {
    let count = |known: &[AtPoint<'_>]| known.iter().map(|(_, arms)| arms.len()).sum::<usize>();
    let by = |measure: &'static Measure| (measure, known_by(view, measure));
    // All arms of the figure stand by one measure.
    let [first, other] = MEASURES.each_ref().map(by);
    let (Measure { says, .. }, known) = if count(&other.1) > count(&first.1) { other } else { first };
    if known.is_empty() {
        return String::new();
    }
    let high = |summary: &Summary| summary.ci95.map_or(summary.mean, |[_, high]| high);
    let all = || known.iter().flat_map(|(_, arms)| arms);
    let head = format!("{says}, ms");
    let across = Axis::to_most(&head, all().map(|at| high(&at.rtt_ms)));
    let upward = Axis::to_most("kbit/s", all().map(|at| high(&at.kbps)));
    let panel = |(point, arms): &AtPoint<'_>| {
        let head = view.group(point);
        let head = if head.is_empty() { head } else { format!("<h4>{}</h4>", escape(&head)) };
        format!("<div>{head}{}</div>", chart(view, (point, arms), (across, upward), says))
    };
    let panels: Vec<_> = known.iter().take(MOST_CHARTS).map(panel).collect();
    let left = known.len().saturating_sub(MOST_CHARTS);
    let left =
        if left > 0 { format!(" Left out for want of room: {left} more points.") } else { String::new() };
    let reading = format!(
        "A dot is an arm's mean over its runs, the cross the 95 % intervals of both. Higher carried more, further left \
         answered sooner; an arm above and left of another is better in both. The \
         round trip of every arm is the {says}.{left}"
    );
    figure("fig-delay", "Goodput against round trips", &side_by_side(&panels), &reading)
}

/// The points and the arms of which the measure is known.
fn known_by<'a>(view: &'a View<'_>, measure: &Measure) -> Vec<AtPoint<'a>> {
    let Some(rtt) = metric::named(measure.metric) else { return Vec::new() };
    let arms = |point: &'a PointFindings| {
        point.arms.iter().filter_map(|arm| at(view, &point.point, arm, rtt)).collect::<Vec<_>>()
    };
    let points = view.findings.points.iter().map(|point| (&point.point, arms(point)));
    points.filter(|(_, arms)| !arms.is_empty()).collect()
}

fn at<'a>(view: &View<'_>, point: &Point, arm: &'a ArmFindings, rtt: &Metric) -> Option<At<'a>> {
    let each: Vec<f64> = view.runs(point, &arm.arm).filter_map(|run| (rtt.of)(&run.result)).collect();
    Some(At { arm, kbps: arm.summary?, rtt_ms: summarize(&each)? })
}

fn chart(
    view: &View<'_>,
    (point, arms): (&Point, &[At<'_>]),
    (across, upward): (Axis<'_>, Axis<'_>),
    says: &str,
) -> String {
    let mut chart = Chart::new((WIDTH, 260.0), across, upward);
    chart.at_point(&label(point));
    let mut dots = Vec::new();
    for At { arm, kbps, rtt_ms } in arms {
        let name = &arm.arm;
        let class = view.class(name);
        let (x, y) = (rtt_ms.mean, kbps.mean);
        if let Some([low, high]) = rtt_ms.ci95 {
            chart.stroke(&[(low, y), (high, y)], &format!("line {class}"));
        }
        if let Some([low, high]) = kbps.ci95 {
            chart.stroke(&[(x, low), (x, high)], &format!("line {class}"));
        }
        let title = format!("{name}: {} kbit/s, {} ms", number(y), number(x));
        let mark = format!("mark {class}");
        let mean = Told { title: &title, ..Told::at("mean", &mark, (x, y)) };
        chart.dot(&Told { x_ends: rtt_ms.ci95, y_ends: kbps.ci95, runs: Some(kbps.n), ..mean }, 5.0);
        dots.push(((x, y), name.as_str(), class));
    }
    chart.names_beside(&dots);
    chart.finish(&format!("goodput against the {says}"))
}
