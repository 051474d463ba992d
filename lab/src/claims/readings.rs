//! A claim under each combination of the settings that its paper leaves open, and what all of them say together.
//!
//! A claim is reproduced everywhere, or only under some of them, which are then counted and named. It is contradicted
//! only if it is contradicted under all of them: one choice of ours may not accuse a paper.

use super::table::{measured, resting_on};
use super::{ClaimOutcome, Judged, judge, premise};
use crate::record::Record;
use crate::scenario::Claim;
use crate::scenario::point::{MatrixPoint, plain};

/// A claim under one combination of the open settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// The open settings with their values; empty if nothing is open.
    pub open: MatrixPoint,
    /// The same in words: what was chosen, and its name.
    pub choices: Vec<ReadingChoice>,
    /// The claim's result.
    pub judged: Judged,
    /// The measured number in words, with that of the premise.
    pub measured: String,
    /// Value of what the claim rests on, if it names that.
    pub premise: Option<f64>,
}

/// One choice of a reading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadingChoice {
    /// The paths that it is about.
    about: String,
    /// The words for it.
    words: String,
}

impl Reading {
    /// The name of the reading; empty if nothing is open.
    pub fn name(&self) -> String {
        self.choices.iter().map(|choice| choice.words.as_str()).collect::<Vec<_>>().join(", ")
    }

    fn chose(&self, about: &str) -> Option<&str> {
        self.choices.iter().find(|choice| choice.about == about).map(|choice| choice.words.as_str())
    }
}

/// Words for all open settings: the names that fit, and path and value of what no name covers.
pub fn choices(open: &MatrixPoint, names: &[(String, MatrixPoint)]) -> Vec<ReadingChoice> {
    let mut left = open.clone();
    let mut choices = Vec::new();
    for (name, values) in names {
        if values.iter().all(|(path, value)| left.get(path) == Some(value)) {
            left.retain(|path, _| !values.contains_key(path));
            let about = values.keys().cloned().collect::<Vec<_>>().join(" ");
            choices.push(ReadingChoice { about, words: name.clone() });
        }
    }
    let plain = |(path, value): (&String, _)| ReadingChoice {
        about: path.clone(),
        words: format!("{path} = {}", plain(value)),
    };
    choices.extend(left.iter().map(plain));
    choices
}

/// A claim under each combination of the settings at the `open` paths, in the order of the records. `names` names
/// values at these paths.
pub fn readings(
    claim: &Claim,
    baseline: &str,
    records: &[Record],
    (open, names): (&[String], &[(String, MatrixPoint)]),
) -> Vec<Reading> {
    let part = |point: &MatrixPoint, is_open: bool| {
        let mut part = point.clone();
        part.retain(|path, _| open.contains(path) == is_open);
        part
    };
    let mut all: Vec<(MatrixPoint, Vec<&Record>)> = Vec::new();
    for record in records {
        let own = part(&record.point, true);
        let is_left_out =
            own.iter().any(|(path, value)| claim.at.get(path).is_some_and(|meant| !meant.contains(value)));
        match all.iter_mut().find(|(point, _)| *point == own) {
            _ if is_left_out => {}
            Some((_, of)) => of.push(record),
            None => all.push((own, vec![record])),
        }
    }
    let reading = |(open, records): (MatrixPoint, Vec<&Record>)| {
        let mut judged = judge(claim, baseline, &records);
        judged.point = judged.point.map(|point| part(&point, false));
        let premise = premise(claim, &records);
        let measured = measured(claim, &judged) + &resting_on(claim, premise);
        Reading { choices: choices(&open, names), open, judged, measured, premise }
    };
    all.into_iter().map(reading).collect()
}

/// Joint result of all readings of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JointVerdict {
    /// Reproduced under all of them.
    Reproduced,
    /// Reproduced under some of them: their number, and the place in words.
    ReproducedWhere(usize, String),
    /// Reproduced under none of them, and undecided under some.
    Undecided,
    /// Reproduced and undecided under none of them, and not contradicted under all.
    NotReproduced,
    /// Contradicted under all of them.
    Contradicted,
}

impl JointVerdict {
    /// The verdict of a claim's readings; without any, nothing is reproduced.
    pub fn of(readings: &[Reading]) -> JointVerdict {
        let are = |outcome| readings.iter().filter(|reading| reading.judged.outcome == outcome).count();
        match (are(ClaimOutcome::Reproduced), are(ClaimOutcome::Contradicted), readings.len()) {
            (.., 0) => JointVerdict::NotReproduced,
            (reproduced, _, all) if reproduced == all => JointVerdict::Reproduced,
            (_, contradicted, all) if contradicted == all => JointVerdict::Contradicted,
            (0, ..) if are(ClaimOutcome::Undecided) > 0 => JointVerdict::Undecided,
            (0, ..) => JointVerdict::NotReproduced,
            (reproduced, ..) => JointVerdict::ReproducedWhere(reproduced, place(readings)),
        }
    }

    /// The verdict in words, with the reach that it has if there are several readings.
    pub fn in_words(&self, readings: usize) -> String {
        let reach = if readings > 1 { " everywhere" } else { "" };
        match self {
            JointVerdict::Reproduced => format!("reproduced{reach}"),
            JointVerdict::ReproducedWhere(some, place) => {
                format!("reproduced in {some} of {readings} readings, where {place}")
            }
            JointVerdict::Undecided => "undecided".to_owned(),
            JointVerdict::NotReproduced => "not reproduced".to_owned(),
            JointVerdict::Contradicted => format!("contradicted{reach}"),
        }
    }
}

/// The readings under which a claim is reproduced, by the fewest choices that tell them from all other readings.
fn place(readings: &[Reading]) -> String {
    let is_met = |reading: &&Reading| reading.judged.outcome == ClaimOutcome::Reproduced;
    let mut left: Vec<&Reading> = readings.iter().filter(is_met).collect();
    let mut groups = Vec::new();
    while let Some(first) = left.first() {
        let group = ReadingGroup::around(first, readings);
        left.retain(|reading| !group.has(reading));
        groups.push(group.words(readings));
    }
    groups.join("; or ")
}

/// Readings by their choices. A reading belongs to the group if it has one of the words of each pair, about the pair's
/// subject.
struct ReadingGroup<'a>(Vec<(&'a str, Vec<&'a str>)>);

impl<'a> ReadingGroup<'a> {
    /// The largest group around a reading in which the claim is reproduced throughout.
    fn around(first: &'a Reading, readings: &'a [Reading]) -> ReadingGroup<'a> {
        let own = |choice: &'a ReadingChoice| (choice.about.as_str(), vec![choice.words.as_str()]);
        let mut group = ReadingGroup(first.choices.iter().map(own).collect());
        // Choices that do not matter are left out, from the last one on; the remaining ones may have further values.
        for nth in (0..group.0.len()).rev() {
            let one = group.0.remove(nth);
            if group.0.is_empty() || !group.is_met(readings) {
                group.0.insert(nth, one);
            }
        }
        for nth in 0..group.0.len() {
            let about = group.0[nth].0;
            for words in readings.iter().filter_map(|reading| reading.chose(about)) {
                if !group.0[nth].1.contains(&words) {
                    group.0[nth].1.push(words);
                    if !group.is_met(readings) {
                        group.0[nth].1.pop();
                    }
                }
            }
        }
        group
    }

    fn has(&self, reading: &Reading) -> bool {
        self.0.iter().all(|(about, all)| reading.chose(about).is_some_and(|words| all.contains(&words)))
    }

    fn is_met(&self, readings: &[Reading]) -> bool {
        readings
            .iter()
            .filter(|r| self.has(r))
            .all(|reading| reading.judged.outcome == ClaimOutcome::Reproduced)
    }

    fn words(&self, readings: &[Reading]) -> String {
        let either = |(_, all): &(&str, Vec<&str>)| {
            let all: Vec<_> = all.iter().map(|words| whole(words, readings)).collect();
            let is_one_of_several = all.len() > 1 && self.0.len() > 1;
            if is_one_of_several { format!("({})", all.join(" or ")) } else { all.join(" or ") }
        };
        self.0.iter().map(either).collect::<Vec<_>>().join(" and ")
    }
}

/// A name as one whole. It is in quotes if it has a comma, or if a longer name begins with it: a reader would take it
/// for both.
fn whole(words: &str, readings: &[Reading]) -> String {
    let goes_on = |other: &ReadingChoice| {
        other.words.strip_prefix(words).is_some_and(|more| more.starts_with([' ', ',', ';', ':']))
    };
    let mut others = readings.iter().flat_map(|reading| &reading.choices);
    if words.contains(',') || others.any(goes_on) { format!("\"{words}\"") } else { words.to_owned() }
}
