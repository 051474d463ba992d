//! A scenario with values set over it, in the readings that leave them to the file alone: `hopwise claims --radio`.
//!
//! A reading that sets such a value itself would no longer be its paper's, so it is left out. One that only repeats the
//! file's own value stays.

use std::sync::Arc;
use std::time::Duration;

use crate::located::Checked;
use crate::scenario::Scenario;
use crate::scenario::check::{is_within, keys, varies_beside_sweep};
use crate::scenario::matrix::{self, MatrixCell};
use crate::scenario::point::MatrixPoint;
use crate::scenario::schema::{ScenarioFile, Shape};

/// A scenario with values set over it.
#[derive(Debug)]
pub struct Replaced {
    /// The scenario with its readings that are left; none if there are none.
    pub scenario: Option<Scenario>,
    /// The file's own values that are replaced, by their paths.
    pub values: MatrixPoint,
    /// The readings that are left out.
    pub left_out: LeftOut,
}

/// Readings that set a value themselves, and are therefore not run with a new value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// The number of these readings.
    pub readings: usize,
    /// The number of all readings of the file.
    pub of: usize,
    /// The paths that they set.
    pub paths: Vec<String>,
}

/// The readings that are left, without the paths that are set, and the names of their values.
#[derive(Debug)]
pub(super) struct Readings {
    points: Vec<MatrixPoint>,
    pub(super) names: Vec<(String, MatrixPoint)>,
}

impl Readings {
    fn of(left: &[&MatrixCell], mut names: Vec<(String, MatrixPoint)>, paths: &[&str]) -> Readings {
        let without = |point: &MatrixPoint| {
            let mut point = point.clone();
            point.retain(|path, _| !paths.contains(&path.as_str()));
            point
        };
        let is_of = |values: &MatrixPoint, reading: &MatrixCell| {
            values.iter().all(|(path, value)| reading.point.get(path) == Some(value))
        };
        names.retain(|(_, values)| left.iter().any(|reading| is_of(values, reading)));
        names.iter_mut().for_each(|(_, values)| *values = without(values));
        names.retain(|(_, values)| !values.is_empty());
        Readings { points: left.iter().map(|reading| without(&reading.point)).collect(), names }
    }

    /// True for a point of one of these readings; a path that is set as well is in no point.
    pub(super) fn has(&self, point: &MatrixPoint) -> bool {
        let is_of = |reading: &MatrixPoint| {
            reading.iter().all(|(path, value)| point.get(path).is_none_or(|other| other == value))
        };
        self.points.iter().any(is_of)
    }

    pub(super) fn first(&self) -> MatrixPoint {
        self.points.first().cloned().unwrap_or_default()
    }
}

impl Scenario {
    /// The scenario with further `PATH=VALUE`s set over it.
    pub fn with(&self, sets: &[String]) -> Checked<Scenario> {
        let document = self.read.document.clone();
        let with = Scenario::new(self.name.clone(), document, sets)?;
        let sets = self.sets.iter().chain(sets).cloned().collect();
        Ok(Scenario { sets, readings: self.readings.clone(), ..with })
    }

    /// This scenario with further values, in the readings alone that do not set these paths themselves.
    pub fn replacing(&self, sets: &[String]) -> Checked<Replaced> {
        let (document, file) = (&self.read.document, &self.read.file);
        let paths: Vec<&str> = sets.iter().filter_map(|set| Some(set.split_once('=')?.0)).collect();
        let readings = matrix::readings(document, file.sweep.as_ref())?;
        // A file whose arms or points differ in it does so in all readings.
        let sets_it = |path: &str, reading: &MatrixCell| {
            varies_beside_sweep(file, path) || sets_itself(reading, path, document.value_at(path))
        };
        let (out, left): (Vec<&MatrixCell>, Vec<&MatrixCell>) =
            readings.iter().partition(|reading| paths.iter().any(|path| sets_it(path, reading)));
        let named = paths.iter().filter(|path| out.iter().any(|reading| sets_it(path, reading)));
        let named = named.map(|path| (*path).to_owned()).collect();
        let left_out = LeftOut { readings: out.len(), of: readings.len(), paths: named };
        let mut values = MatrixPoint::new();
        for path in &paths {
            let value = document.value_at(path).and_then(|value| serde_json::to_value(value).ok());
            values.extend(value.map(|value| ((*path).to_owned(), value)));
        }
        let scenario = if left.is_empty() {
            None
        } else {
            let readings = Readings::of(&left, self.names_of_readings()?, &paths);
            Some(Scenario { readings: Some(Arc::new(readings)), ..self.with(sets)? })
        };
        Ok(Replaced { scenario, values, left_out })
    }
}

/// True if a reading has a value of its own at that path, around it or within it.
fn sets_itself(cell: &MatrixCell, path: &str, of_file: Option<&serde_yaml::Value>) -> bool {
    let touches = |other: &str| is_within(path, other) || is_within(other, path);
    cell.values().any(|(at, value)| match at == path {
        true => Some(value) != of_file,
        false => touches(at) || keys(value).iter().any(|other| touches(other)),
    })
}

/// Routes are found, and queues fill, in some seconds over any radio.
const LEAST: Duration = Duration::from_secs(15);

impl Scenario {
    /// The values that make a run last one of that many parts of its time, at least 15 s, and its warm-up as well.
    /// A scenario in which something happens at an instant has none: with less time, less of it would happen.
    pub fn shortened(&self, parts: u32) -> Vec<String> {
        let file = &self.read.file;
        let (duration, warmup) = (file.run.duration.0, file.run.warmup.0);
        let shorter = (duration / parts).max(LEAST);
        if shorter >= duration || self.has_instants() {
            return Vec::new();
        }
        let share = shorter.as_secs_f64() / duration.as_secs_f64();
        let set = |path: &str, time: Duration| format!("{path}={}ms", time.as_millis());
        let warmup = (!warmup.is_zero()).then(|| set("run.warmup", warmup.mul_f64(share)));
        [set("run.duration", shorter)].into_iter().chain(warmup).collect()
    }

    /// True if nodes move, if links go down, or if flows stop before the end, at any point and in any reading.
    fn has_instants(&self) -> bool {
        let ScenarioFile { topology, mobility, channel, .. } = &self.read.file;
        let is_still = mobility.is_none() && topology.kind != Shape::Movements;
        let is_steady = channel.outages.is_empty() && channel.links.is_empty() && channel.trace.is_none();
        let values = ["traffic", "arms", "matrix", "sweep"].map(|path| self.read.document.value_at(path));
        let timed = ["stop", "mobility", "outages", "links", "trace"];
        let sets = |path: &String| path.split('.').any(|key| timed.contains(&key));
        !is_still || !is_steady || values.into_iter().flatten().flat_map(keys).any(|path| sets(&path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::tests::read;

    const STILL: &str = "topology: { kind: chain, hops: 1 }\n\
        traffic: [{ from: first, to: last, kind: bulk }]\narms: { one: { receiver: delayed } }\n\
        run: { duration: 300s, warmup: 50s }\n";

    fn shortened(text: &str, sets: &[&str]) -> Vec<String> {
        read(text, sets).shortened(20)
    }

    #[test]
    fn a_run_and_its_warm_up_become_shorter_by_the_same() {
        let sets = shortened(STILL, &[]);
        assert_eq!(sets, ["run.duration=15000ms", "run.warmup=2500ms"]);
        assert_eq!(shortened(STILL, &["run.warmup=0s"]), ["run.duration=15000ms"]);
        assert_eq!(shortened(STILL, &["run.duration=1000s"])[0], "run.duration=50000ms");
        assert_eq!(shortened(STILL, &["run.duration=100s"]), ["run.duration=15000ms", "run.warmup=7500ms"]);
        assert!(shortened(STILL, &["run.duration=12s", "run.warmup=2s"]).is_empty(), "it is short already");
        let file = Scenario::parse("it", STILL, &sets).expect("it is read");
        let plan = file.plan(None, 1).expect("a plan").plan;
        assert_eq!((plan.duration, plan.warmup), (Duration::from_secs(15), Duration::from_millis(2500)));
    }

    #[test]
    fn a_run_in_which_something_happens_at_an_instant_keeps_its_time() {
        for set in [
            "channel.outages=[{ from: n0, to: n1, begins: 2s, ends: 12s }]",
            "channel.links=['link n0-n1 down from 2 s to 12 s']",
            "traffic.0.stop=200s",
            "arms.one.set={ mobility.speed_mps: [1, 1] }",
            "matrix={ mobility.speed_mps: [[1, 1], [5, 5]] }",
            "matrix={ traffic: [[{ from: first, to: last, kind: bulk, stop: 200s }]] }",
            "sweep={ channel.links: [['link n0-n1 down from 2 s to 12 s']] }",
        ] {
            let sets = shortened(STILL, &[set]);
            assert!(sets.is_empty(), "{set}: {sets:?}");
        }
    }
}
