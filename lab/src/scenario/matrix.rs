//! The points of a trial: paths with their values, crossed with each other or varied together.

use serde::Deserialize;
use serde_yaml::Value;

use super::check;
use super::schema::MatrixConfig;
use crate::located::{Checked, Document, Refusal, YamlPath};
use crate::scenario::point::MatrixPoint;
use crate::scenario::point::plain;

/// The most points; a table of more is unreadable.
const MOST_POINTS: usize = 1_000;

/// One point: its values, and the place of each in the file.
#[derive(Clone, Debug, Default)]
pub struct MatrixCell {
    /// The values by their paths.
    pub point: MatrixPoint,
    values: Vec<PathValue>,
}

#[derive(Clone, Debug)]
struct PathValue {
    path: String,
    value: Value,
    at: YamlPath,
}

/// Paths whose values vary together: one path, or a group.
type MatrixAxis = Vec<Vec<PathValue>>;

struct Matrix<'a> {
    document: &'a Document,
    at: YamlPath,
}

/// All points of the `matrix`, each under all combinations of the `sweep`; the last axis varies fastest. Without both
/// there is a single empty point.
pub(super) fn cells(
    document: &Document,
    matrix: Option<&MatrixConfig>,
    sweep: Option<&MatrixConfig>,
) -> Checked<Vec<MatrixCell>> {
    // Combinations of open settings come first, so that the points of each stand together.
    crossed(document, "matrix", matrix, readings(document, sweep)?)
}

/// All combinations of the `sweep`; a single empty one without it.
pub(super) fn readings(document: &Document, sweep: Option<&MatrixConfig>) -> Checked<Vec<MatrixCell>> {
    crossed(document, "sweep", sweep, vec![MatrixCell::default()])
}

/// The paths of the `sweep` with the values of its first combination.
pub(super) fn first_reading(document: &Document, sweep: Option<&MatrixConfig>) -> Checked<MatrixPoint> {
    Ok(readings(document, sweep)?.into_iter().next().map(|cell| cell.point).unwrap_or_default())
}

/// The names that the `sweep` gives to some of its values, in its order. A name holds for all readings with these
/// values.
pub(super) fn names(
    document: &Document,
    sweep: Option<&MatrixConfig>,
) -> Checked<Vec<(String, MatrixPoint)>> {
    let Some(MatrixConfig(entries)) = sweep else { return Ok(Vec::new()) };
    let Some(named) = entries.get(NAMED) else { return Ok(Vec::new()) };
    let matrix = Matrix { document, at: YamlPath::root().key("sweep") };
    let at = matrix.at.key(NAMED);
    let readings = readings(document, sweep)?;
    let mut names = Vec::new();
    for (name, values) in matrix.map(&at, named)? {
        let name = matrix.key(&at, name)?;
        let at = at.key(name);
        let mut point = MatrixPoint::new();
        for (path, value) in matrix.map(&at, values)? {
            point.insert(matrix.key(&at, path)?.to_owned(), json(value));
        }
        let is_there =
            |cell: &MatrixCell| point.iter().all(|(path, value)| cell.point.get(path) == Some(value));
        // A path that --set has fixed is no part of a reading any more.
        if !point.keys().any(|path| document.is_set(path)) {
            if !readings.iter().any(is_there) {
                let accepted = "paths and values that stand in the sweep, written as there";
                return Err(document.refuse_key(&at, "no reading has these values", accepted));
            }
            names.push((name.to_owned(), point));
        }
    }
    Ok(names)
}

/// The `sweep` of a file that is no scenario.
#[derive(Clone, Debug, Deserialize)]
#[serde(transparent)]
pub(crate) struct Sweep(MatrixConfig);

impl Sweep {
    /// The document under each combination of its sweep, with the values there. Without one, it stands alone.
    pub(crate) fn documents(
        document: &Document,
        sweep: Option<&Sweep>,
    ) -> Checked<Vec<(MatrixPoint, Document)>> {
        let cells = cells(document, None, sweep.map(|sweep| &sweep.0))?;
        let with = |cell: MatrixCell| {
            let mut document = document.clone();
            cell.set_in(&mut document)?;
            Ok((cell.point, document))
        };
        cells.into_iter().map(with).collect()
    }

    /// The names that it gives to some of its values.
    pub(crate) fn names(document: &Document, sweep: Option<&Sweep>) -> Checked<Vec<(String, MatrixPoint)>> {
        names(document, sweep.map(|sweep| &sweep.0))
    }
}

/// The key of the names of values, in a `sweep`.
const NAMED: &str = "named";

/// These cells, each with all combinations of the file's `matrix` or `sweep`.
fn crossed(
    document: &Document,
    name: &str,
    matrix: Option<&MatrixConfig>,
    mut cells: Vec<MatrixCell>,
) -> Checked<Vec<MatrixCell>> {
    let Some(MatrixConfig(entries)) = matrix else { return Ok(cells) };
    let matrix = Matrix { document, at: YamlPath::root().key(name) };
    let mut axes: Vec<MatrixAxis> = Vec::new();
    let mut excluded = Vec::new();
    for (key, value) in entries {
        let key = matrix.key(&matrix.at, key)?;
        let at = matrix.at.key(key);
        match key {
            "together" => axes.extend(matrix.groups(&at, value)?),
            NAMED if name == "sweep" => {}
            "exclude" => excluded = matrix.list(&at, value)?.to_vec(),
            path => matrix.axes(&at, path, value, &mut axes)?,
        }
    }
    for axis in axes {
        let grown = cells.iter().flat_map(|cell| axis.iter().map(|givens| cell.with(givens)));
        if cells.len() * axis.len() > MOST_POINTS {
            let problem = format!("{} points", cells.len() * axis.len());
            return Err(document.refuse_key(&matrix.at, problem, &format!("at most {MOST_POINTS} points")));
        }
        cells = grown.collect::<Result<_, _>>().map_err(|twice| matrix.twice(&twice))?;
    }
    for (nth, entry) in excluded.iter().enumerate() {
        let at = matrix.at.key("exclude").index(nth);
        let before = cells.len();
        let Some(entry) = matrix.excluded(&at, entry)? else { continue };
        cells.retain(|cell| !cell.has_all(&entry));
        if cells.len() == before {
            let problem = "no point has these values";
            return Err(document.refuse(&at, problem, "values that stand in the matrix, written as there"));
        }
    }
    if cells.is_empty() {
        return Err(document.refuse_key(&matrix.at, "no point is left", "fewer entries in `exclude`"));
    }
    Ok(cells)
}

impl Matrix<'_> {
    fn key<'v>(&self, at: &YamlPath, key: &'v Value) -> Checked<&'v str> {
        key.as_str().ok_or_else(|| self.document.refuse(at, "a key that is no text", "a path"))
    }

    fn list<'v>(&self, at: &YamlPath, value: &'v Value) -> Checked<&'v [Value]> {
        match value.as_sequence() {
            Some(values) if !values.is_empty() => Ok(values),
            _ => Err(self.document.refuse(at, "no list", "a list such as [1, 4, 8]")),
        }
    }

    fn map<'v>(&self, at: &YamlPath, value: &'v Value) -> Checked<&'v serde_yaml::Mapping> {
        let accepted = "paths with values, such as { topology.hops: 8 }";
        match value.as_mapping() {
            Some(map) if !map.is_empty() => Ok(map),
            _ => Err(self.document.refuse(at, "no paths", accepted)),
        }
    }

    /// A path with its values, or the beginning of several.
    fn axes(&self, at: &YamlPath, path: &str, values: &Value, axes: &mut Vec<MatrixAxis>) -> Checked {
        let Some(map) = values.as_mapping().filter(|map| !map.is_empty()) else {
            if let Some(axis) = self.axis(at, path, values)? {
                self.check_once(&axis)?;
                axes.push(axis);
            }
            return Ok(());
        };
        for (key, values) in map {
            let key = self.key(at, key)?;
            self.axes(&at.key(key), &format!("{path}.{key}"), values, axes)?;
        }
        Ok(())
    }

    /// The values of one path; none where `--set` has fixed it.
    fn axis(&self, at: &YamlPath, path: &str, values: &Value) -> Checked<Option<MatrixAxis>> {
        let values = self.list(at, values)?;
        let is_of_arm = path.starts_with("arms.") && path.matches('.').count() > 1;
        if let Err(problem) = check::settable(path).or_else(|why| if is_of_arm { Ok(()) } else { Err(why) }) {
            return Err(self.document.refuse_key(at, problem, "a path such as topology.hops"));
        }
        if self.document.is_set(path) {
            return Ok(None);
        }
        let given = |(nth, value): (usize, &Value)| {
            vec![PathValue { path: path.to_owned(), value: value.clone(), at: at.index(nth) }]
        };
        Ok(Some(values.iter().enumerate().map(given).collect()))
    }

    fn groups(&self, at: &YamlPath, groups: &Value) -> Checked<Vec<MatrixAxis>> {
        let mut axes = Vec::new();
        for (nth, group) in self.list(at, groups)?.iter().enumerate() {
            let at = at.index(nth);
            let (mut together, mut is_whole): (Option<MatrixAxis>, bool) = (None, true);
            for (key, values) in self.map(&at, group)? {
                let path = self.key(&at, key)?;
                let Some(axis) = self.axis(&at.key(path), path, values)? else {
                    is_whole = false;
                    continue;
                };
                together = Some(match together {
                    None => axis,
                    Some(so_far) if so_far.len() == axis.len() => {
                        so_far.into_iter().zip(axis).map(|(a, b)| a.into_iter().chain(b).collect()).collect()
                    }
                    Some(so_far) => {
                        let problem = format!("{} values", axis.len());
                        let accepted = format!("{}, as the others of this group have", so_far.len());
                        return Err(self.document.refuse(&at.key(path), problem, &accepted));
                    }
                });
            }
            let Some(mut axis) = together else { continue };
            if is_whole {
                self.check_once(&axis)?;
            } else {
                // Rows that differ only in values fixed by --set become one.
                let all = axis.clone();
                let mut nth = 0..;
                axis.retain(|row| {
                    !nth.next().is_some_and(|nth| all[..nth].iter().any(|known| are_same(known, row)))
                });
            }
            axes.push(axis);
        }
        Ok(axes)
    }

    /// Refuses a value or a row that is there twice: both would be one point.
    fn check_once(&self, axis: &MatrixAxis) -> Checked {
        let twice = |nth: &usize| axis[..*nth].iter().any(|known| are_same(known, &axis[*nth]));
        let Some(nth) = (1..axis.len()).find(twice) else { return Ok(()) };
        let row = &axis[nth];
        let values: Vec<String> = row.iter().map(|given| plain(&json(&given.value))).collect();
        let problem = format!("`{}` is there already", values.join(", "));
        let accepted = "each value once; a trial's `run.seeds` says how often it is run";
        Err(self.document.refuse(&row[0].at, problem, accepted))
    }

    /// The values of an excluded point. None if `--set` has fixed other values, or all of them: the user then wants it.
    fn excluded(&self, at: &YamlPath, entry: &Value) -> Checked<Option<serde_yaml::Mapping>> {
        let mut left = self.map(at, entry)?.clone();
        let (mut is_other, paths) = (false, left.keys().cloned().collect::<Vec<_>>());
        for key in paths {
            let path = self.key(at, &key)?;
            if self.document.is_set(path) {
                is_other |= left.remove(path).as_ref() != self.document.value_at(path);
            }
        }
        Ok((!is_other && !left.is_empty()).then_some(left))
    }

    fn twice(&self, given: &PathValue) -> Box<Refusal> {
        let problem = format!("`{}` varies in another place already", given.path);
        self.document.refuse(&given.at, problem, "each path once")
    }
}

fn json(value: &Value) -> serde_json::Value {
    serde_json::to_value(value).unwrap_or_default()
}

/// True if two rows are one point: equal texts, or equal numbers.
fn are_same(one: &[PathValue], other: &[PathValue]) -> bool {
    one.iter().zip(other).all(|(one, other)| {
        let is_equal = one.value.as_f64().is_some() && one.value.as_f64() == other.value.as_f64();
        is_equal || plain(&json(&one.value)) == plain(&json(&other.value))
    })
}

impl MatrixCell {
    fn with(&self, givens: &[PathValue]) -> Result<MatrixCell, PathValue> {
        let mut cell = self.clone();
        for given in givens {
            let value = json(&given.value);
            if cell.point.insert(given.path.clone(), value).is_some() {
                return Err(given.clone());
            }
            cell.values.push(given.clone());
        }
        Ok(cell)
    }

    fn has_all(&self, entry: &serde_yaml::Mapping) -> bool {
        entry.iter().all(|(path, value)| {
            self.values.iter().any(|given| path.as_str() == Some(&given.path) && given.value == *value)
        })
    }

    /// The values with their paths, as the file has them.
    pub(super) fn values(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.values.iter().map(|given| (given.path.as_str(), &given.value))
    }

    /// The place of a value in the file.
    pub(super) fn place_of(&self, path: &str) -> Option<&YamlPath> {
        self.values.iter().find(|given| given.path == path).map(|given| &given.at)
    }

    pub(super) fn set_in(&self, document: &mut Document) -> Checked {
        self.values.iter().try_for_each(|given| document.set_value(&given.path, &given.value, &given.at))
    }
}
