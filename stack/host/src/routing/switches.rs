//! The kernel's switches below /proc/sys/net, put back as they were when the daemon ends.
//!
//! Each old value is in a file on disk before it changes. The daemon holds a lock on that file. A file without a lock
//! is what a killed daemon left: the next daemon with the same file, or `repair`, puts the old values back.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, OFlags, flock};

const KERNEL: &str = "/proc/sys/net";
/// A file of old values has this at the end of its name.
const SUFFIX: &str = ".switches";
/// Each entry is a line; a file beyond this size is none of ours.
const LARGEST: u64 = 1 << 20;

/// One switch that was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Change {
    key: String,
    before: String,
    after: String,
}

#[derive(Debug)]
pub struct Switches {
    kernel: PathBuf,
    path: PathBuf,
    journal: File,
    changes: Vec<Change>,
}

impl Switches {
    /// The file in which the switches of the daemon with this state file are remembered.
    pub fn file_beside(state: &Path) -> PathBuf {
        let mut name = state.as_os_str().to_owned();
        name.push(SUFFIX);
        PathBuf::from(name)
    }

    /// Takes the file, and puts back what a killed daemon left in it.
    pub fn open(path: &Path) -> io::Result<Switches> {
        Switches::open_below(Path::new(KERNEL), path)
    }

    fn open_below(kernel: &Path, path: &Path) -> io::Result<Switches> {
        let mut journal = take(path)?;
        let (place, written) = written(&mut journal)?;
        // What was changed elsewhere, or before this machine started, is not changed here.
        let changes = if place == here()? { written } else { Vec::new() };
        let mut switches = Switches { kernel: kernel.to_owned(), path: path.to_owned(), journal, changes };
        switches.put_back();
        switches.journal.set_len(0)?;
        switches.journal.rewind()?;
        writeln!(switches.journal, "{}", here()?)?;
        Ok(switches)
    }

    /// Sets a key such as `ipv4/conf/wlan0/forwarding`.
    pub fn set(&mut self, key: &str, value: &str) -> io::Result<()> {
        let path = self.kernel.join(key);
        let before = fs::read_to_string(&path)?.trim().to_owned();
        if before == value {
            return Ok(());
        }
        let change = Change { key: key.to_owned(), before, after: value.to_owned() };
        writeln!(self.journal, "{} {} {}", change.key, change.before, change.after)?;
        self.journal.sync_data()?;
        self.changes.push(change);
        fs::write(path, value)
    }

    /// Sets a switch of these interfaces to 0 where the kernel takes the larger of `all` and the interface. The other
    /// interfaces, and those to come, keep the value that `all` gave them.
    pub fn clear(&mut self, switch: &str, interfaces: &[&str]) -> io::Result<()> {
        let all = self.level("all", switch)?;
        if all > 0 {
            for other in self.interfaces()? {
                let is_ours = interfaces.contains(&other.as_str());
                if other != "all" && !is_ours && self.level(&other, switch)? < all {
                    self.set(&format!("ipv4/conf/{other}/{switch}"), &all.to_string())?;
                }
            }
            self.set(&format!("ipv4/conf/all/{switch}"), "0")?;
        }
        interfaces.iter().try_for_each(|name| self.set(&format!("ipv4/conf/{name}/{switch}"), "0"))
    }

    fn level(&self, interface: &str, switch: &str) -> io::Result<u8> {
        let text = fs::read_to_string(self.kernel.join("ipv4/conf").join(interface).join(switch))?;
        text.trim().parse().map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }

    fn interfaces(&self) -> io::Result<Vec<String>> {
        let entries = fs::read_dir(self.kernel.join("ipv4/conf"))?;
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        let mut names: Vec<_> = names.collect();
        names.sort();
        Ok(names)
    }

    /// The newest first. A switch that somebody else has changed since stays as it is.
    fn put_back(&mut self) -> usize {
        let mut count = 0;
        for Change { key, before, after } in self.changes.drain(..).rev() {
            let path = self.kernel.join(&key);
            let is_ours = fs::read_to_string(&path).is_ok_and(|now| now.trim() == after);
            match is_ours.then(|| fs::write(&path, &before)) {
                Some(Ok(())) => count += 1,
                Some(Err(error)) => tracing::warn!(key, before, %error, "a switch was not put back"),
                None => tracing::debug!(key, before, "a switch has changed since, or is gone, and stays"),
            }
        }
        count
    }
}

impl Drop for Switches {
    fn drop(&mut self) {
        self.put_back();
        let _ = fs::remove_file(&self.path);
    }
}

/// Whether a daemon that was killed left this file.
fn is_left_behind(path: &Path) -> bool {
    open(path, OpenOptions::new().read(true)).is_ok_and(|file| lock(&file).is_ok())
}

/// The files in this folder that killed daemons left.
pub fn left_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_one = |path: &PathBuf| path.as_os_str().as_encoded_bytes().ends_with(SUFFIX.as_bytes());
    let mut left: Vec<_> = entries.filter(is_one).filter(|path| is_left_behind(path)).collect();
    left.sort();
    left
}

/// Puts back what a killed daemon left in this file, and removes it. Answers how many switches that were. A file of
/// another network namespace stays as it is.
pub fn repair(path: &Path) -> io::Result<usize> {
    let mut journal = take(path)?;
    let (place, written) = written(&mut journal)?;
    let is_here = place == here()?;
    if !is_here && place.ends_with(&boot()?) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "its daemon ran in another network namespace: repair it there",
        ));
    }
    let changes = if is_here { written } else { Vec::new() };
    let kernel = Path::new(KERNEL).to_owned();
    Ok(Switches { kernel, path: path.to_owned(), journal, changes }.put_back())
}

/// The place that the file names, and the changes in it.
fn written(journal: &mut File) -> io::Result<(String, Vec<Change>)> {
    let mut text = String::new();
    journal.rewind()?;
    Read::by_ref(journal).take(LARGEST).read_to_string(&mut text)?;
    let mut lines = text.lines();
    let place = lines.next().unwrap_or_default().to_owned();
    Ok((place, lines.filter_map(read_change).collect()))
}

/// Opened without following a link, owned by us, and locked.
fn take(path: &Path) -> io::Result<File> {
    let file = open(path, OpenOptions::new().read(true).write(true).create(true).mode(0o600))?;
    let facts = file.metadata()?;
    if !facts.is_file() || facts.nlink() != 1 || facts.uid() != rustix::process::geteuid().as_raw() {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "this file belongs to somebody else"));
    }
    lock(&file)?;
    Ok(file)
}

fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    options.custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32).open(path)
}

fn lock(file: &File) -> io::Result<()> {
    flock(file, FlockOperation::NonBlockingLockExclusive).map_err(|error| match error {
        rustix::io::Errno::WOULDBLOCK => io::Error::new(io::ErrorKind::ResourceBusy, "another daemon runs"),
        other => other.into(),
    })
}

/// Names the network namespace and the start of this machine: switches do not outlive either.
fn here() -> io::Result<String> {
    let namespace = fs::metadata("/proc/thread-self/ns/net")?;
    Ok(format!("{}:{} {}", namespace.dev(), namespace.ino(), boot()?))
}

fn boot() -> io::Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned())
}

/// A line that no daemon of ours wrote names no switch.
fn read_change(line: &str) -> Option<Change> {
    let mut words = line.split(' ').map(str::to_owned);
    let change = Change { key: words.next()?, before: words.next()?, after: words.next()? };
    let is_below = change.key.starts_with("ipv4/conf/") && !change.key.split('/').any(|part| part == "..");
    let is_number = |text: &str| text.parse::<u8>().is_ok();
    (is_below && is_number(&change.before) && is_number(&change.after)).then_some(change)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder that looks like the kernel's, with two interfaces.
    fn kernel(test: &str) -> PathBuf {
        let root = std::env::temp_dir().join(format!("hopwise-switches-{test}-{}", std::process::id()));
        for (interface, value) in [("all", "1"), ("default", "0"), ("eth0", "0"), ("wlan0", "2")] {
            let folder = root.join("ipv4/conf").join(interface);
            fs::create_dir_all(&folder).expect("a folder");
            fs::write(folder.join("rp_filter"), format!("{value}\n")).expect("a file");
        }
        root
    }

    fn values(root: &Path) -> [String; 4] {
        ["all", "default", "eth0", "wlan0"].map(|interface| {
            let path = root.join("ipv4/conf").join(interface).join("rp_filter");
            fs::read_to_string(path).expect("a file").trim().to_owned()
        })
    }

    #[test]
    fn other_interfaces_keep_their_level_and_all_come_back() {
        let root = kernel("clear");
        let mut switches = Switches::open_below(&root, &root.join("a.switches")).expect("a journal");
        switches.clear("rp_filter", &["wlan0"]).expect("they can be set");
        assert_eq!(values(&root), ["0", "1", "1", "0"], "eth0 is filtered as before");
        drop(switches);
        assert_eq!(values(&root), ["1", "0", "0", "2"]);
        assert!(!root.join("a.switches").exists());
        fs::remove_dir_all(root).expect("it is there");
    }

    #[test]
    fn a_killed_daemon_s_switches_come_back_at_the_next_start() {
        let root = kernel("killed");
        let path = root.join("a.switches");
        let mut killed = Switches::open_below(&root, &path).expect("a journal");
        killed.clear("rp_filter", &["wlan0"]).expect("they can be set");
        assert!(Switches::open_below(&root, &path).is_err(), "its daemon runs");
        assert!(!is_left_behind(&path));
        // A kill closes the file and does nothing else.
        let copy = root.join("copy");
        fs::copy(&path, &copy).expect("a copy");
        let before = values(&root);
        drop(killed);
        fs::rename(&copy, &path).expect("a name");
        for (interface, value) in ["all", "default", "eth0", "wlan0"].iter().zip(before) {
            fs::write(root.join("ipv4/conf").join(interface).join("rp_filter"), value).expect("a file");
        }
        assert!(is_left_behind(&path) && left_in(&root) == std::slice::from_ref(&path));
        let next = Switches::open_below(&root, &path).expect("a journal");
        assert_eq!(values(&root), ["1", "0", "0", "2"]);
        drop(next);
        fs::remove_dir_all(root).expect("it is there");
    }

    #[test]
    fn what_somebody_else_has_set_since_stays() {
        let root = kernel("since");
        let mut switches = Switches::open_below(&root, &root.join("a.switches")).expect("a journal");
        switches.clear("rp_filter", &["wlan0"]).expect("they can be set");
        fs::write(root.join("ipv4/conf/wlan0/rp_filter"), "1").expect("a file");
        drop(switches);
        assert_eq!(values(&root), ["1", "0", "0", "1"]);
        fs::remove_dir_all(root).expect("it is there");
    }

    #[test]
    fn a_link_in_place_of_the_file_is_refused() {
        let root = kernel("link");
        let (path, target) = (root.join("a.switches"), root.join("precious"));
        fs::write(&target, "precious").expect("a file");
        std::os::unix::fs::symlink(&target, &path).expect("a link");
        assert!(Switches::open_below(&root, &path).is_err());
        fs::remove_file(&path).expect("it is there");
        fs::hard_link(&target, &path).expect("a link");
        assert!(Switches::open_below(&root, &path).is_err(), "it has two names");
        assert_eq!(fs::read_to_string(target).expect("a file"), "precious");
        fs::remove_dir_all(root).expect("it is there");
    }

    #[test]
    fn lines_that_name_no_switch_are_passed_over() {
        assert!(read_change("ipv4/conf/wlan0/rp_filter 2 0").is_some());
        for line in ["ipv4/conf/../ip_forward 1 0", "core/x 1 0", "ipv4/conf/a/b x 0", "ipv4/conf/a/b 1"] {
            assert_eq!(read_change(line), None, "{line}");
        }
    }
}
