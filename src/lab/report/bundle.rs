//! A trial's folder, or the folders of its shards, read back.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use super::series::Series;
use crate::lab::record::{Record, Trial};

/// A trial with its runs, in the order of points, blocks and arms, whoever made them when.
#[derive(Clone, Debug)]
pub struct Bundle {
    pub trial: Trial,
    pub records: Vec<Record>,
    /// By the record's id.
    pub series: BTreeMap<String, Series>,
}

/// Why a folder cannot be read back.
#[derive(Debug)]
pub struct ReadError {
    pub place: String,
    pub problem: String,
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.problem)
    }
}

impl std::error::Error for ReadError {}

fn refused(place: &Path, problem: impl fmt::Display) -> ReadError {
    ReadError { place: place.display().to_string(), problem: problem.to_string() }
}

impl Bundle {
    /// Joins what the folders hold; they must be of one trial.
    pub fn read(folders: &[PathBuf]) -> Result<Bundle, ReadError> {
        let mut joined: Option<Trial> = None;
        let (mut records, mut series) = (BTreeMap::new(), BTreeMap::new());
        for folder in folders {
            let trial = Trial { shard: None, ..read_trial(&folder.join("trial.json"))? };
            match &joined {
                Some(first) if *first != trial => {
                    let problem = format!("is not of the trial in {}", folders[0].display());
                    return Err(refused(folder, problem));
                }
                _ => joined = Some(trial),
            }
            for record in read_records(&folder.join("records.jsonl"))? {
                if let Some(path) = &record.series {
                    let file = folder.join(path);
                    let text = fs::read_to_string(&file).map_err(|error| refused(&file, error))?;
                    series.insert(record.id.clone(), Series::parse(&text));
                }
                records.insert(record.id.clone(), record);
            }
        }
        let Some(trial) = joined else { return Err(refused(Path::new("report"), "no folder is named")) };
        Ok(Bundle::new(trial, records.into_values().collect(), series))
    }

    pub fn new(trial: Trial, mut records: Vec<Record>, series: BTreeMap<String, Series>) -> Bundle {
        let point = |record: &Record| trial.points.iter().position(|point| *point == record.point);
        let arm = |record: &Record| trial.arms.iter().position(|arm| *arm == record.arm);
        records.sort_by_key(|record| (point(record), record.block, arm(record)));
        Bundle { trial, records, series }
    }

    /// Runs that were planned, and those that are there.
    pub fn runs(&self) -> (usize, usize) {
        let trial = &self.trial;
        let there: BTreeSet<_> = self.records.iter().map(|record| &record.id).collect();
        (trial.points.len() * trial.arms.len() * trial.seeds.len(), there.len())
    }
}

fn read_trial(file: &Path) -> Result<Trial, ReadError> {
    let text = fs::read_to_string(file).map_err(|error| {
        refused(file, format_args!("{error}; expected a folder that hopwise trial has written"))
    })?;
    serde_json::from_str(&text).map_err(|error| refused(file, error))
}

fn read_records(file: &Path) -> Result<Vec<Record>, ReadError> {
    let text = fs::read_to_string(file).map_err(|error| refused(file, error))?;
    let parse = |(line, text): (usize, &str)| {
        serde_json::from_str(text).map_err(|error| refused(file, format_args!("line {line}: {error}")))
    };
    (1..).zip(text.lines()).filter(|(_, text)| !text.is_empty()).map(parse).collect()
}
