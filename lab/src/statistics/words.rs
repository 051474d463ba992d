//! The result of a comparison, as a sentence.

use crate::statistics::{ArmPair, ComparisonVerdict, Paired};

/// Number of looks at the blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LookSchedule {
    Once,
    AfterEveryBlock,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct ArmNames<'a> {
    pub(super) arm: &'a str,
    pub(super) against: &'a str,
}

/// The certainty of a comparison, and the means that it was made with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sure {
    pub(super) p_holm: Option<f64>,
    /// The number of blocks that would decide.
    pub(super) need: Option<usize>,
    /// The number of comparisons that were made at once.
    pub(super) comparisons: usize,
    pub(super) margin: f64,
    pub(super) looks: LookSchedule,
}

impl Sure {
    fn need(&self) -> String {
        self.need.map_or(String::new(), |need| format!("; about {need} would, were this the true ratio"))
    }
}

pub(super) fn sentence(found: &ArmPair<'_>, verdict: ComparisonVerdict, sure: &Sure) -> String {
    if !found.figure.is_goodput() {
        return of_figure(found, verdict, sure);
    }
    let (names, paired) = (found.names, &found.paired);
    let ArmNames { arm, against } = names;
    let Some(ratio) = paired.ratio else { return without_ratio(names, paired, verdict, sure.looks) };
    let known = known(paired, sure);
    match verdict {
        ComparisonVerdict::Faster | ComparisonVerdict::Better => {
            format!("{arm} is {} {against} ({known}).", more(ratio))
        }
        ComparisonVerdict::Slower | ComparisonVerdict::Worse => {
            format!("{arm} is {} slower than {against} ({known}).", percent(1.0 - ratio))
        }
        ComparisonVerdict::NoDifference => {
            let within = percent(sure.margin);
            format!("{arm} and {against} do not differ by more than {within}: {} ({known}).", change(ratio))
        }
        ComparisonVerdict::Undecided if paired.blocks == 1 => {
            format!("One block says nothing of chance: {arm} had {} against {against} in it.", change(ratio))
        }
        ComparisonVerdict::Undecided => {
            let (need, seen) = (sure.need(), change(ratio));
            format!(
                "{} blocks do not tell whether {arm} differs from {against}{need}: {seen} ({known}).",
                paired.blocks
            )
        }
    }
}

/// The sentence without a ratio: the baseline delivered nothing, there is no block, or a watched trial's block has no
/// ratio.
fn without_ratio(
    names: ArmNames<'_>,
    paired: &Paired,
    verdict: ComparisonVerdict,
    looks: LookSchedule,
) -> String {
    let ArmNames { arm, against } = names;
    match (verdict, looks, paired.blocks) {
        (_, _, 0) => format!("{arm} and {against} have no finished block in common."),
        (_, LookSchedule::AfterEveryBlock, _) => {
            format!(
                "In some block {arm} or {against} delivered nothing: looking at every block cannot decide."
            )
        }
        (ComparisonVerdict::Faster, ..) => {
            format!("{arm} delivered data and {against} none, in all of {}.", blocks(paired.blocks))
        }
        _ if paired.p.is_none() && paired.blocks > 1 => {
            format!("Neither {arm} nor {against} delivered anything.")
        }
        _ => format!("{against} delivered nothing, which leaves nothing to compare {arm} with."),
    }
}

/// Interval, blocks and p. The interval is one comparison's and p is corrected for all: whatever the verdict, that is
/// said where there are several.
fn known(paired: &Paired, sure: &Sure) -> String {
    let mut parts = Vec::new();
    if let Some([low, high]) = paired.ci95 {
        parts.push(format!("95 % interval {} to {}", change(low), change(high)));
    } else if paired.blocks > 1 {
        parts.push("interval without an end".to_owned());
    }
    parts.push(blocks(paired.blocks));
    if let Some(p) = sure.p_holm {
        parts.push(if p < 0.001 { "p < 0.001".to_owned() } else { format!("p = {p:.3}") });
    }
    if sure.looks == LookSchedule::AfterEveryBlock {
        parts.push("valid after every block".to_owned());
    }
    parts.join(", ") + &corrected(paired, sure)
}

fn corrected(paired: &Paired, sure: &Sure) -> String {
    match (sure.p_holm, paired.ci95, sure.comparisons) {
        (None, ..) | (_, _, ..=1) => String::new(),
        (Some(_), None, all) => format!(" after correcting for {all} comparisons"),
        (Some(_), Some(_), all) => {
            format!(" after correcting for {all} comparisons; the interval is not corrected")
        }
    }
}

fn blocks(count: usize) -> String {
    if count == 1 { "1 block".to_owned() } else { format!("{count} blocks") }
}

fn more(ratio: f64) -> String {
    if ratio >= 2.0 {
        return format!("{ratio:.2} times as fast as");
    }
    format!("{} faster than", percent(ratio - 1.0))
}

/// A share of 1 in percent, without a needless `.0`.
fn percent(share: f64) -> String {
    let tenths = format!("{:.1}", share * 100.0);
    format!("{} %", tenths.strip_suffix(".0").unwrap_or(&tenths))
}

/// A ratio as a gain or a loss.
pub fn change(ratio: f64) -> String {
    let tenths = format!("{:.1}", (ratio - 1.0).abs() * 100.0);
    let sign = if tenths == "0.0" {
        "±"
    } else if ratio < 1.0 {
        "−"
    } else {
        "+"
    };
    format!("{sign}{tenths} %")
}

/// The sentence about any figure but goodput.
fn of_figure(found: &ArmPair<'_>, verdict: ComparisonVerdict, sure: &Sure) -> String {
    let (ArmNames { arm, against }, name, paired) = (found.names, found.figure.name, &found.paired);
    let (Some(ratio), Some(means)) = (paired.ratio, found.means) else {
        return figure_without_ratio(found, verdict, sure.looks);
    };
    let known = known(paired, sure);
    let [of_arm, of_baseline] = means.map(|mean| found.figure.with_unit(mean));
    let instead = format!("{of_arm} instead of {of_baseline} in the mean");
    match verdict {
        ComparisonVerdict::Better
        | ComparisonVerdict::Worse
        | ComparisonVerdict::Faster
        | ComparisonVerdict::Slower => {
            format!("{arm} is {verdict} than {against} in {name}: {}, {instead} ({known}).", moved(ratio))
        }
        ComparisonVerdict::NoDifference => format!(
            "{arm} and {against} do not differ by more than {} in {name}: {}, {instead} ({known}).",
            percent(sure.margin),
            change(ratio)
        ),
        ComparisonVerdict::Undecided if paired.blocks == 1 => {
            format!(
                "One block says nothing of chance: {arm} had {of_arm} in {name} against {of_baseline} of {against}."
            )
        }
        ComparisonVerdict::Undecided => format!(
            "{} blocks do not tell whether {arm} differs from {against} in {name}{}: {}, {instead} ({known}).",
            paired.blocks,
            sure.need(),
            change(ratio)
        ),
    }
}

/// The sentence without a ratio: no block has the figure of both, or the baseline has nothing of it.
fn figure_without_ratio(found: &ArmPair<'_>, verdict: ComparisonVerdict, looks: LookSchedule) -> String {
    let (ArmNames { arm, against }, name, paired) = (found.names, found.figure.name, &found.paired);
    let all = blocks(paired.blocks);
    match (verdict, paired.blocks) {
        (_, 0) => format!("No block has {name} of both {arm} and {against}."),
        _ if looks == LookSchedule::AfterEveryBlock => {
            format!("In some block {name} of {arm} or {against} is 0: looking at every block cannot decide.")
        }
        (ComparisonVerdict::Better | ComparisonVerdict::Worse, _) => {
            format!("{arm} is {verdict} than {against} in {name}, which is 0 for {against} in all of {all}.")
        }
        _ if found.means == Some([0.0, 0.0]) => {
            format!("{name} of {arm} and {against} is 0 in all of {all}.")
        }
        _ => format!("{name} of {against} is 0, which leaves nothing to compare {arm} with."),
    }
}

/// A ratio as what an arm has more or less.
fn moved(ratio: f64) -> String {
    match ratio {
        large if large >= 2.0 => format!("{large:.2} times as much"),
        more if more >= 1.0 => format!("{} more", percent(more - 1.0)),
        less => format!("{} less", percent(1.0 - less)),
    }
}
