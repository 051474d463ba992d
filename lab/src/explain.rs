//! The reasons why an arm was faster or slower than the baseline, from the runs' counters: a sentence each.
//!
//! A run's goodput is the share of the air in use, divided by the air that a segment takes. A quantity behind these two
//! (ACKs, collisions, retransmissions, timeouts) is named if it moved far enough to matter. Changes in the direction of
//! the goodput come first, then those against it.

use super::findings::{Beside, Findings, PointFindings};
use super::record::{Record, Trial};
use super::statistics::{Comparison, GOODPUT, Verdict, change};
use crate::scenario::point::Point;

/// A smaller change is not mentioned.
const LEAST: f64 = 0.05;

/// A counter of a run, per segment or per run.
struct Quantity {
    of: fn(&Totals) -> f64,
    /// Values below this in both arms are not mentioned.
    floor: f64,
    /// True if less of it is better.
    less: bool,
    words: fn(&str, &str) -> String,
    digits: usize,
}

/// The mean run of an arm. A counter that a run does not tell is NaN, and so is what follows from it.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    runs: f64,
    segments: f64,
    sent_again: f64,
    timeouts: f64,
    /// ACKs for each segment, as in the trial's table.
    acks_per_segment: f64,
    collisions: f64,
    given_up: f64,
    queue_drops: f64,
    airtime_s: f64,
    ack_airtime_s: f64,
    route_failures: f64,
    burst_mean: f64,
    out_of_order_share: f64,
}

impl Totals {
    fn of(point: &PointFindings, arm: &str, records: &[Record]) -> Totals {
        let found = point.arms.iter().find(|found| found.arm == arm);
        let mean =
            |of: fn(&Beside) -> Option<f64>| found.and_then(|found| of(&found.beside)).unwrap_or(f64::NAN);
        let mut totals = Totals {
            acks_per_segment: mean(|beside| beside.acks_per_segment),
            burst_mean: mean(|beside| beside.burst_mean),
            out_of_order_share: mean(|beside| beside.out_of_order_share),
            ..Totals::default()
        };
        for record in records.iter().filter(|record| record.point == point.point && record.arm == arm) {
            let (result, air) = (&record.result, &record.result.air);
            for flow in result.flows.iter().filter(|flow| !flow.background) {
                totals.segments += number(flow.segments_sent);
                totals.sent_again += number(flow.segments_retransmitted);
                totals.timeouts += number(flow.timeouts.map(u64::from));
            }
            totals.runs += 1.0;
            totals.collisions += number(air.collisions);
            totals.given_up += number(air.retry_drops);
            totals.queue_drops += number(air.queue_drops);
            totals.airtime_s += air.airtime_s.unwrap_or(f64::NAN);
            totals.ack_airtime_s += air.ack_airtime_s.unwrap_or(f64::NAN);
            totals.route_failures += number(result.routing.route_failures);
        }
        totals
    }

    /// The number of new segments.
    fn new_segments(&self) -> f64 {
        (self.segments - self.sent_again).max(1.0)
    }
}

fn number(counter: Option<u64>) -> f64 {
    counter.map_or(f64::NAN, |counter| counter as f64)
}

/// The quantities in the order of their mention.
const QUANTITIES: [Quantity; 10] = [
    Quantity {
        of: |run| run.acks_per_segment,
        floor: 0.02,
        less: true,
        words: |this, that| format!("it sent {this} ACKs a segment instead of {that}"),
        digits: 2,
    },
    Quantity {
        of: |run| 1e3 * run.airtime_s / run.new_segments(),
        floor: 0.0,
        less: true,
        words: |this, that| format!("a new segment took {this} ms of air instead of {that}"),
        digits: 1,
    },
    Quantity {
        of: |run| 1e3 * run.ack_airtime_s / run.new_segments(),
        floor: 0.1,
        less: true,
        words: |this, that| format!("ACKs took {this} ms of air a new segment instead of {that}"),
        digits: 1,
    },
    Quantity {
        of: |run| run.airtime_s / run.runs.max(1.0),
        floor: 0.0,
        less: false,
        words: |this, that| {
            format!(
                "{} radios sent at a time ({this} s of sending a run instead of {that})",
                compared(this, that)
            )
        },
        digits: 1,
    },
    Quantity {
        of: |run| 100.0 * run.collisions / run.new_segments(),
        floor: 1.0,
        less: true,
        words: |this, that| format!("{} collided for 100 new segments instead of {that}", of(this, "frame")),
        digits: 0,
    },
    Quantity {
        of: |run| 100.0 * run.sent_again / run.segments.max(1.0),
        floor: 0.5,
        less: true,
        words: |this, that| format!("{this} % of segments were sent again instead of {that} %"),
        digits: 1,
    },
    Quantity {
        of: |run| run.timeouts / run.runs.max(1.0),
        floor: 1.0,
        less: true,
        words: |this, that| format!("a run had {} instead of {that}", of(this, "timeout")),
        digits: 1,
    },
    Quantity {
        of: |run| 1e3 * run.given_up / run.new_segments(),
        floor: 5.0,
        less: true,
        words: |this, that| {
            format!("radios gave up {} for 1000 new segments instead of {that}", of(this, "packet"))
        },
        digits: 0,
    },
    Quantity {
        of: |run| 1e3 * run.queue_drops / run.new_segments(),
        floor: 5.0,
        less: true,
        words: |this, that| {
            format!("full queues lost {} for 1000 new segments instead of {that}", of(this, "packet"))
        },
        digits: 0,
    },
    Quantity {
        of: |run| run.route_failures / run.runs.max(1.0),
        floor: 1.0,
        less: true,
        words: |this, that| format!("{} broke in a run instead of {that}", of(this, "route")),
        digits: 1,
    },
];

/// Density and order of an arm's segments: no reasons for its goodput, but a burden for others.
const SHAPES: [Quantity; 2] = [
    Quantity {
        of: |run| run.burst_mean,
        floor: 1.0,
        less: true,
        words: |this, that| format!(" It sent {this} segments a burst instead of {that}."),
        digits: 1,
    },
    Quantity {
        of: |run| 100.0 * run.out_of_order_share,
        floor: 0.5,
        less: true,
        words: |this, that| {
            format!(" It had {this} % of its segments arrive above a missing one instead of {that} %.")
        },
        digits: 1,
    },
];

/// A number of things, such as `1 frame`.
fn of(number: &str, thing: &str) -> String {
    let plural = if number == "1" { "" } else { "s" };
    format!("{number} {thing}{plural}")
}

/// `more`, or `fewer`, by two numbers as they are printed: a sum of sending times alone would look like a cost.
fn compared(this: &str, that: &str) -> &'static str {
    let [this, that] = [this, that].map(|figure| figure.parse().unwrap_or(f64::NAN));
    if this > that { "more" } else { "fewer" }
}

/// The most reasons for a change, and the most against it.
const MOST: (usize, usize) = (5, 2);

/// A sentence for each arm but the baseline, point by point. Reasons are those of its goodput, also where other figures
/// decide; their own sentences then come first. Arms whose agents did without something have one more.
pub fn sentences<'a>(trial: &'a Trial, records: &[Record]) -> Vec<(&'a Point, Vec<(String, String)>)> {
    let findings = Findings::of(trial, records);
    let decides = trial.figures().contains(&GOODPUT);
    let by_goodput =
        || Findings::of(&Trial { figures: vec![GOODPUT.name.to_owned()], ..trial.clone() }, records);
    let of_goodput = if decides { findings.clone() } else { by_goodput() };
    let at = |((point, all), found): ((&'a Point, &PointFindings), &PointFindings)| {
        let totals = |arm: &str| Totals::of(found, arm, records);
        let beside = |arm: &str| {
            let arm = found.arms.iter().find(|known| known.arm == arm);
            arm.map(|known| known.beside).unwrap_or_default()
        };
        let of_goodput = found.comparisons.iter().filter(|comparison| comparison.is_of(&GOODPUT));
        let compared = of_goodput.map(|comparison| {
            let Comparison { arm, against, .. } = comparison;
            let others = all.comparisons.iter().filter(|other| other.arm == *arm && !other.is_of(&GOODPUT));
            let others: String = others.map(|other| format!("{} ", other.sentence)).collect();
            let (this, that) = (totals(arm), totals(against));
            let said = sentence(comparison, decides, &this, &that);
            (arm.clone(), others + &said + &delay(&beside(arm), &beside(against)) + &shape(&this, &that))
        });
        let lacks =
            found.arms.iter().flat_map(|arm| arm.lacks.iter().map(|lacks| (arm.arm.clone(), lacks.clone())));
        (point, compared.chain(lacks).collect())
    };
    trial.points.iter().zip(&findings.points).zip(&of_goodput.points).map(at).collect()
}

/// Two figures as they are printed, if they are apart, and also as they are printed: 20 packets instead of 19 are no
/// reason. A figure that one of the arms does not tell is NaN, and apart from none.
fn apart([this, that]: [f64; 2], quantity: &Quantity) -> Option<[String; 2]> {
    let moved = |this: f64, that: f64| (this - that).abs() / this.max(that).max(f64::MIN_POSITIVE);
    let digits = quantity.digits;
    let shown = [this, that].map(|figure| format!("{figure:.digits$}"));
    let [first, second] = shown.each_ref().map(|figure| figure.parse().unwrap_or(f64::NAN));
    let is_apart = moved(this, that) >= LEAST && moved(first, second) > LEAST;
    (is_apart && this.max(that) >= quantity.floor).then_some(shown)
}

fn sentence(comparison: &Comparison, decides: bool, this: &Totals, that: &Totals) -> String {
    let Comparison { arm, against, ratio, verdict, .. } = comparison;
    let Some(ratio) = ratio else { return comparison.sentence.clone() };
    let is_faster = *ratio >= 1.0;
    let (mut along, mut across) = (Vec::new(), Vec::new());
    for quantity in &QUANTITIES {
        let (this, that) = ((quantity.of)(this), (quantity.of)(that));
        let Some(shown) = apart([this, that], quantity) else { continue };
        let words = (quantity.words)(&shown[0], &shown[1]);
        let is_good = (this < that) == quantity.less;
        if is_good == is_faster { along.push(words) } else { across.push(words) }
    }
    along.truncate(MOST.0);
    across.truncate(MOST.1);
    let head = match verdict {
        _ if !decides => {
            format!(
                "In goodput, which decides nothing here, {arm} came to {} against {against}",
                change(*ratio)
            )
        }
        Verdict::Faster | Verdict::Slower | Verdict::Better | Verdict::Worse => {
            format!("{arm} was {verdict} than {against} ({})", change(*ratio))
        }
        Verdict::NoDifference => format!("{arm} was as fast as {against} ({})", change(*ratio)),
        Verdict::Undecided => format!("{arm} is not surely apart from {against} ({})", change(*ratio)),
    };
    match (along.is_empty(), across.is_empty()) {
        (true, true) => format!("{head}, and nothing that the runs count tells them apart."),
        (true, false) => format!("{head}, although {}.", list(&across)),
        (false, true) => format!("{head}: {}.", list(&along)),
        (false, false) => format!("{head}: {}. It was so although {}.", list(&along), list(&across)),
    }
}

/// The delay that the arm costs or saves: no reason for its goodput, but worth as much.
fn delay(this: &Beside, that: &Beside) -> String {
    let moved = |this: f64, that: f64| (this - that).abs() / this.max(that).max(f64::MIN_POSITIVE) >= LEAST;
    let figures = (this.rtt_median_ms, this.rtt_p95_ms, that.rtt_median_ms, that.rtt_p95_ms);
    let (Some(median), Some(p95), Some(that_median), Some(that_p95)) = figures else {
        // The kernel's TCP tells no quantiles. Both arms then stand by the measure that both have.
        return match this.rtt_ms.zip(that.rtt_ms) {
            Some((mean, that)) if moved(mean, that) => {
                format!(" Its smoothed round trip was {mean:.0} ms in the mean instead of {that:.0}.")
            }
            _ => String::new(),
        };
    };
    if !moved(median, that_median) && !moved(p95, that_p95) {
        return String::new();
    }
    format!(
        " Half of its round trips took up to {median:.0} ms instead of {that_median:.0}, and 95 % up to {p95:.0} ms \
         instead of {that_p95:.0}."
    )
}

fn shape(this: &Totals, that: &Totals) -> String {
    let said = |quantity: &Quantity| {
        let [this, that] = apart([this, that].map(quantity.of), quantity)?;
        Some((quantity.words)(&this, &that))
    };
    SHAPES.iter().filter_map(said).collect()
}

fn list(parts: &[String]) -> String {
    match parts {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests;
