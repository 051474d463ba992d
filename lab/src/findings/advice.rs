//! The advice of a trial: leave Linux's TCP as it is, or which arm to put in its place. The names of arms say what each
//! costs: the baseline is `linux`, and the beginnings of all other names are in `KINDS`. A dearer arm has to be worth
//! its change beside the best of the cheaper ones.

use std::iter;

use super::answer::gain;
use super::{ArmFindings, is_delay};
use crate::metric;
use crate::record::Record;
use crate::statistics::{Comparison, ComparisonVerdict, Figure, GOODPUT, compare_all, questions};

/// The arm that is Linux as it is.
const LINUX: &str = "linux";
/// A switch of Linux, a daemon where data arrive, and agents at both ends: the cheapest first.
const KINDS: [&str; 3] = ["linux-", "thin-", "pair-"];
/// The least ratio of goodputs that is worth a change.
const MORE: f64 = 1.05;
/// The greatest ratio of waits that is worth a change...
const SOONER: f64 = 2.0 / 3.0;
/// ...and the least difference, which a call or a shell feels.
const FELT_MS: f64 = 50.0;

/// The figures that decide, and the share by which arms may differ and still count as equal.
pub(super) struct Judge<'a> {
    pub(super) figures: &'a [Figure],
    pub(super) margin: f64,
}

/// An arm beside another one, by goodput and by the delay that decides.
struct Beside<'a> {
    arm: &'a ArmFindings,
    goodput: Comparison,
    wait: Option<Comparison>,
    /// The time by which it answers sooner.
    saved_ms: f64,
}

/// The receiver and the senders of a run's arm. The agent of `thin` is the receiver's.
pub(super) fn agents(record: &Record) -> [String; 2] {
    let arm = &record.settings["arm"];
    let receiver = arm["thin"].as_str().or(arm["receiver"].as_str()).unwrap_or_default();
    let senders = arm["sender"].as_array().into_iter().flatten().filter_map(|sender| sender.as_str());
    let senders: Vec<_> = senders.map(|sender| sender.trim_start_matches("kernel:")).collect();
    [receiver.to_owned(), senders.join(", ")]
}

/// The advice at a point; none where an arm has a name of no kind, or Linux has no run. `compared` are the arms beside
/// the first one, figure by figure.
pub(super) fn advice(arms: &[ArmFindings], compared: &[Comparison], judge: &Judge<'_>) -> Option<String> {
    let (linux, others) = arms.split_first()?;
    let kind = |arm: &ArmFindings| KINDS.iter().position(|kind| arm.arm.starts_with(kind));
    let is_known = others.iter().all(|arm| kind(arm).is_some());
    if linux.arm != LINUX || linux.summary.is_none() || others.is_empty() || !is_known {
        return None;
    }
    // Each arm that is worth its change beside the one before, with all arms beside it.
    let mut steps = vec![(linux, judge.beside(linux, others, compared))];
    for nth in 0..KINDS.len() {
        let all = steps[steps.len() - 1].1.iter();
        let worth = all.filter(|one| kind(one.arm) == Some(nth) && judge.is_worth(one, true));
        let power = |one: &Beside<'_>| judge.power(one.arm);
        let next = worth.max_by(|one, other| power(one).total_cmp(&power(other))).map(|one| one.arm);
        steps.extend(next.map(|next| (next, judge.beside(next, others, &judge.compared(next, others)))));
    }
    let (best, beside_best) = &steps[steps.len() - 1];
    let names: Vec<_> = steps[..steps.len() - 1].iter().skip(1).map(|(arm, _)| arm.arm.as_str()).collect();
    let cheaper = match &names[..] {
        [] => String::new(),
        names => format!(" Cheaper, and worth a change as well: {}.", names.join(", ")),
    };
    let beside_linux = steps[0].1.iter().find(|one| one.arm.arm == best.arm);
    let (measured, open) = (judge.measured(best, beside_linux), judge.undecided(beside_best));
    Some(format!("{} {measured}{cheaper}{open}", what(best, kind(best))))
}

/// What to do.
fn what(best: &ArmFindings, kind: Option<usize>) -> String {
    let (name, [receiver, sender]) = (&best.arm, &best.agents);
    match kind {
        None => "Leave Linux's TCP as it is.".to_owned(),
        Some(0) => format!("Keep Linux's TCP, and let it send by {sender} ({name})."),
        Some(1) => format!(
            "Keep Linux's TCP, let it send by {sender}, and run `hopwise thin` with the receiver {receiver} where data \
             arrive ({name})."
        ),
        Some(_) => format!("Put the receiver {receiver} and the sender {sender} between the nodes ({name})."),
    }
}

impl Judge<'_> {
    /// Comparisons of all other arms with that one. Verdicts are corrected for all of them.
    fn compared(&self, against: &ArmFindings, arms: &[ArmFindings]) -> Vec<Comparison> {
        let others = || arms.iter().filter(|arm| arm.arm != against.arm);
        let of_figure =
            |nth: usize| iter::once(against).chain(others()).map(move |arm| arm.samples[nth].clone());
        let samples: Vec<Vec<_>> = (0..self.figures.len()).map(|nth| of_figure(nth).collect()).collect();
        compare_all(&questions(self.figures, &samples), self.margin)
    }

    /// Each arm that was compared with that one.
    fn beside<'b>(
        &self,
        against: &ArmFindings,
        arms: &'b [ArmFindings],
        compared: &[Comparison],
    ) -> Vec<Beside<'b>> {
        let of = |arm: &ArmFindings, figure: &Figure| {
            compared.iter().find(|one| one.arm == arm.arm && one.is_of(figure)).cloned()
        };
        let beside = |arm: &'b ArmFindings| {
            let wait = self.wait().and_then(|figure| of(arm, figure));
            let saved_ms = self.wait_of(against).unwrap_or(0.0) - self.wait_of(arm).unwrap_or(0.0);
            Some(Beside { arm, goodput: of(arm, &GOODPUT)?, wait, saved_ms })
        };
        arms.iter().filter_map(beside).collect()
    }

    /// The delay that decides.
    fn wait(&self) -> Option<&Figure> {
        self.figures.iter().find(|figure| is_delay(figure.name) && figure.unit == "ms")
    }

    fn wait_of(&self, arm: &ArmFindings) -> Option<f64> {
        arm.means.of_metric(self.wait()?.name)
    }

    /// Goodput by wait: of arms that are worth a change, the arm with the most is taken.
    fn power(&self, arm: &ArmFindings) -> f64 {
        arm.summary.map_or(0.0, |summary| summary.mean) / self.wait_of(arm).unwrap_or(1.0).max(0.001)
    }

    /// Returns whether the arm is worth a change from the other one: by what is sure, or by what was measured.
    fn is_worth(&self, one: &Beside<'_>, is_sure: bool) -> bool {
        use ComparisonVerdict::{Better, Faster, Slower, Worse};
        let has = |found: &Comparison, verdict| !is_sure || found.verdict == verdict;
        // Without a ratio the other arm carried nothing.
        let goodput = one.goodput.ratio.unwrap_or(f64::INFINITY);
        let carries_more = goodput >= MORE && has(&one.goodput, Faster);
        let carries_less = one.goodput.verdict == Slower || goodput * (1.0 + self.margin) < 1.0;
        let is_short = |wait: &Comparison| wait.ratio.is_some_and(|ratio| ratio <= SOONER);
        let wait = one.wait.as_ref();
        let waits_longer = wait.is_some_and(|wait| wait.verdict == Worse);
        let is_sooner =
            wait.is_some_and(|wait| is_short(wait) && has(wait, Better)) && one.saved_ms >= FELT_MS;
        (carries_more && !waits_longer) || (is_sooner && !carries_less)
    }

    /// Arms that may be worth a change, and how many seeds would tell.
    fn undecided(&self, beside_best: &[Beside<'_>]) -> String {
        let all = || beside_best.iter().filter(|one| self.is_worth(one, false) && !self.is_worth(one, true));
        let names: Vec<_> = all().map(|one| one.arm.arm.as_str()).collect();
        let need = |one: &Beside<'_>| one.goodput.need.max(one.wait.as_ref().and_then(|wait| wait.need));
        let seeds = all().filter_map(need).max();
        let seeds = seeds.map_or("more seeds".to_owned(), |need| format!("about {need} seeds"));
        match &names[..] {
            [] => String::new(),
            names => format!(" Undecided: {} may be better still; {seeds} would tell.", names.join(", ")),
        }
    }

    /// The figures of the best arm, with its gains over Linux, unless it is Linux.
    fn measured(&self, best: &ArmFindings, found: Option<&Beside<'_>>) -> String {
        let gained =
            |found: Option<&Comparison>| found.map_or(String::new(), |found| format!(", {}", gain(found)));
        let kbps = best.summary.map_or(0.0, |summary| summary.mean);
        let more = gained(found.map(|one| &one.goodput));
        let wait = self.wait().zip(self.wait_of(best)).map_or(String::new(), |(figure, ms)| {
            let title = metric::named(figure.name).map(metric::Metric::title).unwrap_or_default();
            let sooner = gained(found.and_then(|one| one.wait.as_ref()));
            format!("; its {title} is {ms:.0} ms{sooner}")
        });
        let none =
            " No arm surely carries 5 % more, or surely answers 50 ms and a third sooner with as much.";
        format!("It carries {kbps:.1} kbit/s{more}{wait}.{}", if found.is_none() { none } else { "" })
    }
}

#[cfg(test)]
mod tests;
