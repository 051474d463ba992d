//! The file about interfaces that were brought up: how to undo it, and how far it has come.
//!
//! There is one for each network namespace, below /run: it goes with the machine's next start, as all changes do. The
//! process that makes changes, and waits for their confirmation, holds its lock. A file without a lock that is not
//! confirmed was left by a killed process.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::change::{InterfaceChange, StepError, told};
use super::line;
use super::plan::BringupStep;
use crate::journal::{self, Journal, OF_BRINGUP};
use crate::poller::once_free;

/// The progress of a bring-up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// No interface was brought up.
    #[default]
    Down,
    /// Changes are being made or undone, or wait for their confirmation.
    Unconfirmed,
    /// The changes stay until they are undone on demand.
    Confirmed,
}

/// The file, with its lock.
#[derive(Debug)]
pub struct Record {
    journal: Journal,
    path: PathBuf,
    phase: Phase,
    /// The configuration of these changes.
    config: Option<Config>,
    /// The configuration that was confirmed before this one replaced it.
    earlier: Option<Config>,
    /// The name of a file that was not confirmed in time, and that this one replaced again.
    went_back: Option<String>,
    undo: Vec<InterfaceChange>,
}

/// A configuration: the name of its file, and its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The name of the file.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// The outcome of undoing.
#[derive(Debug, Default)]
pub struct Undone {
    /// The number of changes that were undone.
    pub changes: usize,
    /// Changes that failed, each in words. The file keeps them.
    pub problems: Vec<String>,
}

/// The names of the files of `hopwise mesh up`, and of trials that change settings.
pub const OF_MESH: &str = "mesh";
/// The name of the files of trials.
pub const OF_TRIAL: &str = "trial";

/// The file of that name of this network namespace in a folder.
pub fn record_in(folder: &Path, name: &str) -> io::Result<PathBuf> {
    journal::file_beside(&folder.join(name), OF_BRINGUP)
}

/// The files in a folder whose process was killed before its changes were confirmed or undone.
pub fn left_bringups(folder: &Path) -> Vec<PathBuf> {
    let left = journal::left_in(folder, OF_BRINGUP).into_iter();
    left.filter(|path| Record::look(path).is_ok_and(|phase| phase == Phase::Unconfirmed)).collect()
}

impl Record {
    /// Takes the file, and makes it if there is none. It fails with `ResourceBusy` if another process keeps it.
    pub fn open(path: &Path) -> io::Result<Record> {
        let folder = path.parent().map_or(Ok(()), fs::create_dir_all);
        // Whoever looks for files that killed processes left has each for a moment.
        let (journal, lines) = folder.and_then(|()| once_free(|| Journal::open(path, &[])))?;
        let mut record = Record {
            journal,
            path: path.to_owned(),
            phase: Phase::Down,
            config: None,
            earlier: None,
            went_back: None,
            undo: Vec::new(),
        };
        lines.iter().for_each(|line| record.read(line));
        Ok(record)
    }

    /// The progress in a file; its process may be at work.
    fn look(path: &Path) -> io::Result<Phase> {
        let lines = Journal::lines_here(path)?;
        Ok(lines.iter().filter_map(|line| phase(line)).next_back().unwrap_or_default())
    }

    fn read(&mut self, line: &str) {
        if let Some(phase) = phase(line) {
            self.phase = phase;
        } else if let Some(config) = line.strip_prefix("config ") {
            self.config = Config::read(config);
        } else if let Some(config) = line.strip_prefix("earlier ") {
            self.earlier = Config::read(config);
        } else if let Some(name) = line.strip_prefix("went-back ") {
            self.went_back = line::bytes(name).map(|name| String::from_utf8_lossy(&name).into_owned());
        } else {
            self.undo.extend(line::read(line));
        }
    }

    /// Its progress.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The configuration of the changes.
    pub fn config(&self) -> Option<&Config> {
        self.config.as_ref()
    }

    /// The confirmed configuration to which these changes go back.
    pub fn earlier(&self) -> Option<&Config> {
        self.earlier.as_ref()
    }

    /// The name of a file that was not confirmed in time, so that this one came back.
    pub fn went_back(&self) -> Option<&str> {
        self.went_back.as_deref()
    }

    /// Begins changes for this configuration. An earlier one comes back if they are not confirmed. This one may have
    /// come back itself, after the file `went_back`.
    pub fn begin(
        &mut self,
        config: Config,
        earlier: Option<Config>,
        went_back: Option<String>,
    ) -> io::Result<()> {
        (self.config, self.earlier, self.went_back) = (Some(config), earlier, went_back);
        self.phase = Phase::Unconfirmed;
        self.undo.clear();
        self.journal.begin(&self.text())
    }

    fn text(&self) -> String {
        let mut lines = Vec::new();
        lines.extend(self.config.as_ref().map(|config| format!("config {}", config.line())));
        lines.extend(self.earlier.as_ref().map(|config| format!("earlier {}", config.line())));
        lines.extend(self.went_back.as_ref().map(|name| format!("went-back {}", line::hex(name.as_bytes()))));
        lines.push(word(self.phase).to_owned());
        lines.extend(self.undo.iter().map(line::of));
        lines.join("\n") + "\n"
    }

    /// Makes one step; how to undo it is on disk before.
    pub fn make(&mut self, step: &BringupStep) -> Result<(), StepError> {
        let lines: String = step.undo.iter().map(|change| line::of(change) + "\n").collect();
        self.journal.note(&lines).map_err(|error| StepError {
            step: format!("write down how to undo: {step}"),
            answer: format!("{}: {error}", self.path.display()),
            accepted: None,
        })?;
        self.undo.extend(step.undo.iter().cloned());
        step.make()
    }

    /// The changes stay from here on.
    pub fn confirm(&mut self) -> io::Result<()> {
        (self.phase, self.earlier) = (Phase::Confirmed, None);
        self.journal.begin(&self.text())
    }

    /// Removes a file in which nothing stands.
    pub fn forget(&mut self) {
        if self.phase == Phase::Down {
            self.journal.end();
        }
    }

    /// Undoes all changes, the last one first. The file goes, unless a change fails.
    pub fn undo(&mut self) -> Undone {
        let mut done = Undone::default();
        let mut failed = Vec::new();
        self.phase = Phase::Unconfirmed;
        let mut begun = self.journal.begin(&self.text());
        for change in std::mem::take(&mut self.undo).into_iter().rev() {
            match change.make_back() {
                Ok(()) => done.changes += 1,
                Err(refused) => {
                    done.problems.push(format!("{}: {refused}", in_words(&change)));
                    failed.push(change);
                }
            }
        }
        if failed.is_empty() {
            self.phase = Phase::Down;
            self.journal.end();
        } else {
            failed.reverse();
            self.undo = failed;
            begun = begun.and_then(|()| self.journal.begin(&self.text()));
        }
        if let Err(error) = begun {
            done.problems.push(format!("{}: {error}", self.path.display()));
        }
        done
    }
}

fn in_words(change: &InterfaceChange) -> String {
    let device = crate::netlink::device::device(change.index);
    told(device.ok().as_ref().map(|device| device.name.as_str()), &change.what)
}

fn phase(line: &str) -> Option<Phase> {
    [Phase::Unconfirmed, Phase::Confirmed].into_iter().find(|phase| word(*phase) == line)
}

fn word(phase: Phase) -> &'static str {
    match phase {
        Phase::Down => "down",
        Phase::Unconfirmed => "unconfirmed",
        Phase::Confirmed => "confirmed",
    }
}

impl Config {
    fn line(&self) -> String {
        format!("{} {}", line::hex(self.name.as_bytes()), line::hex(self.text.as_bytes()))
    }

    fn read(line: &str) -> Option<Config> {
        let (name, text) = line.split_once(' ')?;
        let text_of = |word| String::from_utf8(line::bytes(word)?).ok();
        Some(Config { name: text_of(name)?, text: text_of(text)? })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::bringup::change::What;
    use crate::poller::wait_for;

    fn config(name: &str) -> Config {
        Config { name: name.to_owned(), text: format!("# {name}\nregulatory: DE\n") }
    }

    /// Its folder is removed at the end.
    struct Folder(PathBuf);

    impl Folder {
        fn new(test: &str) -> Folder {
            let path = std::env::temp_dir().join(format!("hopwise-{test}-{}", std::process::id()));
            fs::create_dir_all(&path).expect("the temporary folder can be written");
            Folder(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_record_is_taken_once_whoever_looks_at_it_has_ended() {
        let folder = Folder::new("record-looked-at");
        let path = record_in(&folder.0, OF_MESH).expect("a namespace");
        let looked_at = Record::open(&path).expect("it can be made");
        let look = std::thread::spawn(move || {
            drop(wait_for(&mut [], Duration::from_millis(100)));
            drop(looked_at);
        });
        assert_eq!(Record::open(&path).expect("the look ends").phase(), Phase::Down);
        look.join().expect("it has ended");
    }

    #[test]
    fn a_record_is_read_as_far_as_it_came_and_its_end_removes_it() {
        let folder = Folder::new("record");
        let path = record_in(&folder.0, OF_MESH).expect("a namespace");
        let mut record = Record::open(&path).expect("it can be made");
        assert_eq!(record.phase(), Phase::Down);
        record.begin(config("new"), Some(config("old")), None).expect("it is written");
        // An interface that is gone needs nothing undone.
        record.undo.push(InterfaceChange::new(u32::MAX, What::Mtu(1_400)));
        record.journal.note("4294967295 mtu 1400\n").expect("it is written");
        let busy = Record::open(&path).expect_err("it is locked");
        assert_eq!(busy.kind(), io::ErrorKind::ResourceBusy);
        assert_eq!(left_bringups(&folder.0), Vec::<PathBuf>::new());
        drop(record);

        assert_eq!(left_bringups(&folder.0), std::slice::from_ref(&path));
        let mut record = Record::open(&path).expect("it is there");
        assert_eq!(record.phase(), Phase::Unconfirmed);
        assert_eq!((record.config(), record.earlier()), (Some(&config("new")), Some(&config("old"))));
        assert_eq!(record.undo, [InterfaceChange::new(u32::MAX, What::Mtu(1_400))]);
        record.begin(config("old"), None, Some("new".to_owned())).expect("it is written");
        record.undo.push(InterfaceChange::new(u32::MAX, What::Mtu(1_400)));
        record.confirm().expect("it is written");
        drop(record);

        assert_eq!(left_bringups(&folder.0), Vec::<PathBuf>::new(), "a confirmed one is no leftover");
        let mut record = Record::open(&path).expect("it is there");
        assert_eq!((record.phase(), record.earlier()), (Phase::Confirmed, None));
        assert_eq!((record.config(), record.went_back()), (Some(&config("old")), Some("new")));
        let undone = record.undo();
        assert_eq!((undone.changes, undone.problems.len()), (1, 0));
        assert!(!path.exists());
    }

    #[test]
    fn a_change_that_cannot_be_undone_stays_in_the_file() {
        let folder = Folder::new("record-kept");
        let path = record_in(&folder.0, OF_MESH).expect("a namespace");
        let mut record = Record::open(&path).expect("it can be made");
        record.begin(config("new"), None, None).expect("it is written");
        record
            .undo
            .push(InterfaceChange::new(0, What::Switch("ipv4/conf/all/forwarding/x".into(), "1".into())));
        let undone = record.undo();
        assert_eq!((undone.changes, undone.problems.len()), (0, 1), "{undone:?}");
        drop(record);
        let record = Record::open(&path).expect("it is there");
        assert_eq!((record.phase(), record.undo.len()), (Phase::Unconfirmed, 1));
    }
}
