//! Files and folders of one process: folders in the temporary folder, and small files of a daemon's state, written so
//! that no other user can redirect the write.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use hopwise_host::{own_file, random_key};
use rustix::fs::{AtFlags, CWD, FlockOperation, Mode, OFlags, flock, openat, renameat, unlinkat};
use rustix::process::geteuid;

/// A folder of this process. It is locked while in use, and a later process removes the folders of killed processes.
#[derive(Debug)]
pub struct OwnFolder {
    path: PathBuf,
    _lock: File,
}

impl OwnFolder {
    /// The name is this prefix, the process's number, and a number that no other user can foresee.
    pub fn make(prefix: &str) -> io::Result<OwnFolder> {
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

    pub fn path(&self) -> &Path {
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

/// Writes a file of a daemon's state, and keeps it open.
///
/// The text goes into a new file, which then takes the name. A link at either name is replaced, never followed, and a
/// reader sees the old text or the new text. The file stays open, and later texts are written in place: its folder may
/// be closed to the daemon by then. A text is shorter than a disk's unit of writing.
pub fn write(path: &Path, text: &str) -> io::Result<File> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let folder = open_folder(path)?;
    let mut new = OsString::from(".");
    new.push(name);
    new.push(".new");
    match unlinkat(&folder, &new, AtFlags::empty()) {
        Ok(()) | Err(rustix::io::Errno::NOENT) => {}
        Err(error) => return Err(error.into()),
    }
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::WRONLY | OFlags::CLOEXEC;
    let file = openat(&folder, &new, flags, Mode::from_raw_mode(0o600))?;
    let mut file = File::from(file);
    file.write_all(text.as_bytes())?;
    renameat(folder.as_fd(), &new, folder.as_fd(), name)?;
    Ok(file)
}

/// Replaces the text of an open file.
pub fn rewrite(file: &File, text: &str) -> io::Result<()> {
    file.write_all_at(text.as_bytes(), 0)?;
    file.set_len(text.len() as u64)
}

/// Makes a missing folder. It is held open, so that it cannot be replaced meanwhile.
fn open_folder(path: &Path) -> io::Result<OwnedFd> {
    let folder = own_file::folder_of(path);
    fs::create_dir_all(folder)?;
    Ok(openat(CWD, folder, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::os::unix::fs::symlink;

    use hopwise_host::own_file::open_own;

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

    #[test]
    fn a_link_at_the_name_is_replaced_and_what_it_names_stays() {
        let folder = std::env::temp_dir().join(format!("hopwise-state-links-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let (path, target) = (folder.join("route"), folder.join("precious"));
        fs::write(&target, "precious").expect("a file");
        symlink(&target, &path).expect("a link");
        symlink(&target, folder.join(".route.new")).expect("a link");
        let read = |path: &Path| open_own(path, OpenOptions::new().read(true)).map(drop);
        assert!(read(&path).is_err() && read(&folder).is_err());
        assert!(read(&target).is_ok());
        fs::hard_link(&target, folder.join("second")).expect("another name");
        assert!(read(&target).is_err(), "it has two names");
        write(&path, "7\n").expect("it is written");
        assert_eq!(fs::read_to_string(&target).expect("a file"), "precious");
        assert_eq!(fs::read_to_string(&path).expect("a file"), "7\n");
        assert!(fs::symlink_metadata(&path).expect("facts").is_file());
        let file = write(&path, "80\n").expect("it is written again");
        assert_eq!(fs::read_to_string(&path).expect("a file"), "80\n");
        rewrite(&file, "9\n").expect("it is open");
        assert_eq!(fs::read_to_string(&path).expect("a file"), "9\n");
        fs::remove_dir_all(folder).expect("it is there");
    }
}
