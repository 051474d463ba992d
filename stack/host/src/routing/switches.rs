//! Sets switches of the kernel below /proc/sys/net, and restores them when the last daemon that set them ends.
//!
//! Each old value is in a file on disk before it changes (`crate::journal`). A killed daemon leaves that file: the next
//! daemon that opens it, or `repair`, restores the old values. Daemons in one network namespace see each other's
//! switches by `shared`.

mod change;
mod shared;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::journal::{self, Journal, OF_SWITCHES};
use change::SwitchChange;
use shared::{ChangeLock, Needed};

const KERNEL: &str = "/proc/sys/net";

/// The switches that one daemon holds. Dropping it restores the switches that no other daemon needs.
#[derive(Debug)]
pub struct Switches {
    kernel: PathBuf,
    journal: Journal,
    changes: Vec<SwitchChange>,
    needed: Needed,
}

impl Switches {
    /// The file of old values for the daemon with this state file; each network namespace has its own.
    pub fn file_beside(state: &Path) -> io::Result<PathBuf> {
        journal::file_beside(state, OF_SWITCHES)
    }

    /// Takes the file, and restores values that a killed daemon left in it. The file and claims of other daemons count
    /// if they are root's, our own user's or these users'.
    pub fn open(path: &Path, users: &[u32]) -> io::Result<Switches> {
        Switches::open_below(Path::new(KERNEL), path, users)
    }

    fn open_below(kernel: &Path, path: &Path, users: &[u32]) -> io::Result<Switches> {
        let (journal, lines) = Journal::open(path, users)?;
        let needed = Needed::of(kernel, users);
        let mut switches =
            Switches { kernel: kernel.to_owned(), journal, changes: change::read(&lines), needed };
        let left = switches.put_back()?.left;
        switches.journal.begin(&text(&left))?;
        switches.changes = left;
        Ok(switches)
    }

    /// Sets a key such as `ipv4/conf/wlan0/forwarding`.
    pub fn set(&mut self, key: &str, value: &str) -> io::Result<()> {
        let _lock = ChangeLock::wait(&self.needed)?;
        let path = self.kernel.join(key);
        let now = fs::read_to_string(&path)?.trim().to_owned();
        // Another daemon has recorded the old value.
        let before = self.needed.others(key)?.into_iter().next().map_or(now.clone(), |named| named.before);
        let change = SwitchChange::new(key, before, value);
        self.needed.hold(&change)?;
        if !self.changes.contains(&change) {
            self.journal.note(&change.line())?;
            self.changes.push(change);
        }
        if now == value { Ok(()) } else { fs::write(path, value) }
    }

    /// Sets a switch of these interfaces to 0 if the kernel takes the larger of `all` and the interface. The other
    /// interfaces, and later ones, keep the value that `all` gave them.
    pub fn clear(&mut self, switch: &str, interfaces: &[&str]) -> io::Result<()> {
        let all = self.level_before("all", switch)?;
        // A new `default` changes each interface that was never set by itself. It therefore comes after them.
        let names =
            self.interfaces()?.into_iter().filter(|name| !["all", "default"].contains(&name.as_str()));
        let mut others = names.filter(|name| !interfaces.contains(&name.as_str()));
        others.try_for_each(|other| self.raise(&other, switch, all))?;
        interfaces.iter().try_for_each(|name| self.set(&format!("ipv4/conf/{name}/{switch}"), "0"))?;
        self.raise("default", switch, all)?;
        self.set(&format!("ipv4/conf/all/{switch}"), "0")
    }

    fn raise(&mut self, interface: &str, switch: &str, least: u8) -> io::Result<()> {
        if self.level_before(interface, switch)? >= least {
            return Ok(());
        }
        self.set(&format!("ipv4/conf/{interface}/{switch}"), &least.to_string())
    }

    /// The switch's value, before any daemon changed it.
    fn level_before(&self, interface: &str, switch: &str) -> io::Result<u8> {
        let key = format!("ipv4/conf/{interface}/{switch}");
        let named = self.needed.others(&key)?.into_iter().next();
        let text =
            named.map_or_else(|| fs::read_to_string(self.kernel.join(&key)), |other| Ok(other.before))?;
        text.trim().parse().map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }

    fn interfaces(&self) -> io::Result<Vec<String>> {
        let entries = fs::read_dir(self.kernel.join("ipv4/conf"))?;
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        let mut names: Vec<_> = names.collect();
        names.sort();
        Ok(names)
    }

    /// The switch of all interfaces that a lower value of this one waits for: no filter goes before that one is back.
    fn keeps(&self, change: &SwitchChange) -> Option<String> {
        let (all, level) = change.raised()?;
        let now = fs::read_to_string(self.kernel.join(&all));
        let is_back = now.is_ok_and(|now| now.trim().parse::<u8>().is_ok_and(|now| now >= level));
        (!is_back).then_some(all)
    }

    /// Restores the newest change first. A switch that another program has changed since stays. A switch that another
    /// daemon needs gets that daemon's value, and that daemon restores it.
    fn put_back(&mut self) -> io::Result<PutBack> {
        let _lock = ChangeLock::wait(&self.needed)?;
        self.needed.let_go();
        let mut done = PutBack::default();
        for change in std::mem::take(&mut self.changes).into_iter().rev() {
            let others = self.needed.others(&change.key)?;
            if let Some(other) = others.first() {
                if other.after != change.after
                    && let Err(error) = fs::write(self.kernel.join(&change.key), &other.after)
                {
                    tracing::debug!(key = change.key, %error, "a switch stays as this daemon needed it");
                }
                // A daemon with another old value leaves the restoring to this file.
                done.left.extend((other.before != change.before).then_some(change));
                continue;
            }
            if let Some(all) = self.keeps(&change) {
                // A daemon that still needs `all` off may end later.
                done.left.extend((!self.needed.others(&all)?.is_empty()).then_some(change));
                continue;
            }
            let (key, before) = (change.place(), &change.before);
            let path = self.kernel.join(&key);
            let now = fs::read_to_string(&path);
            let is_ours = now.as_ref().is_ok_and(|now| now.trim() == change.after);
            match is_ours.then(|| fs::write(&path, before)) {
                Some(Ok(())) => done.count += 1,
                Some(Err(error)) => tracing::warn!(key, before, %error, "a switch was not put back"),
                None => tracing::debug!(key, before, "a switch has changed since, or is gone, and stays"),
            }
            // Its device has just got another name.
            if now.is_err() && change.has_device() {
                done.left.push(change);
            }
        }
        done.left.reverse();
        Ok(done)
    }
}

/// The result of restoring a file's switches.
#[derive(Debug, Default)]
struct PutBack {
    count: usize,
    /// Another daemon needs them, or they were not found.
    left: Vec<SwitchChange>,
}

impl Drop for Switches {
    fn drop(&mut self) {
        match self.put_back() {
            Ok(PutBack { left, .. }) if left.is_empty() => self.journal.end(),
            Ok(PutBack { left, .. }) => {
                if let Err(error) = self.journal.begin(&text(&left)) {
                    tracing::warn!(%error, "the file of the kernel's old switches was not written");
                }
            }
            Err(error) => tracing::warn!(%error, "switches of the kernel stay changed"),
        }
    }
}

fn text(changes: &[SwitchChange]) -> String {
    changes.iter().map(SwitchChange::line).collect()
}

/// The lines that name a change, as a daemon writes them.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn known(lines: &[String]) -> Vec<String> {
    change::read(lines).iter().map(|change| change.line().trim_end().to_owned()).collect()
}

/// The files in this folder that killed daemons left.
pub fn left_in(folder: &Path) -> Vec<PathBuf> {
    journal::left_in(folder, OF_SWITCHES)
}

/// Restores the switches that a killed daemon left in this file, and removes it. Returns the number of switches. A file
/// of another network namespace stays as it is. For the users see [`Switches::open`].
pub fn repair(path: &Path, users: &[u32]) -> io::Result<usize> {
    let (journal, lines) = Journal::open_here(path, users)?;
    let (kernel, changes) = (Path::new(KERNEL), change::read(&lines));
    let needed = Needed::of(kernel, users);
    let mut switches = Switches { kernel: kernel.to_owned(), journal, changes, needed };
    let PutBack { count, left } = switches.put_back()?;
    switches.changes = left;
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::is_left_behind;

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
        let mut switches = Switches::open_below(&root, &root.join("a.switches"), &[]).expect("a journal");
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
        let mut killed = Switches::open_below(&root, &path, &[]).expect("a journal");
        killed.clear("rp_filter", &["wlan0"]).expect("they can be set");
        assert!(Switches::open_below(&root, &path, &[]).is_err(), "its daemon runs");
        assert!(!is_left_behind(&path));
        // A kill only closes the file.
        let copy = root.join("copy");
        fs::copy(&path, &copy).expect("a copy");
        let before = values(&root);
        drop(killed);
        fs::rename(&copy, &path).expect("a name");
        for (interface, value) in ["all", "default", "eth0", "wlan0"].iter().zip(before) {
            fs::write(root.join("ipv4/conf").join(interface).join("rp_filter"), value).expect("a file");
        }
        assert!(is_left_behind(&path) && left_in(&root) == std::slice::from_ref(&path));
        let next = Switches::open_below(&root, &path, &[]).expect("a journal");
        assert_eq!(values(&root), ["1", "0", "0", "2"]);
        drop(next);
        fs::remove_dir_all(root).expect("it is there");
    }

    #[test]
    fn the_last_of_two_daemons_puts_back_what_both_need() {
        let root = kernel("two");
        let before = values(&root);
        for last in [0, 1] {
            let open = |name| Switches::open_below(&root, &root.join(name), &[]).expect("a journal");
            let mut daemons = ["a.switches", "b.switches"].map(|name| Some(open(name)));
            for (daemon, interface) in daemons.iter_mut().zip(["wlan0", "eth0"]) {
                let daemon = daemon.as_mut().expect("it runs");
                daemon.clear("rp_filter", &[interface]).expect("they can be set");
            }
            assert_eq!(values(&root), ["0", "1", "0", "0"]);
            drop(daemons[1 - last].take());
            assert_eq!(values(&root)[0], "0", "the other one needs it");
            assert_eq!(values(&root)[[3, 2][last]], "0", "and its own interface");
            assert_eq!(values(&root)[1], "1", "others are filtered as before");
            drop(daemons[last].take());
            assert_eq!(values(&root), before, "daemon {last} was the last");
            assert!(left_in(&root).is_empty());
        }
        fs::remove_dir_all(root).expect("it is there");
    }

    #[test]
    fn each_namespace_has_a_file_of_its_own() {
        let state = Path::new("/run/hopwise/route-10.0.0.1");
        let here = Switches::file_beside(state).expect("there is a namespace");
        let namespace = fs::read_link("/proc/thread-self/ns/net").expect("there is one");
        let number = namespace.to_string_lossy().replace("net:[", "").replace(']', "");
        assert!(here.to_string_lossy().ends_with(&format!("-{number}.switches")), "{here:?}");
    }

    #[test]
    fn what_somebody_else_has_set_since_stays() {
        let root = kernel("since");
        let mut switches = Switches::open_below(&root, &root.join("a.switches"), &[]).expect("a journal");
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
        assert!(Switches::open_below(&root, &path, &[]).is_err());
        fs::remove_file(&path).expect("it is there");
        fs::hard_link(&target, &path).expect("a link");
        assert!(Switches::open_below(&root, &path, &[]).is_err(), "it has two names");
        assert_eq!(fs::read_to_string(target).expect("a file"), "precious");
        fs::remove_dir_all(root).expect("it is there");
    }

    /// The file of a daemon that was killed with these changes.
    fn planted(root: &Path, lines: &str) -> PathBuf {
        let path = root.join("a.switches");
        drop(Journal::open(&path, &[]).expect("it can be made").0.begin(""));
        let place = fs::read_to_string(&path).expect("a file");
        fs::write(&path, place + lines).expect("a file");
        path
    }

    #[test]
    fn a_planted_file_lets_go_of_no_filter() {
        let root = kernel("planted");
        fs::write(root.join("ipv4/conf/all/rp_filter"), "0").expect("a file");
        let path = planted(&root, "ipv4/conf/wlan0/rp_filter 0 2\nipv4/conf/all/accept_source_route 1 0\n");
        drop(Switches::open_below(&root, &path, &[]).expect("a journal"));
        assert_eq!(values(&root), ["0", "0", "0", "2"], "nothing else would filter there");
        // In a genuine one, the filter of all interfaces comes back first.
        let path = planted(&root, "ipv4/conf/wlan0/rp_filter 0 2\nipv4/conf/all/rp_filter 2 0\n");
        drop(Switches::open_below(&root, &path, &[]).expect("a journal"));
        assert_eq!(values(&root), ["2", "0", "0", "0"]);
        fs::remove_dir_all(root).expect("it is there");
    }

    #[test]
    fn a_file_of_a_user_without_a_daemon_is_refused() {
        if !rustix::process::geteuid().is_root() {
            println!("skipped: a file of a user without a daemon: only root can make one");
            return;
        }
        let root = kernel("owner");
        let path = planted(&root, "ipv4/conf/wlan0/rp_filter 1 0\n");
        for owned in [&path, &root] {
            std::os::unix::fs::chown(owned, Some(1234), None).expect("root may");
        }
        let refused = Switches::open_below(&root, &path, &[65_534]).expect_err("its user has no daemon");
        assert!(refused.to_string().contains("belongs to user 1234"), "{refused}");
        Switches::open_below(&root, &path, &[1234]).expect("its user has one");
        fs::remove_dir_all(root).expect("it is there");
    }
}
