//! The result of a comparison, as a sentence.

use super::{Found, Paired, Verdict};

mod figure;

/// Number of looks at the blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Looks {
    Once,
    AfterEveryBlock,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Names<'a> {
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
    pub(super) looks: Looks,
}

impl Sure {
    fn need(&self) -> String {
        self.need.map_or(String::new(), |need| format!("; about {need} would, were this the true ratio"))
    }
}

pub(super) fn sentence(found: &Found<'_>, verdict: Verdict, sure: &Sure) -> String {
    if !found.figure.is_goodput() {
        return figure::sentence(found, verdict, sure);
    }
    let (names, paired) = (found.names, &found.paired);
    let Names { arm, against } = names;
    let Some(ratio) = paired.ratio else { return without_ratio(names, paired, verdict, sure.looks) };
    let known = known(paired, sure);
    match verdict {
        Verdict::Faster | Verdict::Better => format!("{arm} is {} {against} ({known}).", more(ratio)),
        Verdict::Slower | Verdict::Worse => {
            format!("{arm} is {} slower than {against} ({known}).", percent(1.0 - ratio))
        }
        Verdict::NoDifference => {
            let within = percent(sure.margin);
            format!("{arm} and {against} do not differ by more than {within}: {} ({known}).", change(ratio))
        }
        Verdict::Undecided if paired.blocks == 1 => {
            format!("One block says nothing of chance: {arm} had {} against {against} in it.", change(ratio))
        }
        Verdict::Undecided => {
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
fn without_ratio(names: Names<'_>, paired: &Paired, verdict: Verdict, looks: Looks) -> String {
    let Names { arm, against } = names;
    match (verdict, looks, paired.blocks) {
        (_, _, 0) => format!("{arm} and {against} have no finished block in common."),
        (_, Looks::AfterEveryBlock, _) => {
            format!(
                "In some block {arm} or {against} delivered nothing: looking at every block cannot decide."
            )
        }
        (Verdict::Faster, ..) => {
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
    if sure.looks == Looks::AfterEveryBlock {
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
