//! The files of a trial: its plan (`trial.json`), one object a run (`records.jsonl`) and one row a run (`records.csv`).
//!
//! CSV is written by hand: the crate `csv` quotes as well, but it does not disarm formulas.

use std::fmt::Write as _;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::metric::{self, METRICS};
use crate::result::RunResult;
use crate::scenario::point::{MatrixPoint, Stop, plain};
use crate::scenario::settings::count;
use crate::seal;
use crate::statistics::{Figure, GOODPUT};

/// The plan of a trial, as it stands in `trial.json`. Its content does not depend on its user or its progress.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// Version of the program that made it; records of another version are not mixed with ours.
    pub version: String,
    /// Commit that the program was built from. Other commits with equal sources are one version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The hash of the results of the radio world's probes.
    pub certificate: String,
    /// The file's stem.
    pub scenario: String,
    /// The title of the scenario.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The name of the world.
    pub world: String,
    /// The arms' names, the baseline first, then in the file's order.
    pub arms: Vec<String>,
    /// The points; at least one.
    pub points: Vec<MatrixPoint>,
    /// The paths that arms set and points do not: each is a column of the runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arm_paths: Vec<String>,
    /// The seeds, one for each block.
    pub seeds: Vec<u64>,
    /// Arms whose ratio is surely within `1 ± margin` do not differ.
    pub margin: f64,
    /// The condition for the end of the trial.
    pub stop: Stop,
    /// The names of the figures that arms are compared by; absent where it is goodput alone.
    #[serde(default = "goodput", skip_serializing_if = "is_goodput")]
    pub figures: Vec<String>,
    /// The part of the trial that this folder holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<Shard>,
}

fn goodput() -> Vec<String> {
    vec![GOODPUT.name.to_owned()]
}

pub(crate) fn is_goodput(figures: &[String]) -> bool {
    figures == goodput()
}

/// Part `index` of `count`; counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shard {
    /// The part's number, from 1 to `count`.
    pub index: u32,
    /// The number of parts.
    pub count: u32,
}

/// One run: its determinants and its results. Written once and never changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The hash of everything that determined the run: settings, arm, seed, version, certificate.
    pub id: String,
    /// The stem of the scenario's file.
    pub scenario: String,
    /// The values of the run's point.
    pub point: MatrixPoint,
    /// The name of the arm.
    pub arm: String,
    /// The seed of all chance in the run.
    pub seed: u64,
    /// Runs of one block share channel, movement and traffic; counted from 1; a seed has one number at every point.
    pub block: u32,
    /// Every parameter in force.
    pub settings: Settings,
    /// The result.
    pub result: RunResult,
    /// Path of the windows and queues over time, below the trial's folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<String>,
    /// SHA-256 of that file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series_sum: Option<String>,
}

/// Settings of a run. Runs of an arm at a point share them in memory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings(Arc<Value>);

impl Deref for Settings {
    type Target = Value;

    fn deref(&self) -> &Value {
        &self.0
    }
}

impl DerefMut for Settings {
    fn deref_mut(&mut self) -> &mut Value {
        Arc::make_mut(&mut self.0)
    }
}

impl From<Value> for Settings {
    fn from(settings: Value) -> Settings {
        Settings(Arc::new(settings))
    }
}

impl Serialize for Settings {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(to)
    }
}

impl<'a> Deserialize<'a> for Settings {
    fn deserialize<D: Deserializer<'a>>(from: D) -> Result<Settings, D::Error> {
        Value::deserialize(from).map(Settings::from)
    }
}

/// Path of a run's series, below the trial's folder.
pub(crate) fn series_of(id: &str) -> String {
    format!("series/{id}.csv")
}

/// No number of a run's result is beyond this.
const LARGEST: f64 = 1e12;
/// No text of a run's result has more bytes than this: a report shows some of them for each flow.
const LONGEST_TEXT: usize = 4000;

/// No record comes near this. Read, it takes many times the memory.
pub(crate) const LONGEST_RECORD: usize = 4 << 20;
/// No plan comes near this.
pub(crate) const LONGEST_PLAN: u64 = 8 << 20;
/// No settings have nearly so many values: a scenario of most nodes and flows has half of them.
const MOST_VALUES: usize = 300_000;

/// Says whether a run can come to that number.
pub(crate) fn is_sound(number: f64) -> bool {
    number.abs() <= LARGEST
}

impl Record {
    /// The reason why no run of ours has left this record, with this result: where it stands, and what would do.
    pub(crate) fn fault(&self, result: &Value) -> Option<String> {
        self.misplaced().or_else(|| self.too_many()).or_else(|| Record::absurdity(result))
    }

    fn too_many(&self) -> Option<String> {
        let values = count(&self.settings);
        (values > MOST_VALUES)
            .then(|| format!("`settings` has {values} values, expected at most {MOST_VALUES}"))
    }

    /// The first number or text of the result that no run comes to: where it stands, and what would do.
    fn absurdity(result: &Value) -> Option<String> {
        let mut members = result.as_object().into_iter().flatten().filter(|(key, _)| *key != "seed");
        members.find_map(|(key, value)| absurd(format!("result.{key}"), value))
    }

    /// The first member that names another file than the run's own: where it stands, and what would do.
    fn misplaced(&self) -> Option<String> {
        let Record { id, series, series_sum, .. } = self;
        if id.is_empty() || !id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
            return Some(format!("id is `{id}`, expected letters, digits and hyphens"));
        }
        let own = series_of(id);
        match (series.as_ref()?, series_sum) {
            (series, _) if *series != own => Some(format!("series is `{series}`, expected `{own}`")),
            (_, None) => Some(format!("`series_sum` is missing, expected the SHA-256 of {own}")),
            _ => None,
        }
    }

    /// The value at a path that the trial varies, as people write it: the point's, or the one in force.
    pub(crate) fn varied(&self, path: &str) -> Option<String> {
        // TCP's section has what its file says, and what that comes to under `in_force`.
        let at = |path: String| self.settings.pointer(&format!("/{}", path.replace('.', "/")));
        let in_force = || at(format!("tcp.in_force.{}", path.strip_prefix("tcp.")?));
        let own = || at(path.to_owned());
        self.point.get(path).or_else(in_force).or_else(own).filter(|value| !value.is_null()).map(plain)
    }

    /// The record as one line of a file, with its checksum.
    pub fn line(&self) -> String {
        let json = serde_json::to_string(self).expect("nothing in it but texts and numbers");
        seal::seal(&json) + "\n"
    }
}

impl Trial {
    /// The paths of the columns that say what varies: the points' and then the arms'.
    pub(crate) fn paths(&self) -> Vec<&str> {
        let of_points = self.points.iter().take(1).flat_map(|point| point.keys());
        of_points.chain(&self.arm_paths).map(String::as_str).collect()
    }

    /// The figures that arms are compared by.
    pub fn figures(&self) -> Vec<Figure> {
        self.figures.iter().filter_map(|name| metric::named(name)?.figure()).collect()
    }

    /// The plan as it stands in `trial.json`, with its checksum.
    pub fn text(&self) -> String {
        let json = serde_json::to_string_pretty(self).expect("nothing in it but texts and numbers");
        seal::seal(&json) + "\n"
    }
}

/// The first number or text in a value that no run comes to: its path, and what would do.
fn absurd(at: String, value: &Value) -> Option<String> {
    match value {
        Value::Number(number) => {
            let number = number.as_f64().unwrap_or(f64::NAN);
            (!is_sound(number))
                .then(|| format!("{at} is {number:e}, expected a number from -{LARGEST:e} to {LARGEST:e}"))
        }
        Value::String(text) => (text.len() > LONGEST_TEXT)
            .then(|| format!("{at} has {} bytes, expected at most {LONGEST_TEXT}", text.len())),
        Value::Array(items) => {
            items.iter().enumerate().find_map(|(nth, item)| absurd(format!("{at}[{nth}]"), item))
        }
        Value::Object(members) => {
            members.iter().find_map(|(key, member)| absurd(format!("{at}.{key}"), member))
        }
        _ => None,
    }
}

/// The columns; `paths` vary by point or by arm.
pub(crate) fn csv_header(paths: &[&str]) -> String {
    let mut text = "id,scenario,".to_owned();
    for path in paths {
        let _ = write!(text, "{},", quoted(path));
    }
    text += "arm,seed,block,counted_s";
    for metric in METRICS {
        let _ = write!(text, ",{}", metric.name);
    }
    text + "\n"
}

/// The line of one run, under [`csv_header`] with these `paths`.
pub(crate) fn csv_row(record: &Record, paths: &[&str]) -> String {
    let mut text = format!("{},{},", record.id, quoted(&record.scenario));
    for path in paths {
        let value = record.varied(path).unwrap_or_default();
        // A negative number is no formula.
        let cell = if value.parse::<f64>().is_ok() { value } else { quoted(&value) };
        let _ = write!(text, "{cell},");
    }
    let arm = quoted(&record.arm);
    let _ = write!(text, "{arm},{},{},{}", record.seed, record.block, record.result.counted_s);
    for metric in METRICS {
        let value = (metric.of)(&record.result).map_or(String::new(), |value| value.to_string());
        let _ = write!(text, ",{value}");
    }
    text + "\n"
}

/// RFC 4180. A part that a spreadsheet would take for a formula gets an apostrophe before it. Where cells end at
/// semicolons or tabs, quotes within a line protect nothing, so that each of these and each line break begins a part.
/// Some spreadsheets take signs of full width for signs.
pub fn quoted(text: &str) -> String {
    let is_around = |letter: char| letter.is_whitespace() || letter == '"';
    let is_formula = |part: &str| {
        part.trim_start_matches(is_around).starts_with(['=', '+', '-', '@', '＝', '＋', '－', '＠'])
    };
    let parts = text.split_inclusive([';', '\t', '\n', '\r']);
    let guarded: String = parts.flat_map(|part| [if is_formula(part) { "'" } else { "" }, part]).collect();
    match guarded != text || text.contains([',', ';', '"', '\t', '\n', '\r']) {
        true => format!("\"{}\"", guarded.replace('"', "\"\"")),
        false => guarded,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_part_a_row_is_quoted() {
        assert_eq!(quoted("[newreno, \"limit:4\"]"), "\"[newreno, \"\"limit:4\"\"]\"");
        assert_eq!(quoted("dca"), "dca");
        assert_eq!(quoted("=1+1"), "\"'=1+1\"");
        assert_eq!(quoted("-2+3,@x"), "\"'-2+3,@x\"");
        for (text, cell) in [
            ("x;=1+1", "x;'=1+1"),
            ("x\t=1+1;y", "x\t'=1+1;y"),
            ("x\r=1", "x\r'=1"),
            ("\t=1", "\t'=1"),
            ("x; =1;-;y", "x;' =1;'-;y"),
            ("x;\"=1", "x;'\"\"=1"),
            ("x;＝1", "x;'＝1"),
            (" =1", "' =1"),
            ("x;y=1", "x;y=1"),
        ] {
            assert_eq!(quoted(text), format!("\"{cell}\""));
        }
        for sign in ['＝', '＋', '－', '＠'] {
            assert_eq!(quoted(&format!("{sign}1")), format!("\"'{sign}1\""));
        }
    }
}
