//! The table of claims: its rows, their words for people, and their form as CSV.

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
    /// A line for each combination of the open settings; at least one.
    pub lines: Vec<ReadingLine>,
    /// Their joint result.
    pub verdict: JointVerdict,
}

/// A claim's result in one reading of its paper.
#[derive(Clone, Debug)]
pub struct ReadingLine {
    /// The open settings with their values, in words; empty if nothing is open.
    pub reading: String,
    /// The measured number, in words.
    pub measured: String,
    /// The same as a number.
    pub number: MeasuredClaim,
    /// The result.
    pub outcome: ClaimOutcome,
    /// The reason for it, in words.
    pub why: String,
    /// The value of what the statement rests on.
    pub premise: Option<f64>,
}

impl ReadingLine {
    /// The line of a reading; `measured` is its number in words.
    pub fn new(reading: &Reading, measured: String) -> ReadingLine {
        let judged = &reading.judged;
        ReadingLine {
            reading: reading.name(),
            measured,
            number: judged.measured,
            outcome: judged.outcome,
            why: judged.why.clone(),
            premise: reading.premise,
        }
    }
}

impl Under {
    /// The results of these readings.
    pub fn new(rules: &'static str, readings: &[Reading], lines: Vec<ReadingLine>) -> Under {
        Under { rules, lines, verdict: JointVerdict::of(readings) }
    }

    /// The measured number, or the range of all readings.
    pub fn measured(&self) -> String {
        let known = || self.lines.iter().filter(|line| line.number.number.is_some());
        let by_number = |a: &&ReadingLine, b: &&ReadingLine| {
            let number = |line: &ReadingLine| line.number.number.unwrap_or_default();
            number(a).total_cmp(&number(b))
        };
        let (least, most) = (known().min_by(by_number), known().max_by(by_number));
        match (&self.lines[..], least, most) {
            ([only], ..) => only.measured.clone(),
            (lines, Some(least), Some(most)) => {
                format!("{} … {} in {} readings", least.measured, most.measured, lines.len())
            }
            _ => "nothing".to_owned(),
        }
    }

    /// The reason of the verdict: the only reading's reason, or the number of readings with each result.
    pub fn why(&self) -> String {
        if let [only] = &self.lines[..] {
            return only.why.clone();
        }
        let first = self.lines.first().map(|line| line.outcome);
        if self.lines.iter().all(|line| Some(line.outcome) == first) {
            return format!("in each of {} readings", self.lines.len());
        }
        let outcomes = [ClaimOutcome::Reproduced, ClaimOutcome::NotReproduced, ClaimOutcome::Contradicted];
        let count = |outcome| self.lines.iter().filter(|line| line.outcome == outcome).count();
        let counted = outcomes.into_iter().map(|outcome| (outcome, count(outcome)));
        let parts =
            counted.filter(|(_, count)| *count > 0).map(|(outcome, count)| format!("{count} {outcome}"));
        parts.collect::<Vec<_>>().join(", ")
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
        for (under, line) in
            row.results.iter().flat_map(|under| under.lines.iter().map(move |line| (under, line)))
        {
            let [low, high] = line.number.ci95.map_or([None; 2], |ends| ends.map(Some));
            let texts = [&row.paper, &row.figure, &row.says].map(|text| quoted(text));
            let _ = writeln!(
                text,
                "{},{},{},{},{},{},{},{},{},{},{},{},{}",
                texts.join(","),
                row.ours,
                quoted(&row.claimed),
                number(stated),
                quoted(under.rules),
                quoted(&line.reading),
                number(line.number.number),
                number(low),
                number(high),
                line.number.blocks,
                line.outcome,
                quoted(&line.why),
                number(line.premise)
            );
        }
    }
    text
}

/// Number of rows of papers by verdict, under their own rules, which stand first: reproduced, reproduced in part, not
/// reproduced, contradicted.
pub fn counts(rows: &[ClaimRow]) -> [usize; 4] {
    sum(rows.iter().filter(|row| !row.ours).filter_map(|row| row.results.first()))
}

/// The same under the rules of that name.
pub fn counts_under(rows: &[ClaimRow], rules: &str) -> [usize; 4] {
    let of_papers = rows.iter().filter(|row| !row.ours);
    sum(of_papers.filter_map(|row| row.results.iter().find(|under| under.rules == rules)))
}

fn sum<'a>(all: impl Iterator<Item = &'a Under>) -> [usize; 4] {
    let mut counts = [0; 4];
    for under in all {
        let place = match under.verdict {
            JointVerdict::Reproduced => 0,
            JointVerdict::ReproducedWhere(_) => 1,
            JointVerdict::NotReproduced => 2,
            JointVerdict::Contradicted => 3,
        };
        counts[place] += 1;
    }
    counts
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
pub fn resting_on(claim: &Claim, reading: &Reading) -> String {
    let words = rests_on(claim).zip(reading.premise);
    words.map_or(String::new(), |(on, value)| format!(" at {} {on}", plain(value)))
}

/// A value of a measure: small ones have decimals.
fn plain(value: f64) -> String {
    if value >= 10.0 || value == 0.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}
