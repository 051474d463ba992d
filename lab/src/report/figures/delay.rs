//! Goodput against delay: an arm that holds ACKs or fills queues may buy the one with the other.

use super::super::chart::{Axis, Chart, ShapeNumbers, escape, number};
use super::super::{View, figure};
use super::ratios::WIDTH;
use super::side_by_side;
use crate::findings::{ArmFindings, PointFindings, label};
use crate::metric::{self, Metric};
use crate::statistics::MeanSummary;

const MOST_CHARTS: usize = 6;
/// The most charts of a large trial, and the arms up to which each has its name.
const MOST_OF_LARGE: usize = 4;
const MOST_NAMES: usize = 10;

/// An arm's goodput and its delay, over its runs.
#[derive(Clone, Copy)]
struct ArmMeans<'a> {
    arm: &'a ArmFindings,
    kbps: MeanSummary,
    delay: MeanSummary,
}

type PointArms<'a> = (&'a PointFindings, Vec<ArmMeans<'a>>);

pub(in super::super) fn goodput_against_delay(view: &View<'_>) -> String {
    let Some(metric) = view.findings.delay.and_then(metric::named) else { return String::new() };
    let at = |arm| ArmMeans::of(arm);
    let points = view.findings.points.iter();
    let known = points.map(|point| (point, point.arms.iter().filter_map(at).collect::<Vec<_>>()));
    let known: Vec<PointArms<'_>> = known.filter(|(_, arms)| !arms.is_empty()).collect();
    let panel = |(point, arms): &PointArms<'_>| {
        let head = view.group(&point.point);
        let head = if head.is_empty() { head } else { format!("<h4>{}</h4>", escape(&head)) };
        format!("<div>{head}{}</div>", chart(view, (point, arms), metric))
    };
    let most = if view.is_large() { MOST_OF_LARGE } else { MOST_CHARTS };
    let panels: Vec<_> = known.iter().take(most).map(panel).collect();
    let left = match known.len().saturating_sub(most) {
        0 => String::new(),
        left => format!(" Left out for want of room: {left} more points."),
    };
    let is_crowd = view.bundle.trial.arms.len() > MOST_NAMES;
    let names =
        if is_crowd { " Named are the baseline and the arms that no other arm beats in both." } else { "" };
    let reading = format!(
        "A dot is an arm's mean over its runs, the cross the 95 % intervals of both. An arm above and left of another \
         is better in both. The delay is the {}.{names}{left}",
        metric.title()
    );
    figure("fig-delay", "Goodput against delay", &side_by_side(&panels), &reading)
}

impl<'a> ArmMeans<'a> {
    fn of(arm: &'a ArmFindings) -> Option<ArmMeans<'a>> {
        Some(ArmMeans { arm, kbps: arm.summary?, delay: arm.delay? })
    }

    /// True if another arm carries no less, sooner.
    fn is_beaten(&self, arms: &[ArmMeans<'_>]) -> bool {
        let beats = |other: &ArmMeans<'_>| {
            let [kbps, ms] = [other.kbps.mean - self.kbps.mean, self.delay.mean - other.delay.mean];
            kbps >= 0.0 && ms >= 0.0 && kbps + ms > 0.0
        };
        arms.iter().any(beats)
    }
}

fn chart(view: &View<'_>, (point, arms): (&PointFindings, &[ArmMeans<'_>]), metric: &Metric) -> String {
    // Paths of other lengths are far apart: each point has scales of its own.
    let high = |summary: &MeanSummary| summary.ci95.map_or(summary.mean, |[_, high]| high);
    let head = metric.title_with_unit();
    let across = Axis::to_most(&head, arms.iter().map(|at| high(&at.delay)));
    let upward = Axis::to_most("kbit/s", arms.iter().map(|at| high(&at.kbps)));
    let mut chart = Chart::new((WIDTH, 260.0), across, upward);
    chart.numbers.at_point(&label(&point.point));
    let is_crowd = arms.len() > MOST_NAMES;
    let baseline = &view.bundle.trial.arms[0];
    let mut dots = Vec::new();
    for at in arms {
        let ArmMeans { arm, kbps, delay } = at;
        let name = &arm.arm;
        let class = view.class(name);
        let is_named = !is_crowd || name == baseline || !at.is_beaten(arms);
        let (x, y) = (delay.mean, kbps.mean);
        if let Some([low, high]) = delay.ci95.filter(|_| is_named) {
            chart.stroke(&[(low, y), (high, y)], &format!("line {class}"));
        }
        if let Some([low, high]) = kbps.ci95.filter(|_| is_named) {
            chart.stroke(&[(x, low), (x, high)], &format!("line {class}"));
        }
        let title = format!("{name}: {} kbit/s, {} {}", number(y), number(x), metric.unit());
        let mark = if is_named { format!("mark {class}") } else { format!("mark pale {class}") };
        let mean = ShapeNumbers { title: &title, ..ShapeNumbers::at("mean", &mark, (x, y)) };
        let told = ShapeNumbers { x_ends: delay.ci95, y_ends: kbps.ci95, runs: Some(kbps.n), ..mean };
        chart.dot(&told, if is_named { 5.0 } else { 3.5 });
        if is_named {
            dots.push(((x, y), name.as_str(), class));
        }
    }
    chart.names_beside(&dots);
    chart.finish(&format!("goodput against the {}", metric.title()))
}
