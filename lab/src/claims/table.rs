//! The table of claims: its rows, their words for people, and their form as CSV.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::claims::{ClaimOutcome, JointVerdict, Judged, MeasuredClaim, Reading};
use crate::findings::label;
use crate::record::quoted;
use crate::scenario::{Bound, Claim, PointCombination, Premise, Stated, point};
use crate::statistics::change;

/// A claim with its results under all rules that it was run under.
#[derive(Clone, Debug)]
pub struct ClaimRow {
    /// Name of the paper's folder.
    pub paper: String,
    /// Title of the file.
    pub title: String,
    /// Figure of the paper, or the title of its file.
    pub figure: String,
    /// The statement.
    pub says: String,
    /// Remark on it.
    pub note: Option<String>,
    /// No paper makes this statement: it is not counted.
    pub ours: bool,
    /// The stated number, in words.
    pub claimed: String,
    /// The stated number; none for a paper's own arithmetic.
    pub stated: Option<Stated>,
    /// The premise of the statement, in words.
    pub premise: Option<String>,
    /// The results, the paper's own rules first.
    pub results: Vec<Under>,
}

/// A claim's results under one set of rules.
#[derive(Clone, Debug)]
pub struct Under {
    /// Name of the rules.
    pub rules: &'static str,
    /// The result under each combination of the open settings; at least one.
    pub readings: Vec<Reading>,
    /// Their joint result.
    pub verdict: JointVerdict,
}

impl Under {
    /// The results of these readings.
    pub fn new(rules: &'static str, readings: Vec<Reading>) -> Under {
        Under { rules, verdict: JointVerdict::of(&readings), readings }
    }

    /// The measured number, or the range of all readings.
    pub fn measured(&self) -> String {
        let number = |reading: &Reading| reading.judged.measured.number;
        let known = || self.readings.iter().filter_map(|reading| Some((number(reading)?, reading)));
        let least = known().min_by(|(a, _), (b, _)| a.total_cmp(b));
        let most = known().max_by(|(a, _), (b, _)| a.total_cmp(b));
        match (&self.readings[..], least, most) {
            ([only], ..) => only.measured.clone(),
            (all, Some((_, least)), Some((_, most))) => {
                format!("{} … {} in {} readings", least.measured, most.measured, all.len())
            }
            _ => "nothing".to_owned(),
        }
    }

    /// The number of seeds behind a reading, or the least and the largest; none where nothing was run.
    pub fn seeds(&self) -> Option<String> {
        let blocks = || self.readings.iter().map(|reading| reading.judged.measured.blocks);
        let (least, most) = (blocks().min().filter(|least| *least > 0)?, blocks().max()?);
        Some(if least == most { least.to_string() } else { format!("{least} to {most}") })
    }

    /// The reason of the verdict: the only reading's reason, or the number of readings with each result.
    pub fn why(&self) -> String {
        if let [only] = &self.readings[..] {
            return only.judged.why.clone();
        }
        let mut counts = BTreeMap::new();
        self.readings.iter().for_each(|reading| *counts.entry(reading.judged.outcome).or_insert(0) += 1);
        match counts.len() {
            1 => format!("in each of {} readings", self.readings.len()),
            _ => counts.iter().map(|(of, count)| format!("{count} {of}")).collect::<Vec<_>>().join(", "),
        }
    }
}

/// All readings of all rows: a line for each.
pub fn csv(rows: &[ClaimRow]) -> String {
    let mut text =
        "paper,figure,says,ours,claimed,stated,rules,reading,measured,low,high,blocks,outcome,why,premise\n"
            .to_owned();
    let number = |number: Option<f64>| number.map_or(String::new(), |number| number.to_string());
    for row in rows {
        let stated = row.stated.map(|(Stated::Ratio(stated) | Stated::Value(stated))| stated);
        for (under, reading) in
            row.results.iter().flat_map(|under| under.readings.iter().map(move |of| (under, of)))
        {
            let Judged { outcome, why, measured: MeasuredClaim { number: of, ci95, blocks }, .. } =
                &reading.judged;
            let [low, high] = ci95.map_or([None; 2], |ends| ends.map(Some));
            let texts = [&row.paper, &row.figure, &row.says].map(|text| quoted(text));
            let _ = writeln!(
                text,
                "{},{},{},{},{},{},{},{},{},{},{},{},{}",
                texts.join(","),
                row.ours,
                quoted(&row.claimed),
                number(stated),
                quoted(under.rules),
                quoted(&reading.name()),
                number(*of),
                number(low),
                number(high),
                blocks,
                outcome,
                quoted(why),
                number(reading.premise)
            );
        }
    }
    text
}

/// Number of rows of papers by verdict, under the rules of that name or under their own, which stand first: reproduced,
/// reproduced in part, undecided, not reproduced, contradicted.
pub fn counts(rows: &[ClaimRow], rules: Option<&str>) -> [usize; 5] {
    let mut counts = [0; 5];
    for row in rows.iter().filter(|row| !row.ours) {
        let mut all = row.results.iter();
        let place =
            match all.find(|under| rules.is_none_or(|rules| under.rules == rules)).map(|of| &of.verdict) {
                None => continue,
                Some(JointVerdict::Reproduced) => 0,
                Some(JointVerdict::ReproducedWhere(..)) => 1,
                Some(JointVerdict::Undecided) => 2,
                Some(JointVerdict::NotReproduced) => 3,
                Some(JointVerdict::Contradicted) => 4,
            };
        counts[place] += 1;
    }
    counts
}

/// The largest number of a paper's claims in a figure that one reading holds together, under the paper's own rules, and
/// the readings that do. In words; none if no paper claims anything in it.
pub fn jointly(rows: &[ClaimRow]) -> Option<String> {
    let all: Vec<&Under> =
        rows.iter().filter(|row| !row.ours).filter_map(|row| row.results.first()).collect();
    let names: Vec<String> = all.first()?.readings.iter().map(Reading::name).collect();
    let mut held: BTreeMap<String, usize> = BTreeMap::new();
    for reading in all.iter().flat_map(|under| &under.readings) {
        *held.entry(reading.name()).or_default() +=
            usize::from(reading.judged.outcome == ClaimOutcome::Reproduced);
    }
    let most = names.iter().map(|name| held[name]).max()?;
    let best: Vec<&String> = names.iter().filter(|name| held[*name] == most).collect();
    let place = match &best[..] {
        _ if most == 0 || names.len() == 1 => String::new(),
        [only] => format!(", in the reading: {only}"),
        all => format!(", in {} readings, such as: {}", all.len(), all[0]),
    };
    Some(format!("jointly {most} of {} claims hold{place}", all.len()))
}

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
        PointCombination::Mean => "",
        PointCombination::Most => "up to ",
        PointCombination::Least => "from ",
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
pub(super) fn resting_on(claim: &Claim, premise: Option<f64>) -> String {
    let words = rests_on(claim).zip(premise);
    words.map_or(String::new(), |(on, value)| format!(" at {} {on}", plain(value)))
}

/// A value of a measure: small ones have decimals.
fn plain(value: f64) -> String {
    if value >= 10.0 || value == 0.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}
