//! The table of claims: its rows, and their form as CSV.

use std::fmt::Write as _;

use super::{Measured, Outcome, Reading, Verdict};
use crate::csv::quoted;
use crate::scenario::Stated;

/// A claim with its results under all rules that it was run under.
#[derive(Clone, Debug)]
pub struct Row {
    /// Name of the paper's folder.
    pub paper: String,
    /// Title of the file.
    pub title: String,
    /// Figure of the paper, or the title of its file.
    pub figure: String,
    /// The statement.
    pub says: String,
    /// Remark beside it.
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
    pub lines: Vec<Line>,
    /// Their joint result.
    pub verdict: Verdict,
}

/// A claim's result in one reading of its paper.
#[derive(Clone, Debug)]
pub struct Line {
    /// The open settings with their values, in words; empty if nothing is open.
    pub reading: String,
    /// The measured number, in words.
    pub measured: String,
    /// The same as a number.
    pub number: Measured,
    /// The result.
    pub outcome: Outcome,
    /// The reason for it, in words.
    pub why: String,
    /// The value of what the statement rests on.
    pub premise: Option<f64>,
}

impl Line {
    /// The line of a reading; `measured` is its number in words.
    pub fn new(reading: &Reading, measured: String) -> Line {
        let judged = &reading.judged;
        Line {
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
    pub fn new(rules: &'static str, readings: &[Reading], lines: Vec<Line>) -> Under {
        Under { rules, lines, verdict: Verdict::of(readings) }
    }

    /// The measured number, or the range of all readings.
    pub fn measured(&self) -> String {
        let known = || self.lines.iter().filter(|line| line.number.number.is_some());
        let by_number = |a: &&Line, b: &&Line| {
            let number = |line: &Line| line.number.number.unwrap_or_default();
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

    /// The reason of the verdict: that of the only reading, or how many of all have each result.
    pub fn why(&self) -> String {
        if let [only] = &self.lines[..] {
            return only.why.clone();
        }
        let first = self.lines.first().map(|line| line.outcome);
        if self.lines.iter().all(|line| Some(line.outcome) == first) {
            return format!("in each of {} readings", self.lines.len());
        }
        let outcomes = [Outcome::Reproduced, Outcome::NotReproduced, Outcome::Contradicted];
        let count = |outcome| self.lines.iter().filter(|line| line.outcome == outcome).count();
        let counted = outcomes.into_iter().map(|outcome| (outcome, count(outcome)));
        let parts =
            counted.filter(|(_, count)| *count > 0).map(|(outcome, count)| format!("{count} {outcome}"));
        parts.collect::<Vec<_>>().join(", ")
    }
}

/// All readings of all rows: a line for each.
pub fn csv(rows: &[Row]) -> String {
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
pub fn counts(rows: &[Row]) -> [usize; 4] {
    sum(rows.iter().filter(|row| !row.ours).filter_map(|row| row.results.first()))
}

/// The same under the rules of that name.
pub fn counts_under(rows: &[Row], rules: &str) -> [usize; 4] {
    let of_papers = rows.iter().filter(|row| !row.ours);
    sum(of_papers.filter_map(|row| row.results.iter().find(|under| under.rules == rules)))
}

fn sum<'a>(all: impl Iterator<Item = &'a Under>) -> [usize; 4] {
    let mut counts = [0; 4];
    for under in all {
        let place = match under.verdict {
            Verdict::Reproduced => 0,
            Verdict::ReproducedWhere(_) => 1,
            Verdict::NotReproduced => 2,
            Verdict::Contradicted => 3,
        };
        counts[place] += 1;
    }
    counts
}
