//! The rows of the report, made from several runs.

use std::fmt::Write;

use hopwise_lab::statistics::{MARGIN, paired};

/// Runs of each side; odd, so that the median is one of them.
const RUNS: usize = 7;
const CONFIDENCE: f64 = 0.99;
pub(crate) const SMOLTCP: &str = "smoltcp 0.14";

/// Which figure is the better one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Better {
    More,
    Less,
}

#[derive(Debug)]
pub(crate) struct Row {
    name: String,
    unit: &'static str,
    ours: f64,
    /// The peer, its figure, and the ratio, above 1 where ours is better.
    peer: Option<(&'static str, f64, f64)>,
    /// The least ratio that is wanted; without a peer, the largest figure of ours.
    goal: Option<f64>,
    /// The 99 % interval of the ratio, where runs were judged in pairs.
    interval: Option<[f64; 2]>,
}

impl Row {
    pub(crate) fn alone(name: impl Into<String>, unit: &'static str, ours: f64) -> Row {
        Row { name: name.into(), unit, ours, peer: None, goal: None, interval: None }.printed()
    }

    pub(crate) fn beside(
        name: impl Into<String>,
        unit: &'static str,
        better: Better,
        ours: f64,
        (peer, theirs): (&'static str, f64),
    ) -> Row {
        let ratio = match better {
            Better::More => ours / theirs,
            Better::Less => theirs / ours,
        };
        let peer = Some((peer, theirs, ratio));
        Row { name: name.into(), unit, ours, peer, goal: None, interval: None }.printed()
    }

    /// The ratio is of runs in pairs, as a trial judges blocks.
    #[allow(dead_code, reason = "not every bench has pairs")]
    pub(crate) fn in_pairs(
        name: impl Into<String>,
        unit: &'static str,
        better: Better,
        ours: &[f64],
        (peer, theirs): (&'static str, &[f64]),
    ) -> Row {
        let (arm, baseline) = if better == Better::More { (ours, theirs) } else { (theirs, ours) };
        let pairs: Vec<_> = arm.iter().copied().zip(baseline.iter().copied()).collect();
        let judged = paired(&pairs, MARGIN);
        let (ratio, interval) = (judged.ratio.expect("there are pairs"), judged.interval(CONFIDENCE));
        let peer = Some((peer, median(theirs.to_vec()), ratio));
        Row { name: name.into(), unit, ours: median(ours.to_vec()), peer, goal: None, interval }.printed()
    }

    /// Sets the least ratio; without a peer, the largest figure of ours.
    pub(crate) fn meant_to_be(self, goal: f64) -> Row {
        let row = Row { goal: Some(goal), ..self };
        if let Some((goal, met)) = row.judged() {
            eprintln!("    the goal of {goal:.2}: {met}");
        }
        row
    }

    /// Whether ours is surely better or worse than the peer, by all of the interval.
    fn verdict(&self) -> Option<String> {
        let [low, high] = self.interval?;
        let word = match (low > 1.0, high < 1.0) {
            (true, _) => "ahead",
            (_, true) => "behind",
            _ => "undecided",
        };
        Some(format!("{word} ({low:.2} to {high:.2})"))
    }

    /// The goal, and whether it is met.
    fn judged(&self) -> Option<(f64, &'static str)> {
        let goal = self.goal?;
        let is_met = self.peer.map_or(self.ours <= goal, |(_, _, ratio)| ratio >= goal);
        Some((goal, if is_met { "met" } else { "missed" }))
    }

    /// Prints the row as progress.
    fn printed(self) -> Row {
        let Row { name, unit, ours, peer, .. } = &self;
        match peer {
            Some((peer, theirs, ratio)) if !ratio.is_finite() => {
                eprintln!("  {name}: {ours:.1} {unit}, {peer} {theirs:.1}");
            }
            Some((peer, theirs, ratio)) => {
                let verdict = self.verdict().map(|verdict| format!(", {verdict}")).unwrap_or_default();
                eprintln!("  {name}: {ours:.1} {unit}, {peer} {theirs:.1}, ratio {ratio:.2}{verdict}");
            }
            None => eprintln!("  {name}: {ours:.1} {unit}"),
        }
        self
    }
}

/// The medians of two figures that are measured in turn: other load of the machine meets both.
pub(crate) fn in_turn(mut ours: impl FnMut() -> f64, mut theirs: impl FnMut() -> f64) -> (f64, f64) {
    let (mut a, mut b) = (Vec::new(), Vec::new());
    // The first run of each warms up.
    for run in 0..=RUNS {
        let (one, other) = (ours(), theirs());
        if run > 0 {
            a.push(one);
            b.push(other);
        }
    }
    (median(a), median(b))
}

pub(crate) fn median_of(mut run: impl FnMut() -> f64) -> f64 {
    run();
    median((0..RUNS).map(|_| run()).collect())
}

pub(crate) fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

/// The one object that goes to standard output.
pub(crate) fn object(bench: &str, rows: &[Row]) -> String {
    let mut out = format!("{{\"bench\":\"{bench}\",\"rows\":[");
    for (nth, row) in rows.iter().enumerate() {
        let comma = if nth > 0 { "," } else { "" };
        let Row { name, unit, ours, peer, .. } = row;
        write!(out, "{comma}{{\"name\":\"{name}\",\"unit\":\"{unit}\",\"ours\":{ours:.1}")
            .expect("a String grows");
        if let Some((peer, theirs, ratio)) = peer {
            write!(out, ",\"peer\":\"{peer}\",\"theirs\":{theirs:.1}").expect("a String grows");
            // A count of zero has no ratio, nor has JSON a word for it.
            if ratio.is_finite() {
                write!(out, ",\"ratio\":{ratio:.3}").expect("a String grows");
            }
        }
        if let (Some([low, high]), Some(verdict)) = (row.interval, row.verdict()) {
            write!(out, ",\"low\":{low:.3},\"high\":{high:.3},\"met\":\"{verdict}\"")
                .expect("a String grows");
        }
        if let Some((goal, met)) = row.judged() {
            write!(out, ",\"goal\":{goal},\"met\":\"{met}\"").expect("a String grows");
        }
        out.push('}');
    }
    out + "]}"
}
