//! Folders of single processes in the temporary folder.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use hopwise_host::random_key;
use rustix::fs::{FlockOperation, flock};
use rustix::process::geteuid;

/// A folder of this process. It is locked while in use; those of killed processes are removed.
#[derive(Debug)]
pub(crate) struct OwnFolder {
    path: PathBuf,
    _lock: File,
}

impl OwnFolder {
    /// The name is this prefix, the process's number, and a number that no other user can foresee.
    pub(crate) fn make(prefix: &str) -> io::Result<OwnFolder> {
        let all = temporary(std::env::temp_dir());
        remove_left(&all, prefix);
        let chance: String = random_key()?.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        let path = all.join(format!("{prefix}{}-{chance}", std::process::id()));
        let made = DirBuilder::new().mode(0o700).create(&path);
        made.map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))?;
        let lock = File::create(path.join("lock"))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        Ok(OwnFolder { path, _lock: lock })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for OwnFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// The temporary folder that a user has set may be missing on this machine.
fn temporary(set: PathBuf) -> PathBuf {
    if set.is_dir() { set } else { PathBuf::from("/tmp") }
}

fn remove_left(all: &Path, prefix: &str) {
    for entry in fs::read_dir(all).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let Some(process) = name.strip_prefix(prefix) else { continue };
        let is_ours = entry.metadata().is_ok_and(|facts| facts.is_dir() && facts.uid() == geteuid().as_raw());
        let is_used = || match File::open(entry.path().join("lock")) {
            Ok(lock) => flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err(),
            // Its process is about to make the lock, or was killed before it did.
            Err(_) => Path::new("/proc").join(process.split('-').next().unwrap_or_default()).exists(),
        };
        if is_ours && !is_used() {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_temporary_folder_that_is_missing_has_the_usual_one_in_its_place() {
        let there = std::env::temp_dir();
        assert_eq!(temporary(there.clone()), there);
        assert_eq!(temporary(there.join("hopwise-is-not-there")), PathBuf::from("/tmp"));
    }

    #[test]
    fn a_user_cannot_take_the_name_of_the_next_folder_before() {
        let [first, second] = [(); 2].map(|()| OwnFolder::make("hopwise-own-").expect("a folder"));
        let name = |folder: &OwnFolder| folder.path().display().to_string();
        let number = format!("hopwise-own-{}-", std::process::id());
        assert!(name(&first).contains(&number) && name(&first) != name(&second));
    }

    #[test]
    fn the_folder_of_a_killed_one_goes_and_one_in_use_stays() {
        let all = std::env::temp_dir().join(format!("hopwise-left-{}", std::process::id()));
        let [used, left, other] = ["hopwise-hwsim-1", "hopwise-hwsim-2", "other"].map(|name| all.join(name));
        for folder in [&used, &left, &other] {
            fs::create_dir_all(folder).expect("a folder");
            File::create(folder.join("lock")).expect("a file");
        }
        let lock = File::open(used.join("lock")).expect("it is there");
        flock(&lock, FlockOperation::NonBlockingLockExclusive).expect("nobody has it");
        remove_left(&all, "hopwise-hwsim-");
        assert_eq!([&used, &left, &other].map(|folder| folder.exists()), [true, false, true]);
        fs::remove_dir_all(all).expect("it is there");
    }
}
