//! Files in the folder of a trial or a run. Somebody else may have made the folder: an archive carries links.
//!
//! A file is opened below the folder by each component of its name. No link is followed, and no special file is opened,
//! so that nothing leads out of the folder and nothing is waited for.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, fchmod, fsync, mkdirat, openat, renameat, statat, unlinkat,
};
use rustix::io::Errno;

use crate::named::bounded;

/// No file of a trial comes near this, nor do its runs together.
pub(crate) const LARGEST: u64 = 1 << 30;
/// A trial has no more runs, and thus no folder with more files.
const MOST_NAMES: usize = 1 << 20;
/// Suffix of a file that is not complete yet.
pub(crate) const UNFINISHED: &str = ".part";
/// Flags of each file and folder that is opened here.
const CAREFUL: OFlags = OFlags::CLOEXEC.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::NOCTTY);
const NEW: Mode = Mode::from_raw_mode(0o666);

/// A folder that was opened once. Its path may lead elsewhere by now: whoever can change a link in it chooses where.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    descriptor: OwnedFd,
}

impl Folder {
    /// Opens a folder that a user names, which may be a link to it.
    pub fn open(path: &Path) -> io::Result<Folder> {
        let descriptor = enter(CWD, path.as_os_str(), OFlags::empty())?;
        Ok(Folder { path: path.to_owned(), descriptor })
    }

    /// The path by which it was opened, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of a file in it, for messages.
    pub fn join(&self, name: impl AsRef<Path>) -> PathBuf {
        self.path.join(name)
    }

    /// True if something stands in it by this name.
    pub fn has(&self, name: impl AsRef<Path>) -> bool {
        self.way(name.as_ref()).is_ok_and(|(at, own)| kind(&at, own).is_ok())
    }

    /// The text of a file in it.
    pub fn read(&self, name: impl AsRef<Path>) -> io::Result<String> {
        self.read_at_most(name, LARGEST)
    }

    /// The text of a file in it that is no longer than that.
    pub fn read_at_most(&self, name: impl AsRef<Path>, largest: u64) -> io::Result<String> {
        bounded(self.open_file(name.as_ref(), OFlags::RDONLY)?, largest)
    }

    /// Writes a file in it as a whole or not at all. The name stays with what it had until the file is whole.
    pub fn write(&self, name: impl AsRef<Path>, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.write_by(name.as_ref(), |to| to.write_all(bytes.as_ref()))
    }

    /// The names in a folder of it, in their order.
    pub fn names(&self, name: impl AsRef<Path>) -> io::Result<Vec<OsString>> {
        self.names_at_most(name.as_ref(), MOST_NAMES)
    }

    fn names_at_most(&self, name: &Path, most: usize) -> io::Result<Vec<OsString>> {
        let (at, own) = self.way(name)?;
        let names = Dir::new(step(&at, own)?)?
            .map(|entry| Ok(OsStr::from_bytes(entry?.file_name().to_bytes()).to_owned()));
        // Two names more for the folder itself and for its parent.
        let mut names = names.take(most + 3).collect::<io::Result<Vec<_>>>()?;
        names.retain(|name| name != "." && name != "..");
        if names.len() > most {
            let problem = format!("it has too many files: expected at most {most}");
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, problem));
        }
        names.sort();
        Ok(names)
    }

    fn open_file(&self, name: &Path, flags: OFlags) -> io::Result<File> {
        let (at, own) = self.way(name)?;
        open_at(&at, own, flags)
    }

    fn write_by(&self, name: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
        let (at, own) = self.way(name)?;
        let before = match permissions(&at, own) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            found => Some(found?),
        };
        let mut part = own.to_owned();
        part.push(UNFINISHED);
        // A program that was killed may have left one.
        let _ = unlinkat(&at, &part, AtFlags::empty());
        let file = openat(&at, &part, CAREFUL | OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL, NEW)
            .map_err(|error| in_the_way(&part, error))?;
        let whole = || {
            let mut file = BufWriter::new(File::from(file));
            write(&mut file)?;
            let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
            // Users who could not read the old file cannot read the new one.
            before.map_or(Ok(()), |mode| fchmod(&file, mode))?;
            file.sync_all()?;
            renameat(&at, &part, &at, own)?;
            // A synced folder makes the new name durable.
            Ok(fsync(&at)?)
        };
        whole().inspect_err(|_| {
            let _ = unlinkat(&at, &part, AtFlags::empty());
        })
    }

    /// Makes a folder in it, if it is not there.
    fn make(&self, name: &Path) -> io::Result<()> {
        let mut at = self.descriptor.try_clone()?;
        for own in plain(name)? {
            match mkdirat(&at, own, Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(Errno::EXIST) => at = step(&at, own)?,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// The folder that a file stands in, and the file's own name there.
    fn way<'a>(&self, name: &'a Path) -> io::Result<(OwnedFd, &'a OsStr)> {
        let mut names = plain(name)?;
        let own = names.pop().ok_or_else(|| outside(name))?;
        let mut at = self.descriptor.try_clone()?;
        for name in names {
            at = step(&at, name)?;
        }
        Ok((at, own))
    }
}

/// The text of a file in the folder.
pub fn read(folder: &Path, name: impl AsRef<Path>) -> io::Result<String> {
    Folder::open(folder)?.read(name)
}

/// Opens a file in the folder for reading.
pub fn open(folder: &Path, name: impl AsRef<Path>) -> io::Result<File> {
    Folder::open(folder)?.open_file(name.as_ref(), OFlags::RDONLY)
}

/// Opens or makes the file that a program locks as long as it writes to the folder.
pub(crate) fn open_lock(folder: &Path, name: &str) -> io::Result<File> {
    Folder::open(folder)?.open_file(Path::new(name), OFlags::RDWR | OFlags::CREATE)
}

/// Writes a file in the folder, as [`Folder::write`] does.
pub fn write(folder: &Path, name: impl AsRef<Path>, bytes: impl AsRef<[u8]>) -> io::Result<()> {
    Folder::open(folder)?.write(name, bytes)
}

/// The same as [`write`], for a file that is written in pieces.
pub(crate) fn write_by(
    folder: &Path,
    name: impl AsRef<Path>,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    Folder::open(folder)?.write_by(name.as_ref(), write)
}

/// Makes a folder in the folder, if it is not there.
pub fn make(folder: &Path, name: impl AsRef<Path>) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    Folder::open(folder)?.make(name.as_ref())
}

/// Removes a file in the folder.
pub fn remove(folder: &Path, name: impl AsRef<Path>) -> io::Result<()> {
    let folder = Folder::open(folder)?;
    let (at, own) = folder.way(name.as_ref())?;
    Ok(unlinkat(&at, own, AtFlags::empty())?)
}

/// The names in a folder of the folder, in their order.
pub fn names(folder: &Path, name: impl AsRef<Path>) -> io::Result<Vec<OsString>> {
    Folder::open(folder)?.names(name)
}

/// The components of a name that stays below its folder.
fn plain(name: &Path) -> io::Result<Vec<&OsStr>> {
    let own = |component| match component {
        Component::Normal(own) => Ok(own),
        _ => Err(outside(name)),
    };
    name.components().map(own).collect()
}

fn outside(name: &Path) -> io::Error {
    let problem = format!("`{}` leads out of the folder: expected a name below it", name.display());
    io::Error::new(io::ErrorKind::InvalidInput, problem)
}

/// Enters a folder of a folder.
fn step(at: &OwnedFd, own: &OsStr) -> io::Result<OwnedFd> {
    let problem = match kind(at, own)? {
        FileType::Directory => return enter(at, own, OFlags::NOFOLLOW),
        FileType::Symlink => "is a link, and links are not followed below a trial's folder",
        _ => "is no folder",
    };
    let problem = format!("`{}` {problem}: expected a folder", own.display());
    Err(io::Error::new(io::ErrorKind::NotADirectory, problem))
}

fn enter(at: impl AsFd, name: &OsStr, more: OFlags) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | more;
    Ok(openat(at, name, flags, Mode::empty())?)
}

fn open_at(at: &OwnedFd, own: &OsStr, flags: OFlags) -> io::Result<File> {
    match permissions(at, own) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && flags.contains(OFlags::CREATE) => {}
        found => drop(found?),
    }
    let file = File::from(openat(at, own, CAREFUL | flags, NEW)?);
    // Another file may stand there by now.
    let facts = file.metadata()?;
    if facts.nlink() > 1 {
        let problem =
            "it is a hard link, a file with several names: expected a file of its own, such as `cp` makes";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
    }
    if facts.is_file() { Ok(file) } else { Err(no_file()) }
}

/// The permissions of a regular file; all else is refused.
fn permissions(at: &OwnedFd, own: &OsStr) -> io::Result<Mode> {
    let facts = statat(at, own, AtFlags::SYMLINK_NOFOLLOW)?;
    match FileType::from_raw_mode(facts.st_mode) {
        FileType::RegularFile => Ok(Mode::from_raw_mode(facts.st_mode) & Mode::from_raw_mode(0o777)),
        FileType::Symlink => {
            let problem = "it is a link, and links are not followed here: expected a regular file";
            Err(io::Error::new(io::ErrorKind::InvalidInput, problem))
        }
        _ => Err(no_file()),
    }
}

fn kind(at: &OwnedFd, own: &OsStr) -> io::Result<FileType> {
    Ok(FileType::from_raw_mode(statat(at, own, AtFlags::SYMLINK_NOFOLLOW)?.st_mode))
}

/// The error of a file that could not be begun, with the name of what stands in its place.
fn in_the_way(part: &OsStr, error: Errno) -> io::Error {
    match error {
        Errno::EXIST => {
            let problem = format!("`{}` is in its way: expected nothing by that name", part.display());
            io::Error::new(io::ErrorKind::AlreadyExists, problem)
        }
        error => error.into(),
    }
}

fn no_file() -> io::Error {
    let problem = "it is a folder, a pipe or a device: expected a regular file";
    io::Error::new(io::ErrorKind::InvalidInput, problem)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn problem<T>(done: io::Result<T>) -> String {
        done.err().map_or_else(String::new, |error| error.to_string())
    }

    #[test]
    fn a_folder_stays_the_one_that_was_opened_though_its_path_leads_elsewhere() {
        let root = std::env::temp_dir().join(format!("hopwise-swapped-{}", std::process::id()));
        let (own, precious, link) = (root.join("own"), root.join("precious"), root.join("link"));
        for (folder, text) in [(&own, "own"), (&precious, "precious")] {
            make(folder, "below").expect("a folder");
            write(folder, "below/x", text).expect("a file");
        }
        symlink(&own, &link).expect("a link");
        let folder = Folder::open(&link).expect("a folder");
        fs::remove_file(&link).expect("our link");
        symlink(&precious, &link).expect("a link");
        assert_eq!(folder.read("below/x").ok().as_deref(), Some("own"));
        folder.write("below/x", "new").expect("a file");
        folder.write("y", "new").expect("a file");
        assert!(folder.has("y") && !precious.join("y").exists());
        assert_eq!(fs::read_to_string(precious.join("below/x")).ok().as_deref(), Some("precious"));
        assert_eq!((folder.names("below").ok(), folder.path()), (Some(vec!["x".into()]), link.as_path()));
        fs::remove_dir_all(root).expect("it is there");
    }

    #[test]
    fn a_file_is_replaced_by_what_is_whole_and_by_no_way_out() {
        let root = std::env::temp_dir().join(format!("hopwise-folder-{}", std::process::id()));
        let folder = root.join("trial");
        make(&folder, "a/b").expect("a folder");
        fs::write(root.join("x"), "precious").expect("a file");
        write(&folder, "a/b/x", "old").expect("a file");
        fs::set_permissions(folder.join("a/b/x"), fs::Permissions::from_mode(0o600)).expect("it is ours");
        write_by(&folder, "a/b/x", |_| Err(io::ErrorKind::StorageFull.into())).expect_err("it is not whole");
        assert_eq!(read(&folder, "a/b/x").ok().as_deref(), Some("old"));
        // A killed program left it, and somebody put a link in its place.
        symlink(root.join("x"), folder.join("a/b/x.part")).expect("a link");
        write(&folder, "a/b/x", "new").expect("a file");
        let mode = fs::metadata(folder.join("a/b/x")).expect("a file").permissions().mode();
        assert_eq!((read(&folder, "a/b/x").ok().as_deref(), mode & 0o777), (Some("new"), 0o600));
        assert_eq!(names(&folder, "a/b").expect("a folder"), ["x"]);
        let within = |most| {
            problem(Folder::open(&folder).and_then(|folder| folder.names_at_most(Path::new("a"), most)))
        };
        assert_eq!(within(0), "it has too many files: expected at most 0");
        fs::create_dir(folder.join("a/b/x.part")).expect("a folder");
        let said = problem(write(&folder, "a/b/x", "newer"));
        assert_eq!(said, "`x.part` is in its way: expected nothing by that name");
        fs::remove_dir(folder.join("a/b/x.part")).expect("it is ours");
        fs::hard_link(folder.join("a/b/x"), folder.join("a/b/y")).expect("a link");
        assert!(problem(read(&folder, "a/b/y")).starts_with("it is a hard link"));
        remove(&folder, "a/b/y").expect("our link");
        for out in ["../x", "a/../../x", "/etc/passwd", "", "."] {
            let wanted = format!("`{out}` leads out of the folder: expected a name below it");
            let all = [
                problem(open(&folder, out)),
                problem(write(&folder, out, "")),
                problem(remove(&folder, out)),
            ];
            assert_eq!(all, [wanted.as_str(); 3], "{out}");
        }
        symlink(&root, folder.join("link")).expect("a link");
        let all = [
            problem(read(&folder, "link/x")),
            problem(write(&folder, "link/x", "")),
            problem(make(&folder, "link/y")),
        ];
        assert!(all.iter().all(|said| said.starts_with("`link` is a link")), "{all:?}");
        assert!(problem(names(&folder, "link")).starts_with("`link` is a link"));
        assert_eq!(fs::read_to_string(root.join("x")).ok().as_deref(), Some("precious"));
        fs::remove_dir_all(root).expect("it is there");
    }
}
