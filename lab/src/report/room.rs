//! Bounds of what the folders of a report hold together: somebody else may have written them.
//!
//! Each bound is far beyond a trial of 100 by 100 cells with some runs each, and keeps a report below a few GiB.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use serde_json::Value;

use super::series::Series;
use crate::findings::label;
use crate::folder::Folder;
use crate::metric;
use crate::plain::{NAME, problem_of_name};
use crate::record::{Record, Settings, Trial};
use crate::scenario::settings::memory;

/// About the bytes of memory that all records take.
const MOST_MEMORY: usize = 2 << 30;
/// The bytes of memory for a byte of a result's text: a list of empty texts takes as much, and HTML five for `&`.
const FOR_A_BYTE: usize = 12;

/// The bytes of the longest path of keys.
fn longest_path(value: &Value) -> usize {
    match value {
        Value::Object(entries) => {
            entries.iter().map(|(key, value)| key.len() + 1 + longest_path(value)).max().unwrap_or(0)
        }
        Value::Array(items) => items.iter().map(longest_path).max().unwrap_or(0),
        _ => 0,
    }
}

/// The memory that records have taken.
#[derive(Debug, Default)]
pub(super) struct RecordRoom(usize);

impl RecordRoom {
    /// The settings of an arm at a point are taken once.
    pub(super) fn take_settings(&mut self, settings: &Settings) -> Result<(), String> {
        let longest = longest_path(settings);
        if longest > LONGEST_ARM {
            return Err(format!("a key of the settings has {longest} bytes, expected at most {LONGEST_ARM}"));
        }
        self.take(memory(settings))
    }

    pub(super) fn take_record(&mut self, record: &Record, result: &Value) -> Result<(), String> {
        let texts = record.id.len() + record.scenario.len() + record.arm.len();
        let point: usize = record.point.iter().map(|(path, value)| path.len() + memory(value)).sum();
        self.take(size_of::<Record>() + point + texts + FOR_A_BYTE * result.to_string().len())
    }

    fn take(&mut self, bytes: usize) -> Result<(), String> {
        self.0 = self.0.saturating_add(bytes);
        if self.0 <= MOST_MEMORY {
            return Ok(());
        }
        let most = MOST_MEMORY >> 20;
        Err(format!(
            "the runs take too much memory: expected runs and settings that take at most {most} MiB in all"
        ))
    }
}

/// What the series may take.
#[derive(Debug)]
pub(super) struct SeriesRoom {
    bytes: u64,
    places: usize,
}

impl Default for SeriesRoom {
    fn default() -> SeriesRoom {
        const MOST_PLACES: usize = 8 << 20;
        SeriesRoom { bytes: SeriesRoom::MOST_BYTES, places: MOST_PLACES }
    }
}

impl SeriesRoom {
    pub(super) const MOST_BYTES: u64 = 1 << 30;

    /// The text of a series; none if there is no room for it.
    pub(super) fn read(&mut self, folder: &Folder, path: &str) -> io::Result<Option<String>> {
        if self.bytes == 0 {
            return Ok(None);
        }
        match folder.read_at_most(Path::new(path), self.bytes) {
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                self.bytes = 0;
                Ok(None)
            }
            text => text.map(|text| {
                self.bytes -= text.len() as u64;
                Some(text)
            }),
        }
    }

    /// The series of a text; none if there is no room for it.
    pub(super) fn parse(&mut self, text: &str) -> Option<Series> {
        let (series, places) = Series::parse_within(text, self.places)?;
        self.places -= places;
        Some(series)
    }
}

/// The longest name of an arm, and the longest of a point, which has all that its matrix varies; in bytes.
const LONGEST_ARM: usize = 1000;
const LONGEST_POINT: usize = 4000;
/// The names of all cells together, as a table of them has.
const MOST_NAMES: usize = 32 << 20;
/// Paths that arms vary. Each is a column.
const MOST_PATHS: usize = 1000;
/// Each arm of a point stands beside each other one, and each block beside all earlier ones.
const MOST_ARMS: usize = 2000;
const MOST_SEEDS: usize = 50_000;

/// The first name, list or margin of a plan that no report can take, and what would do.
pub(super) fn check_plan(trial: &Trial) -> Result<(), String> {
    let labels: Vec<usize> = trial.points.iter().map(|point| label(point).len()).collect();
    let arms: Vec<usize> = trial.arms.iter().map(String::len).collect();
    let texts = [&trial.scenario, &trial.version, &trial.certificate, &trial.world];
    let texts = texts.into_iter().chain(&trial.title).chain(&trial.commit);
    let paths = trial.points.iter().flat_map(|point| point.keys()).chain(&trial.arm_paths);
    if let Some(problem) =
        texts.clone().chain(&trial.arms).chain(paths).find_map(|name| problem_of_name(name))
    {
        return Err(format!("a name: {problem}; expected {NAME}"));
    }
    let texts = texts.map(String::len);
    for (what, longest, most) in [
        ("an entry of `arms`", arms.iter().copied().max(), LONGEST_ARM),
        ("an entry of `points`", labels.iter().copied().max(), LONGEST_POINT),
        ("an entry of `arm_paths`", trial.arm_paths.iter().map(String::len).max(), LONGEST_ARM),
        ("a text", texts.max(), LONGEST_POINT),
    ] {
        if let Some(len) = longest.filter(|len| *len > most) {
            return Err(format!("{what} has {len} bytes, expected at most {most}"));
        }
    }
    let all = labels.iter().sum::<usize>().saturating_mul(arms.len());
    let all = all.saturating_add(arms.iter().sum::<usize>().saturating_mul(labels.len()));
    if all > MOST_NAMES {
        return Err(format!(
            "the names of all cells of `points` and `arms` have {} MiB, expected at most {} MiB",
            all >> 20,
            MOST_NAMES >> 20
        ));
    }
    for (list, len, most) in [
        ("arm_paths", trial.arm_paths.len(), MOST_PATHS),
        ("arms", trial.arms.len(), MOST_ARMS),
        ("seeds", trial.seeds.len(), MOST_SEEDS),
    ] {
        if len > most {
            return Err(format!("`{list}` has {len} entries, expected at most {most}"));
        }
    }
    if !(0.0..1.0).contains(&trial.margin) {
        return Err(format!("`margin` is {}, expected 0 or more, and less than 1", trial.margin));
    }
    check_figures(&trial.figures)
}

fn check_figures(figures: &[String]) -> Result<(), String> {
    let accepted = || metric::names_of_figures().collect::<Vec<_>>().join(", ");
    let mut seen = BTreeSet::new();
    for (nth, name) in figures.iter().enumerate() {
        if metric::named(name).and_then(metric::Metric::figure).is_none() {
            let name: String = name.chars().take(100).collect();
            return Err(format!("figures[{nth}] is `{name}`, expected one of {}", accepted()));
        }
        if !seen.insert(name) {
            return Err(format!(
                "figures[{nth}] is `{name}`, which is there already: expected each figure once"
            ));
        }
    }
    if figures.is_empty() {
        Err(format!("`figures` is empty, expected some of {}", accepted()))
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::report::tests::{record, trial};

    #[test]
    fn runs_that_take_more_than_all_memory_are_refused() {
        let record = record(8, "every", 1, 100.0);
        let mut room = RecordRoom(MOST_MEMORY - 3000);
        room.take_settings(&json!({ "a": {} }).into()).expect("there is room");
        let said = room
            .take_record(&record, &json!({}))
            .and_then(|()| room.take_record(&record, &json!(vec![""; 100])));
        let said = said.expect_err("there is none");
        assert!(said.ends_with("expected runs and settings that take at most 2048 MiB in all"), "{said}");
    }

    #[test]
    fn a_margin_that_no_scenario_has_and_lists_without_end_are_refused() {
        let said = |change: fn(&mut Trial)| {
            let mut trial = trial(&["every"], &[8]);
            change(&mut trial);
            check_plan(&trial).expect_err("it is refused")
        };
        assert_eq!(said(|trial| trial.margin = -2.0), "`margin` is -2, expected 0 or more, and less than 1");
        let arms = said(|trial| trial.arms = (0..2001).map(|nth| nth.to_string()).collect());
        assert_eq!(arms, "`arms` has 2001 entries, expected at most 2000");
        let seeds = said(|trial| trial.seeds = vec![1; 50_001]);
        assert_eq!(seeds, "`seeds` has 50001 entries, expected at most 50000");
    }

    #[test]
    fn series_for_which_there_is_no_room_are_not_read() {
        let root = std::env::temp_dir().join(format!("hopwise-room-{}", std::process::id()));
        std::fs::create_dir_all(&root).expect("a folder");
        for name in ["a", "b", "c"] {
            std::fs::write(root.join(name), "head\nq,n0,1,5\n").expect("a file");
        }
        let folder = Folder::open(&root).expect("a folder");
        let mut room = SeriesRoom { bytes: 20, places: 12 };
        let text = room.read(&folder, "a").expect("a file").expect("there is room");
        assert!(room.parse(&text).is_some() && room.parse(&text).is_none());
        assert_eq!(room.read(&folder, "b").ok(), Some(None));
        assert_eq!(room.read(&folder, "nowhere").ok(), Some(None), "nothing is opened any more");
        std::fs::remove_dir_all(root).expect("it is there");
    }
}
