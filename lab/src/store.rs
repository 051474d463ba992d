//! A trial's folder: a file for each run, written once and whole, and at the end all of them in one.
//!
//! A record's name always stands for a whole record, however the program ends. Two programs never write one folder. The
//! cost of a run stands apart: a trial leaves equal files whenever it is run.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use hopwise_core::narrow::as_u32;
use rustix::fs::{FlockOperation, flock};
use serde::Serialize;

use super::campaign::Campaign;
use super::cost::{Cost, RunCost};
use super::folder::{self, Folder, UNFINISHED};
use super::record::{LONGEST_PLAN, LONGEST_RECORD, Record, Trial, csv_header, csv_row, series_of};
use super::seal;

/// The folder of a trial that this program alone writes.
#[derive(Debug)]
pub struct Store {
    folder: PathBuf,
    /// The lock is held while there is a store; the end of the process releases it.
    lock: File,
}

impl Drop for Store {
    /// A program that another thread is about to start has the file open, too, and would keep the lock.
    fn drop(&mut self) {
        let _ = flock(&self.lock, FlockOperation::Unlock);
    }
}

/// Treatment of records that a folder already holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreMode {
    /// A finished trial is kept under another name.
    Fresh,
    /// Any trial is kept under another name.
    Anew,
    /// The runs of the trial are taken over.
    Resume,
}

/// The reason why the folder does not serve.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another folder or other options would be accepted.
    #[error("{}: {problem}", .folder.display())]
    Refused {
        /// The refused folder.
        folder: PathBuf,
        /// The reason, in words.
        problem: String,
    },
    /// A call of the system failed.
    #[error("{}: {error}", .path.display())]
    Failed {
        /// The path that the call was about.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
}

pub(super) const PLAN: &str = "trial.json";
/// The file of a single run.
pub(super) const RUN: &str = "run.json";
const LOCK: &str = "lock";
pub(super) const RECORDS: &str = "records.jsonl";
/// The folders of single runs, and of their costs.
pub(super) const RUNS: &str = "runs";
const COSTS: &str = "costs";
const SERIES: &str = "series";
/// A file for each run in real time that was repeated: the reason of each try that does not count, a line each.
const SPOILT: &str = "spoilt";

impl Store {
    /// Opens or makes the folder; returns the name under which an older trial is kept, if there was one.
    pub fn open(
        folder: &Path,
        campaign: &Campaign,
        mode: StoreMode,
    ) -> Result<(Store, Option<PathBuf>), StoreError> {
        let trial = &campaign.trial;
        let mut store = Store::locked(folder)?;
        let plan = store.plan()?;
        let mut kept = None;
        match (plan, mode) {
            (None, _) => store.check_foreign()?,
            (Some(plan), StoreMode::Resume) => {
                store.check_same(&plan, trial)?;
                store.check_runs(campaign)?;
            }
            (Some(_), StoreMode::Fresh) if !store.folder.join(RECORDS).exists() => {
                let problem = "it holds a trial that has not finished: --resume goes on with it, --out DIR begins \
                               another one elsewhere";
                return Err(store.refuse(problem));
            }
            (Some(_), StoreMode::Fresh | StoreMode::Anew) => {
                kept = Some(store.make_way()?);
                store = Store::locked(folder)?;
            }
        }
        for name in [RUNS, COSTS, SERIES] {
            store.make(name)?;
            store.sweep(name)?;
        }
        store.write(PLAN, trial.text().as_bytes())?;
        Ok((store, kept))
    }

    /// The path of the folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Reserves the folder for a single run: no other program writes to it until the returned guard is dropped. Returns
    /// also the name under which an older run is kept, if there was one. A trial's folder is refused.
    pub fn reserve(folder: &Path) -> Result<(impl Sized, Option<PathBuf>), StoreError> {
        let store = Store::locked(folder)?;
        if store.folder.join(PLAN).exists() {
            return Err(store.refuse("it holds a trial, and a run would mix with it: choose another --out"));
        }
        if !store.folder.join(RUN).exists() {
            return Ok((store, None));
        }
        let kept = store.make_way()?;
        Ok((Store::locked(folder)?, Some(kept)))
    }

    fn locked(folder: &Path) -> Result<Store, StoreError> {
        let refuse = |error: io::Error| StoreError::Refused {
            folder: folder.to_owned(),
            problem: format!("no trial can be written there: {error}; choose another --out"),
        };
        fs::create_dir_all(folder).map_err(refuse)?;
        let path = folder.join(LOCK);
        let lock = folder::open_lock(folder, LOCK)
            .map_err(|error| refuse(io::Error::new(error.kind(), format!("{LOCK}: {error}"))))?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Store { folder: folder.to_owned(), lock }),
            Err(rustix::io::Errno::WOULDBLOCK) => Err(StoreError::Refused {
                folder: folder.to_owned(),
                problem: "somebody else writes there: wait for it, or choose another --out".to_owned(),
            }),
            Err(error) => Err(failed(&path, error.into())),
        }
    }

    fn refuse(&self, problem: impl Into<String>) -> StoreError {
        StoreError::Refused { folder: self.folder.clone(), problem: problem.into() }
    }

    /// The plan of the folder's trial.
    fn plan(&self) -> Result<Option<Trial>, StoreError> {
        match self.read_at_most(PLAN, LONGEST_PLAN) {
            Ok(text) => serde_json::from_str(&text).map(Some).map_err(|error| {
                self.refuse(format!("its {PLAN} is not understood ({error}): choose another --out"))
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.refuse(format!("its {PLAN} is not read ({error}): choose another --out"))),
        }
    }

    /// Foreign files stay alone, and so do files of a single run.
    fn check_foreign(&self) -> Result<(), StoreError> {
        if self.folder.join(RUN).exists() {
            return Err(self.refuse("it holds a single run: choose another --out"));
        }
        let entries = fs::read_dir(&self.folder).map_err(|error| failed(&self.folder, error))?;
        let mut names =
            entries.filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned()));
        match names.find(|name| name != LOCK && !name.ends_with(UNFINISHED)) {
            Some(name) => {
                let _ = fs::remove_file(self.folder.join(LOCK));
                Err(self.refuse(format!("it holds what is no trial's, such as {name}: choose another --out")))
            }
            None => Ok(()),
        }
    }

    fn check_same(&self, plan: &Trial, ours: &Trial) -> Result<(), StoreError> {
        let problem = if plan.version != ours.version {
            format!("its trial was made by hopwise {}, and this is {}", plan.version, ours.version)
        } else if plan.certificate != ours.certificate {
            "its trial was made by a radio world with another certificate".to_owned()
        } else if plan.scenario != ours.scenario {
            format!("it holds a trial of `{}`, not of `{}`", plan.scenario, ours.scenario)
        } else if plan.shard != ours.shard {
            "it holds another shard of the trial".to_owned()
        } else {
            return Ok(());
        };
        Err(self.refuse(format!("{problem}: choose another --out")))
    }

    /// Finished runs must be of this trial too, or another trial's report would replace theirs. Only seeds may differ:
    /// the trial may have more of them or fewer.
    fn check_runs(&self, campaign: &Campaign) -> Result<(), StoreError> {
        let ours: BTreeSet<&str> = campaign.runs.iter().map(|run| run.id.as_str()).collect();
        let names = self.names_of_runs();
        let names = names.iter().filter_map(|name| name.to_str()?.strip_suffix(".json"));
        for id in names.filter(|name| !ours.contains(name)) {
            if let Some(problem) = self.find(id).and_then(|record| campaign.difference(&record)) {
                let problem = format!(
                    "{problem}: --resume goes on with the same trial, with more seeds or fewer; choose another --out \
                     for another one"
                );
                return Err(self.refuse(problem));
            }
        }
        Ok(())
    }

    /// An older trial gets the first free name with a number.
    fn make_way(&self) -> Result<PathBuf, StoreError> {
        let named = |nth: u32| {
            let mut name = self.folder.as_os_str().to_owned();
            name.push(format!(".{nth}"));
            PathBuf::from(name)
        };
        let free = (1..).map(named).find(|path| !path.exists()).expect("numbers do not end");
        fs::rename(&self.folder, &free).map_err(|error| failed(&self.folder, error))?;
        Ok(free)
    }

    /// Removes half-written files of a program that was killed.
    fn sweep(&self, name: &str) -> Result<(), StoreError> {
        let folder = self.folder.join(name);
        let names = folder::names(&self.folder, name).map_err(|error| failed(&folder, error))?;
        for own in names.iter().filter(|own| own.to_string_lossy().ends_with(UNFINISHED)) {
            let removed = folder::remove(&self.folder, Path::new(name).join(own));
            removed.map_err(|error| failed(&folder.join(own), error))?;
        }
        Ok(())
    }

    /// Makes a folder in the trial's, if it is not there.
    pub fn make(&self, name: impl AsRef<Path>) -> Result<(), StoreError> {
        folder::make(&self.folder, &name).map_err(|error| failed(&self.folder.join(name), error))
    }

    fn names_of_runs(&self) -> Vec<OsString> {
        folder::names(&self.folder, RUNS).unwrap_or_default()
    }

    /// The run's record, if it is there and unchanged, and if a report takes it.
    pub fn find(&self, id: &str) -> Option<Record> {
        let line = self.line(id)?;
        seal::check(&line).ok()?;
        let record: Record = serde_json::from_str(&line).ok()?;
        let result = serde_json::to_value(&record.result).ok()?;
        (record.id == id && line.lines().count() == 1 && record.fault(&result).is_none()).then_some(record)
    }

    /// Records that are there and have changed: their runs will be made again.
    pub fn broken(&self) -> Vec<PathBuf> {
        let is_whole = |name: &OsString| self.find(name.to_str()?.strip_suffix(".json")?);
        let broken = self.names_of_runs().into_iter().filter(|name| is_whole(name).is_none());
        broken.map(|name| self.folder.join(RUNS).join(name)).collect()
    }

    fn line(&self, id: &str) -> Option<String> {
        self.read_at_most(format!("{RUNS}/{id}.json"), LONGEST_RECORD as u64).ok()
    }

    fn read_at_most(&self, name: impl AsRef<Path>, largest: u64) -> io::Result<String> {
        Folder::open(&self.folder)?.read_at_most(name, largest)
    }

    fn read(&self, name: impl AsRef<Path>) -> Option<String> {
        folder::read(&self.folder, name).ok()
    }

    /// A run has ended. Its record comes last: where it is, the rest is too.
    pub fn keep(&self, record: &Record, cost: &Cost, series: Option<&str>) -> Result<(), StoreError> {
        if let (Some(name), Some(series)) = (&record.series, series) {
            self.write(name, series.as_bytes())?;
        }
        let spent = line(&RunCost::now(Some(&record.id), cost));
        self.write(&format!("{COSTS}/{}.json", record.id), &spent)?;
        self.write(&format!("{RUNS}/{}.json", record.id), record.line().as_bytes())
    }

    /// The number of the run's tries that do not count.
    pub fn spoilt(&self, id: &str) -> u32 {
        self.read(spoilt_of(id)).map_or(0, |text| as_u32(text.lines().count()))
    }

    /// A try of the run does not count; the reason is one line.
    pub fn note_spoilt(&self, id: &str, why: &str) -> Result<(), StoreError> {
        let name = spoilt_of(id);
        self.make(SPOILT)?;
        self.write(&name, format!("{}{why}\n", self.read(&name).unwrap_or_default()).as_bytes())
    }

    /// Path of a run's series.
    pub fn series_of(id: &str) -> String {
        series_of(id)
    }

    /// Reopens a trial that goes on: the file of all its runs is out of date.
    pub fn reopen(&self) -> Result<(), StoreError> {
        let path = self.folder.join(RECORDS);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(&path, error)),
            _ => Ok(()),
        }
    }

    /// Writes all runs into one file of each format, in this order.
    pub fn finish(&self, trial: &Trial, ids: &[&str]) -> Result<(), StoreError> {
        let paths = trial.paths();
        self.write_by("costs.jsonl", |to| {
            ids.iter().try_for_each(|id| to.write_all(self.costs(id).as_bytes()))
        })?;
        self.write_by("records.csv", |to| {
            to.write_all(csv_header(&paths).as_bytes())?;
            ids.iter().try_for_each(|id| {
                let record = self.find(id).ok_or_else(|| gone(id))?;
                to.write_all(csv_row(&record, &paths).as_bytes())
            })
        })?;
        #[cfg(feature = "parquet")]
        self.write("records.parquet", &self.in_columns(ids, &paths)?)?;
        // This file marks the trial as finished: it comes last.
        self.write_by(RECORDS, |to| {
            ids.iter().try_for_each(|id| to.write_all(self.line(id).ok_or_else(|| gone(id))?.as_bytes()))
        })
    }

    #[cfg(feature = "parquet")]
    fn in_columns(&self, ids: &[&str], paths: &[&str]) -> Result<Vec<u8>, StoreError> {
        let path = self.folder.join("records.parquet");
        let records = ids.iter().map(|id| self.find(id).ok_or_else(|| failed(&path, gone(id))));
        let records = records.collect::<Result<Vec<_>, _>>()?;
        super::columns::file(&records, paths).map_err(|error| failed(&path, io::Error::other(error)))
    }

    fn costs(&self, id: &str) -> String {
        self.read(format!("{COSTS}/{id}.json")).unwrap_or_default()
    }

    /// Writes a file of the folder as a whole or not at all.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        self.write_by(name, |to| to.write_all(bytes))
    }

    fn write_by(
        &self,
        name: &str,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), StoreError> {
        folder::write_by(&self.folder, name, write).map_err(|error| failed(&self.folder.join(name), error))
    }
}

fn spoilt_of(id: &str) -> String {
    format!("{SPOILT}/{id}.txt")
}

fn gone(id: &str) -> io::Error {
    io::Error::other(format!("the record {id} has gone"))
}

fn line(value: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(value).expect("nothing in it but texts and numbers");
    line.push(b'\n');
    line
}

fn failed(path: &Path, error: io::Error) -> StoreError {
    StoreError::Failed { path: path.to_owned(), error }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_free_once_its_store_is_dropped_even_while_a_child_has_the_lock_file_open() {
        let folder = std::env::temp_dir().join(format!("hopwise-store-{}", std::process::id()));
        let store = Store::locked(&folder).expect("nobody writes there");
        let inherited = store.lock.try_clone().expect("a descriptor is free");
        assert!(Store::locked(&folder).is_err(), "it is in use");
        drop(store);
        assert!(Store::locked(&folder).is_ok());
        drop(inherited);
        fs::remove_dir_all(folder).expect("it is there");
    }
}
