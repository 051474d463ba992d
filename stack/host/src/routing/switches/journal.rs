//! The file of old values: where they hold, and a line for each switch.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use super::Change;
use crate::namespace::OWN_NAMESPACE;
use crate::own_file::{open, open_own};

/// A file of old values has this at the end of its name.
const SUFFIX: &str = ".switches";
/// Each entry is a line; a file beyond this size is none of ours.
const LARGEST: u64 = 1 << 20;

/// A file that is ours as long as it is open.
#[derive(Debug)]
pub(super) struct Journal {
    path: PathBuf,
    file: File,
    /// Read once: a confined daemon may not read the number of this boot any more.
    here: String,
}

/// Named after the namespace as well: a daemon with the same state file in another one leaves it alone.
pub(super) fn file_beside(state: &Path) -> io::Result<PathBuf> {
    let namespace = fs::metadata(OWN_NAMESPACE)?;
    let mut name = state.as_os_str().to_owned();
    name.push(format!(".{}-{}{SUFFIX}", namespace.dev(), namespace.ino()));
    Ok(PathBuf::from(name))
}

impl Journal {
    /// With what a killed daemon left in it. What was changed elsewhere, or before this machine started, is not
    /// changed here.
    pub(super) fn open(path: &Path) -> io::Result<(Journal, Vec<Change>)> {
        let mut file = take(path)?;
        let (place, written) = written(&mut file)?;
        let here = here()?;
        let changes = if place == here { written } else { Vec::new() };
        Ok((Journal { path: path.to_owned(), file, here }, changes))
    }

    /// The same, but a file of another namespace is refused.
    pub(super) fn open_here(path: &Path) -> io::Result<(Journal, Vec<Change>)> {
        let mut file = take(path)?;
        let (place, _) = written(&mut file)?;
        if place != here()? && place.ends_with(&boot()?) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "its daemon ran in another network namespace: repair it there",
            ));
        }
        drop(file);
        Journal::open(path)
    }

    /// Nothing is in it but these.
    pub(super) fn begin(&mut self, changes: &[Change]) -> io::Result<()> {
        let lines: String = changes.iter().map(Change::line).collect();
        let text = format!("{}\n{lines}", self.here);
        // The old lines go after the new ones are there.
        self.file.rewind()?;
        self.file.write_all(text.as_bytes())?;
        self.file.set_len(text.len() as u64)?;
        self.file.sync_data()
    }

    /// On the disk before the switch changes.
    pub(super) fn note(&mut self, change: &Change) -> io::Result<()> {
        self.file.write_all(change.line().as_bytes())?;
        self.file.sync_data()
    }

    /// An empty file says nothing, where its folder does not let us remove it.
    pub(super) fn end(&mut self) {
        let _ = self.file.set_len(0);
        let _ = fs::remove_file(&self.path);
    }
}

impl Change {
    fn line(&self) -> String {
        format!("{} {} {}\n", self.key, self.before, self.after)
    }
}

/// Whether a daemon that was killed left something in this file.
pub(super) fn is_left_behind(path: &Path) -> bool {
    let opened = open(path, OpenOptions::new().read(true));
    opened.is_ok_and(|file| lock(&file).is_ok() && file.metadata().is_ok_and(|facts| facts.len() > 0))
}

/// The files in this folder that killed daemons left.
pub fn left_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_one = |path: &PathBuf| path.as_os_str().as_encoded_bytes().ends_with(SUFFIX.as_bytes());
    let mut left: Vec<_> = entries.filter(is_one).filter(|path| is_left_behind(path)).collect();
    left.sort();
    left
}

/// The place that the file names, and the changes in it.
fn written(file: &mut File) -> io::Result<(String, Vec<Change>)> {
    let mut text = String::new();
    file.rewind()?;
    Read::by_ref(file).take(LARGEST).read_to_string(&mut text)?;
    let mut lines = text.lines();
    let place = lines.next().unwrap_or_default().to_owned();
    Ok((place, lines.filter_map(read_change).collect()))
}

/// Opened as ours alone, and locked.
fn take(path: &Path) -> io::Result<File> {
    let file = open_own(path, OpenOptions::new().read(true).write(true).create(true).mode(0o600))?;
    lock(&file)?;
    Ok(file)
}

fn lock(file: &File) -> io::Result<()> {
    flock(file, FlockOperation::NonBlockingLockExclusive).map_err(|error| match error {
        rustix::io::Errno::WOULDBLOCK => io::Error::new(io::ErrorKind::ResourceBusy, "another daemon runs"),
        other => other.into(),
    })
}

/// Names the network namespace and the start of this machine: switches do not outlive either.
fn here() -> io::Result<String> {
    let namespace = fs::metadata(OWN_NAMESPACE)?;
    Ok(format!("{}:{} {}", namespace.dev(), namespace.ino(), boot()?))
}

fn boot() -> io::Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned())
}

/// A line that no daemon of ours wrote names no switch.
pub(super) fn read_change(line: &str) -> Option<Change> {
    let mut words = line.split(' ').map(str::to_owned);
    let change = Change { key: words.next()?, before: words.next()?, after: words.next()? };
    let is_below = change.key.starts_with("ipv4/conf/") && !change.key.split('/').any(|part| part == "..");
    let is_number = |text: &str| text.parse::<u8>().is_ok();
    (is_below && is_number(&change.before) && is_number(&change.after)).then_some(change)
}
