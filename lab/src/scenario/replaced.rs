//! A scenario with values set over it, in those readings alone that leave them to the file: `hopwise claims --radio`.
//!
//! A reading that sets such a value itself would become another one than its paper's, so it is left out. One that only
//! repeats the file's own value stays.

use std::sync::Arc;

use super::Scenario;
use super::check::{is_within, keys, varies_beside_sweep};
use super::matrix::{self, Cell};
use super::point::Point;
use crate::located::Refusal;

/// A scenario with values set over it.
#[derive(Debug)]
pub struct Replaced {
    /// The scenario with its readings that are left; none if there are none.
    pub scenario: Option<Scenario>,
    /// The file's own values that are replaced, by their paths.
    pub values: Point,
    /// The readings that are left out.
    pub left_out: LeftOut,
}

/// Readings that set a value themselves, and are therefore not run with another one.
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
    points: Vec<Point>,
    pub(super) names: Vec<(String, Point)>,
}

impl Readings {
    fn of(left: &[&Cell], mut names: Vec<(String, Point)>, paths: &[&str]) -> Readings {
        let without = |point: &Point| {
            let mut point = point.clone();
            point.retain(|path, _| !paths.contains(&path.as_str()));
            point
        };
        let is_of = |values: &Point, reading: &Cell| {
            values.iter().all(|(path, value)| reading.point.get(path) == Some(value))
        };
        names.retain(|(_, values)| left.iter().any(|reading| is_of(values, reading)));
        names.iter_mut().for_each(|(_, values)| *values = without(values));
        names.retain(|(_, values)| !values.is_empty());
        Readings { points: left.iter().map(|reading| without(&reading.point)).collect(), names }
    }

    /// True for a point of one of these readings; a path that is set as well is in no point.
    pub(super) fn has(&self, point: &Point) -> bool {
        let is_of = |reading: &Point| {
            reading.iter().all(|(path, value)| point.get(path).is_none_or(|other| other == value))
        };
        self.points.iter().any(is_of)
    }

    pub(super) fn first(&self) -> Point {
        self.points.first().cloned().unwrap_or_default()
    }
}

impl Scenario {
    /// The scenario with further `PATH=VALUE`s set over it.
    pub fn with(&self, sets: &[String]) -> Result<Scenario, Box<Refusal>> {
        let document = self.read.document.clone();
        let with = Scenario::new(self.name.clone(), document, sets)?;
        let sets = self.sets.iter().chain(sets).cloned().collect();
        Ok(Scenario { sets, readings: self.readings.clone(), ..with })
    }

    /// The same in those readings alone that do not set these paths themselves.
    pub fn replacing(&self, sets: &[String]) -> Result<Replaced, Box<Refusal>> {
        let (document, file) = (&self.read.document, &self.read.file);
        let paths: Vec<&str> = sets.iter().filter_map(|set| Some(set.split_once('=')?.0)).collect();
        let readings = matrix::readings(document, file.sweep.as_ref())?;
        // A file whose arms or points differ in it does so in all readings.
        let sets_it = |path: &str, reading: &Cell| {
            varies_beside_sweep(file, path) || sets_itself(reading, path, document.value_at(path))
        };
        let (out, left): (Vec<&Cell>, Vec<&Cell>) =
            readings.iter().partition(|reading| paths.iter().any(|path| sets_it(path, reading)));
        let named = paths.iter().filter(|path| out.iter().any(|reading| sets_it(path, reading)));
        let named = named.map(|path| (*path).to_owned()).collect();
        let left_out = LeftOut { readings: out.len(), of: readings.len(), paths: named };
        let mut values = Point::new();
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
fn sets_itself(cell: &Cell, path: &str, of_file: Option<&serde_yaml::Value>) -> bool {
    let touches = |other: &str| is_within(path, other) || is_within(other, path);
    cell.values().any(|(at, value)| match at == path {
        true => Some(value) != of_file,
        false => touches(at) || keys(value).iter().any(|other| touches(other)),
    })
}
