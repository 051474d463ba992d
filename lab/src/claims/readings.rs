//! A claim under each combination of the settings that its paper leaves open, and what all of them say together.
//!
//! A claim is reproduced everywhere, or only under some of them, which are then named. It is contradicted only if it is
//! contradicted under all of them: one choice of ours may not accuse a paper.

use super::{Judged, Outcome, judge_among, premise};
use crate::findings::label;
use crate::record::Record;
use crate::scenario::Claim;
use crate::scenario::point::{Point, plain};

/// A claim under one combination of the open settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// The open settings with their values; empty if nothing is open.
    pub open: Point,
    /// The claim's result.
    pub judged: Judged,
    /// Value of what the claim rests on, if it names that.
    pub premise: Option<f64>,
}

/// A claim under each combination of the settings at the `open` paths, in the order of the records.
pub fn readings(claim: &Claim, baseline: &str, records: &[Record], open: &[String]) -> Vec<Reading> {
    let part = |point: &Point, is_open: bool| {
        let mut part = point.clone();
        part.retain(|path, _| open.contains(path) == is_open);
        part
    };
    let mut all: Vec<(Point, Vec<&Record>)> = Vec::new();
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
    let reading = |(open, records): (Point, Vec<&Record>)| {
        let mut judged = judge_among(claim, baseline, &records);
        judged.point = judged.point.map(|point| part(&point, false));
        Reading { open, judged, premise: premise(claim, &records) }
    };
    all.into_iter().map(reading).collect()
}

/// Joint result of all readings of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Reproduced under all of them.
    Reproduced,
    /// Reproduced under some of them, in words.
    ReproducedWhere(String),
    /// Reproduced under none of them, and not contradicted under all.
    NotReproduced,
    /// Contradicted under all of them.
    Contradicted,
}

impl Verdict {
    /// The verdict of a claim's readings; without any, nothing is reproduced.
    pub fn of(readings: &[Reading]) -> Verdict {
        let are = |outcome| readings.iter().filter(|reading| reading.judged.outcome == outcome).count();
        match (are(Outcome::Reproduced), are(Outcome::Contradicted), readings.len()) {
            (.., 0) => Verdict::NotReproduced,
            (reproduced, _, all) if reproduced == all => Verdict::Reproduced,
            (_, contradicted, all) if contradicted == all => Verdict::Contradicted,
            (0, ..) => Verdict::NotReproduced,
            _ => Verdict::ReproducedWhere(place(readings)),
        }
    }

    /// The verdict in words, with the reach that it has if there are several readings.
    pub fn in_words(&self, readings: usize) -> String {
        let reach = if readings > 1 { " everywhere" } else { "" };
        match self {
            Verdict::Reproduced => format!("reproduced{reach}"),
            Verdict::ReproducedWhere(place) => format!("reproduced where {place}"),
            Verdict::NotReproduced => "not reproduced".to_owned(),
            Verdict::Contradicted => format!("contradicted{reach}"),
        }
    }
}

impl From<Outcome> for Verdict {
    fn from(outcome: Outcome) -> Verdict {
        match outcome {
            Outcome::Reproduced => Verdict::Reproduced,
            Outcome::NotReproduced => Verdict::NotReproduced,
            Outcome::Contradicted => Verdict::Contradicted,
        }
    }
}

/// The most readings that are named one by one.
const MOST_NAMED: usize = 3;

/// The settings under which a claim is reproduced: by path, if each path by itself decides, else reading by reading.
fn place(readings: &[Reading]) -> String {
    let is_met = |reading: &Reading| reading.judged.outcome == Outcome::Reproduced;
    let met: Vec<&Reading> = readings.iter().filter(|reading| is_met(reading)).collect();
    let values = |of: &mut dyn Iterator<Item = &Reading>, path: &str| {
        let mut values = Vec::new();
        for value in of.filter_map(|reading| reading.open.get(path)) {
            if !values.contains(value) {
                values.push(value.clone());
            }
        }
        values
    };
    let paths: Vec<&String> = readings.iter().take(1).flat_map(|reading| reading.open.keys()).collect();
    let by_path: Vec<_> = paths.iter().map(|path| (*path, values(&mut met.iter().copied(), path))).collect();
    let is_inside = |reading: &&Reading| {
        by_path.iter().all(|(path, values)| reading.open.get(*path).is_some_and(|own| values.contains(own)))
    };
    if readings.iter().filter(is_inside).count() == met.len() {
        let deciding =
            by_path.iter().filter(|(path, of)| of.len() < values(&mut readings.iter(), path).len());
        let part = |(path, values): &(&String, Vec<_>)| {
            format!("{path} = {}", values.iter().map(plain).collect::<Vec<_>>().join(" or "))
        };
        return deciding.map(part).collect::<Vec<_>>().join(" and ");
    }
    let (met_count, all) = (met.len(), readings.len());
    if met_count > MOST_NAMED {
        return format!("one of {met_count} readings of {all} is taken");
    }
    let named: Vec<String> = met.iter().map(|reading| label(&reading.open)).collect();
    format!("{} ({met_count} of {all} readings)", named.join("; or "))
}
