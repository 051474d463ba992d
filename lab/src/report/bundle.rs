//! A trial's folder, or the folders of its shards, read back.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use super::room::{self, RecordRoom, SeriesRoom};
use super::series::Series;
use crate::campaign::MOST_RUNS;
use crate::findings::label;
use crate::folder::{Folder, LARGEST};
use crate::record::{LONGEST_PLAN, LONGEST_RECORD, Record, Settings, Trial};
use crate::scenario::settings::difference;
use crate::seal::{self, SealError};
use crate::store::{PLAN, RECORDS, RUNS};
use crate::version;

/// A trial with its runs in the order of points, blocks and arms, from any machine and time.
#[derive(Clone, Debug)]
pub struct Bundle {
    /// The plan of the whole trial.
    pub trial: Trial,
    /// The runs that the folders hold.
    pub records: Vec<Record>,
    /// Series by the record's id.
    pub series: BTreeMap<String, Series>,
    /// Remarks for readers: another version made the runs, or more are to come.
    pub remarks: Vec<String>,
}

/// Why a folder cannot be read back.
#[derive(Debug, thiserror::Error)]
#[error("{}: {}", .place, .problem)]
pub struct ReadError {
    /// The path of the folder or file.
    pub place: String,
    /// The fault, in words.
    pub problem: String,
}

/// Opens the folder of a trial. It stays the one that is read and written, whatever its path leads to by then.
pub fn open(path: &Path) -> Result<Folder, ReadError> {
    Folder::open(path).map_err(|error| refused(path, format!("{error}; {WANTED}")))
}

fn refused(place: &Path, problem: impl fmt::Display) -> ReadError {
    ReadError { place: place.display().to_string(), problem: problem.to_string() }
}

impl Bundle {
    /// Joins the folders' records. They must be of one trial, made by one version, which may be another than ours.
    pub fn read(folders: &[Folder]) -> Result<Bundle, ReadError> {
        let mut joined = JoinedFolders::default();
        for folder in folders {
            joined.take(folder)?;
        }
        let Some((first, trial)) = joined.first else {
            return Err(refused(Path::new("report"), "no folder is named"));
        };
        check_cells(&first.join(PLAN), &trial, joined.records.len())?;
        let mut bundle = Bundle::new(trial, joined.records.into_values().collect(), BTreeMap::new());
        read_series(&mut bundle, folders, &joined.standing)?;
        if bundle.trial.version != version::of_program() {
            let made_by = &bundle.trial.version;
            bundle.remarks.push(format!(
                "the runs were made by hopwise {made_by}, and this is {}: they are shown as they are, and none is \
                 added",
                version::of_program()
            ));
        }
        bundle.remarks.extend(joined.remarks);
        Ok(bundle)
    }

    /// Puts the records in order.
    pub fn new(trial: Trial, mut records: Vec<Record>, series: BTreeMap<String, Series>) -> Bundle {
        let plan = PlannedCells::of(&trial);
        records.sort_by_cached_key(|record| {
            (
                plan.points.get(&label(&record.point)).copied(),
                record.block,
                plan.arms.get(&*record.arm).copied(),
            )
        });
        Bundle { trial, records, series, remarks: Vec::new() }
    }

    /// The numbers of planned runs and of present ones.
    pub fn runs(&self) -> (usize, usize) {
        let trial = &self.trial;
        let there: BTreeSet<_> = self.records.iter().map(|record| &record.id).collect();
        (trial.points.len() * trial.arms.len() * trial.seeds.len(), there.len())
    }
}

/// The first places of a plan's points and arms, and its seeds.
struct PlannedCells<'a> {
    points: BTreeMap<String, usize>,
    arms: BTreeMap<&'a str, usize>,
    seeds: BTreeSet<u64>,
}

impl PlannedCells<'_> {
    fn of(trial: &Trial) -> PlannedCells<'_> {
        PlannedCells {
            points: trial.points.iter().enumerate().rev().map(|(nth, point)| (label(point), nth)).collect(),
            arms: trial.arms.iter().enumerate().rev().map(|(nth, arm)| (&**arm, nth)).collect(),
            seeds: trial.seeds.iter().copied().collect(),
        }
    }

    fn has(&self, trial: &Trial, record: &Record) -> bool {
        let point = self.points.get(&label(&record.point));
        point.is_some_and(|nth| trial.points[*nth] == record.point)
            && self.arms.contains_key(&*record.arm)
            && self.seeds.contains(&record.seed)
    }
}

/// The records read until now.
#[derive(Default)]
struct JoinedFolders {
    /// The first folder, and the plan that all must have.
    first: Option<(PathBuf, Trial)>,
    records: BTreeMap<String, Record>,
    /// The number of the folder in which a record stands.
    standing: BTreeMap<String, usize>,
    folders: usize,
    /// The settings that an arm has at a point, and where they were seen first.
    settings: BTreeMap<(String, String), (Settings, PathBuf)>,
    room: RecordRoom,
    remarks: Vec<String>,
}

impl JoinedFolders {
    fn take(&mut self, folder: &Folder) -> Result<(), ReadError> {
        let trial = Trial { shard: None, ..read_trial(folder)? };
        self.check_plan(folder.path(), &trial)?;
        if folder.has(RECORDS) {
            self.finished(folder, &trial)?;
        } else {
            self.unfinished(folder, &trial)?;
        }
        self.folders += 1;
        Ok(())
    }

    fn finished(&mut self, folder: &Folder, trial: &Trial) -> Result<(), ReadError> {
        let file = folder.join(RECORDS);
        let text = folder.read(RECORDS).map_err(|error| refused(&file, error))?;
        let plan = PlannedCells::of(trial);
        for (line, text) in (1..).zip(text.lines()).filter(|(_, text)| !text.is_empty()) {
            if text.len() > LONGEST_RECORD {
                let problem =
                    format!("line {line} is too long: expected at most {} MiB", LONGEST_RECORD >> 20);
                return Err(refused(&file, problem));
            }
            let problem = |error| format!("line {line}: {error}");
            check(trial, text).map_err(|broken| refused(&file, format!("line {line}: {broken}; {AGAIN}")))?;
            let record: Record = serde_json::from_str(text)
                .map_err(|error| not_understood(&file, Some(&trial.version), &problem(error)))?;
            if !plan.has(trial, &record) {
                let problem = format!("{} is no run of the trial in {PLAN}", name_of(&record));
                return Err(refused(&file, problem));
            }
            self.keep(folder, (&file, line), trial, record)?;
        }
        Ok(())
    }

    /// Keeps a record, with the settings that its arm has at its point already.
    fn keep(
        &mut self,
        folder: &Folder,
        (file, line): (&Path, usize),
        trial: &Trial,
        mut record: Record,
    ) -> Result<(), ReadError> {
        let result = serde_json::to_value(&record.result).unwrap_or_default();
        if let Some(problem) = record.fault(&result) {
            return Err(refused(file, format!("line {line}: {problem}")));
        }
        record.settings = self.check_record(folder.path(), trial, &record)?;
        self.room.take_record(&record, &result).map_err(|problem| refused(file, problem))?;
        self.standing.insert(record.id.clone(), self.folders);
        self.records.insert(record.id.clone(), record);
        Ok(())
    }

    fn check_plan(&mut self, folder: &Path, trial: &Trial) -> Result<(), ReadError> {
        let Some((first, known)) = &self.first else {
            self.first = Some((folder.to_owned(), trial.clone()));
            return Ok(());
        };
        let json =
            |trial: &Trial| serde_json::to_value(Trial { commit: None, ..trial.clone() }).unwrap_or_default();
        let different = || difference(&json(trial), &json(known));
        let of_another = (trial.scenario != known.scenario)
            .then(|| format!("scenario is {} here and {} there", trial.scenario, known.scenario));
        let Some(difference) = of_another.or_else(different) else { return Ok(()) };
        let problem = format!(
            "is not of the trial in {}: {difference}; what is joined has to be parts of one trial, made by one version",
            first.display()
        );
        Err(refused(folder, problem))
    }

    /// Runs of one arm at one point differ in their seeds and in nothing else. Returns the settings that they share.
    fn check_record(&mut self, folder: &Path, trial: &Trial, record: &Record) -> Result<Settings, ReadError> {
        let made_by = record.settings["hopwise"]["version"].as_str();
        if let Some(other) = made_by.filter(|version| *version != trial.version) {
            let problem = format!(
                "{} was made by hopwise {other}, and the trial by {}: runs of two versions are not mixed",
                name_of(record),
                trial.version
            );
            return Err(refused(folder, problem));
        }
        let key = (label(&record.point), record.arm.clone());
        if !self.settings.contains_key(&key) {
            self.room.take_settings(&record.settings).map_err(|problem| refused(folder, problem))?;
        }
        let here = || (record.settings.clone(), folder.to_owned());
        let (known, first) = self.settings.entry(key).or_insert_with(here);
        match difference(&record.settings, known) {
            Some(difference) => {
                let problem = format!(
                    "{} has other settings than those of the arm in {}: {difference}; what is joined has to have been \
                     made with the same",
                    name_of(record),
                    first.display()
                );
                Err(refused(folder, problem))
            }
            None => Ok(known.clone()),
        }
    }

    /// The finished runs of an unfinished trial.
    fn unfinished(&mut self, folder: &Folder, trial: &Trial) -> Result<(), ReadError> {
        let goes_on = "the command that began it goes on with --resume";
        let names = match folder.names(RUNS) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            names => names.map_err(|error| refused(&folder.join(RUNS), error))?,
        };
        let plan = PlannedCells::of(trial);
        let (mut count, mut bytes) = (0, 0);
        for name in names.iter().map(|name| Path::new(RUNS).join(name)) {
            let path = folder.join(&name);
            let text = match folder.read_at_most(&name, LONGEST_RECORD as u64) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                // A file that is being written, or was when the power failed, is no record yet.
                Err(error) if error.kind() == io::ErrorKind::InvalidData => None,
                text => Some(text.map_err(|error| refused(&path, error))?),
            };
            bytes += text.as_ref().map_or(LONGEST_RECORD, String::len) as u64;
            if bytes > LARGEST {
                let problem =
                    format!("its files are too long together: expected at most {} MiB", LARGEST >> 20);
                return Err(refused(&folder.join(RUNS), problem));
            }
            let text = text.filter(|text| check(trial, text).is_ok());
            let record = text.and_then(|text| serde_json::from_str::<Record>(&text).ok());
            let Some(record) = record.filter(|record| plan.has(trial, record)) else { continue };
            if path.file_stem().and_then(OsStr::to_str) != Some(record.id.as_str()) {
                let problem = format!("it is the record of another run: expected {RUNS}/{}.json", record.id);
                return Err(refused(&path, problem));
            }
            self.keep(folder, (&path, 1), trial, record)?;
            count += 1;
        }
        if count == 0 {
            return Err(refused(
                folder.path(),
                format!("the trial has not finished, and none of its runs has: {goes_on}"),
            ));
        }
        self.remarks.push(format!(
            "{}: the trial has not finished; this is of the {count} runs that have; {goes_on}",
            folder.path().display()
        ));
        Ok(())
    }
}

/// Reads the series of each arm's first run at each point, in the order of the runs, while there is room: of these some
/// are shown.
fn read_series(
    bundle: &mut Bundle,
    folders: &[Folder],
    standing: &BTreeMap<String, usize>,
) -> Result<(), ReadError> {
    let (mut room, mut shown, mut left_out) = (SeriesRoom::default(), BTreeSet::new(), 0);
    for record in &bundle.records {
        let Some(path) = &record.series else { continue };
        let folder = &folders[standing[&record.id]];
        let file = folder.join(path);
        let Some(text) = room.read(folder, path).map_err(|error| refused(&file, error))? else {
            left_out += 1;
            continue;
        };
        if record.series_sum.as_ref() != Some(&seal::sum(&text)) {
            return Err(refused(&file, format!("it was changed since it was written; {AGAIN}")));
        }
        if shown.insert((label(&record.point), &record.arm)) {
            match room.parse(&text) {
                Some(series) => drop(bundle.series.insert(record.id.clone(), series)),
                None => left_out += 1,
            }
        }
    }
    if left_out > 0 {
        bundle.remarks.push(format!(
            "the series of {left_out} runs are left out: a report reads series of at most {} MiB, the first runs first",
            SeriesRoom::MOST_BYTES >> 20
        ));
    }
    Ok(())
}

fn name_of(record: &Record) -> String {
    format!("the run of `{}` with seed {}", record.arm, record.seed)
}

const WANTED: &str = "expected a folder that hopwise trial has written";

fn read_trial(folder: &Folder) -> Result<Trial, ReadError> {
    let file = folder.join(PLAN);
    let text = folder.read_at_most(PLAN, LONGEST_PLAN).map_err(|error| {
        let is_missing = error.kind() == io::ErrorKind::NotFound;
        if is_missing && folder.has("run.json") {
            return refused(folder.path(), format!("it holds what hopwise run has written; {WANTED}"));
        }
        refused(&file, format!("{error}; {WANTED}"))
    })?;
    /// The rest of the plan is not kept.
    #[derive(serde::Deserialize)]
    struct Maker {
        version: String,
    }
    let maker = serde_json::from_str::<Maker>(&text).ok();
    let version = maker.as_ref().map(|maker| &*maker.version);
    let trial: Trial =
        serde_json::from_str(&text).map_err(|error| not_understood(&file, version, &error.to_string()))?;
    check(&trial, &text).map_err(|broken| refused(&file, format!("{broken}; {AGAIN}")))?;
    check_runs(&file, &trial)?;
    room::check_plan(&trial).map_err(|problem| refused(&file, problem))?;
    Ok(trial)
}

/// Refuses a plan of more runs than a trial has.
fn check_runs(file: &Path, trial: &Trial) -> Result<(), ReadError> {
    let [points, arms, seeds] = [trial.points.len(), trial.arms.len(), trial.seeds.len()];
    // A plan without arms is not to have points without end.
    let runs = [points, arms, seeds].iter().fold(1_usize, |runs, count| runs.saturating_mul((*count).max(1)));
    if runs <= MOST_RUNS {
        return Ok(());
    }
    let problem = format!(
        "`points` has {points} entries, `arms` has {arms} and `seeds` has {seeds}: expected at most {MOST_RUNS} runs, \
         which is their product"
    );
    Err(refused(file, problem))
}

/// Cells of points and arms that a report has room for, however few of their runs are there.
const FREE_CELLS: usize = 20_000;
/// Further cells for each run that is there. All runs of a trial fill every cell, and those of a part some.
const CELLS_OF_A_RUN: usize = 8;

/// Refuses a plan with far more cells than runs: each cell takes memory and a place in the report, and a short plan
/// names very many.
fn check_cells(file: &Path, trial: &Trial, runs: usize) -> Result<(), ReadError> {
    let (points, arms) = (trial.points.len(), trial.arms.len());
    let most = FREE_CELLS + CELLS_OF_A_RUN * runs;
    if points.saturating_mul(arms) <= most {
        return Ok(());
    }
    let problem = format!(
        "`points` has {points} entries and `arms` has {arms}, which come to {} cells, and {runs} runs are there: \
         expected at most {most} cells, {FREE_CELLS} and {CELLS_OF_A_RUN} for each run",
        points.saturating_mul(arms)
    );
    Err(refused(file, problem))
}

/// Remedy for a file that has changed since it was written.
const AGAIN: &str = "put the file back, or delete it and run the trial again with --resume";

/// Trials of versions without checksums can be read, too.
fn check(trial: &Trial, text: &str) -> Result<(), SealError> {
    match seal::check(text) {
        Err(SealError::Missing) if trial.version != version::of_program() => Ok(()),
        checked => checked,
    }
}

/// Another version may have written a different format; it can still read that itself.
fn not_understood(file: &Path, version: Option<&str>, error: &str) -> ReadError {
    match version {
        Some(version) if version != version::of_program() => {
            let problem = format!(
                "hopwise {version} wrote this, and this is {}, which does not understand it ({error}): the one that \
                 wrote it does",
                version::of_program()
            );
            refused(file, problem)
        }
        _ => refused(file, format!("{error}; {WANTED}")),
    }
}
