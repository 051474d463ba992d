//! Network namespaces that `ip netns` knows by their names.

use std::ffi::CString;
use std::fmt;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::sys;

/// The network namespace of the thread that opens it.
pub(crate) const OWN_NAMESPACE: &str = "/proc/thread-self/ns/net";

/// The reason why a namespace was not made, entered or removed.
#[derive(Debug, thiserror::Error)]
pub enum NamespaceError {
    /// The command `ip` is missing, or cannot be run.
    #[error("run `ip` (Debian: iproute2): {0}")]
    NoCommand(io::Error),
    /// The error text of `ip`.
    #[error("{doing} {name}: {}", .said.trim())]
    Refused {
        /// The attempt, such as `make namespace`.
        doing: &'static str,
        /// The name of the namespace.
        name: String,
        /// The text of `ip`.
        said: String,
    },
    /// A call to the system failed.
    #[error("{doing} {name}: {error}")]
    System {
        /// The attempt, such as `open namespace`.
        doing: &'static str,
        /// The name of the namespace.
        name: String,
        /// The system's error.
        error: io::Error,
    },
}

/// Identity of a namespace, which a later namespace of its name does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamespaceId {
    device: u64,
    inode: u64,
    /// The kernel gives the number of a namespace that is gone to the next one. Seconds and nanoseconds.
    since: (i64, i64),
}

impl NamespaceId {
    fn of(facts: &Metadata) -> NamespaceId {
        NamespaceId { device: facts.dev(), inode: facts.ino(), since: (facts.ctime(), facts.ctime_nsec()) }
    }

    /// The namespace that has this name now.
    pub fn named(name: &str) -> Option<NamespaceId> {
        fs::metadata(path_of(name)).ok().map(|facts| NamespaceId::of(&facts))
    }

    /// Reads what [`fmt::Display`] has written.
    pub fn parse(text: &str) -> Option<NamespaceId> {
        let mut words = text.split(' ');
        let (device, inode) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let since = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        words.next().is_none().then_some(NamespaceId { device, inode, since })
    }
}

impl fmt::Display for NamespaceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {} {}", self.device, self.inode, self.since.0, self.since.1)
    }
}

/// A namespace of our own. Its name goes when this is dropped, and its contents when no process uses it any more.
#[derive(Debug)]
pub struct Namespace {
    name: String,
    handle: File,
}

impl Namespace {
    /// Makes a namespace under a new name; it goes with the value.
    pub fn create(name: &str) -> Result<Namespace, NamespaceError> {
        ip("make namespace", "add", name)?;
        match File::open(path_of(name)) {
            Ok(handle) => Ok(Namespace { name: name.to_owned(), handle }),
            Err(error) => {
                let _ = ip("remove namespace", "del", name);
                Err(NamespaceError::System { doing: "open namespace", name: name.to_owned(), error })
            }
        }
    }

    /// Returns whether a namespace has this name.
    pub fn exists(name: &str) -> bool {
        path_of(name).exists()
    }

    /// Removes a name that a killed process has left, if it still stands for that namespace. Returns whether it did.
    pub fn remove(name: &str, id: NamespaceId) -> Result<bool, NamespaceError> {
        let is_it = NamespaceId::named(name) == Some(id);
        if is_it {
            ip("remove namespace", "del", name)?;
        }
        Ok(is_it)
    }

    /// Removes a name if it stands for a namespace with nothing in it but a loopback device that was never up. A
    /// process that was killed while it made one leaves it so. Returns whether it did.
    pub fn remove_bare(name: &str) -> Result<bool, NamespaceError> {
        let failed = |error| NamespaceError::System { doing: "open namespace", name: name.to_owned(), error };
        let handle = File::open(path_of(name)).map_err(failed)?;
        let mut is_bare = false;
        let look = || {
            is_bare = has_nothing()?;
            Ok(())
        };
        in_namespace(&handle, look).map_err(failed)?;
        if is_bare {
            ip("remove namespace", "del", name)?;
        }
        Ok(is_bare)
    }

    /// The identity of the namespace, whatever its name.
    pub fn id(&self) -> io::Result<NamespaceId> {
        self.handle.metadata().map(|facts| NamespaceId::of(&facts))
    }

    /// The name under which `ip netns` lists it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs `work` on a thread inside. Its descriptors stay inside wherever they are used.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, NamespaceError> {
        self.enter(|| Ok(work()))
    }

    /// The same, with an empty folder in place of `folder`. Its contents are gone with the last process that `work`
    /// starts, however it ends.
    pub fn run_with_own<T: Send>(
        &self,
        folder: &Path,
        work: impl FnOnce() -> T + Send,
    ) -> Result<T, NamespaceError> {
        self.enter(|| {
            fs::create_dir_all(folder)?;
            sys::cover_folder(&CString::new(folder.as_os_str().as_bytes())?)?;
            Ok(work())
        })
    }

    pub(crate) fn enter<T: Send>(
        &self,
        work: impl FnOnce() -> io::Result<T> + Send,
    ) -> Result<T, NamespaceError> {
        let failed = |error| NamespaceError::System { doing: "enter", name: self.name.clone(), error };
        thread::scope(|scope| {
            let inside = || {
                move_into_link_name_space(self.handle.as_fd(), Some(LinkNameSpaceType::Network))?;
                work()
            };
            let running = thread::Builder::new().name("namespace".into()).spawn_scoped(scope, inside);
            let done = running.map_err(failed)?.join();
            done.unwrap_or_else(|panic| std::panic::resume_unwind(panic)).map_err(failed)
        })
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let name = &self.name;
        match self.id().map(|id| Namespace::remove(name, id)) {
            Ok(Ok(true)) => {}
            Ok(Ok(false)) => tracing::warn!(name, "it is another namespace's name by now: left as it is"),
            Ok(Err(error)) => tracing::warn!(%error, "a namespace was left behind"),
            Err(error) => tracing::warn!(name, %error, "a namespace was left behind"),
        }
    }
}

/// The value of a switch in the namespace of this thread.
pub(crate) fn switch_of(key: &str) -> io::Result<String> {
    fs::read_to_string(Path::new("/proc/sys/net").join(key)).map(|text| text.trim().to_owned())
}

/// Sets a switch of the namespace of this thread, such as `ipv4/ip_forward`. It succeeds if this kernel does not have
/// the switch.
pub fn set_switch(key: &str, value: &str) -> io::Result<()> {
    // Without a line nothing is written, and a switch without a value would keep the value that it has.
    match fs::write(Path::new("/proc/sys/net").join(key), format!("{value}\n")) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

/// Runs `work` in that namespace. A move takes more privileges than a daemon keeps: in the thread's own namespace it
/// therefore runs here, and for any other namespace on a thread that moves.
pub(crate) fn in_namespace(namespace: &File, work: impl FnOnce() -> io::Result<()> + Send) -> io::Result<()> {
    let (own, wanted) = (fs::metadata(OWN_NAMESPACE)?, namespace.metadata()?);
    if (own.dev(), own.ino()) == (wanted.dev(), wanted.ino()) {
        return work();
    }
    thread::scope(|scope| {
        let moved = scope.spawn(|| {
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
            work()
        });
        moved.join().unwrap_or_else(|_| Err(io::Error::other("its thread has panicked")))
    })
}

/// Returns whether the namespace of this thread has no device but a loopback without routes: it was never up.
fn has_nothing() -> io::Result<bool> {
    let read = |file: &str| fs::read_to_string(Path::new("/proc/thread-self/net").join(file));
    let devices = read("dev")?.lines().filter(|line| line.contains(':')).count();
    Ok(devices <= 1 && read("fib_trie")?.is_empty())
}

fn path_of(name: &str) -> PathBuf {
    Path::new("/run/netns").join(name)
}

fn ip(doing: &'static str, verb: &str, name: &str) -> Result<(), NamespaceError> {
    let output =
        Command::new("ip").args(["netns", verb, name]).output().map_err(NamespaceError::NoCommand)?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(NamespaceError::Refused { doing, name: name.to_owned(), said })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_stands_for_another_namespace_by_now_stays() {
        let name = format!("hopwise-name-{}", std::process::id());
        let Ok(ours) = Namespace::create(&name) else {
            println!("skipped: a name of another namespace: only root with `ip` can make one");
            return;
        };
        let id = ours.id().expect("it is open");
        assert_eq!(NamespaceId::parse(&id.to_string()), Some(id));
        assert_eq!(NamespaceId::named(&name), Some(id));
        ip("remove namespace", "del", &name).expect("root may");
        ip("make namespace", "add", &name).expect("root may");
        assert_eq!(Namespace::remove(&name, id).ok(), Some(false));
        drop(ours);
        let theirs = NamespaceId::named(&name).expect("it is not ours to remove");
        assert_eq!(Namespace::remove(&name, theirs).ok(), Some(true));
        assert!(!Namespace::exists(&name));
    }

    #[test]
    fn a_bare_namespace_goes_and_one_in_use_stays() {
        let name = format!("hopwise-bare-{}", std::process::id());
        if ip("make namespace", "add", &name).is_err() {
            println!("skipped: a bare namespace: only root with `ip` can make one");
            return;
        }
        let handle = File::open(path_of(&name)).expect("it is there");
        let in_use = || crate::netlink::set_up("lo", true).map_err(io::Error::other);
        in_namespace(&handle, in_use).expect("root may");
        assert_eq!(Namespace::remove_bare(&name).ok(), Some(false));
        ip("remove namespace", "del", &name).expect("root may");
        ip("make namespace", "add", &name).expect("root may");
        assert_eq!(Namespace::remove_bare(&name).ok(), Some(true));
        assert!(!Namespace::exists(&name));
    }

    #[test]
    fn what_is_written_to_a_folder_of_ones_own_is_seen_by_no_other() {
        let name = format!("hopwise-own-{}", std::process::id());
        let Ok(ours) = Namespace::create(&name) else {
            println!("skipped: a folder of one's own: only root with `ip` can make a namespace");
            return;
        };
        let folder = std::env::temp_dir().join(&name);
        fs::create_dir_all(&folder).expect("the temporary folder can be written");
        fs::write(folder.join("old"), "").expect("it can be written");
        let inside = ours.run_with_own(&folder, || {
            let had = fs::read_dir(&folder).map(Iterator::count);
            fs::write(folder.join("new"), "").and_then(|()| Ok((had?, folder.join("new").exists())))
        });
        assert_eq!(inside.expect("root may").expect("it is a folder"), (0, true));
        assert_eq!((folder.join("old").exists(), folder.join("new").exists()), (true, false));
        fs::remove_dir_all(&folder).expect("it is there");
    }

    #[test]
    fn a_line_of_another_form_names_no_namespace() {
        for text in ["", "4", "4 1 2", "4 1 2 3 4", "4 1 2 x", "-4 1 2 3"] {
            assert_eq!(NamespaceId::parse(text), None, "{text}");
        }
    }
}
