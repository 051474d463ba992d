//! Files of old values of the system: where the values hold, and a line for each. A value is on disk before it changes.
//!
//! A daemon holds a lock on its file. One that is killed leaves a file without a lock. The next daemon with this file
//! restores the values, or `hopwise doctor --repair`.

mod gone;
mod locked;

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::process::geteuid;

use crate::namespace::OWN_NAMESPACE;
use crate::own_file::{open, open_own};
use crate::sys::namespace_cookie;
use gone::process_namespace;
use locked::Locked;

pub use gone::forget_gone;

/// The ends of the names of files: of switches, of a device on loan, of interfaces that were brought up.
pub(crate) const OF_SWITCHES: &str = ".switches";
pub(crate) const OF_LOAN: &str = ".lent";
pub(crate) const OF_BRINGUP: &str = ".up";
/// We write no larger file.
const LARGEST: u64 = 1 << 20;

/// A file that is ours while it is open.
#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    file: Locked,
    /// The place in the text that it had when it was opened.
    written: Option<JournalPlace>,
    /// The place of this daemon. It is read once: a confined daemon may not read the number of this boot.
    here: JournalPlace,
}

/// The place where a file's values hold: switches end with their network namespace, and with a restart of the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JournalPlace {
    device: u64,
    pub(crate) network: u64,
    boot: String,
    /// The PID namespace of the daemon.
    pub(crate) processes: Option<u64>,
    /// The cookie of the namespace. Its inode number may be used again, but not the cookie.
    pub(crate) cookie: Option<u64>,
}

/// The name contains the namespace: a daemon in another namespace leaves the file alone.
pub(crate) fn file_beside(state: &Path, end: &str) -> io::Result<PathBuf> {
    let namespace = fs::metadata(OWN_NAMESPACE)?;
    let mut name = state.as_os_str().to_owned();
    name.push(format!(".{}-{}{end}", namespace.dev(), namespace.ino()));
    Ok(PathBuf::from(name))
}

impl Journal {
    /// Opens the file with the lines that a killed daemon left. Lines of another namespace or boot are skipped.
    /// It refuses a file of users other than root, our own and these.
    pub(crate) fn open(path: &Path, users: &[u32]) -> io::Result<(Journal, Vec<String>)> {
        Journal::of(path, take(path, users)?)
    }

    /// The same, but it refuses a file of another namespace.
    pub(crate) fn open_here(path: &Path, users: &[u32]) -> io::Result<(Journal, Vec<String>)> {
        let (journal, lines) = Journal::open(path, users)?;
        if journal.is_of_this_boot() && !journal.written_at().is_in(&journal.here) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "its daemon ran in another network namespace: repair it there",
            ));
        }
        Ok((journal, lines))
    }

    /// The lines of a file of this namespace.
    pub(crate) fn lines_here(path: &Path) -> io::Result<Vec<String>> {
        let (written, lines) = written(&mut open(path, OpenOptions::new().read(true))?)?;
        Ok(lines_of(written.as_ref(), &JournalPlace::here()?, lines))
    }

    /// Opens an existing file that names its place.
    pub(crate) fn look(path: &Path) -> io::Result<Journal> {
        let file = open_own(path, OpenOptions::new().read(true).write(true))?;
        let (journal, _) = Journal::of(path, Locked::new(file)?)?;
        journal.written.as_ref().ok_or(io::ErrorKind::InvalidData)?;
        Ok(journal)
    }

    fn of(path: &Path, mut file: Locked) -> io::Result<(Journal, Vec<String>)> {
        let (written, lines) = written(&mut file)?;
        let here = JournalPlace::here()?;
        let lines = lines_of(written.as_ref(), &here, lines);
        Ok((Journal { path: path.to_owned(), file, written, here }, lines))
    }

    pub(crate) fn is_of_this_boot(&self) -> bool {
        self.written_at().boot == self.here.boot
    }

    /// The place in the text, or here if it names none.
    pub(crate) fn written_at(&self) -> &JournalPlace {
        self.written.as_ref().unwrap_or(&self.here)
    }

    /// Replaces all lines by these.
    pub(crate) fn begin(&mut self, lines: &str) -> io::Result<()> {
        let text = format!("{}\n{lines}", self.here.line());
        // The old lines go only after the new ones are written.
        self.file.rewind()?;
        self.file.write_all(text.as_bytes())?;
        self.file.set_len(text.len() as u64)?;
        self.file.sync_data()
    }

    /// Adds lines.
    pub(crate) fn note(&mut self, lines: &str) -> io::Result<()> {
        self.file.write_all(lines.as_bytes())?;
        self.file.sync_data()
    }

    /// Empties the file first, because the folder may not let us remove it.
    pub(crate) fn end(&mut self) {
        let _ = self.file.set_len(0);
        let _ = fs::remove_file(&self.path);
    }
}

/// Returns whether a killed daemon left changes in this file.
pub(crate) fn is_left_behind(path: &Path) -> bool {
    let opened = open(path, OpenOptions::new().read(true));
    opened.and_then(Locked::new).is_ok_and(|file| file.metadata().is_ok_and(|facts| facts.len() > 0))
}

/// The files in this folder with that end of their names that killed daemons left.
pub(crate) fn left_in(folder: &Path, end: &str) -> Vec<PathBuf> {
    let mut left = files_in(folder, end);
    left.retain(|path| is_left_behind(path));
    left
}

/// The files in this folder with that end of their names.
fn files_in(folder: &Path, end: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_one = |path: &PathBuf| path.as_os_str().as_encoded_bytes().ends_with(end.as_bytes());
    let mut files: Vec<_> = entries.filter(is_one).collect();
    files.sort();
    files
}

/// Removes a file that is empty and that no daemon holds, and returns whether it did.
fn remove_empty(path: &Path) -> bool {
    let locked = open(path, OpenOptions::new().read(true)).and_then(Locked::new);
    let is_unused = |file: &Locked| file.metadata().is_ok_and(|facts| facts.len() == 0);
    locked.is_ok_and(|file| is_unused(&file) && fs::remove_file(path).is_ok())
}

/// The lines of a file that was written at that place, as far as they hold here.
fn lines_of(written: Option<&JournalPlace>, here: &JournalPlace, lines: Vec<String>) -> Vec<String> {
    if written.is_some_and(|at| at.is_in(here)) { lines } else { Vec::new() }
}

/// The place in the file, and its other lines.
fn written(file: &mut File) -> io::Result<(Option<JournalPlace>, Vec<String>)> {
    let mut text = String::new();
    file.rewind()?;
    Read::by_ref(file).take(LARGEST).read_to_string(&mut text)?;
    Ok(parts(&text))
}

pub(crate) fn parts(text: &str) -> (Option<JournalPlace>, Vec<String>) {
    // A carriage return is a part of its line, as it was when the line was written.
    let mut lines = text.split_terminator('\n');
    let place = lines.next().and_then(JournalPlace::read);
    (place, lines.map(str::to_owned).collect())
}

impl JournalPlace {
    fn here() -> io::Result<JournalPlace> {
        let namespace = fs::metadata(OWN_NAMESPACE)?;
        let (processes, cookie) = (process_namespace().ok(), namespace_cookie());
        Ok(JournalPlace {
            device: namespace.dev(),
            network: namespace.ino(),
            boot: boot()?,
            processes,
            cookie,
        })
    }

    pub(crate) fn read(line: &str) -> Option<JournalPlace> {
        let mut words = line.split(' ');
        let (device, network) = words.next()?.split_once(':')?;
        let (device, network) = (device.parse().ok()?, network.parse().ok()?);
        let boot = words.next()?.to_owned();
        let mut number = || words.next().and_then(|word| word.parse().ok());
        let (processes, cookie) = (number(), number());
        Some(JournalPlace { device, network, boot, processes, cookie })
    }

    pub(crate) fn line(&self) -> String {
        let JournalPlace { device, network, boot, processes, cookie } = self;
        let number =
            |number: &Option<u64>| number.map_or_else(|| "-".to_owned(), |number| number.to_string());
        format!("{device}:{network} {boot} {} {}", number(processes), number(cookie))
    }

    fn is_in(&self, here: &JournalPlace) -> bool {
        let is_other = self.cookie.zip(here.cookie).is_some_and(|(of_file, ours)| of_file != ours);
        (self.device, self.network, &self.boot) == (here.device, here.network, &here.boot) && !is_other
    }
}

/// Opens the file as ours alone, and locks it.
fn take(path: &Path, users: &[u32]) -> io::Result<Locked> {
    let file = open_own(path, OpenOptions::new().read(true).write(true).create(true).mode(0o600))?;
    let owner = file.metadata()?.uid();
    let accepted: BTreeSet<_> = [0, geteuid().as_raw()].iter().chain(users).copied().collect();
    if !accepted.contains(&owner) {
        let named = |user: &u32| if *user == 0 { "root".to_owned() } else { format!("user {user}") };
        let accepted = accepted.iter().map(named).collect::<Vec<_>>().join(" or of ");
        let problem = format!("it belongs to user {owner}: expected a file of {accepted}");
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, problem));
    }
    Locked::new(file)
}

/// The number of this boot.
fn boot() -> io::Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_another_user_is_refused_with_the_users_whose_files_count() {
        if !geteuid().is_root() {
            println!(
                "skipped: a_file_of_another_user_is_refused_with_the_users_whose_files_count: only root can make one"
            );
            return;
        }
        let folder = std::env::temp_dir().join(format!("hopwise-journal-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let path = folder.join("mesh.up");
        fs::write(&path, "").expect("a file");
        for planted in [&folder, &path] {
            std::os::unix::fs::chown(planted, Some(1234), None).expect("root may");
        }
        let refused =
            |users: &[u32]| Journal::open(&path, users).map(drop).map_err(|error| error.to_string());
        let of = |accepted| Err(format!("it belongs to user 1234: expected a file of {accepted}"));
        assert_eq!(refused(&[]), of("root"));
        assert_eq!(refused(&[999]), of("root or of user 999"));
        assert_eq!(refused(&[1234]), Ok(()));
        fs::remove_dir_all(folder).expect("it is there");
    }
}
