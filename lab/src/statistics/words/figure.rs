//! The result of a comparison in any figure but goodput, as a sentence.

use super::{Found, Looks, Names, Sure, Verdict, blocks, change, known, percent};

pub(super) fn sentence(found: &Found<'_>, verdict: Verdict, sure: &Sure) -> String {
    let (Names { arm, against }, name, paired) = (found.names, found.figure.name, &found.paired);
    let (Some(ratio), Some(means)) = (paired.ratio, found.means) else {
        return without_ratio(found, verdict, sure.looks);
    };
    let known = known(paired, sure);
    let [of_arm, of_baseline] = means.map(|mean| found.figure.with_unit(mean));
    let instead = format!("{of_arm} instead of {of_baseline} in the mean");
    match verdict {
        Verdict::Better | Verdict::Worse | Verdict::Faster | Verdict::Slower => {
            format!("{arm} is {verdict} than {against} in {name}: {}, {instead} ({known}).", moved(ratio))
        }
        Verdict::NoDifference => format!(
            "{arm} and {against} do not differ by more than {} in {name}: {}, {instead} ({known}).",
            percent(sure.margin),
            change(ratio)
        ),
        Verdict::Undecided if paired.blocks == 1 => {
            format!(
                "One block says nothing of chance: {arm} had {of_arm} in {name} against {of_baseline} of {against}."
            )
        }
        Verdict::Undecided => format!(
            "{} blocks do not tell whether {arm} differs from {against} in {name}{}: {}, {instead} ({known}).",
            paired.blocks,
            sure.need(),
            change(ratio)
        ),
    }
}

/// The sentence without a ratio: no block has the figure of both, or the baseline has nothing of it.
fn without_ratio(found: &Found<'_>, verdict: Verdict, looks: Looks) -> String {
    let (Names { arm, against }, name, paired) = (found.names, found.figure.name, &found.paired);
    let all = blocks(paired.blocks);
    match (verdict, paired.blocks) {
        (_, 0) => format!("No block has {name} of both {arm} and {against}."),
        _ if looks == Looks::AfterEveryBlock => {
            format!("In some block {name} of {arm} or {against} is 0: looking at every block cannot decide.")
        }
        (Verdict::Better | Verdict::Worse, _) => {
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
