//! Removes files of old values whose network namespace is gone, together with what they are about.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::{Journal, OF_BRINGUP, OF_LOAN, OF_SWITCHES, files_in, is_left_behind, remove_empty};
use crate::namespace::in_namespace;
use crate::sys::namespace_cookie;

/// The first PID namespace of a machine, in which all processes are visible (PROC_PID_INIT_INO).
const FIRST: u64 = 0xEFFF_FFFC;

/// Removes files that no daemon can use any more, and returns their number. A file stays if a process that is invisible
/// here may be in its namespace.
pub fn forget_gone(folder: &Path) -> usize {
    let files = [OF_SWITCHES, OF_LOAN, OF_BRINGUP].map(|end| files_in(folder, end)).concat();
    if files.is_empty() {
        return 0;
    }
    let (Ok(own), Some(held)) = (process_namespace(), network_namespaces()) else { return 0 };
    // The name alone tells the place of an empty file, so it stays if a process may be invisible here.
    let is_unused = |path: &&PathBuf| {
        own == FIRST && network_in_name(path).is_some_and(|network| !held.contains_key(&network))
    };
    let removed = files.iter().filter(is_unused).filter(|path| remove_empty(path)).count();
    let is_gone = |journal: &Journal| {
        let place = journal.written_at();
        let sees_all = own == FIRST || place.processes == Some(own);
        let is_held = |path: &PathBuf| {
            // A new namespace may have the number of a gone one.
            cookie_of(path).zip(place.cookie).is_none_or(|(there, of_file)| there == of_file)
        };
        !journal.is_of_this_boot() || (sees_all && !held.get(&place.network).is_some_and(is_held))
    };
    let left = files.iter().filter(|path| is_left_behind(path));
    let opened = left.filter_map(|path| Journal::look(path).ok());
    removed + opened.filter(is_gone).map(|mut journal| journal.end()).count()
}

/// The network namespace in the name of such a file.
fn network_in_name(path: &Path) -> Option<u64> {
    let (_, place) = path.file_stem()?.to_str()?.rsplit_once('.')?;
    place.split_once('-')?.1.parse().ok()
}

/// The PID namespace of this process.
pub(super) fn process_namespace() -> io::Result<u64> {
    Ok(fs::metadata("/proc/self/ns/pid")?.ino())
}

/// A path to each namespace by its number: by a visible thread, or by a mount as `ip netns` makes it. `None` if the
/// namespace of a thread is unknown.
fn network_namespaces() -> Option<BTreeMap<u64, PathBuf>> {
    let mounts = fs::read("/proc/self/mountinfo").ok()?;
    let mut held = mounted_in(&mounts);
    for process in fs::read_dir("/proc").ok()?.flatten() {
        let is_first = process.file_name() == "1";
        // Other entries have no threads, and a process may have ended.
        let Ok(threads) = fs::read_dir(process.path().join("task")) else { continue };
        for thread in threads.flatten() {
            let path = thread.path().join("ns/net");
            match fs::metadata(&path) {
                Ok(facts) => drop(held.insert(facts.ino(), path)),
                // Some machines close their first process to root. Others are in its namespace.
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied && !is_first => return None,
                Err(_) => {}
            }
        }
    }
    // Another thread may end before its path is opened; this thread does not.
    let own = PathBuf::from("/proc/thread-self/ns/net");
    let number = fs::metadata(&own).ok()?.ino();
    held.insert(number, own);
    Some(held)
}

/// The namespaces that mounts hold. Other mounts may belong to users, with names of any bytes.
fn mounted_in(mounts: &[u8]) -> BTreeMap<u64, PathBuf> {
    String::from_utf8_lossy(mounts).lines().filter_map(mounted).collect()
}

/// The number of a namespace and its path, from a line of mountinfo.
fn mounted(line: &str) -> Option<(u64, PathBuf)> {
    let mut words = line.split(' ').skip(3);
    let number = words.next()?.strip_prefix("net:[")?.strip_suffix(']')?.parse().ok()?;
    Some((number, words.next()?.into()))
}

/// The cookie of another namespace, which takes root.
fn cookie_of(namespace: &Path) -> Option<u64> {
    let mut cookie = None;
    let look = || {
        cookie = namespace_cookie();
        Ok(())
    };
    in_namespace(&File::open(namespace).ok()?, look).ok()?;
    cookie
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_namespace_is_among_those_that_are_held() {
        let own = fs::metadata("/proc/thread-self/ns/net").expect("there is one").ino();
        // Only root sees the namespaces of other users.
        assert!(network_namespaces().is_none_or(|held| held.contains_key(&own)));
        let line = "99 45 0:4 net:[4026532177] /run/netns/a rw shared:62 - nsfs nsfs rw";
        assert_eq!(mounted(line), Some((4_026_532_177, "/run/netns/a".into())));
        // FUSE lets a user mount at such a name.
        let odd = b"98 45 0:50 / /mnt/eve/\xff\xfe rw shared:61 - fuse eve rw\n";
        let held = mounted_in(&[&odd[..], line.as_bytes()].concat());
        assert_eq!(held.into_iter().next(), mounted(line));
    }

    /// A namespace has ended, and another one got its number.
    #[test]
    fn what_a_namespace_of_the_same_number_left_is_not_ours() {
        let path = std::env::temp_dir().join(format!("hopwise-same-number-{}.switches", std::process::id()));
        let (mut journal, _) = Journal::open(&path, &[]).expect("it can be made");
        journal.begin("ipv4/conf/wlan0/rp_filter 2 0\n").expect("it is written");
        drop(journal);
        let (journal, left) = Journal::open(&path, &[]).expect("it is there");
        assert_eq!(left, ["ipv4/conf/wlan0/rp_filter 2 0"]);
        drop(journal);
        let text = fs::read_to_string(&path).expect("it is there");
        let place = text.lines().next().expect("a place");
        let (place, cookie) = place.rsplit_once(' ').expect("a cookie");
        if cookie == "-" {
            println!("skipped: a namespace of the same number: this kernel has no cookies of namespaces");
        } else {
            let other = text.replace(&format!("{place} {cookie}"), &format!("{place} 1{cookie}"));
            fs::write(&path, other).expect("it is there");
            assert_eq!(Journal::open(&path, &[]).expect("it is there").1, [""; 0]);
        }
        fs::remove_file(path).expect("it is there");
    }

    #[test]
    fn files_of_another_boot_and_of_a_namespace_that_is_gone_are_removed_and_no_others() {
        if network_namespaces().is_none() {
            println!("skipped: files of a namespace that is gone: only root sees all namespaces");
            return;
        }
        let folder = std::env::temp_dir().join(format!("hopwise-gone-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").expect("there is one");
        let (boot, processes) = (boot.trim(), process_namespace().expect("there is one"));
        let own = fs::metadata("/proc/thread-self/ns/net").expect("there is one").ino();
        // A namespace has a larger number than 7.
        let files = [
            ("here", format!("4:{own} {boot} {processes}")),
            ("gone", format!("4:7 {boot} {processes}")),
            ("boot", format!("4:{own} another {processes}")),
            ("number", format!("4:{own} {boot} {processes} 7")),
            ("elsewhere", format!("4:7 {boot} 9")),
        ];
        for (name, place) in &files {
            let text = format!("{place}\nipv4/conf/wlan0/rp_filter 2 0\n");
            fs::write(folder.join(format!("{name}.switches")), text).expect("a file");
        }
        // Daemons that ended in order were not allowed to remove these.
        for name in ["ended.4-7", &format!("waits.4-{own}")] {
            fs::write(folder.join(format!("{name}.switches")), "").expect("a file");
        }
        // From the first PID namespace everything can be seen.
        let is_first = processes == FIRST;
        let has_cookies = namespace_cookie().is_some();
        let expected = 2 + 2 * usize::from(is_first) + usize::from(has_cookies);
        assert_eq!(forget_gone(&folder), expected);
        assert_eq!(folder.join("number.switches").exists(), !has_cookies);
        let is_there = |name: &str| folder.join(format!("{name}.switches")).exists();
        assert!(is_there("here") && !is_there("gone") && !is_there("boot"));
        assert_eq!([is_there("elsewhere"), is_there("ended.4-7")], [!is_first; 2]);
        assert!(is_there(&format!("waits.4-{own}")), "a daemon of this namespace may open it");
        fs::remove_dir_all(folder).expect("it is there");
    }
}
