//! The file of old values: where they hold, and a line for each switch. The line ends with the number of the switch's
//! device, where it has one. Files of older daemons have no such numbers.
//!
//! A daemon's user may write such a file without any rights, and root reads it. It names only switches that we change,
//! with values that we give them. At worst it turns `forwarding` off, turns `accept_redirects` of single interfaces on,
//! and raises `send_redirects` or `rp_filter`, where 2 is loose. It lowers these two only where `all` has as much,
//! which counts as well. A file of any other user is refused.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::process::geteuid;

use super::gone::process_namespace;
use super::{Change, parts};
use crate::namespace::OWN_NAMESPACE;
use crate::own_file::{open, open_own};
use crate::sys::namespace_cookie;

/// The end of the name of such a file.
const SUFFIX: &str = ".switches";
/// Each entry is a line; we write no larger file.
const LARGEST: u64 = 1 << 20;

/// A file that is ours while it is open.
#[derive(Debug)]
pub(super) struct Journal {
    path: PathBuf,
    file: File,
    /// The place in the text that it had when it was opened.
    written: Option<Written>,
    /// The place of this daemon. It is read once: a confined daemon may not read the number of this boot.
    here: Written,
}

/// The place where a file's values hold: switches end with their network namespace, and with a restart of the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Written {
    device: u64,
    pub(super) network: u64,
    boot: String,
    /// The PID namespace of the daemon.
    pub(super) processes: Option<u64>,
    /// The cookie of the namespace. Its inode number may be used again, but not the cookie.
    pub(super) cookie: Option<u64>,
}

/// The name contains the namespace: a daemon with the same state file in another namespace leaves it alone.
pub(super) fn file_beside(state: &Path) -> io::Result<PathBuf> {
    let namespace = fs::metadata(OWN_NAMESPACE)?;
    let mut name = state.as_os_str().to_owned();
    name.push(format!(".{}-{}{SUFFIX}", namespace.dev(), namespace.ino()));
    Ok(PathBuf::from(name))
}

impl Journal {
    /// Opens the file with the changes that a killed daemon left. Changes of another namespace or boot are skipped.
    /// It refuses a file of users other than root, our own and these.
    pub(super) fn open(path: &Path, users: &[u32]) -> io::Result<(Journal, Vec<Change>)> {
        Journal::of(path, take(path, users)?)
    }

    /// The same, but it refuses a file of another namespace.
    pub(super) fn open_here(path: &Path, users: &[u32]) -> io::Result<(Journal, Vec<Change>)> {
        let (journal, changes) = Journal::open(path, users)?;
        if journal.is_of_this_boot() && !journal.written_at().is_in(&journal.here) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "its daemon ran in another network namespace: repair it there",
            ));
        }
        Ok((journal, changes))
    }

    /// Opens an existing file that names its place.
    pub(super) fn look(path: &Path) -> io::Result<Journal> {
        let file = open_own(path, OpenOptions::new().read(true).write(true))?;
        lock(&file)?;
        let (journal, _) = Journal::of(path, file)?;
        journal.written.as_ref().ok_or(io::ErrorKind::InvalidData)?;
        Ok(journal)
    }

    fn of(path: &Path, mut file: File) -> io::Result<(Journal, Vec<Change>)> {
        let (written, changes) = written(&mut file)?;
        let here = Written::here()?;
        let changes = if written.as_ref().is_some_and(|at| at.is_in(&here)) { changes } else { Vec::new() };
        Ok((Journal { path: path.to_owned(), file, written, here }, changes))
    }

    pub(super) fn is_of_this_boot(&self) -> bool {
        self.written_at().boot == self.here.boot
    }

    /// The place in the text, or here if it names none.
    pub(super) fn written_at(&self) -> &Written {
        self.written.as_ref().unwrap_or(&self.here)
    }

    /// Replaces all entries by these.
    pub(super) fn begin(&mut self, changes: &[Change]) -> io::Result<()> {
        let lines: String = changes.iter().map(Change::line).collect();
        let text = format!("{}\n{lines}", self.here.line());
        // The old lines go only after the new ones are written.
        self.file.rewind()?;
        self.file.write_all(text.as_bytes())?;
        self.file.set_len(text.len() as u64)?;
        self.file.sync_data()
    }

    /// Writes a change to the disk, before the switch changes.
    pub(super) fn note(&mut self, change: &Change) -> io::Result<()> {
        self.file.write_all(change.line().as_bytes())?;
        self.file.sync_data()
    }

    /// Empties the file first, because the folder may not let us remove it.
    pub(super) fn end(&mut self) {
        let _ = self.file.set_len(0);
        let _ = fs::remove_file(&self.path);
    }
}

impl Change {
    fn line(&self) -> String {
        let device = self.device.map_or(String::new(), |device| format!(" {device}"));
        format!("{} {} {}{device}\n", self.key, self.before, self.after)
    }
}

/// Returns whether a killed daemon left changes in this file.
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

/// The place in the file, and its changes.
fn written(file: &mut File) -> io::Result<(Option<Written>, Vec<Change>)> {
    let mut text = String::new();
    file.rewind()?;
    Read::by_ref(file).take(LARGEST).read_to_string(&mut text)?;
    let mut lines = text.lines();
    let place = lines.next().and_then(Written::read);
    let (mut changes, mut others) = (Vec::new(), 0);
    for line in lines {
        match read_change(line) {
            Some(change) => changes.push(change),
            None => others += 1,
        }
    }
    if others > 0 {
        tracing::warn!(lines = others, "a file of old switches names some that no daemon changes: they stay");
    }
    Ok((place, changes))
}

impl Written {
    fn here() -> io::Result<Written> {
        let namespace = fs::metadata(OWN_NAMESPACE)?;
        let (processes, cookie) = (process_namespace().ok(), namespace_cookie());
        Ok(Written { device: namespace.dev(), network: namespace.ino(), boot: boot()?, processes, cookie })
    }

    fn read(line: &str) -> Option<Written> {
        let mut words = line.split(' ');
        let (device, network) = words.next()?.split_once(':')?;
        let (device, network) = (device.parse().ok()?, network.parse().ok()?);
        let boot = words.next()?.to_owned();
        let mut number = || words.next().and_then(|word| word.parse().ok());
        let (processes, cookie) = (number(), number());
        Some(Written { device, network, boot, processes, cookie })
    }

    fn line(&self) -> String {
        let Written { device, network, boot, processes, cookie } = self;
        let number =
            |number: &Option<u64>| number.map_or_else(|| "-".to_owned(), |number| number.to_string());
        format!("{device}:{network} {boot} {} {}", number(processes), number(cookie))
    }

    fn is_in(&self, here: &Written) -> bool {
        let is_other = self.cookie.zip(here.cookie).is_some_and(|(of_file, ours)| of_file != ours);
        (self.device, self.network, &self.boot) == (here.device, here.network, &here.boot) && !is_other
    }
}

/// Opens the file as ours alone, and locks it.
fn take(path: &Path, users: &[u32]) -> io::Result<File> {
    let file = open_own(path, OpenOptions::new().read(true).write(true).create(true).mode(0o600))?;
    let owner = file.metadata()?.uid();
    if ![0, geteuid().as_raw()].contains(&owner) && !users.contains(&owner) {
        let problem = format!("it belongs to user {owner}: expected a file of root or of the daemon's user");
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, problem));
    }
    lock(&file)?;
    Ok(file)
}

fn lock(file: &File) -> io::Result<()> {
    flock(file, FlockOperation::NonBlockingLockExclusive).map_err(|error| match error {
        rustix::io::Errno::WOULDBLOCK => io::Error::new(io::ErrorKind::ResourceBusy, "another daemon runs"),
        other => other.into(),
    })
}

/// The number of this boot.
fn boot() -> io::Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned())
}

/// Reads a change; `None` for a line that no daemon of ours wrote. A value that the kernel's documents do not list is
/// restored by an orderly end alone.
pub(super) fn read_change(line: &str) -> Option<Change> {
    let mut words = line.split(' ').map(str::to_owned);
    let (key, before, after) = (words.next()?, words.next()?, words.next()?);
    let change = Change { key, before, after, device: words.next().and_then(|word| word.parse().ok()) };
    let (interface, switch) = parts(&change.key)?;
    let is_plain = !matches!(interface, "" | "." | "..");
    (is_plain && is_made(interface, switch, value(&change.before)?, value(&change.after)?)).then_some(change)
}

/// Returns whether a daemon of ours makes this change.
fn is_made(interface: &str, switch: &str, before: u8, after: u8) -> bool {
    let is_one = !matches!(interface, "all" | "default");
    let (largest, is_ours) = match switch {
        "forwarding" => (1, is_one && after == 1),
        "accept_redirects" => (1, is_one && after == 0),
        // Interfaces are lowered, or raised to what `all` had.
        "send_redirects" => (1, interface != "all" || after == 0),
        "rp_filter" => (2, interface != "all" || after == 0),
        _ => return false,
    };
    is_ours && before.max(after) <= largest
}

/// A value as the kernel writes it.
fn value(text: &str) -> Option<u8> {
    text.parse().ok().filter(|value: &u8| value.to_string() == text)
}
