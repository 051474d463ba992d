//! Claims and what was measured of them, in words for people.

use super::{Judged, Reading};
use crate::findings::label;
use crate::scenario::{Bound, Claim, Over, Premise, Stated, point};
use crate::statistics::change;

/// Text of the claim, for people.
pub fn claimed(claim: &Claim) -> String {
    format!("{}{}", number(claim), per(claim))
}

/// The points by whose ratio a claim divides, in words; empty if it divides by none.
fn per(claim: &Claim) -> String {
    let path = |(path, values): (&String, &Vec<_>)| {
        format!("{path} = {}", values.iter().map(point::plain).collect::<Vec<_>>().join(" or "))
    };
    let paths: Vec<String> = claim.per_at.iter().map(path).collect();
    if paths.is_empty() { String::new() } else { format!(" over the ratio at {}", paths.join(", ")) }
}

fn number(claim: &Claim) -> String {
    let bound = match (claim.bound, claim.stated()) {
        (Bound::About, Stated::Ratio(1.0)) => return "the same".to_owned(),
        (Bound::AtLeast, Stated::Ratio(1.0)) => return "no less".to_owned(),
        (Bound::AtMost, Stated::Ratio(1.0)) => return "no more".to_owned(),
        (Bound::About, _) => "",
        (Bound::AtLeast, _) => "at least ",
        (Bound::AtMost, _) => "at most ",
    };
    let most = match claim.over {
        Over::Mean => "",
        Over::Most => "up to ",
        Over::Least => "from ",
    };
    let stated = match claim.stated() {
        Stated::Ratio(ratio) => change(ratio),
        Stated::Value(value) => format!("{} {}", plain(value), claim.measure.unit()),
    };
    format!("{most}{bound}{stated}")
}

/// Text of the measured number, for people.
pub fn measured(claim: &Claim, judged: &Judged) -> String {
    let Some(number) = judged.measured.number else { return "nothing".to_owned() };
    let (text, unit): (fn(f64) -> String, _) = match claim.stated() {
        Stated::Ratio(_) => (change, String::new()),
        Stated::Value(_) => (plain, format!(" {}", claim.measure.unit())),
    };
    let ends = judged.measured.ci95;
    let ends = ends.map_or(String::new(), |[low, high]| format!(" ({} to {})", text(low), text(high)));
    let at = judged.point.as_ref().filter(|point| !point.is_empty());
    let at = at.map_or(String::new(), |point| format!(" at {}", label(point)));
    format!("{}{unit}{ends}{at}", text(number))
}

/// The premise of the claim in words, without its value; none if it has no premise.
pub fn rests_on(claim: &Claim) -> Option<String> {
    claim.premise.as_ref().map(|Premise { arm, measure }| format!("{} of {arm}", measure.unit()))
}

/// The same with its value, to follow a measured number.
pub fn resting_on(claim: &Claim, reading: &Reading) -> String {
    let words = rests_on(claim).zip(reading.premise);
    words.map_or(String::new(), |(on, value)| format!(" at {} {on}", plain(value)))
}

/// A value of a measure: small ones have decimals.
fn plain(value: f64) -> String {
    if value >= 10.0 || value == 0.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}
